"""All threads at a moment: on scenes that a reader can follow, and against what the simulated kernel really did."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections import defaultdict

import pytest

import satview
from satview.__main__ import main
from satview.answers.table import Known
from satview.base.errors import UsageError
from satview.capture.sim.truth import ThreadId
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import NAMES_BY_VALUE, WAITING
from tests.analysis.test_statistics_truth import workload
from tests.capture.judge import histories
from tests.capture.made import ALL, FAST, WIDE, damaged, traced
from tests.helpers.extent import points
from tests.helpers.kev import START, TraceBuilder

LOCK, UNLOCK = 80, 81
MUTEX = 0x1000


def at(trace, time):
    """Return {state, CPU, what for, holder: threads with since and event} at a time."""
    groups = defaultdict(list)
    table = satview.snapshot(trace, START + time)
    for row, texts in enumerate(table):
        since, cpu = table.held(row, "since") - START, table.held(row, "cpu")
        key = texts["state"], cpu, texts["waits_for"], texts["holder"]
        groups[key].append((texts["thread"], since, table.event(row)))
    assert [row["count"] for row in table] == [len(threads) for threads in groups.values() for _ in threads]
    return groups


def mutex_scene():
    """5.1 has the mutex, 5.2 and 5.3 wait for it from 30 and 50 on; at 70 it goes to 5.3, which runs on from 90."""
    made = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 5, 2, 1).state("RUNNING", 10, 5, 1)
    made.call(LOCK, 20, (MUTEX, 1 << 16 | 5), 1).state("MUTEX", 30, 5, 2, 1).state("RUNNING", 31, 5, 3, 1)
    made.call(LOCK, 40, (MUTEX, 1 << 16 | 5), 1).state("MUTEX", 50, 5, 3, 1).state("RUNNING", 51, 1, 2, 1)
    made.call(UNLOCK, 60, (MUTEX, 0)).state("READY", 70, 5, 3).exit(UNLOCK, 75).state("NANOSLEEP", 80, 5, 1)
    made.state("RUNNING", 90, 5, 3).exit(LOCK, 95).state("RUNNING", 97, 5, 3).call(UNLOCK, 110, (MUTEX, 0))
    made.state("READY", 115, 5, 2).exit(UNLOCK, 118)
    return made.event(wire.code(6, 1), 150)


def test_threads_that_wait_for_one_mutex_are_together_with_its_holder(tmp_path):
    trace = mutex_scene().open(tmp_path)
    words = f"mutex 0x1000 (process {trace.process_name(trace.threads.process[trace.threads.row(5, 1)])})"
    found = at(trace, 55)
    assert found["MUTEX", -1, words, "pid 5 1"] == [("pid 5 2", 30, 4), ("pid 5 3", 50, 7)]
    assert found["RUNNING", 0, "", ""] == [("pid 5 1", 10, 2)]
    assert [key[:2] for key in found] == [("MUTEX", -1), ("RUNNING", 0), ("IDLE", 1)]


def test_who_got_the_mutex_since_is_the_holder(tmp_path):
    trace = mutex_scene().open(tmp_path)
    holders = {time: next(holder for state, _, _, holder in at(trace, time) if state == "MUTEX")
               for time in (59, 65, 72, 100, 112)}  # fmt: skip
    # At 65 and 112 the holder gives it up; to whom is not reported yet.
    assert holders == {59: "pid 5 1", 65: None, 72: "pid 5 3", 100: "pid 5 3", 112: None}


def test_an_event_that_repeats_a_state_does_not_begin_it_and_one_at_the_moment_counts(tmp_path):
    trace = mutex_scene().open(tmp_path)
    assert at(trace, 100)["RUNNING", 0, "", ""] == [("pid 5 3", 90, 13)]
    assert at(trace, 90)["RUNNING", 0, "", ""] == [("pid 5 3", 90, 13)]
    assert at(trace, 89)["READY", -1, "", ""] == [("pid 5 3", 70, 10)]


def test_a_thread_that_goes_on_on_another_cpu_runs_since_then(tmp_path):
    made = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 5, 1).state("RUNNING", 20, 5, 1)
    trace = made.state("RUNNING", 30, 5, 1, 1).event(wire.code(6, 1), 50).open(tmp_path)
    assert at(trace, 25) == {("RUNNING", 0, "", ""): [("pid 5 1", 10, 1)]}
    assert at(trace, 40) == {("RUNNING", 1, "", ""): [("pid 5 1", 30, 3)]}


def test_states_of_one_moment_come_in_order(tmp_path):
    shown = satview.snapshot(mutex_scene().open(tmp_path), START + 85)
    assert shown["state"].tolist() == ["MUTEX", "READY", "NANOSLEEP", "IDLE"]


def test_channels_of_two_processes_are_two(tmp_path):
    made = TraceBuilder().time_event(0)
    for pid, time in ((5, 10), (6, 20)):
        made.state("RUNNING", time, pid, 1).call(14, time + 1, (1, 1)).state("RECEIVE", time + 2, pid, 1)
    found = at(made.event(wire.code(6, 1), 50).open(tmp_path), 40)
    assert len([key for key in found if key[0] == "RECEIVE"]) == 2


def test_a_lost_state_is_unknown(tmp_path):
    made = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 5, 1)
    made.event(wire.CONTROL_BUFFER, 500, (3, 0)).time_event(500).state("READY", 600, 5, 1)
    trace = made.event(wire.code(6, 1), 700).open(tmp_path)
    assert [*at(trace, 5_00)] == [("UNKNOWN", -1, "", "")]
    assert at(trace, 300) == at(trace, 500) == {("UNKNOWN", -1, "", ""): [("pid 5 1", -1 - START, -1)]}
    assert at(trace, 650)["READY", -1, "", ""] == [("pid 5 1", 600, 5)]


def test_a_moment_outside_the_trace(tmp_path):
    with pytest.raises(UsageError, match="outside"):
        satview.snapshot(mutex_scene().open(tmp_path), START + 151)


def test_the_command(tmp_path, capsys):
    path = str(mutex_scene().write(tmp_path / "mutex.kev"))
    assert main(["snapshot", path, "--at", "55ns", "--format", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["at_ns"] == 55
    assert reported["threads"][0] == {
        "state": "MUTEX", "thread": "pid 5 2", "pid": 5, "tid": 2, "count": 2, "cpu": None,
        "waits_for": "mutex 0x1000 (process pid 5)", "holder": "pid 5 1", "since_ns": 30, "length_ns": 25, "event": 5,
    }  # fmt: skip
    assert main(["snapshot", path, "--at", "55ns"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mutex.kev at 0.000 000 055 s: 4 threads"
    assert any(line.startswith("MUTEX") and "pid 5 1" in line and line.endswith("25 ns      5") for line in lines)
    assert main(["snapshot", path, "--at", "2s"]) == 2


WORKLOADS = (
    "deadlock", "inversion", "inheritance", "convoy", "producer-consumer", "client-server", "nested-inversion",
    "meeting-points", "signals", "small-system", "automotive", "mishaps",
)  # fmt: skip
RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)


@points(name=WORKLOADS, release=RELEASES, form=["fast", "wide"], loss=["whole", "loss"])
def test_what_threads_really_did(name, release, form, loss, tmp_path):
    setup, ms, cpus = workload(name)
    if loss == "loss":
        made = damaged(
            setup,
            min(ms, 60),
            tmp_path,
            release,
            cpus,
            ring=False,
            wide=form == "wide",
            slots=60,
            skew_ns=0,
            classes=ALL,
        )
    else:
        made = traced(setup, min(ms, 60), tmp_path, release, cpus, 5, WIDE if form == "wide" else FAST, skew_ns=0)
    trace, truth = made.trace, histories(made.truth)
    threads = trace.threads
    named = waiting = 0
    for moment in sorted(random.Random(1).sample(range(trace.dump_end_cycles + 1, trace.window.end), 40)):
        states = {thread: state_at(history, moment) for thread, history in truth.items()}
        seen = 0
        table = satview.snapshot(trace, moment)
        for row, code in enumerate(table["state"]):
            state, row_of_thread, since_shown = str(code), table.held(row, "thread"), table.held(row, "since")
            thread = int(threads.pid[row_of_thread]), int(threads.tid[row_of_thread])
            seen += 1
            if state == "DEAD":  # its last word, of a thread that is no more
                assert states[thread] is None, thread
                seen -= 1
                continue
            if state == "UNKNOWN":
                assert loss == "loss" or states[thread] is None, thread
                continue
            value, since = states[thread]
            assert state == NAMES_BY_VALUE[value], (thread, moment)
            assert since_shown <= moment
            if loss == "whole" and since > made.since:
                assert since_shown == since, (thread, moment)
            elif since > made.since:
                assert since_shown >= since, (thread, moment)
            if state == "MUTEX":
                waiting += 1
                if (holder := table.held(row, "holder")) > 0:
                    named += 1
                    assert table.known(row, "holder") is not Known.GUESS
                    holding = int(threads.pid[holder]), int(threads.tid[holder])
                    assert holding in holders(made, thread, moment), (moment, thread)
        if loss == "whole":
            alive = {thread for thread, state in states.items() if state is not None
                     and state[0] != WAITING}  # fmt: skip
            assert seen == len(alive)
    if loss == "whole" and form == "wide" and waiting:
        assert named >= 0.8 * waiting


def state_at(history, moment):
    """Return the state of a thread at a moment and since when, None before its first one and after its end."""
    position = bisect_right(history, (moment, 256)) - 1
    if position < 0 or history[position][1] == 0:
        return None
    since = position
    while since > 0 and history[since - 1][1] == history[position][1]:
        since -= 1
    return history[position][1], history[since][0]


def holders(made, thread, moment) -> set[ThreadId]:
    """Return the threads that have any mutex at a moment that a thread waits for."""
    address = {wait.address for wait in made.truth.waits
               if wait.thread == thread and wait.state == "MUTEX" and wait.start <= moment
               and (wait.end < 0 or moment < wait.end)}  # fmt: skip
    return {hold.thread for hold in made.truth.holds
            if hold.address in address and hold.start <= moment and (hold.end < 0 or moment <= hold.end)}  # fmt: skip
