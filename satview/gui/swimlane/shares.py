"""Computes and draws stacks (shares of time by lane value), used where intervals are too dense for bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.base.process import timed
from satview.base.safe_text import AT_LEAST_SIGN, html_text, percent, with_sign
from satview.base.time import TimeWindow, format_duration, format_moment
from satview.core import pictures
from satview.events import states
from satview.gui.colours import FADE, OTHER_NAMES, mixed, state_colour
from satview.gui.swimlane import fills
from satview.gui.swimlane.fills import OPAQUE, draw_tops, lane_colour
from satview.gui.swimlane.lane_source import Frame, LaneSource
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme
from satview.session.lanes.lane_overlay import LaneOverlay
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.store.axis import file_window
from satview.timeline.lane import Counter, LaneShares
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import NO_EVENT, LaneSpans, pixel_edges
from satview.timeline.state_lanes import USER

# Zoomed-out lanes: where intervals are too dense for bars, each bin shows the shares of its time by value.


_DENSE_PX: Final = 3.0  # mean width below which intervals are not drawn individually
_CPU_BIN_PX: Final = 4
_BIN_PX: Final = 2
_FAINT: Final = 0.5
_LEAST_FIGURE: Final = 0.01
_LEFT_OUT: Final = frozenset({states.ABSENT})
_HEIGHTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # possible numbers of CPUs of a process lane's height
_Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Shares of time of a lane in bins (equal parts of the time axis), stacked by lane value.

    Attributes:
        edges: int64 (bins + 1,), start and end times of bins, cycles.
        columns: (bins + 1,), pixel columns of the edges.
        values: (k,), lane values from bottom to top.
        tops: float64 (k, bins), upper end of each value, 0 = bottom, 1 = top of the lane.
        colours: uint32 (k,), as returned by `fills.lane_colour`.
        spans: The intervals whose times are added up.
        cpus: Process lanes: number of CPUs that the height stands for; 0 for other lanes, whose height stands for the
            length of a bin.
        mean_cpus: Process lanes: mean CPU use over the whole trace.
        is_heat: True if colour strength, not height, shows the share of the first value: for interrupts, which take too
            little time for a visible height.
        shows_faded: True if faded intervals are stacked above the others in paler colours.
        keeps_all: True if each value is visible in every bin in which it occurs, and event marks are drawn above.
    """

    edges: NDArray[np.int64]
    columns: NDArray[np.intp]
    values: tuple[int, ...]
    tops: NDArray[np.float64]
    colours: NDArray[np.uint32]
    spans: LaneSpans
    cpus: int = 0
    mean_cpus: float = 0.0
    is_heat: bool = False
    shows_faded: bool = False
    keeps_all: bool = False

    def bin_at(self, cycles: int) -> int:
        """Return the number of the bin at a time; -1 = none."""
        position = int(np.searchsorted(self.edges, cycles, side="right")) - 1
        return position if position < len(self.edges) - 1 else -1

    def window_of(self, position: int) -> TimeWindow:
        """Return the time window of a bin."""
        return TimeWindow(int(self.edges[position]), int(self.edges[position + 1]))

    def value_at(self, position: int, height: float) -> int | None:
        """Return the lane value drawn at a height of bin `position`, 0 = bottom, 1 = top; None above all values."""
        if self.is_heat:
            shown = np.flatnonzero(np.diff(self.tops[:, position], prepend=0) > 0)
            return self.values[int(shown[0])] if len(shown) else None
        index = int(np.searchsorted(self.tops[:, position], height))
        return self.values[index] if index < len(self.values) else None


def are_dense(timeline: Timeline, scale: TimeScale) -> bool:
    """Return whether the intervals of some CPU are too dense for bars; then all lanes show shares."""
    lanes = [timeline.lane(info.index) for info in timeline.infos if _is_cpu(info) and timeline.is_ready(info.index)]
    parts = [lane.spans.visible(scale.window) for lane in lanes]
    return max((part.stop - part.start for part in parts), default=0) * _DENSE_PX > scale.width_px


