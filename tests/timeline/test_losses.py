"""Lanes and pairs where events are missing, drawn as text."""

import pytest

from satview.analysis.verdicts.find import find_verdicts
from satview.events import wire
from satview.linkage.calls import partner
from satview.store.time_ranges import EVERY_CPU, losses, lost_marks
from satview.timeline.lane_tree import LaneKind
from tests.helpers.kev import START, TraceBuilder
from tests.timeline.test_lanes import picture


def holed(release="7.1.0", cpus=1):
    """Thread 5/1 runs from 1000; buffers 2 and 3 are lost from 3000 to 6000; at 8000 it blocks."""
    builder = TraceBuilder(release, cpus=cpus).event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
    builder.state("RUNNING", 1000, 5, 1).call(11, 2000).event(wire.code(3, 1), 2999, (4, 0))
    builder.event(wire.CONTROL_BUFFER, 6000, (4, 0)).time_event(6000)
    builder.event(wire.code(3, 2), 6500, (4, 0)).exit(11, 7000).state("RECEIVE", 8000, 5, 1)
    return builder.state("RUNNING", 8100, 6, 1).event(wire.code(6, 1), 10000)


def test_a_thread_is_unknown_from_a_loss_to_its_next_event(tmp_path):
    trace = holed().open(tmp_path)
    assert (lost_marks(trace) - START).tolist() == [[2999, 6000]]
    assert losses(trace)[0, 2] == EVERY_CPU
    assert picture(trace, "thread 1", 10, kind=LaneKind.THREAD) == "uRRuuuuucc"


def test_so_is_a_cpu(tmp_path):
    assert picture(holed().open(tmp_path), "CPU 0", 3, start=3000) == "uuu"


def test_an_interrupt_without_entry_is_unknown_up_to_its_exit(tmp_path):
    trace = holed().open(tmp_path)
    shown = picture(trace, "interrupts", 20, length=10000)
    assert shown[4:] == "  uuuuuuu       ", "its entry was one cycle before the loss"


def test_no_pair_and_no_caller_across_a_loss(tmp_path):
    trace = holed().open(tmp_path)
    rows = {int(t) - START: i for i, t in enumerate(trace.events.time_cycles)}
    assert trace.thread_name(int(trace.events.thread[rows[2000]])) == "pid 5 1"
    assert trace.thread_name(int(trace.events.thread[rows[7000]])) == "unknown", "another may have run meanwhile"
    assert partner(trace, rows[2000]) is None
    assert partner(trace, rows[7000]) is None


def test_blocks_out_of_order_lose_nothing(tmp_path):
    builder = TraceBuilder()
    for number, time in ((1, 0), (4, 3000), (2, 1000), (3, 2000), (5, 4000)):
        builder.event(wire.CONTROL_BUFFER, time, (number, 0)).time_event(time).event(wire.code(6, 1), time + 10)
    trace = builder.open(tmp_path)
    assert not len(lost_marks(trace))
    assert trace.problems.counts() == {"buffer-order": 3}
    assert trace.buffers.sequence.tolist() == [1, 4, 2, 3, 5]


def test_in_8_0_a_loss_concerns_one_cpu(tmp_path):
    """CPU 1 loses 3000 to 6000; what CPU 0 shows stays, and a thread that runs there is known."""
    builder = TraceBuilder("8.0.0", cpus=2)
    for cpu, tid in ((0, 1), (1, 2)):
        builder.event(wire.CONTROL_BUFFER, 0, (1, 0), cpu=cpu).time_event(0, cpu=cpu)
        builder.state("RUNNING", 1000, 5, tid, cpu=cpu)
    builder.event(wire.code(6, 1), 3000, cpu=1)
    builder.event(wire.CONTROL_BUFFER, 6000, (3, 0), cpu=1).time_event(6000, cpu=1).state("READY", 7000, 5, 2, cpu=1)
    trace = builder.event(wire.code(6, 1), 8000).open(tmp_path)
    assert (losses(trace)[0] - [START, START, 0]).tolist() == [3000, 6000, 1]
    assert picture(trace, "thread 1", 8, kind=LaneKind.THREAD) == "uRRRRRRR"
    assert picture(trace, "thread 2", 8, kind=LaneKind.THREAD) == "uRRuuuur"
    assert "u" not in picture(trace, "CPU 0", 7, start=1000)


def test_a_ring_of_8_0_begins_later_on_a_busy_cpu(tmp_path):
    builder = TraceBuilder("8.0.0", cpus=2).event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
    builder.state("RECEIVE", 10, 5, 1).event(wire.CONTROL_BUFFER, 5000, (40, 0), cpu=1).time_event(5000, cpu=1)
    builder.event(wire.code(6, 1), 5100, cpu=1).event(wire.CONTROL_BUFFER, 6000, (2, 0)).time_event(6000)
    trace = builder.state("READY", 7000, 5, 1).event(wire.code(6, 1), 8000).open(tmp_path)
    assert (losses(trace)[0] - [START, START, 0]).tolist() == [-1, 5000, 1]
    assert picture(trace, "thread 1", 8, kind=LaneKind.THREAD) == "uuuuuuur", "CPU 1 may have woken it"


@pytest.mark.parametrize(("slots", "ends"), [((5, 4, 5), [(2000, 1)]), ((5, 4, 3), []), ((0, 0, 0), [])])
def test_in_8_0_a_trace_ends_sooner_on_a_cpu_whose_next_buffer_nobody_took(slots, ends, tmp_path):
    """CPU 1 runs a thread from 2000 on, which fills its buffer; CPU 0 goes on to 9000. Others are handed over early."""
    builder = TraceBuilder("8.0.0", cpus=2).event(wire.CONTROL_BUFFER, 0, (1, slots[0])).time_event(0)
    builder.state("RUNNING", 1000, 5, 1).state("RECEIVE", 1100, 5, 2).event(wire.code(6, 1), 1600)
    builder.event(wire.CONTROL_BUFFER, 0, (1, slots[2]), cpu=1).time_event(0, cpu=1)
    for step in range(2):
        builder.event(wire.code(6, 2), 1000 + step, cpu=1)
    builder.state("RUNNING", 2000, 6, 1, cpu=1)
    builder.event(wire.CONTROL_BUFFER, 5000, (2, slots[1])).time_event(5000).state("READY", 7000, 5, 2)
    trace = builder.event(wire.code(6, 1), 9000).open(tmp_path)
    window_end = trace.window.end - START
    assert [(start - START, end - START, cpu) for start, end, cpu in losses(trace).tolist()] == [
        (start, window_end, cpu) for start, cpu in ends
    ]
    assert picture(trace, "CPU 1", 6, start=3000) == ("uuuuuu" if ends else "??????")
    assert picture(trace, "thread 2", 9, kind=LaneKind.THREAD) == ("ucuuuuuuu" if ends else "uccccccrr")
    assert not find_verdicts(trace, kinds=["data-loss"])
