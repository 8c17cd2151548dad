"""Paints bands of lanes: values of pixels, stacks, ticks, what a filter does, and what is written into intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont

from satview.events.states import NOT_A_STATE, SEEN_EVENT, VALUE_COUNT
from satview.gui.swimlane.band_pictures import Band, BandPicture
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.frame import Frame
from satview.gui.swimlane.lane_image import SEEN_INTERRUPT, LanePalette, LanePicture, Marks, image_of
from satview.gui.swimlane.lane_source import LaneSource, Request, Values
from satview.gui.swimlane.lane_text import DARK_INK, LIGHT_INK, interval_starts, interval_texts, labelled
from satview.gui.swimlane.legend_keys import EVENTS
from satview.gui.swimlane.placed_texts import PlacedTexts, placed
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.share_layer import Stack
from satview.gui.swimlane.stack_source import StackSource
from satview.gui.swimlane.tick_source import TickSource
from satview.gui.theme import Theme
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import pixel_edges

_TEXT_STEP_PX: Final = 3
_LEAST_LETTERS: Final = 4
_ALL_VALUES: Final = frozenset(range(VALUE_COUNT))


class BandPainter:
    """Paints bands of the lanes of a trace.

    Args:
        opened: The trace.
        source: Gives values of pixels.
        theme: Colours and sizes.
        font: Of names inside intervals, but for its size.

    Attributes:
        texts: The font of names inside intervals.
        version: Another number whenever what is painted looks different from then on.
    """

    def __init__(self, opened: OpenTrace, source: LaneSource, theme: Theme, font: QFont) -> None:
        self._opened, self._source, self._font = opened, source, font
        self._stacks = StackSource(opened, source)
        self._ticks = TickSource(opened, theme)
        self._hidden: frozenset[int] = frozenset()
        self.version = 0
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Paint in other colours and sizes."""
        self._theme = theme
        self._inks: dict[int | None, int] = {None: theme.text, DARK_INK: DARK_INK, LIGHT_INK: LIGHT_INK}
        font = QFont(self._font)
        font.setPixelSize(theme.px(10))
        self.texts = FittedTexts(font, Qt.TextElideMode.ElideRight, _TEXT_STEP_PX, _LEAST_LETTERS)
        self._ticks.set_theme(theme)
        self._make_palette()

    @property
    def marks(self) -> Marks:
        """Which marks of events show above shares."""
        return self._ticks.above_shares

    def take_legend(self) -> None:
        """Fade all but what the legend highlights, and hide the names of the rest."""
        keys = self._opened.legend.keys
        self._ticks.fades = bool(keys) and EVENTS not in keys
        self._make_palette()

    def take_filter(self) -> None:
        """Hide states whose events the filter hides."""
        values = self._opened.trace.catalogue.state_value_of_code
        of_states = np.flatnonzero(values != NOT_A_STATE)
        shown = values[of_states[self._opened.filters.codes[of_states]]]
        hidden = frozenset(np.setdiff1d(values[of_states], shown).tolist())
        if hidden != self._hidden:
            self._hidden = hidden
            self._make_palette()
        self.version += 1

    def take_lanes(self) -> None:
        """Paint lanes that may be others, or be named otherwise."""
        self.version += 1

    def _make_palette(self) -> None:
        self._palette = LanePalette(self._theme, self._hidden, self._opened.legend.keys)
        self.version += 1

    def paint(self, frame: Frame, bands: Sequence[Band], last: Sequence[BandPicture | None]) -> list[BandPicture]:
        """Return pictures of bands.

        Args:
            frame: What they are painted for.
            bands: Which.
            last: Their last pictures, whose memory is used again.
        """
        timeline, scale = self._opened.timeline, frame.scale
        rows = tuple(row for band in bands for row in band.rows)
        part = replace(frame.request, lanes=tuple(row.index for row in rows))
        values = self._source.values(part)
        show_short_interrupts(timeline, rows, values)
        stacks = self._stacks.stacks(
            rows, part, scale, self._theme, self._hidden, shows_shares=frame.shows_shares
        )  # fmt: skip
        lanes = LanePicture(
            values, rows, self._palette, frame.scroll_px, 0, frame.ratio, self._edges(rows, scale, part.width_px),
            [*self._ticks.ticks(part), *self._ticks.marked(part)], *self._overlay(part),
            stacks={position: stacks[row.index] for position, row in enumerate(rows) if row.index in stacks},
            marks=self.marks,
        )  # fmt: skip
        ends = np.cumsum([len(band.rows) for band in bands]).tolist()
        cuts = zip([0, *ends], ends, strict=False)
        rooms = [each.pixels if each is not None else None for each in last]
        texts = self._texts(bands, rows, values, scale, stacks)
        has_kinds = timeline.has_kinds or not part.kinds
        found = []
        for band, pixels, words in zip(bands, lanes.bands(cuts, rooms), texts, strict=True):
            mine = {row.index: stacks[row.index] for row in band.rows if row.index in stacks}
            is_final = has_kinds and all(timeline.is_ready(row.index) for row in band.rows)
            image = image_of(pixels, frame.ratio)
            found.append(BandPicture(scale.window, pixels, image, mine, words, is_final))
        return found

    def _edges(self, rows: Sequence[LaneRow], scale: TimeScale, width_px: int) -> dict[int, NDArray[np.int64]]:
        """Return the pixel columns where intervals begin, by the position of a lane."""
        starts = (interval_starts(self._opened.timeline, row.index, scale, width_px) for row in rows)
        return {position: columns for position, columns in enumerate(starts) if columns is not None}

    def _overlay(self, part: Request) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """Return the pixels that fade and those that are marked."""
        overlay = self._source.overlay
        if overlay.does_nothing:
            return None, None
        edges = pixel_edges(part.window, part.width_px)
        return overlay.faded(part.lanes, edges, waits=False), overlay.marked(part.lanes, edges, waits=False)

    def _texts(
        self, bands: Sequence[Band], rows: tuple[LaneRow, ...], values: Values, scale: TimeScale,
        stacks: dict[int, Stack],
    ) -> list[PlacedTexts]:  # fmt: skip
        """Return the labels that are switched on of each band, as many as fit into intervals."""
        view, keys = self._opened.filters.view, self._opened.legend.keys
        nameless = self._hidden | (_ALL_VALUES - keys) if keys else self._hidden
        texts = interval_texts(self._opened.timeline, rows, values, scale, self._theme, nameless, view.by_passes,
                               view.dimmed, stacks)  # fmt: skip
        parts = labelled(self._opened, texts, self.texts)
        band_of = {row.index: at for at, band in enumerate(bands) for row in band.rows}
        mine: list[list[int]] = [[] for _ in bands]
        for at, text in enumerate(texts):
            mine[band_of[text.row.index]].append(at)
        return [
            placed([texts[at] for at in each], [parts[at] for at in each], self.texts, self._inks, scale.window)
            for each in mine
        ]


def show_short_interrupts(timeline: Timeline, rows: tuple[LaneRow, ...], values: Values) -> None:
    """Mark pixels of interrupt lanes with an interrupt that is too short to dominate them; in place."""
    for position, row in enumerate(rows):
        if timeline.infos[row.index].kind is LaneKind.INTERRUPTS:
            values[position, values[position] == SEEN_EVENT] = SEEN_INTERRUPT
