"""Activities that two events of a thread enclose: user events, functions and kernel calls; in traces made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.analysis.activities import MOST_CALLS, Activities, activities
from satview.answers.late import late
from satview.events import wire
from satview.events.user_events import UserEvent
from satview.formats.axis import Member, trace_on_axis
from satview.store.arguments import describe_events
from satview.store.trace import Trace
from tests.helpers.kev import TraceBuilder

MUTEX_LOCK, MSG_RECEIVEV = 80, 14
FUNCTION_ENTER, FUNCTION_EXIT = (wire.code(wire.WireClass.SYSTEM, number) for number in (10, 11))


def one_thread() -> TraceBuilder:
    return TraceBuilder().time_event(0).process_name(1, 5, "bin/control").state("RUNNING", 10, 5, 1)


def user_events(*numbers: int, rounds: int = 4) -> TraceBuilder:
    """Return a thread that inserts events in this order, 100 after each other, and pauses for 1,000 after the last."""
    build, time = one_thread(), 1_000
    for _ in range(rounds):
        for number in numbers:
            build.event(wire.code(wire.WireClass.USER, number), time)
            time += 100
        time += 900
    return build


def figures(found: Activities) -> list[tuple[str, str, list[int]]]:
    response, of = found.instances.response_cycles, found.instances.activity
    return [(activity.name, activity.trigger, response[of == number].tolist())
            for number, activity in enumerate(found.activities)]  # fmt: skip


@pytest.mark.parametrize("numbers", [(7, 3), (7, 5, 3), (3, 5, 7)])
def test_user_events_that_take_turns_enclose_work(numbers: tuple[int, ...], tmp_path: Path) -> None:
    """The work is what lies between the pauses, also where the trace begins within it."""
    length = 100 * (len(numbers) - 1)
    name = f"control 1: user events {numbers[0]} to {numbers[-1]}"
    [learned] = figures(activities(user_events(*numbers).open(tmp_path)))
    assert learned == (name, "events", [length] * 4)
    cut = one_thread().event(wire.code(wire.WireClass.USER, numbers[-1]), 100)
    for number in range(3):
        for place, event in enumerate(numbers):
            cut.event(wire.code(wire.WireClass.USER, event), 1_000 * (number + 1) + 100 * place)
    (tmp_path / "cut").mkdir()
    [learned] = figures(activities(cut.open(tmp_path / "cut")))
    assert learned == (name, "events", [length] * 3)


def test_user_events_in_no_order_enclose_nothing(tmp_path: Path) -> None:
    assert not activities(user_events(1, 2, 1, 3).open(tmp_path)).activities
    (tmp_path / "same").mkdir()
    assert not activities(user_events(1, rounds=9).open(tmp_path / "same")).activities


def test_pairs_that_descriptions_name_are_learned_whatever_their_order(tmp_path: Path) -> None:
    """1 and 2 are called alike; 3 comes in between, and 4 sometimes: without names there would be no order."""
    trace = user_events(1, 3, 2, 1, 2, 4, rounds=2).open(tmp_path)
    assert not activities(trace).activities
    names = {1: "request begin", 2: "request end"}
    described = [UserEvent(number, name) for number, name in names.items()]
    describe_events(trace, {event.code: event for event in described})
    [learned] = figures(activities(trace))
    assert learned == ("control 1: request", "events", [200, 100, 200, 100])


def calling(folder: Path, kinds: int) -> Trace:
    """Return a thread that makes three calls of each of some functions; each takes 10 longer than the one before."""
    build, time = one_thread(), 1_000
    for _ in range(3):
        for number in range(kinds):
            build.event(FUNCTION_ENTER, time, (0x1000 + 4 * number, 0))
            build.event(FUNCTION_EXIT, time + 10 * (number + 1), (0x1000 + 4 * number, 0))
            time += 1_000
    return build.open(folder)


def test_of_functions_those_that_take_longest_are_learned_and_the_others_counted(tmp_path: Path) -> None:
    trace = calling(tmp_path, MOST_CALLS + 2)
    found = late(trace)
    assert len(found.learned.activities) == MOST_CALLS
    assert figures(found.learned)[0] == ("control 1: 0x1008()", "function", [30, 30, 30])
    assert "2 kernel calls or functions of threads are left out" in found.activities().cannot_tell


def test_of_each_file_on_an_axis_as_many_are_learned_as_of_the_file_alone(tmp_path: Path) -> None:
    both = trace_on_axis(tmp_path / "x.sataxis", [Member(name, calling(tmp_path, MOST_CALLS + 2)) for name in "ab"])
    found = late(both)
    threads = [both.thread_name(activity.thread) for activity in found.learned.activities]
    assert threads == ["a:control 1"] * MOST_CALLS + ["b:control 1"] * MOST_CALLS
    assert "4 kernel calls or functions of threads are left out" in found.activities().cannot_tell


def test_calls_are_learned_but_not_those_that_wait_for_work(tmp_path: Path) -> None:
    build = one_thread()
    for time in (1_000, 2_000, 3_000):
        build.call(MUTEX_LOCK, time).exit(MUTEX_LOCK, time + 50)
        build.call(MSG_RECEIVEV, time + 100).exit(MSG_RECEIVEV, time + 400)
    found = activities(build.open(tmp_path))
    assert figures(found) == [("control 1: SYNC_MUTEX_LOCK", "call", [50, 50, 50])]
    assert found.activities[0].deadline_cycles == -1
    assert found.named("control") == 0, "nothing else has the name"
