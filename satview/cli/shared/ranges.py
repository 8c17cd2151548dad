"""Moments and ranges of time among the arguments of commands, in any notation of `base.time_text`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError

if TYPE_CHECKING:
    from satview.base.time import TimeWindow
    from satview.store.trace import Trace


# Numbers among the arguments of commands.


def number(text: str) -> int:
    """Return a number written in decimal, or with 0x in hexadecimal.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    try:
        return int(text, 16) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number like 256 or 0x100") from None


RANGES: Final = "1.2s..1.5s, -5s.. (the end), 25%%..50%%, #1200..#1300 (events), 06:19:01..06:19:02, 0x1f00c.. (cycles)"
_OPTIONS: Final = frozenset({"--range", "--at", "--from", "--to"})
_FROM_THE_END: Final = re.compile(r"-\s*[0-9.]")


def add_range(add: Callable[..., Any], what: str) -> None:
    """Add the option `--range`.

    Args:
        add: `add_argument` of a parser or of a group of one.
        what: What is in the range, such as "only events of this part of the trace".
    """
    add("--range", default="", metavar="A..B", help=f"{what}: {RANGES}")


def range_of(text: str, trace: Trace) -> TimeWindow | None:
    """Return the requested range, None if there is none.

    Raises:
        UsageError: The text is no range of this trace.
    """
    if not text:
        return None
    from satview.base.time_text import parse_range  # brings numpy

    return parse_range(text, trace.time_axis)


def window_of(trace: Trace, begin: str | None, end: str | None, range_text: str = "") -> TimeWindow | None:
    """Return the requested range, as such or by its ends; None if there is none.

    Args:
        trace: What it is a part of.
        begin: Value of `--from`, None = not given.
        end: Value of `--to`.
        range_text: Value of `--range`, empty = not given.

    Raises:
        UsageError: A text is no time or no range, the range is empty, or it was given twice.
    """
    if range_text:
        if begin is not None or end is not None:
            raise UsageError("--range replaces --from and --to; leave them out")
        return range_of(range_text, trace)
    if begin is None and end is None:
        return None
    from satview.base.time import TimeWindow  # bring numpy, as does the next
    from satview.base.time_text import format_duration, parse_moment

    axis = trace.time_axis
    start = parse_moment(begin, axis) if begin is not None else trace.window.start
    stop = parse_moment(end, axis) if end is not None else trace.window.end
    if stop <= start:
        raise UsageError(
            f"the range from {begin or 'the start'} to {end or 'the end'} is empty or outside this trace, "
            f"which takes {format_duration(trace.duration_ns)}"
        )
    return TimeWindow(start, stop)


def seconds(text: str) -> float:
    """Return a length of time as an option takes it: without a unit it is in seconds."""
    from satview.base.time import NS_PER_S  # brings numpy
    from satview.base.time_text import parse_length

    try:
        return float(parse_length(text) / NS_PER_S)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def with_times_attached(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `--range -5s..` written as `--range=-5s..`, or argparse takes the time for an option."""
    attached: list[str] = []
    for argument in arguments:
        if attached and attached[-1] in _OPTIONS and _FROM_THE_END.match(argument):
            attached[-1] += f"={argument}"
        else:
            attached.append(argument)
    return attached
