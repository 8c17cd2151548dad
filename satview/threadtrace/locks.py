"""Traced locks, which wrap those of the interpreter, and traced methods of the other classes of `threading`."""

from __future__ import annotations

import _thread
import queue
import time
from collections.abc import Callable
from functools import wraps
from threading import Barrier, BoundedSemaphore, BrokenBarrierError, Condition, Event, Semaphore
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

from satview.threadtrace import codes, state
from satview.threadtrace.log import RECORDS_MAX, Log, Record, now, record_text
from satview.threadtrace.state import OwnState

# Traced methods of Condition, Event, Semaphore, Barrier and SimpleQueue.


_ADDRESS: Final = "_trace_address"
_LONGEST_S: Final = 1e9
Method = Callable[..., Any]
Patch = tuple[type, str, Any]
_T = TypeVar("_T")


def address_of(instance: object) -> int:
    """Return the address of an object in records; 0 = the object is not traced."""
    address: int = instance.__dict__.get(_ADDRESS, 0)
    return address


def _recording(instance: object) -> tuple[Log | None, int]:
    """Return the log for an operation on an object, None = do not record the operation; and the object's address."""
    address = address_of(instance)
    log = state.current() if address else None
    return None if log is None or log.busy else log, address


def quietly(log: Log, method: Callable[..., _T], *args: Any, **named: Any) -> _T:
    """Call a method without recording the operations inside it."""
    was, log.busy = log.busy, True
    try:
        return method(*args, **named)
    finally:
        log.busy = was


def result_of(error: BaseException) -> int:
    """Return the result number of a record for an exception."""
    if isinstance(error, (BrokenBarrierError, queue.Empty)):
        return codes.ETIME
    if isinstance(error, RuntimeError):
        return codes.EPERM
    return codes.EINVAL if isinstance(error, ValueError) else codes.EINTR


def _until(timeout: float | None) -> tuple[int, int]:
    """Return the deadline of a wait as seconds and nanoseconds since 1970; zeros if the timeout is None or invalid."""
    if timeout is None or not 0 <= timeout <= _LONGEST_S:
        return 0, 0
    return divmod(time.time_ns() + int(timeout * 1e9), 1_000_000_000)


def _traced_init(original: Method, category: int, interface: int, count: str = "", shows_lock: bool = False) -> Method:
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        log = state.current()
        if log.busy or address_of(self):
            original(self, *args, **named)
            return
        # The lock that a condition creates is part of its interface, so it is traced.
        if shows_lock:
            original(self, *args, **named)
        else:
            quietly(log, original, self, *args, **named)
        address = self.__dict__[_ADDRESS] = state.new_object(type(self).__name__)
        log.note(now(), category, interface, codes.SINGLE, address, int(getattr(self, count)) if count else 0)

    return __init__


def _single(
    original: Method,
    log: Log,
    category: int,
    interface: int,
    address: int,
    third: Callable[[Any], int],
    self: Any,
    *args: Any,
    **named: Any,
) -> Any:
    """Call a method; add one record of the time before the call, so that it precedes wake-ups that it causes."""
    start_ns, result = now(), codes.EINTR
    before = third(self)
    try:
        value = quietly(log, original, self, *args, **named)
        result = codes.OK
    except BaseException as error:
        result = result_of(error)
        raise
    finally:
        log.note(start_ns, category, interface, codes.SINGLE, address, result, before)
    return value


def _traced_single(original: Method, category: int, interface: int, third: Callable[[Any], int]) -> Method:
    """Return the traced form of a method, recorded by `_single`; the arguments are those of `_single`."""

    @wraps(original)
    def method(self: Any, *args: Any, **named: Any) -> None:
        address = address_of(self)  # as `_recording` does, without its call
        log = state.current() if address else None
        if log is None or log.busy:
            original(self, *args, **named)
        else:
            _single(original, log, category, interface, address, third, self, *args, **named)

    return method


def _pair(
    original: Method,
    log: Log,
    category: int,
    interface: int,
    arguments: tuple[int, ...],
    result_number: Callable[[Any], int],
    self: Any,
    *args: Any,
    **named: Any,
) -> Any:
    """Call a method and add two records, for its start and end; return the method's value."""
    start_ns, result = now(), codes.EINTR
    log.sample_cpu(start_ns)
    log.note(start_ns, category, interface, codes.FIRST, *arguments)
    try:
        value = quietly(log, original, self, *args, **named)
        result = result_number(value)
    except BaseException as error:
        result = result_of(error)
        raise
    finally:
        end_ns = now()
        log.note(end_ns, category, interface, codes.SECOND, result)
        log.sample_cpu(end_ns)
    return value


def _in_time(value: Any) -> int:
    return codes.OK if value else codes.ETIME


def _succeeded(_value: Any) -> int:
    return codes.OK


