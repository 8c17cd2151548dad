"""Several files on one time axis: each file's events, lanes and links are in it as in the file alone, at its offset."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from satview.analysis.alignment import common_events, offsets_ps
from satview.analysis.partitions import partition_names, partition_title
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis, Scope
from satview.analysis.times.cpu_times import LoadBy, load_over_time
from satview.analysis.verdicts.evidence import Severity, Verdict
from satview.analysis.verdicts.find import find_verdicts
from satview.answers.comparison import compare
from satview.answers.table import Known
from satview.answers.verdicts import undecided_table, verdict_table
from satview.base.errors import TraceFormatError, UsageError
from satview.base.threads import Once
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import ABSENT, RUNNING, STATE_BY_NAME, STATE_BY_VALUE, UNKNOWN
from satview.filters.expressions.expression import select
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.would_capture import would_capture
from satview.formats.axis import Member, trace_on_axis
from satview.formats.registry import open_trace, source_files
from satview.linkage.chain import link_table, links
from satview.linkage.links import LinkKind
from satview.opened import with_answers
from satview.store.axis import PARTITIONS, AxisEntry, file_window, files_of, names_for, of_capture, write_axis
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.analysis.test_partitions import scene as partitions_scene
from tests.capture.made import FAST, WIDE, traced
from tests.helpers import linux_scene
from tests.helpers.kev import START, TraceBuilder, from_lanes, write_trace

US = 1_000_000  # picoseconds


def opened(path, builder):
    return open_trace(write_trace(path, builder.writer.slots(), cpus=2))


def axis(folder, first, other, offset_ps=0):
    return trace_on_axis(folder / "x.sataxis", [Member("host", first), Member("guest", other, offset_ps)])


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Two captures of other releases, widths and numbers of CPUs."""
    found = []
    for name, release, modes, ms in (
        ("client-server", Release.QNX_7, WIDE, 60), ("automotive", Release.QNX_8, FAST, 30)
    ):  # fmt: skip
        setup = registry.find(name)
        found.append(traced(setup.setup, ms, tmp_path_factory.mktemp(name), release, setup.cpus, 5, modes).trace)
    return found


@pytest.fixture(scope="module")
def both(captures, tmp_path_factory):
    return axis(tmp_path_factory.mktemp("axis"), *captures, 20_000_000 * 1000)


def test_events_are_shifted_by_the_offset_and_told_apart(tmp_path):
    host = from_lanes(tmp_path / "a", "cpu0 A A B .")
    guest = from_lanes(tmp_path / "b", "cpu0 A . C\ncpu1 . D D")
    found = axis(tmp_path, host, guest, 2 * US)
    assert found.cpu_count == 3
    assert found.cpu_titles == ("host CPU 0", "guest CPU 0", "guest CPU 1")
    times = {part.name: found.events.time_cycles[part.rows] for part in files_of(found).parts}
    assert times["host"].tolist() == host.events.time_cycles.tolist(), "a clock of 1 GHz: stamps stay"
    assert (times["guest"] - guest.events.time_cycles).tolist() == [2000] * len(guest.events)
    assert np.all(np.diff(found.events.time_cycles) >= 0)
    assert found.threads.row(2, 1) != found.threads.row(12, 1), "pid 2 of the guest is 12: 1 for the file"
    assert [found.process_name(found.processes.row(pid)) for pid in (2, 12)] == ["host:pid 2", "guest:pid 2"]
    guest_rows = select(found, 'name ~ "guest:*" and state == RUNNING')
    assert len(guest_rows) == len(select(guest, "state == RUNNING"))
    assert set(found.events.cpu[guest_rows].tolist()) == {1, 2}


def test_before_and_after_a_file_its_lanes_have_nothing(tmp_path):
    host = from_lanes(tmp_path / "a", "cpu0 A A A A A A A A")
    found = axis(tmp_path, host, from_lanes(tmp_path / "b", "cpu0 B B"), 3 * US)
    timeline = Timeline(found)
    lane = next(info.index for info in timeline.infos if info.kind is LaneKind.CPU and info.title == "guest CPU 0")
    timeline.build([lane], lambda: False)
    spans = timeline.lane(lane).spans
    assert spans.value.tolist()[0] == spans.value.tolist()[-1] == ABSENT
    assert spans.start_cycles.tolist()[-1] - START == 3000 + 2010 + 1, "just after the last event of the file"
    thread = Statistics(found).states
    row = found.threads.row(13, 1)
    mine = (thread.thread == row) & (thread.value == RUNNING)
    assert thread.total_cycles[mine].tolist() == [2001], "not up to the end of the other file"


