"""Converts between times and pixels, with floats only relative to the window start; finds ticks of time axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QLineF, QPointF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from satview.base.time import NS_PER_S, UNITS, Clock, TimeWindow
from satview.gui.theme import Theme, colour


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Converts between times and x positions, for a time window that is drawn with a width in (logical) pixels."""

    window: TimeWindow
    width_px: int

    def x(self, cycles: int) -> float:
        """Return the x position of a time, limited to the range that Qt can draw."""
        x = (cycles - self.window.start) * self.width_px / self.window.length
        return min(max(x, -1e6), 1e6)

    def cycles(self, x: float) -> int:
        """Return the time at an x position."""
        return self.window.start + int(x * self.window.length // max(1, self.width_px))

    def length(self, px: float) -> int:
        """Return the time that a number of pixels stands for, in cycles, at least 1."""
        return max(1, round(px * self.window.length / max(1, self.width_px)))

    @property
    def px_per_cycle(self) -> float:
        """Pixels per clock cycle."""
        return self.width_px / self.window.length


# Positions and texts of ticks.


_MAJOR_LEAST_PX: Final = 120


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of a time axis: x position in pixels, and text, empty for a minor tick."""

    x: float
    text: str


def step_ns(scale: TimeScale, clock: Clock) -> int:
    """Return the distance of labelled ticks: the smallest 1, 2 or 5 times a power of ten ns that leaves enough room."""
    requested = scale.window.length * NS_PER_S * _MAJOR_LEAST_PX / (clock.cycles_per_s * max(1, scale.width_px))
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor >= requested:
                return step * factor
        step *= 10


def ticks(scale: TimeScale, clock: Clock) -> list[Tick]:
    """Return labelled and minor ticks of a window, from left to right."""
    step = step_ns(scale, clock)
    minor = small_step_ns(step)
    first_ns, last_ns = clock.ns(scale.window.start), clock.ns(scale.window.end)
    marks = []
    unit = _unit(max(abs(first_ns), abs(last_ns)), step)
    for ns in range(first_ns // minor * minor, last_ns + minor, minor):
        # In ns, because ticks may be closer together than clock cycles.
        x = (
            (ns * clock.cycles_per_s - (scale.window.start - clock.start_cycles) * NS_PER_S)
            * scale.width_px
            / (scale.window.length * NS_PER_S)
        )
        if -200 <= x <= scale.width_px + 1:
            marks.append(Tick(x, tick_text(ns, step, unit) if ns % step == 0 else ""))
    return marks


def small_step_ns(step: int) -> int:
    """Return the distance of minor ticks in ns: a fifth or half of `step`, the distance of labelled ticks."""
    return step // 5 if step % 5 == 0 else step // 2 if step % 2 == 0 else step


def tick_text(ns: int, step: int, unit: tuple[str, int] | None = None) -> str:
    """Return a time in a unit (None = one that fits) with as many decimals as ticks `step` ns apart need, in threes."""
    name, size = unit or _unit(abs(ns), step)
    if ns == 0:
        return f"0 {name}"
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    whole, rest = divmod(ns, size)
    digits = len(str(size)) - 1
    while digits and step % 10 ** (len(str(size)) - digits) == 0:
        digits -= 1
    decimals = f"{rest:0{len(str(size)) - 1}d}"[:digits] if size > 1 else ""
    groups = " ".join(decimals[i : i + 3] for i in range(0, len(decimals), 3))
    return f"{sign}{whole:,}{'.' if groups else ''}{groups} {name}".replace(",", "\N{THIN SPACE}")


def _unit(largest_ns: int, step: int) -> tuple[str, int]:
    """Return name and ns of the unit for all labels in a window: the unit of the largest time."""
    return next(((name, size) for name, size in UNITS if max(largest_ns, step) >= size), UNITS[-1])


# Drawing of ticks.


TICK_ROW_PX: Final = 22


def draw_ticks(painter: QPainter, marks: list[Tick], width_px: int, font: QFont, theme: Theme) -> None:
    """Draw ticks on a line `TICK_ROW_PX` below the top, with texts that do not extend beyond the ruler."""
    painter.setPen(QPen(colour(theme.faint), 1))
    painter.drawLines(
        [
            QLineF(round(tick.x) + 0.5, TICK_ROW_PX - (9 if tick.text else 4), round(tick.x) + 0.5, TICK_ROW_PX)
            for tick in marks
        ]
    )
    painter.setFont(font)
    painter.setPen(colour(theme.dim))
    metrics = QFontMetricsF(font)
    for tick in marks:
        if tick.text and -1 <= tick.x <= width_px - metrics.horizontalAdvance(tick.text) - 6:
            painter.drawText(QPointF(round(tick.x) + 5, TICK_ROW_PX - 6), tick.text)
