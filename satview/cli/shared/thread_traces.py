"""What the commands for thread traces have in common: their files, opening them, and what is said at the end."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from satview.base.process import COST_DATA, FINE, say
from satview.cli.shared.files import InputFile
from satview.formats.unixware.reader import open_thread_trace
from satview.formats.unpacked import opened_plain
from satview.store.trace import Trace

_MANY: Final = 20  # problems that are printed


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the files of a command, and which of their categories it reads."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=InputFile,
        help="a thread trace file (the rest of its set is found), a directory of them, or several",
    )
    parser.add_argument("--categories", metavar="NAMES", help="read only these categories, for example mutex:cond:sema")


def open_set(files: list[str], categories: str | None) -> Trace:
    """Open thread traces; a single one may be compressed, or `-` for standard input.

    Raises:
        SatviewError: They are none.
        OSError: One cannot be read.
    """
    if len(files) > 1:
        return open_thread_trace([Path(file) for file in files], categories=categories)
    return opened_plain(Path(files[0]), lambda plain: open_thread_trace(plain, categories=categories))


def say_problems(trace: Trace) -> int:
    """Print the first problems of a trace to standard error; return the exit code: 1 if they cost data."""
    for problem in list(trace.problems)[:_MANY]:
        position = f"{problem.file}, " if problem.file else ""
        position += f"line {problem.line}: " if problem.line else ""
        say(f"{position}{problem.detail}")
    return COST_DATA if trace.problems.cost_data else FINE
