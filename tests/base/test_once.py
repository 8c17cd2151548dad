"""Several threads that request the same: one makes it, the others wait."""

from __future__ import annotations

import threading
import time

import pytest

from satview.base.threads import Claims, Once


def run_at_once(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_value_that_was_forgotten_is_made_again():
    once, made = Once(), []
    for _ in range(2):
        once.get("name", lambda: made.append("a"))
    once.forget("name")
    assert "name" not in once
    once.get("name", lambda: made.append("b"))
    once.forget("no such name")
    assert made == ["a", "b"]


def test_a_value_is_made_once_whoever_requests_it():
    once, made, found = Once(), [], []

    def make():
        time.sleep(0.02)
        made.append("a")
        return object()

    run_at_once(4, lambda _: found.append(once.get("name", make)))
    assert made == ["a"]
    assert len(set(map(id, found))) == 1
    assert "name" in once
    assert "other" not in once


def test_what_failed_is_tried_again():
    once = Once()
    with pytest.raises(ValueError, match="no"):
        once.get("name", lambda: int("no"))
    assert once.get("name", lambda: 3) == 3


def test_values_of_different_names_are_made_at_the_same_time_and_within_each_other():
    once, both = Once(), threading.Barrier(2, timeout=10)

    def work(number):
        once.get(str(number), lambda: once.get(f"inner {number}", both.wait))

    run_at_once(2, work)  # the barrier would break if one waited for the other
    assert not both.broken


def test_each_number_is_claimed_by_one_thread():
    claims, taken = Claims(), []
    run_at_once(4, lambda number: taken.extend(claims.take(range(number, 10))))
    assert sorted(taken) == list(range(10))
    claims.leave([3])
    assert claims.take([2, 3, 4]) == [3]


def test_waiting_ends_when_numbers_are_left():
    claims = Claims()
    claims.take([1])
    later = threading.Timer(0.01, claims.leave, [[1]])
    later.start()
    begun = time.monotonic()
    claims.wait(30)
    assert time.monotonic() - begun < 20
    assert claims.take([1]) == [1]