def cpus_high(timeline: Timeline, scale: TimeScale, width_px: int, is_dense: bool) -> int:
    """Return how many CPUs the height of all process lanes stands for, so that the largest use fits at this zoom.

    Only lanes that are built count; `is_dense` is as `are_dense` returns, and `width_px` in device pixels.
    """
    whole = timeline.trace.window
    shift = _bins(whole, scale, width_px, _process_bin_px(is_dense)).shift
    used = (lane.use.peak(whole, shift) for lane in timeline.ready_lanes if lane.use is not None)
    most = max(used, default=0.0)
    return next((step for step in _HEIGHTS if step >= most), _HEIGHTS[-1])


def _process_bin_px(is_dense: bool) -> int:
    return _CPU_BIN_PX if is_dense else 1


def stack_of(
    timeline: Timeline,
    row: LaneRow,
    scale: TimeScale,
    width_px: int,
    theme: Theme,
    hidden: frozenset[int],
    highlighted: frozenset[int] = frozenset(),
    *,
    kinds: bool = False,
    orders: Orders | None = None,
    overlay: LaneOverlay | None = None,
    is_dense: bool = True,
    cpus: int = 1,
) -> Stack | None:
    """Return the stack (shares of time by lane value) of a lane; None if the lane is drawn as bars.

    Args:
        timeline: The lanes.
        row: The lane.
        scale: Time to logical pixels.
        width_px: Device pixels.
        theme: Colours.
        hidden: Lane values to hide.
        highlighted: Lane values that stay bright while all others fade; empty = nothing fades.
        kinds: True if CPU lanes show kinds of work (user code, kernel calls, interrupts, idle), once these are known.
        orders: Cache of stacking orders by lane; None = no cache.
        overlay: Effect of a filter on intervals: hidden ones do not count, faded ones are stacked paler above the
            others. Under a filter, process lanes show their states, and CPU lanes their processes.
        is_dense: True if intervals are too dense for bars, as `are_dense` returns.
        cpus: Number of CPUs that the height of process lanes stands for, as `cpus_high` returns.
    """
    if not timeline.is_ready(row.index):
        return None
    lane, info = timeline.lane(row.index), timeline.infos[row.index]
    if lane.counter is not None:
        value = int(info.track.content.value[0]) if info.track else 0
        colour = int(_colours((value,), theme, frozenset(), highlighted)[0])
        return _steps(lane.counter, lane.spans, scale.window, width_px, value, colour, theme)
    is_filtered = overlay is not None and not overlay.leaves_all
    counts = lane.use is not None and not is_filtered
    if info.kind in (LaneKind.DAMAGED, LaneKind.PLUGGED) or not (is_dense or counts):
        return None
    bin_px = _process_bin_px(is_dense) if counts else _CPU_BIN_PX if _is_cpu(info) else _BIN_PX
    bins, whole = _bins(timeline.trace.window, scale, width_px, bin_px), timeline.trace.window
    if overlay is not None and not overlay.leaves_all:
        return _filtered(row, info, bins, whole, theme, hidden, highlighted, overlay, orders)
    edges, columns, length = bins.edges, bins.columns, bins.length
    shares = (timeline.kinds(row.index) if kinds and _is_cpu(info) else None) or lane.shares
    cycles = shares.binned(whole, bins.shift, bins.first, bins.last)
    if lane.use is not None and lane.ready is not None:
        running, ready = (sums.binned(whole, bins.shift, bins.first, bins.last)[:, 0] / length
                          for sums in (lane.use, lane.ready))  # fmt: skip
        unknown, missing = (np.flatnonzero(shares.values == value) for value in (states.UNKNOWN, states.ABSENT))
        values, tops = _use(running / cpus, ready / cpus, *(cycles[:, sums].sum(axis=1) / length for sums in
                                                            (unknown, missing)))  # fmt: skip
        colours = _colours(values, theme, frozenset(), highlighted)
        mean = lane.use.mean(whole)
        return Stack(edges, columns, values, tops, colours, lane.spans, cpus, mean)
    order = _order_of(orders if orders is not None else {}, row.index, shares, info, whole)
    if not order.values:
        return None
    tops, colours = tops_of(cycles, order.columns, length), _colours(order.values, theme, hidden, highlighted)
    is_heat = info.kind is LaneKind.INTERRUPTS and order.values[0] == states.INTERRUPT
    return Stack(edges, columns, order.values, tops, colours, shares.spans, is_heat=is_heat, keeps_all=_keeps_all(info))


