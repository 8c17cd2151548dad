"""Keeps the wheel from changing fields that it only passes while a form, or what is behind it, is scrolled."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractSlider, QAbstractSpinBox, QComboBox, QScrollBar, QWidget


class _Quiet(QObject):
    """Passes the wheel on to what is around a field, unless the field has the keyboard."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the wheel from fields without the keyboard."""
        if event.type() != QEvent.Type.Wheel or not isinstance(watched, QWidget) or watched.hasFocus():
            return False
        event.ignore()
        return True


def keep_quiet(form: QWidget) -> None:
    """Let the wheel change a field of a form only after it was clicked or reached by Tab.

    Args:
        form: The form with all its fields; fields that come later are not looked at.
    """
    quiet = _Quiet(form)
    for kind in (QComboBox, QAbstractSpinBox, QAbstractSlider):
        for field in form.findChildren(kind):
            if not isinstance(field, QScrollBar):
                field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # else the wheel itself would give it the keyboard
                field.installEventFilter(quiet)
