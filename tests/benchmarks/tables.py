"""Tables, arguments, every view of SQL and the files, over 10 million events, with DuckDB's scan of Parquet as floor.

Views are limited to 0.5 s each once their tables are made, which is measured apart.

Args: [millions of slots] [--shape NAME].
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

from satview.export.tables import write_table
from satview.opened import OpenedTrace, open_trace
from satview.tables.schema import SCHEMAS, mentioned, views
from satview.tables.sql import Limits
from satview.tables.table import argument_chunks
from tests.benchmarks.made_traces import SHAPES, file_of

LIMIT_S = 0.5
ARGUMENTS = {"bin_ns": 10_000_000, "from_ns": 1_000_000_000, "to_ns": 2_000_000_000, "at_ns": 1_500_000_000,
             "thread_row": 5, "deadline_ns": 100_000}  # fmt: skip
_MILLIONS = 12  # of slots: 10 million events of the mixed shape


def run(args: list[str]) -> None:
    """Print one line per figure; end with 1 if a view takes longer than its limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=_MILLIONS)
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    options = parser.parse_args(args)
    millions, shape = options.millions, options.shape
    trace = open_trace(file_of(shape, millions))
    print(f"{shape}: {len(trace.events):,} events")
    for name in (name for name in SCHEMAS if name != "argument"):  # as `_arguments` measures it
        cpu_s, wall_s, found = measured(lambda name=name: trace.table(name))
        print(f"table {name:22} {cpu_s:6.2f} s CPU {wall_s:6.2f} s  {len(found):,} rows")
    _arguments(trace)
    _files(trace)
    slow = [name for name in views() if not _view(trace, name)]
    print(f"{len(views())} views and macros, {len(slow)} slower than {LIMIT_S} s of CPU: {', '.join(slow) or 'none'}")
    sys.exit(1 if slow else 0)


def measured(timed: Callable[[], object]) -> tuple[float, float, object]:
    """Return processor time and time by the clock of a call, seconds, and its result."""
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    result = timed()
    return time.process_time() - cpu_s, time.perf_counter() - wall_s, result


def _arguments(trace: OpenedTrace) -> None:
    for name in ("THRUNNING", "MSG_SENDV", "SND_MESSAGE", "EVENT 100"):
        trace.arguments(name)
        cpu_s, _, found = measured(lambda name=name: trace.arguments(name))
        print(f"arguments {name:18} {len(found) / cpu_s / 1e6:6.1f} M events a second, {len(found):,} of them")
    cpu_s, wall_s, rows = measured(lambda: sum(len(chunk["event"]) for chunk in argument_chunks(trace)))
    cpu, clock = rows / cpu_s / 1e6, rows / wall_s / 1e6
    print(f"table argument {cpu:22.1f} M rows a second of CPU, {clock:.1f} by the clock, {rows:,} of them")


def _view(trace: OpenedTrace, name: str) -> bool:
    """Print what a view takes; return whether that is within the limit."""
    given = ", ".join(str(ARGUMENTS[parameter]) for parameter in views()[name].parameters)
    query = f"select * from {name}{f'({given})' if given else ''}"
    for needed in mentioned(query)[0]:
        trace.table(needed)
    cpu_s, wall_s, found = min((measured(lambda: trace.sql(query)) for _ in range(2)), key=itemgetter(0))
    print(f"view {name:23} {cpu_s:6.2f} s CPU {wall_s:6.2f} s  {len(found):,} rows")
    return cpu_s <= LIMIT_S


def _files(trace: OpenedTrace) -> None:
    """Print size and time of the files, and one query over the trace and over DuckDB's own scan of Parquet."""
    import duckdb

    events = len(trace.events)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("parquet", "arrow", "csv", "jsonl"):
            path = Path(folder) / f"event.{kind}"
            cpu_s, wall_s, _ = measured(lambda path=path, kind=kind: write_table(trace, path, "event", kind))
            size = path.stat().st_size
            print(f"export {kind:21} {cpu_s:6.2f} s CPU {wall_s:6.2f} s  {size / events:.2f} bytes an event")
            if kind != "parquet":
                path.unlink()
        parquet = Path(folder) / "event.parquet"
        query = "select thread, count(*), max(time_cycles) from {} group by thread"
        connection = duckdb.connect()
        floor_s = min(measured(lambda: connection.sql(query.format(f"'{parquet}'")).fetchall())[0] for _ in range(3))
        own_s = min(measured(lambda: trace.sql(query.format("event"), Limits()))[0] for _ in range(3))
        ratio = own_s / floor_s
        print(f"count per thread             {own_s:6.2f} s CPU, {ratio:.2f} x DuckDB over Parquet {floor_s:.2f}")
