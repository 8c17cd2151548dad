"""Locks that nobody waited for: where the steps of other rounds show them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from satview.whatif.locks import with_unseen_locks
from satview.whatif.program import programs_of
from satview.whatif.steps import Lock, Programs, Sleep, Step, ThreadProgram, Unlock, Work
from tests.whatif.test_fit import captured


@pytest.fixture
def empty(tmp_path: Path) -> Programs:
    """Return programs without a step."""
    programs = programs_of(captured(tmp_path, "two-threads"))
    return dataclasses.replace(programs, threads=[], messages=[], streams=[])


def after(empty: Programs, steps: list[Step]) -> list[Step]:
    """Return the steps of a thread with the locks that it does not show."""
    thread = ThreadProgram(1, 2, 1, "usr/bin/writer", "", "writer 1", 10, 2, steps)
    with_unseen_locks(dataclasses.replace(empty, threads=[thread]))
    return thread.steps


def test_a_lock_seen_twice_is_in_every_round(empty: Programs) -> None:
    """In two of three rounds somebody waited: it is locked after 100 ns and unlocked 50 ns before the end."""
    seen = [Sleep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(50)]
    steps = after(empty, [*seen, *seen, Sleep(9), Work(1000), Sleep(9)])
    assert steps == [*seen, *seen, Sleep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(600), Sleep(9)]


def test_a_lock_seen_once_is_in_no_other_round(empty: Programs) -> None:
    """One round may be an exception."""
    seen = [Sleep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(50)]
    assert after(empty, [*seen, Sleep(9), Work(450)]) == [*seen, Sleep(9), Work(450)]


def test_an_unlock_without_a_lock_has_it_where_the_round_begins(empty: Programs) -> None:
    """Others waited, so that the unlock shows; the lock was free and does not."""
    steps = after(empty, [Sleep(9), Work(400), Unlock(7), Work(50)])
    assert steps == [Sleep(9), Lock(7), Work(400), Unlock(7), Work(50)]


def test_a_lock_without_an_unlock_is_given_up_before_the_next_wait(empty: Programs) -> None:
    steps = after(empty, [Sleep(9), Work(100), Lock(7), Work(300), Sleep(9)])
    assert steps == [Sleep(9), Work(100), Lock(7), Work(300), Unlock(7), Sleep(9)]


def test_a_lock_that_is_held_over_a_wait_stays_held(empty: Programs) -> None:
    """Twice it is locked before a sleep and unlocked behind it."""
    steps: list[Step] = [Sleep(9), Lock(7), Work(5), Sleep(2), Work(6), Unlock(7), Work(1)]
    assert after(empty, [*steps, *steps]) == [*steps, *steps]
