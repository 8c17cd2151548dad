"""Traces of Perfetto from kernels that are not Linux, as QNX's own probe writes them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import satview
from satview.events import wire
from satview.events.linux import FIRST_TID, point_codes
from satview.events.states import STATE_BY_NAME, UNKNOWN
from satview.formats.linux import perfetto_kernel
from satview.formats.linux.perfetto_kernel import NOBODY_PID, fields_of, kernel_states
from satview.formats.linux.records import Tasks
from satview.store.problems import Problems
from tests.helpers.columns import ints
from tests.helpers.extent import usually
from tests.helpers.perfetto_engine import needs_engine, query
from tests.helpers.perfetto_probe import CREATED, DEAD, DESTROYED, READY, RUNNING, SLEEPS, Probe, scene, tid


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


def columns(table, *names: str) -> list[tuple]:
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


def test_all_that_packets_of_two_machines_say():
    """CPUs of the guest, machine 5, are behind the three of the host; the last name of a thread counts.

    Records are numbered from 100 on: states in the order of the file, then frequencies.
    """
    host, guest = Probe(), Probe(5)
    host.process(1, "procnto", (1, "first"), (2, "")).process(7, "bin/app -x", (1, "main"), (3, "old"), idle=(3,))
    host.state(10, 7, 1, RUNNING, 1, 21, "again").state(10, 7, 4, CREATED, 0, 4).state(20, 7, 4, READY, 0, 5, "late")
    host.state(30, 1, 2, RUNNING, 0).state(50, 7, 4, DEAD, 0, 5).state(60, 7, 4, DESTROYED)
    for time, number, name in ((5, 1, "too early"), (40, 3, "new")):
        renamed = host.packet(time).generic_kernel_task_rename_event
        renamed.tid, renamed.comm = tid(7, number), name
    guest.process(7, "sbin/other", (1, "guest's")).process(8, "").state(12, 7, 1, SLEEPS, 0, 8)
    for probe, time, cpu, frequency in ((host, 15, 2, 1000), (host, 25, 0, 2000), (guest, 35, 1, 3000)):
        event = probe.packet(time).generic_kernel_cpu_freq_event
        event.cpu, event.freq_hz = cpu, frequency
    data = np.frombuffer(host.trace.SerializeToString() + guest.trace.SerializeToString(), np.uint8)
    packets, tasks, problems = fields_of(data, ints(0), ints(len(data))).inner(1)[0], Tasks(), Problems()
    found = kernel_states(packets, tasks, 100, problems)
    threads = {name: FIRST_TID + row for row, name in enumerate(("1/1", "1/2", "7/1", "7/3", "7/4", "guest"), 1)}
    value = {name: state.value for name, state in STATE_BY_NAME.items()}
    assert columns(found.states, "time_ns", "record", "cpu", "thread", "state", "prio") == [
        (30, 103, 0, threads["1/2"], value["RUNNING"], 0), (10, 100, 1, threads["7/1"], value["RUNNING"], 21),
        (20, 102, 0, threads["7/4"], value["READY"], 5), (50, 104, 0, threads["7/4"], value["DEAD"], 5),
        (12, 106, 3, threads["guest"], value["SLEEPING"], 8),
    ]  # fmt: skip
    created, ended, frequency = wire.THREAD_CREATE, wire.THREAD_DESTROY, point_codes()["cpu_frequency"]
    assert columns(found.points, "time_ns", "record", "cpu", "thread", "code") == [
        (10, 101, 0, threads["7/4"], created), (60, 105, 0, threads["7/4"], ended), (15, 107, 2, -1, frequency),
        (25, 108, 0, -1, frequency), (35, 109, 4, -1, frequency),
    ]  # fmt: skip
    assert (found.records.record.tolist(), found.records.number.tolist()) == ([107, 108, 109], [-118] * 3)
    assert [data[begin:end].tobytes() for begin, end in columns(found.records, "begin", "end")] == [
        b"\x08\x02\x10\xe8\x07", b"\x08\x00\x10\xd0\x0f", b"\x08\x01\x10\xb8\x17"
    ]  # fmt: skip
    assert found.number_of == {
        tid(1, 1): threads["1/1"], tid(1, 2): threads["1/2"], tid(7, 1): threads["7/1"], tid(7, 3): threads["7/3"],
        tid(7, 4): threads["7/4"],
    }  # fmt: skip
    other = FIRST_TID - 2**24 + 7  # of the second machine
    assert tasks.names == dict(zip(threads.values(), ("first", "", "again", "new", "late", "guest's"), strict=True))
    assert tasks.shown == dict(zip(threads.values(), (1, 2, 1, 3, 4, 1), strict=True))
    assert tasks.process == dict(zip(threads.values(), (1, 1, 7, 0, 7, other), strict=True))
    assert tasks.process_names == {1: "procnto", 7: "app -x", other: "other (machine 5)"}
    assert list(problems) == []


def test_cpus_of_machines():
    """Numbers from 0 to 255 count; each machine has as many as its largest number says."""
    first, second = (ints(0, 1, 0, 2), ints(0, 1, 2, 300)), (ints(1, 1), ints(4, -1))
    found = perfetto_kernel._cpus(3, first, second)
    assert (found[0], found[1].tolist(), found[2].tolist()) == (3, [0, 4, 2, 8 + 255], [7, 3])
    none = (ints(), ints())
    assert [np.size(column) for column in perfetto_kernel._cpus(0, none, none)] == [1, 0, 0]
    assert perfetto_kernel._cpus(0, none, none)[0] == 0
    processes = ((0, 2**30), (1, 7), (2, 7), (1, 2**24 + 3))
    assert [perfetto_kernel._process(*each) for each in processes] == [
        2**30, FIRST_TID - 2**24 + 7, FIRST_TID - 2**25 + 7, FIRST_TID - 2**24 + 3
    ]  # fmt: skip


def test_numbers_of_threads(monkeypatch):
    """Small ones of the first machine stay, others are numbered; nobody's are none, nor are those beyond the last."""
    keys = [(0, 1), (0, 0), (0, NOBODY_PID - 1), (0, NOBODY_PID), (1, 5), (0, tid(NOBODY_PID, 1)),
            (0, tid(NOBODY_PID, 0)), (0, tid(7, 2**31)), (0, tid(7, 2**31 - 1)), (0, tid(0, 2**31))]  # fmt: skip
    tasks = Tasks()
    found = perfetto_kernel._numbered(keys, [*"abcdefghij"], {0: 9, 1: 0, 4: 6}, tasks).tolist()
    new = {row: FIRST_TID + row + 1 for row in (1, 3, 4, 6, 7, 8, 9)}
    assert found == [1, new[1], NOBODY_PID - 1, new[3], new[4], -2, new[6], new[7], new[8], new[9]]
    assert tasks.names == {number: name for number, name in zip(found, "abcdefghij", strict=True) if number != -2}
    assert tasks.process == {
        1: 9, new[1]: new[1], NOBODY_PID - 1: NOBODY_PID - 1, new[3]: new[3], new[4]: FIRST_TID - 2**24 + 6,
        new[6]: NOBODY_PID, new[7]: 7, new[8]: 7, new[9]: new[9],
    }  # fmt: skip
    assert list(tasks.shown.values()) == [1, 0, NOBODY_PID - 1, NOBODY_PID, 5, 0, 0, 2**31 - 1, 0]
    assert perfetto_kernel._MOST_TID == 1 << 31
    monkeypatch.setattr(perfetto_kernel, "_MOST_TID", FIRST_TID + 3)
    assert perfetto_kernel._numbered([(0, 0)] * 4, [""] * 4, {}, Tasks()).tolist() == [
        FIRST_TID + 1, FIRST_TID + 2, -2, -2
    ]  # fmt: skip


