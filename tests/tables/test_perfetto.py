"""What is written for Perfetto and Chrome: read by the classes of their own, its totals are those of the statistics."""

import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.load import LoadBy, load_over_time
from satview.analysis.times.scope import scope_of
from satview.events.linux import FIRST_TID
from satview.events.states import STATE_BY_NAME
from satview.export import chrome, perfetto, protobuf
from satview.export.chrome import write_chrome
from satview.export.perfetto import write_perfetto
from satview.opened import with_answers
from satview.store.losses import losses
from satview.tables.cells import state_names
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.tables.conftest import CASES, DRAWN


@pytest.fixture(scope="module", params=fewer(DRAWN[::-1], 1))
def trace(request, tmp_path_factory):
    return with_answers(CASES[request.param](tmp_path_factory.mktemp("perfetto")))


@pytest.fixture(scope="module")
def packets(trace, tmp_path_factory):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    path = tmp_path_factory.mktemp("perfetto") / "a.pftrace"
    count = write_perfetto(trace, path)
    found = perfetto_trace_pb2.Trace()
    found.ParseFromString(path.read_bytes())
    assert len(found.packet) == count
    return list(found.packet)


def switches_of(packets):
    for packet in packets:
        if packet.HasField("ftrace_events"):
            for event in packet.ftrace_events.event:
                yield packet.ftrace_events.cpu, event


def test_cpu_time(trace, packets):
    """Who had which CPU for how long, from sched_switch alone, as the trace processor does it."""
    running, ran, switches = {}, Counter(), []
    for cpu, event in switches_of(packets):
        if event.HasField("sched_switch"):
            switches.append((event.timestamp, cpu, event.sched_switch))
    assert [row[0] for row in switches] == sorted(row[0] for row in switches)
    for time_ns, cpu, switch in switches:
        tid, since = running.get(cpu, (0, time_ns))
        if cpu in running:
            assert switch.prev_pid == tid, "the thread that leaves is the one that came"
        ran[tid] += time_ns - since
        running[cpu] = switch.next_pid, time_ns
    assert all(tid == 0 for tid, _ in running.values()), "at the end nobody runs any more"
    runs = trace.table("run")
    expected = Counter()
    columns = (runs[name].tolist() for name in ("thread", "start_ns", "end_ns", "is_idle"))
    for thread, start, end, is_idle in zip(*columns, strict=True):
        if not is_idle:
            expected[thread + FIRST_TID] += end - start
    del ran[0]
    assert {tid: ns for tid, ns in ran.items() if ns} == {tid: ns for tid, ns in expected.items() if ns}


def test_preempted_threads_stay_runnable(trace, packets):
    ready = trace.table("state")
    at = np.flatnonzero((ready["state"] == "READY") & (ready["state_before"] == "RUNNING"))
    left = {
        (event.timestamp, event.sched_switch.prev_pid)
        for _, event in switches_of(packets)
        if event.HasField("sched_switch") and event.sched_switch.prev_state == 0 and event.sched_switch.prev_pid
    }
    ends = {(int(ready["start_ns"][i]), int(ready["thread"][i]) + FIRST_TID) for i in at}
    runs = trace.table("run")
    ended = set(zip(runs["end_ns"].tolist(), (runs["thread"] + FIRST_TID).tolist(), strict=True))
    assert left & ended == ends & left
    assert not (ends & ended) - left


def test_wake_ups(trace, packets):
    woken = trace.table("wake_up")
    reported = Counter((event.timestamp, event.sched_waking.pid) for _, event in switches_of(packets)
                   if event.HasField("sched_waking"))  # fmt: skip
    assert reported == Counter(zip(woken["cause_ns"].tolist(), (woken["thread"] + FIRST_TID).tolist(), strict=True))


def slices_of(packets):
    """Return (track, name, start, end, flows) of all slices; each begins and ends as a stack does."""
    stacks, found = defaultdict(list), []
    for packet in packets:
        event = packet.track_event
        if not packet.HasField("track_event") or event.type == event.TYPE_COUNTER:
            continue
        if event.type == event.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append((event.name, packet.timestamp, tuple(event.flow_ids)))
        else:
            name, start, flows = stacks[event.track_uuid].pop()
            found.append((event.track_uuid, name, start, packet.timestamp, flows))
            assert start < packet.timestamp
    assert not any(stacks.values())
    return found


def test_slices(trace, packets):
    kinds, names = Counter(), Counter()
    for track, name, start, end, _ in slices_of(packets):
        kinds[track >> 32] += end - start
        names[track >> 32, name] += end - start
    states = trace.table("state")
    for value, state in enumerate(state_names()):
        if state in STATE_BY_NAME and state != "RUNNING":
            mine = states["state"] == state
            assert names[perfetto._STATE, state] == (states["end_ns"] - states["start_ns"])[mine].sum(), value
    for kind, table in ((perfetto._THREAD, "call"), (perfetto._INTERRUPT, "interrupt")):
        found = trace.table(table)
        known = (found["end_ns"] >= 0) & ((found["thread"] > 0) | (table == "interrupt"))
        assert kinds[kind] == (found["end_ns"] - found["start_ns"])[known].sum(), table
    if len(losses(trace)) and trace.release != "8.0":
        lost = trace.table("loss")
        assert kinds[perfetto._LOSS] == (lost["end_ns"] - np.maximum(lost["start_ns"], 0)).sum()