def test_sums_are_those_of_each_file_alone(both, captures):
    """Of the time that a file lasts, not of the axis: what it does not cover is neither known nor missing."""
    found = Statistics(both)
    for part, alone in zip(files_of(both).parts, map(Statistics, captures), strict=True):
        cpus = slice(part.first_cpu, part.first_cpu + part.trace.cpu_count)
        at_rate = both.clock.cycles_per_s / part.trace.clock.cycles_per_s
        assert found.covered.cpus[cpus] == pytest.approx(part.trace.window.length * at_rate, abs=2)
        assert found.cpus.unknown_cycles[cpus] == pytest.approx(alone.cpus.unknown_cycles * at_rate, abs=3000)
        unknown = found.states.of_state(UNKNOWN, found.states.total_cycles, len(both.threads))[part.threads[1:]]
        expected = alone.states.of_state(UNKNOWN, alone.states.total_cycles, len(part.trace.threads))[1:]
        assert unknown == pytest.approx(expected * at_rate, abs=3000)
        assert file_window(both, part.first_cpu, 0) == file_window(both, -1, int(part.processes[-1])) == part.window
    assert found.covered.cpus[-1] < both.window.length
    assert file_window(both, -1, 0) == both.window
    load = load_over_time(Scope(both, both.window, None, Basis(both)), LoadBy.CPU, 50)
    assert int(load.unknown_cycles.sum()) == int(found.cpus.unknown_cycles.sum())
    assert load.given_cycles.sum() == found.covered.cpus.sum()


def test_links_are_those_of_each_file(both, captures):
    for kind in LinkKind:
        expected = set()
        for part in files_of(both).parts:
            table = link_table(part.trace, kind)
            ends = part.axis_rows(table.to_row)
            expected |= set(
                zip(part.rows[table.from_row].tolist(), ends.tolist(), table.certainty.tolist(), strict=True)
            )
        table = link_table(both, kind)
        assert (
            set(zip(table.from_row.tolist(), table.to_row.tolist(), table.certainty.tolist(), strict=True)) == expected
        )
    found, alone = links(both), [links(trace) for trace in captures]
    for name in ("transactions", "latencies", "blockers"):
        assert len(getattr(found, name)) == sum(len(getattr(each, name)) for each in alone)
        assert len(getattr(found, name))
    sent = found.transactions
    assert np.all(np.diff(sent.send_row) > 0)
    times = both.events.time_cycles
    known = (sent.send_row >= 0) & (sent.receive_row >= 0)
    lengths = times[sent.receive_row[known]] - times[sent.send_row[known]]
    assert lengths.tolist() == sent.queued_cycles[known].tolist(), "rows and cycles moved alike"
    inner = np.flatnonzero(sent.parent >= 0)
    assert np.all(sent.server[sent.parent[inner]] == sent.client[inner]), "what a server sends on behalf of its client"


def test_lanes_are_those_of_each_file(both, captures):
    whole = Timeline(both)
    for part, trace in zip(files_of(both).parts, captures, strict=True):
        alone = Timeline(trace)
        for info in alone.infos:
            if info.kind is LaneKind.THREAD:
                found = next(each for each in whole.infos if each.thread == part.threads[info.thread] and each.thread)
            elif info.kind in (LaneKind.CPU, LaneKind.INTERRUPTS):
                found = next(each for each in whole.infos
                             if each.kind is info.kind and each.cpu == part.first_cpu + info.cpu)  # fmt: skip
            else:
                continue
            alone.build([info.index], lambda: False)
            whole.build([found.index], lambda: False)
            own, mine = alone.lane(info.index).spans, whole.lane(found.index).spans
            if info.kind is LaneKind.INTERRUPTS and len(own) == 1:  # 8.0 has deliveries only: nothing but ticks
                continue
            first = int(np.searchsorted(mine.start_cycles, part.cycles(own.start_cycles[:1])[0]))
            inside = slice(first, first + len(own))
            assert mine.start_cycles[inside].tolist() == part.cycles(own.start_cycles).tolist()
            if info.kind is LaneKind.THREAD:
                assert mine.value[inside].tolist() == own.value.tolist()
            assert mine.event[inside].tolist() == part.axis_rows(own.event).tolist()