def test_idle_threads():
    """Those with the flag; where none has it the first ones of process 1, as many as CPUs, that only run at 0."""
    keys = [(0, tid(1, 1)), (0, tid(1, 2)), (0, tid(1, 3)), (0, tid(2, 1)), (1, tid(1, 1))]
    numbers = ints(11, 12, 13, 21, 31)

    def idle(number, prio, flagged, cpus):
        return perfetto_kernel._idle(keys, ints(*number), numbers, ints(*prio), ints(*flagged), cpus)

    assert idle((11, 12), (0, 10), (), 2) == [11, 31]
    assert idle((11, 31), (0, -1), (), 3) == [11, 12, 13]
    assert idle((), (), (), 0) == []
    assert idle((), (), (3, 1), 2) == [21, 12]


def changes(*rows: tuple[int, int, int, int, int]) -> perfetto_kernel._KernelChanges:
    """Return changes of states: time, record, CPU, thread, state; priorities are 10 times the CPU."""
    time, record, cpu, number, state = (ints(*column) for column in zip(*rows, strict=True))
    return perfetto_kernel._KernelChanges(time, record, cpu, number, state, cpu * 10)


@pytest.mark.parametrize(
    ("own", "taker", "taken"),
    [
        (None, (10, 5, 0, 2), 10), ((5, 3, 0, 1), (10, 5, 0, 2), -1), ((15, 7, 0, 1), (10, 5, 0, 2), 10),
        ((10, 3, 0, 1), (10, 5, 0, 2), -1), ((10, 7, 0, 1), (10, 5, 0, 2), 10), (None, (10, 5, 1, 2), -1),
        ((9, 3, 0, 1), (0, 2, 0, 2), 0), (None, (10, 5, 0, 1), -1),
    ],
)  # fmt: skip
def test_when_another_thread_takes_a_cpu(own, taker, taken):
    """Thread 1 runs on CPU 0 from 0 on, record 1; by time and record its own change or that of the taker is earlier."""
    rows = [(0, 1, 0, 1, RUNNING)]
    if own:
        rows.append((*own, SLEEPS))
    rows.append((*taker, RUNNING))
    found = perfetto_kernel._taken(changes(*rows)).tolist()
    assert found == [taken, *[-1] * (len(rows) - 1)]
    assert perfetto_kernel._taken(changes(*rows).taken(slice(0, 0))).tolist() == []


