"""The lanes in a frame: their pictures, exact or as far as the time of a frame allows, and the names in them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from PySide6.QtCore import QObject, QRectF, Signal, Slot
from PySide6.QtGui import QFont, QPainter

from satview.base.time import TimeWindow
from satview.gui.swimlane.band_painter import BandPainter
from satview.gui.swimlane.band_pictures import Band, BandPicture, BandPictures, bands_of, draw_band
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.frame import Frame
from satview.gui.swimlane.lane_image import OPAQUE, Pixels, band_edges, image_of
from satview.gui.swimlane.lane_source import LaneSource
from satview.gui.swimlane.placed_texts import PlacedTexts, draw_placed
from satview.gui.swimlane.preview_lane import draw_preview_lane
from satview.gui.swimlane.share_layer import Stack
from satview.gui.swimlane.text_sheet import TextSheet
from satview.gui.swimlane.vector_lanes import draw_rectangles, needs_vectors, rectangles
from satview.gui.theme import Theme, colour
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind

_Found = Sequence[tuple[Band, BandPicture | None]]


class LaneLayer(QObject):
    """Draws lanes.

    Attributes:
        source: Values of pixels.
        painter: Paints bands of lanes.
        pictures: What it has painted.
        stacks: The lanes that show shares of time or steps as they are on the screen, by index.

    Signals:
        changed: Draw again.
    """

    changed = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, font: QFont, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._theme = theme
        self.source = LaneSource(opened, self)
        self.painter = BandPainter(opened, self.source, theme, font)
        self.stacks: dict[int, Stack] = {}
        self.pictures = BandPictures()
        self._sheet = TextSheet()
        self._banded: tuple[tuple[LaneRow, ...], float] = (), 0.0  # what bands are made of, and these
        self._bands: list[Band] = []
        self._before: TimeWindow | None = None  # what the last frame showed
        self.source.refined.connect(self._on_more)
        opened.labels.refined.connect(self._on_more)

    @property
    def texts(self) -> FittedTexts:
        """The font of names inside intervals."""
        return self.painter.texts

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours and sizes."""
        self._theme = theme
        self.painter.set_theme(theme)

    @Slot()
    def _on_more(self) -> None:
        """Draw again what is better known by now, or in more detail."""
        self.pictures.outdate()
        self.changed.emit()

    def draw(self, painter: QPainter, rows: tuple[LaneRow, ...], frame: Frame, limit_s: float) -> bool:
        """Draw the lanes that show.

        Args:
            painter: Of the swimlanes.
            rows: The lanes.
            frame: What shows of them.
            limit_s: How long painting them again may take, about. Lanes that there is no time for show their last
                picture. All are painted if they look different since the last frame.

        Returns:
            Whether all lanes are exact.
        """
        if self._banded != (rows, frame.ratio):
            self._banded, self._bands = (rows, frame.ratio), bands_of(rows, frame.ratio)
        pictures, bands = self.pictures, self._bands
        self.source.show(frame.request)
        if not pictures.show(bands, self._made_of(frame)):
            limit_s = inf
        limits = self._opened.viewport.limits
        ahead, self._before = frame.ahead(self._before, pictures.round_frames, limits), frame.scale.window
        is_exact = pictures.paint(bands, frame, ahead, self.painter.paint, limit_s)
        found = [(band, pictures.of(band)) for band in bands]
        self.stacks = {lane: stack for _, each in found if each for lane, stack in each.stacks.items()}
        if needs_vectors(painter):
            self._draw_vectors(painter, found, frame)
        else:
            self._draw_bands(painter, found, frame)
        self._draw_previews(painter, rows, frame)
        self._draw_texts(painter, [each for _, each in found if each], frame)
        return is_exact

    def _made_of(self, frame: Frame) -> object:
        """Return what pictures of bands are made of, but for the part of the trace and how much is known of it."""
        lanes = self._opened.lanes
        # Between device pixels, lanes are rounded to other ones when they are scrolled.
        scroll_px = 0 if frame.ratio == int(frame.ratio) else frame.scroll_px
        return (self.painter.version, frame.shows_shares, frame.ratio, scroll_px, lanes.rows, lanes.shows_kinds,
                lanes.arrangement.labels)  # fmt: skip

    def _draw_bands(self, painter: QPainter, found: _Found, frame: Frame) -> None:
        theme, width = self._theme, frame.scale.width_px
        bottom = 0.0
        for band, picture in found:
            top, end = (edge / frame.ratio for edge in band_edges(band.rows, frame.scroll_px, frame.ratio))
            if top > bottom:
                painter.fillRect(QRectF(0, bottom, width, top - bottom), colour(theme.window if bottom else theme.base))
            draw_band(painter, picture, QRectF(0, top, width, end - top), frame, theme)
            bottom = end
        if bottom < frame.height_px:
            painter.fillRect(QRectF(0, bottom, width, frame.height_px - bottom), colour(theme.base))

    def _draw_vectors(self, painter: QPainter, found: _Found, frame: Frame) -> None:
        """Draw rectangles, unless these are too many."""
        height = max(1, round(frame.height_px * frame.ratio))
        whole: Pixels = np.full((height, frame.width_px), self._theme.base | OPAQUE, np.uint32)
        end = 0
        for band, picture in found:
            top, bottom = band_edges(band.rows, frame.scroll_px, frame.ratio)
            if end and top > end:
                whole[end:top] = self._theme.window | OPAQUE
            if picture is not None:
                whole[max(0, top) : max(0, bottom)] = picture.pixels[max(0, -top) : max(0, height - top)]
            end = max(0, bottom)
        rects = rectangles(whole)
        if rects is None:
            painter.drawImage(0, 0, image_of(whole, frame.ratio))
        else:
            draw_rectangles(painter, rects, frame.ratio)

    def _draw_texts(self, painter: QPainter, pictures: Sequence[BandPicture], frame: Frame) -> None:
        made, other = list[PlacedTexts](), list[PlacedTexts]()
        for picture in pictures:
            is_made = picture.shows(frame)
            (made if is_made else other).append(picture.texts)
        line_px = self.texts.metrics.height()
        draw_placed(painter, self._sheet, made, other, frame.scale, frame.scroll_px, line_px)

    def _draw_previews(self, painter: QPainter, rows: tuple[LaneRow, ...], frame: Frame) -> None:
        """Draw lanes of CPUs that are not built yet as far as a sample of the file reported before it was read."""
        preview, timeline, scale = self._opened.preview, self._opened.timeline, frame.scale
        if preview is None:
            return
        waiting = [row for row in rows if not timeline.is_ready(row.index)]
        for row in waiting:
            cpu = timeline.infos[row.index].cpu
            if timeline.infos[row.index].kind is LaneKind.CPU and cpu < len(preview.cpus):
                area = QRectF(0, row.y_px - frame.scroll_px, scale.width_px, row.height_px - 1)
                draw_preview_lane(painter, preview, cpu, scale.window, area, frame.ratio, self._theme)
        if not waiting:
            self._opened.preview = None