def test_figures_are_those_of_each_file(both, captures):
    found = Statistics(both).threads
    for part, trace in zip(files_of(both).parts, captures, strict=True):
        alone = Statistics(trace).threads
        assert found.cpu_cycles[part.threads[1:]].tolist() == alone.cpu_cycles[1:].tolist()
    assert len(find_verdicts(both)) == sum(len(find_verdicts(trace)) for trace in captures)


def test_what_is_not_over_when_its_file_ends_is_as_sure_as_in_the_file_alone(both, captures):
    """One file ends before the other: what is not over then lasts at least until then, and is not unknown."""
    opened_axis, alone = with_answers(both), [with_answers(trace) for trace in captures]
    for table, column in (("message", "round_trip_known"), ("latency", "total_known"), ("wait", "end_event")):
        expected = sum((Counter(map(is_or_text, trace.table(table)[column])) for trace in alone), Counter())
        assert Counter(map(is_or_text, opened_axis.table(table)[column])) == expected, table
        assert len(expected) > 1
    outcomes = [Counter(trace.table("activity_instance")["outcome"]) for trace in (opened_axis, *alone)]
    for outcome in ("unfinished", "unknown"):
        assert outcomes[0][outcome] == sum(counts[outcome] for counts in outcomes[1:])
    assert outcomes[0]["unfinished"]


def test_intervals_are_those_of_each_file(both, captures):
    """With those that the opening dump shows, also where a file begins later than the other one or ends earlier."""
    opened_axis, alone = with_answers(both), [with_answers(trace) for trace in captures]
    for table, column in (("state", "state"), ("state", "is_cut"), ("run", "is_cut"), ("activation", "is_cut")):
        expected = sum((Counter(trace.table(table)[column]) for trace in alone), Counter())
        assert Counter(opened_axis.table(table)[column]) == expected, table
        assert len(expected) > 1


def test_a_thread_that_the_opening_dump_creates_is_known_from_its_file_s_begin_on(tmp_path):
    """The dump creates it at 200 and shows RECEIVE at 300: it waits all the time, in the guest from 5,000 on."""
    builder = TraceBuilder().time_event(0).event(wire.THREAD_CREATE, 200, (2, 1)).state("RECEIVE", 300, 2, 1)
    trace = builder.event(wire.code(6, 1), 900).open(tmp_path)
    trace = replace(trace, dump_end_cycles=START + 300, _cached=Once())
    found = with_answers(axis(tmp_path, trace, trace, 5 * US)).table("state")
    rows = zip(found["state"], found["start_ns"].tolist(), found["length_ns"].tolist(), strict=True)
    assert list(rows) == [("RECEIVE", 0, 901), ("RECEIVE", 5_000, 901)]


def is_or_text(value: object) -> object:
    """Return a text, or whether a row of an event is one."""
    return value if isinstance(value, str) else int(value) >= 0


def test_a_verdict_that_holds_when_its_file_ends_holds_at_least_so_long(tmp_path):
    """A verdict on a thread of the host, whose file ends at 1,000, up to that end; another one is over before."""
    members = []
    for name, end in (("host", 1_000), ("guest", 90_000)):
        builder = TraceBuilder().state("RUNNING", 0, 2, 1).state("MUTEX", 500, 2, 1).time_event(end)
        members.append(Member(name, builder.open(tmp_path / name)))
    found = trace_on_axis(tmp_path / "x.sataxis", members)
    thread = found.threads.row(2, 1)
    event = int(found.states.of(thread)[-1])
    for evidence in ((event,), ()):
        verdicts = [Verdict("deadlock", Severity.ERROR, START + 500, START + end, (thread,), (), evidence, "says", "do")
                    for end in (1_001, 1_000)]  # fmt: skip
        table = verdict_table(found, verdicts, undecided_table(found))
        lengths = [table.known(row, "length") for row in range(len(table)) if table.held(row, "length") >= 0]
        assert lengths == [Known.AT_LEAST, Known.EXACT]


