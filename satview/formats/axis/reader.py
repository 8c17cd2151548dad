"""Opens a file that lists several traces on one time axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from satview.base.errors import TraceFormatError
from satview.base.named_files import OutsideError, check_named, listed
from satview.formats import registry
from satview.formats.axis.assemble import Member, trace_on_axis
from satview.store.axis_file import looks_like_axis, read_axis
from satview.store.trace import Trace

_CERTAIN: Final = 100
_Progress = Callable[[float], None]


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is an axis file, 0 to 100."""
    return _CERTAIN if looks_like_axis(first_bytes, path) else 0


def open_axis(path: Path, progress: _Progress | None = None, cancelled: Callable[[], bool] | None = None) -> Trace:
    """Open all files listed in an axis file as one trace."""
    entries = read_axis(path)
    _check(path, [entry.path for entry in entries])
    members = []
    for number, entry in enumerate(entries):
        report = None if progress is None else partial(_report, progress, number, len(entries))
        trace = registry.open_trace(entry.path, report, cancelled)
        members.append(Member(entry.name, trace, entry.offset_ps))
    return trace_on_axis(path, members)


def _check(path: Path, files: list[Path]) -> None:
    try:
        check_named(path, files)
    except OutsideError as error:
        remedy = (
            f"if you trust it, allow it by `satview together --allow {path.name}`; to be asked, open it in a window"
        )
        raise TraceFormatError(
            path, 0, f"it names {listed(error.files)} outside of its folder, which is not opened unasked", remedy
        ) from error


def _report(progress: _Progress, number: int, count: int, share: float) -> None:
    progress((number + share) / count)
