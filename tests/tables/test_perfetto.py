"""What is written for Perfetto and Chrome: read by the classes of their own, its totals are those of the statistics."""

import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.times.basis import scope_of
from satview.analysis.times.cpu_times import LoadBy, load_over_time
from satview.base.time import TimeWindow
from satview.events.states import NAMES_BY_VALUE, STATE_BY_NAME
from satview.export import perfetto, perfetto_tracks
from satview.export.perfetto import write_chrome, write_perfetto
from satview.export.perfetto_tracks import NOBODY_PID, overlaps, thread_numbers
from satview.opened import with_answers
from satview.store.time_ranges import losses
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


@pytest.mark.thorough
def test_cpu_time(trace, packets):
    """Who had which CPU for how long, from the states of threads alone."""
    events = [(packet.timestamp, packet.generic_kernel_task_state_event) for packet in packets
              if packet.HasField("generic_kernel_task_state_event")]  # fmt: skip
    assert [row[0] for row in events] == sorted(row[0] for row in events)
    running, ran = {}, Counter()
    for time_ns, event in events:
        is_start = event.state == event.TASK_STATE_RUNNING
        if event.cpu in running and (is_start or running[event.cpu][0] == event.tid):
            tid, since = running.pop(event.cpu)
            ran[tid] += time_ns - since
        if is_start:
            running[event.cpu] = event.tid, time_ns
    for tid, since in running.values():
        ran[tid] += trace.clock.ns(trace.window.end) - since
    runs, expected, number = trace.table("run"), Counter(), thread_numbers(trace)
    for thread, ns in zip(runs["thread"].tolist(), (runs["end_ns"] - runs["start_ns"]).tolist(), strict=True):
        expected[int(number[thread])] += ns
    assert {tid: ns for tid, ns in ran.items() if ns and tid >> 32 != NOBODY_PID} == {
        tid: ns for tid, ns in expected.items() if ns}  # fmt: skip


def slices_of(packets):
    """Return (track, name, start, end, flows) of all slices; each begins and ends as a stack does."""
    stacks, found = defaultdict(list), []
    for packet in packets:
        event = packet.track_event
        if not packet.HasField("track_event") or event.type == event.TYPE_COUNTER:
            continue
        if event.type == event.TYPE_INSTANT:
            found.append((event.track_uuid, event.name, packet.timestamp, packet.timestamp, tuple(event.flow_ids)))
        elif event.type == event.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append((event.name, packet.timestamp, tuple(event.flow_ids)))
        else:
            name, start, flows = stacks[event.track_uuid].pop()
            found.append((event.track_uuid, name, start, packet.timestamp, flows))
            assert start < packet.timestamp
    assert not any(stacks.values())
    return found


@pytest.mark.thorough
def test_slices(trace, packets):
    kinds, names = Counter(), Counter()
    for track, name, start, end, _ in slices_of(packets):
        kinds[track >> 32] += end - start
        names[track >> 32, name] += end - start
    states = trace.table("state")
    for value, state in enumerate(NAMES_BY_VALUE):
        if state in STATE_BY_NAME and state != "RUNNING":
            mine = states["state"] == state
            assert names[perfetto._STATE, state] == (states["end_ns"] - states["start_ns"])[mine].sum(), value
    for kind, table in ((perfetto._THREAD, "call"), (perfetto._INTERRUPT, "interrupt")):
        found = trace.table(table)
        known = (found["end_ns"] >= 0) & ((found["thread"] > 0) | (table == "interrupt"))
        assert kinds[kind] == (found["end_ns"] - found["start_ns"])[known].sum(), table
    if len(losses(trace)):
        lost = trace.table("loss")
        assert kinds[perfetto._LOSS] == (lost["end_ns"] - np.maximum(lost["start_ns"], 0)).sum()