def _filtered(
    row: LaneRow, info: LaneInfo, bins: _Bins, whole: TimeWindow, theme: Theme,
    hidden: frozenset[int], highlighted: frozenset[int], overlay: LaneOverlay, orders: Orders | None,
) -> Stack | None:  # fmt: skip
    """Return the stack of a lane while a filter hides or fades intervals; None until the shares are known."""
    shown, plain = overlay.shown(row.index, waits=False), overlay.plain(row.index, waits=False)
    if shown is None or plain is None:
        return None
    order = _order_of(orders if orders is not None else {}, row.index, shown, info, whole)
    if not order.values:
        return None
    paler = shown.binned(whole, bins.shift, bins.first, bins.last)
    colours = _colours(order.values, theme, hidden, highlighted)
    if plain is shown:
        tops = tops_of(paler, order.columns, bins.length)
        return Stack(bins.edges, bins.columns, order.values, tops, colours, shown.spans, keeps_all=_keeps_all(info))
    cycles = np.zeros_like(paler)
    in_both = np.isin(plain.values, shown.values)
    of_plain = plain.binned(whole, bins.shift, bins.first, bins.last)
    cycles[:, np.searchsorted(shown.values, plain.values[in_both])] = of_plain[:, in_both]
    both = np.concatenate((cycles, paler - cycles), axis=1)
    tops = tops_of(both, np.concatenate((order.columns, order.columns + paler.shape[1])), bins.length)
    faded = np.array([mixed(int(rgb) & 0xFFFFFF, theme.base, FADE) | OPAQUE for rgb in colours], np.uint32)
    colours = np.concatenate((colours, faded))
    return Stack(bins.edges, bins.columns, order.values * 2, tops, colours, shown.spans, shows_faded=True,
                 keeps_all=_keeps_all(info))  # fmt: skip


