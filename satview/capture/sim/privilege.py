"""I/O privilege: what a thread needs for handlers, as on a target where root alone is not enough.

A thread gets it by ThreadCtl(_NTO_TCTL_IO); threads that it creates afterwards have it, too. Without it attaching an
interrupt handler or event (up to 7.x), hooking the trace interrupt, or adding an event handler fails with EPERM.
Sources: manuals of InterruptAttach(), InterruptHookTrace(), ThreadCtl(); capture side, section 3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.errors import Errno

if TYPE_CHECKING:
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Thread

TCTL_IO = 1          # _NTO_TCTL_IO
MISSING = "it needs I/O privilege: ThreadCtl(_NTO_TCTL_IO) first"


def has_io(machine: Machine, thread: Thread) -> bool:
    """Tell whether a thread has I/O privilege, or the target asks nobody for it."""
    return thread.has_io or not machine.target.needs_privilege


def refused(machine: Machine, thread: Thread) -> bool:
    """Let the call of a thread without I/O privilege fail with EPERM; return whether it did."""
    if has_io(machine, thread):
        return False
    machine.fail(thread, Errno.EPERM, MISSING)
    return True
