"""The dialogs for settings, for colours of states, and for saving a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QColorDialog,
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import SatviewError
from satview.base.safe_text import visible_line
from satview.events import states
from satview.gui import theme as themes
from satview.gui.colours import NAME_OF, OTHER_NAMES, StateLook, is_thick, read_looks, state_colour, write_looks
from satview.gui.swimlane.fills import swatch
from satview.gui.widgets import (
    Dialog,
    PlainLabel,
    drop_down,
    guard_from_wheel,
    line_up,
    list_tree,
    named,
    push_button,
    sentence,
)
from satview.session.settings import SETTINGS, Setting, Settings
from satview.session.trace_state import PARTS, check_name, names_in, session_of
from satview.session.workspace_file import WorkspaceState

# The dialog for saving a session.


_WIDTH_PX: Final = 520
_TABLE_PX: Final = 180
_AT_FIRST: Final = frozenset({"lanes", "filter", "panels"})
Save = Callable[[str, WorkspaceState], object]


class SaveSessionDialog(Dialog):
    """Asks for the name and the parts of a session to save, and for name patterns to use in other traces."""

    def __init__(self, state: WorkspaceState, existing: tuple[str, ...], save: Save, parent: QWidget) -> None:
        """Show the parts that can be saved by `save`, which raises `SatviewError` on failure."""
        super().__init__("Save session", parent)
        self._state, self._existing, self._save = state, existing, save
        self.name = named(QLineEdit(self, placeholderText="Name"), "Name of the session")
        self.name.textChanged.connect(self._on_name)
        self.parts = {key: QCheckBox(title, self) for key, title in PARTS.items()}
        self.table = QTableWidget(self)
        self._fill()
        self.error = PlainLabel(self, role="error", wraps=True)
        self.error.hide()
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel, self
        )
        self.buttons.accepted.connect(self._on_save)
        self.buttons.rejected.connect(self.close)
        self._lay_out()
        self._on_name()
        self.resize(min(_WIDTH_PX, parent.width() - 40), self.sizeHint().height())

    def _lay_out(self) -> None:
        layout = line_up(QVBoxLayout(self), self.name, margins=(20, 18, 20, 16), spacing=8)
        for key, box in self.parts.items():
            box.setChecked(key in _AT_FIRST)
            layout.addWidget(box)
        if self.table.rowCount():
            hint = PlainLabel("Names in other traces; * matches any letters, as in devb-*", self, role="dim")
            hint.setWordWrap(True)
            layout.addWidget(hint)
            layout.addWidget(self.table, 1)
        else:
            self.table.hide()
        layout.addWidget(self.error)
        layout.addWidget(self.buttons)

    def _fill(self) -> None:
        names = names_in(self._state)
        self.table.setColumnCount(2)
        self.table.setRowCount(len(names))
        self.table.setHorizontalHeaderLabels(["Here", "In other traces"])
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.setMinimumHeight(_TABLE_PX)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.AllEditTriggers)
        self.table.setAccessibleName("Names and patterns")
        for row, name in enumerate(names):
            name_item = QTableWidgetItem(visible_line(name))
            name_item.setData(Qt.ItemDataRole.UserRole, name)
            name_item.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.table.setItem(row, 0, name_item)
            self.table.setItem(row, 1, QTableWidgetItem(name))

    def _patterns(self) -> dict[str, str]:
        patterns = {}
        for row in range(self.table.rowCount()):
            name_item, pattern_item = self.table.item(row, 0), self.table.item(row, 1)
            if name_item is not None and pattern_item is not None and pattern_item.text().strip():
                patterns[str(name_item.data(Qt.ItemDataRole.UserRole))] = pattern_item.text().strip()
        return patterns

    @Slot()
    def _on_name(self) -> None:
        replaces = self.name.text().strip() in self._existing
        self.buttons.button(QDialogButtonBox.StandardButton.Save).setText("Replace" if replaces else "Save")

    @Slot()
    def _on_save(self) -> None:
        parts = frozenset(key for key, box in self.parts.items() if box.isChecked())
        try:
            name = check_name(self.name.text())
            self._save(name, session_of(self._state, parts, self._patterns()))
        except SatviewError as error:
            self.error.setText(sentence(str(error)))
            self.error.show()
        else:
            self.close()


# The dialog for colours of states.


_SIZE_PX: Final = (560, 520)
_SWATCH_PX: Final = 26
_VALUE: Final = int(Qt.ItemDataRole.UserRole)
_LOOKS: Final = "swimlane/state_looks"
_MEANS: Final = {
    states.UNKNOWN: "the trace does not show what happened",
    states.IDLE: "the idle thread of a CPU runs",
    states.INTERRUPT: "the CPU handles an interrupt",
    states.KERNEL_CALL: "the CPU is in a kernel call",
    states.WAITING: "a process of which no thread runs or is ready",
}


class StateLooksDialog(Dialog):
    """Dialog for palette, hatching, and colour and thickness of each state. Changes apply and are stored at once."""

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__("Colours of states", parent)
        self._settings = settings
        self.palette_box, self.hatching_box = self._box("swimlane/palette"), self._box("swimlane/hatching")
        self.tree = list_tree(self, "States", ["State", "Bar", "Meaning"])
        self.tree.setIconSize(QSize(_SWATCH_PX, 12))
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.tree.itemActivated.connect(self._ask_colour)
        for value in (*OTHER_NAMES, *(state.value for state in states.STATES)):
            means = _MEANS[value] if value in _MEANS else states.STATE_BY_VALUE[value].meaning
            item = QTreeWidgetItem(self.tree, [NAME_OF[value], "", means])
            item.setData(0, _VALUE, value)
            if value == states.RUNNING:
                self.tree.setCurrentItem(item)
        self.colour_button, self.thickness_button, self.usual_button, self.all_usual_button = (
            push_button(text, self, run, tip, takes_return=False)
            for text, tip, run in (
                (
                    "&Colour\N{HORIZONTAL ELLIPSIS}",
                    "Choose its colour for this theme",
                    self._ask_colour,
                ),
                ("&Thick or thin", "Draw the state as a full bar, or as a thin one", self._turn_thickness),
                ("&Usual", "Restore the palette's colour and thickness for this state", self._use_palette),
                ("&All usual", "Restore the palette's colours and thickness for all states", self._use_palette_for_all),
            )
        )
        self._lay_out()
        settings.changed.connect(self._on_setting)
        self._fill()
        guard_from_wheel(self)
        room = parent.window().parentWidget() or parent  # the main window, even if opened from another dialog
        self.resize(min(_SIZE_PX[0], room.width() - 40), min(_SIZE_PX[1], room.height() - 40))

    @property
    def value(self) -> int:
        """Lane value of the selected state."""
        item = self.tree.currentItem()
        return int(item.data(0, _VALUE)) if item is not None else states.RUNNING

    def set_colour(self, rgb: int) -> None:
        """Set the colour of the selected state on the present background, 0xRRGGBB."""
        is_dark, look = themes.theme_of(self._settings).is_dark, self._look()
        self._store(replace(look, dark=rgb) if is_dark else replace(look, light=rgb))

    def _look(self) -> StateLook:
        return read_looks(self._settings.text(_LOOKS)).get(self.value, StateLook(self.value))

    def _store(self, look: StateLook) -> None:
        looks = {**read_looks(self._settings.text(_LOOKS)), look.value: look}
        self._settings.set(_LOOKS, write_looks(looks.values()))

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.addRow("&Palette", self.palette_box)
        form.addRow("&Hatching", self.hatching_box)
        words = "The light and dark themes have separate colours. Bold: changed from the palette."
        note = PlainLabel(words, self, role="dim")
        line = line_up(QHBoxLayout(), self.colour_button, self.thickness_button, self.usual_button, None,
                       self.all_usual_button)  # fmt: skip
        buttons = self.close_box()
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)  # Return opens the colour dialog
        line_up(QVBoxLayout(self), form, (self.tree, 1), note, line, buttons, margins=(20, 18, 20, 16), spacing=10)

    def _box(self, key: str) -> QComboBox:
        row = next(row for row in SETTINGS if row.key == key)
        box = drop_down(self, row.help, row.options)
        box.setCurrentText(self._settings.text(key))
        box.setProperty("key", key)
        box.currentTextChanged.connect(self._on_box)
        return box

    @Slot(str)
    def _on_box(self, text: str) -> None:
        self._settings.set(self.sender().property("key"), text)

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key in themes.THEME_SETTINGS:
            for box in (self.palette_box, self.hatching_box):
                box.setCurrentText(self._settings.text(box.property("key")))
            self._fill()

    def _fill(self) -> None:
        """Show the present appearance of the states."""
        theme, ratio = themes.theme_of(self._settings), self.devicePixelRatioF()
        looks = read_looks(theme.looks)
        for number in range(self.tree.topLevelItemCount()):
            item = self.tree.topLevelItem(number)
            assert item is not None
            value = int(item.data(0, _VALUE))
            thick = is_thick(value, theme.looks)
            image = swatch(value, theme, _SWATCH_PX, 12 if thick else 8, ratio)
            icon = QIcon(QPixmap.fromImage(image))
            icon.addPixmap(QPixmap.fromImage(image), QIcon.Mode.Selected)  # without Qt's tint for selected rows
            item.setIcon(1, icon)
            item.setText(1, "thick" if thick else "thin")
            font = item.font(0)
            font.setBold(value in looks)
            item.setFont(0, font)

    @Slot()
    def _ask_colour(self) -> None:
        rgb = state_colour(self.value, themes.theme_of(self._settings)) or 0
        dialog = QColorDialog(QColor.fromRgb(rgb), self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setOption(QColorDialog.ColorDialogOption.DontUseNativeDialog)
        dialog.setWindowTitle(f"Colour of {NAME_OF[self.value]}")
        dialog.colorSelected.connect(self._on_colour)
        dialog.open()

    @Slot(QColor)
    def _on_colour(self, colour: QColor) -> None:
        self.set_colour(colour.rgb() & 0xFFFFFF)

    @Slot()
    def _turn_thickness(self) -> None:
        is_thick_now = is_thick(self.value, self._settings.text(_LOOKS))
        self._store(replace(self._look(), is_thick=not is_thick_now))

    @Slot()
    def _use_palette(self) -> None:
        self._store(StateLook(self.value))

    @Slot()
    def _use_palette_for_all(self) -> None:
        self._settings.set(_LOOKS, "")


class SettingsDialog(Dialog):
    """Dialog with an editor for each row of `SETTINGS`. Changes apply and are stored immediately."""

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__("Settings", parent)
        self._settings = settings
        form = QFormLayout()
        form.setVerticalSpacing(7)
        form.setHorizontalSpacing(24)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for row in SETTINGS:
            if row.is_shown:
                form.addRow(PlainLabel(row.help.rstrip("."), self), self._editor(row))
        buttons = self.close_box()
        self.looks_button = buttons.addButton(
            "Colours of states\N{HORIZONTAL ELLIPSIS}", QDialogButtonBox.ButtonRole.ActionRole
        )
        self.looks_button.setAutoDefault(False)
        self.looks_button.clicked.connect(self._show_looks)
        line_up(QVBoxLayout(self), form, buttons, margins=(20, 18, 20, 16), spacing=16)
        guard_from_wheel(self)

    @Slot()
    def _show_looks(self) -> None:
        StateLooksDialog(self._settings, self).show()

    def _editor(self, row: Setting) -> QWidget:
        set_value = partial(self._settings.set, row.key)
        editor: QWidget
        if isinstance(row.default, bool):
            editor = box = QCheckBox(self)
            box.setChecked(self._settings.flag(row.key))
            box.toggled.connect(set_value)
        elif isinstance(row.default, int):
            editor = spin = QSpinBox(self, minimum=row.low, maximum=row.high, value=self._settings.number(row.key))
            spin.valueChanged.connect(set_value)
        else:
            editor = combo = drop_down(self, row.help, row.options)
            combo.setCurrentText(self._settings.text(row.key))
            combo.currentTextChanged.connect(set_value)
        editor.setObjectName(row.key)
        return named(editor, row.help)
