"""Which part of the trace statistics and plots are about; it follows the selected range by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from PySide6.QtCore import QObject, Slot

from satview.base.time import Clock, TimeWindow
from satview.base.time_text import format_cycles, format_duration, format_exactly
from satview.session.open_trace import OpenTrace
from satview.session.questions import WatchedAnswer

# Lengths as they are written where somebody measures: exactly, in time and in cycles.


def length_text(cycles: int, clock: Clock) -> str:
    """Return a length with nothing rounded away: `1.204 562 5 ms (2,409,125 cycles)`."""
    return f"{format_exactly(cycles, clock)} ({format_cycles(cycles)})"


def length_texts(cycles: int, clock: Clock) -> tuple[str, ...]:
    """Return a length in shorter and shorter words; one that is rounded says so."""
    exact, short = format_exactly(cycles, clock), format_duration(clock.duration_ns(cycles))
    return length_text(cycles, clock), exact, f"\N{ALMOST EQUAL TO} {short}"


def frequency_text(cycles: int, clock: Clock) -> str:
    """Return how often per second something of a length fits in: `830.2 Hz`; empty for a length of 0."""
    if not cycles:
        return ""
    hertz = clock.cycles_per_s / abs(cycles)
    for unit, scale in (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)):
        if hertz >= scale or unit == "Hz":
            return f"{hertz / scale:.4g} {unit}"
    raise AssertionError("unreachable")


NO_RANGE: Final = "Select a range: drag over the lanes, press R for the selected interval, or Shift+R to type one."


class Extent(StrEnum):
    """Which part of the trace something is about."""

    TRACE = "Whole trace"
    VIEW = "View"
    RANGE = "Selection"


class ExtentSelection:
    """The requested part: what the user selected, or the selected range from its first moment to its last.

    Attributes:
        extent: The part.
    """

    def __init__(self, opened: OpenTrace, extent: Extent) -> None:
        self._opened = opened
        self.extent = extent
        self._before: Extent | None = None  # to go back to when the range is gone
        self._has_range = False
        self.follow_range()

    def select(self, extent: Extent) -> None:
        """Select a part, whatever range is selected, until another range is."""
        self.extent, self._before = extent, None

    def follow_range(self) -> None:
        """Follow a range that has just been selected, and go back when it is gone."""
        had_range, self._has_range = self._has_range, self._opened.selection.time_range is not None
        if self._has_range and not had_range and self.extent is not Extent.RANGE:
            self.extent, self._before = Extent.RANGE, self.extent
        elif had_range and not self._has_range and self._before is not None:
            self.extent, self._before = self._before, None

    @property
    def needs_range(self) -> bool:
        """True if the selected range is requested and there is none."""
        return self.extent is Extent.RANGE and self._opened.selection.time_range is None

    def window(self) -> TimeWindow:
        """Return the part, cut to the trace; the whole trace where they do not meet."""
        whole = self._opened.trace.window
        requested = {
            Extent.TRACE: whole,
            Extent.VIEW: self._opened.viewport.window,
            Extent.RANGE: self._opened.selection.time_range or whole,
        }[self.extent]
        return requested.within(whole)


class ExtentAnswer(WatchedAnswer):
    """An answer about the selected part of the trace; it is found again when that part changes.

    Args:
        opened: The open trace.
        extent: The part at first.
        settle_ms: As of `WatchedAnswer`.
        parent: Owner.
    """

    def __init__(self, opened: OpenTrace, extent: Extent, settle_ms: int, parent: QObject | None = None) -> None:
        super().__init__(settle_ms, parent)
        self._extent = ExtentSelection(opened, extent)
        opened.viewport.window_changed.connect(self._on_window)
        opened.selection.range_changed.connect(self._on_range)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def extent(self) -> Extent:
        """The part of the trace that the answer is about."""
        return self._extent.extent

    @property
    def needs_range(self) -> bool:
        """True if the selected range is requested and there is none."""
        return self._extent.needs_range

    def _later(self) -> None:
        """Find the answer again once its part stays unchanged."""
        if self._is_watched:
            self._settle.start()

    @Slot()
    def _on_window(self) -> None:
        if self.extent is Extent.VIEW:
            self._later()

    @Slot()
    def _on_range(self) -> None:
        before = self.extent
        self._extent.follow_range()
        if self.extent is Extent.RANGE or self.extent is not before:
            self._later()
            self.changed.emit()  # whether the panel is seen or not: the part may be another one now

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        self._later()
