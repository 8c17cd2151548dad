"""Sets of thread_trace files as traces: rows, arguments, states of threads, LWPs, and everything that can be wrong."""

from pathlib import Path

import pytest

from satview.base.errors import Cancelled, TraceFormatError, UsageError
from satview.events import states
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.states import SEEN_EVENT
from satview.events.unixware import argument_lists, categories, interfaces, record_code
from satview.formats.registry import open_trace
from satview.formats.unixware.reader import open_thread_trace
from satview.linkage.calls import partner
from satview.linkage.chain import link_of
from satview.session.event_text import event_details, list_row
from satview.timeline.lane_tree import Timeline
from tests.helpers.shared import shared_path
from tests.helpers.thread_trace import PID, record, write_set

CONTENTION = """
  0 lwp1 t1 thr_create 1 0 0 4096 0 0
 10 lwp1 t1 thr_create 2 0 2
 15 lwp2 t2 thr_self 0
 20 lwp1 t1 mutex_lock 1 65552
 30 lwp1 t1 mutex_lock 2 0 0
 25 lwp2 t2 mutex_lock 1 65552
 41 lwp2 t2 mutex_lock 2 0 1
 40 lwp1 t1 mutex_unlock 0 65552 0 1
 45 lwp2 t2 mutex_unlock 0 0x10010 0 0
 50 lwp1 t1 thr_join 1 2
 80 lwp2 t2 thr_exit 0
 90 lwp1 t1 thr_join 2 2 0 0
"""


