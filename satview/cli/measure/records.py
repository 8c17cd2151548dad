"""`satview records FILE`: print the records of a thread trace, one per line, with their arguments."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from satview.base.errors import SatviewError
from satview.base.process import BAD_USE, COST_DATA, FINE, say
from satview.base.safe_text import csv_text, listed, visible_line
from satview.base.time import format_time
from satview.cli.shared.files import InputFile
from satview.formats.registry import opened_plain
from satview.formats.unixware.reader import open_thread_trace
from satview.store.trace import Trace

_MANY: Final = 20  # maximum number of printed problems


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name thread trace files and the categories to read."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=InputFile,
        help="a thread trace file (the rest of its set is found), a directory of them, or several",
    )
    parser.add_argument("--categories", metavar="NAMES", help="read only these categories, for example mutex:cond:sema")


def open_set(files: list[str], categories: str | None) -> Trace:
    """Open the files of a thread trace; a single file may be compressed, or `-` for standard input.

    Raises SatviewError if they are no thread trace, OSError if a file cannot be read.
    """
    if len(files) > 1:
        return open_thread_trace([Path(file) for file in files], categories=categories)
    return opened_plain(Path(files[0]), lambda plain: open_thread_trace(plain, categories=categories))


def say_problems(trace: Trace) -> int:
    """Print the first problems of a trace to standard error; return the exit code: 1 if data was lost, else 0."""
    for problem in list(trace.problems)[:_MANY]:
        position = f"{problem.file}, " if problem.file else ""
        position += f"line {problem.line}: " if problem.line else ""
        say(f"{position}{problem.detail}")
    return COST_DATA if trace.problems.cost_data else FINE


_COLUMNS: Final = ("time_ns", "lwp", "pid", "tid", "name", "category", "record", "arguments")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command `records` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser("records", help="print the records of a thread trace")
    add_files(parser)
    parser.add_argument(
        "--tid", type=int, action="append", default=[], metavar="N", help="only this thread; repeatable"
    )
    parser.add_argument("--format", choices=("text", "csv", "jsonl"), default="text", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the records; return 0, 1 if data was lost or no record selected, 2 if the files are no thread trace."""
    try:
        trace = open_set(args.files, args.categories)
    except (SatviewError, OSError) as error:
        say(str(error))
        return BAD_USE
    {"text": _print_text, "csv": _print_csv, "jsonl": _print_jsonl}[args.format](_info(trace, args.tid))
    return max(say_problems(trace), _say_missing(trace, args.tid, args.categories))


def _say_missing(trace: Trace, tids: list[int], categories: str | None) -> int:
    """Name on standard error selected threads or categories without records; return 1 if nothing was printed, or 0."""
    present = np.unique(trace.threads.tid[trace.events.thread]).tolist()
    missing = [tid for tid in tids if tid not in present]
    if missing:
        known = (
            f"there are records of {listed([str(tid) for tid in present], _MANY)}" if present else "there is no record"
        )
        say(f"no record is of thread {' or '.join(map(str, missing))}; {known}")
    elif categories and not present:
        say(f"no record is of {visible_line(categories)}")
    is_nothing = len(missing) == len(tids) if tids else bool(categories) and not present
    return COST_DATA if is_nothing else FINE


def _info(trace: Trace, tids: list[int]) -> Iterator[dict[str, Any]]:
    events, threads = trace.events, trace.threads
    for event in range(len(events)):
        thread = int(events.thread[event])
        if tids and int(threads.tid[thread]) not in tids:
            continue
        spec = trace.spec(event)
        arguments = trace.payloads.decode(event).arguments
        yield {
            "time_ns": trace.clock.ns(int(events.time_cycles[event])),
            "lwp": trace.cpu_title(int(events.cpu[event])),
            "pid": int(threads.pid[thread]),
            "tid": int(threads.tid[thread]),
            "name": threads.names[thread],
            "category": spec.class_name,
            "record": spec.name,
            "arguments": {a.name: f"{a.text} ({a.note})" if a.note else a.text for a in arguments},
        }


def _text_of(arguments: dict[str, str]) -> str:
    return "  ".join(f"{name}={text}" for name, text in arguments.items())


def _print_text(info: Iterator[dict[str, Any]]) -> None:
    for entry in info:
        who = f"{entry['pid']}:{entry['tid']} {entry['name']}".rstrip()
        line = (
            f"{format_time(entry['time_ns']):>20}  {entry['lwp']:<8} {who:<24} {entry['record']:<18} "
            f"{_text_of(entry['arguments'])}"
        )
        print(visible_line(line.rstrip()))


def _print_csv(info: Iterator[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in info:
        cells = [*(entry[name] for name in _COLUMNS[:-1]), _text_of(entry["arguments"])]
        writer.writerow(csv_text(value) if isinstance(value, str) else value for value in cells)


def _print_jsonl(info: Iterator[dict[str, Any]]) -> None:
    for entry in info:
        print(json.dumps(entry))
