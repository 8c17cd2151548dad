"""A trace with its answers as methods: what `satview.open_trace` returns to scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from operator import itemgetter
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from satview.analysis.reasons.critical_path import CriticalPath, critical_path
from satview.analysis.reasons.why import WhyStep, why
from satview.analysis.statistics import Statistics
from satview.analysis.timing import Timing
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import Thresholds
from satview.analysis.verdicts.verdict import Verdict
from satview.answers.doctor import doctor
from satview.answers.snapshot import snapshot
from satview.answers.table import Table
from satview.base.safe_text import html_text
from satview.base.time import TimeWindow
from satview.base.time_text import format_duration
from satview.export.by_ending import export
from satview.filters.expressions.expression import select
from satview.formats import registry
from satview.linkage.accessor import Links, links
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.transactions import Transactions, transactions
from satview.store.trace import Trace
from satview.tables.arguments import ArgumentTable, argument_table
from satview.tables.question import Limits
from satview.tables.result import Result
from satview.tables.schema import SCHEMAS
from satview.tables.sql import sql
from satview.tables.table import table
from satview.timeline.lane_tree import Timeline

_SHOWN_CLASSES: Final = 8
_SHOWN_PROCESSES: Final = 20


class OpenedTrace(Trace):
    """One trace, read-only, and what can be queried about it.

    Every method is the function of the same name in `satview`, with the trace as its first argument; what is found is
    cached with the trace.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Columns, names and what was found stay; arguments cannot be read any more."""
        self.payloads.close()

    def _repr_html_(self) -> str:
        """Return what it is in a few lines, for notebooks."""
        counts = sorted(self.class_counts().items(), key=itemgetter(1), reverse=True)
        processes = range(1, len(self.processes))[:_SHOWN_PROCESSES]
        rows = [
            ("Events", f"{len(self.events):,}"),
            ("Length", format_duration(self.duration_ns)),
            ("CPUs", str(self.cpu_count)),
            ("Release", str(self.release)),
            ("Classes", ", ".join(f"{name} {count:,}" for name, count in counts[:_SHOWN_CLASSES])),
            (
                "Processes",
                ", ".join(map(self.process_name, processes)),
            ),
            ("Problems", f"{sum(self.problems.counts().values()):,}"),
            ("Tables", ", ".join(SCHEMAS)),
        ]
        lines = "".join(f"<tr><th>{name}</th><td>{html_text(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>{html_text(self.path.name)}</caption>{lines}</table>"

    def select(self, expression: str) -> NDArray[np.uint32]:
        """Return the rows of the events that an expression passes, ascending (`satview.select`).

        Returns:
            uint32 (n,).
        """
        return select(self, expression)

    def export(
        self,
        path: Path | str,
        tables: str | Sequence[str] = (),
        *,
        expression: str = "",
        window: TimeWindow | None = None,
        timing: Mapping[str, Timing] | None = None,
    ) -> int:
        """Write the trace to a file whose ending says how; return how many rows, packets or events are in it.

            trace.export("boot.pftrace"), trace.export("states.parquet", "state"), trace.export("boot.kev", window=slow)

        Args:
            path: `.parquet`, `.arrow`, `.csv`, `.jsonl` for tables, `.pftrace` for Perfetto, `.json` for Chrome,
                `.kev` for a smaller trace, `.txt` for a listing.
            tables: Name of a table, or of several, for a folder; none = the events.
            expression: Only events for which it holds.
            window: Only events in it; None = all.
            timing: As of `sql`.

        Raises:
            UsageError: The ending names no format, there is no such table, no table asks for the timing, or the file
                cannot be written.
        """
        rows = None
        if expression:
            rows = np.zeros(len(self.events), np.bool_)
            rows[self.select(expression)] = True
        names = (tables,) if isinstance(tables, str) else tables
        return export(self, path, tables=names, events=rows, window=window, timing=timing).count

    def links(self) -> Links:
        """Return what belongs together, one table of event rows per kind (`satview.links`)."""
        return links(self)

    def transactions(self) -> Transactions:
        """Return every message with its receipt, reply and times (`satview.transactions`)."""
        return transactions(self)

    def latencies(self) -> Latencies:
        """Return every pulse and interrupt with the times until a thread answers (`satview.latencies`)."""
        return latencies(self)

    def statistics(self, window: TimeWindow | None = None) -> Statistics:
        """Return who used the CPUs, waited, called and sent (`satview.Statistics`).

        Args:
            window: The range, in cycles; None = the whole trace.
        """
        return Statistics(self, window)

    def timeline(self) -> Timeline:
        """Return the states per thread and CPU, as the window draws them (`satview.Timeline`)."""
        return Timeline(self)

    def verdicts(
        self, thresholds: Thresholds | None = None, kinds: Collection[str] | None = None
    ) -> tuple[Verdict, ...]:
        """Return what is wrong in the trace, the most severe first (`satview.check`).

        Args:
            thresholds: When something is a verdict; None = the ones that come with satview.
            kinds: Which kinds; None = all that the thresholds enable.
        """
        return find_verdicts(self, thresholds, kinds)

    def doctor(self) -> Table:
        """Return how far each analysis of the trace can be trusted, and what to capture for more (`satview.doctor`)."""
        return doctor(self)

    def why(self, thread: int | str, at_cycles: int) -> tuple[WhyStep, ...]:
        """Return why a thread is in its state at a moment, step by step (`satview.why`).

        Args:
            thread: Row of the thread table, or its label, name or `PID:TID`.
            at_cycles: The moment; `trace.clock.cycles(ns)`.
        """
        return why(self, thread, at_cycles)

    def critical_path(self, thread: int | str, window: TimeWindow | None = None) -> CriticalPath:
        """Return what had to happen for a thread to get through an interval (`satview.critical_path`).

        Args:
            thread: As of `why`.
            window: The interval, in cycles; None = the whole trace.
        """
        return critical_path(self, thread, window or self.window)

    def table(self, name: str) -> Table:
        """Return a table with documented columns (docs/tables.md), for numpy, Arrow, pandas and Polars.

        Args:
            name: `event`, `state`, `run`, `call`, `message`, ...

        Raises:
            UsageError: There is no such table.
        """
        return table(self, name)

    def arguments(self, name: str) -> ArgumentTable:
        """Return all events of a name with their arguments as columns.

        Args:
            name: `MSG_SENDV`, `KER_EXIT/MSG_SENDV`, `SND_MESSAGE`, ...; a bare kernel call represents its entries.

        Raises:
            UsageError: No event of the release has that name.
        """
        return argument_table(self, name)

    def sql(self, query: str, limits: Limits | None = None, timing: Mapping[str, Timing] | None = None) -> Result:
        """Return the rows of a query over the tables, views and macros of docs/tables.md; needs DuckDB and pyarrow.

        Args:
            query: One query in the SQL of DuckDB, such as `select * from ready_wait`.
            limits: Time and memory that it may take; None = 60 s and 2 GiB.
            timing: What a file of timing says, for the tables on activities (`satview.analysis.timing.read_timing`).

        Raises:
            UsageError: The query is faulty or went over a limit, or a package is not installed.
        """
        return sql(self, query, limits, timing=timing)

    def snapshot(self, at_cycles: int) -> Table:
        """Return what every thread does at a moment (`satview.snapshot`).

        Args:
            at_cycles: The moment.
        """
        return snapshot(self, at_cycles)


def open_trace(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> OpenedTrace:
    """Open a trace of any format that the window opens, found by content; compressed by gzip or zstd too.

    Args:
        path: The file; `-` is standard input.
        progress: Called with 0 to 1 while it is read.
        cancelled: Called now and then.

    Raises:
        TraceFormatError: No reader knows it, or nothing of it can be read. Says file, byte, what, what to do.
        Cancelled: `cancelled()` returned True.
    """
    return with_answers(registry.open_trace(path, progress, cancelled))


def with_answers(trace: Trace) -> OpenedTrace:
    """Return a trace with its answers as methods; both share all data, and what is found is cached for both."""
    return OpenedTrace(**{field.name: getattr(trace, field.name) for field in fields(Trace)})
