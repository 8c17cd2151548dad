"""Names inside intervals that are wide enough to hold them, and the columns where intervals begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass
from satview.events import states
from satview.gui.colours import hatch_of, is_light, is_thick, state_colour
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme
from satview.session.lanes.lane_arrangement import Label
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import LaneSpans, Span

NARROWEST_PX: Final = 42
DARK_INK: Final = 0x14181F
LIGHT_INK: Final = 0xFFFFFF
_LABELS_OF: Final = {  # a lane of a CPU says which one it is
    LaneKind.THREAD: frozenset(Label),
    LaneKind.CPU: frozenset(Label) - {Label.CPU},
}
_TOO_LIGHT: Final = 150_000  # a thin bar, for the light text of the dark theme
_TOO_DARK: Final = 100_000  # and for dark ink
_SILENT: Final = frozenset({states.ABSENT, states.UNKNOWN, states.IDLE, states.WAITING})


@dataclass(frozen=True, slots=True)
class IntervalText:
    """A name to be drawn.

    Attributes:
        row: The lane.
        left_px, right_px: The part of the interval that shows.
        text: The name.
        ink: 0xRRGGBB, or None for the usual colour of text.
        event: Row of the event that begins the interval; `NO_EVENT` if none does.
        is_number: It is what a counter shows from there on.
        behind: 0xRRGGBB to be put behind it, where hatching would disturb; None = nothing.
    """

    row: LaneRow
    left_px: float
    right_px: float
    text: str
    ink: int | None
    event: int
    is_number: bool = False
    behind: int | None = None


def interval_texts(
    timeline: Timeline,
    rows: tuple[LaneRow, ...],
    values: NDArray[np.uint8],
    scale: TimeScale,
    theme: Theme,
    hidden_values: frozenset[int] = frozenset(),
    shown: NDArray[np.bool_] | None = None,
    dimmed: NDArray[np.bool_] | None = None,
) -> list[IntervalText]:
    """Return the names that fit, at most one per `NARROWEST_PX` of each lane.

    Where few intervals show, each is looked up; otherwise runs of equal pixels say where a wide one may be, so that the
    cost follows the pixels and not the events. `shown` and `dimmed`
    say by event row which intervals conditions let show, and which fade: those have no name.
    """
    found = []
    runs = _wide_runs(values & np.uint8(states.VALUE_MASK), scale.width_px)
    for position, row in enumerate(rows):
        if row.height_px < theme.px(14) or not timeline.is_ready(row.index):
            continue
        is_counter = timeline.infos[row.index].is_counter
        for left, right, span in _wide_spans(timeline.lane(row.index).spans, runs.get(position, ()), scale):
            if _is_left_out(span, shown, dimmed):
                continue
            is_named = bool(span.text) or span.value not in _SILENT
            if span.value == states.ABSENT and span.start_cycles < scale.window.start and not is_counter:
                continue  # a moment before the window is nothing of it
            if is_named and span.value not in hidden_values:
                ink = _ink(span.value, theme)
                words, behind = timeline.label(span), _behind(span.value, theme)
                found.append(IntervalText(row, left, right, words, ink, span.event, is_counter, behind))
    return found


def labelled(opened: OpenTrace, texts: Sequence[IntervalText]) -> list[tuple[str, ...]]:
    """Return what is written into intervals: the labels that are switched on, the most important first.

    Lanes of CPUs name the thread that runs whatever is switched on; lanes of processes and of events have one name.
    """
    labels, infos = opened.lanes.arrangement.labels, opened.timeline.infos
    parts: list[tuple[str, ...]] = [(text.text,) for text in texts]
    for kind, offered in _LABELS_OF.items():
        mine = [at for at, text in enumerate(texts) if infos[text.row.index].kind is kind]
        more = opened.labels.texts([texts[at].event for at in mine], labels & offered)
        for at, found in zip(mine, more, strict=True):
            names = parts[at] if kind is LaneKind.CPU or Label.STATE in labels else ()
            parts[at] = names + found
    return parts


def _is_left_out(span: Span, shown: NDArray[np.bool_] | None, dimmed: NDArray[np.bool_] | None) -> bool:
    if shown is not None and span.event < len(shown) and not shown[span.event]:
        return True
    return dimmed is not None and (span.event >= len(dimmed) or bool(dimmed[span.event]))


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


def _wide_spans(spans: LaneSpans, middles: Sequence[float], scale: TimeScale) -> Iterator[tuple[float, float, Span]]:
    """Yield (left, right, interval) of the intervals that show wide enough for a name."""
    window = scale.window
    seen = spans.visible(window)
    if seen.stop - seen.start <= scale.width_px // NARROWEST_PX * 2:
        positions = np.arange(seen.start, seen.stop)
    elif middles:
        moments = [window.start + int(share * window.length) for share in middles]
        positions = np.unique(np.searchsorted(spans.start_cycles, moments, side="right") - 1)
        positions = positions[positions >= 0]
    else:
        return
    starts, ends = spans.start_cycles[positions], _ends(spans, positions)
    px_per_cycle = scale.width_px / window.length
    left = (np.maximum(starts, window.start) - window.start) * px_per_cycle
    right = (np.minimum(ends, window.end) - window.start) * px_per_cycle
    for i in np.flatnonzero(right - left >= NARROWEST_PX).tolist():
        position = positions[i]
        thread = int(spans.thread[position]) if spans.thread is not None else 0
        text = spans.texts[int(position)] if spans.texts is not None else ""
        span = Span(int(starts[i]), int(ends[i]), int(spans.value[position]), int(spans.event[position]), thread, text)
        yield float(left[i]), float(right[i]), span


def _ends(spans: LaneSpans, positions: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where intervals end: where the next one begins."""
    last = len(spans) - 1
    return np.where(positions < last, spans.start_cycles[np.minimum(positions + 1, last)], spans.end_cycles)


def _wide_runs(values: NDArray[np.uint8], width_px: int) -> dict[int, list[float]]:
    """Return for every row the middles, as shares of the width, of its runs of equal pixels that a name may fit in."""
    count, width = values.shape
    is_edge = np.ones((count, width), np.bool_)
    is_edge[:, 1:] = values[:, 1:] != values[:, :-1]
    edges = np.append(np.flatnonzero(is_edge), count * width)
    wide = np.flatnonzero(np.diff(edges) * width_px >= NARROWEST_PX * width)
    middles = (edges[wide] + edges[wide + 1]) / 2
    found: dict[int, list[float]] = {}
    for middle in middles.tolist():
        row, x = divmod(middle, width)
        found.setdefault(int(row), []).append(x / width)
    return found


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
