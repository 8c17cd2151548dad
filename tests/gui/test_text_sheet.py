"""Texts copied from a sheet are those that Qt draws."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFont, QImage, QPainter

from satview.gui.swimlane import text
from satview.gui.swimlane.text import LaidText, TextSheet

WHITE, INK = 0xFFFFFFFF, 0x102030


def picture(texts, ratio, sheet, draw):
    """Return texts in rows, put by a sheet or by `drawStaticText`."""
    image = QImage(round(200 * ratio), round(80 * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(WHITE)
    with QPainter(image) as painter:
        sheet.begin(painter)
        for row, text in enumerate(texts):
            draw(10, 10 + 14 * row, text, INK)  # whole device pixels at each ratio
        sheet.end()
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_copied_texts_are_drawn_ones(qapp, monkeypatch, ratio):
    font, sheet = QFont(), TextSheet()
    font.setPixelSize(10)
    texts = [LaidText(name, font) for name in ("RUNNING", "p10", "RUNNING", "devb-eide 2")]
    drawn = picture(texts, ratio, sheet, sheet._draw)
    assert drawn != picture([], ratio, sheet, sheet.put)
    assert picture(texts, ratio, sheet, sheet.put) == drawn
    assert picture(texts, ratio, sheet, sheet.put) == drawn  # from the sheet alone
    monkeypatch.setattr(text, "_HEIGHT_PX", 16)  # room for one row: it is emptied in between
    monkeypatch.setattr(text, "_WIDTH_PX", 70)
    small = TextSheet()
    assert picture(texts, ratio, small, small.put) == drawn
    monkeypatch.setattr(text, "_WIDTH_PX", 20)  # none at all: they are drawn
    none = TextSheet()
    assert picture(texts, ratio, none, none.put) == drawn
