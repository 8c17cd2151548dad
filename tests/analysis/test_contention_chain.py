"""What a verdict on contention says of the wait of who suffers: since when, and when the holder took the mutex."""

from __future__ import annotations

import numpy as np
import pytest

from satview.answers.verdicts import undecided_table, verdict_table
from satview.session.highlight import of_row
from tests.analysis.scenes import CALLS, END, LOCK, UNLOCK, Scene, found, reported

LIMITS = {"window_ms": 0.1, "waited_percent": 30, "least_count": 1}


def taken(*, waits, gives=True):
    """5.9 asks for a mutex at 20 and has it at 21, or waits for it from 22 to 41; 5.1 asks for it at 60.

    5.1 waits from 62 to 100, when 5.9 gives it up; then 5.1 sleeps from 120 to 400 and ends.
    """
    scene = Scene().time_event(0).state("READY", 1, 5, 1).state("READY", 2, 5, 2).state("RUNNING", 3, 5, 9)
    scene.call(LOCK, 20, (0x1000, 2 << 16 | 5))
    if waits:
        scene.swap(22, (5, 9), "MUTEX", (5, 2)).call(UNLOCK, 40, (0x1000, 0)).state("READY", 41, 5, 9)
        scene.exit(UNLOCK, 42).swap(45, (5, 2), "NANOSLEEP", (5, 9)).exit(LOCK, 46)
    else:
        scene.exit(LOCK, 21)
    scene.swap(55, (5, 9), "READY", (5, 1)).call(LOCK, 60, (0x1000, 9 << 16 | 5)).swap(62, (5, 1), "MUTEX", (5, 9))
    if gives:
        scene.call(UNLOCK, 98, (0x1000, 0))
    scene.state("READY", 100, 5, 1).exit(UNLOCK if gives else CALLS["NOP"], 101)
    scene.swap(110, (5, 9), "READY", (5, 1)).exit(LOCK, 111).swap(120, (5, 1), "NANOSLEEP", (5, 9))
    return scene.state("READY", 400, 5, 1).event(END, 500)


@pytest.mark.parametrize(("waits", "took", "before"), [(True, 41, 19), (False, 21, 39)])
def test_the_holder_took_it_when_its_own_wait_or_call_ended(waits, took, before, tmp_path):
    verdicts = reported(taken(waits=waits), "lock-contention", tmp_path, **LIMITS)
    assert verdicts[-1]["says"].endswith(
        "; pid 5 1 waits most, longest 38.00 µs from 0.000 062 000 s; pid 5 9 took it at 0.000 "
        f"0{took} 000 s, {before}.00 µs before pid 5 1 asked for it."
    )
    chain = [(took, "takes it"), (60, "asks"), (62, "waits"), (100, "goes on")]
    assert [event for event in verdicts[-1]["events"] if event in chain] == chain


def test_nothing_is_said_of_a_mutex_that_was_not_taken_in_the_kernel(tmp_path):
    """5.9 may have given it up, and taken it again, without the kernel: no event shows that it gives it up."""
    says = reported(taken(waits=False, gives=False), "lock-contention", tmp_path, **LIMITS)[-1]["says"]
    assert says.endswith("while pid 5 9 hold it in turn; pid 5 1 waits most, longest 38.00 µs from 0.000 062 000 s.")


def test_the_window_and_the_details_begin_with_the_wait_for_the_mutex(tmp_path):
    """In the time that is drawn, 62 to 162, 5.1 waits for the mutex for 38, and sleeps for 42."""
    trace, verdicts = found(taken(waits=False), "lock-contention", tmp_path, **LIMITS)
    assert [
        (cycles - trace.clock.start_cycles) / 1000 for cycles in (verdicts[0].start_cycles, verdicts[0].end_cycles)
    ] == [62, 162]
    table = verdict_table(trace, verdicts, undecided_table(trace, []))
    wait = int(np.flatnonzero(trace.events.time_cycles == trace.clock.start_cycles + 62_000)[0])
    assert trace.spec(wait).name == "THMUTEX"
    assert table.event(0) == wait
    shown = of_row(table, 0)
    assert (shown.event, shown.legs[0].from_row, shown.waits[0].row) == (wait, wait, wait)
