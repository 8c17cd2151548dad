"""Why a thread runs, is ready or waits, against what really happened."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.analysis.why import MOST_STEPS, thread_of, why
from satview.base.errors import UsageError
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import READY, RUNNING
from satview.linkage.table import Certainty
from tests.capture.made import FAST, WIDE, Traced, damaged, traced
from tests.helpers.extent import LOSS, WIDTH, points

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
QUESTIONS = 60
NAMES = [name for name, _ in registry.names()]


def made_of(name: str, release: Release, wide: bool, loss: bool, folder: Path) -> Traced:
    lesson = registry.find(name)
    ms = 20 if name == "automotive" else min(lesson.duration_ns / 1e6, 100)
    if loss:
        return damaged(
            lesson.setup, min(ms, 50), folder, release, lesson.cpus, ring=False, wide=wide, slots=60, skew_ns=0
        )
    return traced(lesson.setup, ms, folder, release, lesson.cpus, 5, WIDE if wide else FAST, skew_ns=0)


@points(name=NAMES, loss=LOSS, wide=WIDTH, release=RELEASES)
def test_every_step_is_true(name: str, loss: bool, wide: bool, release: Release, tmp_path: Path) -> None:
    made = made_of(name, release, wide, loss, tmp_path)
    trace, truth = made.trace, made.truth
    history, waits = defaultdict(list), {}
    for change in sorted(truth.states, key=lambda change: change.time):
        history[change.thread].append((change.time, change.state, change.priority))
    for wait in truth.waits:
        waits[wait.thread, wait.start] = wait
    random = np.random.default_rng(7)
    seen = Counter()
    threads = [
        row
        for row in range(1, len(trace.threads))
        if trace.threads.tid[row] > 0 and (int(trace.threads.pid[row]), int(trace.threads.tid[row])) in history
    ]
    for _ in range(QUESTIONS):
        row = int(random.choice(threads))
        at = int(random.integers(made.since + 1, trace.window.end))
        for step in why(trace, row, at):
            thread = int(trace.threads.pid[step.thread]), int(trace.threads.tid[step.thread])
            if step.at_cycles <= made.since or step.state in ("UNKNOWN", "ABSENT", "DEAD"):
                continue
            assert trace.thread_name(step.thread) in step.says
            if "is an idle thread" in step.says:
                continue
            mine = history[thread]
            place = bisect_right(mine, (step.at_cycles, "~")) - 1
            assert place >= 0
            time, state, priority = mine[place]
            assert step.state == state, (step, mine[place - 1 : place + 2])
            assert step.since_cycles == time or time <= made.since
            assert step.priority in (-1, priority)
            seen[state] += 1
            seen["held"] += state == "REPLY" and time > made.since
            if step.holder > 0:
                held_by = int(trace.threads.pid[step.holder]), int(trace.threads.tid[step.holder])
                assert held_by in waits[thread, time].owners, step.says
                seen["holder"] += state == "REPLY" and time > made.since
            if step.value in (RUNNING, READY) and step.wait_row >= 0:
                began = int(trace.events.time_cycles[step.wait_row])
                wait = waits.get((thread, began))
                seen["caused"] += began > made.since and wait is not None and wait.cause >= 0
                if began > made.since and step.cause_row >= 0 and step.certainty is not Certainty.GUESS:
                    assert wait is not None
                    assert int(trace.events.time_cycles[step.cause_row]) == wait.cause, step.says
                    if step.waker > 0:
                        by = int(trace.threads.pid[step.waker]), int(trace.threads.tid[step.waker])
                        assert wait.waker in (by, None), (step.says, wait)
                    seen["cause"] += wait.cause >= 0
            for other, _, cycles in step.ran_instead:
                who = int(trace.threads.pid[other]), int(trace.threads.tid[other])
                ran = sum(
                    max(0, min(span.end, step.at_cycles) - max(span.start, step.since_cycles))
                    for span in truth.runs
                    if span.thread == who
                )
                slack = trace.clock.cycles_of(40_000 * (1 + len(truth.runs) // 100))
                assert cycles <= ran + slack
    if not loss:
        assert sum(seen[state] for state in seen if state.isupper()) >= QUESTIONS // 6
        assert seen["cause"] >= 0.9 * seen["caused"]
        assert seen["holder"] == seen["held"]


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_chain_of_an_inversion(release: Release, tmp_path: Path) -> None:
    made = traced(registry.find("inversion").setup, 200, tmp_path, release, modes=WIDE)
    trace = made.trace
    [verdict] = satview.check(trace)
    at = verdict.end_cycles - trace.clock.cycles_of(10_000_000)
    high, low = why(trace, "high", at)[:2]
    assert (high.state, high.holder) == ("MUTEX", low.thread)
    assert low.state == "READY"
    assert trace.threads.names[low.ran_instead[0][0]] == "middle"
    assert low.ran_instead[0][1] == 20
    assert (high.priority, low.priority) == (30, 10)
    assert "; meanwhile ran " in low.says
    assert "middle) (priority 20)" in low.says


def test_a_deadlock_closes_its_circle(tmp_path: Path) -> None:
    trace = traced(registry.find("deadlock").setup, 100, tmp_path, modes=WIDE).trace
    steps = why(trace, "forwards", trace.clock.cycles(50_000_000))
    assert [trace.threads.names[step.thread] for step in steps] == ["forwards", "backwards"]
    assert all(step.state == "MUTEX" and "until the trace ends" in step.says for step in steps)
    assert steps[-1].says.endswith("waits for it in turn: none of them goes on by itself.")


def test_a_chain_through_servers_and_wakers(tmp_path: Path) -> None:
    trace = traced(registry.find("nested-inversion").setup, 60, tmp_path, modes=WIDE).trace
    steps = why(trace, thread_of(trace, "high"), trace.clock.cycles(20_000_000))
    assert [step.state for step in steps[:3]] == ["REPLY", "REPLY", "READY"]
    assert [step.waits_for for step in steps[:3]] == ["the reply", "the reply", ""]
    assert steps[2].ran_instead
    assert steps[2].cause_row >= 0
    assert steps[3].at_cycles == trace.events.time_cycles[steps[2].cause_row], "who sent it the message, when it did"
    assert len(why(trace, "high", trace.clock.cycles(20_000_000), steps=2)) == 2
    assert len(steps) <= MOST_STEPS


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_timer_s_pulse_has_no_thread_behind_it(release: Release, tmp_path: Path) -> None:
    trace = traced(registry.find("periodic").setup, 100, tmp_path, release, modes=FAST).trace
    row = thread_of(trace, "fast-10ms")
    runs = [
        int(event)
        for event in trace.states.of(row)
        if trace.catalogue.name(int(trace.events.code[event])) == "THRUNNING"
    ]
    [step] = why(trace, row, int(trace.events.time_cycles[runs[3]]) + 1)
    assert step.state == "RUNNING"
    assert step.waker == -1
    assert "ended at" in step.says
    assert "SND_PULSE_EXE" in step.says
    assert "(idle)" not in step.says.split(";", 1)[0], "the idle thread ran; it did nothing"


def test_which_thread_a_text_means(tmp_path: Path) -> None:
    trace = traced(registry.find("deadlock").setup, 20, tmp_path, modes=WIDE).trace
    row = thread_of(trace, "forwards")
    assert thread_of(trace, f"{trace.threads.pid[row]}:{trace.threads.tid[row]}") == row
    assert thread_of(trace, trace.thread_name(row)) == row
    for text, message in (
        ("99:1", "no thread 99:1"),
        ("nobody", "no thread 'nobody'; `satview stats` lists them"),
        (trace.process_name(int(trace.threads.process[row])), "is the name of 3 threads; write PID"),
    ):
        with pytest.raises(UsageError, match=message):
            thread_of(trace, text)
    with pytest.raises(UsageError, match="outside the trace"):
        why(trace, row, trace.window.end)
    with pytest.raises(UsageError, match="row 0"):
        why(trace, 0, trace.window.start)


def test_partitions_are_named(tmp_path: Path) -> None:
    """A thread that is starved in its partition, and those that ran instead, each with its partition."""
    path = tmp_path / "t.kev"
    main(["tracelogger", "--workload", "partition-starvation", "-w", "-f", str(path)])
    trace = satview.open_trace(path)
    [step, *_] = trace.why("uploader", trace.clock.cycles(300_000_000))
    assert "(uploader) (priority 15, partition Telemetry) is ready since" in step.says
    assert "render 1 (render) (priority 10, partition System)" in step.says
