"""Tables for pipes are what the package for tables draws."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from satview.cli.shared.table_output import table_lines

HEADS = ["Thread", "CPU time", "Runs"]
ROWS = [
    ["devb-eide 2", "1.5 s", "7"],
    ["größe", "254.8 µs", "1,536"],
    ["車載 1", "", "0"],
    ["e\N{COMBINING ACUTE ACCENT} 3", "2 ms", ""],
]
RIGHT = [False, True, True]


def test_by_hand() -> None:
    assert table_lines(["Name", "Count"], [["a", "10"], ["long one", "1,000"]], [False, True]) == [
        "Name      Count",
        "a            10",
        "long one  1,000",
    ]
    assert table_lines(["Name"], [], [False]) == ["Name"]


def test_as_the_package_draws_them() -> None:
    table = Table(box=None, pad_edge=False)
    for head, right in zip(HEADS, RIGHT, strict=True):
        table.add_column(head, no_wrap=True, justify="right" if right else "left")
    for row in ROWS:
        table.add_row(*map(Text, row))
    drawn = io.StringIO()
    Console(file=drawn, width=200).print(table)
    assert table_lines(HEADS, ROWS, RIGHT) == drawn.getvalue().splitlines()
