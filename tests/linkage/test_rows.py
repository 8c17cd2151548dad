"""Rows by CPU, by thread and by depth, on columns that a reader can follow; wake-ups of Linux against a walk."""

from __future__ import annotations

import random

import numpy as np
import pytest

from satview.core.links import stable_order
from satview.events import linux, wire
from satview.events.states import READY, RUNNING
from satview.formats.registry import open_trace
from satview.linkage import links
from satview.linkage.chain import link_table
from satview.linkage.links import NO_EVENT, LinkKind
from tests.helpers.extent import usually
from tests.helpers.kev import TraceBuilder

MARK, OTHER = wire.code(6, 1), wire.code(6, 2)


@pytest.fixture
def many_cpus(tmp_path):
    """Twelve CPUs, each of which logs a mark by turns, three times; CPU 5 another event in between."""
    builder = TraceBuilder(cpus=12)
    for number in range(36):
        builder.event(MARK, 10 * number, (number, 0), number % 12)
        if number == 20:
            builder.event(OTHER, 10 * number + 5, (0, 0), 5)
    return builder.open(tmp_path)


@pytest.mark.parametrize("cpus", [3, 8, 9, 12])
def test_rows_of_few_and_of_many_cpus(cpus, many_cpus):
    of_marks = links.rows_of_codes(many_cpus, MARK)
    chosen = of_marks[many_cpus.events.cpu[of_marks] % 12 < cpus]
    found = {cpu: own.tolist() for cpu, own in links.by_cpu(many_cpus, chosen)}
    assert found == {cpu: [row for row in chosen.tolist() if many_cpus.events.cpu[row] == cpu] for cpu in range(cpus)}
    assert [cpu for cpu, _ in links.by_cpu(many_cpus, chosen[many_cpus.events.cpu[chosen] != 1])] == [
        cpu for cpu in range(cpus) if cpu != 1
    ]


def test_the_last_event_before_is_one_of_the_same_cpu(many_cpus):
    """Mark 24 is the third one of CPU 0, behind mark 12; row 21 is the other event."""
    cpu = many_cpus.events.cpu.tolist()
    assert (cpu[21], len(cpu)) == (5, 37)
    every = np.arange(len(cpu), dtype=np.uint32)[::-1]
    marks = set(links.rows_of_codes(many_cpus, MARK).tolist())
    expected = [max((other for other in marks if other < row and cpu[other] == cpu[row]), default=NO_EVENT)
                for row in every.tolist()]  # fmt: skip
    assert links.last_of_codes(many_cpus, (MARK,), every).tolist() == expected
    assert links.last_of_codes(many_cpus, (MARK,), np.tile(every, 10)).tolist() == expected * 10
    table = np.zeros(wire.CODE_COUNT, np.bool_)
    table[MARK] = True
    assert links.last_in_table(many_cpus, table, every).tolist() == expected
    assert links.last_of_codes(many_cpus, (wire.code(6, 9),), every[:2]).tolist() == [NO_EVENT] * 2
    assert links.rows_of_codes(many_cpus, MARK, OTHER).tolist() == list(range(37))
    assert links.rows_of_codes(many_cpus, OTHER).tolist() == [21]
    assert links.rows_of_class(many_cpus, wire.WireClass.USER).tolist() == list(range(37))
    assert links.rows_of_codes(many_cpus, wire.code(6, 9)).tolist() == []


@pytest.mark.parametrize("largest", [9, 65_535, 65_536, 1 << 40])
def test_equal_numbers_stay_in_their_order(largest):
    numbers = np.array([largest, 3, 0, largest, 3, largest - 1], np.int64)
    assert stable_order(numbers).tolist() == [2, 1, 4, 5, 0, 3]
    assert stable_order(numbers[:0]).tolist() == []


