"""Threads that the budget of one adaptive partition keeps from running: one verdict for all of them."""

from __future__ import annotations

import pytest

from satview.analysis.verdicts.find import find_verdicts
from satview.events import wire
from tests.analysis.scenes import END, Scene, reported, thresholds, verdict

NAME = wire.code(wire.WireClass.SYSTEM, 3)
BUSY, DRIVER, LOADER, OTHER = (7, 1), (5, 1), (6, 1), (8, 1)
PARTITION = {BUSY: 0, DRIVER: 1, LOADER: 1, OTHER: 0}


def held_back(*spans, priority=20, is_named=True):
    """7.1 (priority 10, System) runs, and no CPU is idle; others are ready meanwhile: thread, from when to when."""
    scene = Scene().time_event(0)
    for number, name in enumerate(("System", "Drivers") if is_named else ()):
        scene.writer.text_event(NAME, 0, scene.at(1 + number), (number,), name.encode())

    def state(name, time, who):
        scene.state(name, time, *who, extra=(10 if who == BUSY else priority, 2, PARTITION[who], 0))

    events = [(10, "RUNNING", BUSY)]
    for who, start, end in spans:
        events += [
            (start, "READY", who),
            (end, "RUNNING", who),
            (end + 2, "NANOSLEEP", who),
            (end + 2, "RUNNING", BUSY),
        ]
        events += [(end, "READY", BUSY)]
    for time, name, who in sorted(events, key=lambda event: (event[0], event[1] == "RUNNING")):
        state(name, time, who)
    return scene.event(END, 2000)


SPANS = (DRIVER, 100, 500), (LOADER, 150, 600)


def test_threads_of_one_partition_are_one_verdict_the_longest_first(tmp_path):
    assert reported(held_back(*SPANS, (DRIVER, 1000, 1350)), "long-ready", tmp_path, least_ms=0.3) == [verdict(
        "2 threads of partition Drivers are ready and do not run for long: pid 6 1 450.0 µs from 0.000 150 000 s, "
        "pid 5 1 400.0 µs from 0.000 100 000 s; meanwhile ran pid 7 1 448.0 µs; it happens once more.",
        "info", (100, 600), threads=["pid 6 1", "pid 5 1", "pid 7 1"],
        events=[(100, "ready"), (150, "ready"), (500, "runs at last"), (600, "runs at last")],
        occurrences=[(100, 600, 100), (1000, 1350, 1000)],
    )]  # fmt: skip


def test_threads_that_starve_in_one_partition_are_one_verdict(tmp_path):
    [starve] = reported(held_back(*SPANS), "starvation", tmp_path, window_ms=0.4, ready_percent=100)
    assert starve["says"] == (
        "2 threads of partition Drivers are ready and get next to no CPU: pid 6 1 450.0 µs of 450.0 µs from "
        "0.000 150 000 s, pid 5 1 400.0 µs of 400.0 µs from 0.000 100 000 s; meanwhile ran pid 7 1 448.0 µs."
    )


def test_one_long_time_makes_all_of_it_a_warning(tmp_path):
    [ready] = reported(held_back(*SPANS), "long-ready", tmp_path, least_ms=0.3, serious_ms=0.45)
    assert (ready["severity"], ready["threads"][:2]) == ("warning", ["pid 6 1", "pid 5 1"])


@pytest.mark.parametrize(("spans", "options"), [
    (((DRIVER, 100, 500), (OTHER, 150, 600)), {}),  # of two partitions
    (((DRIVER, 100, 500), (LOADER, 600, 1000)), {}),  # one after the other
    (SPANS, {"priority": 10}),  # it is not the budget that keeps them from running
    (SPANS, {"is_named": False}),  # nothing shows partitions
])  # fmt: skip
def test_other_threads_keep_a_verdict_each(spans, options, tmp_path):
    trace = held_back(*spans, **options).open(tmp_path)
    found = find_verdicts(trace, thresholds("long-ready", least_ms=0.3), kinds=["long-ready"])
    assert len(found) == 2
    assert all("ready from" in one.says for one in found)
