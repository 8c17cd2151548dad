"""Links against what really happened: every workload, release and form of events, whole and with lost buffers."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from satview.capture.kernel import Kernel
from satview.capture.sim.truth import ThreadId
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.links.table import Certainty, LinkKind
from satview.links.trace_links import links
from tests.capture import mishaps
from tests.capture.made import ALL, FAST, WIDE, Traced, damaged, traced

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
NAMES = [*(name for name, _ in registry.names()), "mishaps"]
CASES = [pytest.param((name, release, form, loss), id=f"{name}-{release}-{form}-{loss}")
         for name in NAMES for release in RELEASES for form in ("fast", "wide") for loss in ("whole", "loss")]


def workload(name: str) -> tuple[Callable[[Kernel], None], float, int]:
    """Return the set-up of a workload, for how many milliseconds it is traced, and on how many CPUs."""
    if name == "mishaps":
        return mishaps.setup, mishaps.DURATION_MS, 1
    found = registry.find(name)
    return found.setup, 20 if name == "automotive" else min(found.duration_ns / 1e6, 50), found.cpus


@dataclass
class Case:
    """A capture, and the truth about it by the rows of its events."""

    made: Traced
    is_whole: bool

    @cached_property
    def row_at(self) -> dict[int, int]:
        """Time of an event behind the opening dump to its row; no two have one time, those of class CONTROL apart."""
        events = self.made.trace.events
        rows = np.flatnonzero((events.code >> 10 != 1) & (events.time_cycles > self.made.since)).tolist()
        return dict(zip(events.time_cycles[rows].tolist(), rows, strict=True))

    @cached_property
    def rows(self) -> set[int]:
        """Rows of the events behind the opening dump."""
        return set(self.row_at.values())

    def pairs(self, times: list[tuple[int, int]]) -> dict[int, int]:
        """Return {later row: earlier row} of pairs of moments of which the trace has both."""
        return {self.row_at[last]: self.row_at[first] for first, last in times
                if first in self.row_at and last in self.row_at}

    @cached_property
    def changes(self) -> dict[ThreadId, list[int]]:
        """When each thread changed its state."""
        found = defaultdict(list)
        for change in self.made.truth.states:
            found[change.thread].append(change.time)
        return found

    @cached_property
    def wakes(self) -> dict[int, tuple[int, str]]:
        """Return {row of the event that ends a wait: (row of its cause or -1, state)}."""
        found = {}
        states = {(change.thread, change.time): change.state for change in self.made.truth.states}
        for wait in self.made.truth.waits:
            changes = self.changes[wait.thread]
            place = bisect_left(changes, wait.end)
            if wait.end < 0 or place == len(changes) or changes[place] not in self.row_at:
                continue
            # No event tells that a new thread has set itself up.
            if states[wait.thread, changes[place]] in ("READY", "RUNNING") and wait.state != "WAITTHREAD":
                found[self.row_at[changes[place]]] = self.row_at.get(wait.cause, -1), wait.state
        return found


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name, release, form, loss = request.param
    setup, ms, cpus = workload(name)
    folder = tmp_path_factory.mktemp("links")
    if loss == "loss":
        made = damaged(setup, ms, folder, release, cpus, ring=False, wide=form == "wide", slots=60,
                       skew_ns=0, classes=ALL)
    else:
        made = traced(setup, ms, folder, release, cpus, 5, WIDE if form == "wide" else FAST, skew_ns=0)
    return Case(made, loss == "whole")


def check(case: Case, kind: LinkKind, true: dict[int, int], least: float) -> None:
    """Check that no link is wrong, guesses apart, and that so many of those that are true are found."""
    table = links(case.made.trace, kind)
    assert np.all(table.from_row < table.to_row)
    found = {link.to_row: link.from_row for link in table
             if link.certainty is not Certainty.GUESS and link.from_row in case.rows}
    wrong = {last: first for last, first in found.items() if true.get(last) != first}
    assert not wrong, f"{len(wrong)} of {len(found)} are wrong"
    if case.is_whole:
        assert len(found) >= least * len(true)


def test_messages(case: Case) -> None:
    messages = case.made.truth.messages
    check(case, LinkKind.MESSAGE, case.pairs([(m.sent, m.received) for m in messages]), 1)


def test_replies(case: Case) -> None:
    messages = case.made.truth.messages
    check(case, LinkKind.REPLY, case.pairs([(m.received, m.replied) for m in messages if m.received >= 0]), 1)


def test_round_trips(case: Case) -> None:
    calls = defaultdict(list)
    for call in case.made.truth.calls:
        calls[call.thread].append((call.enter, call.exit))
    ends = []
    for message in case.made.truth.messages:
        mine = calls[message.client]
        ends.append((message.sent, mine[bisect_left(mine, (message.sent, 0)) - 1][1]))
    check(case, LinkKind.ROUND_TRIP, case.pairs(ends), 1)


def test_pulses(case: Case) -> None:
    pulses = case.made.truth.pulses
    check(case, LinkKind.PULSE, case.pairs([(p.sent, p.received) for p in pulses]), 0.8)


def test_wake_ups(case: Case) -> None:
    true = {row: cause for row, (cause, state) in case.wakes.items()}
    check(case, LinkKind.WAKE_UP, true, 0.9)
