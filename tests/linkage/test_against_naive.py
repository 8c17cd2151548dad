"""The columns against a walk over the events, on traces with holes, unknown threads and unbalanced interrupts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.header import SlotWriter
from satview.linkage.calls import partner, partners
from satview.linkage.chain import ends_of, link_of, link_table
from satview.linkage.links import NO_EVENT, OPEN, LinkKind
from satview.linkage.waits import state_ends
from satview.store.trace import Trace
from tests.capture import mishaps
from tests.capture.made import FAST, damaged, traced
from tests.filters.made import START_CYCLES, make_trace
from tests.helpers.extent import usually
from tests.linkage.naive import Naive, as_dict

RUNNING, RECEIVE = wire.code(4, 1), wire.code(4, 5)
BUFFER, TIME = wire.CONTROL_BUFFER, wire.CONTROL_TIME
CALLS = [n | form | width for n in (11, 19, 19) for form in (0, 0, 0x80, 0x80, 0x100) for width in (0, wire.KER_64BIT)]
INTERRUPTS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7)
MESSAGES = {1: (0x10001, 5), 2: (0x10001, 6), 3: (0xFFFFFFFF, 0xFFFFFFFF), 4: (0xFFFFFFFF, 5)}  # 3 failed
Happened = list[tuple[int, int, tuple[str, int, int]]]


def random_events(seed: int) -> Happened:
    """Return events of two CPUs; in many of these traces no thread, no interrupt, or no loss is reported."""
    rng = random.Random(seed)
    kinds = {
        "state": rng.choice((0.0, 0.0, 0.05, 0.3)), "call": rng.choice((0.2, 1.0)),
        "interrupt": rng.choice((0.0, 0.3, 1.0)), "buffer": rng.choice((0.0, 0.05)), "message": rng.choice((0.0, 0.5)),
    }  # fmt: skip
    happened: Happened = []
    for what in rng.choices([*kinds], [*kinds.values()], k=rng.randrange(70)):
        code = {"state": (RUNNING, RUNNING, RECEIVE), "call": CALLS, "interrupt": INTERRUPTS, "buffer": (0,),
                "message": (0, 2)}[what]  # fmt: skip
        argument = rng.choice((1, 1, 3)) if what == "buffer" else rng.randint(1, 4 if what == "message" else 3)
        happened.append((rng.choice((0, 1, 3)), int(rng.random() < 0.3), (what, rng.choice(code), argument)))
    return happened


def trace_of(happened: Happened, release: Release) -> Trace:
    """Return a trace of (time since the event before, CPU, (what, code, argument)); buffers may be lost."""
    writer, now, sequence = SlotWriter("little"), START_CYCLES, [1, 1]

    def buffer(cpu: int) -> None:
        writer.event(BUFFER, cpu, now, (sequence[cpu], 0))
        writer.event(TIME, cpu, now, (now >> 32, now & 0xFFFFFFFF))

    for cpu in (0, 1) if release == Release.QNX_8 else (0,):
        buffer(cpu)
    for after, cpu, (what, code, argument) in happened:
        now += after
        if what == "state":
            writer.event(code, cpu, now, (5, argument))
        elif what == "buffer":
            mine = cpu if release == Release.QNX_8 else 0
            sequence[mine] += argument
            buffer(mine)
        elif what == "message":
            writer.event(wire.code(7, code), cpu, now, MESSAGES[argument])
        else:
            writer.event(wire.code(2 if what == "call" else 3, code), cpu, now, (0, 0))
    return make_trace(writer, release)


def check(trace: Trace) -> None:
    """Compare every kind of links, each way of looking them up."""
    naive = Naive(trace)
    interrupts, handlers, dispatches = naive.interrupts()
    requested = {
        LinkKind.CALL: naive.calls(), LinkKind.INTERRUPT: interrupts, LinkKind.HANDLER: handlers,
        LinkKind.DISPATCH: dispatches, LinkKind.STATE: naive.states(), LinkKind.MESSAGE: naive.messages(),
    }  # fmt: skip
    every = np.arange(len(trace.events))
    for kind, expected in requested.items():
        table = link_table(trace, kind)
        assert as_dict(table.from_row, table.to_row) == expected, kind
        ends = ends_of(trace, kind, every)
        assert as_dict(every[ends != NO_EVENT], ends[ends != NO_EVENT]) == expected, kind
    pairs = {**requested[LinkKind.CALL], **interrupts, **handlers}
    other = {**pairs, **{last: first for first, last in pairs.items()}}
    assert [other.get(row, NO_EVENT) for row in range(len(every))] == partners(trace).tolist()
    assert [requested[LinkKind.STATE].get(row, NO_EVENT) for row in range(len(every))] == state_ends(trace).tolist()
    for row in every.tolist():
        link, mine = link_of(trace, row), partner(trace, row)
        assert mine == other.get(row)
        if link is None:
            assert mine is None
            assert row not in requested[LinkKind.STATE]
        else:
            assert row in (link.from_row, link.to_row)
            assert requested[link.kind][link.from_row] == link.to_row


@pytest.mark.parametrize("release", [Release.QNX_7, Release.QNX_8], ids=str)
@pytest.mark.parametrize("some", range(8))
def test_random_events(some, release):
    for seed in range(some * 40, some * 40 + usually(3, complete=40, thorough=15)):
        check(trace_of(random_events(seed), release))


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_8], ids=str)
@pytest.mark.parametrize("ring", [None, False, True], ids=["whole", "loss", "ring"])
def test_a_system_in_which_everything_goes_wrong(release, ring, tmp_path):
    setup, ms = mishaps.setup, mishaps.DURATION_MS
    if ring is None:
        trace = traced(setup, ms, tmp_path, release, 1, 5, FAST).trace
        assert len(link_table(trace, LinkKind.CALL)) > 40
        assert np.count_nonzero(link_table(trace, LinkKind.STATE).to_row == OPEN) > 3
    else:
        trace = damaged(setup, ms, tmp_path, release, 1, ring=ring, wide=False).trace
    check(trace)
