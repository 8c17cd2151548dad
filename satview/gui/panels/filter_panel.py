"""The filter panel: a condition, classes with their events, processes with their threads, rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.statistics import Statistics
from satview.base.safe_text import tool_tip
from satview.filters.rules.fastwide import has_two_forms
from satview.filters.views.passes import Effect
from satview.gui.check_tree import CheckTree
from satview.gui.filters.condition_box import ConditionBox
from satview.gui.filters.groups import event_groups, thread_groups
from satview.gui.filters.rules_tab import RulesTab
from satview.gui.filters.thread_presets import ThreadPresets
from satview.gui.low_layout import LowGrid
from satview.gui.panel import Panel, PanelContext
from satview.gui.plain_label import PlainLabel
from satview.gui.theme import Theme
from satview.session.tasks import Task
from satview.store.idle import idle_threads

_EFFECTS: Final = {
    Effect.HIDE: "Hide unchecked",
    Effect.DIM: "Dim unchecked",
    Effect.MARK: "Highlight checked",
}
_NEXT_FORM: Final = {None: True, True: False, False: None}  # as logged, wide, fast, as logged
_FORM_TEXT: Final = {None: "as logged", True: "wide", False: "fast"}


class FilterPanel(Panel):
    """Everything that filters, and a line that says how much shows.

    Attributes:
        condition: The box for conditions.
        events, threads: The trees.
        rules_page: The tab for rules, which are in it once they are first used.
        effect: What the check boxes do.

    Signals:
        search_requested: A condition is to be searched for: its text.
    """

    saved_fields = ("tabs",)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        opened, theme = context.opened, context.theme
        self._find = context.find
        self.setMinimumSize(160, 134)  # that of conditions beside tabs: a small window clips it rather than grow
        trace = opened.trace
        self._codes = np.flatnonzero(trace.code_counts)
        self._forms_shown: Mapping[int, bool] | None = None
        self.condition = ConditionBox(opened, theme, self)
        heads = ("Class, event", "Events", "Form")
        self.events = CheckTree(event_groups(trace), "Find an event or class", self, heads)
        self._groups = thread_groups(trace, opened.events_of_thread)
        heads = ("Process, thread", "Events", "CPU")
        self.threads = CheckTree(self._groups, "Find a process, thread or pid", self, heads)
        self._rules: RulesTab | None = None
        self.rules_page = QWidget(self)
        QVBoxLayout(self.rules_page).setContentsMargins(0, 0, 0, 0)
        self.presets = ThreadPresets(opened, self.threads.selected_keys, self)
        self.threads.buttons.addWidget(self.presets)
        self.tabs = QTabWidget(self)
        self.tabs.setDocumentMode(True)
        for widget, title in ((self.events, "Events"), (self.threads, "Processes"), (self.rules_page, "Rules")):
            self.tabs.addTab(widget, title)
        self.tabs.currentChanged.connect(self._on_tab)
        foot = self._foot()
        low = ((self.condition, 0, 0, 1), (foot, 1, 0, 1), (self.tabs, 0, 1, 2))
        self._grid = LowGrid(self, (self.condition, self.tabs, foot), self.tabs, low, (2, 3), 0)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(0)
        self._cpu_job = Task(self)
        self._has_cpu = False
        self._connect()
        self._show_summary()

    @property
    def rules(self) -> RulesTab:
        """The tab for rules, made when it is first used."""
        if self._rules is None:
            self._rules = RulesTab(self._opened, self._theme, self.rules_page)
            layout = self.rules_page.layout()
            assert layout is not None
            layout.addWidget(self._rules)
        return self._rules

    @Slot()
    def _on_tab(self) -> None:
        if self.tabs.currentWidget() is self.rules_page:
            self.rules.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put conditions above the tabs, in a low drawer beside them."""
        super().resizeEvent(event)
        self._grid.follow()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        self.condition.set_theme(theme)
        if self._rules is not None:
            self._rules.set_theme(theme)

    def close_down(self) -> None:
        """Cancel the background task."""
        self.presets.close_down()
        self._cpu_job.close()
        self.condition.close_down()

    @Slot(str)
    def edit(self, name: str) -> None:
        """Open a pass for editing."""
        item = self._opened.filters.pass_named(name)
        if item.rules:
            self.tabs.setCurrentWidget(self.rules_page)
            self.rules.edit(name)
        else:
            self.condition.edit(name)

    def show_rules(self) -> None:
        """Open the rules that capture what the filter lets show."""
        self.tabs.setCurrentWidget(self.rules_page)
        self.rules.from_filter.click()

    def reload(self) -> None:
        """Show what a refreshed trace has more; what is open, selected or half typed stays."""
        trace = self._opened.trace
        self._codes = np.flatnonzero(trace.code_counts)
        self._forms_shown = None
        self.events.reload(event_groups(trace))
        self._groups = self.threads.reload(thread_groups(trace, self._opened.events_of_thread))
        self.refresh()
        self._has_cpu = False
        self._count_cpu()

    @Slot()
    def refresh(self) -> None:
        """Show the filter of now in the check boxes."""
        state = self._opened.filters.state
        self.events.refresh(int(code) for code in self._codes if state.codes[code])
        self.threads.refresh(int(row) for row in np.flatnonzero(state.threads))
        self.effect.setCurrentIndex(list(_EFFECTS).index(state.effect) if state.effect in _EFFECTS else 0)
        self._show_forms()
        self._show_summary()

    def _connect(self) -> None:
        opened = self._opened
        self.events.toggled.connect(self._on_events)
        self.events.inverted.connect(self._on_invert_events)
        self.events.only_requested.connect(self._on_only_events)
        self.events.note_clicked.connect(self._on_form)
        self.threads.toggled.connect(self._on_threads)
        self.threads.inverted.connect(self._on_invert_threads)
        self.threads.only_requested.connect(self._on_only_threads)
        self.effect.activated.connect(self._on_effect)
        self.condition.search_requested.connect(self._find)
        opened.filters.changed.connect(self.refresh)
        self._cpu_job.done.connect(self._on_cpu)
        self._show_forms()
        self._count_cpu()

    def showEvent(self, event: QShowEvent) -> None:
        """Count what nobody needs before the panel is seen."""
        super().showEvent(event)
        self._count_cpu()

    @Slot()
    def _count_cpu(self) -> None:
        """Find who used the CPUs, once for each trace, and only if it is seen."""
        if self._has_cpu or not self.isVisible():
            return
        self._has_cpu = True
        basis = self._opened.basis
        self._cpu_job.start(
            lambda cancelled, _report: Statistics(basis.trace, basis=basis, cancelled=cancelled).threads.cpu_cycles
        )

    def _foot(self) -> QWidget:
        widget = QWidget(self)
        self.summary = PlainLabel(self)
        self.summary.setProperty("role", "dim")
        self._reset = QPushButton("Show all", self)
        self._reset.setProperty("flat", "true")
        self._reset.clicked.connect(self._opened.filters.show_all)
        self.effect = QComboBox(self)
        self.effect.setAccessibleName("What the check boxes do")
        self.effect.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.effect.setMinimumContentsLength(10)
        self.summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        for effect, text in _EFFECTS.items():
            self.effect.addItem(text, effect)
        foot = QHBoxLayout(widget)
        foot.setContentsMargins(8, 4, 8, 6)
        foot.setSpacing(8)
        foot.addWidget(self.effect)
        foot.addWidget(self.summary, 1)
        foot.addWidget(self._reset)
        return widget

    def _show_forms(self) -> None:
        """Show fast or wide per event; most changes of the filter leave that alone."""
        forms = self._opened.filters.is_wide
        if forms is not self._forms_shown:
            self._forms_shown = forms
            self.events.set_notes({int(code): self._form_text(int(code)) for code in self._codes})

    def _form_text(self, code: int) -> str:
        if not has_two_forms(code, self._opened.trace.release):
            return ""
        return _FORM_TEXT[self._opened.filters.is_wide.get(code)]

    @Slot()
    def _show_summary(self) -> None:
        filters, total = self._opened.filters, len(self._opened.trace.events)
        self._reset.setEnabled(filters.is_active or bool(filters.state.stack.passes))
        text = f"{filters.row_count:,} shown" if filters.is_active else "All events"
        self.summary.setToolTip(tool_tip(f"{filters.row_count:,} of {total:,} events show"))
        self.summary.setText("\N{HORIZONTAL ELLIPSIS}" if filters.is_pending else text)

    @Slot(list, bool)
    def _on_events(self, codes: list[int], show: bool) -> None:
        self._opened.filters.show_codes(codes, show)

    @Slot(list)
    def _on_invert_events(self, codes: list[int]) -> None:
        state = self._opened.filters.state
        changed = state.codes.copy()
        changed[codes] ^= True
        self._opened.filters.set(changed, state.threads, "inverted events")

    @Slot(list)
    def _on_only_events(self, codes: list[int]) -> None:
        self._opened.filters.only_codes(codes, "only some events")

    @Slot(list)
    def _on_form(self, codes: list[int]) -> None:
        codes = [code for code in codes if has_two_forms(code, self._opened.trace.release)]
        if codes:
            form = _NEXT_FORM[self._opened.filters.is_wide.get(codes[0])]
            self._opened.filters.set_form(codes, _FORM_TEXT[form])

    @Slot(list, bool)
    def _on_threads(self, rows: list[int], show: bool) -> None:
        self._opened.filters.show_threads(rows, show)

    @Slot(list)
    def _on_invert_threads(self, rows: list[int]) -> None:
        state = self._opened.filters.state
        changed = state.threads.copy()
        changed[rows] ^= True
        self._opened.filters.set(state.codes, changed, "inverted threads")

    @Slot(list)
    def _on_only_threads(self, rows: list[int]) -> None:
        self._opened.filters.only_threads(rows, "only some threads")

    @Slot(int)
    def _on_effect(self, _index: int) -> None:
        self._opened.filters.set_effect(Effect(self.effect.currentData()))

    @Slot(object)
    def _on_cpu(self, cycles: object) -> None:
        """Show who used how much of all CPUs together; what idle threads used, nobody did."""
        trace = self._opened.trace
        whole = trace.window.length * max(1, trace.cpu_count)
        if isinstance(cycles, np.ndarray) and whole > 0:
            idle = idle_threads(trace)
            shares = np.where(idle, 0, cycles / whole)
            of_groups = [_share(sum(float(shares[leaf.key]) for leaf in group.leaves)) for group in self._groups]
            keys = [leaf.key for group in self._groups for leaf in group.leaves]
            notes = {key: "idle" if idle[key] else _share(float(shares[key])) for key in keys}
            self.threads.set_notes(notes, of_groups)


def _share(share: float) -> str:
    if share <= 0:
        return ""
    return f"{100 * share:.1f} %" if share >= 0.0005 else "<0.1 %"
