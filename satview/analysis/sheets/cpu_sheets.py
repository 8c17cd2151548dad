"""The sheets of what goes from one CPU to another: threads that migrate, and messages."""

from __future__ import annotations

import numpy as np

from satview.analysis.sheets.sheet import Column, Kind, Sheet, Subject
from satview.analysis.sheets.sheet_rows import Shown, columns_of, sheet_of, thread_columns, threads_shown
from satview.analysis.statistics import Statistics


def migration_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per thread and pair of CPUs that it went between."""
    trace, moves = found.trace, found.migrations
    cpus = trace.cpu_count + 1  # from -1 on
    mine = np.flatnonzero(np.isin(moves.thread, threads_shown(found, shown)))
    key = (moves.thread[mine] * cpus + moves.from_cpu[mine] + 1) * cpus + moves.to_cpu[mine]
    kinds, first, count = np.unique(key, return_index=True, return_counts=True)
    thread, from_cpu, to_cpu = kinds // cpus // cpus, kinds // cpus % cpus - 1, kinds % cpus
    columns = columns_of(found, np.arange(len(kinds)))
    thread_columns(columns, found, thread)
    columns.number("from_cpu", "From CPU", from_cpu,
                   "Where it ran before; empty where events were lost in between.")  # fmt: skip
    columns.number("to_cpu", "To CPU", to_cpu, "Where it runs then.")
    columns.count("count", "Migrations", count, "Runs that begin there after a run on the other CPU.")
    columns.made.append(Column("per_s", "Per second", Kind.RATE, count / found.length_s,
                               "Such migrations per second of the range."))  # fmt: skip
    columns.count("thread_count", "Of the thread", found.threads.migrations[thread], "All migrations of the thread.")
    runs = np.maximum(found.threads.switches[thread], 1)
    columns.made.append(Column("share", "Of its runs", Kind.SHARE, count / runs,
                              "Such migrations as a share of its runs that begin in the range."))  # fmt: skip
    start = trace.clock.ns_array(moves.time_cycles[mine[first]])
    columns.made.append(Column("first_ns", "First", Kind.TIME, start, "When the first one happened.",
                               cycles=moves.time_cycles[mine[first]]))  # fmt: skip
    none = ("No thread runs on one CPU and then on another in this range." if trace.cpu_count > 1 else
            "The trace has one CPU, so that no thread migrates.")  # fmt: skip
    return sheet_of("migration", "Migrations", Subject.THREAD, columns, "count", none,
                    "Where a run begins on another CPU than the thread's run before; idle threads never migrate.",
                    subjects=thread)  # fmt: skip


def cpu_matrix_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per CPU that messages are sent on, one column per CPU that they are received on."""
    trace, table = found.trace, found.cpu_messages
    sent = table.count.sum(axis=1) + table.unknown
    columns = columns_of(found, np.flatnonzero(sent))
    columns.text("from_cpu", "Sent on", trace.cpu_title)
    for cpu in range(trace.cpu_count):
        columns.count(f"to_cpu_{cpu}", f"To {trace.cpu_title(cpu)}", table.count[:, cpu],
                      f"Messages that {trace.cpu_title(cpu)} received.", follows=True)  # fmt: skip
    columns.count("unknown", "Not known", table.unknown,
                  "Messages of which the trace has no receipt: not received, or events were lost.",
                  follows=True)  # fmt: skip
    columns.count("count", "Messages", sent, "Messages sent on this CPU.", follows=True)
    columns.count("elsewhere", "To other CPUs", table.elsewhere, "Those that another CPU received.", follows=True)
    columns.made.append(Column("elsewhere_share", "Share", Kind.SHARE,
                               (table.elsewhere / np.maximum(sent - table.unknown, 1))[columns.rows],
                               "Those that another CPU received, as a share of those of which the receipt is known.",
                               follows=True))  # fmt: skip
    return sheet_of(
        "cpu-matrix",
        "Between CPUs",
        Subject.CPU,
        columns,
        "",
        "No message of the range counts.",
        "Messages by the CPU that sent and the CPU that received; replies do not count.",
    )