def test_how_deep_entries_are_within_parts():
    """An exit too many counts for nothing, and no part goes on in the next one."""
    step = np.array([1, 1, -1, 0, -1, -1, 1, 1, -1, -1, 1], np.int8)
    part = np.array([0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 4], np.intp)
    assert links.depth_within(step, part).tolist() == [1, 2, 1, 1, 0, 0, 1, 1, 0, 0, 1]
    assert links.depth_within(step[:0], part[:0]).tolist() == []
    pairs = links.nested_pairs(step[step != 0], part[step != 0])
    assert sorted(zip(*(column.tolist() for column in pairs), strict=True)) == [(0, 3), (1, 2), (6, 7)]
    first, last = links.nested_pairs(step[:0], part[:0])
    assert len(first) == len(last) == 0


def test_threads_by_their_numbers(tmp_path):
    builder = TraceBuilder().time_event(0)
    for time, (pid, tid) in enumerate(((5, 1), (5, 2), (6, 1), (-2 & 0xFFFFFFFF, 1)), 1):
        builder.state("RUNNING", time, pid, tid)
    trace = builder.open(tmp_path)
    pids = np.array([6, 5, 5, 7, 6, 0xFFFFFFFE], np.uint32)
    found = links.thread_rows(trace, pids, np.array([1, 2, 3, 1, 2, 1], np.uint32)).tolist()
    threads = [(int(trace.threads.pid[row]), int(trace.threads.tid[row])) if row else None for row in found]
    assert threads == [(6, 1), (5, 2), None, None, None, (-2, 1)]


def linux_text(seed):
    """Return a schedule of two CPUs and four threads as text, with wake-ups of threads that wait and of others."""
    rng, lines, running, now = random.Random(seed), [], {0: 0, 1: 0}, 5_000_000

    def name(pid, cpu):
        return f"t{pid}:{pid} [120]" if pid else f"swapper/{cpu}:0 [120]"

    for _ in range(rng.randrange(10, 60)):
        now += rng.randrange(1, 50)
        cpu = rng.randrange(2)
        head = f"      t{running[cpu]}-{running[cpu]}   [00{cpu}]     {now / 1e6:.6f}: "
        if rng.random() < 0.45:
            woken = rng.choice((100, 200, 300, 400))
            lines.append(f"{head}sched_waking: comm=t{woken} pid={woken} prio=120 target_cpu=000")
        else:
            runs = rng.choice(
                [pid for pid in (0, 0, 100, 200, 300, 400) if pid not in (running[0], running[1]) or not pid]
            )
            lines.append(
                f"{head}sched_switch:         {name(running[cpu], cpu)} {rng.choice('SSDR')} ==> {name(runs, cpu)}"
            )
            running[cpu] = runs
    return "# a head\n" + "\n".join(lines) + "\n"


def test_wake_ups_of_linux_are_the_last_that_name_a_thread_in_its_wait(tmp_path):
    count = 0
    for seed in range(usually(30, thorough=100, complete=300)):
        (tmp_path / "t.txt").write_text(linux_text(seed))
        trace = open_trace(tmp_path / "t.txt")
        value = trace.catalogue.state_value_of_code[trace.events.code].tolist()
        wakings = np.flatnonzero(trace.events.code == linux.point_codes()[linux.WAKING]).tolist()
        expected = {}
        for thread in range(len(trace.threads)):
            states = trace.states.of(thread).tolist()
            for before, row in zip([-1, *states], states, strict=False):
                can_run = value[row] in (READY, RUNNING)
                if not can_run or (before >= 0 and value[before] in (READY, RUNNING)):
                    continue
                number = int(trace.payloads.words(row)[0])
                causes = [each for each in wakings if before < each < row and trace.payloads.words(each)[0] == number]
                if causes:
                    expected[row] = causes[-1]
        table = link_table(trace, LinkKind.WAKE_UP)
        assert dict(zip(table.to_row.tolist(), table.from_row.tolist(), strict=True)) == expected
        count += len(expected)
    assert count > 100
