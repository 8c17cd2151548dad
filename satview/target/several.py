"""Captures several targets at once, and puts their files on one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from satview.base.errors import SatviewError, UsageError
from satview.store.axis_file import AxisEntry, write_axis
from satview.target.capture import Captured, capture
from satview.target.request import TargetRequest


def check_names(requests: Sequence[TargetRequest]) -> None:
    """Reject targets that have the same name in messages and files.

    Raises:
        UsageError: Two have the same name.
    """
    names = [request.profile.title for request in requests]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two targets are called {twice[0]}; give them names of their own in targets.toml")


def capture_all(
    requests: Sequence[TargetRequest], asks_to_stop: Callable[[], bool], tell: Callable[[str], None],
    say: Callable[[str], None]
) -> list[Captured | SatviewError]:  # fmt: skip
    """Capture on several targets at once; each capture ends on its own, and all end when `asks_to_stop` returns True.

    Args:
        requests: One per target; the targets have different names.
        asks_to_stop: As for `capture`; called by several threads.
        tell: Called with one status text about all targets.
        say: As for `capture`.

    Returns:
        For each request its capture, or the error that ended it.
    """
    status_of: dict[str, str] = {}

    def capture_one(request: TargetRequest) -> Captured | SatviewError:
        name = request.profile.title

        def tell_status(text: str) -> None:
            status_of[name] = text
            tell("; ".join(f"{key}: {value}" for key, value in sorted(status_of.copy().items())))

        try:
            return capture(request, asks_to_stop, tell_status, say)
        except SatviewError as error:
            return error

    if len(requests) == 1:  # in this thread, which an impatient second Ctrl+C interrupts
        return [capture_one(requests[0])]
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(capture_one, requests))


def write_captures_axis(path: Path, captures: Sequence[tuple[str, Path, Captured]]) -> None:
    """Write the file that puts captures on one time axis, by the time at which the header of each was received.

    A logger sends its header just before it starts tracing, so the offsets are accurate to about a tenth of a second.

    Args:
        path: The file.
        captures: Name of the target, its trace, and the result of the capture.

    Raises:
        UsageError: They cannot be combined, or the file cannot be written.
    """
    began_s = captures[0][2].began_s
    entries = [
        AxisEntry(trace, name, round((captured.began_s - began_s) * 1e12) if number else 0)
        for number, (name, trace, captured) in enumerate(captures)
    ]
    write_axis(path, entries)
