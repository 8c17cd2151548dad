"""No command, table or answer gives a time outside of the trace, on the captures of all workloads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from satview.analysis.why import why
from satview.answers.verdicts import find
from satview.capture.workloads import registry
from satview.cli.ask.why import as_record as step_record
from satview.formats.registry import open_trace
from satview.opened import with_answers
from satview.store.trace import Trace
from satview.tables.schema import SCHEMAS
from tests.helpers.commands import satview
from tests.helpers.extent import fewer

MOMENTS = ("at_ns", "start_ns", "end_ns", "since_ns", "until_ns", "time_ns")


def moments(record: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield every moment in plain values."""
    if isinstance(record, dict):
        for key, value in record.items():
            if key in MOMENTS and isinstance(value, int):  # below `known` are words
                yield f"{path}.{key}", value
            yield from moments(value, f"{path}.{key}")
    elif isinstance(record, list):
        for value in record:
            yield from moments(value, path)


def outside(trace: Trace, record: Any) -> list[tuple[str, int]]:
    end_ns = trace.clock.ns(trace.window.end) + 1
    return [(path, moment_ns) for path, moment_ns in moments(record) if not 0 <= moment_ns <= end_ns]


@pytest.fixture(scope="module", params=fewer(["convoy", *(n for n, _ in registry.names() if n != "convoy")], 2))
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "w.kev"
    length = ["-s", "1"] if request.param == "automotive" else []
    job = satview("tracelogger", "--workload", request.param, "-f", path, *length)
    assert job.returncode in (0, 1), job.stderr  # 1: some wait for ever, which is their lesson
    return path


@pytest.mark.thorough
def test_verdicts_and_reasons(capture: Path) -> None:
    trace = open_trace(capture)
    faults = []
    answer = find(trace)
    faults += outside(trace, answer.table.records())
    for verdict in answer.verdicts:
        faults += [(str(verdict.kind), one.start_cycles) for one in verdict.occurrences
                   if not trace.window.start <= one.start_cycles < one.end_cycles <= trace.window.end + 1]  # fmt: skip
        assert " -0." not in verdict.says
        assert "from -" not in verdict.says
    times = np.linspace(trace.window.start, trace.window.end - 1, 5).astype(np.int64).tolist()
    for thread in range(1, min(len(trace.threads), 40)):
        for at in times:
            for step in why(trace, thread, at):
                faults += outside(trace, step_record(trace, step))
    assert faults == []


@pytest.mark.thorough
def test_tables(capture: Path) -> None:
    opened = with_answers(open_trace(capture))
    end_ns = opened.clock.ns(opened.window.end) + 1
    faults = []
    for name in SCHEMAS:
        arrow = opened.table(name).arrow()
        for column in set(MOMENTS).intersection(arrow.column_names):
            span = pc.min_max(arrow[column]).as_py()
            if span["min"] is not None and not 0 <= span["min"] <= span["max"] <= end_ns:
                faults.append((name, column, span))
    assert faults == []
