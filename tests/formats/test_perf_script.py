"""Lines of perf script and of ftrace by hand: each part of a line, both spellings of switches, and what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.events import linux
from satview.events.states import READY, STATE_BY_NAME
from satview.formats.linux import reader
from satview.formats.linux.reader import looks_like, read_perf_script, score
from satview.formats.linux.records import Schedule
from satview.store.problems import Problems


def read(text: str) -> tuple[Schedule, list[tuple[str, str, int]]]:
    problems = Problems()
    found = read_perf_script(Path("x"), np.frombuffer(text.encode() or b"\n", np.uint8), problems)
    return found, [(each.kind.slug, each.detail, each.count) for each in problems]


@pytest.mark.parametrize(
    ("line", "thread", "process", "cpu", "time_ns", "name"),
    [
        ("client 100 [003] 5.25: irq: x", 100, -1, 3, 5_250_000_000, "client"),
        ("  client 90/100 [000] 0.000000001: irq: x", 100, 90, 0, 1, "client"),
        ("client 0/100 [000] 1.5: irq: x", 100, 0, 0, 1_500_000_000, "client"),
        ("client 90/0 [000] 1.5: irq: x", 0, -1, 0, 1_500_000_000, None),
        ("a b c-100 [0255]   12.5:   irq: x", 100, -1, 255, 12_500_000_000, "a b c"),
        ("<idle>-0 [001] d..2. 1.0: irq: x", 0, -1, 1, 10**9, None),
        ("x-7 ( 12) [001] 1.000000: irq: x", 7, -1, 1, 10**9, "x"),
        ("x-7 (-----) [001] 1.000000: irq: x", 7, -1, 1, 10**9, "x"),
        ("x -1/7 [001] 1.1: 250 irq: x", 7, -1, 1, 1_100_000_000, "x"),
        ("x 7 [001] 1.1: group:irq: x", 7, -1, 1, 1_100_000_000, "x"),
    ],
)
def test_every_part_of_a_line(line, thread, process, cpu, time_ns, name):
    found, problems = read(line + "\n")
    points = found.points
    assert (points.thread.tolist(), points.cpu.tolist(), points.time_ns.tolist()) == ([thread], [cpu], [time_ns])
    assert found.tasks.process == ({thread: process} if process >= 0 else {})
    assert found.tasks.names == ({thread: name} if name else {})
    assert (found.details.text(0), found.details.raw(0)) == (("irq", (("text", "x"),)), b"x")
    assert problems == []
    assert looks_like(line.encode())
    assert score(line.encode(), Path("x")) == 80


@pytest.mark.parametrize(
    "line",
    ["client 100 [003] 5: irq: x", "client [003] 5.0: irq: x", "client 100 003 5.0: irq: x", "client 100 [003] 5.0 irq",
     "client 100 [00003] 5.0: irq: x", "client 100 [003] 5.0000000001: irq: x", "client 12345678901 [003] 5.0: irq: x"],
)  # fmt: skip
def test_what_is_no_such_line(line):
    assert not looks_like(line.encode())
    found, problems = read(line + "\n")
    assert len(found.points.time_ns) == 0
    assert problems == [("foreign-line", "lines that are not events: heads, stacks, or of another program", 1)]


def test_lines_that_are_no_events_are_counted():
    text = "# a head\n  # another\n\n   \nclient 1 [0] 1.0: irq: a=1\n    ffff stack\nrubbish\n\tmore\n"
    assert read(text)[1] == [("foreign-line", "lines that are not events: heads, stacks, or of another program", 3)]
    assert read("")[1] == []
    assert not looks_like(b"client 1 [0] 1.0: irq: a=1\n\0")


@pytest.mark.parametrize("block", [1, 40, 64, 1 << 22])
def test_lines_in_blocks_of_every_size(monkeypatch, block):
    """A block that holds no whole line is none; the last line needs no end."""
    monkeypatch.setattr(reader, "_BLOCK", block)
    lines = [f"c{number} {number} [0] 1.{number}: irq: a={number}" for number in range(1, 9)]
    for end in ("\n", "\r\n"):
        found, problems = read(end.join(lines))
        if block > 40:
            assert found.points.thread.tolist() == list(range(1, 9))
            assert [found.details.text(row)[1] for row in range(8)] == [(("a", str(n)),) for n in range(1, 9)]
            assert problems == []


SWITCH = "prev_comm=a prev_pid=1 prev_prio=10 prev_state={} ==> next_comm=b c next_pid=2 next_prio=-5"


@pytest.mark.parametrize(
    ("rest", "state"),
    [
        (SWITCH.format("S"), "SLEEPING"), (SWITCH.format("D|K"), "UNINTERRUPTIBLE"), (SWITCH.format("R+"), "READY"),
        (SWITCH.format("?"), None), (SWITCH.format("q"), "READY"), ("a:1 [10] T ==> b c:2 [-5]", "STOPPED"),
        ("a:1 [10] X ==> b c:2 [-5]", "DEAD"), ("a:1 [10] ==> b c:2 [-5]", None), ("", None),
    ],
)  # fmt: skip
def test_both_spellings_of_a_switch(rest, state):
    found, problems = read(f"x 7 [3] 1.5: sched_switch: {rest}\n")
    switches = found.switches
    if state is None:
        assert len(switches.time_ns) == 0
        assert problems == [("bad-line", "switches or wake-ups of a spelling that is not known", 1)]
        return
    assert [column.tolist() for column in (
        switches.time_ns, switches.record, switches.cpu, switches.before, switches.before_prio, switches.after,
        switches.after_prio)] == [[1_500_000_000], [0], [3], [1], [10], [2], [-5]]  # fmt: skip
    assert switches.state.tolist() == [READY if state == "READY" else STATE_BY_NAME[state].value]
    assert found.tasks.names == {7: "x", 1: "a", 2: "b c"}
    assert (problems, len(found.points.time_ns)) == ([], 0)


@pytest.mark.parametrize(
    ("rest", "is_known"),
    [("comm=w pid=4 prio=20 target_cpu=002", True), ("comm=w pid=4 prio=20 success=1 target_cpu=002", True),
     ("w:4 [20] success=1 CPU:002", True), ("w:4 [20] CPU:002", True), ("w:4 [20]", False)],
)  # fmt: skip
@pytest.mark.parametrize("event", ["sched_waking", "sched_wakeup", "sched_wakeup_new"])
def test_both_spellings_of_a_wake_up(event, rest, is_known):
    found, problems = read(f"x 7 [3] 1.5: {event}: {rest}\n")
    wakes = found.wakeups
    if is_known:
        columns = (wakes.time_ns, wakes.record, wakes.cpu, wakes.waker, wakes.thread, wakes.prio, wakes.target_cpu)
        assert [column.tolist() for column in columns] == [[1_500_000_000], [0], [3], [7], [4], [20], [2]]
        assert found.tasks.names == {7: "x", 4: "w"}
    else:
        assert problems == [("bad-line", "switches or wake-ups of a spelling that is not known", 1)]


def test_of_two_wake_ups_the_first_one_counts():
    """`sched_wakeup` is a point where there is `sched_waking`, and so is what else happens; names of switches win."""
    wake = "comm=w pid=4 prio=20 target_cpu=002"
    found, problems = read(
        f"x 7 [3] 1.1: sched_waking: {wake}\nx 7 [3] 1.2: sched_wakeup: {wake}\nx 7 [3] 1.3: sched_wakeup_new: {wake}\n"
        "y 7 [3] 1.4: timer_start: a=1 b=c d\ny 7 [3] 1.5: unheard_of:\nx 7 [3] 1.6: sched_switch: "
        "z:7 [1] S ==> v:0 [2]\nx 7 [3] 1.7: sched_switch: odd\n"
    )
    assert found.wakeups.record.tolist() == [0, 2]
    assert found.points.record.tolist() == [1, 3, 4]
    codes = linux.point_codes()
    assert found.points.code.tolist() == [codes["sched_wakeup"], codes["timer_start"], linux.POINT]
    assert found.tasks.names == {7: "z", 4: "w"}
    assert [found.details.text(row) for row in (3, 4)] == [
        ("timer_start", (("a", "1"), ("b", "c"))),
        ("unheard_of", ()),
    ]
    assert found.switches.record.tolist() == [5]
    assert problems == [("bad-line", "switches or wake-ups of a spelling that is not known", 1)]
