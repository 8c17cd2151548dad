"""Errors of the simulated machine: QNX error numbers, and faults of workloads."""

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


_SIMULATION_MODULES = ("satview.capture.sim.", "satview.capture.kernel", "satview.capture.kernel")
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
    """A kernel call failed; `errno` is QNX's error number, which can differ from the host's number."""

    def __init__(self, number: Errno, detail: str = "") -> None:
        text = _MEANING[number] + (f": {detail}" if detail else "")
        super().__init__(int(number), text)
        self.name = number.name
        self.detail = detail


class ThreadCancelled(BaseException):
    """Raised at the `yield` of a cancelled thread, so that `finally` blocks run; not caught by `except Exception`."""


class WorkloadError(SatviewError):
    """A fault of a workload's program; the text names the thread and the line.

    Attributes:
        thread: Process name and tid of the thread at fault.
        location: File and line of the thread's program, such as `name.py:12`; empty = unknown.
    """

    def __init__(self, thread: str, location: str, what: str) -> None:
        self.thread = thread
        self.location = location
        where = f" at {location}" if location else ""
        super().__init__(f"thread {thread}{where}: {what}")


def location_of(fault: BaseException) -> str:
    """Return the innermost location of an exception in a program's code, else in the simulation's: `name.py:12`."""
    trace, simulation_location, program_location = fault.__traceback__, "", ""
    while trace is not None:
        location = f"{trace.tb_frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        if str(trace.tb_frame.f_globals.get("__name__")).startswith(_SIMULATION_MODULES):
            simulation_location = location
        else:
            program_location = location
        trace = trace.tb_next
    return program_location or simulation_location
