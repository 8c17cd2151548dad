"""Sheets on standard output: as CSV, or as tables for people."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Column, Kind, Sheet
from satview.analysis.trust import sign
from satview.base.safe_text import csv_text


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

    Args:
        head: Lines above the first table.
        sheets: The tables.
        orders: Their rows from top to bottom.
    """
    # Brought in here: CSV, JSON and error paths need no table.
    from rich.table import Table

    from satview.cli._console import cell, make_console

    console = make_console(400)
    for line in head:
        console.print(cell(line))
    for sheet, order in zip(sheets, orders, strict=True):
        console.print(f"\n[bold]{sheet.title}[/bold]" + (f"  {cell(sheet.note)}" if sheet.note else ""))
        if not len(sheet):
            console.print(sheet.empty)
            continue
        columns = [column for column in sheet.columns if any(column.text(row) for row in order.tolist())]
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            shown.add_column(cell(column.title), no_wrap=True, justify="left" if column.kind is Kind.TEXT else "right")
        for row in order.tolist():
            shown.add_row(*(cell(column.marked(row)) for column in columns))
        console.print(shown)
        for reason, titles in _doubts(columns).items():
            console.print(f"[dim]{cell(f'{reason} ({titles})')}[/dim]")


def _doubts(columns: Sequence[Column]) -> dict[str, str]:
    """Return by mark and reason the names of the columns that are not exact."""
    found: dict[str, list[str]] = {}
    for column in columns:
        if column.says_of_trust:
            found.setdefault(f"{sign(column.trust.mark)} {column.says_of_trust}", []).append(column.title)
    return {reason: ", ".join(titles) for reason, titles in found.items()}
