"""One schedule of Linux with everything that records can say, in every form: all columns of all events."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from satview.base.errors import TraceFormatError
from satview.base.time import Clock
from satview.events.spec import Release
from satview.formats.linux import reader
from satview.store.trace import Trace
from tests.helpers import linux_scene, perf_data, trace_dat

IDLE_0, IDLE_1 = ("swapper/0", 0, 120), ("swapper/1", 0, 120)
CLIENT, SERVER, WORKER = ("client", 100, 110), ("server", 200, 100), ("worker", 300, 130)
NAMES = ((100, "client"), (200, "server"), (300, "worker"))


def scene() -> linux_scene.Events:
    """Return CPU, millisecond and record of each; flags of states are S 1, D 2, T 4, X 16, Z 32, I 128."""
    switch, waking = trace_dat.switch, trace_dat.waking
    return (
        (0, 0, switch(0, (*IDLE_0, 0), CLIENT)),
        (0, 1, trace_dat.interrupt(100, 42, "eth0")),
        (0, 2, waking(100, "server", 200, 100, 1)),
        (1, 2.5, switch(0, (*IDLE_1, 0), SERVER)),
        (0, 3, switch(100, (*CLIENT, 1), IDLE_0)),
        (1, 4, switch(200, (*SERVER, 2), WORKER)),
        (1, 5, waking(300, "worker", 300, 130, 1)),  # it runs already
        (1, 6, switch(300, (*WORKER, 0x100), SERVER)),  # preempted
        (1, 7, switch(200, (*SERVER, 4), WORKER)),
        (1, 8, switch(100, (*CLIENT, 0x20), IDLE_1)),  # but the worker had this CPU
        (1, 9, switch(200, (*SERVER, 0x10), WORKER)),  # but nobody had it
        (0, 300, waking(0, "client", 100, 110, 0)),
        (0, 301, switch(0, (*IDLE_0, 0), CLIENT)),
        (0, 302, switch(100, (*CLIENT, 0x80), IDLE_0)),
    )


# Millisecond, CPU, thread, event, the numbers that are stored of it.
EVENTS = """\
0    0 swapper/0 READY             pid=0 prio=120 by_pid=100
0    0 client    RUNNING           pid=100 prio=110 prev_pid=0
1    0 client    irq_handler_entry irq=42 name=eth0
2    0 client    sched_waking      pid=200 prio=100 target_cpu=1
2    0 server    READY             pid=200 prio=100 by_pid=100
2.5  1 swapper/1 READY             pid=0 prio=120 by_pid=200
2.5  1 server    RUNNING           pid=200 prio=100 prev_pid=0
3    0 client    SLEEPING          pid=100 prio=110 by_pid=0
3    0 swapper/0 RUNNING           pid=0 prio=120 prev_pid=100
4    1 server    UNINTERRUPTIBLE   pid=200 prio=100 by_pid=300
4    1 worker    RUNNING           pid=300 prio=130 prev_pid=200
5    1 worker    sched_waking      pid=300 prio=130 target_cpu=1
6    1 worker    READY             pid=300 prio=130 by_pid=200
6    1 server    RUNNING           pid=200 prio=100 prev_pid=300
7    1 server    STOPPED           pid=200 prio=100 by_pid=300
7    1 worker    RUNNING           pid=300 prio=130 prev_pid=200
8    1 worker    UNKNOWN           pid=300 prio=0 by_pid=-1
8    1 client    DEAD              pid=100 prio=110 by_pid=0
8    1 swapper/1 RUNNING           pid=0 prio=120 prev_pid=100
9    1 server    DEAD              pid=200 prio=100 by_pid=300
9    1 worker    RUNNING           pid=300 prio=130 prev_pid=200
300  0 swapper/0 sched_waking      pid=100 prio=110 target_cpu=0
300  0 client    READY             pid=100 prio=110 by_pid=0
301  0 swapper/0 READY             pid=0 prio=120 by_pid=100
301  0 client    RUNNING           pid=100 prio=110 prev_pid=0
302  0 client    SLEEPING          pid=100 prio=110 by_pid=0
302  0 swapper/0 RUNNING           pid=0 prio=120 prev_pid=100
""".splitlines()
# Compact bundles say who gets a CPU; who leaves it is who got it before.
AT_8_AND_9 = """\
8    1 worker    DEAD              pid=300 prio=130 by_pid=0
8    1 swapper/1 RUNNING           pid=0 prio=120 prev_pid=300
9    1 swapper/1 READY             pid=0 prio=120 by_pid=300
9    1 worker    RUNNING           pid=300 prio=130 prev_pid=0
""".splitlines()
COMPACT = [line.replace("prev_pid=0", "prev_pid=-1") if line[:3] in ("0  ", "2.5") else line
           for line in EVENTS[1:5] + EVENTS[6:16] + AT_8_AND_9 + EVENTS[21:]]  # fmt: skip
TEXT = """\
     swapper     0 [000]     5.000000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=100 next_prio=110
      client 90/100 [000]     5.001000000: irq:irq_handler_entry: irq=42 name=eth0
      client 90/100 [000]     5.002000: sched:sched_waking: comm=server pid=200 prio=100 target_cpu=001
      <idle>-0     [001] d..2.     5.002500: sched_switch:         swapper/1:0 [120] R ==> server:200 [100]
      client-100   [000]     5.003: sched_switch:         client:100 [110] S ==> swapper/0:0 [120]
      server-200   (  200) [001]    5.004000: sched_switch:         server:200 [100] D ==> worker:300 [130]
      worker 90/300 [001]     5.005000: sched_waking: worker:300 [130] success=1 CPU:001
      worker 90/300 [001]     5.006000: sched_switch:  worker:300 [130] R+ ==> server:200 [100]
      server 200/200 [001]     5.007000: sched_switch:  server:200 [100] T ==> worker:300 [130]
      client 90/100 [001]     5.008000: sched_switch:  client:100 [110] Z ==> swapper/1:0 [120]
      server 200/200 [001]     5.009000: sched_switch:  server:200 [100] X ==> worker:300 [130]
     swapper     0 [000]     5.300000: sched:sched_waking: comm=client pid=100 prio=110 success=1 target_cpu=000
     swapper     0 [000]     5.301000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=client next_pid=100 next_prio=110
      client   100 [000]     5.302000: sched:sched_switch: prev_comm=client prev_pid=100 prev_prio=110 prev_state=I ==> next_comm=swapper/0 next_pid=0 next_prio=120