def test_messages_are_flows(trace, packets):
    sent = trace.table("message")
    flows = defaultdict(list)
    for track, _, start, end, ids in slices_of(packets):
        for flow in ids:
            flows[flow - 1].append((track >> 32, start, end))
    both = np.flatnonzero((sent["round_trip_cycles"] > 0) & (sent["service_cycles"] > 0) & (sent["client"] > 0))
    for message in both.tolist():
        (first, start, _), (second, receive, _) = sorted(flows[message], key=lambda row: row[1])
        assert first == perfetto._MESSAGE
        assert second in (perfetto._SERVICE, perfetto._OWN_SERVICE)
        assert start == sent["time_ns"][message] <= receive


def test_tracks_and_names(trace, packets):
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in packets
              if packet.HasField("track_descriptor")}  # fmt: skip
    threads = [track.thread for track in tracks.values() if track.HasField("thread")]
    assert {thread.tid: thread.thread_name for thread in threads} == {
        row + FIRST_TID: trace.thread_name(row) for row in range(len(trace.threads))}  # fmt: skip
    assert {packet.track_event.track_uuid for packet in packets if packet.HasField("track_event")} <= set(tracks)
    assert all(track.parent_uuid in tracks for track in tracks.values() if track.parent_uuid)


def test_load(trace, packets):
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.CPU, 4000)
    counters = [packet for packet in packets if packet.track_event.type == packet.track_event.TYPE_COUNTER]
    assert len(counters) == load.busy_cycles.size
    assert all(0 <= packet.track_event.counter_value <= 100 for packet in counters)


def test_overlapping_work_of_a_server_has_tracks_of_its_own():
    owner, start, end = np.array([1, 1, 1, 1, 2]), np.array([0, 5, 20, 30, 7]), np.array([10, 12, 30, 31, 9])
    assert perfetto._overlap(owner, start, end).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("values", [[0, 1, 127, 128, 300, 1 << 14, (1 << 63) - 1], [-1, 5], [0]])
def test_numbers_of_protobuf(values):
    def by_hand(value):
        value, out = value % (1 << 64), b""
        while True:
            out += bytes([value & 127 | (128 if value > 127 else 0)])
            value >>= 7
            if not value:
                return out

    found = protobuf.number(20, np.array(values, np.int64))
    assert found.to_bytes() == b"".join(b"\xa0\x01" + by_hand(value) for value in values)
    inner = protobuf.nested(1, protobuf.text(2, np.array([1, 0]), ["a", "\u00e4b"]))
    assert inner.to_bytes() == b"\x0a\x05\x12\x03\xc3\xa4b" + b"\x0a\x03\x12\x01a"


def test_chrome(trace, tmp_path):
    count = write_chrome(trace, tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert len(found) == count
    by_kind = defaultdict(list)
    for event in found:
        by_kind[event["ph"], event.get("cat")].append(event)
    states = trace.table("state")
    for state in ("RUNNING", "READY", "MUTEX"):
        total = sum(round(event["dur"] * 1000) for event in by_kind["X", "state"] if event["name"] == state)
        assert total == states["length_ns"][states["state"] == state].sum()
    for cat, name in (("kernel call", "call"), ("interrupt", "interrupt")):
        table = trace.table(name)
        known = (table["length_cycles"] >= 0) & ((table["thread"] > 0) | (name == "interrupt"))
        starts = sorted(round(event["ts"] * 1000) for event in by_kind["X", cat])
        assert starts == sorted(table["start_ns"][known].tolist())
    sent, received = (sorted(event["id"] for event in by_kind[kind, "message"]) for kind in "sf")
    table = trace.table("message")
    both = (table["queued_cycles"] >= 0) & (table["client"] > 0) & (table["server"] > 0)
    assert sent == received == np.flatnonzero(both).tolist()
    threads = {event["tid"]: event["args"]["name"] for event in by_kind["M", None]
               if event["name"] == "thread_name" and event["pid"] and event["tid"] < chrome.CALLS}  # fmt: skip
    assert threads == {row: trace.thread_name(row) for row in range(1, len(trace.threads)) if trace.threads.pid[row]}


def test_the_command(tmp_path, capfd):
    builder = TraceBuilder().time_event(0).process_name(1, 7, 'a"b\x1b').state("RUNNING", 10, 7, 1)
    source = builder.write(tmp_path / "a.kev")
    for ending, word in ((".pftrace", "packets"), (".json", "events of Chrome")):
        out = tmp_path / f"out{ending}"
        assert main(["export", str(source), "-o", str(out)]) == 0
        assert word in capfd.readouterr().out
        assert out.stat().st_size > 100
        assert main(["export", str(source), "-o", str(out), "--range", "1ns..5ns"]) == 2
        assert "holds the whole trace" in capfd.readouterr().err
    names = [
        event.get("args", {}).get("name") for event in json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    ]
    assert 'a"b\x1b 1' in names
