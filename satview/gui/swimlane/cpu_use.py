"""CPU use by process at each pixel of a picture, smoothed over neighbouring pixels, and drawn as a stack."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.events import states
from satview.events.states import IS_BUSY
from satview.gui.colours import mixed, state_colour
from satview.gui.swimlane.fills import OPAQUE, draw_tops, half_way, lane_colour
from satview.gui.theme import Theme
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import pixel_edges

_ENVELOPE: Final = 0.88  # share of the background in the colour of the extremes
_NOT_NAMED: Final = (states.QUIET_PROCESS, states.INTERRUPT, states.KERNEL_CALL)  # stacked above named processes


@dataclass(frozen=True, slots=True, eq=False)
class CpuUse:
    """CPU use around each pixel of a picture, averaged over neighbouring pixels.

    Attributes:
        edges: int64 (pixels + 1,), start and end times of pixels, cycles.
        reach_px: Number of neighbouring pixels on each side that are averaged.
        values: Lane values, from bottom to top: the busiest process first.
        used: float64 (values, pixels), CPUs used by each value.
        least, most: float64 (pixels,), CPUs in use in the least busy and the busiest of the averaged pixels.
        cpus: Number of CPUs.
    """

    edges: NDArray[np.int64]
    reach_px: int
    values: tuple[int, ...]
    used: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    cpus: int

    @property
    def high_cpus(self) -> int:
        """Number of CPUs that the height of a picture stands for: the largest use, rounded up."""
        return max(1, min(self.cpus, ceil(float(self.most.max(initial=0.0)))))

    def window_of(self, pixel: int) -> TimeWindow:
        """Return the time window that is averaged at a pixel."""
        begin, end = max(0, pixel - self.reach_px), min(len(self.edges) - 1, pixel + self.reach_px + 1)
        return TimeWindow(int(self.edges[begin]), int(self.edges[end]))


def knows_use(timeline: Timeline) -> bool:
    """Return whether all CPU lanes are built and at least one shows the running threads."""
    return any(IS_BUSY[lane.shares.values].any() for lane in timeline.lanes_of_cpus)


def busy_share(timeline: Timeline) -> float:
    """Return the busy share of all CPUs over the whole trace, 0 to 1; their lanes must be built."""
    lanes, window = timeline.lanes_of_cpus, timeline.trace.window
    busy = sum(int(lane.shares.totals(window)[IS_BUSY[lane.shares.values]].sum()) for lane in lanes)
    return busy / (window.length * len(lanes))


def cpu_use(timeline: Timeline, window: TimeWindow, width_px: int, reach_px: int) -> CpuUse:
    """Return the CPU use in a window; the cost depends on the number of pixels, not of events.

    Args:
        timeline: Lanes; the CPU lanes must be built.
        window: Time window of the picture.
        width_px: Width of the picture.
        reach_px: Number of neighbouring pixels on each side to average.
    """
    edges, lanes = pixel_edges(window, width_px), timeline.lanes_of_cpus
    cycles = np.zeros((states.VALUE_COUNT, width_px), np.int64)
    for lane in lanes:
        cycles[lane.shares.values] += lane.shares.cycles(edges).T
    totals = np.where(IS_BUSY, cycles.sum(axis=1), 0)
    order = sorted(np.flatnonzero(totals).tolist(), key=lambda value: (_rank(value), -int(totals[value])))
    cycles = cycles[order]
    sums = np.concatenate((np.zeros((len(order), 1), np.int64), np.cumsum(cycles, axis=1)), axis=1)
    begin = np.maximum(np.arange(width_px) - reach_px, 0)
    end = np.minimum(np.arange(width_px) + reach_px + 1, width_px)
    used = (sums[:, end] - sums[:, begin]) / np.maximum(edges[end] - edges[begin], 1)
    around = _neighbours(cycles.sum(axis=0) / np.maximum(np.diff(edges), 1), reach_px)
    return CpuUse(edges, reach_px, tuple(order), used, around.min(axis=1), around.max(axis=1), len(lanes))


def draw_use(pixels: NDArray[np.uint32], use: CpuUse, rows: tuple[int, int], theme: Theme) -> None:
    """Draw the CPU use as a stack of processes, and behind it a pale band of the largest and least use nearby.

    Args:
        pixels: uint32 (height, width of `use`), modified.
        use: The CPU use.
        rows: First pixel row, at the height of `high_cpus`, and the row after the last.
        theme: Colours.
    """
    columns, ground = np.arange(pixels.shape[1] + 1), theme.base | OPAQUE
    tops = np.cumsum(use.used, axis=0) / use.high_cpus
    pale = np.array([mixed(theme.dim, theme.base, _ENVELOPE) | OPAQUE], np.uint32)
    most, least = (
        _neighbours(extremes / use.high_cpus, use.reach_px).mean(axis=1) for extremes in (use.most, use.least)
    )
    draw_tops(pixels, most[None], np.zeros(1, np.bool_), columns, pale, ground, rows)
    colours = [lane_colour(value, state_colour(value, theme) or 0, theme) for value in use.values]
    stack = np.zeros_like(pixels)
    draw_tops(stack, tops, IS_BUSY[list(use.values)], columns, np.array(colours, np.uint32), 0, rows)
    np.copyto(pixels, stack, where=stack != 0)
    begin, end = rows
    row = np.clip(end - 1 - np.rint(least * (end - begin)).astype(np.intp), begin, end - 1)
    shows = np.flatnonzero(least > 0)
    pixels[row[shows], shows] = half_way(pixels[row[shows], shows], theme.base)


def names_of_values(timeline: Timeline) -> dict[int, str]:
    """Return the process name of each lane value on CPU lanes; several names if processes share a hue."""
    names: dict[int, dict[str, None]] = {}
    for process in range(1, len(timeline.trace.processes.names)):
        name = visible_line(timeline.trace.short_process_name(process))
        names.setdefault(timeline.process_value(process), {})[name] = None
    return {value: ", ".join(of_value) for value, of_value in names.items()} | {states.QUIET_PROCESS: "other processes"}


def _neighbours(values: NDArray[np.float64], reach_px: int) -> NDArray[np.float64]:
    """Return each value with its neighbours, float64 (pixels, 2 * reach_px + 1); the end values are repeated."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(values, reach_px, mode="edge"), 2 * reach_px + 1)


def _rank(value: int) -> int:
    return _NOT_NAMED.index(value) + 1 if value in _NOT_NAMED else 0
