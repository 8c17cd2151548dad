"""Names inside intervals that are wide enough to hold them, and the columns where intervals begin."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.events import states
from satview.gui.colours import hatch_of, is_light, is_thick, state_colour
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme
from satview.session.lanes.lane_arrangement import Label
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import LaneSpans

NARROWEST_PX: Final = 42
BESIDE_PX: Final = 8  # of an interval, on both sides of its name
DARK_INK: Final = 0x14181F
LIGHT_INK: Final = 0xFFFFFF
_LABELS_OF: Final = {  # a lane of a CPU says which one it is
    LaneKind.THREAD: frozenset(Label),
    LaneKind.CPU: frozenset(Label) - {Label.CPU},
}
_TOO_LIGHT: Final = 150_000  # a thin bar, for the light text of the dark theme
_TOO_DARK: Final = 100_000  # and for dark ink
_SILENT: Final = frozenset({states.ABSENT, states.UNKNOWN, states.IDLE, states.WAITING})


class IntervalText(NamedTuple):
    """A name to be drawn.

    Attributes:
        row: The lane.
        left_px, right_px: The part of the interval that shows.
        start_cycles, end_cycles: All of the interval.
        text: The name.
        ink: 0xRRGGBB, or None for the usual colour of text.
        event: Row of the event that begins the interval; `NO_EVENT` if none does.
        is_number: It is what a counter shows from there on.
        behind: 0xRRGGBB to be put behind it, where hatching would disturb; None = nothing.
    """

    row: LaneRow
    left_px: float
    right_px: float
    start_cycles: int
    end_cycles: int
    text: str
    ink: int | None
    event: int
    is_number: bool = False
    behind: int | None = None

    @property
    def room_px(self) -> float:
        """How wide the name may be."""
        return self.right_px - self.left_px - BESIDE_PX


def interval_texts(
    timeline: Timeline,
    rows: tuple[LaneRow, ...],
    values: NDArray[np.uint8],
    scale: TimeScale,
    theme: Theme,
    hidden_values: frozenset[int] = frozenset(),
    shown: NDArray[np.bool_] | None = None,
    dimmed: NDArray[np.bool_] | None = None,
    without: Container[int] = (),
) -> list[IntervalText]:
    """Return the names that fit, at most one per `NARROWEST_PX` of each lane.

    Where few intervals show, each is looked up; otherwise runs of equal pixels say where a wide one may be, so that the
    cost follows the pixels and not the events. `shown` and `dimmed` say by event row which intervals conditions let
    show, and which fade: those have no name. Lanes in `without` have none either, unless they are counters.
    """
    lanes = []
    for index, row in enumerate(rows):
        is_counter = timeline.infos[row.index].is_counter
        if (
            row.height_px < theme.px(14)
            or not timeline.is_ready(row.index)
            or (row.index in without and not is_counter)
        ):
            continue
        spans = timeline.lane(row.index).spans
        positions = _wide_positions(spans, values[index], scale)
        if len(positions):
            lanes.append(_Wide(row, spans, positions, is_counter))
    if not lanes:
        return []
    return _named(timeline, lanes, scale, theme, _Left(hidden_values, shown, dimmed))


def _named(
    timeline: Timeline, lanes: list[_Wide], scale: TimeScale, theme: Theme, left_out: _Left
) -> list[IntervalText]:
    """Return the names of those of some intervals that are wide enough and have one."""
    window, px_per_cycle = scale.window, scale.width_px / scale.window.length
    starts = np.concatenate([lane.spans.start_cycles[lane.positions] for lane in lanes])
    ends = np.concatenate([_ends(lane.spans, lane.positions) for lane in lanes])
    value = np.concatenate([lane.spans.value[lane.positions] for lane in lanes])
    event = np.concatenate([lane.spans.event[lane.positions] for lane in lanes])
    sizes = [len(lane.positions) for lane in lanes]
    is_counter = np.repeat([lane.is_counter for lane in lanes], sizes)
    left = (np.maximum(starts, window.start) - window.start) * px_per_cycle
    right = (np.minimum(ends, window.end) - window.start) * px_per_cycle
    keep = (right - left >= NARROWEST_PX) & left_out.shows(value, event)
    # A moment before the window is nothing of it.
    keep &= (value != states.ABSENT) | (starts >= window.start) | is_counter
    of_lane = np.repeat(np.arange(len(lanes)), sizes)
    found, names = list[IntervalText](), dict[tuple[int, int], str]()
    keep = np.flatnonzero(keep)
    columns = (of_lane, np.concatenate([lane.positions for lane in lanes]), left, right, starts, ends, value, event)
    for which, position, left_px, right_px, start, end, kind, row_of_event in zip(
        *(c[keep].tolist() for c in columns), strict=True
    ):
        lane = lanes[which]
        text = lane.spans.texts[position] if lane.spans.texts is not None else ""
        if not text:
            if kind in _SILENT:
                continue
            thread = int(lane.spans.thread[position]) if lane.spans.thread is not None else 0
            if (kind, thread) not in names:
                names[kind, thread] = timeline.label_of(kind, thread)
            text = names[kind, thread]
        found.append(IntervalText(lane.row, left_px, right_px, start, end, text, _ink(kind, theme), row_of_event,
                                  lane.is_counter, _behind(kind, theme)))  # fmt: skip
    return found


class _Wide(NamedTuple):
    """Intervals of a lane that may be wide enough for a name: their positions."""

    row: LaneRow
    spans: LaneSpans
    positions: NDArray[np.int64]
    is_counter: bool


class _Left(NamedTuple):
    """What has no name: some values, and what conditions hide or fade, by event row."""

    values: frozenset[int]
    shown: NDArray[np.bool_] | None
    dimmed: NDArray[np.bool_] | None

    def shows(self, value: NDArray[np.uint8], event: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which intervals may have one, by their values and the events that begin them."""
        found = ~np.isin(value, list(self.values)) if self.values else np.ones(len(value), np.bool_)
        if self.shown is not None:
            found &= (event >= len(self.shown)) | self.shown.take(event, mode="clip")
        if self.dimmed is not None:
            found &= (event < len(self.dimmed)) & ~self.dimmed.take(event, mode="clip")
        return found


