"""Prints every `Table` of the command line: as a table or cards of text, as CSV, or as JSON.

On a terminal the package rich draws tables. It takes 0.1 ms a cell, for 400 threads as long as the trace takes to load,
so tables for files and pipes are drawn here, with the same look.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final
from unicodedata import category, east_asian_width

from rich.table import Table as TerminalTable

from satview.answers.table import Column, Kind, Outcome, Table
from satview.base.process import say
from satview.base.safe_text import visible_line
from satview.cli.shared.terminal import bold, cell, dim, make_console, working

FORMATS = ("table", "csv", "json")
_GAP: Final = "  "


def print_table(
    table: Table, form: str, key: str, head: Sequence[str] = (), more: Mapping[str, Any] | None = None
) -> None:
    """Print an answer; for CSV, print on standard error what the trace cannot tell, as rows cannot contain that.

    `form` is one of `FORMATS`; `head` are lines above a table; `key` and `more` are the rows' name and more entries in
    JSON.
    """
    if form == "json":
        print_json(table.document(key) | dict(more or {}))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(table.csv_rows())
        for line in table.missing:  # rows have no place for it
            say(visible_line(f"not all: {line}" if len(table) else f"cannot tell: {line}"))
    else:
        print_for_people(table, head)


def print_json(document: object) -> None:
    """Print a document as JSON; nan and infinity, which JSON does not have, become null."""
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError:
        text = json.dumps(_with_nulls(document), indent=2)
    print(text)


def _with_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_nulls(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_for_people(table: Table, head: Sequence[str] = (), names: Sequence[str] = (), title: str = "") -> None:
    """Print an answer as a table, or as cards if it has columns of sentences, with lines above and a title.

    Without names all columns that are not empty are printed.
    """
    for line in head:
        print(visible_line(line))
    is_cards = any(column.kind is Kind.SENTENCE for column in table.question.columns)
    if not is_cards:
        print(
            f"\n{bold(title or table.question.title)}",
            *(map(visible_line, filter(None, [table.question.note]))),
            sep="  ",
        )
    if table.outcome is not Outcome.FOUND:
        # Cards have no title: `head` already says that there are no rows.
        for line in table.says_why_empty.splitlines() if table.missing or not is_cards else ():
            print(visible_line(line))
        return
    if is_cards:
        _print_cards(table)
    else:
        columns = [table.question.column(name) for name in names] or list(table.filled())
        rows = []
        with working(f"writing {len(table):,} rows") as report:
            for row in range(len(table)):
                rows.append([visible_line(table.text(row, column.name)) for column in columns])
                report((row + 1) / len(table))
        print_rows([visible_line(column.title) for column in columns], rows, [not c.kind.is_words for c in columns])
    lines = [*table.doubts(), *(f"Not all: {line}" for line in table.missing)]
    if is_cards and lines:
        print()
    for line in lines:
        print(dim(visible_line(line)))


def card(table: Table, row: int) -> tuple[str, str, list[str]]:
    """Return a row as a card without columns that are empty in all rows: heading, figures, and the lines below.

    The lines are sentences and lists, with a title except for the first sentence.
    """
    columns = table.filled()
    plain = [column for column in columns if not table.is_list(column) and column.kind is not Kind.SENTENCE]
    count = next((number for number, column in enumerate(plain) if not column.kind.is_words), len(plain))
    figures = [f"{column.title} {text}" for column in plain[count:] for text in _cells(table, row, [column])]
    sentences = [column for column in columns if column not in plain and not table.is_list(column)]
    more = sentences[1:] + [column for column in columns if table.is_list(column)]
    below = _cells(table, row, sentences[:1]) + [
        f"{shown.title}: {text}" for shown in more for text in _cells(table, row, [shown])
    ]
    return ": ".join(_cells(table, row, plain[:count])), ", ".join(figures), below


def _print_cards(table: Table) -> None:
    for row in range(len(table)):
        heading, figures, below = card(table, row)
        print(f"\n{bold(heading)}" + (f"  {figures}" if figures else ""))
        for text in below:
            print(f"  {text}")


def _cells(table: Table, row: int, columns: Sequence[Column]) -> list[str]:
    """Return the texts of a row in some columns, except empty ones."""
    return [text for column in columns if (text := visible_line(table.text(row, column.name)))]


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> None:
    """Print a table of texts, fitted to the width of the terminal; in files and pipes lines have any length."""
    with working(f"printing {len(rows):,} rows"):  # nothing is printed before all widths are known
        text = _fitted(heads, rows, is_right) if sys.stdout.isatty() else "\n".join(table_lines(heads, rows, is_right))
    print(text)


def _fitted(heads: Sequence[str], texts: Sequence[Sequence[str]], is_right: Sequence[bool]) -> str:
    """Return a table as text; texts are cut so that it fits the terminal. The arguments are those of `print_rows`."""
    shown = TerminalTable(box=None, pad_edge=False, header_style="bold")
    for head, right in zip(heads, is_right, strict=True):
        shown.add_column(cell(head), no_wrap=True, justify="right" if right else "left")
    for row in texts:
        shown.add_row(*map(cell, row))
    console = make_console()
    with console.capture() as captured:
        console.print(shown)
    return captured.get().removesuffix("\n")


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> list[str]:
    """Return a table as lines of text, the heading first; every column is as wide as its widest text."""
    columns = [
        _justified(column, right) for column, right in zip(zip(heads, *rows, strict=True), is_right, strict=True)
    ]
    return [_GAP.join(cells) for cells in zip(*columns, strict=True)]


def _justified(column: Sequence[str], is_right: bool) -> list[str]:
    if all(map(str.isascii, column)):
        width = max(map(len, column))
        return [text.rjust(width) if is_right else text.ljust(width) for text in column]
    widths = [sum(map(_width, text)) for text in column]
    width = max(widths)
    gaps = [" " * (width - own) for own in widths]
    return [gap + text if is_right else text + gap for gap, text in zip(gaps, column, strict=True)]


def _width(character: str) -> int:
    """Return the width of a character in terminal cells: 2 for a wide character, 0 for a combining one, else 1."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
