"""Processor time, sleep, input and output of traced programs; and what tracing costs."""

import io
import os
import pickle
import shutil
import socket
import threading
import time

import pytest

from satview.analysis.statistics import Statistics
from satview.base.time import TimeWindow
from satview.events.states import RUNNING, STATE_BY_NAME
from satview.formats.registry import open_trace
from satview.threadtrace.install import tracing
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.benchmarks import threadtrace_heavy


def spend(seconds):
    """Use processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A sleeper, a worker that sleeps in between, and threads that wait for a pipe, a file on a pipe, and a socket."""
    directory = tmp_path_factory.mktemp("times")
    pipe, filed = os.pipe(), os.pipe()
    here, there = socket.socketpair()

    def worker():
        spend(0.1)
        time.sleep(0.1)
        spend(0.1)

    def lines():
        with os.fdopen(filed[0]) as file:
            assert file.readline() == "line\n"

    jobs = {
        "sleeper": lambda: time.sleep(0.3),
        "worker": worker,
        "pipe": lambda: os.read(pipe[0], 9),
        "lines": lines,
        "socket": lambda: here.recv(9),
    }
    with tracing(str(directory)):
        threads = [threading.Thread(target=job, name=name) for name, job in jobs.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        os.write(pipe[1], b"1")
        os.write(filed[1], b"line\n")
        there.send(b"2")
        for thread in threads:
            thread.join()
    for end in (pipe[0], *pipe[1:], filed[1]):
        os.close(end)
    here.close()
    there.close()
    return directory


def in_state(found, name, state):
    """Return the milliseconds that a thread was in a state."""
    trace = found.trace
    total = found.states.of_state(STATE_BY_NAME[state].value, found.states.total_cycles, len(trace.threads))
    return total[trace.threads.names.index(name)] / 1e6


def cpu_ms(found, name):
    return found.threads.cpu_cycles[found.trace.threads.names.index(name)] / 1e6


@pytest.mark.thorough
def test_sleep_is_no_processor_time(traces):
    found = Statistics(open_trace(traces))
    assert found.measures_cpu
    assert in_state(found, "sleeper", "NANOSLEEP") >= 300
    assert cpu_ms(found, "sleeper") < 30
    assert in_state(found, "worker", "NANOSLEEP") >= 100
    assert 200 <= cpu_ms(found, "worker") < 260


@pytest.mark.thorough
def test_input_and_output_is_a_state(traces):
    found = Statistics(open_trace(traces))
    for name in ("pipe", "lines", "socket"):
        assert in_state(found, name, "IO") > 50, name
        assert cpu_ms(found, name) < 30


def test_processor_time_of_a_range(traces):
    """The worker's time is in the two halves of its life, not in its sleep between them."""
    trace = open_trace(traces)
    row = trace.threads.names.index("worker")
    sleep = [
        e
        for e in range(len(trace.events))
        if trace.spec(e).name in ("sleep 1", "sleep 2") and trace.events.thread[e] == row
    ]
    start, end = (int(trace.events.time_cycles[e]) for e in sleep)
    asleep = Statistics(trace, TimeWindow(start, end))
    assert cpu_ms(asleep, "worker") < 5
    before, after = TimeWindow(trace.window.start, start), TimeWindow(end, trace.window.end)
    parts = [cpu_ms(Statistics(trace, window), "worker") for window in (before, after)]
    assert all(95 <= part < 160 for part in parts), parts


def test_a_thread_that_only_computes_runs_until_its_last_measurement(tmp_path):
    """One that waits instead, waits to the end, whatever was measured meanwhile."""
    records = [
        "1:0:1:1:1:1:4:0:0:0:0:0:0\n",
        "1:0:2:1:2:1:4:0:0:0:0:0:0\n",
        "1:0:3:1:3:1:4:0:0:0:0:0:0\n",
        "1:100:2:1:2:2:2:1:16:0:0:0:0\n",
        "1:200:3:1:3:1:2:0:0:0:0:0:0\n",
    ]
    times = [
        f"1:{time}:{tid}:1:{tid}:10:1:0:{cpu}:0:0:0:0\n"
        for tid in (1, 2)
        for time, cpu in ((0, 5), (400, 305), (900, 705))
    ]
    times += ["1:0:3:1:3:10:1:0:0:0:0:0:0\n", "1:200:3:1:3:10:1:0:150:0:0:0:0\n"]
    (tmp_path / "tr.0000001.001").write_text("".join(records), encoding="ascii")
    (tmp_path / "tr.0000001.001.time").write_text("".join(times), encoding="ascii")
    trace = open_trace(tmp_path)
    assert trace.problems.counts() == {}
    timeline = Timeline(trace)
    lanes = {info.title: timeline.lane(info.index) for info in timeline.infos if info.kind == LaneKind.THREAD}
    shown = [
        [(timeline.label(lane.at(at)), at - 10**9) for at in lane.spans.start_cycles.tolist()]
        for lane in lanes.values()
    ]
    assert [[step for step in lane if step[0]] for lane in shown] == [
        [("RUNNING", 0)],
        [("RUNNING", 0), ("MUTEX", 100)],
        [("RUNNING", 0)],
    ]
    found = Statistics(trace)
    assert found.threads.cpu_cycles[1:].tolist() == [700, 700, 150]
    running = found.states.of_state(RUNNING, found.states.total_cycles, 4)
    assert running[1:].tolist() == [900, 100, 200]


def test_files_of_thread_trace_hold_nothing_new(traces, tmp_path):
    """Readers of thread_trace(4) find its nine categories; without the files of times the trace is as it was."""
    plain = [path for path in traces.glob("tr.*") if path.suffix not in (".time", ".names")]
    categories = {int(line.split(":")[5]) for path in plain for line in path.read_text().splitlines()}
    assert categories <= set(range(1, 10))
    for path in plain:
        shutil.copy(path, tmp_path)
    trace = open_trace(tmp_path)
    assert trace.problems.counts() == {}
    assert not Statistics(trace).measures_cpu
    own = "1:0:1:1:1:10:2:1:7:0:0:0:0\n"
    (tmp_path / "tr.0000001.001").write_text(own)
    assert open_trace(tmp_path / "tr.0000001.001").problems.counts() == {"unknown-events": 1}


def test_behaviour_of_what_is_traced(tmp_path):
    with tracing(str(tmp_path)):

        class Clock:
            sleep = time.sleep
            open = open

        Clock().sleep(0)
        assert [pickle.loads(pickle.dumps(traced)) is traced for traced in (time.sleep, open, os.read)] == [True] * 3
        path = tmp_path / "text"
        with Clock().open(path, "w", encoding="utf-8") as file:
            file.write("grey")
        with open(path, "rb", buffering=0) as raw:  # noqa: PTH123
            assert type(raw) is io.FileIO
            assert (raw.read(2), raw.readall(), raw.read()) == (b"gr", b"ey", b"")
        with pytest.raises(ValueError, match="closed"):
            raw.read()
        with pytest.raises(io.UnsupportedOperation), open(path, "rb") as file:  # noqa: PTH123
            file.write(b"x")
        with pytest.raises(TypeError):
            time.sleep("x")
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.read(10**6, 1)
        forgotten = open(path, "rb")  # noqa: SIM115, PTH123
        descriptor = forgotten.fileno()
        with pytest.warns(ResourceWarning):
            del forgotten
        with pytest.raises(OSError):
            os.fstat(descriptor)
    assert time.sleep.__class__.__name__ == "builtin_function_or_method"
    assert "recv" not in socket.socket.__dict__


@pytest.mark.thorough
def test_programs_full_of_locks_stay_usable():
    """The bound is 10 times; what is measured here is processor time, so that a busy machine does not matter much."""
    plain, traced = min(threadtrace_heavy.measure(20_000, 4) for _ in range(3))
    assert traced / plain < 20, f"{plain:.0f} ns an operation, traced {traced:.0f} ns"