def test_a_range_has_nothing_outside_of_it(trace, tmp_path):
    """What reaches into the range begins and ends with it; what is outside is not there."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    third = trace.window.length // 3
    window = TimeWindow(trace.window.start + third, trace.window.start + 2 * third)
    start_ns, end_ns = trace.clock.ns(window.start), trace.clock.ns(window.end)
    write_perfetto(trace, tmp_path / "part.pftrace", window=window)
    found = perfetto_trace_pb2.Trace()
    found.ParseFromString((tmp_path / "part.pftrace").read_bytes())
    timed = [packet for packet in found.packet if packet.HasField("track_event")]
    assert {start_ns <= packet.timestamp <= end_ns for packet in timed} == {True}
    lengths = Counter()
    for track, _, start, end, _ in slices_of(found.packet):
        lengths[track >> 32] += end - start
    calls = trace.table("call")
    known = (calls["end_ns"] >= 0) & (calls["thread"] > 0)
    inside = np.minimum(calls["end_ns"], end_ns) - np.maximum(calls["start_ns"], start_ns)
    assert lengths[perfetto._THREAD] == inside[known & (inside > 0)].sum()


def test_tracks_and_names(trace, packets):
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in packets
              if packet.HasField("track_descriptor")}  # fmt: skip
    names = {track.uuid & 0xFFFFFFFF: track.name for track in tracks.values() if track.uuid >> 32 == perfetto._THREAD}
    assert names == {row: trace.thread_name(row) for row in range(len(trace.threads))}
    assert {packet.track_event.track_uuid for packet in packets if packet.HasField("track_event")} <= set(tracks)
    assert all(track.parent_uuid in tracks for track in tracks.values() if track.parent_uuid)


def test_load(trace, packets):
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.CPU, 4000)
    found = defaultdict(dict)
    for packet in packets:
        event = packet.track_event
        if event.type == event.TYPE_COUNTER and event.track_uuid >> 32 == perfetto._LOAD:
            found[event.track_uuid & 0xFFFFFFFF][packet.timestamp] = event.double_counter_value
    times = trace.clock.ns_array(load.edges[:-1]).tolist()
    for band, cpu in enumerate(load.subjects.tolist()):
        expected = (load.busy_cycles[band] * 100.0 / load.lengths).tolist()
        now, shown = None, []
        for time_ns in times:
            now = found[cpu].get(time_ns, now)
            shown.append(now)
        assert shown == expected


def test_overlapping_work_of_a_server_has_tracks_of_its_own():
    owner, start, end = np.array([1, 1, 1, 1, 2]), np.array([0, 5, 20, 30, 7]), np.array([10, 12, 30, 31, 9])
    assert overlaps(owner, start, end).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("values", [[0, 1, 127, 128, 300, 1 << 14, (1 << 63) - 1], [-1, 5], [0]])
def test_numbers_of_protobuf(values):
    def by_hand(value):
        value, out = value % (1 << 64), b""
        while True:
            out += bytes([value & 127 | (128 if value > 127 else 0)])
            value >>= 7
            if not value:
                return out

    found = perfetto_tracks.number(20, np.array(values, np.int64))
    assert found.to_bytes() == b"".join(b"\xa0\x01" + by_hand(value) for value in values)
    inner = perfetto_tracks.nested(1, perfetto_tracks.text(2, np.array([1, 0]), ["a", "\u00e4b"]))
    assert inner.to_bytes() == b"\x0a\x05\x12\x03\xc3\xa4b" + b"\x0a\x03\x12\x01a"


@pytest.mark.thorough
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
               if event["name"] == "thread_name" and event["pid"] and event["tid"] < perfetto.CALLS}  # fmt: skip
    assert threads == {row: trace.thread_name(row) for row in range(1, len(trace.threads)) if trace.threads.pid[row]}


@pytest.mark.thorough
def test_the_command(tmp_path, capfd):
    builder = TraceBuilder().time_event(0).process_name(1, 7, 'a"b\x1b').state("RUNNING", 10, 7, 1)
    source = builder.write(tmp_path / "a.kev")
    for ending, word in ((".pftrace", "packets"), (".json", "events of Chrome")):
        out = tmp_path / f"out{ending}"
        assert main(["export", str(source), "-o", str(out)]) == 0
        assert word in capfd.readouterr().out
        assert out.stat().st_size > 100
        assert main(["export", str(source), "-o", str(out), "--table", "run"]) == 2
        assert "for Perfetto holds all tables" in capfd.readouterr().err or ending == ".json"
    names = [
        event.get("args", {}).get("name") for event in json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    ]
    assert 'a"b\x1b 1' in names
