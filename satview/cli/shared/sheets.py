"""Sheets on standard output: as CSV, or as tables for people."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheet import Column, Kind, Sheet
from satview.analysis.times.basis import sign
from satview.base.safe_text import csv_text, visible_line
from satview.cli.shared.bold import bold, dim
from satview.cli.shared.progress import working
from satview.cli.shared.table import table_lines


def print_csv(sheet: Sheet, order: NDArray[np.intp] | None = None) -> None:
    """Print one sheet with its keys as the first line.

    Args:
        sheet: The table.
        order: Its rows from top to bottom; None = as they come.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(column.key for column in sheet.columns)
    for record in sheet.records(order):
        writer.writerow(csv_text(value) if isinstance(value, str) else value for value in record.values())


def print_tables(head: Sequence[str], sheets: Sequence[Sheet], orders: Sequence[NDArray[np.intp]]) -> None:
    """Print sheets below some lines. Columns that are empty in every row are left out.

    A terminal gets tables that fit its width, everything else a line per row, however long.

    Args:
        head: Lines above the first table.
        sheets: The tables.
        orders: Their rows from top to bottom.
    """
    for line in head:
        print(visible_line(line))
    for sheet, order in zip(sheets, orders, strict=True):
        print(f"\n{bold(sheet.title)}" + (f"  {visible_line(sheet.note)}" if sheet.note else ""))
        if not len(sheet):
            print(sheet.empty)
            continue
        rows = order.tolist()
        columns = [column for column in sheet.columns if any(map(column.text, rows))]
        heads = [visible_line(column.title) for column in columns]
        texts = [[visible_line(column.marked(row)) for column in columns] for row in rows]
        is_right = [column.kind is not Kind.TEXT for column in columns]
        print_rows(heads, texts, is_right)
        for reason, titles in _doubts(columns).items():
            print(dim(visible_line(f"{reason} ({titles})")))


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> None:
    """Print rows of texts below a heading: as wide as a terminal, to files and pipes a line per row, however long."""
    with working(f"printing {len(rows):,} rows"):  # nothing is printed before all widths are known
        text = _fitted(heads, rows, is_right) if sys.stdout.isatty() else "\n".join(table_lines(heads, rows, is_right))
    print(text)


def _fitted(heads: Sequence[str], texts: Sequence[Sequence[str]], is_right: Sequence[bool]) -> str:
    """Return a table that fits the terminal; what has no room is cut."""
    from rich.table import Table  # brought in here: nothing else needs it

    from satview.cli.shared.console import cell, make_console

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for head, right in zip(heads, is_right, strict=True):
        shown.add_column(cell(head), no_wrap=True, justify="right" if right else "left")
    for row in texts:
        shown.add_row(*map(cell, row))
    console = make_console()
    with console.capture() as captured:
        console.print(shown)
    return captured.get().removesuffix("\n")


def _doubts(columns: Sequence[Column]) -> dict[str, str]:
    """Return by mark and reason the names of the columns that are not exact."""
    found: dict[str, list[str]] = {}
    for column in columns:
        if column.says_of_trust:
            found.setdefault(f"{sign(column.trust.mark)} {column.says_of_trust}", []).append(column.title)
    return {reason: ", ".join(titles) for reason, titles in found.items()}
