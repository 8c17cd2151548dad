"""What is cached of a trace of several files, combined from what is cached of each file."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.linkage.joining import JOINERS as LINKS
from satview.store.axis import FileAxis, Joiner, Part, concatenated
from satview.store.doubts import Doubts
from satview.store.losses import EVERY_CPU

_MOST_CPUS: Final = 256  # the event table has eight bits for a CPU
_Ints = NDArray[np.int64]
_Slices = tuple[NDArray[np.uint32], _Ints]


def _losses(axis: FileAxis, found: list[_Ints]) -> _Ints:
    """Return where events are missing, by CPU."""
    rows = [_on_axis(part, own) for part, own in zip(axis.parts, found, strict=True)]
    return np.unique(np.concatenate(rows), axis=0)


def _on_axis(part: Part, lost: _Ints) -> _Ints:
    """Return the losses of a file on the axis; a loss of all its CPUs is one of each, as other files lost nothing."""
    cpus = part.trace.cpu_count
    everywhere = lost[:, 2] == EVERY_CPU
    number = np.concatenate((lost[~everywhere, 2], np.tile(np.arange(cpus), int(everywhere.sum()))))
    rows = np.concatenate((lost[~everywhere], np.repeat(lost[everywhere], cpus, axis=0)))
    return np.stack((part.cycles(rows[:, 0]), part.cycles(rows[:, 1]), number + part.first_cpu), axis=1)


def _doubts(axis: FileAxis, found: list[Doubts]) -> Doubts:
    cpus = np.zeros(_MOST_CPUS, np.bool_)
    threads, processes = (np.zeros(int(max(getattr(part, name)[-1] for part in axis.parts)) + 1, np.bool_)
                          for name in ("threads", "processes"))  # fmt: skip
    beyond = sum(part.trace.cpu_count for part in axis.parts)
    for part, own in zip(axis.parts, found, strict=True):
        threads[part.threads[own.threads]] = True
        processes[part.processes[own.processes]] = True
        cpus[beyond] |= bool(own.cpus.any())
    return Doubts(cpus, threads, processes)


def _run_slices(axis: FileAxis, found: list[_Slices]) -> _Slices:
    rows = concatenated([part.axis_rows(own) for part, (own, _) in zip(axis.parts, found, strict=True)])
    ends = concatenated([part.cycles(ends) for part, (_, ends) in zip(axis.parts, found, strict=True)])
    order = np.argsort(rows, kind="stable")
    rows, ends = rows[order], ends[order]
    for column in (rows, ends):
        column.setflags(write=False)
    return rows, ends


JOINERS: Final[dict[str, Joiner]] = {
    **LINKS,
    "losses": _losses,
    "doubts": _doubts,
    "timeline.run_slices": _run_slices,
}
"""By name of what a trace keeps (`Trace.cached`), as `FileAxis.joiners` takes them."""