def tops_of(cycles: NDArray[np.int64], columns: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the upper end of each stacked value in each bin, float64 (k, bins), 0 = bottom, 1 = top of the lane.

    Args:
        cycles: int64 (bins, values), time of each value in each bin.
        columns: int64 (k,), columns of `cycles` with the values to stack, from bottom to top.
        length: int64 (bins,), length of each bin in cycles.
    """
    return pictures.stack_tops(np.ascontiguousarray(cycles), columns, length)


def _steps(
    counter: Counter, spans: LaneSpans, window: TimeWindow, width_px: int, value: int, colour: int, theme: Theme
) -> Stack:
    """Return the stack of a counter lane: in each pixel solid up to the lowest value, paler up to the highest."""
    edges = pixel_edges(window, width_px)
    span = max(counter.highest - counter.lowest, 1e-300)
    least, most = (np.nan_to_num(levels, nan=counter.lowest) - counter.lowest for levels in counter.extremes(edges))
    tops = np.stack((least, most)) / span
    colours = np.array([colour, mixed(colour & 0xFFFFFF, theme.base, _FAINT) | OPAQUE], np.uint32)
    return Stack(edges, np.arange(width_px + 1), (value, value), tops, colours, spans)


def _use(
    running: _Shares, ready: _Shares, unknown: _Shares, absent: _Shares
) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Return the stack of a process lane, from the bottom: RUNNING, READY, unknown, WAITING of an existing process.

    Running and READY threads are in lane heights, unknown and absent in shares of the time, float64 (bins,) each. The
    tops of the lane values, float64 (lane values, bins), are as in `Stack`.
    """
    could = np.minimum(running + ready, 1)
    if not unknown.any():
        return (states.RUNNING, states.READY, states.WAITING), np.stack((running, could, np.maximum(could, 1 - absent)))
    doubt = np.maximum(could, unknown)
    values = (states.RUNNING, states.READY, states.UNKNOWN, states.WAITING)
    return values, np.stack((running, could, doubt, np.maximum(doubt, 1 - absent)))


def figure(timeline: Timeline, row: LaneRow, window: TimeWindow) -> str:
    """Return the load of a lane in a window: `53 %` of a CPU, `1.05 CPU` of a process, `\u2264 17` of a counter.

    `unknown` if the state is unknown in the whole window, and `\u2265 53 %` if it is unknown for so long that the text
    would be another one if the CPU had been busy then. On an axis of several files, only the part of the window that
    the lane's file covers counts; the text is empty if there is no such part, or until the lane is built.
    """
    info = timeline.infos[row.index]
    whole = file_window(timeline.trace, info.cpu, info.process)
    start, end = max(window.start, whole.start), min(window.end, whole.end)
    if not timeline.is_ready(row.index) or end <= start:  # the trace may be refreshed before the view of it
        return ""
    window, lane = TimeWindow(start, end), timeline.lane(row.index)
    unknown = 0
    if info.kind in (LaneKind.CPU, LaneKind.PROCESS, LaneKind.THREAD):
        unknown = int(lane.shares.totals(window)[np.asarray(lane.shares.values) == states.UNKNOWN].sum())
        if unknown == window.length:
            return "unknown"
    if lane.use is not None:
        return _bound(int(lane.use.totals(window)[0]), lost_cycles(timeline, window), window.length, _cpus_text)
    if lane.counter is not None:
        most = float(np.nan_to_num(lane.counter.extremes(np.array([start, end], np.int64))[1][0]))
        return f"\N{LESS-THAN OR EQUAL TO} {most:,.6g}"
    if info.kind in (LaneKind.DAMAGED, LaneKind.PLUGGED, LaneKind.TRACK):
        return ""
    cycles = lane.shares.totals(window)
    busy = int(cycles[states.IS_BUSY[lane.shares.values]].sum())
    if row.process >= 0:
        return _bound(busy, unknown, window.length, _cpus_text)  # in the notation of its process's lane
    return _bound(busy, unknown, window.length, _percent_text)


def quiet_figure(timeline: Timeline, window: TimeWindow, shares_of: Callable[[int], LaneShares | None]) -> str:
    """Return the total CPU use of quiet processes in a window, like `figure`; empty until known.

    `shares_of` is as for `quiet_use`.
    """
    shares = [shares_of(lane) for lane in _lanes_of_cpus(timeline)]
    if not timeline.lanes_of_cpus or None in shares:
        return ""
    cycles = sum(int(lane.totals(window)[lane.values == states.QUIET_PROCESS].sum()) for lane in shares if lane)
    return _bound(cycles, lost_cycles(timeline, window), window.length, _cpus_text)


def busy_text(timeline: Timeline) -> str:
    """Return the busy share of all CPUs over the whole trace as text, like `figure`; empty until known."""
    if not fills.knows_use(timeline):
        return ""
    lanes, window = timeline.lanes_of_cpus, timeline.trace.window
    cycles = [(lane.shares.totals(window), np.asarray(lane.shares.values)) for lane in lanes]
    busy, unknown = (sum(int(total[is_so[values]].sum()) for total, values in cycles)
                     for is_so in (states.IS_BUSY, np.arange(states.VALUE_COUNT) == states.UNKNOWN))  # fmt: skip
    return _bound(busy, unknown, window.length * len(lanes), partial(percent, decimals=0))


def lost_cycles(timeline: Timeline, window: TimeWindow) -> int:
    """Return the time in a window for which events are missing, cycles."""
    lost = np.clip(timeline.lost_marks, window.start, window.end)
    return int((lost[:, 1] - lost[:, 0]).sum())


def _percent_text(share: float) -> str:
    return percent(share, 0 if share >= 0.1 or not share else 1)


def _bound(busy: int, unknown: int, length: int, text_of: Callable[[float], str]) -> str:
    """Return a load as text: a lower bound if the text would change if the unknown time had been busy, too."""
    text = text_of(busy / length)
    return text if text == text_of((busy + unknown) / length) else with_sign(AT_LEAST_SIGN, text)


def _lanes_of_cpus(timeline: Timeline) -> list[int]:
    return [info.index for info in timeline.infos if info.kind is LaneKind.CPU]


def quiet_use(
    timeline: Timeline, scale: TimeScale, width_px: int, shares_of: Callable[[int], LaneShares | None] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
    """Return the total CPU use of quiet processes (which use little) in each bin; None until known.

    `shares_of` returns what a filter leaves of the shares of a CPU's lane, or None until known; without it, all count.

    Returns:
        intp (bins + 1,), pixel columns of the edges of bins; float64 (bins,), CPUs in use.
    """
    whole, bins = timeline.trace.window, _bins(timeline.trace.window, scale, width_px, _CPU_BIN_PX)
    if not timeline.lanes_of_cpus:
        return None
    cycles = np.zeros(len(bins.length), np.int64)
    for lane in _lanes_of_cpus(timeline):
        shares = timeline.lane(lane).shares if shares_of is None else shares_of(lane)
        if shares is None:
            return None
        of_lane = shares.binned(whole, bins.shift, bins.first, bins.last)
        cycles += of_lane[:, shares.values == states.QUIET_PROCESS].sum(axis=1)
    return bins.columns, cycles / bins.length


def _cpus_text(used: float) -> str:
    return f"{used:.2f} CPU" if used >= _LEAST_FIGURE or not used else f"< {_LEAST_FIGURE} CPU"


def draw_stack(pixels: NDArray[np.uint32], stack: Stack, top: int, bottom: int, background: int) -> None:
    """Draw the visible part of a stack between the pixel rows `top` and `bottom`, changing uint32 (height, width)."""
    is_busy = states.IS_BUSY[list(stack.values)] | stack.keeps_all
    draw_tops(pixels, stack.tops, is_busy, stack.columns, stack.colours, background, (top, bottom))


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Bins that overlap a window; `edges` (cut at the ends of the trace) and `columns` as in `Stack`.

    Attributes:
        shift: Bins are 2^shift cycles long.
        first, last: Numbers of the first and last bin, from the start of the trace; `last` is exclusive.
        length: int64 (bins,), length of the part of each bin within the trace, cycles.
    """

    shift: int
    first: int
    last: int
    edges: NDArray[np.int64]
    columns: NDArray[np.intp]
    length: NDArray[np.int64]


@lru_cache(maxsize=8)
def _bins(whole: TimeWindow, scale: TimeScale, width_px: int, least_px: int) -> _Bins:
    """Return the bins of a window, at least `least_px` and less than twice as wide; panning does not change them."""
    window = scale.window
    shift = max(0, window.length * least_px // max(1, scale.width_px) - 1).bit_length()
    begin = max(0, (window.start - whole.start) >> shift)
    end = max(begin, min(-((whole.start - window.end) >> shift), ((whole.length - 1) >> shift) + 1))
    edges = np.minimum(whole.start + (np.arange(begin, end + 1, dtype=np.int64) << shift), whole.end)
    columns = np.clip((edges - window.start).astype(np.float64) * width_px / window.length, 0, width_px)
    return _Bins(shift, begin, end, edges, np.rint(columns).astype(np.intp), np.maximum(np.diff(edges), 1))


def _keeps_all(info: LaneInfo) -> bool:
    return info.track is not None and bool(info.track.content.meanings)


def _is_cpu(info: LaneInfo) -> bool:
    return info.kind is LaneKind.CPU


class LaneOrder(NamedTuple):
    """Stacking order of a lane.

    Attributes:
        shares: The shares of the lane for which the order was made.
        values: Visible values, from bottom to top.
        columns: int64 (values,), position of each value in the shares.
    """

    shares: LaneShares
    values: tuple[int, ...]
    columns: NDArray[np.int64]


Orders = dict[int, LaneOrder]  # by lane


def _order_of(orders: Orders, lane: int, shares: LaneShares, info: LaneInfo, whole: TimeWindow) -> LaneOrder:
    """Return the stacking order of a lane, cached in `orders`: busy states first; on CPUs, by time used."""
    cached = orders.get(lane)
    if cached is not None and cached.shares is shares:
        return cached
    share_values = shares.values.tolist()
    values = tuple(value for value in _order(shares, info, whole) if value not in _LEFT_OUT)
    orders[lane] = LaneOrder(shares, values, np.array([share_values.index(value) for value in values], np.int64))
    return orders[lane]


def _order(shares: LaneShares, info: LaneInfo, whole: TimeWindow) -> list[int]:
    values = shares.values.tolist()
    if not _is_cpu(info) or states.RUNNING in values:
        lowest = [states.RUNNING, states.KERNEL_CALL, states.INTERRUPT, states.READY]
        return sorted(values, key=lambda value: (lowest.index(value) if value in lowest else 9, value == 1, value))
    total = dict(zip(values, shares.totals(whole).tolist(), strict=True))
    last = {states.KERNEL_CALL: 1, states.UNKNOWN: 2, states.IDLE: 3}
    return sorted(values, key=lambda value: (last.get(value, 0), -total[value]))


@lru_cache(maxsize=512)
def _colours(
    values: tuple[int, ...], theme: Theme, hidden: frozenset[int], highlighted: frozenset[int]
) -> NDArray[np.uint32]:
    """Return the colour of each lane value, uint32 (values,): background if hidden, faded if not highlighted."""
    colours = []
    for value in values:
        rgb = state_colour(value, theme)
        if rgb is None or value in hidden:
            colours.append(theme.base | OPAQUE)
            continue
        stands_out = not highlighted or value in highlighted or fills.SHARES in highlighted
        colours.append(lane_colour(value, rgb, theme) if stands_out else mixed(rgb, theme.base, FADE) | OPAQUE)
    return np.array(colours, np.uint32)


# The hover text of a bin of a lane that shows shares, and the interval that a click selects.


_MOST_LINES: Final = 7


def share_text(opened: OpenTrace, lane: int, window: TimeWindow, spans: LaneSpans | None = None) -> str:
    """Return the shares of a lane in a time window, largest first, as rich text; `spans` replace those of the lane."""
    timeline, trace = opened.timeline, opened.trace
    info, lane_data = timeline.infos[lane], timeline.lane(lane)
    spans = lane_data.spans if spans is None else spans
    start, end, part = clipped_intervals(spans, window)
    if not len(start):
        return ""
    lines = [f"<b>{format_duration(trace.clock.duration_ns(window.length))}</b> of {html_text(info.title)}"]
    if lane_data.use is not None:
        used = int(lane_data.use.totals(window)[0]) / window.length
        runs = trace.code_counts[trace.catalogue.state_value_of_code == states.RUNNING].any()
        lines.append(f"{used:.2f} CPUs in use" if runs else "CPUs in use: unknown")
    if lane_data.ready is not None and (ready := int(lane_data.ready.totals(window)[0])):
        lines.append(f"{ready / window.length:.2f} threads READY")
    key = spans.value[part].astype(np.int64)
    if info.kind is LaneKind.CPU and spans.thread is not None:  # by process, because processes share hues
        process = trace.threads.process[spans.thread[part]].astype(np.int64)
        key = np.where(key >= states.FIRST_PROCESS, process + states.VALUE_COUNT, key)
    if info.track is not None and info.track.lane_class.text == "{event}":  # by event, because events share hues
        has_event = lane_data.spans.event[part] != NO_EVENT
        code = trace.events.code[np.where(has_event, lane_data.spans.event[part], 0)].astype(np.int64)
        key = np.where(has_event, code + states.VALUE_COUNT, key)
    kinds, kind_of = np.unique(key, return_inverse=True)
    cycles = np.bincount(kind_of, end - start, len(kinds))
    for position in np.argsort(-cycles, kind="stable")[:_MOST_LINES].tolist():
        row = part.start + int(np.argmax(kind_of == position))
        name = (
            info.meaning(int(kinds[position])) if _keeps_all(info) else _name(opened, lane, int(kinds[position]), row)
        )
        if name and cycles[position]:
            lines.append(f"{html_text(percent(cycles[position] / window.length))}&nbsp;&nbsp;{html_text(name)}")
    if len(kinds) > _MOST_LINES:
        lines.append(f"and {len(kinds) - _MOST_LINES} more")
    counts = np.ones(len(start), np.bool_) if spans is lane_data.spans else spans.value[part] != states.ABSENT
    if counts.any():
        longest = int(np.argmax(np.where(counts, end - start, -1)))
        name = _name(opened, lane, int(key[longest]), part.start + longest)
        length = format_duration(trace.clock.duration_ns(int(end[longest] - start[longest])))
        lines.append(f"{int(counts.sum()):,} intervals, the longest {length}" + (f" {html_text(name)}" if name else ""))
    lines.append(f"<small>{format_moment(window.start, trace.clock)}</small>")
    return "<br>".join(lines)


def longest_of(spans: LaneSpans, window: TimeWindow, value: int | None) -> int | None:
    """Return the start of the longest interval with a lane value (None = any) in a window, cycles; None = none.

    Intervals are cut at the ends of the window.
    """
    start, end, part = clipped_intervals(spans, window)
    fits = np.ones(len(start), np.bool_) if value is None else spans.value[part] == value
    if not fits.any():
        return None
    return int(start[int(np.argmax(np.where(fits, end - start, -1)))])


def clipped_intervals(spans: LaneSpans, window: TimeWindow) -> tuple[NDArray[np.int64], NDArray[np.int64], slice]:
    """Return starts and ends of the intervals in a window, cut to it, int64 (n,) cycles; and their positions."""
    part = spans.visible(window)
    start = spans.start_cycles[part]
    if not len(start):
        return start, start, part
    end = np.append(start[1:], spans.end_of(part))
    return np.maximum(start, window.start), np.minimum(end, window.end), part


def _name(opened: OpenTrace, lane: int, key: int, interval: int) -> str:
    texts = opened.timeline.lane(lane).spans.texts
    if texts is not None:
        return texts[interval]
    if key >= states.VALUE_COUNT:
        return opened.trace.process_name(key - states.VALUE_COUNT)
    if key == USER and opened.timeline.infos[lane].kind is LaneKind.CPU:
        return "user"
    if key in states.STATE_BY_VALUE:
        return states.STATE_BY_VALUE[key].name
    if key == states.ABSENT:
        info = opened.timeline.infos[lane]
        spans = opened.timeline.lane(lane).spans
        if int(spans.value[interval]) != states.ABSENT:
            return "hidden by the filter"
        begin = int(spans.start_cycles[interval])
        if not file_window(opened.trace, info.cpu, info.process).contains(begin):
            return "not in its file"
        return "no interrupt" if info.kind is LaneKind.INTERRUPTS else "does not exist"
    return OTHER_NAMES.get(key, "")


# The stacks of a frame.


Stacks = dict[int, Stack]


class StackSource:
    """Computes the stacks of the lanes in a frame, with cached stacking orders.

    Args:
        opened: The trace.
        source: Object with the overlay, the effect of the filter on intervals.
    """

    def __init__(self, opened: OpenTrace, source: LaneSource) -> None:
        self._opened, self._source = opened, source
        self._orders: tuple[object, Orders] = None, {}  # stacking orders, and their timeline

    def stacks(self, rows: tuple[LaneRow, ...], frame: Frame, theme: Theme, hidden: frozenset[int]) -> Stacks:
        """Return the stacks of those lanes of a frame that show shares of time or steps of a counter, by lane index.

        Lane values in `hidden` are left out.
        """
        timeline, stacks, request = self._opened.timeline, Stacks(), frame.request
        if self._orders[0] is not timeline:
            self._orders = timeline, {}
        with timed("lane shares"):
            for row in rows:
                if not frame.shows_shares and not timeline.infos[row.index].is_counter:
                    continue
                stack = stack_of(
                    timeline, row, frame.scale, request.width_px, theme, hidden, self._opened.legend.keys,
                    kinds=request.kinds, orders=self._orders[1], overlay=self._source.overlay,
                    is_dense=frame.is_dense, cpus=frame.cpus,
                )  # fmt: skip
                if stack is not None:
                    stacks[row.index] = stack
        return stacks
