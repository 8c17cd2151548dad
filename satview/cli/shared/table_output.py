"""Answers on standard output: as tables or cards for people, as CSV, as JSON. The only printer of a `Table`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from satview.answers.table import Column, Kind, Outcome, Table
from satview.base.safe_text import visible_line
from satview.cli.shared.bold import bold, dim
from satview.cli.shared.progress import working
from satview.cli.shared.sheets import print_rows

FORMATS = ("table", "csv", "json")


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
        print(json.dumps(table.document(key) | dict(more or {}), indent=2))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(table.csv_rows())
    else:
        _print_for_people(table, head)


def _print_for_people(table: Table, head: Sequence[str]) -> None:
    for line in head:
        print(visible_line(line))
    is_cards = any(column.kind is Kind.SENTENCE for column in table.question.columns)
    if not is_cards:
        print(f"\n{bold(table.question.title)}")
    if table.outcome is not Outcome.FOUND:
        # Cards have no title of their own: the head says that there are none.
        for line in table.says_why_empty.splitlines() if table.missing or not is_cards else ():
            print(visible_line(line))
        return
    if is_cards:
        _print_cards(table)
    else:
        columns = table.filled()
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
    """Return a row with sentences as text, of the columns that say something in any row.

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
    said, *more = [column for column in columns if column not in plain and not table.is_list(column)]
    more += [column for column in columns if table.is_list(column)]
    below = _cells(table, row, [said]) + [
        f"{each.title}: {text}" for each in more for text in _cells(table, row, [each])
    ]
    return ": ".join(_cells(table, row, plain[:count])), ", ".join(figures), below


def _print_cards(table: Table) -> None:
    for row in range(len(table)):
        heading, figures, below = card(table, row)
        print(f"\n{bold(heading)}" + (f"  {figures}" if figures else ""))
        for text in below:
            print(f"  {text}")


def _cells(table: Table, row: int, columns: Sequence[Column]) -> list[str]:
    """Return the texts of a row that say something."""
    return [text for column in columns if (text := visible_line(table.text(row, column.name)))]
