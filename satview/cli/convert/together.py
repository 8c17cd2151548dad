"""`satview together A B -o X.sataxis`: put several traces on one time axis, by offsets or a common event."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from satview.analysis.alignment import COUNTER, START, AxisRequest, plan, write_users_axis
from satview.base.errors import UsageError
from satview.base.named_files import outside_of
from satview.base.process import COST_DATA, FINE
from satview.base.safe_text import counted, visible_line
from satview.base.time import format_duration, format_moment
from satview.cli.shared.files import InputFile, OutputFile, add_axis_options, add_command, add_user_events
from satview.cli.shared.terminal import cell, make_console
from satview.cli.shared.traces import open_trace
from satview.formats.user_event_file import read_user_events
from satview.store.axis import SUFFIX, AxisEntry, allow_axis, files_of, write_axis

_EPILOG: Final = """\
X.sataxis names the files and where each of them begins. Every command and the window open it like a trace; the names of
CPUs, processes and threads are prefixed with the name of their file. See docs/comparing.md.

  satview together host.kev guest.kev -o both.sataxis --align 'name ~ "sync" and text ~ "begin"'
  satview together a.kev b.kev -o both.sataxis --names host,guest --offset guest=12.5ms
  satview stats both.sataxis --by process

Exit status: 0 success, 1 data was lost to problems in a file, 2 not a trace, files that cannot be combined, or wrong
usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `together` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "together", "put several traces on one time axis",
                         "Put traces on one time axis: two targets, a host and its guest, or two traces of one target.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", type=InputFile,
        help="traces of any format; the first one sets the time axis")  # fmt: skip
    add("-o", "--output", type=OutputFile, metavar="X.sataxis", help="the file to write")
    add("--allow", action="store_true", help="write nothing; trust FILE, an axis from someone else, to name files "
        "outside its folder")  # fmt: skip
    add_axis_options(add)
    add_user_events(add)


def run(args: argparse.Namespace) -> int:
    """Write the axis file, open it, and print its traces; return 0, or 1 if data was lost to problems in a file.

    Raises:
        UsageError: The traces cannot be combined, or the file cannot be written.
    """
    files = [Path(name) for name in args.files]
    if args.allow == bool(args.output):
        raise UsageError("--allow writes no file; leave out -o" if args.allow else "-o X.sataxis or --allow is missing")
    if args.allow:
        return _allow(files)
    output = Path(args.output)
    if output.suffix != SUFFIX:
        raise UsageError(f"{output.name}: the name must end in {SUFFIX}, for example {output.stem}{SUFFIX}")
    write_axis(output, _planned(args, files))
    trace = open_trace(output, args.user_events)
    console = make_console(400)
    axis = files_of(trace)
    for part in axis.parts if axis is not None else ():
        begin = format_moment(part.window.start, trace.clock)
        console.print(cell(f"{part.name}: {part.trace.path.name}, {counted(len(part.trace.events), 'event')} in "
                           f"{format_duration(part.trace.duration_ns)} from {begin}"))  # fmt: skip
    for problem in trace.problems:
        if problem.kind.slug in ("no-overlap", "scaled-clock"):
            console.print(cell(f"{problem.file}: {problem.kind.title.lower()}: {problem.detail}"))
    return COST_DATA if trace.problems.cost_data else FINE


def _allow(files: list[Path]) -> int:
    """Allow axis files to name traces outside their folders from now on, and print the paths of these traces."""
    for file in files:
        entries = allow_axis(file)
        for path in outside_of(file, (entry.path for entry in entries)):
            print(visible_line(f"{file.name} may name {path}"))
    return FINE


def viewer_axis(args: argparse.Namespace) -> Path:
    """Put the files of the viewer's command line on one axis, in a file that is stored for the user; return its path.

    Raises:
        UsageError: As for `run`.
    """
    return write_users_axis(_planned(args, args.files))


def _planned(args: argparse.Namespace, files: list[Path]) -> list[AxisEntry]:
    """Return path, name and offset of each file on the axis that the options request, as `plan` does."""
    if args.number != 1 and args.align in (START, COUNTER):
        raise UsageError(f"--number {args.number} counts matches of an expression; --align {args.align} has none")
    offsets = {}
    for text in args.offset:
        name, sign, time = text.partition("=")
        if not sign or not name:
            raise UsageError(
                f"--offset {text[:40]!r} is not an offset; write B=12.5ms, where B is the name or number of a file"
            )
        offsets[name] = time
    names = tuple(name.strip() for name in args.names.split(",")) if args.names else ()
    described = read_user_events(Path(args.user_events)).events if args.user_events else {}
    return plan(AxisRequest(tuple(files), names, offsets, args.align, args.number, described))
