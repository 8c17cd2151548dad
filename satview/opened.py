"""A trace with queries about it as methods, which `satview.open_trace` returns to scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from operator import itemgetter
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import Timing
from satview.analysis.critical_path import CriticalPath, critical_path
from satview.analysis.statistics import Statistics
from satview.analysis.verdicts.evidence import Verdict
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import Thresholds
from satview.analysis.why import WhyStep, why
from satview.answers.doctor import doctor
from satview.answers.snapshot import snapshot
from satview.answers.table import Table
from satview.base.safe_text import html_text
from satview.base.time import TimeWindow, format_duration
from satview.export.by_ending import export
from satview.filters.expressions.expression import select
from satview.formats import registry
from satview.linkage.chain import Links, links
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.transactions import Transactions, transactions
from satview.store.trace import Trace
from satview.tables.result import Result
from satview.tables.schema import SCHEMAS
from satview.tables.sql import Limits, sql
from satview.tables.table import ArgumentTable, argument_table, table
from satview.timeline.lane_tree import Timeline

_SHOWN_CLASSES: Final = 8
_SHOWN_PROCESSES: Final = 20


class OpenedTrace(Trace):
    """One trace, read-only, with queries about it as methods.

    A method calls the function or class of `satview` that its docstring names, if any, with the trace as the first
    argument; results are cached with the trace.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Columns, names and cached results stay; arguments cannot be read any more."""
        self.payloads.close()

    def _repr_html_(self) -> str:
        """Return a summary of the trace in a few lines of HTML, for notebooks."""
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
        """Write the trace to a file, in a format by its ending; return the number of rows, packets or events in it.

            trace.export("boot.pftrace"), trace.export("states.parquet", "state"), trace.export("boot.kev", window=slow)

        Args:
            path: `.parquet`, `.arrow`, `.csv`, `.jsonl` for tables, `.pftrace` for Perfetto, `.json` for Chrome,
                `.kev` for a smaller trace, `.txt` for a listing, `.folded`, `.speedscope.json` for flame graphs.
            tables: Name of a table, or names of several if the path is a folder; none = the table of events.
            expression: Only events that the expression passes.
            window: Only events in this range, in cycles; None = all.
            timing: As for `sql`.

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
        """Return the links of the trace: per kind, a table of the events that belong together (`satview.links`)."""
        return links(self)

    def transactions(self) -> Transactions:
        """Return all messages, each with its receipt, reply and times (`satview.transactions`)."""
        return transactions(self)

    def latencies(self) -> Latencies:
        """Return all pulses and interrupts, each with the times until a thread responds (`satview.latencies`)."""
        return latencies(self)

    def statistics(self, window: TimeWindow | None = None) -> Statistics:
        """Return statistics of use of CPUs, waits, kernel calls and messages (`satview.Statistics`).

        Args:
            window: The range, in cycles; None = the whole trace.
        """
        return Statistics(self, window)

    def timeline(self) -> Timeline:
        """Return the states of each thread and CPU, as the window draws them (`satview.Timeline`)."""
        return Timeline(self)

    def verdicts(
        self, thresholds: Thresholds | None = None, kinds: Collection[str] | None = None
    ) -> tuple[Verdict, ...]:
        """Return verdicts: the problems found in the trace, the most severe first (`satview.check`).

        Args:
            thresholds: Limits from which on something is a verdict; None = the default ones.
            kinds: Kinds of verdicts to search for, by their names or unique parts of them; None = all that the
                thresholds enable.

        Raises:
            UsageError: There is no such kind, or the thresholds name a thread or an activity that the trace does not
                have.
        """
        return find_verdicts(self, thresholds, kinds)

    def doctor(self) -> Table:
        """Return a table of how far each analysis can be trusted, and what to capture for more (`satview.doctor`)."""
        return doctor(self)

    def why(self, thread: int | str, at_cycles: int) -> tuple[WhyStep, ...]:
        """Return the steps that explain why a thread is in its state at a moment (`satview.why`).

        Args:
            thread: Row of the thread table, or its label, name or `PID:TID`.
            at_cycles: The moment, in cycles, such as `trace.clock.cycles(ns)`.
        """
        return why(self, thread, at_cycles)

    def critical_path(self, thread: int | str, window: TimeWindow | None = None) -> CriticalPath:
        """Return the chain of states and causes that a thread depended on in a range (`satview.critical_path`).

        Args:
            thread: As for `why`.
            window: The range, in cycles; None = the whole trace.

        Raises:
            UsageError: There is no such thread, the range is outside the trace, or the path has too many pieces.
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
        """Return a table of all events with the given name, which has their arguments as columns.

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
            limits: Maximum time and memory; None = 60 s and 2 GiB.
            timing: Content of a timing file, from `satview.analysis.activities.read_timing`, for the tables about
                activities.

        Raises:
            UsageError: The query is faulty or exceeds a limit, or a package is not installed.
        """
        return sql(self, query, limits, timing=timing)

    def snapshot(self, at_cycles: int) -> Table:
        """Return a table of the state of every thread at a moment (`satview.snapshot`).

        Args:
            at_cycles: The moment, in cycles.
        """
        return snapshot(self, at_cycles)


def open_trace(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> OpenedTrace:
    """Open a trace of any format that the window opens, recognized by its content, also if compressed by gzip or zstd.

    Args:
        path: The file; `-` is standard input.
        progress: Called with a fraction from 0 to 1 while the file is read.
        cancelled: Called repeatedly while the file is read.

    Raises:
        TraceFormatError: No reader recognizes the file, or nothing of it can be read. The message says in which file
            and at which byte, what is wrong, and what to do.
        Cancelled: `cancelled()` returned True.
    """
    return with_answers(registry.open_trace(path, progress, cancelled))


def with_answers(trace: Trace) -> OpenedTrace:
    """Return a trace as one with queries as methods; both share all data and the cached results."""
    return OpenedTrace(**{field.name: getattr(trace, field.name) for field in fields(Trace)})
