"""What a capture says besides the file: the running table of `-vvv`, and calls whose `yield` was forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.formats.kev.reader import open_kev


@pytest.mark.thorough
def test_the_table_of_interrupts_iterations_and_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.kev"
    assert main(["tracelogger", "-vvv", "-n", "5", "-f", str(file)]) == 0
    rows = [line.removeprefix("tracelogger:").split() for line in capsys.readouterr().out.splitlines()]
    table = [row for row in rows if len(row) == 3 and row[0].isdigit()]
    assert ["interrupts", "iterations", "events"] in rows
    assert [int(row[1]) for row in table] == [1, 2, 3, 4, 5]
    assert all(int(row[0]) >= int(row[1]) for row in table), "a buffer is logged after its interrupt"
    trace = open_kev(file)
    starts = trace.buffers.slot[:5]
    counts = [
        np.count_nonzero((trace.events.slot >= a) & (trace.events.slot < b))
        for a, b in zip(starts, [*starts[1:], 1 << 31], strict=True)
    ]
    assert [int(row[2]) for row in table] == counts


@pytest.mark.thorough
def test_fewer_vs_print_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tracelogger", "-vv", "-n", "2", "-f", str(tmp_path / "x.kev")]) == 0
    assert "iterations" not in capsys.readouterr().out


def forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str) -> list[str]:
    """Return the lines of a control program of which the command says that a yield is missing."""
    program = (
        "from satview.capture.sim.calls import Sleep, TraceEvent\n"  # lines 1 to 4
        "from satview.capture import nto\n\ndef main():\n" + body + "    yield TraceEvent(nto._NTO_TRACE_START)\n"
    )
    (tmp_path / "ctl.py").write_text(program, encoding="utf-8")
    code = main(
        [
            "tracelogger",
            "-d1",
            "-n",
            "1",
            "--control",
            str(tmp_path / "ctl.py"),
            "--workload",
            "small-system",
            "-f",
            str(tmp_path / "x.kev"),
            "--duration",
            "0.1",
        ]
    )
    found = re.findall(r"ctl\.py:(\d+): made a TraceEvent\(\) and did not yield it", capsys.readouterr().err)
    assert code == (1 if found or "raise" in body else 0)
    return found


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)\n    TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)\n", ["6"]),
        (
            "    for _ in range(9):\n        TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)\n    yield Sleep(5)\n"
            "    call = TraceEvent(nto._NTO_TRACE_START)\n",
            ["6", "8"],
        ),
        (
            "    call = TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)\n    yield Sleep(5)\n    yield call\n    yield call\n",
            [],
        ),
        (
            "    calls = [TraceEvent(nto._NTO_TRACE_DELALLCLASSES), TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)]\n"
            "    for call in calls:\n        yield call\n",
            [],
        ),
        (
            "    calls = [TraceEvent(nto._NTO_TRACE_DELALLCLASSES), TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)]\n"
            "    yield calls[0]\n    raise SystemExit\n",
            None,
        ),
    ],
)
def test_a_forgotten_yield_is_reported_with_its_line(
    body: str, lines: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A program that an error ends is not blamed for what it did not come to.
    assert forgotten(tmp_path, capsys, body) == (lines or [])