def test_arguments_have_the_pids_of_the_axis(both, captures):
    part = files_of(both).parts[1]
    row = int(select(captures[1], "state == RUNNING and pid > 1")[0])
    on_axis = int(part.rows[row])
    own = captures[1].payloads.decode(row).arguments[0]
    assert own.name == "pid"
    shown = both.payloads.decode(on_axis).arguments[0]
    pid = int(both.threads.pid[both.events.thread[on_axis]])
    assert (shown.value, shown.note) == (pid, f"{own.text} in guest")
    assert on_axis in select(both, f"arg.pid == {pid}")
    assert int(both.payloads.column(np.array([on_axis]), 0)[0]) == pid == int(both.payloads.words(on_axis)[0])
    assert both.payloads.raw(on_axis) == captures[1].payloads.raw(row)


def test_a_coarser_clock_is_scaled_and_said(tmp_path):
    fine = TraceBuilder().time_event(0).state("RUNNING", 10, 2, 1).event(6 << 10, 3000).open(tmp_path)
    coarse = TraceBuilder().time_event(0).state("RUNNING", 1, 2, 1).event(6 << 10, 30).open(tmp_path / "b")
    object.__setattr__(coarse, "clock", type(coarse.clock)(300_000_000, coarse.clock.start_cycles))
    found = axis(tmp_path, fine, coarse)
    part = files_of(found).parts[1]
    assert (found.events.time_cycles[part.rows] - START).tolist() == [0, 3, 100], "10/3 cycles each, rounded down"
    assert [problem.kind.slug for problem in found.problems] == ["scaled-clock"]
    swapped = trace_on_axis(tmp_path / "y", [Member("a", coarse), Member("b", fine)])
    assert swapped.clock.cycles_per_s == 1_000_000_000


def test_states_of_another_release_have_the_codes_of_the_first(both, captures):
    state = STATE_BY_NAME["RECEIVE"].value
    guest = files_of(both).parts[1]
    codes = both.events.code[guest.rows[select(captures[1], "state == RECEIVE")]]
    assert len(codes)
    assert set(both.catalogue.state_value_of_code[codes].tolist()) == {state}
    names = {captures[1].catalogue.name(code) for code in np.flatnonzero(captures[1].code_counts).tolist()}
    there = {both.catalogue.name(code) for code in np.flatnonzero(both.code_counts).tolist()}
    assert names <= there


def marked(folder, at):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 2, 1)
    for time in at:
        builder.event(6 << 10 | 7, time)
    return builder.event(6 << 10, 9000).open(folder)


def test_offsets_from_a_common_event(tmp_path):
    one, two = marked(tmp_path / "a", (500, 700)), marked(tmp_path / "b", (1500, 1600))
    assert offsets_ps([one, two], 'event == "USREVENT/EVENT 7"') == [0, -1_000_000]
    assert offsets_ps([one, two], 'event == "USREVENT/EVENT 7"', 2) == [0, -900_000]
    assert offsets_ps([one, two], "start") == [0, 0]
    assert offsets_ps([one, two], "counter") == [0, 0]
    assert 'event == "USREVENT/EVENT 0"' in common_events([one, two])
    with pytest.raises(UsageError, match=r'built.kev has only 2 events where event == "USREVENT/EVENT 7"'):
        offsets_ps([one, two], 'event == "USREVENT/EVENT 7"', 3)
    for count, counted in ((1, "1 event"), (1_200, "1,200 events")):
        many = marked(tmp_path / f"{count}", range(500, 500 + count))
        with pytest.raises(UsageError, match=f"built.kev has only {counted} where "):
            offsets_ps([many, one], 'event == "USREVENT/EVENT 7"', 9_999)
    found = axis(tmp_path, one, two, -1_000_000)
    times = [found.events.time_cycles[part.rows[select(part.trace, 'event == "USREVENT/EVENT 7"')[0]]]
             for part in files_of(found).parts]  # fmt: skip
    assert times[0] == times[1]


