"""Where the ruler puts its ticks and what it writes there. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from satview.base.time import NS_PER_S, Clock
from satview.base.time_text import UNITS
from satview.gui.swimlane.scale import TimeScale

_MAJOR_LEAST_PX: Final = 120


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick of the ruler: where, what it says (empty for a small one)."""

    x: float
    text: str


def step_ns(scale: TimeScale, clock: Clock, least_px: float = _MAJOR_LEAST_PX) -> int:
    """Return the distance of labelled ticks: the smallest 1, 2 or 5 times a power of ten ns that has room."""
    requested = scale.window.length * NS_PER_S * least_px / (clock.cycles_per_s * max(1, scale.width_px))
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor >= requested:
                return step * factor
        step *= 10


def ticks(scale: TimeScale, clock: Clock) -> list[Tick]:
    """Return labelled and small ticks of a window, from left to right."""
    step = step_ns(scale, clock)
    minor = step // 5 if step % 5 == 0 else step // 2 if step % 2 == 0 else step
    first_ns, last_ns = clock.ns(scale.window.start), clock.ns(scale.window.end)
    found = []
    unit = _unit(max(abs(first_ns), abs(last_ns)), step)
    for ns in range(first_ns // minor * minor, last_ns + minor, minor):
        # Not by whole cycles: at this depth a nanosecond is several of them, or a fraction of one.
        x = (
            (ns * clock.cycles_per_s - (scale.window.start - clock.start_cycles) * NS_PER_S)
            * scale.width_px
            / (scale.window.length * NS_PER_S)
        )
        if -200 <= x <= scale.width_px + 1:
            found.append(Tick(x, tick_text(ns, step, unit) if ns % step == 0 else ""))
    return found


def tick_text(ns: int, step: int, unit: tuple[str, int] | None = None) -> str:
    """Return a time with as many decimals as the step of the ticks needs, in groups of three."""
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
    """Return the unit for a window: that of its largest time, so that all labels read alike."""
    return next(((name, size) for name, size in UNITS if max(largest_ns, step) >= size), UNITS[-1])
