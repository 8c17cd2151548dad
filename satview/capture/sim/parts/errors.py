"""Errors of the simulated machine: QNX error numbers, and mistakes of workloads."""

from __future__ import annotations

from enum import IntEnum

from satview.base.errors import SatviewError


class Errno(IntEnum):
    """QNX error numbers that kernel calls return; above 34 they differ from those of other systems."""

    EPERM = 1
    ESRCH = 3
    EINTR = 4
    EIO = 5
    EBADF = 9
    ECHILD = 10
    EAGAIN = 11
    ENOMEM = 12
    EFAULT = 14
    EBUSY = 16
    EEXIST = 17
    EINVAL = 22
    ENOSPC = 28
    EDEADLK = 45
    ECANCELED = 47
    ENOTSUP = 48
    ENOSYS = 89
    ETIMEDOUT = 260


_OUR_CODE = ("satview.capture.sim.", "satview.capture.kernel", "satview.capture.trace_event")
_MEANING = {
    Errno.EPERM: "Operation not permitted",
    Errno.ESRCH: "No such process or thread",
    Errno.EINTR: "Interrupted by a signal",
    Errno.EIO: "I/O error",
    Errno.EBADF: "Bad connection",
    Errno.ECHILD: "No child process",
    Errno.EAGAIN: "Resource temporarily unavailable",
    Errno.ENOMEM: "Not enough memory",
    Errno.EFAULT: "Bad address",
    Errno.EBUSY: "Resource busy",
    Errno.EEXIST: "Already exists",
    Errno.EINVAL: "Invalid argument",
    Errno.ENOSPC: "No space left",
    Errno.EDEADLK: "Deadlock avoided",
    Errno.ECANCELED: "Operation canceled",
    Errno.ENOTSUP: "Not supported",
    Errno.ENOSYS: "Not available in this release",
    Errno.ETIMEDOUT: "Timed out",
}


class QnxError(OSError):
    """A kernel call failed; `errno` is the QNX number. A subclass, so that Python does not map it to host errors."""

    def __init__(self, number: Errno, detail: str = "") -> None:
        text = _MEANING[number] + (f": {detail}" if detail else "")
        super().__init__(int(number), text)
        self.name = number.name
        self.detail = detail


class ThreadCancelled(BaseException):
    """Raised at the `yield` of a cancelled thread so that its `finally` blocks run; `except Exception` ignores it."""


class WorkloadError(SatviewError):
    """A workload did something that a program cannot do; names the thread and the line.

    Attributes:
        thread: `process tid` of the culprit.
        location: File and line of its program, `name.py:12`; empty if unknown.
    """

    def __init__(self, thread: str, location: str, what: str) -> None:
        self.thread = thread
        self.location = location
        where = f" at {location}" if location else ""
        super().__init__(f"thread {thread}{where}: {what}")


def location_of(fault: BaseException) -> str:
    """Return where an exception began, as `name.py:12`, in the program's code rather than the simulation's."""
    trace, ours, theirs = fault.__traceback__, "", ""
    while trace is not None:
        location = f"{trace.tb_frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        if str(trace.tb_frame.f_globals.get("__name__")).startswith(_OUR_CODE):
            ours = location
        else:
            theirs = location
        trace = trace.tb_next
    return theirs or ours