def test_a_file_that_does_not_overlap_is_named(tmp_path):
    found = axis(tmp_path, marked(tmp_path / "a", ()), marked(tmp_path / "b", ()), 10**13)
    [problem] = found.problems
    assert (problem.kind.slug, problem.file, problem.detail) == ("no-overlap", "guest", "10.000 s between it and host")


def test_the_file_names_what_is_beside_it(tmp_path):
    paths = [marked(tmp_path / name, ()).path for name in ("a", "b")]
    target = tmp_path / "x.sataxis"
    write_axis(target, [AxisEntry(paths[0], "one"), AxisEntry(paths[1], "two", -5)])
    assert json.loads(target.read_text())["files"][1] == {"name": "two", "path": "b/built.kev", "offset_ps": -5}
    assert [part.name for part in files_of(open_trace(target)).parts] == ["one", "two"]
    beside = [path.with_name(f"{path.name}.marks.json") for path in (target, *paths)]
    for path in beside:
        path.write_text('{"marks": []}')
    assert sorted(source_files(target)) == sorted([target, *paths, *beside])
    assert names_for(paths) == ["built", "built-2"]
    moved = tmp_path.rename(tmp_path.with_name(tmp_path.name + "-moved"))
    assert len(open_trace(moved / "x.sataxis").events)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ("run.1.kev run.2.kev", ["run.1", "run.2"]),
        ("2024.06.10-host.kev ss6.x.kev.gz", ["2024.06.10-host", "ss6.x"]),
        ("run.kev.zst run.txt run.perfetto-trace", ["run", "run-2", "run-3"]),
        ("tr.1234.1 tr.1234.2", ["tr.1234.1", "tr.1234.2"]),  # without an ending
        (".kev x/a:b.kev", [".kev", "a_b"]),
    ],
)
def test_names_are_those_of_the_files_without_their_endings(files, names):
    assert names_for([Path(file) for file in files.split()]) == names


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"files": []}, "an axis has 2 to 16 files, not 0"),
        ({"files": [{"path": "a.kev", "name": "a"}] * 2}, "a.kev is named twice"),
        ({"files": [{"path": "a.kev", "name": "a"}, {"path": "b.kev", "name": "a"}]}, "two files are called 'a'"),
        (
            {"files": [{"path": "a.kev", "name": "a"}, {"path": "x.sataxis", "name": "b"}]},
            "x.sataxis is an axis itself",
        ),
        ({"files": [{"path": "a.kev", "name": "a"}, {"path": "b.kev", "name": "../b"}]}, "is not a name for a file"),
        (
            {"files": [{"path": "a.kev", "name": "a", "offset_ps": 1e300}]},
            "files[0].offset_ps: expected a whole number, got a fraction",
        ),
        ({"files": 7}, "files: expected a list, got a whole number"),
        ({"satview_axis": 2, "files": []}, "this is not an axis of version 1"),
    ],
)
def test_a_faulty_file_is_one_sentence(tmp_path, content, says):
    path = tmp_path / "x.sataxis"
    path.write_text(json.dumps({"satview_axis": 1, **content}))
    with pytest.raises(TraceFormatError) as failed:
        open_trace(path)
    assert says in str(failed.value)
    assert str(failed.value).startswith("x.sataxis, byte 0x0: ")


def test_a_schedule_of_linux_beside_its_host(tmp_path):
    """The guest is foreign: its own states, events and priorities, and nothing of it becomes the host's."""
    host = from_lanes(tmp_path / "a", "cpu0 A A B .")
    (tmp_path / "guest.txt").write_text(linux_scene.TEXT)
    guest = open_trace(tmp_path / "guest.txt")
    found = axis(tmp_path, host, guest, 1000 * US)
    assert found.release is Release.QNX_7
    assert found.cpu_titles[:1] == ("host CPU 0",)
    part = files_of(found).parts[1]
    names = {guest.catalogue.name(code) for code in np.flatnonzero(guest.code_counts).tolist()}
    assert names <= {found.catalogue.name(int(code)) for code in np.unique(found.events.code[part.rows])}
    timeline = Timeline(found)
    for name, states in linux_scene.TRUTH.items():
        info = next(each for each in timeline.infos if each.kind is LaneKind.THREAD and each.thread in part.threads
                    and name in found.thread_name(each.thread))  # fmt: skip
        timeline.build([info.index], lambda: False)
        spans = timeline.lane(info.index).spans
        begins = [found.clock.ns(start) - 1_000_000 for start in spans.start_cycles.tolist()]
        both = zip(spans.value.tolist(), begins, strict=True)
        shown = [(STATE_BY_VALUE[value].name, begin) for value, begin in both if value in STATE_BY_VALUE]
        assert [each for each in shown if each[1] > 0] == [each for each in states if each[1] > 0]


