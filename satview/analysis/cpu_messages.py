"""From which CPU to which messages go: sent on one, received on the same or another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.event_counts import IS_SEND
from satview.analysis.times.scope import Scope
from satview.linkage.messages import messages
from satview.linkage.table import NO_EVENT


@dataclass(frozen=True, slots=True)
class CpuMessages:
    """Messages by the CPUs of their ends. Source: formula 3 of the reference; replies do not count.

    Attributes:
        count: int64, (cpus, cpus), messages sent on the CPU of the row and received on that of the column.
        unknown: int64, (cpus,), messages sent on a CPU of which the trace has no receipt, or is not sure which it is.
    """

    count: NDArray[np.int64]
    unknown: NDArray[np.int64]

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        """Messages sent on each CPU and received on another, int64 (cpus,)."""
        return np.asarray(self.count.sum(axis=1) - np.diagonal(self.count))


def cpu_messages(scope: Scope) -> CpuMessages:
    """Return where the messages that were sent within the range, and count, were received, whenever that was."""
    sends, cpu, cpus = scope.selected(IS_SEND), scope.trace.events.cpu, scope.trace.cpu_count
    sends = sends[cpu[sends] < cpus]  # damaged events name CPUs that the target does not have
    received = messages(scope.trace).ends_of(sends)
    known = received != NO_EVENT
    known[known] = cpu[received[known]] < cpus
    pair = cpu[sends[known]].astype(np.int64) * cpus + cpu[received[known]]
    return CpuMessages(
        np.bincount(pair, minlength=cpus * cpus).reshape(cpus, cpus), np.bincount(cpu[sends[~known]], minlength=cpus)
    )
