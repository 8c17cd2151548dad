"""Targets of answers: verdicts and chains of causes of damaged traces, and files of thresholds."""

from __future__ import annotations

import json
import random
from pathlib import Path

from satview.analysis.statistics import Statistics
from satview.analysis.verdicts.rule import read_thresholds, thresholds_text
from satview.analysis.why import MOST_STEPS, why
from satview.answers.doctor import doctor, grouped
from satview.answers.statistics import TABLES
from satview.answers.verdicts import find
from satview.base.errors import TraceFormatError, UsageError
from satview.formats.kev.reader import open_kev
from satview.session.event_text import argument_names
from tests.fuzz.mutation import mutate, mutate_lines

_QUESTIONS = 4
_TOKENS = (b"[", b"]", b"=", b"[deadlock]", b"[leak]", b"least_ms", b"enabled", b"true", b"nan", b"-1", b"1e400", b'"')


def run_verdicts(data: bytes, folder: Path) -> None:
    """Look for everything in a trace and query why of some of its threads."""
    path = folder / "a.kev"
    path.write_bytes(data)
    try:
        trace = open_kev(path)
    except TraceFormatError:
        return
    answer = find(trace)
    found = answer.verdicts
    json.dumps([answer.table.document("verdicts"), answer.undecided.document("undecided")])
    parts = [answer.table.children(row) for row in range(len(answer.table))]
    assert all(answer.table.at(rows).text(number, "says") is not None for rows in parts for number in range(len(rows)))
    json.dumps([table.document("rows") for table in (doctor(trace), grouped(doctor(trace)))])
    if len(trace.events):
        statistics = Statistics(trace)
        json.dumps([make(statistics, None).document("rows") for make in TABLES.values()])
        argument_names(trace, len(data) % len(trace.events))
    for verdict in found:
        assert verdict.start_cycles < verdict.end_cycles
        assert all(0 <= row < len(trace.events) for row in verdict.evidence)
        assert all(0 < thread < len(trace.threads) for thread in verdict.threads), verdict
        assert verdict.says.endswith(".")
    rng = random.Random(len(data))
    for _ in range(_QUESTIONS if len(trace.threads) > 1 else 0):
        at = rng.randrange(trace.window.start, trace.window.end)
        steps = why(trace, rng.randrange(1, len(trace.threads)), at)
        assert 1 <= len(steps) <= MOST_STEPS
        assert all(step.since_cycles <= step.at_cycles < step.until_cycles for step in steps)


def thresholds(rng: random.Random) -> bytes:
    """Return a file of thresholds, mostly damaged."""
    text = thresholds_text().encode()
    lines = text.splitlines(keepends=True)
    part = b"".join(line for line in lines if rng.random() < rng.choice((0.3, 1)))
    if rng.random() < 0.2:
        return part
    return mutate_lines(rng, part, _TOKENS) if rng.random() < 0.6 else mutate(rng, part, _TOKENS)


def run_thresholds(data: bytes, folder: Path) -> None:
    """Read a file of thresholds: it is taken whole, or refused by name."""
    path = folder / "mine.toml"
    path.write_bytes(data)
    try:
        found = read_thresholds(path)
    except UsageError as error:
        assert str(error).startswith("mine.toml")
        return
    assert all(value >= 0 for table in found.values.values() for value in table.values())
