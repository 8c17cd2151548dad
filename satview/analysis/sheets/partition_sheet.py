"""The sheet of partitions: what each may use of the CPUs against what it uses."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.analysis.partitions import (
    IDLE,
    NOT_LOGGED,
    averaging_window_ms,
    has_partitions,
    logs_partitions,
    partition_names,
    partition_title,
)
from satview.analysis.sheets.sheet import Column, Columns, Kind, Sheet, Subject
from satview.analysis.sheets.sheet_rows import Shown, columns_of, sheet_of
from satview.analysis.statistics import Statistics

_NAMES: Final = {IDLE: "System Idle", NOT_LOGGED: "not logged"}
_NO_PARTITION: Final = ("No event names a partition: the adaptive partitioning scheduler was not loaded, "
                        "or the class SYSTEM was not captured.")  # fmt: skip
_NEEDS_WIDE: Final = ("Thread events do not show in which partition threads run; "
                      "capture wide events of the class THREAD (SETCLASSWIDE THREAD).")  # fmt: skip


def partition_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per configuration of budgets and partition."""
    trace, table = found.trace, found.partitions
    names = partition_names(trace) | _NAMES
    columns = columns_of(found, np.arange(len(table)))
    columns.text("partition", "Partition", lambda row: partition_title(names, int(table.partition[row])))
    columns.number("id", "id", np.where(table.partition == NOT_LOGGED, -1, table.partition), "Number of the partition.")
    if len(table) and table.configuration[-1] > 1:
        columns.number("configuration", "Configuration", table.configuration,
                       "A new one begins where a budget changes.")  # fmt: skip
        columns.made.append(Column("from_ns", "From", Kind.TIME, trace.clock.ns_array(table.start_cycles),
                                   "When the configuration begins, cut at the range.",
                                   cycles=table.start_cycles))  # fmt: skip
    columns.share("budget_share", "Budget", table.budget, 1.0, "Share of all CPUs that it is given.")
    _observed(columns, found)
    columns.count("critical_budget_ms", "Critical budget, ms", table.critical_budget_ms,
                  "How much more its critical threads may run in an averaging window.")  # fmt: skip
    columns.duration("critical_ns", "Critical", table.critical_cycles,
                     "Threads ran that may draw on the critical budget.")  # fmt: skip
    columns.duration("peak_ns", "Most in a window", table.peak_cycles,
                     f"The most that it ran within {averaging_window_ms(trace)} ms, all CPUs together.",
                     start=table.peak_start_cycles)  # fmt: skip
    columns.count("bankruptcies", "Bankruptcies", table.bankruptcies, "How often it overran its critical budget.")
    columns.text("bankrupt_threads", "Bankrupt by", lambda row: _culprits(found, row), "Threads that ran then.")
    is_logged = logs_partitions(found.basis)
    note = ("Budget against use of all CPUs, interrupts included; servers count where their clients belong."
            if is_logged else _NEEDS_WIDE)  # fmt: skip
    if is_logged and found.lost_cycles:
        note += " Events were lost: run times are lower bounds."
    return sheet_of("partition", "Partitions", Subject.NONE, columns, "", _NO_PARTITION,
                    note if has_partitions(trace) else "")  # fmt: skip


def _observed(columns: Columns, found: Statistics) -> None:
    """Add what partitions used; nothing where thread events do not show."""
    table = found.partitions
    known = np.full(len(table), logs_partitions(found.basis))
    known |= np.isin(table.partition, (IDLE, NOT_LOGGED))
    used = np.where(known, table.run_cycles / np.maximum(table.length_cycles, 1), -1.0)
    columns.share("used_share", "Used", used, 1.0, "Share of all CPUs that it used.")
    has_budget = known & (table.budget > 0)
    of_budget = np.where(has_budget, used / np.where(has_budget, table.budget, 1.0), -1.0)
    columns.share("of_budget_share", "Of its budget", of_budget, 1.0,
                  "Use as a share of the budget; what is above 100 % others left free.")  # fmt: skip
    columns.duration("run_ns", "Ran", table.run_cycles, "Its threads ran, and servers for them.", known)


def _culprits(found: Statistics, row: int) -> str:
    """Return the threads that made a partition bankrupt in a configuration, in the order of the events."""
    table, broke = found.partitions, found.bankruptcies
    time = found.trace.events.time_cycles[broke.row]
    begin = int(table.start_cycles[row])
    later = table.start_cycles[table.start_cycles > begin]
    end = int(later.min()) if len(later) else found.window.end
    mine = broke.thread[(broke.partition == table.partition[row]) & (time >= begin) & (time < end)]
    return ", ".join(found.trace.thread_name(int(thread)) for thread in dict.fromkeys(mine.tolist()))
