"""The filters in force as chips above the timeline: a click switches one off, the cross takes it away."""

from __future__ import annotations

from collections.abc import Callable
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
_TITLE_LENGTH: Final = 64


class Chip(QFrame):
    """One filter.

    Attributes:
        label: The part that is clicked.
        cross: Takes the filter away.
    """

    def __init__(self, text: str, count: str, tip: str, state: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("chip", state)
        self.label = QPushButton(text, self)
        self.label.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.label.setToolTip(tip)
        self.label.setAccessibleName(f"Filter {text}, {count}")
        self.count = QLabel(count, self)
        self.count.setObjectName("chipCount")
        self.cross = QToolButton(self)
        self.cross.setText("\N{MULTIPLICATION SIGN}")
        self.cross.setToolTip("Take this filter away")
        self.cross.setAccessibleName(f"Take filter {text} away")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 1, 3, 1)
        row.setSpacing(6)
        for part in (self.label, self.count, self.cross):
            row.addWidget(part)


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
        """Show the filter of now."""
        for i in reversed(range(self._flow.count())):
            old = self._flow.takeAt(i)
            widget = old.widget() if old is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.chips.clear()
        state = self._opened.filters.state
        self._add_trees()
        for item in state.stack.passes:
            self._add_pass(item)
        if len(state.stack.passes) > 1:
            self._add_button(self._combination_text(), "How the filters work together", self._ask_combination)
        if self.chips:
            self._add_button("To rules", "Make rules of this filter, for the next capture", self.rules_wanted.emit)
            self._add_button("Clear", "Take all filters away (Shift+F)", self._opened.filters.show_all)
        self.setVisible(bool(self.chips))
        self._flow.invalidate()
        self.updateGeometry()

    def _add_trees(self) -> None:
        filters, trace = self._opened.filters, self._opened.trace
        state = filters.state
        occurring = trace.code_counts > 0
        word = _WORDS[state.effect]
        count = "\N{HORIZONTAL ELLIPSIS}" if filters.is_pending else f"{filters.view.chosen:,}"
        for key, shown, total, what, reset in (
            ("codes", int((state.codes & occurring).sum()), int(occurring.sum()), "kinds of event", self._all_codes),
            ("threads", int(state.threads.sum()), len(state.threads), "threads", self._all_threads),
        ):
            mask = state.codes if key == "codes" else state.threads
            if mask.all():
                continue
            kind = "mark" if state.effect is Effect.MARK else "on"
            tip = f"What is checked in the filter panel: {EFFECTS[state.effect].lower()}."
            chip = Chip(f"{word} {shown:,} of {total:,} {what}", count, tip, kind, self)
            chip.cross.clicked.connect(reset)
            self._add(key, chip)

    def _add_pass(self, item: Pass) -> None:
        filters = self._opened.filters
        hits = filters.view.counts.get(item.name)
        title = pass_title(item)
        short = title if len(title) <= _TITLE_LENGTH else title[: _TITLE_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
        state = "off" if not item.is_on else "mark" if item.effect is Effect.MARK else "on"
        count = "\N{HORIZONTAL ELLIPSIS}" if hits is None or filters.is_pending else f"{hits:,}"
        text = f"{item.name}  {_WORDS[item.effect]} {short}".replace("&", "&&")
        turn = "off" if item.is_on else "on"
        tip = f"{title}\n{EFFECTS[item.effect]}. Click to switch it {turn}; right click for more."
        chip = Chip(text, count, tip, state, self)
        chip.label.clicked.connect(partial(self._toggle, item.name))
        chip.cross.clicked.connect(partial(self._remove, item.name))
        chip.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        chip.customContextMenuRequested.connect(partial(self._on_menu, item.name))
        self._add(item.name, chip)

    def _add(self, key: str, chip: Chip) -> None:
        chip.cross.installEventFilter(self)
        self.chips[key] = chip
        self._flow.addWidget(chip)
        chip.show()

    def _add_button(self, text: str, tip: str, run: Callable[[], object]) -> None:
        button = QPushButton(text, self)
        button.setProperty("flat", "true")
        button.setToolTip(tip)
        button.clicked.connect(partial(_call, run))
        self._flow.addWidget(button)
        button.show()

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
        return self._opened.filters.state.stack.combination or "Combine\N{HORIZONTAL ELLIPSIS}"

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
