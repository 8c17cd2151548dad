"""`satview together A B -o X.sataxis`: several traces on one time axis, by an offset or a common event."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.process_end import COST_DATA, FINE
from satview.cli.shared.axis import add_axis_options, axis_request

_EPILOG: Final = """\
What comes out names the files and says where each begins; every command and the window open it like a trace, in which
CPUs, processes and threads have the name of their file before them. Docs: docs/comparing.md.

  satview together host.kev guest.kev -o both.sataxis --align 'name ~ "sync" and text ~ "begin"'
  satview together a.kev b.kev -o both.sataxis --names host,guest --offset guest=12.5ms
  satview stats both.sataxis --by process

Exit status: 0 fine, 1 a file has problems that cost data, 2 not a trace, files that cannot be together, or bad use.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "together",
        help="several traces on one time axis",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Put traces on one time axis: two targets, a host and its guest, two files of one target.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+", type=Path, help="traces of any format; the first one stays where it is")
    add("-o", "--output", required=True, type=Path, metavar="X.sataxis", help="the file to write")
    add_axis_options(add)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the file, open it, and say what is in it.

    Raises:
        UsageError: The files cannot be together, or the file cannot be written.
    """
    from satview.base.time import format_duration, format_time
    from satview.cli.shared.console import cell, make_console
    from satview.formats.registry import open_trace
    from satview.session.axis_files import plan
    from satview.store.axis import files_of
    from satview.store.axis_file import SUFFIX, write_axis

    if args.output.suffix != SUFFIX:
        raise UsageError(f"{args.output.name}: name it {args.output.stem}{SUFFIX}, so that it is known by its name")
    write_axis(args.output, plan(axis_request(args, args.files)))
    trace = open_trace(args.output)
    console = make_console(400)
    files = files_of(trace)
    for part in files.parts if files is not None else ():
        begin = format_time(trace.clock.ns(part.window.start), 1)
        console.print(cell(f"{part.name}: {part.trace.path.name}, {len(part.trace.events):,} events in "
                           f"{format_duration(part.trace.duration_ns)} from {begin}"))  # fmt: skip
    for problem in trace.problems:
        if problem.kind.slug in ("no-overlap", "scaled-clock"):
            console.print(cell(f"{problem.file}: {problem.kind.title.lower()}: {problem.detail}"))
    return COST_DATA if trace.problems.cost_data else FINE
