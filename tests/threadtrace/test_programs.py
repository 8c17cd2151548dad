"""Real programs, run traced: what the trace shows is what they did. Orders and states are looked at, never times."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from satview.answers.locks import lock_tables
from satview.formats.registry import open_trace
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.helpers.extent import fewer

ROOT = str(Path(__file__).parents[2])
WITHOUT_TIMES = "thread:mutex:cond:sema:rmutex:barrier"
HAS_FORK = hasattr(os, "fork")


def run(tmp_path, program, *arguments, environment=None, code=0):
    """Run a program traced; return its standard output."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    variables = {key: value for key, value in os.environ.items() if not key.startswith("THR_TRACE_")}
    variables |= {
        "THR_TRACE_DIR": str(tmp_path / "traces"),
        "PYTHONPATH": ROOT,
        "THR_TRACE_EVENTS": WITHOUT_TIMES,
        **(environment or {}),
    }
    done = subprocess.run(
        [sys.executable, "-m", "satview.threadtrace", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=variables,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def traced(tmp_path, program, *arguments, **named):
    """Run a program and open its trace, which must be free of problems."""
    run(tmp_path, program, *arguments, **named)
    trace = open_trace(tmp_path / "traces")
    assert trace.problems.counts() == {}
    return trace


def thread_states(trace):
    """Return the states of every thread in order, by name; an absent thread has the state ''."""
    timeline = Timeline(trace)
    found = {}
    for info in timeline.infos:
        if info.kind == LaneKind.THREAD:
            lane = timeline.lane(info.index)
            labels = [timeline.label(lane.at(at)) for at in lane.spans.start_cycles.tolist()]
            found[info.title] = [label for i, label in enumerate(labels) if not i or labels[i - 1] != label]
    return found


def records(trace, thread):
    """Return the names of a thread's records in order."""
    row = trace.threads.names.index(thread)
    return [trace.spec(e).name for e in range(len(trace.events)) if trace.events.thread[e] == row]


def locks(trace):
    return {(row["kind"], row["name"].split(" (")[0]): row for row in lock_tables(trace)[0]}


@pytest.mark.thorough
def test_contention(tmp_path):
    trace = traced(
        tmp_path,
        """
        import threading, time
        lock, requests = threading.Lock(), []
        def work():
            requests.append(True)
            with lock:
                pass
        with lock:
            worker = threading.Thread(target=work, name="worker")
            worker.start()
            while not requests: time.sleep(0.001)
            time.sleep(0.05)
        worker.join()
    """,
    )
    states = thread_states(trace)
    assert states["worker"] == ["", "READY", "RUNNING", "MUTEX", "RUNNING", ""]
    assert states["MainThread"][0] == "RUNNING"
    assert set(states["MainThread"]) <= {"RUNNING", "JOIN", ""}
    assert records(trace, "worker") == ["thr_self", "mutex_lock 1", "mutex_lock 2", "mutex_unlock", "thr_exit"]
    assert records(trace, "MainThread") == [
        "thr_self", "mutex_init", "mutex_lock 1", "mutex_lock 2", "thr_create 1", "thr_create 2", "mutex_unlock",
        "thr_join 1", "thr_join 2", "thr_exit",
    ]  # fmt: skip
    found = locks(trace)
    row = found["mutex", "Lock program.py:3"]
    assert (row["waits"], row["holds"], row["threads"]) == (1, 2, 2)
    worker = trace.threads.names.index("worker")
    created = [
        a
        for e in range(len(trace.events))
        if trace.spec(e).name == "thr_create 1"
        for a in trace.payloads.decode(e).arguments
        if a.name == "start_routine"
    ]
    assert [argument.note for argument in created] == ["work program.py:4"]
    assert trace.thread_name(worker) == "program.py 2 (worker)"


@pytest.mark.thorough
def test_producer_and_consumer(tmp_path):
    trace = traced(
        tmp_path,
        """
        import queue, threading, time
        items = queue.Queue(2)
        def produce():
            for number in range(6):
                items.put(number)
            items.put(None)
        def consume():
            while items.get() is not None:
                time.sleep(0.01)
        threads = [threading.Thread(target=f, name=f.__name__) for f in (produce, consume)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """,
    )
    states = thread_states(trace)
    assert "CONDVAR" in states["produce"]
    assert states["produce"][-2:] == ["RUNNING", ""]
    assert "JOIN" in states["MainThread"]
    assert "SUSPENDED" not in states["consume"]
    found = locks(trace)
    assert any(kind == "cond" and name == "Condition program.py:3" for kind, name in found)
    mutex = found["mutex", "Lock program.py:3"]
    assert mutex["holds"] >= 7 + 7


@pytest.mark.thorough
def test_barrier_and_semaphore(tmp_path):
    trace = traced(
        tmp_path,
        """
        import threading, time
        barrier, semaphore = threading.Barrier(3), threading.Semaphore(0)
        def meet(others):
            while barrier.n_waiting < others: time.sleep(0.001)
            barrier.wait()
        threads = [threading.Thread(target=meet, args=(i,), name=f"meet{i}") for i in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        poster = threading.Timer(0.15, semaphore.release)
        poster.name = "poster"
        poster.start()
        assert semaphore.acquire()
        assert not semaphore.acquire(blocking=False)
        assert not semaphore.acquire(timeout=0.01)
    """,
    )
    states = thread_states(trace)
    assert states["meet0"] == states["meet1"] == ["", "READY", "RUNNING", "BARRIER", "RUNNING", ""]
    assert states["meet2"] == ["", "READY", "RUNNING", ""]
    assert states["MainThread"][-5:] == ["SEM", "RUNNING", "SEM", "RUNNING", ""]
    assert records(trace, "poster") == [
        "thr_self", "cond_timedwait 1", "cond_timedwait 2", "sema_post", "cond_broadcast", "thr_exit",
    ]  # fmt: skip
    found = locks(trace)
    row = found["sema", "Semaphore program.py:3"]
    assert (row["calls"], row["waits"], row["failed"]) == (3, 2, 2)


def test_conditions_events_and_recursive_locks(tmp_path):
    trace = traced(
        tmp_path,
        """
        from threading import Condition, Event, RLock, Thread
        import time
        condition, event, lock, ready = Condition(), Event(), RLock(), []
        def wait():
            with condition:
                condition.wait_for(lambda: ready)
            event.wait()
            assert event.wait(5)          # set already: nobody waits
            with lock, lock:
                pass
        waiter = Thread(target=wait, name="waiter")
        waiter.start()
        while not condition._waiters: time.sleep(0.001)
        with condition:
            ready.append(1)
            condition.notify_all()
        while not event._cond._waiters: time.sleep(0.001)
        event.set()
        waiter.join()
    """,
    )
    waited = ["CONDVAR", "RUNNING"]
    assert thread_states(trace)["waiter"] == ["", "READY", "RUNNING", *waited, *waited, ""]
    assert records(trace, "waiter") == [
        "thr_self", "rmutex_lock 1", "rmutex_lock 2", "cond_wait 1", "cond_wait 2", "rmutex_unlock", "cond_wait 1",
        "cond_wait 2", "rmutex_lock 1", "rmutex_lock 2", "rmutex_lock 1", "rmutex_lock 2", "rmutex_unlock",
        "rmutex_unlock", "thr_exit",
    ]  # fmt: skip
    depths = [
        a.value
        for e in range(len(trace.events))
        if trace.spec(e).name == "rmutex_lock 2"
        for a in trace.payloads.decode(e).arguments
        if a.name == "rm_depth"
    ]
    assert sorted(depths) == [1, 1, 1, 2]


def test_executors(tmp_path):
    trace = traced(
        tmp_path,
        """
        from concurrent.futures import ThreadPoolExecutor
        import time
        def square(n):
            time.sleep(0.002)
            return n * n
        with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
            assert list(pool.map(square, range(20))) == [n * n for n in range(20)]
    """,
    )
    states = thread_states(trace)
    assert "SEM" in states["pool_0"] + states["pool_1"]
    assert states["pool_0"][-1] == ""
    assert "CONDVAR" in states["MainThread"]


def test_lwp_numbers_are_used_again_and_names_change(tmp_path):
    trace = traced(
        tmp_path,
        """
        import threading
        def work():
            threading.current_thread().name = f"renamed {threading.current_thread().name}"
        for number in range(5):
            thread = threading.Thread(target=work, name=str(number))
            thread.start()
            thread.join()
    """,
    )
    assert trace.cpu_titles == ("LWP 1", "LWP 2")
    assert trace.threads.names[1:] == ("MainThread", *(f"renamed {number}" for number in range(5)))
    assert len(list((tmp_path / "traces").glob("tr.*.002"))) == 1


@pytest.mark.thorough
def test_threads_started_without_threading(tmp_path):
    trace = traced(
        tmp_path,
        """
        import _thread, threading, time
        done = threading.Lock()
        done.acquire()
        def work(what, *, release):
            release()
        _thread.start_new_thread(work, (1,), {"release": done.release})
        done.acquire()
        time.sleep(0.05)
    """,
    )
    assert thread_states(trace)["thread 2"][:3] == ["", "READY", "RUNNING"]


@pytest.mark.parametrize(
    ("requested", "categories"),
    fewer(
        [
            ("thread:sema", {"thread", "sema"}),
            ("", {"thread", "mutex", "sema", "cond", "rmutex", "time"}),
            ("mutex", {"mutex"}),
        ],
        2,
    ),
)
def test_categories(tmp_path, requested, categories):
    program = """
        import threading
        threading.Semaphore(1).acquire()
        with threading.Lock(): pass
        with threading.Condition(): pass
        t = threading.Thread(target=int); t.start(); t.join()
    """
    trace = traced(tmp_path, program, environment={"THR_TRACE_EVENTS": requested})
    assert set(trace.class_counts()) == categories


class TestEnds:
    """Records reach the files however a program ends."""

    PROGRAM = """
        import os, signal, sys, threading, time
        lock = threading.Lock()
        lock.acquire()
        {end}
    """

    @pytest.mark.parametrize(
        ("end", "code"),
        fewer(
            [
                ("raise ValueError('boom')", 1),
                ("os._exit(8)", 8),
                ("os.execv(sys.executable, [sys.executable, '-c', 'pass'])", 0),
                ("sys.exit(7)", 7),
                ("sys.exit('bye')", 1),
                ("pass", 0),
                ("threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", 0),
            ],
            3,
        ),
    )
    def test_ends(self, tmp_path, end, code):
        output = run(tmp_path, self.PROGRAM.format(end=end), code=code)
        trace = open_trace(tmp_path / "traces")
        assert records(trace, "MainThread")[:4] == ["thr_self", "mutex_init", "mutex_lock 1", "mutex_lock 2"]
        if "boom" in end:
            assert output.count('File "') == 1
            assert "ValueError: boom" in output
            assert "satview" not in output

    @pytest.mark.thorough
    @pytest.mark.skipif(not hasattr(os, "kill") or sys.platform == "win32", reason="signals of POSIX")
    @pytest.mark.parametrize(("variables", "wait_s"), [({"THR_TRACE_BUF": "1"}, 0), ({}, 0.6)])
    def test_killed(self, tmp_path, variables, wait_s):
        """A killed program leaves what is written at once, and what is older than the interval of the writer."""
        end = f"time.sleep({wait_s}); os.kill(os.getpid(), signal.SIGKILL)"
        run(tmp_path, self.PROGRAM.format(end=end), environment=variables, code=-9)
        trace = open_trace(tmp_path / "traces")
        assert records(trace, "MainThread") == ["thr_self", "mutex_init", "mutex_lock 1", "mutex_lock 2"]

    @pytest.mark.thorough
    @pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
    def test_a_deadlock_is_seen(self, tmp_path):
        run(
            tmp_path,
            """
            import os, signal, threading, time
            one, two = threading.Lock(), threading.Lock()
            ready = threading.Barrier(2)
            def work(first, second):
                with first:
                    ready.wait()
                    with second:
                        pass
            for name, pair in (("a", (one, two)), ("b", (two, one))):
                threading.Thread(target=work, args=pair, name=name).start()
            time.sleep(0.8)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
            code=-9,
        )
        states = thread_states(open_trace(tmp_path / "traces"))
        assert states["a"][-1] == states["b"][-1] == "MUTEX"


@pytest.mark.skipif(not HAS_FORK, reason="no fork here")
def test_child_processes_have_files_of_their_own(tmp_path):
    trace = traced(
        tmp_path,
        """
        import os, threading, warnings
        lock = threading.Lock()
        lock.acquire()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            child = os.fork()
        if not child:
            with threading.Lock():
                os._exit(0)
        os.waitpid(child, 0)
        lock.release()
    """,
    )
    assert len(trace.processes) == 3
    counts = {}
    for event in range(len(trace.events)):
        pid = int(trace.threads.pid[trace.events.thread[event]])
        counts.setdefault(pid, []).append(trace.spec(event).name)
    parent, child = sorted(counts.values(), key=len, reverse=True)
    assert parent == ["thr_self", "mutex_init", "mutex_lock 1", "mutex_lock 2", "mutex_unlock", "thr_exit"]
    assert child == ["mutex_init", "mutex_lock 1", "mutex_lock 2"]


class TestCommand:
    def test_arguments_and_main_module(self, tmp_path):
        output = run(
            tmp_path,
            """
            import sys, __main__
            print(sys.argv[1:], __name__, __file__ == sys.argv[0], __main__.__dict__ is globals(), sys.path[0])
        """,
            "-m",
            "x",
            "--help",
        )
        assert output == f"['-m', 'x', '--help'] __main__ True True {tmp_path}\n"

    def test_module(self, tmp_path):
        (tmp_path / "tool").mkdir()
        (tmp_path / "tool" / "__main__.py").write_text("import sys, threading\nthreading.Lock()\nprint(sys.argv[1:])")
        done = subprocess.run(
            [sys.executable, "-m", "satview.threadtrace", "-m", "tool", "a", "-b"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ROOT, "THR_TRACE_DIR": "out", "THR_TRACE_EVENTS": WITHOUT_TIMES},
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "['a', '-b']\n"), done.stderr
        assert open_trace(tmp_path / "out").class_counts() == {"thread": 2, "mutex": 1}

    @pytest.mark.thorough
    def test_refusals(self, tmp_path):
        (tmp_path / "file").touch()
        for arguments, variables, text in (
            (["none.py"], {}, "there is no such file"),
            (["-m", "no_such_module_at_all"], {}, "there is no module"),
            (["file"], {"THR_TRACE_EVENTS": "mutx"}, "names no category with mutx"),
            (["file"], {"THR_TRACE_DIR": str(tmp_path / "file")}, "set THR_TRACE_DIR"),
            ([], {}, "error: name the program: a SCRIPT, or -m and a MODULE\n"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "satview.threadtrace", *arguments],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": ROOT, **variables},
                timeout=60,
                check=False,
            )
            assert done.returncode == 2, done.stderr
            assert text in done.stderr
            assert "Traceback" not in done.stderr
