"""The settings, made from their rows."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from satview.gui.plain_label import PlainLabel
from satview.gui.quiet_fields import keep_quiet
from satview.session.settings import SETTINGS, Setting, Settings


class SettingsDialog(QDialog):
    """Every change takes effect and is stored at once."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Settings")
        self._settings = settings
        form = QFormLayout()
        form.setVerticalSpacing(7)
        form.setHorizontalSpacing(24)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for row in SETTINGS:
            if row.is_shown:
                form.addRow(PlainLabel(row.help.rstrip("."), self), self._editor(row))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        self.looks_button = buttons.addButton(
            "Colours of states\N{HORIZONTAL ELLIPSIS}", QDialogButtonBox.ButtonRole.ActionRole
        )
        self.looks_button.setAutoDefault(False)
        self.looks_button.clicked.connect(self._show_looks)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 16)
        layout.setSpacing(16)
        layout.addLayout(form)
        layout.addWidget(buttons)
        keep_quiet(self)

    @Slot()
    def _show_looks(self) -> None:
        from satview.gui.state_looks_dialog import StateLooksDialog  # on first use

        StateLooksDialog(self._settings, self).show()

    def _editor(self, row: Setting) -> QWidget:
        set_value = partial(self._settings.set, row.key)
        if isinstance(row.default, bool):
            box = QCheckBox(self)
            box.setChecked(self._settings.flag(row.key))
            box.toggled.connect(set_value)
            return self._named(box, row)
        if isinstance(row.default, int):
            spin = QSpinBox(self)
            spin.setRange(row.low, row.high)
            spin.setValue(self._settings.number(row.key))
            spin.valueChanged.connect(set_value)
            return self._named(spin, row)
        combo = QComboBox(self)
        combo.addItems(list(row.options))
        combo.setCurrentText(self._settings.text(row.key))
        combo.currentTextChanged.connect(set_value)
        return self._named(combo, row)

    def _named(self, widget: QWidget, row: Setting) -> QWidget:
        widget.setObjectName(row.key)
        widget.setAccessibleName(row.help)
        return widget
