"""`threading.Lock` and `threading.RLock`, traced: they wrap the interpreter's own locks and keep their behaviour."""

from __future__ import annotations

import _thread
import time
from types import TracebackType
from typing import Any, Final, NoReturn

from satview.threadtrace import codes, state
from satview.threadtrace.log import RECORDS_MAX, Log, Record, now, record_text
from satview.threadtrace.state import State

_ATTEMPTS: Final = 10
_PAUSE_S: Final = 20e-6
_sleep: Final = time.sleep  # the program's own may be traced
_GOT: Final = record_text(codes.MUTEX, codes.MUTEX_LOCK, codes.SECOND)
_LOCK, _TRY, _UNLOCK = codes.MUTEX_LOCK, codes.MUTEX_TRYLOCK, codes.MUTEX_UNLOCK


class _Traced:
    """What both locks share.

    A lock that another traced object makes for itself is the interpreter's own one: nothing of it would be recorded.
    `with` on a free lock is what programs do most, so that path calls nothing that is not needed, and the lock is free
    no longer than it must be: while records are made of it, others would queue up.

    Attributes:
        address: What records call the lock.
    """

    __slots__ = ("__weakref__", "_free", "_letting_go", "_raw", "_take", "_waiting", "address")
    _category = codes.MUTEX
    _kind = "Lock"
    _raw: Any

    def __new__(cls) -> Any:
        """Return a traced lock, or a plain one while a traced operation goes on in the thread."""
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
        """Note one more hold by the caller; return the two records of an acquisition that did not wait."""
        raise NotImplementedError

    def _depth_now(self) -> int:
        """Note one more hold by the caller, who waited for it; return the depth for the record."""
        return 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock as `threading.Lock.acquire` does."""
        log = state.current()
        if timeout != -1 and not (blocking and 0 <= timeout <= _thread.TIMEOUT_MAX):
            return bool(self._take(blocking, timeout))  # raises as it should
        got: bool = self._take(False)
        if log.busy:
            if not got and blocking:
                got = self._take(True, timeout)
            if got:
                self._depth_now()
        elif blocking:
            if not got:
                return self._wait(log, timeout)
            log.put(self._got(now()))
        else:
            if got:
                self._depth_now()
            log.note(now(), self._category, _TRY, codes.SINGLE, self.address, codes.OK if got else codes.EBUSY)
        return got

    def _wait(self, log: Log, timeout: float = -1) -> bool:
        start_ns = now()
        log.note(start_ns, self._category, _LOCK, codes.FIRST, self.address)
        log.sample_cpu(start_ns)
        result, depth, got = codes.EINTR, 0, False
        self._waiting.append(None)
        try:
            got = (timeout == -1 and self._take_soon()) or self._take(True, timeout)
            result = codes.OK if got else codes.ETIME
            depth = self._depth_now() if got else 0
        finally:
            self._waiting.pop()
            end_ns = now()
            log.note(end_ns, self._category, _LOCK, codes.SECOND, result, 1, depth)
            log.sample_cpu(end_ns)
        return got

    def _take_soon(self) -> bool:
        """Try to take the lock a few times; return whether it worked.

        A thread that waits in the lock itself is woken by every release, takes the lock before it has the
        interpreter's, and so makes the one that runs wait: a busy lock is handed over each time, at 20 times
        the price. Without tracing a lock is free for too short a time for that to happen often.
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
        # What other versions of Python have besides: `locked` of RLock, `_recursion_count`.
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
            log = State.local.log
        except AttributeError:
            log = state.current()
        if not log.busy:
            log.put((now(), self._request, _GOT))
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            log = State.local.log
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
        """Return whether it is held."""
        return bool(self._is_locked())

    acquire_lock, release_lock, locked_lock = _Traced.acquire, _Traced.release, locked

    # Three that Condition looks for: it finds out by trying to acquire, which would be recorded.
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
            log = State.local.log
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
            log = State.local.log
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
        """Return the records of an acquisition at a depth; the caller holds the lock, so no other thread can."""
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
