"""`threading.Lock` and `threading.RLock`, traced: they wrap the interpreter's own locks and keep their behaviour."""

from __future__ import annotations

import _thread
from types import TracebackType
from typing import Any, Final, NoReturn

from satview.threadtrace import codes, state
from satview.threadtrace.log import Log, now, record_text

_GOT_MUTEX: Final = record_text(codes.MUTEX, codes.MUTEX_LOCK, codes.SECOND)
_GOT_RMUTEX: Final = tuple(
    record_text(codes.RMUTEX, codes.MUTEX_LOCK, codes.SECOND, codes.OK, 0, depth) for depth in range(10)
)


class _Traced:
    """What both locks share.

    A lock that another traced object makes for itself is the interpreter's own one: nothing of it would be recorded.

    Attributes:
        address: What records call the lock.
    """

    __slots__ = ("__weakref__", "_asking", "_letting_go", "_raw", "_waiting", "address")
    _category = codes.MUTEX
    _kind = "Lock"
    _raw: Any

    def __new__(cls) -> Any:
        """Return a traced lock, or a plain one while a traced operation goes on in the thread."""
        return cls._make() if state.current().busy else super().__new__(cls)

    def __init__(self) -> None:
        self._raw = self._make()
        self._waiting: list[None] = []  # appending and popping need no lock, counting would
        self.address = state.new_object(self._kind)
        state.current().note(now(), self._category, codes.MUTEX_INIT, codes.SINGLE, self.address)
        self._asking = record_text(self._category, codes.MUTEX_LOCK, codes.FIRST, self.address)
        self._letting_go = record_text(self._category, codes.MUTEX_UNLOCK, codes.SINGLE, self.address)

    @staticmethod
    def _make() -> Any:
        return _thread.allocate_lock()

    def _got(self) -> int:
        """Note one more hold by the caller; return the depth for the record."""
        return 0

    def _got_text(self, depth: int) -> str:  # noqa: ARG002  -- a recursive lock has one
        """Return the second record of an acquisition that did not wait."""
        return _GOT_MUTEX

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock as `threading.Lock.acquire` does."""
        raw = self._raw
        log = state.current()
        if log.busy:
            got: bool = raw.acquire(blocking, timeout)
            if got:
                self._got()
            return got
        if timeout != -1 and not (blocking and 0 <= timeout <= _thread.TIMEOUT_MAX):
            return bool(raw.acquire(blocking, timeout))  # raises as it should
        start_ns = now()
        got = raw.acquire(False)
        if got:
            depth = self._got()
            if blocking:
                log.put_pair(start_ns, self._asking, now(), self._got_text(depth))
                return True
        if not blocking:
            result = codes.OK if got else codes.EBUSY
            log.note(start_ns, self._category, codes.MUTEX_TRYLOCK, codes.SINGLE, self.address, result)
            return got
        return self._wait(log, start_ns, timeout)

    def _wait(self, log: Log, start_ns: int, timeout: float) -> bool:
        log.put(start_ns, self._asking)
        result, depth, got = codes.EINTR, 0, False
        self._waiting.append(None)
        try:
            got = self._raw.acquire(True, timeout)
            result = codes.OK if got else codes.ETIME
            depth = self._got() if got else 0
        finally:
            self._waiting.pop()
            log.note(now(), self._category, codes.MUTEX_LOCK, codes.SECOND, result, 1, depth)
        return bool(got)

    def release(self) -> None:
        """Release the lock as `threading.Lock.release` does."""
        log = state.current()
        if log.busy:
            self._release()
            return
        # Taken before the release, so that it is not later than the record of whoever waits for it.
        start_ns, text = now(), self._release_text() if self._waiting else self._letting_go
        try:
            self._release()
        except RuntimeError:
            log.note(start_ns, self._category, codes.MUTEX_UNLOCK, codes.SINGLE, self.address, codes.EPERM)
            raise
        log.put(start_ns, text)

    def _release_text(self) -> str:
        """Return the record of a release that somebody waits for."""
        return record_text(self._category, codes.MUTEX_UNLOCK, codes.SINGLE, self.address, codes.OK, 1)

    def _release(self) -> None:
        self._raw.release()

    __enter__ = acquire

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

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

    __slots__ = ()

    def locked(self) -> bool:
        """Tell whether it is held."""
        return bool(self._raw.locked())

    acquire_lock, release_lock, locked_lock = _Traced.acquire, _Traced.release, locked

    # Three that Condition looks for: it finds out by trying to acquire, which would be recorded.
    def _is_owned(self) -> bool:
        if self._raw.acquire(False):
            self._raw.release()
            return False
        return True

    def _release_save(self) -> None:
        self._raw.release()

    def _acquire_restore(self, _saved: None) -> None:
        self._raw.acquire()


class TracedRLock(_Traced):
    """A recursive lock, recorded as a recursive mutex with its depth."""

    __slots__ = ("_depth",)
    _category = codes.RMUTEX
    _kind = "RLock"

    def __init__(self) -> None:
        self._depth = 0  # only its owner changes it
        super().__init__()

    @staticmethod
    def _make() -> Any:
        return _thread.RLock()

    def _got(self) -> int:
        self._depth += 1
        return self._depth

    def _got_text(self, depth: int) -> str:
        if depth < len(_GOT_RMUTEX):
            return _GOT_RMUTEX[depth]
        return record_text(codes.RMUTEX, codes.MUTEX_LOCK, codes.SECOND, codes.OK, 0, depth)

    def _release_text(self) -> str:
        return self._letting_go  # rmutex_unlock does not tell of waiters

    def _release(self) -> None:
        if self._raw._is_owned():
            self._depth -= 1
        self._raw.release()

    def _is_owned(self) -> bool:
        return bool(self._raw._is_owned())

    def _release_save(self) -> tuple[Any, int]:
        depth, self._depth = self._depth, 0
        return self._raw._release_save(), depth

    def _acquire_restore(self, saved: tuple[Any, int]) -> None:
        self._raw._acquire_restore(saved[0])
        self._depth = saved[1]

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self._depth = 0
