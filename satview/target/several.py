"""Several targets captured at once, and their files on one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from satview.base.errors import SatviewError, UsageError
from satview.store.axis_file import AxisEntry, write_axis
from satview.target.capture import Captured, capture
from satview.target.request import TargetRequest


def check_names(requests: Sequence[TargetRequest]) -> None:
    """Refuse targets that messages and files would call the same.

    Raises:
        UsageError: Two have one name.
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
    told: dict[str, str] = {}

    def one(request: TargetRequest) -> Captured | SatviewError:
        name = request.profile.title

        def tell_of_it(text: str) -> None:
            told[name] = text
            tell("; ".join(f"{key}: {value}" for key, value in sorted(told.copy().items())))

        try:
            return capture(request, asks_to_stop, tell_of_it, say)
        except SatviewError as error:
            return error

    if len(requests) == 1:  # in this thread, which an impatient second Ctrl+C interrupts
        return [one(requests[0])]
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(one, requests))


def write_captures_axis(path: Path, captures: Sequence[tuple[str, Path, Captured]]) -> None:
    """Write the file that puts captures on one time axis, by when the header of each came here.

    A logger sends its header just before it starts tracing, so that the places are right to about a tenth of a second.

    Args:
        path: The file.
        captures: Name of the target, its trace, and what became of the capture.

    Raises:
        UsageError: They cannot be together, or the file cannot be written.
    """
    began_s = captures[0][2].began_s
    entries = [
        AxisEntry(trace, name, round((captured.began_s - began_s) * 1e12) if number else 0)
        for number, (name, trace, captured) in enumerate(captures)
    ]
    write_axis(path, entries)
