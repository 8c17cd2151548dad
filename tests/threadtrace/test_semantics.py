"""Traced locks behave as the interpreter's own; checked side by side, in this process."""

import copy
import pickle
import queue
import threading
import time
import weakref

import pytest

from satview.events.unixware import categories, interfaces
from satview.formats.registry import open_trace
from satview.threadtrace import codes
from satview.threadtrace.install import tracing
from satview.threadtrace.locks import TracedLock, TracedRLock


@pytest.fixture
def trace_dir(tmp_path):
    """Tracing is on while the test runs."""
    with tracing(str(tmp_path / "traces")):
        yield tmp_path / "traces"


def outcome(call):
    """Return what a call returns, or the type of what it raises."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001
        return type(error)


LOCK_SCRIPTS = {
    "plain": lambda lock: [lock.acquire(), lock.release()],
    "with": lambda lock: [lock.__enter__(), lock.__exit__(None, None, None)],
    "release unlocked": lambda lock: lock.release(),
    "timeout without blocking": lambda lock: lock.acquire(False, 1),
    "negative timeout": lambda lock: lock.acquire(True, -5),
    "long timeout": lambda lock: lock.acquire(timeout=1e300),
    "timeout": lambda lock: [lock.acquire(timeout=1), lock.release()],
    "zero timeout": lambda lock: [lock.acquire(True, 0), lock.release()],
    "keywords": lambda lock: [lock.acquire(blocking=True, timeout=0.5), lock.release()],
    "pickle": pickle.dumps,
    "copy": copy.deepcopy,
    "weak": lambda lock: weakref.ref(lock)() is lock,
    "attribute": lambda lock: lock.no_such_thing,
    "set": lambda lock: setattr(lock, "extra", 1),
    "reinit": lambda lock: [lock.acquire(), lock._at_fork_reinit(), lock.acquire(False)],
    "owned": lambda lock: threading.Condition(lock).notify(),
}


@pytest.mark.parametrize("script", LOCK_SCRIPTS)
@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_same_outcome_as_the_real_lock(tmp_path, kind, script):
    real = outcome(lambda: LOCK_SCRIPTS[script](getattr(threading, kind)()))
    with tracing(str(tmp_path)):
        lock = getattr(threading, kind)()
        assert type(lock) is {"Lock": TracedLock, "RLock": TracedRLock}[kind]
        assert outcome(lambda: LOCK_SCRIPTS[script](lock)) == real


def test_lock_is_held_by_others(trace_dir):
    lock = threading.Lock()
    assert not lock.locked()
    with lock:
        assert lock.locked()
        seen = []
        thread = threading.Thread(target=lambda: seen.extend([lock.acquire(False), lock.acquire(timeout=0.01)]))
        thread.start()
        thread.join()
    assert seen == [False, False]
    assert not lock.locked()


def test_rlock_of_another_thread_cannot_be_released(trace_dir):
    lock = threading.RLock()
    lock.acquire()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(outcome(lock.release)))
    thread.start()
    thread.join()
    assert seen == [RuntimeError]
    lock.release()


@pytest.mark.parametrize("kind", ["Lock", "RLock", ""])
def test_conditions_on_every_lock(trace_dir, kind):
    condition = threading.Condition(getattr(threading, kind)() if kind else None)
    items = []

    def wait():
        with condition:
            items.append(condition.wait_for(lambda: "go" in items, timeout=10))

    thread = threading.Thread(target=wait)
    thread.start()
    with condition:
        items.append("go")
        condition.notify()
    thread.join()
    assert items == ["go", True]
    with condition:
        assert condition.wait(0.001) is False


def test_nested_rlock_in_a_condition_comes_back_as_deep(trace_dir):
    lock = threading.RLock()
    condition = threading.Condition(lock)
    with lock, lock, condition:
        condition.wait(0.001)
        assert lock._depth == 3
    assert outcome(lock.release) is RuntimeError


def test_counts_stay_right_under_load(trace_dir):
    total, lock, gate = [0], threading.Lock(), threading.BoundedSemaphore(2)

    def work():
        for _ in range(2000):
            with gate, lock:
                total[0] += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [8000]
    assert outcome(gate.release) is ValueError


def test_subclasses_and_early_imports_are_traced_and_types_stay(trace_dir):
    class Mine(threading.Thread):
        def run(self):
            self.seen = "run" in self.__dict__

    thread = Mine(name="mine")
    thread.start()
    thread.join()
    assert thread.seen is False
    assert isinstance(threading.Semaphore(), threading.Semaphore)
    assert isinstance(threading.BoundedSemaphore(), threading.Semaphore)
    assert outcome(thread.start) is RuntimeError
    assert outcome(threading.current_thread().join) is RuntimeError


def test_exceptions_of_threads_reach_the_hook(trace_dir, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert seen == [ZeroDivisionError]


def test_a_broken_barrier(trace_dir):
    barrier = threading.Barrier(2)
    assert outcome(lambda: barrier.wait(0.01)) is threading.BrokenBarrierError
    assert barrier.broken


def test_simple_queues(tmp_path):
    with tracing(str(tmp_path), "sema"):
        items = queue.SimpleQueue()
        items.put(1)
        items.put_nowait(2)
        assert (items.get(), items.get_nowait(), items.qsize(), items.empty()) == (1, 2, 0, True)
        assert outcome(items.get_nowait) is queue.Empty
        assert outcome(lambda: items.get(timeout=0.01)) is queue.Empty
        assert isinstance(items, queue.SimpleQueue)
    assert type(queue.SimpleQueue()) is not type(items)
    trace = open_trace(tmp_path)
    shown = [(trace.spec(e).name, trace.payloads.values(e)[1]) for e in range(len(trace.events))]
    assert shown == [
        ("sema_init", 0),
        ("sema_post", 0),
        ("sema_post", 0),
        ("sema_wait 1", 2),
        ("sema_wait 2", 0),
        ("sema_trywait", 0),
        ("sema_trywait", 16),
        ("sema_wait 1", 0),
        ("sema_wait 2", 0),
    ]
    assert trace.payloads.values(8)[0] == 62


def test_everything_is_put_back(tmp_path):
    before = (
        threading.Lock, threading.RLock, threading.Thread.start, threading.Thread.join, threading.Condition.wait,
        threading.Semaphore.__enter__, threading.Thread.name,
    )  # fmt: skip
    with tracing(str(tmp_path)):
        lock, condition = threading.Lock(), threading.Condition()
        assert threading.Lock is TracedLock
    after = (
        threading.Lock, threading.RLock, threading.Thread.start, threading.Thread.join, threading.Condition.wait,
        threading.Semaphore.__enter__, threading.Thread.name,
    )  # fmt: skip
    assert before == after
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    with lock, condition:
        condition.wait(0.001)
    with tracing(str(tmp_path / "again")), lock:
        pass
    assert sum(file.stat().st_size for file in tmp_path.iterdir() if file.is_file()) == size


def test_records_are_complete_under_load(tmp_path):
    """More records than a buffer holds, from several threads: none is lost, none comes twice, order is the same."""
    with tracing(str(tmp_path), "mutex:thread"):

        def work():
            lock = threading.Lock()
            for _ in range(5000):
                lock.acquire()
                lock.release()

        threads = [threading.Thread(target=work, name=f"w{i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = open_trace(tmp_path)
    assert trace.problems.counts() == {}
    for name in ("w0", "w1", "w2"):
        mine = trace.events.thread == trace.threads.names.index(name)
        assert mine.sum() == 2 + 1 + 3 * 5000
        names = [trace.catalogue.name(int(code)) for code in trace.events.code[mine]]
        assert names[2:-1] == ["mutex_lock 1", "mutex_lock 2", "mutex_unlock"] * 5000


def test_an_unwritable_file_does_not_stop_the_program(tmp_path, capsys):
    with tracing(str(tmp_path), "mutex"):
        for name in tmp_path.iterdir():
            name.unlink()
        lock = threading.Lock()
        with lock:
            pass
        import satview.threadtrace.state as state

        state.current().output.path = str(tmp_path / "no" / "such" / "file")
        for _ in range(5000):
            with lock:
                pass
        time.sleep(0)
    assert "cannot be written" in capsys.readouterr().err


def test_numbers_are_those_of_the_tables():
    assert categories() == codes.CATEGORIES
    for interface, (category, number) in interfaces().items():
        constant = interface.upper().replace("RMUTEX_", "MUTEX_")
        if category in (codes.THREAD, codes.MUTEX, codes.COND, codes.SEMA, codes.RMUTEX, codes.BARRIER) and hasattr(
            codes, constant
        ):
            assert getattr(codes, constant) == number, interface
    for name in ("THREAD", "MUTEX", "COND", "SEMA", "RMUTEX", "BARRIER"):
        assert getattr(codes, name) == categories()[name.lower()]
