"""What statistics are about: a trace, a range of time, the events that count, and what is not known of the range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis
from satview.base.errors import Cancelled, UsageError
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.table import OPEN, LinkKind
from satview.linkage.trace_links import ends_of
from satview.store.axis import Covered, covered
from satview.store.doubts import trusted_window
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace

Mask = NDArray[np.bool_]
Rows = NDArray[np.integer]
_CHUNK: Final = 1 << 17


def _never() -> bool:
    return False


@dataclass
class Scope:
    """A trace, a range, and the events that count.

    Attributes:
        trace: The data.
        window: The range, within the trace.
        passes: bool (events,), events that count; None = all.
        basis: What is the same for every range.
        is_cancelled: Called now and then.
    """

    trace: Trace
    window: TimeWindow
    passes: Mask | None
    basis: Basis
    is_cancelled: Callable[[], bool] = field(default=_never)

    @cached_property
    def rows(self) -> slice:
        """Events in the range."""
        return self.trace.rows_between(self.window)

    @property
    def is_whole(self) -> bool:
        """True if the range has all events of the trace."""
        return (self.rows.start, self.rows.stop) == (0, len(self.trace.events))

    @cached_property
    def covered(self) -> Covered:
        """How much of the range the file of each thread, process and CPU covers."""
        return covered(self.trace, self.window)

    @property
    def length_s(self) -> float:
        """Seconds of the range."""
        return self.window.length / self.trace.clock.cycles_per_s

    def check(self) -> None:
        """Stop if somebody said so.

        Raises:
            Cancelled: Somebody did.
        """
        if self.is_cancelled():
            raise Cancelled("the statistics were stopped")

    def chunks(self) -> Iterator[slice]:
        """Yield the events of the range in parts that fit the processor's cache."""
        for start in range(self.rows.start, self.rows.stop, _CHUNK):
            self.check()
            yield slice(start, min(start + _CHUNK, self.rows.stop))

    def selected(self, table: Mask) -> Rows:
        """Return the events of the range that count and whose code is in a table, int64 rows, ascending.

        Args:
            table: bool (32768,), codes.
        """
        found = []
        for part in self.chunks():
            fits = table[self.trace.events.code[part]]
            if self.passes is not None:
                fits &= self.passes[part]
            found.append(np.flatnonzero(fits) + part.start)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def cut(self, start: Cycles, end: Cycles) -> tuple[Cycles, Cycles]:
        """Return spans cut at the ends of the range; what is outside comes out empty."""
        start = np.clip(start, self.window.start, self.window.end)
        return start, np.maximum(np.clip(end, self.window.start, self.window.end), start)

    def lengths(self, begins: Rows, kind: LinkKind = LinkKind.CALL) -> tuple[Cycles, NDArray[np.int64]]:
        """Return how long the links of a kind last that some events begin, and the events that end them.

        Args:
            begins: (n,), rows of the event table.
            kind: What sort of links.

        Returns:
            Two columns, int64 (n,); -1 where the end is not in the trace or not sure.
        """
        ends = ends_of(self.trace, kind, begins).astype(np.int64)
        time = self.trace.events.time_cycles
        ends[ends >= OPEN] = -1
        known = np.flatnonzero(ends >= 0)
        cycles = np.full(len(ends), -1, np.int64)
        cycles[known] = time[ends[known]] - time[begins[known]]
        return cycles, ends


def scope_of(
    trace: Trace,
    window: TimeWindow | None,
    passes: Mask | None,
    basis: Basis | None,
    is_cancelled: Callable[[], bool] | None,
) -> Scope:
    """Return a scope; `Statistics` says what the arguments mean.

    Raises:
        UsageError: The range is outside the trace, or the mask is that of another trace.
    """
    whole = trace.window
    if window is None:
        window = trusted_window(trace)
    elif window.end <= whole.start or window.start >= whole.end:
        raise UsageError("the range is outside the trace")
    if passes is not None and passes.shape != trace.events.time_cycles.shape:
        raise UsageError(f"the mask has {len(passes):,} rows, the trace {len(trace.events):,} events")
    inside = TimeWindow(max(window.start, whole.start), min(window.end, whole.end))
    return Scope(trace, inside, passes, basis or Basis(trace), is_cancelled or _never)


def codes_where(test: Callable[[NDArray[np.int64], NDArray[np.int64]], Mask]) -> Mask:
    """Return a table over codes, bool (32768,), from a test of internal class and event number."""
    codes = np.arange(wire.CODE_COUNT)
    return test(codes >> wire.CLASS_SHIFT, codes & wire.EVENT_MASK)
