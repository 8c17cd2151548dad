"""Slow against fast instances of one trace and of several, in traces that can be checked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.answers.late import late
from satview.answers.late_comparison import thinned
from satview.base.errors import UsageError
from satview.events import wire
from satview.store.trace import Trace
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop

MUTEX_LOCK = 80
PAGE_FAULT = wire.code(wire.WireClass.SYSTEM, 17)


def loop(folder: Path, slow: tuple[int, ...]) -> Trace:
    folder.mkdir()
    return rounds_of_a_loop(40, slow).open(folder)


def moving(folder: Path) -> Trace:
    """Return 40 rounds of 1,000; every tenth takes 3,000, of which it locks a mutex, twice, and ends on another CPU.

    The round after a slow one moves back: 2 of the 20 that are compared. One of the fast ones has a page fault.
    """
    build = TraceBuilder(cpus=2).time_event(0).time_event(0, 1).process_name(1, 5, "bin/control")
    build.state("RUNNING", 10, 5, 1).state("NANOSLEEP", 20, 5, 1)
    for number in range(40):
        woken = 10_000 * (number + 1)
        build.state("RUNNING", woken, 5, 1)
        if number % 10 == 9:
            for time in (woken + 100, woken + 400):
                build.call(MUTEX_LOCK, time).exit(MUTEX_LOCK, time + 200)
            build.state("READY", woken + 1_000, 5, 1).state("RUNNING", woken + 1_000, 5, 1, cpu=1)
            build.state("NANOSLEEP", woken + 3_000, 5, 1, cpu=1)
        else:
            if number == 5:
                build.event(PAGE_FAULT, woken + 500)
            build.state("NANOSLEEP", woken + 1_000, 5, 1)
    return build.event(wire.code(6, 1), 420_000).open(folder)


def test_what_happens_more_often_in_slow_rounds(tmp_path: Path) -> None:
    found = late(moving(tmp_path))
    causes = found.compared(found.found.named("control 1")).causes.records()
    assert [(row["cause"], row["what"], row["slow"], row["fast"], row["in_slow"], row["in_fast"], row["sure"])
            for row in causes] == [("call", "SYNC_MUTEX_LOCK", 2, 0, 4, 0, "sure"),
                                   ("CPU moved", "", 1, 0.1, 4, 2, "likely")]  # fmt: skip


def test_two_traces_are_compared_by_name(tmp_path: Path) -> None:
    """In one trace 10 of 40 rounds wait for 4,000 more, in the other none: 1,000 on average."""
    slow = late(loop(tmp_path / "slow", tuple(range(0, 40, 4))))
    fast = late(loop(tmp_path / "fast", ()))
    (row,) = slow.compared(0, against=[fast]).times.records()
    assert (row["part"], row["whom"], row["explains_ns"], row["slow_ns"]) == ("preempted", "hog 1", 1_000, 1_100)
    assert (row["fast_ns"], row["in_slow"], row["in_fast"], row["share"], row["sure"]) == (100, 40, 40, 1.0, "likely")
    assert not len(fast.compared(0, against=[slow]).times)


def test_the_slowest_of_several_traces_are_compared_with_the_faster_half_of_all(tmp_path: Path) -> None:
    """Of 120 rounds the slowest 12 are the slow ones of the second trace, and 2 others: 12 of 14."""
    traces = [late(loop(tmp_path / str(number), slow)) for number, slow in enumerate([(), tuple(range(12)), ()])]
    (row,) = traces[0].compared(0, others=traces[1:]).times.records()
    assert (row["whom"], row["explains_ns"], row["in_slow"], row["in_fast"], row["sure"]) == (
        "hog 1",
        4_000,
        12,
        60,
        "sure",
    )


def test_a_trace_without_the_activity_is_refused(tmp_path: Path) -> None:
    found, other = late(loop(tmp_path / "a", ())), late(TraceBuilder().time_event(0).open(tmp_path))
    with pytest.raises(UsageError, match="'control 1' names no activity"):
        found.compared(0, against=[other])


def test_instances_are_chosen_evenly() -> None:
    assert thinned(np.arange(9), 3).tolist() == [0, 4, 8]
    assert thinned(np.arange(3), 9).tolist() == [0, 1, 2]


def test_the_command_compares_with_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(loop(tmp_path / name, slow).path) for name, slow in (("a", (1, 2, 3)), ("b", ()))]
    assert main(["late", paths[0], "--against", paths[1], "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["slow_against_fast"]
    assert (row["whom"], row["explains_ns"]) == ("hog 1", 300)
    assert main(["late", paths[0], "--with", *[paths[1]] * 65]) == 2
    assert "65 traces are too many to compare at once; 64 at most" in capsys.readouterr().err
