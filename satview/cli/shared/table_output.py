"""Answers on standard output: as tables or cards for people, as CSV, as JSON. The only printer of a `Table`.

Tables for files and pipes are drawn here as the package for tables draws them on terminals, without its cost of 0.1 ms
a cell: as long for the 400 threads of a trace as the trace takes to load.
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
from satview.base.safe_text import visible_line
from satview.cli.shared.terminal import bold, cell, dim, make_console, working

FORMATS = ("table", "csv", "json")
_GAP: Final = "  "


def print_table(
    table: Table, form: str, key: str, head: Sequence[str] = (), more: Mapping[str, Any] | None = None
) -> None:
    """Print an answer.

    Args:
        table: The rows, in their order.
        form: One of `FORMATS`.
        key: The name of the list of rows in JSON.
        head: Lines above the table for people.
        more: What JSON has besides.
    """
    if form == "json":
        print_json(table.document(key) | dict(more or {}))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(table.csv_rows())
    else:
        print_for_people(table, head)


def print_json(document: object) -> None:
    """Print a document as JSON; nan and infinity, for which JSON has no number, become null."""
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
    """Print an answer as a table or as cards.

    Args:
        table: The rows, in their order.
        head: Lines above it.
        names: The columns of a table to print; none = all that say something.
        title: What it is called; empty = as its question.
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
        # Cards have no title of their own: the head says that there are none.
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
    """Return a row with sentences as text, without the columns that are empty in all rows.

    Args:
        table: The rows.
        row: One of them.

    Returns:
        What it is called, its figures, and below it the sentences and the lists; all but the first sentence titled.
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
    """Return the texts of a row that are not empty."""
    return [text for column in columns if (text := visible_line(table.text(row, column.name)))]


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> None:
    """Print rows of texts below a heading, fitted to the terminal; in files and pipes a row is a line of any length."""
    with working(f"printing {len(rows):,} rows"):  # nothing is printed before all widths are known
        text = _fitted(heads, rows, is_right) if sys.stdout.isatty() else "\n".join(table_lines(heads, rows, is_right))
    print(text)


def _fitted(heads: Sequence[str], texts: Sequence[Sequence[str]], is_right: Sequence[bool]) -> str:
    """Return a table that fits the terminal; what has no room is cut."""
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
    """Return a heading and rows as lines, every column as wide as its widest text.

    Args:
        heads: What the columns are called.
        rows: Their texts, each on one line.
        is_right: Of each column, whether its texts end at the right edge.
    """
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
    """Return how many cells of a terminal a character takes: two for a wide one, none for what joins the one before."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
