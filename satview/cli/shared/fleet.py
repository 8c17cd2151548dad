"""What `satview export` and `satview query` do with many traces at once."""

from __future__ import annotations

import argparse
import os

from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import visible_line
from satview.cli.shared.progress import read_descriptions, working, working_on
from satview.fleet.export import Exported, export_folder, export_on_cluster
from satview.fleet.layout import DEFAULT_TABLES, SKIPPED
from satview.tables.schema import SCHEMAS

_MOST_FAULTS = 20


def export(args: argparse.Namespace) -> int:
    """Export a folder of traces; return 0, or 1 if one was skipped or its problems cost data.

    Raises:
        UsageError: The arguments do not fit, or there is no trace.
    """
    if args.range or args.expression or args.by_class or args.format not in (None, "parquet"):
        raise UsageError("a folder of traces can only be exported as whole tables, in Parquet")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs} is not a number of processes")
    tables = list(SCHEMAS) if "all" in args.table else [*args.table]
    if args.arguments and "argument" not in tables:
        tables = [*(tables or DEFAULT_TABLES), "argument"]
    if args.pidin:
        raise UsageError("--pidin is for the trace of one target; leave it out for a folder of traces")
    if args.timing is not None:
        raise UsageError("--timing is for one trace; of a folder of traces activities are those that are learned")
    if args.symbols:
        raise UsageError("--symbols is for one trace; of a folder of traces functions keep their addresses")
    described = read_descriptions(args.user_events).events if args.user_events else {}
    if args.dask:
        with working(working_on("exporting", args.file)):
            exported = export_on_cluster(args.file, args.output, args.dask, tables, args.pattern, described)
    else:
        jobs = args.jobs or os.cpu_count() or 1
        with working(working_on("exporting", args.file)) as report:
            exported = export_folder(args.file, args.output, tables, jobs, args.pattern,
                                  lambda _done, number, count: report(number / count), described)  # fmt: skip
    return _report(exported, args.output)


def _report(exported: Exported, name: str) -> int:
    for trace in exported.skipped[:_MOST_FAULTS]:
        say(f"{visible_line(trace.name)} skipped: {visible_line(trace.fault)}")
    if len(exported.skipped) > _MOST_FAULTS:
        say(f"and {len(exported.skipped) - _MOST_FAULTS:,} more skipped; {SKIPPED} lists all of them")
    misfits = [f"{visible_line(trace.name)}: {misfit}" for trace in exported.done for misfit in trace.misfits]
    for line in misfits[:_MOST_FAULTS]:
        say(line)
    if len(misfits) > _MOST_FAULTS:
        say(f"and {len(misfits) - _MOST_FAULTS:,} more descriptions that do not fit")
    events = sum(trace.events for trace in exported.done)
    parts = [f"{len(exported.done):,} traces written, {events:,} events"]
    if exported.unchanged:
        parts.append(f"{exported.unchanged:,} unchanged")
    if exported.skipped:
        parts.append(f"{len(exported.skipped):,} skipped")
    print(f"{name}: {', '.join(parts)}")
    return COST_DATA if exported.skipped or any(trace.costs_data for trace in exported.done) else FINE
