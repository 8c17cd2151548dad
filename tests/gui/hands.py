"""What a user does and sees: clicks in tables, drags, the wheel, texts of rows, colours; programs that make windows."""

from __future__ import annotations

import os
import subprocess
import sys

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from satview.gui.widgets import LinePrompt

K = Qt.Key
LEFT, MIDDLE, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton
NONE, SHIFT, CONTROL, ALT = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.AltModifier,
)
CONTROL_SHIFT = CONTROL | SHIFT


def take_keyboard(window, qtbot):
    """Let the lanes of a window have the keyboard."""
    window.activateWindow()
    window.workspace.area.view.setFocus()
    qtbot.waitUntil(window.isActiveWindow)


def click_cell(table, row, section=0, x_px=None, modifiers=NONE):
    """Scroll a table to a cell and click it, in its middle or elsewhere in its row."""
    index = table.model().index(row, section)
    table.scrollTo(index)
    point = table.visualRect(index).center()
    QTest.mouseClick(table.viewport(), LEFT, modifiers, QPoint(point.x() if x_px is None else x_px, point.y()))


def click_tab(tabs, number):
    QTest.mouseClick(tabs, LEFT, pos=tabs.tabRect(number).center())


def click_box(box):
    """Click a check box at its sign, which is left of its text."""
    QTest.mouseClick(box, LEFT, pos=QPoint(8, box.height() // 2))


def move_mouse(widget, point):
    event = QEvent.Type.MouseMove, QPointF(point), widget.mapToGlobal(QPointF(point))
    QApplication.sendEvent(widget, QMouseEvent(*event, Qt.MouseButton.NoButton, Qt.MouseButton.NoButton, NONE))


def drag(widget, start, end, button=LEFT, modifiers=NONE):
    for kind, point, buttons in (
        (QEvent.Type.MouseButtonPress, start, button),
        (QEvent.Type.MouseMove, (start + end) / 2, button),
        (QEvent.Type.MouseMove, end, button),
        (QEvent.Type.MouseButtonRelease, end, Qt.MouseButton.NoButton),
    ):
        place = QPointF(point), widget.mapToGlobal(QPointF(point))
        QApplication.sendEvent(widget, QMouseEvent(kind, *place, button, buttons, modifiers))


def turn_wheel(widget, point, notches, modifiers=NONE):
    """Turn the wheel at a point, away from the user or, where the number is negative, towards them."""
    place, turned = (QPointF(point), widget.mapToGlobal(QPointF(point))), (QPoint(), QPoint(0, 120 * notches))
    event = QWheelEvent(*place, *turned, Qt.MouseButton.NoButton, modifiers, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(widget, event)


def answer_prompt(window, qtbot, text):
    """Type a text over what the last prompt of a window proposes, and Return; return the prompt."""
    prompt = window.findChildren(LinePrompt)[-1]
    prompt.line.clear()
    qtbot.keyClicks(prompt.line, text)
    qtbot.keyClick(prompt.line, K.Key_Return)
    return prompt


def row_texts(model, row):
    return [model.index(row, section).data() for section in range(model.columnCount())]


def all_texts(model):
    """Return what a table shows: a list for each row."""
    return [row_texts(model, row) for row in range(model.rowCount())]


def rgb(image, x, y):
    """Return the colour of a pixel as themes write colours, 0xRRGGBB."""
    return image.pixel(round(x), round(y)) & 0xFFFFFF


def colours(image):
    """Return all colours of a picture."""
    return {rgb(image, x, y) for x in range(image.width()) for y in range(image.height())}


def contrast(one, other):
    """Return how much lighter one colour, 0xRRGGBB, is than the other, as WCAG 2 reckons it: 1 to 21."""

    def luminance(colour):
        parts = [(colour >> shift & 255) / 255 for shift in (16, 8, 0)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def user_of(folder):
    """Return the environment of a user whose files are in a folder, without a display."""
    homes = {"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "XDG_STATE_HOME": folder / "state"}
    return os.environ | {"QT_QPA_PLATFORM": "offscreen"} | {name: str(path) for name, path in homes.items()}


def run_program(code, *arguments, environment=None):
    """Run a program that makes windows in a process of its own; return how it ends."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = environment or os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
