"""I/O privilege: what a thread needs for handlers, as on a target where root alone is not enough.

A thread gets it by ThreadCtl(_NTO_TCTL_IO); threads that it creates afterwards have it, too. Without it attaching an
interrupt handler or event (up to 7.x), hooking the trace interrupt, or adding an event handler fails with EPERM.
Sources: manuals of InterruptAttach(), InterruptHookTrace(), ThreadCtl(); capture side, section 3.4.
"""

from __future__ import annotations

from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread

TCTL_IO = 1  # _NTO_TCTL_IO
MISSING = "it needs I/O privilege: ThreadCtl(_NTO_TCTL_IO) first"


def has_io(kernel: KernelServices, thread: Thread) -> bool:
    """Return whether a thread has I/O privilege, or the target does not require it."""
    return thread.has_io or not kernel.target.needs_privilege


def check_io(kernel: KernelServices, thread: Thread) -> None:
    """Refuse the call of a thread without I/O privilege.

    Raises:
        QnxError: EPERM; it has none, and the target requires it.
    """
    if not has_io(kernel, thread):
        raise QnxError(Errno.EPERM, MISSING)
