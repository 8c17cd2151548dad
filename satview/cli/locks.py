"""`satview locks FILE`: what threads waited for, per lock, from a trace of a threads library."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from satview.analysis.doctor import diagnosis
from satview.analysis.locks import KINDS, LockTable, Waits, lock_table
from satview.analysis.times.basis import TITLES, sign
from satview.base.errors import SatviewError
from satview.base.process import BAD_USE, say
from satview.base.safe_text import visible_line
from satview.base.time_text import format_duration
from satview.cli.shared.progress import open_trace
from satview.cli.shared.thread_traces import add_files, open_set, say_problems
from satview.formats.unixware.payloads import address_text
from satview.store.trace import Trace

_NUMBERS: Final = (
    "calls",
    "waits",
    "failed",
    "wait_ns",
    "longest_wait_ns",
    "holds",
    "hold_ns",
    "longest_hold_ns",
    "threads",
)


PURPOSE = "measure"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("locks", help="lock contention in a trace of a threads library")
    add_files(parser)
    parser.add_argument("--waits", type=int, default=0, metavar="N", help="also list the N longest waits")
    parser.add_argument("--all", action="store_true", help="also list locks that no thread waited for")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table; return 0, 1 if problems cost data, 2 if the files are no thread trace."""
    try:
        trace = _open(args.files, args.categories)
        table, waits = lock_table(trace)
    except (SatviewError, OSError) as error:
        say(str(error))
        return BAD_USE
    rows = [i for i in range(len(table)) if args.all or args.json or table.waits[i]]
    if args.json:
        reported = {
            "file": str(trace.path),
            "locks": [_row(trace, table, i) for i in rows],
            "waits": [_wait_entry(trace, table, waits, i) for i in _longest(waits, args.waits)],
            "trust": dict.fromkeys(_NUMBERS, diagnosis(trace, "locks").trust.as_record()),
        }
        print(json.dumps(reported, indent=2))
    else:
        _print_table(trace, table, rows)
        _print_waits(trace, table, waits, args.waits)
    return say_problems(trace)


def _open(files: list[str], categories: str | None) -> Trace:
    # A single file may be of any format: the answer then is what this command needs.
    if len(files) == 1 and categories is None:
        return open_trace(files[0])
    return open_set(files, categories)


def _name(trace: Trace, table: LockTable, row: int) -> str:
    address = address_text(int(table.address[row]))
    name = f"{table.names[row]}  {address}" if table.names[row] else address
    several = len(trace.processes) > 2
    return f"{name}, {trace.process_name(int(table.process[row]))}" if several else name


def _row(trace: Trace, table: LockTable, row: int) -> dict[str, Any]:
    return {
        "name": table.names[row],
        "address": address_text(int(table.address[row])),
        "kind": KINDS[int(table.kind[row])],
        "pid": int(trace.processes.pid[int(table.process[row])]),
        **{name: int(getattr(table, name)[row]) for name in _NUMBERS},
    }


def _longest(waits: Waits, count: int) -> list[int]:
    return list((-waits.length_ns).argsort(kind="stable")[: max(0, count)].tolist())


def _wait_entry(trace: Trace, table: LockTable, waits: Waits, row: int) -> dict[str, Any]:
    lock, event = int(waits.lock[row]), int(waits.event[row])
    return {
        "event": event + 1,
        "call": trace.spec(event).calls[0],
        "thread": trace.thread_name(int(waits.thread[row])),
        "lock": _name(trace, table, lock) if lock >= 0 else "",
        "start_ns": int(waits.start_ns[row]),
        "length_ns": int(waits.length_ns[row]),
    }


def _print_table(trace: Trace, table: LockTable, rows: list[int]) -> None:
    # Brought in here: `--json` and error paths need no table.
    from rich.table import Table

    from satview.cli.shared.console import cell, make_console

    console = make_console(200)
    if not rows:
        console.print(f"None of the {len(table)} locks was waited for." if len(table) else "The trace names no lock.")
        return
    shown = Table(
        "Waited",
        "Waits",
        "Longest",
        "Calls",
        "Failed",
        "Held",
        "Longest",
        "Threads",
        "Kind",
        "Lock",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for column in shown.columns:
        column.no_wrap = True
    for column in shown.columns[:8]:
        column.justify = "right"
    trust = diagnosis(trace, "locks").trust
    before = f"{sign(trust.mark)} ".lstrip()
    for i in rows:
        figures = (
            format_duration(int(table.wait_ns[i])),
            f"{table.waits[i]:,}",
            format_duration(int(table.longest_wait_ns[i])),
            f"{table.calls[i]:,}",
            f"{table.failed[i]:,}",
            format_duration(int(table.hold_ns[i])) if table.holds[i] else "",
            format_duration(int(table.longest_hold_ns[i])) if table.holds[i] else "",
            f"{table.threads[i]:,}",
        )
        shown.add_row(
            *(f"{before}{figure}" if figure else "" for figure in figures),
            KINDS[int(table.kind[i])],
            cell(_name(trace, table, i)),
        )
    console.print(shown)
    if trust.reason:
        console.print(cell(f"{before}{TITLES[trust.mark]}: {trust.reason}."))


def _print_waits(trace: Trace, table: LockTable, waits: Waits, count: int) -> None:
    for i in _longest(waits, count):
        entry = _wait_entry(trace, table, waits, i)
        print(
            visible_line(
                f"{format_duration(entry['length_ns']):>12}  event {entry['event']:,}: {entry['thread']} in "
                f"{entry['call']}{' of ' + entry['lock'] if entry['lock'] else ''}"
            )
        )
