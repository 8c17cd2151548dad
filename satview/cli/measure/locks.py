"""`satview locks FILE`: print the waits of threads for each lock, from a trace of a threads library."""

from __future__ import annotations

import argparse

from satview.answers.locks import lock_tables
from satview.answers.table import Outcome
from satview.base.errors import SatviewError
from satview.base.process import BAD_USE, say
from satview.base.safe_text import counted
from satview.cli.measure.records import add_files, open_set, say_problems
from satview.cli.shared.files import refuse_below
from satview.cli.shared.table_output import print_for_people, print_table
from satview.cli.shared.traces import open_trace
from satview.store.trace import Trace


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command `locks` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser("locks", help="lock contention in a thread trace")
    add_files(parser)
    parser.add_argument("--waits", type=int, default=0, metavar="N", help="also list the N longest waits")
    parser.add_argument(
        "--all", action="store_true", help="also list locks that no thread waited for; JSON always has them"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the table of locks; return 0, 1 if data was lost to problems in it, 2 if the files are no thread trace.

    Raises:
        UsageError: `--waits` is negative.
    """
    refuse_below(0, "--waits", args.waits)
    try:
        trace = _open(args.files, args.categories)
    except (SatviewError, OSError) as error:
        say(str(error))
        return BAD_USE
    locks, waits = lock_tables(trace)
    if locks.outcome is Outcome.CANNOT_TELL and trace.format != "thread_trace":
        say(f"{trace.path.name}: {locks.cannot_tell}")
        return BAD_USE
    shown = locks if args.all or args.json else locks.rows(locks["waits"] > 0)
    longest = waits.sorted_by("length").head(args.waits)
    if args.json:
        more = {"file": str(trace.path), "waits": longest.records()}
        print_table(shown, "json", "locks", more=more)
    else:
        print_for_people(shown)
        if left := len(locks) - len(shown):
            print(f"{counted(left, 'lock')} that no thread waited for: --all lists them too.")
        if args.waits:
            print_for_people(longest)
    return say_problems(trace)


def _open(files: list[str], categories: str | None) -> Trace:
    # A single file may be of any format; for another one the answer says what the command needs.
    if len(files) == 1 and categories is None:
        return open_trace(files[0])
    return open_set(files, categories)
