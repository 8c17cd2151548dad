"""Traces of Perfetto from kernels that are not Linux, as QNX's own probe writes them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import satview
from satview.formats.linux.perfetto_kernel import NOBODY_PID
from tests.helpers.extent import usually
from tests.helpers.perfetto_engine import needs_engine, query
from tests.helpers.perfetto_probe import CREATED, DEAD, DESTROYED, READY, RUNNING, SLEEPS, Probe, scene


def states_of(trace):
    """Return state and start of each interval by the numbers of its thread."""
    found, out = trace.table("state"), {}
    for thread, state, start in zip(found["thread"].tolist(), found["state"], found["start_ns"].tolist(), strict=True):
        key = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
        out.setdefault(key, []).append((state, start))
    return out


def test_states_names_and_priorities(tmp_path):
    trace = scene().open(tmp_path)
    states = states_of(trace)
    assert states[7, 1][1:] == [("RUNNING", 0), ("WAITPAGE", 40)]
    assert states[7, 2][1:] == [("READY", 10), ("RUNNING", 40), ("SLEEPING", 70)]
    assert states[9, 1][1:] == [("RUNNING", 20), ("STOPPED", 80)]
    threads = zip(trace.threads.pid.tolist(), trace.threads.tid.tolist(), trace.threads.names, strict=True)
    assert set(threads) >= {(7, 1, "shell"), (7, 2, "worker"), (9, 1, "driver")}
    assert dict(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True))[9] == "devb-eide"
    runs = trace.table("run")
    busy = ~runs["is_idle"]
    rows = zip(*(runs[name][busy].tolist() for name in ("cpu", "start_ns", "end_ns")), strict=True)
    assert list(rows) == [(0, 0, 40), (0, 40, 70), (1, 20, 80)]
    events = [event.args["prio"] for event in trace.iter_events() if event.name == "RUNNING"]
    assert events == [10, 0, 21, 9, 0]
    assert "coarse" in str(list(trace.problems))


def test_the_first_threads_of_the_kernel_are_idle_where_nothing_says_so(tmp_path):
    probe = Probe().process(1, "procnto", (1, ""), (2, "")).process(7, "app", (1, ""))
    probe.state(0, 1, 1, RUNNING, 0).state(10, 1, 1, READY, 0).state(10, 7, 1, RUNNING, 0, 10)
    trace = probe.state(20, 1, 2, RUNNING, 1, 255).state(30, 1, 2, READY, 1, 255).open(tmp_path)
    runs = trace.table("run")
    assert sorted(zip(runs["start_ns"].tolist(), runs["is_idle"].tolist(), strict=True)) == [
        (0, True), (10, False), (20, False)
    ]  # fmt: skip


def test_several_machines_have_cpus_and_processes_of_their_own(tmp_path):
    host, guest = scene(), scene(machine=3)
    for packet in guest.trace.packet:
        host.trace.packet.add().CopyFrom(packet)
    trace = host.open(tmp_path)
    assert trace.cpu_count == 4
    names = [trace.process_name(row) for row in range(1, len(trace.processes))]
    assert {"devb-eide", "devb-eide (machine 3)"} <= set(names)
    runs = trace.table("run")
    busy = Counter(runs["cpu"][~runs["is_idle"]].tolist())
    assert busy == {0: 2, 1: 1, 2: 2, 3: 1}


def test_frequencies_are_events(tmp_path):
    probe = scene()
    event = probe.packet(150).generic_kernel_cpu_freq_event
    event.cpu, event.freq_hz = 1, 1_800_000_000
    trace = probe.open(tmp_path)
    found = [
        (event.time_cycles, event.cpu, dict(event.args))
        for event in trace.iter_events()
        if event.name == "cpu_frequency"
    ]
    assert [(time, cpu, args["freq_hz"]) for time, cpu, args in found] == [(150, 1, 1_800_000_000)]


def test_a_thread_whose_cpu_is_taken_is_in_no_known_state(tmp_path):
    probe = Probe().state(0, 7, 1, RUNNING, 0).state(10, 7, 2, RUNNING, 0).state(30, 7, 1, RUNNING, 1)
    probe.state(40, 7, 2, SLEEPS, 0).state(50, NOBODY_PID, 1, RUNNING, 1)
    states = states_of(probe.state(60, 7, 2, READY).open(tmp_path))
    assert states[7, 1][1:] == [("RUNNING", 0), ("UNKNOWN", 10), ("RUNNING", 30), ("UNKNOWN", 50)]
    assert states[7, 2][1:] == [("RUNNING", 10), ("SLEEPING", 40), ("READY", 60)]
    assert not any(pid == NOBODY_PID for pid, _ in states)


def test_threads_begin_and_end(tmp_path):
    probe = (
        Probe().state(0, 7, 1, RUNNING, 0).state(10, 7, 2, CREATED).state(20, 7, 2, READY).state(30, 7, 2, RUNNING, 1)
    )
    probe.state(40, 7, 2, DEAD, 1).state(50, 7, 2, DESTROYED).state(60, 7, 1, SLEEPS, 0)
    states = states_of(probe.open(tmp_path))
    assert states[7, 2][-4:] == [("READY", 20), ("RUNNING", 30), ("DEAD", 40), ("ABSENT", 50)]


REFUSED = [
    ([(10, 2, 0)], "states that are none"),
    ([(10, 2, READY), (20, 2, CREATED)], "threads are created that are there already"),
    ([(10, 2, READY), (20, 2, DESTROYED), (30, 2, DEAD)], "threads end that have ended"),
    ([(10, 2, RUNNING), (20, 2, RUNNING)], "threads that run already start to run"),
]


@pytest.mark.parametrize(("rows", "says"), REFUSED)
def test_what_perfetto_refuses_is_a_problem(rows, says, tmp_path):
    probe = Probe().state(0, 7, 1, RUNNING, 1)
    for time, number, state in rows:
        probe.state(time, 7, number, state)
    trace = probe.open(tmp_path)
    assert [problem.count for problem in trace.problems if says in str(problem)] == [1]


@needs_engine
def test_as_many_are_refused_as_by_perfetto(tmp_path):
    """Random states, in an order that no kernel has; times are all different."""
    for seed in range(usually(3, 60)):
        rng, probe = random.Random(seed), Probe()
        for time in range(80):
            probe.state(time * 10, 7, rng.randrange(1, 5), rng.randrange(0, 9), rng.randrange(2))
        path = probe.write(tmp_path / "random.pftrace")
        (rows,) = query(path, "select sum(value) from stats where name in ('task_state_invalid', "
                        "'generic_task_state_invalid_order')")  # fmt: skip
        problems = satview.open_trace(path).problems
        mine = sum(problem.count for problem in problems if "refused" in str(problem))
        assert mine == rows[0][0], seed