"""  # noqa: E501
STORED = {"pid", "prio", "by_pid", "prev_pid", "target_cpu", "irq", "name"}
OF_RECORDS = {"prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"}
FORMS: dict[str, tuple[Callable[[], bytes], str, list[str], dict[int, int]]] = {
    "trace.dat": (lambda: linux_scene.as_trace_dat(scene(), NAMES), "trace.dat of trace-cmd, version 6", EVENTS, {}),
    "perf.data": (lambda: linux_scene.as_perf_data(events=scene()), "perf.data of perf", EVENTS, {100: 90, 300: 90}),
    "perf-script": (TEXT.encode, "text of perf script or ftrace", EVENTS, {100: 90, 300: 90}),
    "perfetto": (lambda: linux_scene.as_perfetto(events=scene()), "trace of Perfetto", EVENTS, {100: 90}),
    "compact": (lambda: linux_scene.as_perfetto(is_compact=True, events=scene()), "trace of Perfetto", COMPACT,
                {100: 90}),
}  # fmt: skip
LOST = ("switches are missing: a thread leaves a CPU that another one had; the state of that one is unknown from there "
        "on")  # fmt: skip


def told(trace: Trace) -> list[str]:
    """Return events as `EVENTS` has them: no argument that only some forms have."""
    lines = []
    for event in trace.iter_events():
        of_switch = event.name in ("RUNNING", "READY", "SLEEPING", "UNINTERRUPTIBLE", "STOPPED", "DEAD", "UNKNOWN")
        names = STORED - {"name", "target_cpu"} if of_switch else STORED
        names = names - {"prev_pid"} if event.name != "RUNNING" else names
        args = " ".join(f"{name}={value}" for name, value in event.args.items() if name in names)
        ms = (event.time_cycles - linux_scene.START) / linux_scene.MS
        name = event.thread_name.rpartition("(")[2].rstrip(")")
        lines.append(f"{ms:<4g} {event.cpu} {name:9} {event.name:17} {args}")
    return lines


def problems(trace: Trace) -> list[tuple[str, str, int | None, int]]:
    return [(problem.kind.slug, problem.detail, problem.offset, problem.count) for problem in trace.problems]


@pytest.mark.parametrize("form", FORMS)
def test_every_event_of_every_form(tmp_path, form):
    content, title, events, processes = FORMS[form]
    trace = linux_scene.opened(tmp_path, content())
    assert told(trace) == events
    assert trace.header.pairs == (("SYS_RELEASE", "Linux"), ("SOURCE", title))
    assert (trace.cpu_count, trace.slot_count, trace.byte_order) == (2, len(events), "little")
    threads = trace.threads
    assert threads.tid.tolist() == [-1, 1, 0, 100, 200, 300]
    assert threads.pid.tolist() == [-1, 0, 0, *(processes.get(tid, tid) for tid in (100, 200, 300))]
    assert threads.names == ("", "swapper/1", "swapper/0", "client", "server", "worker")
    assert dict(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True)) == {
        -1: "", 0: "swapper", processes.get(100, 100): "client", 200: "server", processes.get(300, 300): "client"
        if 300 in processes else "worker",
    }  # fmt: skip
    lost = [] if form == "compact" else [("lost-events", LOST, None, 2)]
    assert problems(trace) == [*lost, ("foreign", f"{title}: names, states and events are those of Linux", None, 1)]
    if lost:
        assert next(iter(trace.problems)).time_cycles == linux_scene.START + 8 * linux_scene.MS
    if form in ("trace.dat", "perf.data"):
        first, *_, second = [trace.payloads.decode(row).arguments for row in range(5)]
        assert [(each.name, each.value, each.note) for each in first] == [
            ("tracepoint", "sched_switch", ""), ("pid", 0, ""), ("prio", 120, ""), ("by_pid", 100, "client"),
            ("prev_comm", "swapper/0", ""), ("prev_pid", 0, ""), ("prev_prio", 120, ""), ("prev_state", 0, ""),
            ("next_comm", "client", ""), ("next_pid", 100, ""), ("next_prio", 110, ""),
        ]  # fmt: skip
        assert [(each.name, each.value) for each in second] == [
            ("tracepoint", "sched_waking"), ("pid", 200), ("prio", 100), ("by_pid", 100), ("comm", "server"),
            ("target_cpu", 1),
        ]  # fmt: skip
        assert trace.payloads.raw(4)[:28] == trace_dat.waking(100, "server", 200, 100, 1)[:28]


@pytest.mark.parametrize("form", ["trace.dat", "perf.data"])
def test_the_other_byte_order(tmp_path, monkeypatch, form):
    monkeypatch.setattr(trace_dat, "ORDER", ">")
    trace = linux_scene.opened(tmp_path, FORMS[form][0]())
    assert told(trace) == EVENTS
    assert trace.threads.names == ("", "swapper/1", "swapper/0", "client", "server", "worker")
    assert trace.payloads.decode(2).arguments[1].value == "eth0"


def test_what_is_odd_about_a_file_of_trace_cmd(tmp_path):
    """The host in its options, an event without a format, a page after a loss, and one that is cut."""
    content = linux_scene.as_trace_dat(scene(), NAMES)
    at = content.index(b"options  \0") + 10
    added = struct.pack("<HI", 5, 12) + b"Linux 6.1 x\0"
    head, body = content[:at] + added + content[at:], bytearray(content)
    pages_at = content.index(b"flyrecord\0") + 10
    first = struct.unpack("<Q", content[pages_at : pages_at + 8])[0]
    head = head[:first]  # the padding in front of the pages was longer than what is added
    body[first + 8 : first + 16] = struct.pack("<Q", struct.unpack("<Q", body[first + 8 : first + 16])[0] | 1 << 31)
    body = body.replace(struct.pack("<H", 200) + bytes(2) + struct.pack("<I", 100),
                        struct.pack("<H", 999) + bytes(2) + struct.pack("<I", 100))  # fmt: skip
    trace = linux_scene.opened(tmp_path, head + bytes(body[first:-1000]))
    assert trace.header.pairs == (
        ("SYS_RELEASE", "Linux"), ("SOURCE", "trace.dat of trace-cmd, version 6"), ("UNAME", "Linux 6.1 x")
    )  # fmt: skip
    assert [line for line in told(trace) if " 1 " in line[4:8]] == []
    assert [event.args["tracepoint"] for event in trace.iter_events() if event.name == "tracepoint"] == [
        "tracepoint 999"
    ]
    second = first + 2 * trace_dat.PAGE
    assert problems(trace) == [
        ("section-cut", "1,000 bytes of the pages of CPU 1 are missing", second, 1),
        ("section-cut", "the last page of CPU 1 has 3096 of 4096 bytes", second, 1),
        ("lost-events", "CPU 0 has lost events before this page", first, 1),
        ("unknown-events", "the file brings no format for these events", None, 1),
        ("foreign", "trace.dat of trace-cmd, version 6: names, states and events are those of Linux", None, 1),
    ]


def _record(kind: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, 0, len(body) + 8) + body


def test_what_is_odd_about_a_file_of_perf(tmp_path):
    """Threads by forks and names, losses of both kinds, samples of something else, and a record of no length."""
    sample = perf_data.sample(5_000_000_000, 1, 90, trace_dat.switch(0, (*IDLE_1, 0), CLIENT))
    other = sample[:8] + struct.pack("<Q", 99) + sample[16:]  # an identifier that is no tracepoint's
    unknown = bytearray(perf_data.sample(5_000_000_500, 1, 90, trace_dat.interrupt(100, 1, "x")))
    unknown[60:62] = struct.pack("<H", 999)
    records = [
        perf_data.name(90, 90, "shell"), perf_data.name(90, 100, "runner"),
        _record(7, struct.pack("<IIIIQ", 91, 90, 400, 100, 0)),  # a fork: process 91, thread 400
        sample, other, bytes(unknown), perf_data.lost(5), _record(13, struct.pack("<Q", 7)),
    ]  # fmt: skip
    content = perf_data.perf_data([*records, bytes(16)])
    trace = linux_scene.opened(tmp_path, content)
    data_at = struct.unpack("<Q", content[40:48])[0]
    assert told(trace)[:2] == [EVENTS[5].replace("2.5", "0  ").replace("by_pid=200", "by_pid=100"),
                               EVENTS[1].replace(" 0 client", " 1 client")]  # fmt: skip
    assert problems(trace) == [
        ("section-cut", "a record of no length; what follows it is left out", data_at + sum(map(len, records)), 1),
        ("lost-events", "perf was too slow: samples are missing", data_at + sum(map(len, records[:6])), 12),
        ("unknown-events", "the file brings no format for these tracepoints", None, 1),
        ("foreign", "perf.data of perf: names, states and events are those of Linux", None, 1),
    ]
    assert trace.threads.pid.tolist() == [-1, 0, 90]
    assert trace.processes.names == ("", "swapper", "shell")
    with pytest.raises(TraceFormatError, match="the file ends inside the formats of tracepoints"):
        linux_scene.opened(tmp_path, content[: data_at + len(records[0]) + 8])


@pytest.mark.parametrize(
    ("lacking", "what"), [(2, "threads"), (4, "times"), (1 << 7, "CPUs"), (1 << 10, "fields of tracepoints")]
)
def test_samples_that_lack_something(tmp_path, monkeypatch, lacking, what):
    monkeypatch.setattr(perf_data, "_SAMPLE_TYPE", perf_data._SAMPLE_TYPE & ~lacking)
    with pytest.raises(TraceFormatError, match=f"its samples have no {what}"):
        linux_scene.opened(tmp_path, FORMS["perf.data"][0]())


def test_slices_of_perfetto(tmp_path):
    """Names that are spelled out and numbered by a sequence, tracks below tracks, and what is left out."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protocol

    trace = protocol.Trace()

    def packet(time=0, sequence=0, clock=0):
        new = trace.packet.add(timestamp=time)
        if sequence:
            new.trusted_packet_sequence_id = sequence
        if clock:
            new.timestamp_clock_id = clock
        return new

    process = packet().track_descriptor
    process.uuid, process.process.pid, process.process.process_name = 1, 90, "app"
    thread = packet().track_descriptor
    thread.uuid, thread.parent_uuid = 2, 1
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 90, 100, "client"
    child = packet().track_descriptor
    child.uuid, child.parent_uuid, child.name = 3, 2, "of the client"
    for sequence, text in ((5, "numbered by 5"), (6, "numbered by 6")):
        names = packet(sequence=sequence).interned_data.event_names
        names.add(iid=1, name="another")
        names.add(iid=2, name=text)
    kind = protocol.TrackEvent
    for time, sequence, clock, what, track, name, number in (
        (1000, 0, 0, kind.TYPE_SLICE_BEGIN, 2, "spelled", 0),
        (2000, 5, 0, kind.TYPE_INSTANT, 3, "", 2),
        (3000, 6, 0, kind.TYPE_SLICE_BEGIN, 2, "", 2),
        (3500, 6, 0, kind.TYPE_SLICE_END, 2, "", 0),
        (4000, 5, 0, kind.TYPE_INSTANT, 77, "", 9),  # of a track and with a number that nothing describes
        (5000, 0, 0, kind.TYPE_COUNTER, 2, "", 0),
        (6000, 0, 64, kind.TYPE_INSTANT, 2, "odd", 0),
        (6500, 0, 63, kind.TYPE_INSTANT, 2, "even", 0),
        (7000, 7, 0, kind.TYPE_INSTANT, 2, "of a sequence with a clock", 0),
    ):
        event = packet(time, sequence, clock).track_event
        event.type, event.track_uuid = what, track
        if name:
            event.name = name
        if number:
            event.name_iid = number
    packet(sequence=7).trace_packet_defaults.timestamp_clock_id = 64
    packet(sequence=5).trace_packet_defaults.timestamp_clock_id = 6
    opened_trace = linux_scene.opened(tmp_path, trace.SerializeToString())
    client, nobody = "90/100", "-1/-1"
    assert [
        (event.time_cycles, event.cpu, f"{event.pid}/{event.tid}", event.name, dict(event.args))
        for event in opened_trace.iter_events()
    ] == [
        (1000, 0, client, "user_slice", {"name": "spelled"}),
        (2000, 0, client, "user_slice", {"name": "numbered by 5"}),
        (3000, 0, client, "user_slice", {"name": "numbered by 6"}),
        (4000, 0, nobody, "user_slice", {"name": ""}),
        (6500, 0, client, "user_slice", {"name": "even"}),
    ]
    assert opened_trace.threads.names == ("", "client")
    assert opened_trace.processes.names == ("", "app")
    assert problems(opened_trace) == [
        ("unknown-events", "slices with times of a clock of their own are left out", None, 2),
        ("unknown-events", "values of counters are left out", None, 1),
        ("foreign", "trace of Perfetto: names, states and events are those of Linux", None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["trace.dat", "perf.data", "perf-script"])
def test_a_wake_up_that_repeats_another_one_has_the_numbers_of_the_file(tmp_path, monkeypatch, form):
    """`sched_wakeup` beside `sched_waking`: one of the two makes the thread ready, both are there."""
    monkeypatch.setattr(trace_dat, "FORMATS", (
        *trace_dat.FORMATS, (trace_dat.FORMATS[1][0], "sched_wakeup", 318, *trace_dat.FORMATS[1][3:])
    ))  # fmt: skip
    monkeypatch.setattr(perf_data, "FORMATS", trace_dat.FORMATS)
    waking = trace_dat.waking(100, "server", 200, 100, 1)
    events = ((0, 2, waking), (0, 3, struct.pack("<H", 318) + waking[2:]), (1, 4, scene()[3][2]))
    content = {
        "trace.dat": lambda: linux_scene.as_trace_dat((*events, *((0, ms, waking) for ms in (5, 6, 7))), NAMES),
        "perf.data": lambda: linux_scene.as_perf_data(events=events),
        "perf-script": lambda: (
            b"client-100 [000] 5.002: sched_waking: comm=server pid=200 prio=100 target_cpu=001\n"
            b"client-100 [000] 5.003: sched_wakeup: comm=server pid=200 prio=100 target_cpu=001\n"
        ),
    }[form]()
    event = next(event for event in linux_scene.opened(tmp_path, content).iter_events() if event.name == "sched_wakeup")
    assert {name: int(event.args[name]) for name in ("pid", "prio", "target_cpu")} == {
        "pid": 200, "prio": 100, "target_cpu": 1
    }  # fmt: skip
    assert event.args["comm"] == "server"


def test_threads_of_events():
    """Their numbers, but for the idle one of each CPU, and those that cannot be."""
    unknown = -(1 << 31)
    thread = np.array([0, 0, 0, 1, (1 << 31) - 1, 1 << 31, -1])
    cpu = np.array([0, 255, 256, 3, 3, 3, 3])
    assert reader._thread_numbers(thread, cpu).tolist() == [-1, -256, -256, 1, (1 << 31) - 1, unknown, unknown]


@pytest.mark.parametrize(
    ("name", "form"), [("trace.dat", linux_scene.as_trace_dat), ("perf.data", linux_scene.as_perf_data)]
)
def test_what_a_schedule_is_as_a_trace(tmp_path, name, form):
    """Nanoseconds since nobody knows when, one event for each slot, no buffers, and no system page."""
    trace = linux_scene.opened(tmp_path, form())
    count = len(trace.events)
    assert trace.clock == Clock(1_000_000_000, int(trace.events.time_cycles[0]), None, is_absolute=False)
    assert (trace.format, trace.release, trace.byte_order, trace.system) == (name, Release.LINUX, "little", None)
    assert (trace.slot_count, len(trace.buffers), trace.header.get("SYS_RELEASE")) == (count, 0, "Linux")
    assert trace.events.slot.tolist() == list(range(count))
    assert set(trace.events.slot_count.tolist()) == {1}
    assert trace.cpu_count == max(2, int(trace.events.cpu.max()) + 1)
    assert trace.dump_end_cycles == trace.clock.start_cycles - 1