def _recorded_wait(original: Method, log: Log, objects: tuple[int, int], self: Any, timeout: float | None) -> bool:
    """Wait at a condition or event, recorded as a wait with the addresses of a condition and its mutex."""
    interface = codes.COND_WAIT if timeout is None else codes.COND_TIMEDWAIT
    return bool(_pair(original, log, codes.COND, interface, (*objects, *_until(timeout)), _in_time, self, timeout))


def _condition() -> list[Patch]:
    wait_original = Condition.wait

    def wait(self: Condition, timeout: float | None = None) -> bool:
        log, address = _recording(self)
        if log is None:
            return wait_original(self, timeout)
        mutex = getattr(self._lock, "address", 0)  # type: ignore[attr-defined]
        return _recorded_wait(wait_original, log, (address, mutex), self, timeout)

    init = _traced_init(Condition.__init__, codes.COND, codes.COND_INIT, shows_lock=True)
    return [
        (Condition, "__init__", init),
        (Condition, "wait", wait),
        (Condition, "notify", _traced_single(Condition.notify, codes.COND, codes.COND_SIGNAL, _waiters)),
        (Condition, "notify_all", _traced_single(Condition.notify_all, codes.COND, codes.COND_BROADCAST, _waiters)),
    ]


def _waiters(condition: Any) -> int:
    return 1 if condition._waiters else 0


def _event() -> list[Patch]:
    wait_original = Event.wait

    def wait(self: Event, timeout: float | None = None) -> bool:
        log, address = _recording(self)
        if log is None or self.is_set():
            return wait_original(self, timeout)
        return _recorded_wait(wait_original, log, (address, 0), self, timeout)

    init = _traced_init(Event.__init__, codes.COND, codes.COND_INIT)
    traced_set = _traced_single(Event.set, codes.COND, codes.COND_BROADCAST, lambda event: _waiters(event._cond))
    return [(Event, "__init__", init), (Event, "wait", wait), (Event, "set", traced_set)]


def _semaphore() -> list[Patch]:
    acquire_original = Semaphore.acquire

    def acquire(self: Any, blocking: bool = True, timeout: float | None = None) -> bool:
        log, address = _recording(self)
        if log is None or (timeout is not None and not blocking):
            return acquire_original(self, blocking, timeout)
        if blocking and (timeout is None or timeout > 0):
            arguments = (address, max(0, self._value))
            return bool(
                _pair(acquire_original, log, codes.SEMA, codes.SEMA_WAIT, arguments, _in_time, self, True, timeout)
            )
        start_ns = now()
        is_acquired: bool = quietly(log, acquire_original, self, blocking, timeout)
        log.note(
            start_ns, codes.SEMA, codes.SEMA_TRYWAIT, codes.SINGLE, address, codes.OK if is_acquired else codes.EBUSY
        )
        return is_acquired

    def traced_release(original: Method) -> Method:
        return _traced_single(original, codes.SEMA, codes.SEMA_POST, lambda semaphore: int(semaphore._value))

    init = _traced_init(Semaphore.__init__, codes.SEMA, codes.SEMA_INIT, "_value")
    return [
        (Semaphore, "__init__", init),
        (Semaphore, "acquire", acquire),
        (Semaphore, "__enter__", acquire),
        (Semaphore, "release", traced_release(Semaphore.release)),
        (BoundedSemaphore, "release", traced_release(BoundedSemaphore.release)),
    ]


def _barrier() -> list[Patch]:
    wait_original = Barrier.wait

    def wait(self: Barrier, timeout: float | None = None) -> int:
        log, address = _recording(self)
        if log is None:
            return wait_original(self, timeout)
        arguments = (address, self.n_waiting)
        return int(_pair(wait_original, log, codes.BARRIER, codes.BARRIER_WAIT, arguments, _succeeded, self, timeout))

    init = _traced_init(Barrier.__init__, codes.BARRIER, codes.BARRIER_INIT, "parties")
    return [(Barrier, "__init__", init), (Barrier, "wait", wait)]


class TracedSimpleQueue(queue.SimpleQueue[Any]):
    """`queue.SimpleQueue`, recorded as a semaphore that counts its items; executors use it for their calls."""

    def __init__(self) -> None:
        log = state.current()
        self._trace_address = 0 if log.busy else state.new_object("SimpleQueue")
        if self._trace_address:
            log.note(now(), codes.SEMA, codes.SEMA_INIT, codes.SINGLE, self._trace_address)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item; never blocks."""
        log = state.current() if self._trace_address else None
        if log is None or log.busy:
            super().put(item, block, timeout)
        else:
            address = self._trace_address
            _single(super().put, log, codes.SEMA, codes.SEMA_POST, address, lambda _: self.qsize(), item)

    def put_nowait(self, item: Any) -> None:
        """Put an item, as `put` does, which never waits: a simple queue has no limit."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item, waiting for it unless `block` is false."""
        log = state.current() if self._trace_address else None
        if log is None or log.busy:
            return super().get(block, timeout)
        if block:
            arguments = (self._trace_address, self.qsize())
            return _pair(super().get, log, codes.SEMA, codes.SEMA_WAIT, arguments, _succeeded, True, timeout)
        start_ns, has_item = now(), False
        try:
            item = super().get(False)
            has_item = True
        finally:
            result = codes.OK if has_item else codes.EBUSY
            log.note(start_ns, codes.SEMA, codes.SEMA_TRYWAIT, codes.SINGLE, self._trace_address, result)
        return item

    def get_nowait(self) -> Any:
        """Take the first item, raise `queue.Empty` if there is none."""
        return self.get(False)


