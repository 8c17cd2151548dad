"""Parts of the reader of Perfetto by hand: what its files look like, threads and states of satview's own exports."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.base.errors import TraceFormatError
from satview.events import linux
from satview.events.linux import FIRST_TID
from satview.events.states import STATE_BY_NAME
from satview.formats.linux import perfetto, perfetto_kernel
from satview.formats.linux.perfetto_kernel import fields_of, packed
from satview.formats.linux.reader import score
from satview.formats.linux.records import Tasks
from satview.store.problems import Problems
from tests.helpers.columns import ints

protocol = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
TRACK = protocol.TrackEvent
STATE = "state"


def fields(content: bytes) -> perfetto.Fields:
    """Return the fields of the packets of a trace."""
    data = np.frombuffer(content, np.uint8)
    return fields_of(data, ints(0), ints(len(data))).inner(1)[0]


def test_fields_of_one_number_that_are_bytes_and_numbers():
    """Field 1 of two messages: bytes, none and two of them, and a number, at which only `numbers` looks."""
    found = fields(b"\x0a\x06\x0a\x00\x08\x07\x0a\x00" + b"\x0a\x06\x0a\x02ab\x0a\x00")
    assert (found.messages, found.length.tolist()) == (2, [0, -1, 0, 2, 0])
    assert (found.numbers(1, default=5).tolist(), found.texts(1)) == ([7, 5], ["", "ab"])
    assert [rows.tolist() for rows in found.inner(1)[1:]] == [[0, 0, 1, 1]]
    assert found.bytes_rows(1).tolist() == [0, 2, 3, 4], "none are bytes too"


# ---- what the first bytes show -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (b"", 0),
        (b"\x0a\x02\x08\x01", 100),  # a packet with field 1, a number
        (b"\x0a\x02\x08\x01\x0a\x02\x10\x07", 100),
        (b"\x0a\x02\x08\x01\x12\x00", 0),  # then field 2 of the trace, which is no packet
        (b"\x0a\x02\x08\x01\x08\x07", 0),  # then a number
        (b"\x12\x02\x08\x01", 0),
        (b"\x0a\x00", 0),  # a packet without fields
        (b"\x0a\x02\x20\x01", 0),  # field 4, which no packet has
        (b"\x0a\x04\x20\x01\x08\x01", 100),  # beside field 1, as later versions may have it
        (b"\x0a\x02\x08\x80", 0),  # ends inside its number
        (b"\x0a\x02\x08\x01\x0a\x02\x08\x80", 0),
        (b"\x0a\xff\x01\x40\x01", 100),  # longer than what was read: its first field is 8
        (b"\x0a\xff\xff\x01\x42\x01", 100),
        (b"\x0a\xff\x01\x20\x01", 0),
        (b"\x0a\xff\x01", 0),
        (b"\x0a\xff", 0),
        (b"\x0a\xff\x01\xf8\x04", 100),  # field 79: a tag of two bytes
        (b"\x0a\xff\x01\x80\x05", 0),  # field 80
    ],
)
def test_a_file_looks_like_a_trace_by_its_packets(first, expected):
    assert score(first, Path("x")) == expected


def test_the_fields_that_a_packet_may_begin_with():
    known = {number for number in range(1, 128)
             if perfetto.looks_like(b"\x0a\xff\xff\x01" + _varint(number << 3))}  # fmt: skip
    fields_by_number = protocol.TracePacket.DESCRIPTOR.fields_by_number
    names = {fields_by_number[number].name for number in known if number in fields_by_number}
    assert known == {1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 33, 34, 35, 36, 41, 42, 43, 45, 50, 58, 59, 60, 79,
                     98, 117, 118, 120, 122}  # fmt: skip
    assert {"process_tree", "ftrace_events", "clock_snapshot", "timestamp", "trusted_packet_sequence_id", "track_event",
            "interned_data", "trace_config", "compressed_packets", "track_descriptor"} <= names  # fmt: skip


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


@pytest.mark.parametrize(
    ("content", "begin", "length", "numbers"),
    [
        (b"\x01\x02", 0, 2, [1, 2]),
        (b"\x01\x02\x03", 1, 1, [2]),
        (b"\x01\xac\x02\x7f\x80", 0, 5, [1, 300, 127]),  # the last one is cut
        (b"\xac\x02\x05", 0, 3, [300, 5]),
        (b"\x05\x80", 0, 2, [5]),  # the second one is cut
        (b"\x80", 0, 1, []),
        (b"", 0, 0, []),
        (b"\xff" * 9 + b"\x01\x07", 0, 11, [-1, 7]),
        (b"\x80" * 9 + b"\x01", 0, 10, [-(1 << 63)]),
        (b"\x80\x80\x80\x80\x10", 0, 5, [1 << 32]),
    ],
)
def test_packed_numbers(content, begin, length, numbers):
    assert packed(np.frombuffer(content, np.uint8), begin, length).tolist() == numbers


# ---- packets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
def test_packed_packets_are_read_behind_the_others(count):
    inner = protocol.Trace()
    inner.packet.add(timestamp=7)
    inner.packet.add(timestamp=8)
    trace = protocol.Trace()
    trace.packet.add(timestamp=5)
    for _ in range(count):
        trace.packet.add().compressed_packets = zlib.compress(inner.SerializeToString())
    trace.packet.add(timestamp=6)
    data, problems = np.frombuffer(trace.SerializeToString(), np.uint8), Problems()
    _, packets = perfetto._packets(Path("x"), data, problems)
    assert packets.numbers(8).tolist() == [5, *[0] * count, 6, *[7, 8] * count]
    assert list(problems) == []
    damaged = protocol.Trace()
    damaged.packet.add().compressed_packets = b"no zlib"
    damaged.packet.add(timestamp=9)
    data = np.frombuffer(damaged.SerializeToString(), np.uint8)
    found, packets = perfetto._packets(Path("x"), data, problems)
    assert (found.tobytes(), packets.numbers(8).tolist()) == (data.tobytes(), [0, 9])
    [problem] = problems
    assert problem.detail.startswith("a packed part is damaged (Error -3 while decompressing data")
    assert (problem.kind.slug, problem.offset) == ("section-cut", data.tobytes().index(b"no zlib"))


def test_packets_that_are_damaged_or_cut_are_listed():
    good = b"\x0a\x02\x40\x05"  # a packet of time 5
    data, problems = np.frombuffer(good + b"\x0a\x04\x40\x06\x40\x80" + good + b"\x0a\x09\x40", np.uint8), Problems()
    _, packets = perfetto._packets(Path("x"), data, problems)
    assert packets.numbers(8).tolist() == [5, 6, 5]
    assert [(each.kind.slug, each.detail, each.offset, each.count) for each in problems] == [
        ("section-cut", "3 bytes at the end are not a whole packet", 14, 1),
        ("section-cut", "packets are damaged; what precedes the damage is read", None, 1),
    ]


@pytest.mark.parametrize(("size", "limits"), [(4096 + 40 * 28, (40, 1 << 20)), (9000, (1000, 9000))])
def test_a_packed_part_that_grows_too_much_is_refused(monkeypatch, size, limits):
    """By its own bytes (5216 zeros pack to 28) and 4096 more, and by what a part may have at all."""
    assert (perfetto._RATIO_MAX, perfetto._MOST_INNER) == (1000, 64 << 20), "less is enough here"
    monkeypatch.setattr(perfetto, "_RATIO_MAX", limits[0])
    monkeypatch.setattr(perfetto, "_MOST_INNER", limits[1])
    whole, more = (np.frombuffer(zlib.compress(bytes(count)), np.uint8) for count in (size, size + 1))
    assert perfetto._inflated(Path("x"), whole, 0, Problems()).tolist() == [0] * size
    with pytest.raises(TraceFormatError, match="a packed part unpacks to more than a trace does") as refused:
        perfetto._inflated(Path("x"), more, 70, Problems())
    assert refused.value.offset == 70


def test_a_packed_part_unpacks_to_a_thousand_times_its_size():
    """Zeros pack to less than a thousandth; what is behind a packed part counts as a part of it."""
    for size, is_good in ((2_004_096, True), (2_004_097, False)):
        part = np.frombuffer(zlib.compress(bytes(size), 9).ljust(2000, b"-"), np.uint8)
        assert len(part) == 2000
        if is_good:
            assert len(perfetto._inflated(Path("x"), part, 0, Problems())) == size
        else:
            with pytest.raises(TraceFormatError):
                perfetto._inflated(Path("x"), part, 0, Problems())


def test_a_file_whose_packets_unpack_to_more_than_a_trace_has(monkeypatch):
    inner = protocol.Trace()
    inner.packet.add(timestamp=7)
    trace = protocol.Trace()
    for _ in range(2):
        trace.packet.add().compressed_packets = zlib.compress(inner.SerializeToString())
    data, size = np.frombuffer(trace.SerializeToString(), np.uint8), len(inner.SerializeToString())
    assert perfetto._MOST_BYTES == 8 << 30, "less is enough here"
    monkeypatch.setattr(perfetto, "_MOST_BYTES", len(data) + 2 * size)
    assert len(perfetto._packets(Path("x"), data, Problems())[0]) == len(data) + 2 * size
    monkeypatch.setattr(perfetto, "_MOST_BYTES", len(data) + 2 * size - 1)
    with pytest.raises(
        TraceFormatError, match="its packets unpack to more than 8 GiB; record a shorter trace"
    ) as error:
        perfetto._packets(Path("x"), data, Problems())
    assert error.value.offset == data.tobytes().rindex(b"x\x9c"), "of the part that is too much"


def test_names_of_processes_and_threads():
    trace = protocol.Trace()
    tree = trace.packet.add().process_tree
    for pid, command in ((90, "/usr/bin/app"), (91, "plain"), (1, "sbin/init\0-x"), (0, "/idle"), (92, "")):
        tree.processes.add(pid=pid, cmdline=[command] if command else [])
    for tid, group, name in ((100, 90, "one"), (101, 90, ""), (0, 90, "idle"), (1, 0, "init"), (2, 1, "")):
        tree.threads.add(tid=tid, tgid=group, name=name)
    tasks = Tasks()
    perfetto._read_trees(fields(trace.SerializeToString()), tasks)
    assert tasks.process_names == {90: "app", 91: "plain", 1: "init"}
    assert tasks.process == {90: 90, 91: 91, 1: 1, 100: 90, 101: 90, 2: 1}
    assert tasks.names == {100: "one", 1: "init"}


def test_only_numbers_of_satviews_exports_are_taken_from_labels():
    labels = {FIRST_TID + 1: "dumper 3 (writer)", FIRST_TID + 2: "dumper 14", FIRST_TID + 3: "no number",
              FIRST_TID + 4: "a 1234567890", FIRST_TID: "idle 5 (x)", 7: "worker 8 (y)"}  # fmt: skip
    tasks = Tasks(dict(labels))
    perfetto._number_again(tasks)
    assert tasks.shown == {FIRST_TID + 1: 3, FIRST_TID + 2: 14}
    assert tasks.names == labels | {FIRST_TID + 1: "writer", FIRST_TID + 2: ""}


# ---- states of satview's own exports -----------------------------------------------------------------------------


def test_a_row_of_a_table_by_thread_and_time():
    of_thread, at = ints(7, 9, 7, 3), ints(10, 10, 30, 25)
    thread, time = ints(7, 7, 7, 9, 9, 3, 3, 8, 99, 2, 7, 7), ints(10, 30, 25, 10, 30, 25, 10, 10, 10, 10, 9, 31)
    rows = {(7, 10): 0, (9, 10): 1, (7, 30): 2, (3, 25): 3}
    expected = [rows.get(pair, -1) for pair in zip(thread.tolist(), time.tolist(), strict=True)]
    assert perfetto._match(thread, time, of_thread, at).tolist() == expected
    assert expected == [0, 2, -1, 1, -1, 3, -1, -1, -1, -1, -1, -1]
    assert perfetto._match(thread, time, ints(), ints()).tolist() == [-1] * 12
    assert perfetto._match(ints(), ints(), of_thread, at).tolist() == []
    assert perfetto._match(ints(5, 5, 6), ints(4, 4, 4), ints(5, 5), ints(4, 4)).tolist() == [0, 0, -1]


def exported(tmp_path: Path) -> satview.Trace:
    """Return a trace as satview writes it: two threads that take turns on CPU 1, their states as slices.

    The first one waits in RECEIVE from 3 us to 6 us, where nothing follows; a mark of its own is at 4 us, and states
    of a track that is nobody's, of no known name and of another category are none.
    """
    one, two = FIRST_TID + 1, FIRST_TID + 2
    trace = protocol.Trace()

    def packet(time: int) -> object:
        return trace.packet.add(timestamp=time * 1000)

    for track, thread, label in ((11, one, "app 3 (reader)"), (12, two, "app 4")):
        described = trace.packet.add().track_descriptor
        described.uuid, described.thread.pid, described.thread.tid = track, 90, thread
        described.thread.thread_name = label
    idle = trace.packet.add().track_descriptor
    idle.uuid, idle.thread.pid, idle.thread.tid = 14, 90, 0
    bundle = trace.packet.add().ftrace_events
    bundle.cpu = 1
    for time, before, after in ((1, 0, one), (3, one, two), (8, two, one)):
        switch = bundle.event.add(timestamp=time * 1000, pid=before).sched_switch
        switch.prev_pid, switch.prev_prio, switch.next_pid, switch.next_prio = before, 10, after, 21
    for time, kind, track, name, category in (
        (3, TRACK.TYPE_SLICE_BEGIN, 11, "RECEIVE", STATE), (6, TRACK.TYPE_SLICE_END, 11, "", ""),
        (4, TRACK.TYPE_INSTANT, 11, "RECEIVE", "mark"),
        (5, TRACK.TYPE_SLICE_BEGIN, 12, "NO STATE", STATE),
        (5, TRACK.TYPE_SLICE_BEGIN, 13, "READY", STATE), (7, TRACK.TYPE_SLICE_BEGIN, 14, "READY", STATE),
        (8, TRACK.TYPE_SLICE_BEGIN, 12, "MUTEX", STATE), (9, TRACK.TYPE_SLICE_END, 12, "", ""),
        (9, TRACK.TYPE_SLICE_BEGIN, 12, "SEM", STATE), (12, TRACK.TYPE_INSTANT, 11, "at the end", "mark"),
    ):  # fmt: skip
        event = packet(time).track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name = name
            event.categories.append(category)
    packet(12)
    (tmp_path / "x.pftrace").write_bytes(trace.SerializeToString())
    return satview.open_trace(tmp_path / "x.pftrace")


def test_states_of_an_export_become_states_again(tmp_path):
    trace = exported(tmp_path)
    assert [
        (event.time_cycles // 1000, event.cpu, event.tid, event.name, event.args.get("name", ""))
        for event in trace.iter_events()
    ] == [
        (1, 1, 1, "READY", ""), (1, 1, 3, "RUNNING", ""),
        (3, 1, 3, "RECEIVE", ""), (3, 1, 4, "RUNNING", ""),
        (4, 0, 3, "user_slice", "RECEIVE"),
        (5, 0, 4, "user_slice", "NO STATE"), (5, 0, -1, "user_slice", "READY"),
        (6, 0, 3, "UNKNOWN", ""),  # the state ends, and neither another one nor a switch follows
        (7, 0, 0, "user_slice", "READY"),
        (8, 1, 4, "MUTEX", ""), (8, 1, 3, "RUNNING", ""),
        (9, 0, 4, "SEM", ""),
        (12, 0, 3, "user_slice", "at the end"), (12, 0, -1, "trace_end", ""),
    ]  # fmt: skip
    assert dict(trace.header.pairs)["SOURCE"] == "trace of Perfetto, written by satview"
    assert trace.threads.names == ("", "swapper/1", "swapper/0", "reader", "")
    assert trace.threads.tid.tolist() == [-1, 1, 0, 3, 4]
    assert trace.threads.pid.tolist() == [-1, 0, 0, 90, 90]


def test_records_of_every_kind_have_numbers_of_their_own(tmp_path):
    """Each event has the arguments of its own record: of ftrace, a compact wake-up, a state, a frequency, a slice."""
    trace = protocol.Trace()
    bundle = trace.packet.add().ftrace_events
    bundle.event.add(timestamp=10, pid=100).irq_handler_entry.irq = 42
    bundle.compact_sched.waking_timestamp.append(20)
    bundle.compact_sched.waking_pid.append(100)
    state = trace.packet.add(timestamp=30).generic_kernel_task_state_event
    state.tid, state.state = 7 << 32 | 1, 2
    trace.packet.add(timestamp=40).generic_kernel_cpu_freq_event.freq_hz = 1000
    slices = trace.packet.add(timestamp=50).track_event
    slices.type, slices.name = TRACK.TYPE_INSTANT, "mark"
    (tmp_path / "x.pftrace").write_bytes(trace.SerializeToString())
    opened = satview.open_trace(tmp_path / "x.pftrace")
    assert [(event.time_cycles, event.name, event.args) for event in opened.iter_events()] == [
        (10, "irq_handler_entry", {"irq": 42}), (20, "sched_waking", {"pid": 100, "prio": 0, "target_cpu": -1}),
        (20, "READY", {"pid": 100, "prio": 0, "by_pid": -1}),
        (30, "READY", {"pid": FIRST_TID + 1, "prio": 0, "by_pid": -1}), (40, "cpu_frequency", {"freq_hz": 1000}),
        (50, "user_slice", {"name": "mark"}),
    ]  # fmt: skip


def test_a_wake_up_of_an_export_makes_nobody_ready(tmp_path):
    """The state says what the thread became; in a trace of Linux the wake-up does."""
    content = (exported(tmp_path).path).read_bytes()
    trace = protocol.Trace.FromString(content)
    bundle = trace.packet.add().ftrace_events
    bundle.event.add(timestamp=2000, pid=FIRST_TID + 1).sched_waking.CopyFrom(
        protocol.SchedWakingFtraceEvent(comm="x", pid=FIRST_TID + 2, prio=21, target_cpu=1))  # fmt: skip
    (tmp_path / "y.pftrace").write_bytes(trace.SerializeToString())
    opened = satview.open_trace(tmp_path / "y.pftrace")
    assert [event.name for event in opened.iter_events() if event.time_cycles == 2000] == ["sched_waking"]


def test_names_of_slices_by_their_numbers():
    """Each sequence has numbers of its own, 0 is none of them; a name that is spelled out counts."""
    trace = protocol.Trace()
    for sequence, number, name in ((1, 5, "five"), (2, 5, "other five"), (1, 6, "six"), (1, 0, "zero")):
        packet = trace.packet.add(trusted_packet_sequence_id=sequence)
        packet.interned_data.event_names.add(iid=number, name=name)
    shown = ((1, 5, None), (2, 5, None), (2, 6, None), (1, 0, None), (1, 5, "spelled"), (1, 6, None))
    for sequence, number, name in shown:
        packet = trace.packet.add(trusted_packet_sequence_id=sequence)
        packet.track_event.name_iid = number
        if name:
            packet.track_event.name = name
    packets = fields(trace.SerializeToString())
    events, packet = packets.inner(11)
    found = perfetto._names(packets, packet, events)
    assert [found.texts[code] for code in found.code] == ["five", "other five", "", "", "spelled", "six"]


def test_wake_ups_of_an_export():
    """Two moments with one arrow: that with a CPU is who woke, the other one who was woken; what is alone is none."""
    trace = protocol.Trace()
    for time, track, flow, name, value in (
        (20, 11, 70, "cpu", 3), (21, 12, 70, "prio", 4), (30, 12, 72, "cpu", 0), (30, 11, 72, "", 0),
        (40, 11, 73, "cpu", 1), (41, 12, 74, "", 0),
    ):  # fmt: skip
        event = trace.packet.add(timestamp=time).track_event
        event.type, event.track_uuid, event.name = TRACK.TYPE_INSTANT, track, "wakes"
        event.categories.append("wake-up")
        event.flow_ids.append(flow)
        if name:
            event.debug_annotations.add(name=name, int_value=value)
    slices = perfetto._slices(fields(trace.SerializeToString()), perfetto._Tracks({11: 100, 12: 200}), Problems())
    wakes = slices.wakeups
    columns = (wakes.time_ns, wakes.record, wakes.cpu, wakes.waker, wakes.thread, wakes.prio, wakes.target_cpu)
    assert [column.tolist() for column in columns] == [
        [20, 30], [0, 2], [3, 0], [100, 200], [200, 100], [0, 0], [-1, -1]
    ]  # fmt: skip
    assert len(slices.points.time_ns) == len(slices.states.time_ns) == 0


def test_states_that_switches_show_are_theirs():
    """Thread 5 leaves at 10 and gets a CPU at 20; thread 6 has a state between, which no switch shows."""
    ready, receive = STATE_BY_NAME["READY"].value, STATE_BY_NAME["RECEIVE"].value
    none = ints(0, 0)
    switches = perfetto.CpuSwitches(ints(10, 20), ints(0, 1), none, ints(5, 7), none, none, ints(7, 5), none)
    states = perfetto.States(ints(10, 12), ints(100, 101), none, ints(5, 6), ints(receive, ready), none)
    ends = perfetto.States(ints(20, 30), ints(0, 1), none, ints(5, 6), none, none)
    found, left = perfetto._with_states(switches, perfetto._Slices(None, None, states, ends, None), perfetto.States())
    assert found.state.tolist() == [receive, perfetto.UNKNOWN]
    assert list(zip(left.time_ns.tolist(), left.thread.tolist(), left.record.tolist(), strict=True)) == [
        (12, 6, 101), (30, 6, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("switch", "state", "of_kernel", "is_followed"),
    [((5, 8), 7, (7, "RUNNING"), False), ((8, 5), 7, (7, "RUNNING"), True), ((7, 8), 5, (7, "RUNNING"), True),
     ((7, 8), 7, (5, "RUNNING"), True), ((7, 8), 7, (5, "READY"), False)],
)  # fmt: skip
def test_what_follows_the_end_of_a_state(switch, state, of_kernel, is_followed):
    """The state of thread 5 ends at 20; a switch to it, another state, or that it runs on some CPU follows."""
    zero, at = ints(0), ints(20)
    switches = perfetto.CpuSwitches(at, zero, zero, ints(switch[0]), zero, zero, ints(switch[1]), zero)
    states = perfetto.States(at, ints(100), zero, ints(state), zero, zero)
    ends = perfetto.States(at, ints(101), zero, ints(5), zero + perfetto.UNKNOWN, zero)
    runs = perfetto.States(at, zero, zero, ints(of_kernel[0]), ints(STATE_BY_NAME[of_kernel[1]].value), zero)
    _, left = perfetto._with_states(switches, perfetto._Slices(None, None, states, ends, None), runs)
    assert (101 not in left.record.tolist()) is is_followed


# ---- details -----------------------------------------------------------------------------------------------------


def test_arguments_of_ftrace_events(monkeypatch):
    """By name where the package has the protocol, by number where it is missing."""
    event = protocol.IrqHandlerEntryFtraceEvent(irq=42, name="eth0").SerializeToString()
    unnamed_event = protocol.IrqHandlerEntryFtraceEvent(irq=0, name="").SerializeToString()
    end = len(event) + 3
    data = np.frombuffer(b"..." + event + unnamed_event, np.uint8)
    spans = perfetto_kernel.RecordSpans(ints(5, 9, 12), ints(36, 4000, 36), ints(3, 3, end), ints(end, end, len(data)))
    slices = perfetto_kernel.SliceNames(ints(70, 71), perfetto.TextColumn(ints(1, 0), ("", "called")))
    details = perfetto_kernel.PerfettoDetails(data, spans, slices)
    assert details.text(5) == ("irq_handler_entry", (("irq", 42), ("name", "eth0")))
    assert details.text(12) == ("irq_handler_entry", (("irq", 0), ("name", "")))
    unnamed = (("field 1", 42), ("field 2", "eth0"), ("names", "pip install perfetto shows them"))
    assert details.text(9) == ("ftrace event 4000", unnamed)
    assert [details.text(record) for record in (4, 6, 10)] == [("", ())] * 3
    assert [details.text(record) for record in (70, 71)] == [("", (("name", "called"),)), ("", (("name", ""),))]
    assert [details.raw(record) for record in (5, 6, 9, 70)] == [event, b"", event, b""]
    monkeypatch.setattr(perfetto_kernel, "import_module", lambda _name: (_ for _ in ()).throw(ImportError))
    perfetto_kernel._protocol.cache_clear()
    assert details.text(5) == ("ftrace event 36", unnamed)
    perfetto_kernel._protocol.cache_clear()


# ---- columns of messages -----------------------------------------------------------------------------------------


def test_texts_of_which_few_are_different():
    """Of each message the last one that it has; a text counts with 512 bytes, and text 0 is empty."""
    trace = protocol.Trace()
    texts = ("one", "two", None, "one", "", "n" * 600, "n" * 513, "n" * 512, "müll")
    for text in texts:
        event = trace.packet.add().track_event
        event.track_uuid = 5
        if text is not None:
            event.name = text
    events, _ = fields(trace.SerializeToString()).inner(11)
    found = events.text_column(23)
    assert [found.texts[code] for code in found.code.tolist()] == [(text or "")[:512] for text in texts]
    assert (found.texts[0], len(set(found.texts)), len(found.texts)) == ("", 5, 5)
    assert events.texts(23) == [text or "" for text in texts]
    assert events.numbers(11).tolist() == [5] * 9
    assert (events.numbers(12).tolist(), events.numbers(12, -7).tolist()) == ([0] * 9, [-7] * 9)


def compact(**columns: list[int] | list[str]) -> perfetto.Fields:
    """Return the compact parts of two bundles, the second with each column twice as long, but for its texts."""
    trace = protocol.Trace()
    for times in (1, 2):
        part = trace.packet.add().ftrace_events.compact_sched
        for name, values in columns.items():
            getattr(part, name).extend(values * (1 if name == "intern_table" else times))
    bundles, _ = fields(trace.SerializeToString()).inner(1)
    return bundles.inner(4)[0]


def test_switches_of_compact_bundles():
    """Times are differences that begin again in each bundle; who leaves a CPU is who had got it before."""
    tasks = Tasks({2: "known"})
    parts = compact(switch_timestamp=[100, 5, 7], switch_prev_state=[1, 2], switch_next_pid=[1, 2, 3],
                    switch_next_prio=[10, 20], switch_next_comm_index=[0, 1, 9], intern_table=["a", "b"])  # fmt: skip
    found = perfetto.compact_switches(parts, ints(4, 4), 50, tasks)
    assert found.time_ns.tolist() == [100, 105, 112, 100, 105, 112, 212, 217, 224]
    assert found.record.tolist() == list(range(50, 59))
    assert found.cpu.tolist() == [4] * 9
    assert found.after.tolist() == [1, 2, 3] * 3
    assert found.after_prio.tolist() == [10, 20, 0, 10, 20, 10, 20, 0, 0]
    sleeping, ready, waits = (STATE_BY_NAME[name].value for name in ("SLEEPING", "READY", "UNINTERRUPTIBLE"))
    assert found.state.tolist() == [sleeping, waits, ready, sleeping, waits, sleeping, waits, ready, ready]
    # In time order on the CPU: rows 0 and 3 at 100, 1 and 4 at 105, 2 and 5 at 112, then 6, 7 and 8.
    assert found.before.tolist() == [-1, 1, 2, 1, 2, 3, 3, 1, 2]
    assert found.before_prio.tolist() == [0, 10, 20, 10, 20, 0, 10, 20, 0]
    assert tasks.names == {1: "a", 2: "known"}, "index 9 is no text"
    apart = perfetto.compact_switches(parts, ints(4, 7), 0, Tasks())
    assert apart.cpu.tolist() == [4] * 3 + [7] * 6
    assert apart.before.tolist() == [-1, 1, 2, -1, 1, 2, 3, 1, 2]
    assert len(perfetto.compact_switches(compact(intern_table=["a"]), ints(0, 0), 0, Tasks()).time_ns) == 0
    bare = perfetto.compact_switches(compact(switch_timestamp=[7]), ints(4, 7), 0, Tasks())
    assert (bare.before.tolist(), bare.after.tolist(), bare.state.tolist()) == ([-1] * 3, [-1] * 3, [ready] * 3)
    assert (bare.before_prio.tolist(), bare.after_prio.tolist()) == ([0] * 3, [0] * 3)


def test_wake_ups_of_compact_bundles():
    tasks = Tasks()
    found = perfetto.compact_wakeups(
        compact(waking_timestamp=[100, 5], waking_pid=[1, 2], waking_prio=[10], waking_target_cpu=[3, 2],
                waking_comm_index=[1, 0], intern_table=["a", "b"]),
        ints(4, 7), 50, tasks,
    )  # fmt: skip
    assert found.time_ns.tolist() == [100, 105, 100, 105, 205, 210]
    assert (found.record.tolist(), found.cpu.tolist()) == (list(range(50, 56)), [4, 4, 7, 7, 7, 7])
    assert (found.waker.tolist(), found.thread.tolist()) == ([-1] * 6, [1, 2] * 3)
    assert found.prio.tolist() == [10, 0, 10, 10, 0, 0]
    assert found.target_cpu.tolist() == [3, 2] * 3
    assert tasks.names == {1: "b", 2: "a"}
    assert len(perfetto.compact_wakeups(compact(switch_next_pid=[1]), ints(0, 0), 0, Tasks()).time_ns) == 0
    bare = perfetto.compact_wakeups(compact(waking_timestamp=[7]), ints(4, 7), 0, Tasks())
    assert (bare.thread.tolist(), bare.target_cpu.tolist(), bare.prio.tolist()) == ([-1] * 3, [-1] * 3, [0] * 3)


def test_events_of_bundles():
    """Switches, wake-ups of the first kind that is there, all else as points, and where arguments are."""
    trace = protocol.Trace()
    first, second = (trace.packet.add().ftrace_events for _ in range(2))
    first.cpu, second.cpu, second.lost_events = 3, 5, True
    for time, bundle, kind, values in (
        (10, first, "sched_switch", {"prev_comm": "a", "prev_pid": 1, "prev_prio": 9, "prev_state": 1, "next_comm": "b",
                                     "next_pid": 2, "next_prio": 8}),
        (11, first, "sched_waking", {"comm": "w", "pid": 4, "prio": 7, "target_cpu": 2}),
        (12, second, "sched_wakeup", {"comm": "x", "pid": 4, "prio": 7, "target_cpu": 2}),
        (13, second, "sched_wakeup_new", {"comm": "new", "pid": 6, "prio": 5, "success": 1}),
        (14, second, "irq_handler_entry", {"irq": 1, "name": "eth0"}),
        (15, second, "sched_switch", {"prev_comm": "b", "prev_pid": 2, "prev_state": 0, "next_comm": ""}),
        (16, second, "kmalloc", {"call_site": 5}), (17, second, "cpu_idle", {}),
    ):  # fmt: skip
        event = bundle.event.add(timestamp=time, pid=70 + time)
        getattr(event, kind).SetInParent()
        for name, value in values.items():
            setattr(getattr(event, kind), name, value)
    content = trace.SerializeToString()
    tasks, problems, data = Tasks(), Problems(), np.frombuffer(content, np.uint8)
    found = perfetto._ftrace(data, fields(content).inner(1)[0], tasks, problems)
    switches, wakes, points = found.switches, found.wakeups, found.points
    assert [column.tolist() for column in (switches.time_ns, switches.record, switches.cpu, switches.before,
                                           switches.before_prio, switches.after, switches.after_prio)] == [
        [10, 15], [0, 5], [3, 5], [1, 2], [9, 0], [2, 0], [8, 0]
    ]  # fmt: skip
    assert switches.state.tolist() == [STATE_BY_NAME["SLEEPING"].value, STATE_BY_NAME["READY"].value]
    columns = (wakes.time_ns, wakes.record, wakes.cpu, wakes.waker, wakes.thread, wakes.prio, wakes.target_cpu)
    assert [column.tolist() for column in columns] == [
        [11, 13], [1, 3], [3, 5], [81, 83], [4, 6], [7, 5], [2, -1]
    ]  # fmt: skip
    codes = linux.point_codes()
    assert points.code.tolist() == [codes["sched_wakeup"], codes["irq_handler_entry"], linux.POINT, codes["cpu_idle"]]
    assert [column.tolist() for column in (points.time_ns, points.record, points.cpu, points.thread)] == [
        [12, 14, 16, 17], [2, 4, 6, 7], [5, 5, 5, 5], [82, 84, 86, 87]
    ]  # fmt: skip
    assert (found.records.record.tolist(), found.records.number.tolist()[:2]) == ([2, 4, 6, 7], [17, 36])
    assert data[found.records.begin[1] : found.records.end[1]].tobytes().endswith(b"eth0")
    assert tasks.names == {1: "a", 2: "b", 4: "w", 6: "new"}
    assert [(each.kind.slug, each.detail) for each in problems] == [
        ("lost-events", "CPU 5 has lost events before this bundle")
    ]


def test_names_of_tracks_and_of_their_children():
    """A thread's track, those below it, the lowest first; one below itself; processes with and without a name."""
    trace = protocol.Trace()
    for uuid, parent, thread, name in ((4, 3, None, ""), (7, 4, None, ""), (1, 0, (90, 100), "client"),
                                       (2, 1, None, ""), (3, 1, None, ""), (5, 9, None, ""), (6, 1, (90, 101), ""),
                                       (8, 8, None, ""), (10, 11, None, ""), (11, 10, None, "")):  # fmt: skip
        track = trace.packet.add().track_descriptor
        track.uuid, track.parent_uuid = uuid, parent
        if thread:
            track.thread.pid, track.thread.tid, track.thread.thread_name = (*thread, name)
    for uuid, label in ((20, "thread 7:1"), (21, "thread 7:2"), (22, "thread 7:1 of"), (23, "a thread 7:1")):
        track = trace.packet.add().track_descriptor
        track.uuid, track.description = uuid, label
    for pid, name in ((90, "app"), (91, "")):
        process = trace.packet.add().track_descriptor.process
        process.pid, process.process_name = pid, name
    tasks, tracks = Tasks({101: "kept"}), perfetto._Tracks()
    tracks.read(fields(trace.SerializeToString()), tasks, {7 << 32 | 1: 55})
    assert tracks.thread == {1: 100, 6: 101, 2: 100, 3: 100, 4: 100, 7: 100, 20: 55}
    assert (tasks.names, tasks.process, tasks.process_names) == (
        {100: "client", 101: "kept"}, {100: 90, 101: 90}, {90: "app"}
    )  # fmt: skip
