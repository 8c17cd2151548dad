"""Locks that nobody waited for: where the steps of other rounds show them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from satview.capture.buffers import LoggerOptions
from satview.capture.kernel import Kernel
from satview.capture.run import Capture, run
from satview.capture.sim.calls import (
    BarrierWait,
    Compute,
    ThreadCreate,
)
from satview.capture.sim.threads import Barrier, Policy, Program
from satview.capture.workloads.parts import MS
from satview.capture.workloads.registry import Workload
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.linkage.waits import entries_of
from satview.whatif.locks import with_unseen_locks
from satview.whatif.prediction import ReplayBasis, basis_of, figures, predict
from satview.whatif.program import programs_of
from satview.whatif.steps import Lock, Programs, SleepStep, Step, ThreadProgram, Unlock, Work, parse_changes
from tests.helpers.changed import CHANGES
from tests.helpers.extent import fewer
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
    seen = [SleepStep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(50)]
    steps = after(empty, [*seen, *seen, SleepStep(9), Work(1000), SleepStep(9)])
    assert steps == [*seen, *seen, SleepStep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(600), SleepStep(9)]


def test_a_lock_seen_once_is_in_no_other_round(empty: Programs) -> None:
    """One round may be an exception."""
    seen = [SleepStep(9), Work(100), Lock(7), Work(300), Unlock(7), Work(50)]
    assert after(empty, [*seen, SleepStep(9), Work(450)]) == [*seen, SleepStep(9), Work(450)]


def test_an_unlock_without_a_lock_has_it_where_the_round_begins(empty: Programs) -> None:
    """Others waited, so that the unlock shows; the lock was free and does not."""
    steps = after(empty, [SleepStep(9), Work(400), Unlock(7), Work(50)])
    assert steps == [SleepStep(9), Lock(7), Work(400), Unlock(7), Work(50)]


def test_a_lock_without_an_unlock_is_given_up_before_the_next_wait(empty: Programs) -> None:
    steps = after(empty, [SleepStep(9), Work(100), Lock(7), Work(300), SleepStep(9)])
    assert steps == [SleepStep(9), Work(100), Lock(7), Work(300), Unlock(7), SleepStep(9)]


def test_a_lock_that_is_held_over_a_wait_stays_held(empty: Programs) -> None:
    """Twice it is locked before a sleep and unlocked behind it."""
    steps: list[Step] = [SleepStep(9), Lock(7), Work(5), SleepStep(2), Work(6), Unlock(7), Work(1)]
    assert after(empty, [*steps, *steps]) == [*steps, *steps]


def test_a_lock_that_is_given_up_in_one_piece_is_not_held_over_others(empty: Programs) -> None:
    """Of two rounds only the lock or only the unlock shows, as nobody waited; one shows both."""
    whole: list[Step] = [SleepStep(9), Lock(7), Work(50), Unlock(7)]
    steps: list[Step] = [SleepStep(9), Lock(7), Work(50), SleepStep(9), Work(50), Unlock(7)]
    assert after(empty, [*whole, *steps, *steps]) == [*whole * 5]


@pytest.mark.parametrize(("unlock", "is_write"), [(Unlock(7, None), False), (Unlock(7, True), True)])
def test_a_reader_waits_only_for_a_writer(empty: Programs, unlock: Unlock, is_write: bool) -> None:
    """Who lets readers in has locked for writing; who lets a writer in may have read, as long as nothing else shows."""
    steps = after(empty, [SleepStep(9), Work(400), unlock, Work(50)])
    assert steps == [SleepStep(9), Lock(7, is_write), Work(400), Unlock(7), Work(50)]


def system(folder: Path, setup: Callable[[Kernel], None], wide: bool) -> ReplayBasis:
    """Return what predictions rest on of 60 ms of 8.0 on six CPUs."""
    path = folder / "system.kev"
    workload = Workload("system", "", setup, 6, 60 * MS)
    run(Capture(workload, 1, 0, Release.QNX_8, 0, LoggerOptions(iterations=0, is_wide=wide)), path)
    return basis_of(open_trace(path, None))


def rounds(basis: ReplayBasis, folder: Path, *changes: str) -> dict[str, int]:
    """Return how often each thread of the predicted trace waits at a barrier or lock, by its name."""
    path = folder / "predicted.kev"
    predict(basis, parse_changes(changes), path)
    trace = open_trace(path, None)
    rows = entries_of(trace, "SYNC_BARRIER_WAIT", "SYNC_RWLOCK")
    return dict(Counter(trace.threads.names[thread] for thread in trace.events.thread[rows].tolist()))


def meeting(kernel: Kernel, *groups: dict[str, float]) -> None:
    """Start a process with threads that work for so many ms, then meet at the barrier of their group."""

    def work(ms: float, barriers: list[Barrier]) -> Program:
        while True:
            for barrier in barriers:
                yield Compute(int(ms * MS))
                yield BarrierWait(barrier)

    def main() -> Program:
        barriers = [Barrier(f"barrier-{number}", len(group)) for number, group in enumerate(groups)]
        names = {name: ms for group in groups for name, ms in group.items()}
        for name, ms in names.items():
            own = [barrier for barrier, group in zip(barriers, groups, strict=True) if name in group]
            yield ThreadCreate(work, (ms, own), 10, Policy.RR, name)

    kernel.spawn("usr/bin/meeting", main, priority=15)


@pytest.mark.thorough
@pytest.mark.parametrize("wide", fewer((True, False), 1))
def test_a_barrier_waits_for_the_slowest(tmp_path: Path, wide: bool) -> None:
    """1, 2 and 4 ms: 15 rounds in 60 ms. The slowest in a fourth of its time: the one with 2 ms is it then, 30 rounds.

    The two threads of the other barrier of the process meet each 5 ms, in both.
    """
    basis = system(tmp_path, lambda kernel: meeting(kernel, {"a": 1, "b": 2, "c": 4}, {"d": 3, "e": 5}), wide)
    assert [thing.count for thing in basis.programs.things if thing.kind == "BARRIER"] == [3, 2]
    unchanged = rounds(basis, tmp_path)
    changed = rounds(basis, tmp_path, "c:speed=4")
    for name in "abc":
        assert unchanged[name] == pytest.approx(15, abs=1)
        assert changed[name] == pytest.approx(30, abs=1)
    for name in "de":
        assert unchanged[name] == pytest.approx(12, abs=1)
        assert changed[name] == pytest.approx(12, abs=1)


@pytest.mark.thorough
def test_threads_that_meet_others_elsewhere_wait_as_recorded(tmp_path: Path) -> None:
    """`b` meets `a` at one barrier and `c` at another, and no event says which is which."""
    basis = system(tmp_path, lambda kernel: meeting(kernel, {"a": 1, "b": 1}, {"b": 1, "c": 3}), True)
    assert not [thing for thing in basis.programs.things if thing.kind == "BARRIER"]
    assert any("Waits in state BARRIER last as long as they did." in text for text in basis.programs.not_shown)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", fewer(("cpus", "load"), 1))
def test_readers_share_and_a_writer_is_alone(tmp_path: Path, kind: str) -> None:
    """Two readers hold a lock for 1 ms in each 3, a writer for 2 in each 9, as in the workload really changed."""
    change = CHANGES[kind]["meeting-points"]
    basis = basis_of(captured(tmp_path, "meeting-points", release=Release.QNX_8, length_ms=1000))
    true = captured(tmp_path, "meeting-points", change, release=Release.QNX_8, length_ms=1000)
    begin_cycles = max(true.dump_end_cycles, int(true.events.time_cycles[0]))
    predicted = predict(basis, parse_changes(change.said)).figures
    compared = 0
    for key, truth in figures(true, begin_cycles, basis.programs.length_ns).items():
        if key in basis.fit.activities and not truth.is_own:
            assert predicted[key].median_ns == pytest.approx(truth.median_ns, rel=0.05)
            assert predicted[key].p99_ns == pytest.approx(truth.p99_ns, rel=0.1)
            compared += 1
    assert compared == 3
