"""Details of a selection as lines of text, some of which lead to an event or a lane; no widget."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the details.

    Attributes:
        name: What it is.
        text: The value.
        note: What to know about it, shown small.
        event: Event row to go to when it is clicked, or None.
        thread, process: Rows of the thread or process to whose lane a click leads; 0 = none.
        means: What the value means; a click on that goes where the line leads, not one on the value.
        is_code: Numbers and bytes, to be set in a fixed font.
        is_more: A click shows more of a giant event.
    """

    name: str
    text: str
    note: str = ""
    event: int | None = None
    is_code: bool = False
    is_more: bool = False
    thread: int = 0
    process: int = 0
    means: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together.

    Attributes:
        title: What they are about.
        lines: The lines.
        is_prose: Sentences, which take the whole width, rather than names with their values.
    """

    title: str
    lines: tuple[Line, ...]
    is_prose: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table.

    Attributes:
        text: The value.
        event: Event row to go to when it is clicked, or None.
        thread: Row of the thread table to whose lane a click leads; 0 = none.
        cycles: With a thread, when: the interval of its lane there; None = no time in particular.
    """

    text: str
    event: int | None = None
    thread: int = 0
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under a title; the first column names the row.

    Attributes:
        title: What they are about.
        head: Titles of the columns.
        rows: The values.
        more: What is to be said below them; may be empty.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: str = ""

    def as_lines(self) -> list[str]:
        """Return it as lines of text, columns aligned."""
        texts = [self.head, *(tuple(cell.text for cell in row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  ".join(f"{text:<{width}}" if not i else f"{text:>{width}}" for i, (text, width) in
                           enumerate(zip(row, widths, strict=True))) for row in texts]  # fmt: skip
        return [f"  {line}" for line in [*lines, self.more] if line]


@dataclass(frozen=True, slots=True)
class Details:
    """Everything about a selection.

    Attributes:
        title: What it is, a few words.
        subtitle: Where it belongs.
        kind: Printed class of an event, or the state of an interval.
        sections: The lines.
        tables: What is below them.
    """

    title: str
    subtitle: str
    kind: str
    sections: tuple[Section, ...] = field(default=())
    tables: tuple[Table, ...] = ()

    def as_text(self) -> str:
        """Return it as plain text for the clipboard."""
        lines = [f"{self.title}  [{self.kind}]", self.subtitle]
        for section in self.sections:
            lines += ["", section.title]
            width = max((len(line.name) for line in section.lines), default=0)
            lines += [
                f"  {line.name:<{width}}  {line.text}{f'  {line.means}' if line.means else ''}"
                f"{f'  ({line.note})' if line.note else ''}"
                for line in section.lines
            ]
        for table in self.tables:
            lines += ["", table.title, *table.as_lines()]
        return "\n".join(lines)
