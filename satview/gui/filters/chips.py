"""The filters in force as chips above the timeline: a click switches one off, the cross takes it away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QPushButton, QSizePolicy, QToolButton, QWidget

from satview.base.errors import UsageError
from satview.filters.passes import Effect, Pass
from satview.gui.filters.flow import FlowLayout
from satview.gui.quick_pick import LinePrompt
from satview.gui.theme import Theme, css
from satview.session.filter_state import pass_title
from satview.session.open_trace import OpenTrace

EFFECTS: Final = {
    Effect.HIDE: "Hide all others",
    Effect.DIM: "Dim all others",
    Effect.MARK: "Highlight",
    Effect.COUNT: "Count only",
}
_WORDS: Final = {Effect.HIDE: "only", Effect.DIM: "dim", Effect.MARK: "mark", Effect.COUNT: "count"}
_TREES: Final = {"codes": "kinds of event", "threads": "threads"}
_TITLE_LENGTH: Final = 64
_MORE: Final = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class ChipText:
    """What a chip says: its text, how many events fit, its tool tip, and `on`, `mark` or `off` for its colours."""

    text: str
    count: str
    tip: str
    state: str


class Chip(QFrame):
    """One filter.

    Attributes:
        label: The part that is clicked.
        count: How many events fit.
        cross: Takes the filter away.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.label = QPushButton(self)
        self.label.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.count = QLabel(self)
        self.count.setObjectName("chipCount")
        self.cross = QToolButton(self)
        self.cross.setText("\N{MULTIPLICATION SIGN}")
        self.cross.setToolTip("Take this filter away")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 1, 3, 1)
        row.setSpacing(6)
        for part in (self.label, self.count, self.cross):
            row.addWidget(part)
        self._says: ChipText | None = None

    def say(self, says: ChipText) -> None:
        """Show another text."""
        if says == self._says:
            return
        if self._says is None or says.state != self._says.state:
            self.setProperty("chip", says.state)
            for part in (self, self.label, self.count, self.cross):
                part.style().unpolish(part)
                part.style().polish(part)
        self._says = says
        self.label.setText(says.text)
        self.label.setToolTip(says.tip)
        self.label.setAccessibleName(f"Filter {says.text}, {says.count}")
        self.count.setText(says.count)
        self.cross.setAccessibleName(f"Take filter {says.text} away")