def lanes(trace):
    """Return every lane as (start in microseconds, label) pairs, by title; an absent thread has no label."""
    timeline = Timeline(trace)
    found = {}
    for info in timeline.infos:
        lane = timeline.lane(info.index)
        starts = lane.spans.start_cycles.tolist()
        found[info.title] = [((at - trace.window.start) // 1000, timeline.label(lane.at(at))) for at in starts]
    return found


def lanes_of(tmp_path, text):
    return lanes(open_trace(write_set(tmp_path, text)))


class TestRows:
    def test_files_are_merged_by_time(self, tmp_path):
        trace = open_trace(write_set(tmp_path, CONTENTION))
        names = [trace.spec(event).name for event in range(len(trace.events))]
        assert names == [
            "thr_create 1", "thr_create 2", "thr_self", "mutex_lock 1", "mutex_lock 1", "mutex_lock 2", "mutex_unlock",
            "mutex_lock 2", "mutex_unlock", "thr_join 1", "thr_exit", "thr_join 2",
        ]  # fmt: skip
        assert trace.format == "thread_trace"
        assert trace.duration_ns == 90_000
        assert trace.threads.tid.tolist() == [-1, 1, 2]
        assert [trace.cpu_title(cpu) for cpu in range(trace.cpu_count)] == ["LWP 1", "LWP 2"]
        assert len(trace.problems) == 0

    def test_records_of_one_call_know_each_other(self, tmp_path):
        trace = open_trace(write_set(tmp_path, CONTENTION))
        assert [partner(trace, event) for event in range(12)] == [1, 0, None, 5, 7, 3, None, 4, None, 11, None, 9]

    def test_second_records_name_the_object_of_the_first(self, tmp_path):
        trace = open_trace(write_set(tmp_path, CONTENTION))
        shown = {a.name: (a.text, a.note) for a in trace.payloads.decode(7).arguments}
        assert shown == {
            "rval": ("0", ""),
            "blocked": ("1", "had to wait"),
            "mutex": ("0x10010", "from the first record"),
        }

    def test_list_and_details(self, tmp_path):
        trace = open_trace(write_set(tmp_path, CONTENTION))
        assert list_row(trace, 7, 6)[2:] == (
            "1.000 µs", "1", f"pid {PID}", "2", "mutex", "mutex_lock 2", "rval=0  blocked=1  mutex=0x10010",
        )  # fmt: skip
        text = event_details(trace, 7, link_of(trace, 7)).as_text()
        assert "16.00 µs" in text
        assert "event 5: mutex_lock 1" in text

    def test_every_record_of_the_tables_decodes(self, tmp_path):
        lines = {"": [], ".time": []}
        for number, key in enumerate(argument_lists()):
            interface, which = key.split()
            line = record(number, 1, 1, interface, int(which), 101, 102, 103, 104, 105)
            lines[".time" if interfaces()[interface][0] == 10 else ""].append(line)
        for suffix, some in lines.items():
            (tmp_path / f"tr.0000001.001{suffix}").write_text("".join(some))
        trace = open_trace(tmp_path)
        for event, (key, fields) in enumerate(argument_lists().items()):
            interface, which = key.split()
            payload = trace.payloads.decode(event)
            assert trace.spec(event).name == (interface if which == "0" else key)
            assert [a.value for a in payload.arguments[:5]] == [101, 102, 103, 104, 105], key
            names = [item.name for item in fields] + [f"a{i + 1}" for i in range(len(fields), 5)]
            assert [a.name for a in payload.arguments[:5]] == names
        assert len(argument_lists()) == 73 + 17  # those of thread_trace(4), and those of files of times
        assert "unknown-events" not in trace.problems.counts()

    def test_tables_match_the_description(self):
        path = shared_path("spec/thread_trace.md")
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 3 and cells[0].isdigit() and cells[1] in categories():
                requested = {name.split()[1]: (int(cells[0]), int(name.split()[0])) for name in cells[2].split(", ")}
                assert requested.items() <= interfaces().items()
            if len(cells) == 7 and cells[1] in "012" and cells[0] in interfaces():
                assert len(argument_lists()[f"{cells[0]} {cells[1]}"]) == sum(bool(cell) for cell in cells[2:]), line

    def test_unknown_numbers_are_kept(self, tmp_path):
        (tmp_path / "tr.0000001.001").write_text(
            "1:0:1:1:1:2:25:0:7:0:0:0:0\n1:1:1:1:1:300:-4:9:7:8:0:0:0\n1:2:1:1:1:2:2:0:7:0:0:0:0\n"
        )
        trace = open_trace(tmp_path)
        assert [trace.spec(event).name for event in range(3)] == ["EVENT 25", "EVENT 0", "mutex_lock (0)"]
        assert [trace.spec(event).class_name for event in range(3)] == ["mutex", "other", "mutex"]
        assert trace.problems.counts() == {"unknown-events": 3}

    def test_addresses_are_unsigned(self, tmp_path):
        trace = open_trace(write_set(tmp_path, "0 lwp1 t1 mutex_destroy 0 -2147418112 16"))
        assert [(a.text, a.note) for a in trace.payloads.decode(0).arguments] == [("0x80010000", ""), ("16", "EBUSY")]


class TestThreadStates:
    def test_contention_creation_and_join(self, tmp_path):
        found = lanes_of(tmp_path, CONTENTION)
        assert found["thread 1"] == [(0, "RUNNING"), (50, "JOIN"), (90, "")]
        assert found["thread 2"] == [(0, ""), (10, "READY"), (15, "RUNNING"), (25, "MUTEX"), (41, "RUNNING"), (80, "")]

    def test_spinning_threads_keep_their_lwp(self, tmp_path):
        text = "0 lwp1 t1 _spin_lock 1 64\n50 lwp1 t1 _spin_lock 2 1\n60 lwp1 t1 _spin_unlock 0 64"
        found = lanes_of(tmp_path, text)
        assert found["thread 1"] == [(0, "RUNNING"), (60, "")]
        assert found["LWP 1"][0] == (0, f"pid {PID} 1")

    def test_suspension_is_that_of_the_target(self, tmp_path):
        text = """
             0 lwp1 t1 thr_self
             5 lwp2 t2 thr_self
            10 lwp1 t1 thr_suspend 1 2
            12 lwp1 t1 thr_suspend 2 0
            40 lwp1 t1 thr_continue 0 2 0
            50 lwp2 t2 thr_self
            60 lwp1 t1 thr_exit
            70 lwp2 t2 thr_exit
        """
        found = lanes_of(tmp_path, text)
        assert found["thread 1"] == [(0, "RUNNING"), (60, "")]
        assert found["thread 2"] == [
            (0, "unknown"),
            (5, "RUNNING"),
            (12, "SUSPENDED"),
            (40, "READY"),
            (50, "RUNNING"),
            (70, ""),
        ]
        assert [label for _, label in found["LWP 2"]] == ["unknown", f"pid {PID} 2", "idle", f"pid {PID} 2", "idle"]

    def test_failed_suspension_changes_nothing(self, tmp_path):
        text = """
             0 lwp2 t2 thr_self
            10 lwp1 t1 thr_suspend 1 2
            12 lwp1 t1 thr_suspend 2 3
            20 lwp1 t1 thr_continue 0 2 0      # it runs: this continues nobody
            50 lwp2 t2 thr_exit
        """
        assert lanes_of(tmp_path, text)["thread 2"] == [(0, "RUNNING"), (50, "")]

    def test_a_thread_that_suspends_itself(self, tmp_path):
        text = """
             0 lwp1 t1 thr_self
            10 lwp1 t1 thr_suspend 1 1
            20 lwp2 t2 thr_continue 0 1 0
            21 lwp1 t1 thr_suspend 2 0
            30 lwp1 t1 thr_exit
        """
        lane = lanes_of(tmp_path, text)["thread 1"]
        assert lane == [(0, "RUNNING"), (10, "SUSPENDED"), (21, "RUNNING"), (30, "")]

    def test_who_still_waits_at_the_end_is_drawn_waiting(self, tmp_path):
        """A deadlock: each has one mutex and requests the other."""
        text = """
             0 lwp1 t1 mutex_lock 1 16
             1 lwp1 t1 mutex_lock 2 0 0
             2 lwp2 t2 mutex_lock 1 32
             3 lwp2 t2 mutex_lock 2 0 0
            10 lwp1 t1 mutex_lock 1 32
            20 lwp2 t2 mutex_lock 1 16
            90 lwp3 t3 thr_self
        """
        trace = open_trace(write_set(tmp_path, text))
        found = lanes(trace)
        assert found["thread 1"] == [(0, "RUNNING"), (10, "MUTEX")]
        assert found["thread 2"] == [(0, "unknown"), (2, "RUNNING"), (20, "MUTEX")]
        assert "unfinished-calls" not in trace.problems.counts()

    def test_an_unfinished_call_in_the_middle_is_reported(self, tmp_path):
        text = "0 lwp1 t1 mutex_lock 1 16\n5 lwp1 t1 thr_yield\n6 lwp1 t1 sema_wait 2 0"
        trace = open_trace(write_set(tmp_path, text))
        assert trace.problems.counts() == {"unfinished-calls": 2}
        assert lanes(trace)["thread 1"] == [(0, "RUNNING"), (6, "")]


class TestLwpLanes:
    def test_threads_share_and_change_lwps(self, tmp_path):
        text = """
             0 lwp1 t1 thr_self
            10 lwp1 t2 thr_self
            20 lwp1 t1 mutex_lock 1 16
            30 lwp1 t2 mutex_unlock 0 16 0 1
            40 lwp2 t1 mutex_lock 2 0 1          # woken on another LWP
            50 lwp2 t1 thr_exit
            60 lwp1 t2 thr_exit
        """
        trace = open_trace(write_set(tmp_path, text))
        found = lanes(trace)
        assert found["thread 1"] == [(0, "RUNNING"), (20, "MUTEX"), (40, "RUNNING"), (50, "")]
        one, two = f"pid {PID} 1", f"pid {PID} 2"
        assert found["LWP 1"] == [(0, one), (10, two), (30, two), (60, "idle")]
        assert found["LWP 2"] == [(0, "unknown"), (40, one), (50, "idle")]

    def test_several_processes(self, tmp_path):
        write_set(tmp_path, "0 lwp1 t1 thr_self", pid=100)
        write_set(tmp_path, "1 lwp1 t1 thr_self", pid=200)
        trace = open_trace(tmp_path)
        assert [info.title for info in Timeline(trace).infos] == [
            "LWP 1 of 100", "LWP 1 of 200", "pid 100", "thread 1", "pid 200", "thread 1",
        ]  # fmt: skip
        only = open_trace(tmp_path / "tr.0000064.001")
        assert only.processes.pid.tolist() == [-1, 100]

    @pytest.mark.thorough
    def test_more_lwps_than_lanes(self, tmp_path):
        text = "".join(record(i, i + 1, i + 1, "thr_self") for i in range(300))
        (tmp_path / "tr.0000001.001").write_text(text)
        trace = open_trace(tmp_path)
        assert trace.cpu_count == 256
        assert trace.cpu_title(255) == "other LWPs"
        assert trace.problems.counts() == {"lwp-lanes": 45}
        timeline = Timeline(trace)
        timeline.build(range(len(timeline.infos)))
        picture = timeline.raster([0, 255], trace.window, 300, exact=True)
        assert picture.shape == (2, 300)
        assert (picture[1] & SEEN_EVENT).any()


class TestOpening:
    def test_one_file_several_files_and_the_directory(self, tmp_path):
        write_set(tmp_path, CONTENTION)
        one, two = tmp_path / "tr.00010e1.001", tmp_path / "tr.00010e1.002"
        assert [len(open_trace(path).events) for path in (one, two, tmp_path)] == [12, 12, 12]
        assert len(open_thread_trace([one]).events) == 12
        assert len(open_thread_trace([one, two]).events) == 12
        write_set(tmp_path, "5 lwp1 t1 thr_self", pid=7)
        assert len(open_thread_trace([one, two]).events) == 12
        assert len(open_trace(tmp_path).events) == 13

    def test_any_name_opens_by_content(self, tmp_path):
        (tmp_path / "copy.txt").write_text(record(0, 1, 1, "thr_self"))
        assert len(open_trace(tmp_path / "copy.txt").events) == 1

    @pytest.mark.parametrize(
        ("requested", "count"), [("mutex", 6), ("thread", 6), ("cond:sema", 0), ("mutex:thread", 12)]
    )
    def test_categories(self, tmp_path, requested, count):
        write_set(tmp_path, CONTENTION)
        assert len(open_thread_trace(tmp_path, categories=requested).events) == count

    def test_names_beside_the_traces(self, tmp_path):
        write_set(tmp_path, CONTENTION)
        (tmp_path / "tr.00010e1.names").write_bytes(
            b"process:4321:/home/me/app.py\nthread:2:worker\xff\nthread:2:writer\nobject:65552:Lock app.py:3\nrubbish\n"
        )
        trace = open_trace(tmp_path)
        assert trace.thread_name(2) == "app.py 2 (writer)"
        assert trace.payloads.decode(3).arguments[0].note == "Lock app.py:3"

    def test_progress_and_cancel(self, tmp_path):
        write_set(tmp_path, CONTENTION)
        reported = []
        open_trace(tmp_path, reported.append)
        sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
        read = [sum(sizes[: count + 1]) / sum(sizes) for count in range(len(sizes))]
        assert reported == pytest.approx([0.9 * share for share in read]), "nine tenths are reading, file by file"
        with pytest.raises(Cancelled):
            open_trace(tmp_path, None, lambda: True)

    def test_times_are_dates(self, tmp_path):
        trace = open_trace(write_set(tmp_path, CONTENTION))
        assert f"{trace.clock.wall_time(trace.window.start):%Y-%m-%d %H:%M:%S}" == "1970-01-01 00:16:40"


class TestDamage:
    def test_bad_lines_are_problems_with_file_and_line(self, tmp_path):
        write_set(tmp_path, CONTENTION)
        with (tmp_path / "tr.00010e1.002").open("a") as file:
            file.write("hello\n1000:99000:2:4321:2:1:4:0:0:0:0:0:0\n1000:99")
        trace = open_trace(tmp_path)
        assert [(p.kind.slug, p.file, p.line) for p in trace.problems] == [
            ("bad-line", "tr.00010e1.002", 6),
            ("bad-line", "tr.00010e1.002", 8),
        ]
        assert "ends inside" in trace.problems.rows[1].detail
        assert len(trace.events) == 13
        assert trace.problems.cost_data

    def test_empty_and_missing_files(self, tmp_path):
        write_set(tmp_path, CONTENTION)
        (tmp_path / "tr.00010e1.003").touch()
        trace = open_trace(tmp_path / "tr.00010e1.003")
        assert len(trace.events) == 12
        assert [(p.kind.slug, p.file) for p in trace.problems] == [("missing-file", "tr.00010e1.003")]
        trace = open_thread_trace([tmp_path / "tr.00010e1.001", tmp_path / "tr.00010e1.009"])
        assert trace.problems.counts() == {"missing-file": 1}
        assert len(trace.events) == 7

    def test_nothing_to_read(self, tmp_path):
        with pytest.raises(TraceFormatError, match="no thread trace"):
            open_thread_trace(tmp_path)
        with pytest.raises(TraceFormatError, match="there is no such file; check the name"):
            open_thread_trace(tmp_path / "tr.0000001.001")
        (tmp_path / "tr.0000001.001").touch()
        with pytest.raises(TraceFormatError, match="no line of it"):
            open_trace(tmp_path)
        with pytest.raises(UsageError):
            open_thread_trace([])

    def test_clock_set_back_keeps_the_order_of_the_file(self, tmp_path):
        (tmp_path / "tr.0000001.001").write_text(
            record(50, 1, 1, "mutex_lock", 1, 16)
            + record(20, 1, 1, "mutex_lock", 2, 0, 1)
            + record(60, 1, 1, "thr_exit")
        )
        trace = open_trace(tmp_path)
        assert [trace.spec(e).name for e in range(3)] == ["mutex_lock 1", "mutex_lock 2", "thr_exit"]
        assert trace.duration_ns == 10_000
        assert [(p.kind.slug, p.line) for p in trace.problems] == [("clock-set-back", 2)]

    @pytest.mark.parametrize(
        "content",
        [
            bytes(range(256)) * 5000,
            b"\n" * 100_000,
            b"7" * 3_000_000,
            b":" * 200_000,
            (b"x" * 5000 + b"\n") * 300,
            b"\0" * 100_000,
        ],
    )
    def test_rubbish_beside_a_good_file(self, tmp_path, content):
        write_set(tmp_path, CONTENTION)
        (tmp_path / "tr.00010e1.003").write_bytes(content)
        trace = open_trace(tmp_path)
        assert len(trace.events) == 12
        assert len(trace.problems) <= 2001

    def test_a_long_line_costs_itself_only(self, tmp_path):
        good = record(0, 1, 1, "thr_self").encode()
        (tmp_path / "tr.0000001.001").write_bytes(good + b"9" * 2_500_000 + b"\n" + good)
        trace = open_trace(tmp_path)
        assert len(trace.events) == 2
        assert [(p.kind.slug, p.line) for p in trace.problems] == [("bad-line", 2)]


class TestCatalogue:
    def test_classes_are_the_categories(self):
        names = [spec.name for spec in catalogue(Release.UNIXWARE).classes]
        assert names == [*categories(), "other"]

    @pytest.mark.parametrize("name", ["mutex_lock", "MUTEX/mutex_lock", "Mutex_Lock"])
    def test_find(self, name):
        codes = catalogue(Release.UNIXWARE).find(name)
        assert record_code("mutex_lock", 1) in codes
        assert {catalogue(Release.UNIXWARE).spec(code).calls[0] for code in codes} == {"mutex_lock"}

    def test_suggest(self):
        assert "MUTEX_LOCK" in catalogue(Release.UNIXWARE).suggest("mutex_lok")

    @pytest.mark.parametrize(
        ("interface", "state"),
        [("mutex_lock", "MUTEX"), ("rmutex_lock", "MUTEX"), ("rw_rdlock", "RWLOCK_READ"), ("rw_wrlock", "RWLOCK_WRITE"),
         ("cond_wait", "CONDVAR"), ("cond_timedwait", "CONDVAR"), ("sema_wait", "SEM"), ("barrier_wait", "BARRIER"),
         ("thr_join", "JOIN")],
    )  # fmt: skip
    def test_states(self, interface, state):
        """Of the first record of a call that waits; a thread runs from the second one on."""
        table = catalogue(Release.UNIXWARE).state_value_of_code
        assert table[record_code(interface, 1, 1)] == states.STATE_BY_NAME[state].value
        assert table[record_code(interface, 2)] == states.RUNNING
        assert table[0] == states.NOT_A_STATE


def test_the_sample_set_is_whole():
    trace = open_trace(Path(__file__).parents[2] / "sample_traces" / "threads")
    assert len(trace.problems) == 0
    assert trace.threads.names[1:] == ("MainThread", "producer", "watcher", "worker 1", "worker 2")
    shown = {label for lane in lanes(trace).values() for _, label in lane}
    assert {"RUNNING", "JOIN", "CONDVAR", "SEM", "MUTEX", "BARRIER", "NANOSLEEP"} <= shown