def labelled(
    opened: OpenTrace, texts: Sequence[IntervalText], font: FittedTexts | None = None
) -> list[tuple[str, ...]]:
    """Return what is written into intervals: the labels that are switched on, the most important first.

    Lanes of CPUs name the thread that runs whatever is switched on; lanes of processes and of events have one name.
    With a font, labels are looked up only where there may be room for more than the name.
    """
    labels, infos = opened.lanes.arrangement.labels, opened.timeline.infos
    parts: list[tuple[str, ...]] = [(text.text,) for text in texts]
    for kind, offered in _LABELS_OF.items():
        is_named = kind is LaneKind.CPU or Label.STATE in labels
        mine = [at for at, text in enumerate(texts) if infos[text.row.index].kind is kind]
        if font is not None and is_named:
            mine = [at for at in mine if font.has_room_after(texts[at].text, texts[at].room_px)]
        more = opened.labels.texts([texts[at].event for at in mine], labels & offered)
        for at, found in zip(mine, more, strict=True):
            parts[at] = (parts[at] if is_named else ()) + found
    return parts


def interval_starts(timeline: Timeline, lane: int, scale: TimeScale, width_px: int) -> NDArray[np.int64] | None:
    """Return the pixel columns where intervals of a lane begin; None if they are too many to be distinguished.

    Returns:
        int64 (n,), columns, ascending.
    """
    if not timeline.is_ready(lane):
        return None
    starts = timeline.lane(lane).spans.start_cycles
    first, last = np.searchsorted(starts, (scale.window.start, scale.window.end))
    if last - first == 0 or last - first > width_px // 6:
        return None
    return (starts[first:last] - scale.window.start) * width_px // scale.window.length


def _wide_positions(spans: LaneSpans, values: NDArray[np.uint8], scale: TimeScale) -> NDArray[np.int64]:
    """Return the positions of intervals that may show wide enough for a name, by the pixels of their lane."""
    window = scale.window
    seen = spans.visible(window)
    if seen.stop - seen.start <= scale.width_px // NARROWEST_PX * 2:
        return np.arange(seen.start, seen.stop)
    moments = [window.start + int(share * window.length) for share in _wide_runs(values, scale.width_px)]
    if not moments:
        return np.empty(0, np.int64)
    positions = np.unique(spans.start_cycles.searchsorted(moments, side="right") - 1)
    return positions[positions >= 0]


def _ends(spans: LaneSpans, positions: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where intervals end: where the next one begins."""
    last = len(spans) - 1
    return np.where(positions < last, spans.start_cycles[np.minimum(positions + 1, last)], spans.end_cycles)


def _wide_runs(values: NDArray[np.uint8], width_px: int) -> list[float]:
    """Return the middles, as shares of the width, of the runs of equal pixels of a lane that a name may fit in."""
    values, width = values & np.uint8(states.VALUE_MASK), len(values)
    edges = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1, [width]))
    wide = np.flatnonzero(np.diff(edges) * width_px >= NARROWEST_PX * width)
    return [float(middle) / (2 * width) for middle in edges[wide] + edges[wide + 1]]


@lru_cache(maxsize=256)
def _behind(value: int, theme: Theme) -> int | None:
    return state_colour(value, theme) if theme.is_hatched and hatch_of(value) else None


@lru_cache(maxsize=256)
def _ink(value: int, theme: Theme) -> int | None:
    colour = state_colour(value, theme)
    if colour is None:
        return None
    if is_thick(value, theme.looks):
        return DARK_INK if is_light(colour) else LIGHT_INK
    # The name is higher than a thin bar: it has to be read beside the bar too, unless the bar is too much like it.
    if theme.is_dark:
        return DARK_INK if is_light(colour, _TOO_LIGHT) else None
    return DARK_INK if is_light(colour, _TOO_DARK) else LIGHT_INK
