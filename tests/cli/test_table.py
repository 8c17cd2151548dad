"""Tables for pipes are what the package for tables draws."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from satview.answers.table import Column, Kind, Question
from satview.answers.table import Table as Answer
from satview.cli.shared.table_output import print_table, table_lines

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


def test_an_unknown_share_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    columns = Column("cpu", Kind.CPU, "its number", "CPU"), Column("load", Kind.SHARE, "how busy it is", "Load")
    question = Question("load", "Load", "How busy is each CPU?", columns, "", "")
    table = Answer(question, None, {"cpu": np.arange(3), "load": np.array([0.25, np.nan, -1])}, place="")
    print_table(table, "json", "load", more={"peak": float("inf")})
    printed = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [row["load"] for row in printed["load"]] == [0.25, None, None]
    assert printed["peak"] is None
