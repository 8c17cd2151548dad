"""Opens the traces of commands, adds the names from files that options give, and parses ranges of time."""

from __future__ import annotations

import argparse
from pathlib import Path

from satview.base.column_arrays import give_back
from satview.base.errors import UsageError
from satview.base.process import say
from satview.base.safe_text import visible_line
from satview.base.time import NS_PER_S, TimeWindow, format_duration, parse_length, parse_moment, parse_range
from satview.cli.shared.terminal import working, working_on
from satview.events.user_events import Descriptions
from satview.formats import registry
from satview.formats.outside_names import add_symbols, read_pidin, with_names
from satview.formats.user_event_file import read_user_events
from satview.store.arguments import describe_events, misfits
from satview.store.time_ranges import outside_words
from satview.store.trace import Trace


def open_named(args: argparse.Namespace, *, says_outside: bool = True) -> Trace:
    """Open the trace `args.file` as `open_trace` does, with the options that `files.add_names` adds."""
    symbols = getattr(args, "symbols", "")
    return open_trace(args.file, args.user_events, args.pidin, symbols=symbols, says_outside=says_outside)


def open_trace(
    path: Path | str, user_events: str = "", pidin: str = "", *, symbols: str = "", says_outside: bool = True
) -> Trace:
    """Open a trace of any format by `formats.registry.open_trace`, and show the progress.

    Args:
        path: The file.
        user_events: File with event descriptions; empty = none.
        pidin: File with the output of `pidin` on the target; empty = none. Unused parts are reported.
        symbols: Folder with the target's programs; empty = none. Parts that are not understood are reported.
        says_outside: True to print to standard error how many events lie outside the range in which the clock can be
            trusted; for commands whose output does not report these events.

    Raises:
        TraceFormatError: No reader knows the format, or nothing can be read.
        UsageError: The event descriptions have an error.
    """
    with working(working_on("reading", path)) as report:
        trace = registry.open_trace(path, report)
    give_back()  # memory that only reading needed, a quarter of the columns' size
    if pidin:
        trace = with_names(trace, names := read_pidin(Path(pidin)))
        for note in names.notes:
            say(note)
    if user_events:
        describe(user_events, trace)
    if symbols:
        for note in add_symbols(trace, Path(symbols)).notes:
            say(note)
    if says_outside and (words := outside_words(trace)):
        say(f"{trace.path.name}: {words}")
    return trace


def read_descriptions(user_events: str) -> Descriptions:
    """Return the event descriptions of a file; report what is not understood on standard error.

    Raises UsageError if the file has an error.
    """
    descriptions = read_user_events(Path(user_events))
    for note in descriptions.notes:
        say(note)
    return descriptions


def describe(user_events: str, *traces: Trace) -> None:
    """Apply the event descriptions of a file to traces; report on standard error those that do not fit.

    Raises UsageError if the file has an error.
    """
    descriptions = read_descriptions(user_events)
    for trace in traces:
        describe_events(trace, descriptions.events)
        of = f"{visible_line(trace.path.name)}: " if len(traces) > 1 else ""
        for misfit in misfits(trace):
            say(f"{Path(user_events).name}: {of}{misfit}")


def range_of(text: str, trace: Trace) -> TimeWindow | None:
    """Return the range of a trace that the text of --range means; None if it is empty, UsageError if it is wrong."""
    if not text:
        return None
    return parse_range(text, trace.time_axis)


def window_of(trace: Trace, begin: str | None, end: str | None, range_text: str = "") -> TimeWindow | None:
    """Return the range that --range, or --from and --to, request; None without these options.

    Args:
        trace: The trace.
        begin: Value of `--from`; None = not given.
        end: Value of `--to`; None = not given.
        range_text: Value of `--range`; empty = not given.

    Raises:
        UsageError: A text is not a time or range, the range is empty or outside the trace, or --range is combined with
            the other options.
    """
    if range_text:
        if begin is not None or end is not None:
            raise UsageError("--range replaces --from and --to; leave them out")
        return range_of(range_text, trace)
    if begin is None and end is None:
        return None
    axis = trace.time_axis
    start = parse_moment(begin, axis) if begin is not None else trace.window.start
    stop = parse_moment(end, axis) if end is not None else trace.window.end
    if stop <= start or start >= trace.window.end or stop <= trace.window.start:
        raise UsageError(
            f"the range from {begin or 'the start'} to {end or 'the end'} is empty or outside this trace, "
            f"which takes {format_duration(trace.duration_ns)}"
        )
    return TimeWindow(start, stop)


def seconds(text: str) -> float:
    """Parse a length of time and return it in seconds; a number without a unit is in seconds."""
    try:
        return float(parse_length(text) / NS_PER_S)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