def test_the_last_change_of_a_thread_that_counts():
    rows = changes(*((time, time, 0, number, READY) for time, number in enumerate((1, 1, 1, 2, 2))))

    def last(counts, holds):
        return perfetto_kernel._last(rows, np.array(counts, np.bool_), np.array(holds, np.bool_)).astype(int).tolist()

    assert last((1, 1, 1, 1, 1), (1, 0, 1, 1, 0)) == [0, 1, 0, 0, 1]
    assert last((1, 0, 1, 0, 1), (1, 0, 0, 1, 1)) == [0, 1, 1, 0, 0]
    assert last((0, 0, 0, 0, 0), (1, 1, 1, 1, 1)) == [0] * 5


def test_changes_of_states_and_what_is_refused():
    """In any order; thread 3 starts on CPU 0 at the moment in which thread 1 takes it, so is in no known state."""
    rows = changes(
        (40, 9, 0, 2, READY), (0, 1, 0, 1, CREATED), (10, 2, 0, 1, READY), (20, 4, 0, 3, RUNNING),
        (20, 5, 0, 1, RUNNING), (30, 6, 0, 2, RUNNING), (50, 10, 1, 1, DEAD), (60, 11, 1, 1, DESTROYED),
        (70, 12, 1, 1, DEAD), (80, 13, 0, 2, 9), (85, 14, 0, 2, 0),
        (90, 15, 0, -2, READY), (91, 16, 0, -2, CREATED), (95, 17, 0, 2, CREATED),
        (96, 18, 2, 4, RUNNING), (97, 19, 2, 4, RUNNING), (1, 20, 3, 5, READY), (2, 21, 3, 5, DESTROYED),
        (3, 22, 3, 5, DEAD),
    )  # fmt: skip
    problems = Problems()
    states, points = perfetto_kernel._changes(rows, problems)
    ready, running, dead = (STATE_BY_NAME[name].value for name in ("READY", "RUNNING", "DEAD"))
    assert columns(states, "time_ns", "record", "cpu", "thread", "state", "prio") == [
        (10, 2, 0, 1, ready, 0), (20, 5, 0, 1, running, 0), (50, 10, 1, 1, dead, 10), (70, 12, 1, 1, dead, 10),
        (30, 6, 0, 2, running, 0), (40, 9, 0, 2, ready, 0), (96, 18, 2, 4, running, 20), (1, 20, 3, 5, ready, 30),
        (30, 5, 0, 1, UNKNOWN, 0), (20, 4, 0, 3, UNKNOWN, 0),
    ]  # fmt: skip
    created, ended = wire.THREAD_CREATE, wire.THREAD_DESTROY
    assert columns(points, "time_ns", "record", "cpu", "thread", "code") == [
        (0, 1, 0, 1, created), (60, 11, 1, 1, ended), (2, 21, 3, 5, ended)
    ]  # fmt: skip
    assert [(each.detail, each.count) for each in problems] == [
        ("states that are none: refused, as Perfetto does", 2),
        ("threads are created that are there already: refused, as Perfetto does", 2),
        ("threads end that have ended: refused, as Perfetto does", 1),
        ("threads that run already start to run: refused, as Perfetto does", 1),
    ]


def test_a_thread_whose_cpu_is_taken_at_once():
    problems = Problems()
    states, _ = perfetto_kernel._changes(changes((0, 1, 0, 1, RUNNING), (0, 2, 0, 2, RUNNING)), problems)
    assert columns(states, "time_ns", "record", "thread", "state") == [
        (0, 2, 2, STATE_BY_NAME["RUNNING"].value), (0, 1, 1, UNKNOWN)
    ]  # fmt: skip


@pytest.mark.thorough
@needs_engine
def test_as_many_are_refused_as_by_perfetto(tmp_path):
    """Random states, in an order that no kernel has; times are all different."""
    for seed in range(usually(2, 60, thorough=3)):
        rng, probe = random.Random(seed), Probe()
        for time in range(80):
            probe.state(time * 10, 7, rng.randrange(1, 5), rng.randrange(0, 9), rng.randrange(2))
        path = probe.write(tmp_path / "random.pftrace")
        (rows,) = query(path, "select sum(value) from stats where name in ('task_state_invalid', "
                        "'generic_task_state_invalid_order')")  # fmt: skip
        problems = satview.open_trace(path).problems
        mine = sum(problem.count for problem in problems if "refused" in str(problem))
        assert mine == rows[0][0], seed