def test_names_of_tasks_of_linux_are_no_paths(tmp_path):
    (tmp_path / "guest.txt").write_text(linux_scene.TEXT.replace("client", "kworker/0:1H"))
    found = axis(tmp_path, open_trace(tmp_path / "guest.txt"), TraceBuilder().open(tmp_path))
    assert [found.process_name(row) for row in range(1, 4)] == ["host:swapper", "host:kworker/0:1H", "host:server"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_without_events_takes_nothing_away(tmp_path, is_first):
    full, empty = from_lanes(tmp_path / "a", "cpu0 A A B ."), TraceBuilder().open(tmp_path / "b")
    found = axis(tmp_path, *((empty, full) if is_first else (full, empty)))
    assert len(found.events) == len(full.events)
    timeline = Timeline(found)
    timeline.build([info.index for info in timeline.infos], lambda: False)
    assert [info.title for info in timeline.infos if info.kind is LaneKind.CPU] == ["host CPU 0", "guest CPU 0"]
    assert Statistics(found).threads.cpu_cycles.sum() == Statistics(full).threads.cpu_cycles.sum()


def test_partitions_of_two_files_do_not_add_up(tmp_path):
    """Both files have partitions 0 (System) and 1 (Drivers), which run for 2 and 3 us: four on the axis."""
    alone = partitions_scene().open(tmp_path / "a")
    both = axis(tmp_path, alone, partitions_scene().open(tmp_path / "b"))
    found = Statistics(both).partitions
    is_one, second = found.partition >= 0, PARTITIONS
    assert dict(zip(found.partition[is_one].tolist(), found.run_cycles[is_one].tolist(), strict=True)) == {
        0: 2_000, 1: 3_000, second: 2_000, second + 1: 3_000}  # fmt: skip
    assert found.budget[is_one].tolist() == [0.35, 0.15, 0.35, 0.15], "shares of the CPUs of both"
    assert found.bankruptcies[is_one].tolist() == [0, 1, 0, 1]
    names = partition_names(both)
    assert [partition_title(names, number) for number in (0, second + 1)] == ["host:System", "guest:Drivers"]
    assert partition_title(names, second + 9) == "guest:partition 9"
    row = int(select(alone, "arg.partition_id == 1")[0])
    on_axis = int(files_of(both).parts[1].rows[row])
    [argument] = [each for each in both.payloads.decode(on_axis).arguments if each.name == "partition_id"]
    assert (argument.value, argument.note.partition(";")[0]) == (second + 1, "1 in guest")
    assert on_axis in select(both, f"arg.partition_id == {second + 1}")


def test_cpus_of_power_events_are_those_of_the_axis(tmp_path):
    """CPU 0 of each file is in mode 7: a lane below each, not two changes of one CPU, and as long as its file."""
    traces = []
    for name in ("a", "b"):
        builder = TraceBuilder("7.1.0").time_event(0).state("RUNNING", 500, 2, 1)
        builder.event(wire.code(wire.WireClass.SYSTEM, 15), 1_000, (0, 7))
        traces.append(builder.state("READY", 9_000, 2, 1).open(tmp_path / name))
    timeline = Timeline(axis(tmp_path, *traces, 5 * US))
    timeline.show_classes(["frequency"])
    lanes = timeline.lanes_of_class("frequency")
    assert [timeline.infos[lane].cpu for lane in lanes] == [0, 1]
    timeline.build(lanes)
    levels = [timeline.lane(lane).counter.levels[0] for lane in lanes]
    assert [(start - START).tolist() for start, _, _ in levels] == [[0, 9_001], [0, 5_000]], "the files have 9,001 ns"
    assert [str(mode.tolist()) for _, mode, _ in levels] == ["[7.0, nan]", "[nan, 7.0]"], "the mode from then on"


def test_events_of_no_process_have_a_lane_for_each_file(tmp_path):
    """User event 5 at 1 and 3 us in one file, at 2 us in the other: a lane each, with its own moments only."""
    traces = []
    for name, moments in (("a", (1_000, 3_000)), ("b", (2_000,))):
        builder = TraceBuilder("7.1.0").time_event(0).state("RUNNING", 500, 2, 1)
        for at in moments:
            builder.event(wire.code(wire.WireClass.USER, 5), at, (1, 2))
        traces.append(builder.state("READY", 9_000, 2, 1).open(tmp_path / name))
    both = axis(tmp_path, *traces)
    timeline = Timeline(both)
    timeline.show_classes(["user"])
    found = {timeline.infos[lane].title: timeline.infos[lane].track for lane in timeline.lanes_of_class("user")}
    assert {title: len(track.moments) for title, track in found.items()} == {"host:event 5": 2, "guest:event 5": 1}
    assert len({track.key for track in found.values()}) == 2


def test_every_column_of_the_axis_is_that_of_the_files(tmp_path):
    """Two files: 2 CPUs with a process that is created, and 1 CPU; row 0 of each table is nobody's in both."""
    builder = TraceBuilder("7.1.0", cpus=2).process_name(0, 1, "procnto").process_name(1, 7, "sbin/app")
    builder.event(wire.PROC_CREATE, 100, (7, 9)).state("RUNNING", 200, 7, 1).state("RUNNING", 300, 9, 2, 1)
    builder.event(wire.PROC_DESTROY, 400, (7, 9)).state("READY", 500, 7, 1)
    host = opened(tmp_path / "host.kev", builder)
    other = TraceBuilder("7.1.0").process_name(0, 1, "procnto").state("RUNNING", 50, 1, 1)
    other.event(wire.code(6, 1), 60, (5, 6))
    guest = opened(tmp_path / "guest.kev", other)
    found = axis(tmp_path, host, guest, 250 * 1000)
    parts = files_of(found).parts
    assert [part.first_cpu for part in parts] == [0, 2]
    own_processes, own_threads = len(host.processes), len(host.threads)
    assert len(found.processes) == own_processes + len(guest.processes) - 1
    assert len(found.threads) == own_threads + len(guest.threads) - 1
    for part, trace, first_cpu, slot in zip(parts, (host, guest), (0, 2), (0, host.slot_count), strict=True):
        own, rows = trace.events, part.rows
        assert np.all(np.diff(rows.astype(np.int64)) > 0)
        assert found.events.cpu[rows].tolist() == (own.cpu + first_cpu).tolist()
        assert found.events.slot[rows].tolist() == (own.slot + slot).tolist()
        assert found.events.slot_count[rows].tolist() == own.slot_count.tolist()
        assert found.events.code[rows].tolist() == own.code.tolist()
        assert found.events.thread[rows].tolist() == part.threads[own.thread].tolist()
        later = 0 if trace is host else 250 - (trace.window.start - host.window.start)
        assert (found.events.time_cycles[rows] - own.time_cycles).tolist() == [later] * len(own)
        for row in range(1, len(trace.threads)):
            at = int(part.threads[row])
            assert found.states.of(at).tolist() == rows[trace.states.of(row)].tolist()
            assert found.threads.names[at] == trace.threads.names[row]
            assert found.threads.tid[at] == trace.threads.tid[row]
            process = int(trace.threads.process[row])
            assert found.threads.process[at] == part.processes[process]
            assert found.threads.pid[at] == found.processes.pid[part.processes[process]] == part.pids[process]
        for row in range(1, len(trace.processes)):
            at, created = int(part.processes[row]), int(trace.processes.created_cycles[row])
            name = trace.processes.names[row].rsplit("/", 1)[-1] or f"pid {trace.processes.pid[row]}"
            assert found.processes.names[at] == f"{part.name}:{name}"
            assert found.processes.created_cycles[at] == (created + later if created >= 0 else -1)
    threads, processes = found.threads, found.processes
    assert (threads.pid[0], threads.tid[0], threads.process[0], threads.names[0]) == (-1, -1, 0, "")
    assert (processes.pid[0], processes.parent_pid[0], processes.names[0]) == (-1, -1, "")
    assert (processes.created_cycles[0], processes.destroyed_cycles[0]) == (-1, -1)
    nobody = sorted(row for part, trace in zip(parts, (host, guest), strict=True)
                    for row in part.rows[trace.states.of(0)].tolist())  # fmt: skip
    assert found.states.of(0).tolist() == nobody
    app, child = (int(np.flatnonzero(host.processes.pid == pid)[0]) for pid in (7, 9))
    assert found.processes.parent_pid[parts[0].processes[child]] == found.processes.pid[parts[0].processes[app]]
    assert found.processes.destroyed_cycles[parts[0].processes[child]] == 400


def with_logger(folder, sender=""):
    """A run of `tracelogger`, then one of `sshd`, which the header names as the sender if `sender` is its pid."""
    builder = TraceBuilder().time_event(0)
    for pid, name, at in ((7, "usr/sbin/tracelogger", 10), (8, "usr/sbin/sshd", 500), (9, "app", 900)):
        builder.process_name(1, pid, name).state("RUNNING", at, pid, 1).state("RECEIVE", at + 100, pid, 1)
    attributes = (("CAPTURE_SSH_PID", sender),) if sender else ()
    return open_trace(write_trace(folder / "t.kev", builder.writer.slots(), attributes=attributes))


def test_who_captured_a_file_is_known_on_an_axis_as_in_the_file(tmp_path):
    host, guest = with_logger(tmp_path / "a"), with_logger(tmp_path / "b", "8")
    both = axis(tmp_path, host, guest)
    assert np.flatnonzero(of_capture(host)).tolist() == [host.processes.row(7)]
    assert np.flatnonzero(of_capture(guest)).tolist() == [guest.processes.row(pid) for pid in (7, 8)]
    assert [both.process_name(row) for row in np.flatnonzero(of_capture(both))] == [
        "host:tracelogger", "guest:tracelogger", "guest:sshd (of this capture)"]  # fmt: skip
    changes = compare(both, axis(tmp_path, host, guest, US), ["process", "thread"])
    assert {change.name for change in changes if change.is_of_logger} == {
        f"{name}{thread}"
        for name in ("host:tracelogger", "guest:tracelogger", "guest:sshd (of this capture)")
        for thread in ("", " 1")
    }
    assert {change.name for change in changes if not change.is_of_logger} >= {"host:sshd", "guest:app 1"}
    for trace, count in ((host, 3), (both, 6)):  # the name of the process and two states each
        notes = would_capture(build(parse_rules("ADDALLCLASSES", trace.release), trace.release), trace).notes
        assert any(note.startswith(f"tracelogger itself adds {count} of these events") for note in notes)


@pytest.mark.parametrize("offset_ps", [0, -5_000_000 * US])
@pytest.mark.parametrize("times_as_fine", [1, 4])
def test_the_date_of_the_first_file_keeps_its_fraction_of_a_second(tmp_path, offset_ps, times_as_fine):
    """Also if a file that begins 5 s earlier moves the axis by whole seconds, or has a finer clock."""
    trace = from_lanes(tmp_path, "cpu0 A A B .")
    trace = replace(trace, clock=replace(trace.clock, boot_time_s=1_718_000_000, boot_rest_ns=250_000_000))
    other = replace(trace, clock=replace(trace.clock, cycles_per_s=times_as_fine * trace.clock.cycles_per_s))
    both = axis(tmp_path, trace, other, offset_ps)
    first, own = files_of(both).parts[0].rows[0], trace.events.time_cycles[0]
    alone = trace.clock.wall_time(int(own))
    assert alone.microsecond == 250_000 + int(own) % 1_000_000_000 // 1_000
    assert both.clock.wall_time(int(both.events.time_cycles[first])) == alone