def patches(categories: frozenset[str]) -> list[Patch]:
    """Return class, name and traced method of each method to replace for some categories."""
    makers = (("cond", _condition), ("cond", _event), ("sema", _semaphore), ("barrier", _barrier))
    return [patch for category, make in makers if category in categories for patch in make()]


_ATTEMPTS: Final = 10
_PAUSE_S: Final = 20e-6
_sleep: Final = time.sleep  # the program's own may be traced
_GOT: Final = record_text(codes.MUTEX, codes.MUTEX_LOCK, codes.SECOND)
_LOCK, _TRY, _UNLOCK = codes.MUTEX_LOCK, codes.MUTEX_TRYLOCK, codes.MUTEX_UNLOCK


class _Traced:
    """Base class of the traced locks.

    A lock that is created inside a traced operation is a plain lock, as its operations would not be recorded. The code
    path of `with` on a free lock is the most frequent and is kept short, so that the lock is not held longer.
    """

    __slots__ = ("__weakref__", "_free", "_letting_go", "_raw", "_take", "_waiting", "address")
    _category = codes.MUTEX
    _kind = "Lock"
    _raw: Any

    def __new__(cls) -> Any:
        """Return a traced lock, or a plain lock during a traced operation of the thread."""
        return cls._make() if state.current().busy else super().__new__(cls)

    def __init__(self) -> None:
        self._raw = self._make()
        self._take, self._free = self._raw.acquire, self._raw.release
        self._waiting: list[None] = []  # appending and popping need no lock, counting would
        self.address = state.new_object(self._kind)
        state.current().note(now(), self._category, codes.MUTEX_INIT, codes.SINGLE, self.address)
        self._letting_go = record_text(self._category, _UNLOCK, codes.SINGLE, self.address)

    @staticmethod
    def _make() -> Any:
        return _thread.allocate_lock()

    def _got(self, start_ns: int) -> Record:
        """Count an acquisition that did not wait, and return its two records."""
        raise NotImplementedError

    def _depth_now(self) -> int:
        """Count an acquisition, and return the recursion depth for its record."""
        return 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock as `threading.Lock.acquire` does."""
        log = state.current()
        if timeout != -1 and not (blocking and 0 <= timeout <= _thread.TIMEOUT_MAX):
            return bool(self._take(blocking, timeout))  # raises as it should
        is_acquired: bool = self._take(False)
        if log.busy:
            if not is_acquired and blocking:
                is_acquired = self._take(True, timeout)
            if is_acquired:
                self._depth_now()
        elif blocking:
            if not is_acquired:
                return self._wait(log, timeout)
            log.put(self._got(now()))
        else:
            if is_acquired:
                self._depth_now()
            log.note(now(), self._category, _TRY, codes.SINGLE, self.address, codes.OK if is_acquired else codes.EBUSY)
        return is_acquired

    def _wait(self, log: Log, timeout: float = -1) -> bool:
        start_ns = now()
        log.note(start_ns, self._category, _LOCK, codes.FIRST, self.address)
        log.sample_cpu(start_ns)
        result, depth, is_acquired = codes.EINTR, 0, False
        self._waiting.append(None)
        try:
            is_acquired = (timeout == -1 and self._take_soon()) or self._take(True, timeout)
            result = codes.OK if is_acquired else codes.ETIME
            depth = self._depth_now() if is_acquired else 0
        finally:
            self._waiting.pop()
            end_ns = now()
            log.note(end_ns, self._category, _LOCK, codes.SECOND, result, 1, depth)
            log.sample_cpu(end_ns)
        return is_acquired

    def _take_soon(self) -> bool:
        """Poll the lock a few times, with pauses; return whether it was acquired.

        A thread that blocks on the lock gets the lock as soon as another thread releases it, but runs only when it also
        gets the GIL. If the other thread wants the lock again before, it must block: the lock would then change hands
        at every release, at 20 times the cost.
        Without tracing, a lock is free too briefly for that to happen often.
        """
        for _ in range(_ATTEMPTS):
            _sleep(_PAUSE_S)
            if self._take(False):
                return True
        return False

    def release(self) -> None:
        """Release the lock as `threading.Lock.release` does."""
        self.__exit__(None, None, None)

    def _fail_to_release(self, log: Log) -> None:
        log.note(now(), self._category, _UNLOCK, codes.SINGLE, self.address, codes.EPERM)

    def __repr__(self) -> str:
        return f"<traced {self._raw!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self._raw).__module__}.{type(self._raw).__name__}' object")

    def __getattr__(self, name: str) -> Any:
        # Attributes that only some versions of Python have, such as `locked` of RLock and `_recursion_count`.
        if name == "_raw":
            raise AttributeError(name)
        return getattr(self._raw, name)

    def _at_fork_reinit(self) -> None:
        self._raw._at_fork_reinit()
        self._waiting.clear()


class TracedLock(_Traced):
    """A lock whose acquisitions and releases are recorded as those of a mutex."""

    __slots__ = ("_is_locked", "_request", "_waking")

    def __init__(self) -> None:
        super().__init__()
        self._is_locked = self._raw.locked
        self._request = record_text(codes.MUTEX, _LOCK, codes.FIRST, self.address)
        self._waking = record_text(codes.MUTEX, _UNLOCK, codes.SINGLE, self.address, codes.OK, 1)

    def __enter__(self) -> bool:
        if not self._take(False):
            return self.acquire()
        try:
            log = OwnState.local.log
        except AttributeError:
            log = state.current()
        if not log.busy:
            log.put((now(), self._request, _GOT))
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            log = OwnState.local.log
        except AttributeError:
            log = state.current()
        if log.busy:
            self._free()
            return
        # Recorded before the release, so that it is not later than the record of the thread that waits for it.
        if self._is_locked():
            log.put((now(), self._waking if self._waiting else self._letting_go, None))
        else:
            self._fail_to_release(log)
        is_full = len(log.records) > RECORDS_MAX
        self._free()
        if is_full:
            log.flush(0)

    def _got(self, start_ns: int) -> Record:
        return start_ns, self._request, _GOT

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return bool(self._is_locked())

    acquire_lock, release_lock, locked_lock = _Traced.acquire, _Traced.release, locked

    # Condition uses these three methods if they exist; otherwise it acquires the lock, which would be recorded.
    def _is_owned(self) -> bool:
        if self._take(False):
            self._free()
            return False
        return True

    def _release_save(self) -> None:
        self._free()

    def _acquire_restore(self, _saved: None) -> None:
        self._take()


class TracedRLock(_Traced):
    """A recursive lock, recorded as a recursive mutex with its depth."""

    __slots__ = ("_depth", "_is_mine", "_taking")
    _category = codes.RMUTEX
    _kind = "RLock"

    def __init__(self) -> None:
        self._depth = 0  # only its owner changes it
        super().__init__()
        self._is_mine = self._raw._is_owned
        self._taking: list[tuple[str, str]] = []  # by depth, from 1

    @staticmethod
    def _make() -> Any:
        return _thread.RLock()

    def __enter__(self) -> bool:
        if not self._take(False):
            return self.acquire()
        try:
            log = OwnState.local.log
        except AttributeError:
            log = state.current()
        self._depth += 1
        if not log.busy:
            try:
                texts = self._taking[self._depth - 1]
            except IndexError:
                texts = self._taking_at(self._depth)
            log.put((now(), *texts))
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            log = OwnState.local.log
        except AttributeError:
            log = state.current()
        if not self._is_mine():
            if not log.busy:
                self._fail_to_release(log)
        else:
            self._depth -= 1
            if not log.busy:
                log.put((now(), self._letting_go, None))
        is_full = len(log.records) > RECORDS_MAX
        self._free()
        if is_full:
            log.flush(0)

    def _taking_at(self, depth: int) -> tuple[str, str]:
        """Return the records of an acquisition at a recursion depth; the caller must hold the lock."""
        while len(self._taking) < depth:
            second = record_text(codes.RMUTEX, _LOCK, codes.SECOND, codes.OK, 0, len(self._taking) + 1)
            self._taking.append((record_text(codes.RMUTEX, _LOCK, codes.FIRST, self.address), second))
        return self._taking[depth - 1]

    def _got(self, start_ns: int) -> Record:
        return start_ns, *self._taking_at(self._depth_now())

    def _depth_now(self) -> int:
        self._depth += 1
        return self._depth

    def _is_owned(self) -> bool:
        return bool(self._is_mine())

    def _release_save(self) -> tuple[Any, int]:
        depth, self._depth = self._depth, 0
        return self._raw._release_save(), depth

    def _acquire_restore(self, saved: tuple[Any, int]) -> None:
        self._raw._acquire_restore(saved[0])
        self._depth = saved[1]

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self._depth = 0
