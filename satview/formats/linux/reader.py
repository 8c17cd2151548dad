"""Opens schedules of Linux, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, TraceFormatError
from satview.formats.linux import perfetto
from satview.formats.linux.assemble import trace_from_schedule
from satview.formats.linux.perf_data import MAGICS, read_perf_data
from satview.formats.linux.perf_script import looks_like, read_perf_script
from satview.formats.linux.records import MAGIC
from satview.formats.linux.schedule import Schedule
from satview.formats.linux.trace_dat import read_trace_dat
from satview.store.problems import Problems
from satview.store.trace import Trace

Progress = Callable[[float], None]
CancelCheck = Callable[[], bool]
_HEAD_BYTES: Final = 4096


_Reader = Callable[[Path, NDArray[np.uint8], Problems], Schedule]


def score(first_bytes: bytes, path: Path) -> int:  # noqa: ARG001
    """Return how sure we are that a file is a schedule of Linux: 100 by a mark, 80 by the form of a line, or 0."""
    reader = _reader_of(first_bytes)
    return 0 if reader is None else 80 if reader[1] is read_perf_script else 100


def open_linux(path: Path | str, progress: Progress | None = None, cancelled: CancelCheck | None = None) -> Trace:  # noqa: ARG001
    """Open a schedule of Linux; the file is read into memory as a whole.

    Args:
        path: The file.
        progress: Called with 0 to 1.
        cancelled: Called between the steps; True stops the load.

    Raises:
        TraceFormatError: Its head is damaged, or it holds no schedule.
        OSError: It cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    path, problems = Path(path), Problems()
    data = np.fromfile(path, np.uint8)
    data.setflags(write=False)
    reader = _reader_of(data[:_HEAD_BYTES].tobytes())
    if reader is None:
        raise TraceFormatError(path, 0, "it does not begin as a schedule of Linux does", "give another file")
    name, read = reader
    schedule = read(path, data, problems)
    if cancelled is not None and cancelled():
        raise Cancelled("loading was stopped")
    return trace_from_schedule(path, name, schedule, problems)


def _reader_of(first_bytes: bytes) -> tuple[str, _Reader] | None:
    """Return the name of a format and what reads it, by the first bytes of a file."""
    if first_bytes.startswith(MAGIC):
        return "trace.dat", read_trace_dat
    if first_bytes[:8] in MAGICS:
        return "perf.data", read_perf_data
    if perfetto.looks_like(first_bytes):
        return "perfetto", perfetto.read_perfetto
    if looks_like(first_bytes):
        return "perf-script", read_perf_script
    return None
