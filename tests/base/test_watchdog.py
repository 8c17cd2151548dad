from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from satview.base.threads import Stuck, Watchdog

LIMIT_S = 0.1


def spin(seconds: float) -> int:
    """Run Python code for a time; it can be ended between any two steps."""
    end_s, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        steps += 1
    return steps


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "satview-watchdog"]


def until(condition, seconds=20.0) -> bool:
    end_s = time.monotonic() + seconds
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.005)
    return bool(condition())


def test_a_loop_without_an_end_is_ended():
    with pytest.raises(Stuck, match="too long"), Watchdog(LIMIT_S):
        spin(60)


@pytest.mark.thorough
def test_a_loop_that_catches_it_is_ended_the_next_time():
    caught = []

    def stubborn() -> None:
        try:
            spin(60)
        except Stuck as stuck:
            caught.append(stuck)
        spin(60)

    with pytest.raises(Stuck), Watchdog(LIMIT_S):
        stubborn()
    assert len(caught) == 1


@pytest.mark.thorough
def test_many_short_blocks_are_not_one_long_one():
    dog = Watchdog(LIMIT_S)
    for _ in range(40):
        with dog:
            spin(0.01)


@pytest.mark.thorough
def test_a_block_that_gets_on_is_left_alone():
    with Watchdog(LIMIT_S, time.monotonic_ns):
        spin(5 * LIMIT_S)


@pytest.mark.thorough
def test_a_block_that_waits_for_others_is_left_alone():
    waits = [5 * LIMIT_S, 60]

    def wait_and_hang() -> None:
        while waits:
            spin(waits[0])
            waits.pop(0)

    with pytest.raises(Stuck), Watchdog(LIMIT_S, lambda: None if len(waits) == 2 else 0):
        wait_and_hang()
    assert waits == [60]


@pytest.mark.thorough
def test_what_comes_after_the_block_is_not_hit():
    """The exception is under way while the block sleeps in the operating system and ends right after."""
    dog = Watchdog(LIMIT_S)
    try:
        with dog:
            until(lambda: dog._has_raised)
    except Stuck:
        pass
    assert spin(3 * LIMIT_S) > 0


@pytest.mark.thorough
def test_the_thread_ends_when_nothing_is_watched():
    assert until(lambda: not watchers()), "those of other tests"
    dog = Watchdog(LIMIT_S)
    with dog:
        assert len(watchers()) == 1
    assert until(lambda: not watchers())
    with pytest.raises(Stuck), dog:
        spin(60)


def test_the_thread_keeps_nothing_alive():
    class Machine:
        steps = 0

    machine = Machine()
    gone = weakref.ref(machine)
    with Watchdog(60.0, lambda machine=machine: machine.steps):
        pass
    del machine
    gc.collect()
    assert until(lambda: gone() is None)
