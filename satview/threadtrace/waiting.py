"""Traced methods of Condition, Event, Semaphore, Barrier and SimpleQueue.

They replace the methods of the classes themselves, so that subclasses, instances and names imported early are traced
too. Each runs the original with the log `busy`: what it does inside with locks of its own is not recorded, as calls of
one thread never overlap in a trace. Objects that serve inside another traced object have no address and stay silent.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from threading import Barrier, BoundedSemaphore, BrokenBarrierError, Condition, Event, Semaphore
from typing import Any, Final, TypeVar

from satview.threadtrace import codes, state
from satview.threadtrace.log import Log, now

_ADDRESS: Final = "_trace_address"
_LONGEST_S: Final = 1e9
Method = Callable[..., Any]
Patch = tuple[type, str, Any]
_T = TypeVar("_T")


def address_of(instance: object) -> int:
    """Return what records call an object; 0 = it is not traced."""
    found: int = instance.__dict__.get(_ADDRESS, 0)
    return found


def quietly(log: Log, method: Callable[..., _T], *args: Any, **named: Any) -> _T:
    """Call a method; nothing that it does is recorded."""
    was, log.busy = log.busy, True
    try:
        return method(*args, **named)
    finally:
        log.busy = was


def result_of(error: BaseException) -> int:
    """Return the number that represents an error in a record."""
    if isinstance(error, (BrokenBarrierError, queue.Empty)):
        return codes.ETIME
    if isinstance(error, RuntimeError):
        return codes.EPERM
    return codes.EINVAL if isinstance(error, ValueError) else codes.EINTR


def _until(timeout: float | None) -> tuple[int, int]:
    """Return the moment at which a wait gives up, in seconds and nanoseconds."""
    if timeout is None or not 0 <= timeout <= _LONGEST_S:
        return 0, 0
    return divmod(time.time_ns() + int(timeout * 1e9), 1_000_000_000)


def _traced_init(original: Method, category: int, interface: int, count: str = "", shows_lock: bool = False) -> Method:
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        log = state.current()
        if log.busy or address_of(self):
            original(self, *args, **named)
            return
        # The lock that a condition makes for itself is the caller's to use, so it is traced.
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
    third: Callable[[], int],
    self: Any,
    *args: Any,
    **named: Any,
) -> Any:
    """Run a method that one record represents; its time is that of the start, so that it precedes who wakes by it."""
    start_ns, result = now(), codes.EINTR
    before = third()
    try:
        value = quietly(log, original, self, *args, **named)
        result = codes.OK
    except BaseException as error:
        result = result_of(error)
        raise
    finally:
        log.note(start_ns, category, interface, codes.SINGLE, address, result, before)
    return value


def _pair(
    original: Method,
    log: Log,
    category: int,
    interface: int,
    first: tuple[int, ...],
    failed: Callable[[Any], int],
    self: Any,
    *args: Any,
    **named: Any,
) -> Any:
    """Run a method that two records represent; `failed` shows the result that goes with what it returned."""
    start_ns, result = now(), codes.EINTR
    log.sample_cpu(start_ns)
    log.note(start_ns, category, interface, codes.FIRST, *first)
    try:
        value = quietly(log, original, self, *args, **named)
        result = failed(value)
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


def _condition() -> list[Patch]:
    wait_original, notify_original, all_original = Condition.wait, Condition.notify, Condition.notify_all

    def wait(self: Condition, timeout: float | None = None) -> bool:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy:
            return wait_original(self, timeout)
        mutex = getattr(self._lock, "address", 0)  # type: ignore[attr-defined]
        interface = codes.COND_WAIT if timeout is None else codes.COND_TIMEDWAIT
        first = (address, mutex, *_until(timeout))
        return bool(_pair(wait_original, log, codes.COND, interface, first, _in_time, self, timeout))

    def notify(self: Condition, n: int = 1) -> None:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy:
            notify_original(self, n)
        else:
            _single(notify_original, log, codes.COND, codes.COND_SIGNAL, address, lambda: _waiters(self), self, n)

    def notify_all(self: Condition) -> None:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy:
            all_original(self)
        else:
            _single(all_original, log, codes.COND, codes.COND_BROADCAST, address, lambda: _waiters(self), self)

    init = _traced_init(Condition.__init__, codes.COND, codes.COND_INIT, shows_lock=True)
    return [
        (Condition, "__init__", init),
        (Condition, "wait", wait),
        (Condition, "notify", notify),
        (Condition, "notify_all", notify_all),
    ]


def _waiters(condition: Any) -> int:
    return 1 if condition._waiters else 0


def _event() -> list[Patch]:
    wait_original, set_original = Event.wait, Event.set

    def wait(self: Event, timeout: float | None = None) -> bool:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy or self.is_set():
            return wait_original(self, timeout)
        interface = codes.COND_WAIT if timeout is None else codes.COND_TIMEDWAIT
        return bool(
            _pair(wait_original, log, codes.COND, interface, (address, 0, *_until(timeout)), _in_time, self, timeout)
        )

    def set(self: Event) -> None:  # noqa: A001  -- the name of the method it represents
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy:
            set_original(self)
        else:
            _single(set_original, log, codes.COND, codes.COND_BROADCAST, address, lambda: _waiters(self._cond), self)  # type: ignore[attr-defined]

    init = _traced_init(Event.__init__, codes.COND, codes.COND_INIT)
    return [(Event, "__init__", init), (Event, "wait", wait), (Event, "set", set)]


def _semaphore() -> list[Patch]:
    acquire_original = Semaphore.acquire

    def acquire(self: Any, blocking: bool = True, timeout: float | None = None) -> bool:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy or (timeout is not None and not blocking):
            return acquire_original(self, blocking, timeout)
        if blocking and (timeout is None or timeout > 0):
            first = (address, max(0, self._value))
            return bool(_pair(acquire_original, log, codes.SEMA, codes.SEMA_WAIT, first, _in_time, self, True, timeout))
        start_ns = now()
        got: bool = quietly(log, acquire_original, self, blocking, timeout)
        log.note(start_ns, codes.SEMA, codes.SEMA_TRYWAIT, codes.SINGLE, address, codes.OK if got else codes.EBUSY)
        return got

    def releaser(original: Method) -> Method:
        def release(self: Any, n: int = 1) -> None:
            address = address_of(self)
            log = state.current() if address else None
            if log is None or log.busy:
                original(self, n)
            else:
                _single(original, log, codes.SEMA, codes.SEMA_POST, address, lambda: int(self._value), self, n)

        return release

    init = _traced_init(Semaphore.__init__, codes.SEMA, codes.SEMA_INIT, "_value")
    return [
        (Semaphore, "__init__", init),
        (Semaphore, "acquire", acquire),
        (Semaphore, "__enter__", acquire),
        (Semaphore, "release", releaser(Semaphore.release)),
        (BoundedSemaphore, "release", releaser(BoundedSemaphore.release)),
    ]


def _barrier() -> list[Patch]:
    wait_original = Barrier.wait

    def wait(self: Barrier, timeout: float | None = None) -> int:
        address = address_of(self)
        log = state.current() if address else None
        if log is None or log.busy:
            return wait_original(self, timeout)
        return int(
            _pair(
                wait_original,
                log,
                codes.BARRIER,
                codes.BARRIER_WAIT,
                (address, self.n_waiting),
                _succeeded,
                self,
                timeout,
            )
        )

    init = _traced_init(Barrier.__init__, codes.BARRIER, codes.BARRIER_INIT, "parties")
    return [(Barrier, "__init__", init), (Barrier, "wait", wait)]


class TracedSimpleQueue(queue.SimpleQueue[Any]):
    """`queue.SimpleQueue`, recorded as a semaphore that counts its items; executors hand out their calls by it."""

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
            _single(super().put, log, codes.SEMA, codes.SEMA_POST, self._trace_address, self.qsize, item)

    def put_nowait(self, item: Any) -> None:
        """Put an item."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item, waiting for it unless `block` is false."""
        log = state.current() if self._trace_address else None
        if log is None or log.busy:
            return super().get(block, timeout)
        if block:
            first = (self._trace_address, self.qsize())
            return _pair(super().get, log, codes.SEMA, codes.SEMA_WAIT, first, _succeeded, True, timeout)
        start_ns, got = now(), False
        try:
            item = super().get(False)
            got = True
        finally:
            result = codes.OK if got else codes.EBUSY
            log.note(start_ns, codes.SEMA, codes.SEMA_TRYWAIT, codes.SINGLE, self._trace_address, result)
        return item

    def get_nowait(self) -> Any:
        """Take the first item, raise `queue.Empty` if there is none."""
        return self.get(False)


def patches(categories: frozenset[str]) -> list[Patch]:
    """Return class, name and traced method of everything that the categories select."""
    makers = (("cond", _condition), ("cond", _event), ("sema", _semaphore), ("barrier", _barrier))
    return [patch for category, make in makers if category in categories for patch in make()]
