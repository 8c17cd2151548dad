"""The page of a window without a trace."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from satview.base.named_files import sample_trace
from satview.session.session import Stage


@pytest.mark.thorough
def test_the_command_leaves_an_open_trace_alone(application, window, qtbot):
    opened = window.session.path
    window.actions_by_id.by_id["file.sample"].trigger()
    assert window.session.path == opened
    assert [other.session.path for other in application.windows] == [opened, sample_trace()]


def test_buttons_of_the_card_are_not_cut_off_and_one_opens_the_sample(empty_window, application, qtbot):
    card = empty_window.welcome
    shown = [button for button in card.findChildren(QPushButton) if button.isVisible()]
    assert len(shown) == 3
    for button in shown:
        assert button.width() >= button.sizeHint().width()
        assert card.rect().contains(button.mapTo(card, button.rect().bottomRight()))
    button = next(b for b in empty_window.welcome.findChildren(QPushButton) if b.text() == "Open a sample")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=20_000)
    assert empty_window.session.path == sample_trace()
    assert len(empty_window.session.opened.trace.events) == 197_137
    assert application.windows == [empty_window], "the empty window takes it"
