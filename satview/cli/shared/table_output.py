"""Answers on standard output: as tables for people, as CSV, as JSON. The only printer of a `Table`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence

from satview.answers.table import Outcome, Table
from satview.base.safe_text import visible_line
from satview.cli.shared.bold import bold, dim
from satview.cli.shared.progress import working
from satview.cli.shared.sheets import print_rows

FORMATS = ("table", "csv", "json")


def print_table(table: Table, form: str, key: str, head: Sequence[str] = ()) -> None:
    """Print an answer.

    Args:
        table: The rows, in their order.
        form: One of `FORMATS`.
        key: The name of the list of rows in JSON.
        head: Lines above the table for people.
    """
    if form == "json":
        print(json.dumps(table.document(key), indent=2))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(table.csv_rows())
    else:
        _print_for_people(table, head)


def _print_for_people(table: Table, head: Sequence[str]) -> None:
    for line in head:
        print(visible_line(line))
    print(f"\n{bold(table.question.title)}")
    if table.outcome is not Outcome.FOUND:
        print(visible_line(table.says_why_empty))
        return
    columns = table.filled()
    rows = []
    with working(f"writing {len(table):,} rows") as report:
        for row in range(len(table)):
            rows.append([visible_line(table.text(row, column.name)) for column in columns])
            report((row + 1) / len(table))
    is_right = [not column.kind.is_words for column in columns]
    print_rows([visible_line(column.title) for column in columns], rows, is_right)
    for doubt in table.doubts():
        print(dim(visible_line(doubt)))
    if table.cannot_tell:
        print(dim(f"Not all: {table.cannot_tell}"))
