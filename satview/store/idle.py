"""Idle threads: what runs on a CPU when nothing does."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.store.axis import files_of
from satview.store.trace import Trace

KERNEL_PID: Final = 1
"""The process of the kernel's own threads, QNX only."""


def idle_threads(trace: Trace) -> NDArray[np.bool_]:
    """Return for every thread row whether it is an idle thread, bool (threads,).

    A thread of process 1 named `idle...` is; in Linux those of process 0
    are. Up to 7.x so are threads 1 to the number of CPUs of process 1 (inferred in
    the format description, 8.4), if the trace does not name them otherwise.
    """
    if (axis := files_of(trace)) is not None:
        idle = np.zeros(len(trace.threads), np.bool_)
        for part in axis.parts:
            idle[part.threads[idle_threads(part.trace)]] = True
        return idle
    threads = trace.threads
    if trace.release is Release.LINUX:
        return np.asarray(threads.pid == 0)
    idle = np.array([name.startswith("idle") for name in threads.names], np.bool_)
    if trace.release in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7):
        idle |= (threads.tid <= trace.cpu_count) & np.array([not name for name in threads.names], np.bool_)
    return np.asarray(idle & (threads.pid == KERNEL_PID))