class ChipBar(QFrame):
    """Hidden while there is no filter.

    Signals:
        edit_wanted: The name of a pass that is to be edited.
        rules_wanted: The filter is to become rules for a capture.
    """

    edit_wanted = Signal(str)
    rules_wanted = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chipBar")
        self._opened = opened
        self.chips: dict[str, Chip] = {}
        self._shape: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._flow = FlowLayout(self)
        self._flow.setContentsMargins(10, 5, 10, 5)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_theme(theme)
        opened.filters.changed.connect(self.refresh)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        chosen = css(0xE3EDFC if not theme.is_dark else 0x22324C)
        marked = css(0xFBE4ED if not theme.is_dark else 0x40222F)
        self.setStyleSheet(f"""
            #chipBar {{ background: {css(theme.panel)}; border: none; border-bottom: 1px solid {css(theme.line)}; }}
            QFrame[chip] {{ background: {chosen}; border: 1px solid {css(theme.accent)}; border-radius: 10px; }}
            QFrame[chip="mark"] {{ background: {marked}; border-color: {css(theme.hit)}; }}
            QFrame[chip="off"] {{ background: transparent; border: 1px dashed {css(theme.faint)}; }}
            QFrame[chip] QPushButton {{ background: transparent; border: none; padding: 1px 0; color: {css(theme.text)};
                text-align: left; }}
            QFrame[chip] QPushButton:focus {{ text-decoration: underline; }}
            QFrame[chip="off"] QPushButton {{ color: {css(theme.faint)}; text-decoration: line-through; }}
            QFrame[chip] QLabel {{ color: {css(theme.dim)}; border: none; background: transparent; }}
            QFrame[chip] QToolButton {{ padding: 0 4px; border-radius: 7px; color: {css(theme.dim)}; }}
            QFrame[chip] QToolButton:hover {{ color: {css(theme.text)}; background: {css(theme.line)}; }}
        """)

    @Slot()
    def refresh(self) -> None:
        """Show the filter of now; chips stay where they are as long as the same filters are there."""
        passes = self._opened.filters.state.stack.passes
        texts = self._tree_texts() | {item.name: self._pass_text(item) for item in passes}
        buttons = self._buttons(bool(texts))
        if (tuple(texts), tuple(buttons)) != self._shape:
            self._shape = tuple(texts), tuple(buttons)
            self._rebuild(buttons)
        for key, text in texts.items():
            self.chips[key].say(text)
        self.setVisible(bool(texts))
        self._flow.invalidate()
        self.updateGeometry()

    def _rebuild(self, buttons: dict[str, tuple[str, Callable[[], object]]]) -> None:
        for i in reversed(range(self._flow.count())):
            old = self._flow.takeAt(i)
            widget = old.widget() if old is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.chips.clear()
        for key in self._shape[0]:
            chip = Chip(self)
            chip.cross.installEventFilter(self)
            self.chips[key] = chip
            if key in _TREES:
                chip.cross.clicked.connect(self._all_codes if key == "codes" else self._all_threads)
            else:
                chip.label.clicked.connect(partial(self._toggle, key))
                chip.cross.clicked.connect(partial(self._remove, key))
                chip.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
                chip.customContextMenuRequested.connect(partial(self._on_menu, key))
            self._flow.addWidget(chip)
            chip.show()
        for text, (tip, run) in buttons.items():
            button = QPushButton(text, self)
            button.setProperty("flat", "true")
            button.setToolTip(tip)
            button.clicked.connect(partial(_call, run))
            self._flow.addWidget(button)
            button.show()

    def _buttons(self, is_active: bool) -> dict[str, tuple[str, Callable[[], object]]]:
        """Return the buttons behind the chips: text, tool tip, what they do."""
        buttons: dict[str, tuple[str, Callable[[], object]]] = {}
        if len(self._opened.filters.state.stack.passes) > 1:
            buttons[self._combination_text()] = ("How the filters work together", self._ask_combination)
        if is_active:
            buttons["To rules"] = ("Make rules of this filter, for the next capture", self.rules_wanted.emit)
            buttons["Clear"] = ("Take all filters away (Shift+F)", self._opened.filters.show_all)
        return buttons

    def _tree_texts(self) -> dict[str, ChipText]:
        filters, trace = self._opened.filters, self._opened.trace
        state = filters.state
        occurring = trace.code_counts > 0
        count = _MORE if filters.is_pending else f"{filters.view.chosen:,}"
        texts = {}
        for key, mask, shown, total in (
            ("codes", state.codes, int((state.codes & occurring).sum()), int(occurring.sum())),
            ("threads", state.threads, int(state.threads.sum()), len(state.threads)),
        ):
            if not mask.all():
                text = f"{_WORDS[state.effect]} {shown:,} of {total:,} {_TREES[key]}"
                tip = f"What is checked in the filter panel: {EFFECTS[state.effect].lower()}."
                texts[key] = ChipText(text, count, tip, "mark" if state.effect is Effect.MARK else "on")
        return texts

    def _pass_text(self, item: Pass) -> ChipText:
        filters = self._opened.filters
        hits = filters.view.counts.get(item.name)
        title = pass_title(item)
        short = title if len(title) <= _TITLE_LENGTH else title[: _TITLE_LENGTH - 1] + _MORE
        state = "off" if not item.is_on else "mark" if item.effect is Effect.MARK else "on"
        count = _MORE if hits is None or filters.is_pending else f"{hits:,}"
        text = f"{item.name}  {_WORDS[item.effect]} {short}".replace("&", "&&")
        turn = "off" if item.is_on else "on"
        tip = f"{title}\n{EFFECTS[item.effect]}. Click to switch it {turn}; right click for more."
        return ChipText(text, count, tip, state)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Keep clicks on a cross from the menu of its chip."""
        return event.type() == QEvent.Type.ContextMenu

    def menu(self, name: str) -> QMenu:
        """Return the menu of a pass."""
        filters = self._opened.filters
        item = filters.pass_named(name)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for effect, text in EFFECTS.items():
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(item.effect is effect)
            action.triggered.connect(partial(self._change, name, effect=effect))
        menu.addSeparator()
        for text, run in (
            ("Turn round (not)", partial(self._change, name, is_inverted=not item.is_inverted)),
            ("Switch off" if item.is_on else "Switch on", partial(self._toggle, name)),
            ("Edit", partial(self.edit_wanted.emit, name)),
            ("Find these events", partial(self._find, item)),
            ("Remove", partial(self._remove, name)),
        ):
            action = QAction(text, menu)
            action.triggered.connect(run)
            action.setEnabled(bool(item.expression) or not text.startswith("Find"))
            menu.addAction(action)
        return menu

    def _on_menu(self, name: str, place: QPoint) -> None:
        self.menu(name).popup(self.chips[name].mapToGlobal(place))

    def _change(self, name: str, _checked: bool = False, **changes: object) -> None:
        self._opened.filters.change_pass(name, **changes)

    def _toggle(self, name: str, _checked: bool = False) -> None:
        self._opened.filters.change_pass(name, is_on=not self._opened.filters.pass_named(name).is_on)

    def _remove(self, name: str, _checked: bool = False) -> None:
        self._opened.filters.remove_pass(name)

    def _find(self, item: Pass, _checked: bool = False) -> None:
        self._opened.search.find(item.expression)

    def _all_codes(self) -> None:
        filters = self._opened.filters
        filters.set(np.ones_like(filters.state.codes), filters.state.threads, "all events")

    def _all_threads(self) -> None:
        filters = self._opened.filters
        filters.set(filters.state.codes, np.ones_like(filters.state.threads), "all threads")

    def _combination_text(self) -> str:
        return self._opened.filters.state.stack.combination or f"Combine{_MORE}"

    def _ask_combination(self) -> None:
        stack = self._opened.filters.state.stack
        names = " or ".join(item.name for item in stack.passes)
        LinePrompt("Show what fits", names, self._combine, self.window(), stack.combination)

    def _combine(self, text: str) -> None:
        try:
            self._opened.filters.combine(text)
        except UsageError as error:
            raise UsageError(f"combination, {error}") from error


def _call(run: Callable[[], object], _checked: bool = False) -> None:
    run()
