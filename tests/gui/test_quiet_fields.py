"""The wheel over fields that somebody only scrolls past."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QSpinBox

from satview.gui.settings_dialog import SettingsDialog


def turn_wheel(field):
    point = QPointF(field.rect().center())
    event = QWheelEvent(point, field.mapToGlobal(point), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
                        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    QApplication.sendEvent(field, event)


def test_the_wheel_changes_no_field_that_it_passes(window, application, qtbot):
    dialog = SettingsDialog(application.settings, window)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    spins, combos = dialog.findChildren(QSpinBox), dialog.findChildren(QComboBox)
    before = [spin.value() for spin in spins], [combo.currentIndex() for combo in combos]
    dialog.setFocus()
    for field in (*spins, *combos):
        if not field.hasFocus():
            turn_wheel(field)
    assert ([spin.value() for spin in spins], [combo.currentIndex() for combo in combos]) == before
    spins[0].setFocus()
    turn_wheel(spins[0])
    assert spins[0].value() == before[0][0] - 1  # one that was clicked
    dialog.close()


@pytest.mark.thorough
def test_panels_are_forms_too(window, view, qtbot):
    qtbot.keyClick(view, Qt.Key.Key_G)
    plots = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: plots.load is not None and not plots.view.is_pending, timeout=10_000)
    before = plots.by.currentIndex()
    view.setFocus()
    turn_wheel(plots.by)
    assert plots.by.currentIndex() == before
