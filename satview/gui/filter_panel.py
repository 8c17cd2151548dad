"""The filter panel: a condition, classes with their events, processes with their threads, rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import UsageError
from satview.filters import presets
from satview.filters.fastwide import has_two_forms
from satview.filters.passes import Effect
from satview.gui.check_tree import CheckTree, Group, Leaf
from satview.gui.filters.condition_box import ConditionBox
from satview.gui.filters.rules_tab import RulesTab
from satview.gui.theme import Theme
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace

_EFFECTS: Final = {
    Effect.HIDE: "Hide unchecked",
    Effect.DIM: "Dim unchecked",
    Effect.MARK: "Highlight checked",
}
_NEXT_FORM: Final = {None: True, True: False, False: None}  # as logged, wide, fast, as logged
_FORM_TEXT: Final = {None: "as logged", True: "wide", False: "fast"}
_TOP: Final = (3, 5, 10, 20)


class FilterPanel(QWidget):
    """Everything that filters, and a line that says how much shows.

    Attributes:
        condition: The box for conditions.
        events, threads: The trees.
        rules: The tab for rules.
        effect: What the check boxes do.

    Signals:
        search_wanted: A condition is to be searched for: its text.
    """

    search_wanted = Signal(str)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.setMinimumSize(160, 120)  # a small window clips it rather than grow
        trace = opened.trace
        self._codes = np.flatnonzero(trace.code_counts)
        self.condition = ConditionBox(opened, theme, self)
        heads = ("Class, event", "Events", "Form")
        self.events = CheckTree(event_groups(trace), "Find an event or class", self, heads)
        self._groups = thread_groups(trace, opened.events_of_thread)
        heads = ("Process, thread", "Events", "CPU")
        self.threads = CheckTree(self._groups, "Find a process, thread or pid", self, heads)
        self.rules = RulesTab(opened, theme, self)
        self.presets = self._preset_button()
        self.threads.buttons.addWidget(self.presets)
        self.tabs = QTabWidget(self)
        self.tabs.setDocumentMode(True)
        for widget, title in ((self.events, "Events"), (self.threads, "Processes"), (self.rules, "Rules")):
            self.tabs.addTab(widget, title)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.condition)
        layout.addWidget(self.tabs)
        layout.addLayout(self._foot())
        self._job = LatestJob(self)
        self._cpu_job = LatestJob(self)
        self._preset_title = ""
        self._connect()
        self._show_summary()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self.condition.set_theme(theme)
        self.rules.set_theme(theme)

    def close_down(self) -> None:
        """Stop the work in the background."""
        self._job.close()
        self._cpu_job.close()
        self.condition.close_down()

    @Slot(str)
    def edit(self, name: str) -> None:
        """Open a pass for editing."""
        item = self._opened.filters.pass_named(name)
        if item.rules:
            self.tabs.setCurrentWidget(self.rules)
            self.rules.edit(name)
        else:
            self.condition.edit(name)

    @Slot()
    def refresh(self) -> None:
        """Show the filter of now in the check boxes."""
        state = self._opened.filters.state
        self.events.refresh(int(code) for code in self._codes if state.codes[code])
        self.threads.refresh(int(row) for row in np.flatnonzero(state.threads))
        self.effect.setCurrentIndex(list(_EFFECTS).index(state.effect) if state.effect in _EFFECTS else 0)
        self.events.set_notes({int(code): self._form_text(int(code)) for code in self._codes})
        self._show_summary()

    def choose_preset(self, title: str, choose: Callable[[Trace], NDArray[np.bool_]]) -> None:
        """Check the threads that a function of the trace chooses, in the background."""
        trace = self._opened.trace
        self._preset_title = title

        def work(_is_cancelled: IsCancelled, _report: Report) -> object:
            return choose(trace)

        self._job.start(work)

    def _connect(self) -> None:
        opened = self._opened
        self.events.toggled.connect(self._on_events)
        self.events.inverted.connect(self._on_invert_events)
        self.events.only_wanted.connect(self._on_only_events)
        self.events.note_clicked.connect(self._on_form)
        self.threads.toggled.connect(self._on_threads)
        self.threads.inverted.connect(self._on_invert_threads)
        self.threads.only_wanted.connect(self._on_only_threads)
        self.effect.activated.connect(self._on_effect)
        self.condition.search_wanted.connect(self.search_wanted)
        opened.filters.changed.connect(self.refresh)
        opened.filters.rows_changed.connect(self._show_summary)
        self._job.done.connect(self._on_preset)
        self._job.failed.connect(self._on_failed)
        self._cpu_job.done.connect(self._on_cpu)
        self.events.set_notes({int(code): self._form_text(int(code)) for code in self._codes})
        trace = opened.trace
        self._cpu_job.start(lambda _cancelled, _report: presets.cpu_cycles(trace))

    def _foot(self) -> QHBoxLayout:
        self.summary = QLabel(self)
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
        foot = QHBoxLayout()
        foot.setContentsMargins(10, 4, 8, 6)
        foot.addWidget(self.effect)
        foot.addWidget(self.summary, 1)
        foot.addWidget(self._reset)
        return foot

    def _preset_button(self) -> QPushButton:
        button = QPushButton("Presets", self)
        button.setProperty("flat", "true")
        menu = QMenu(button)
        for title, choose in (
            ("Used the CPU", presets.used_cpu),
            ("Changed state", presets.changed_state),
            ("Did IPC", presets.did_ipc),
        ):
            menu.addAction(title, partial(self.choose_preset, title, choose))
        menu.addAction("MsgSend family of the selected", self._family)
        menu.addSeparator()
        for count in _TOP:
            title = f"Top {count} by CPU"
            menu.addAction(title, partial(self.choose_preset, title, partial(presets.top_by_cpu, count=count)))
        button.setMenu(menu)
        return button

    def _family(self) -> None:
        """Choose the selected threads and everyone they send to."""
        selected = np.zeros(len(self._opened.trace.threads), np.bool_)
        selected[self.threads.selected_keys() or self._selected_thread()] = True
        if not selected.any():
            self._opened.filters.failed.emit("select a thread first, here or in the timeline")
            return
        self.choose_preset("MsgSend family", partial(presets.message_family, threads=selected))

    def _selected_thread(self) -> list[int]:
        selection, opened = self._opened.selection, self._opened
        if selection.lane is not None:
            info = opened.timeline.infos[selection.lane]
            if info.thread > 0:
                return [info.thread]
            if info.process > 0:
                return [int(row) for row in np.flatnonzero(opened.trace.threads.process == info.process)]
        return [int(opened.trace.events.thread[selection.event])] if selection.event is not None else []

    def _form_text(self, code: int) -> str:
        if not has_two_forms(code, self._opened.trace.release):
            return ""
        return _FORM_TEXT[self._opened.filters.is_wide.get(code)]

    @Slot()
    def _show_summary(self) -> None:
        filters, total = self._opened.filters, len(self._opened.trace.events)
        self._reset.setEnabled(filters.is_active or bool(filters.state.stack.passes))
        text = f"{filters.row_count:,} of {total:,}" if filters.is_active else f"All {total:,} events"
        self.summary.setToolTip("Events that show")
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
    def _on_preset(self, threads: object) -> None:
        if isinstance(threads, np.ndarray):
            rows = np.flatnonzero(threads)
            if not len(rows):
                self._opened.filters.failed.emit(f"{self._preset_title}: no thread of this trace fits")
                return
            self._opened.filters.only_threads(rows, self._preset_title)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, UsageError):
            raise error if isinstance(error, Exception) else RuntimeError(error)
        self._opened.filters.failed.emit(str(error))

    @Slot(object)
    def _on_cpu(self, cycles: object) -> None:
        """Show who used how much of all CPUs together."""
        trace = self._opened.trace
        whole = trace.window.length * max(1, trace.cpu_count)
        if isinstance(cycles, np.ndarray) and whole > 0:
            shares = cycles / whole
            of_groups = [_share(sum(float(shares[leaf.key]) for leaf in group.leaves)) for group in self._groups]
            keys = (leaf.key for group in self._groups for leaf in group.leaves)
            self.threads.set_notes({key: _share(float(shares[key])) for key in keys}, of_groups)


def _share(share: float) -> str:
    if share <= 0:
        return ""
    return f"{100 * share:.1f} %" if share >= 0.0005 else "<0.1 %"


def event_groups(trace: Trace) -> list[Group]:
    """Return the classes of a trace in table order with the events that occur, most frequent first."""
    counts = trace.code_counts
    by_class: dict[str, list[Leaf]] = {}
    for code in np.flatnonzero(counts):
        spec = trace.catalogue.spec(int(code))
        name = f"{spec.name} (64 bit)" if spec.is_64bit else spec.name
        by_class.setdefault(spec.class_name, []).append(Leaf(int(code), name, int(counts[code])))
    titles = {spec.name: spec.title for spec in trace.catalogue.classes}
    order = {spec.name: place for place, spec in enumerate(trace.catalogue.classes)}
    return [
        Group(name, tuple(sorted(by_class[name], key=lambda leaf: -leaf.count)), titles.get(name, ""))
        for name in sorted(by_class, key=lambda name: order.get(name, len(order)))
    ]


def thread_groups(trace: Trace, counts: NDArray[np.int64]) -> list[Group]:
    """Return the processes with their threads, by number of events."""
    by_process: dict[int, list[Leaf]] = {}
    for row in range(len(trace.threads)):
        process = int(trace.threads.process[row])
        tid = int(trace.threads.tid[row])
        title = f"{tid}  {trace.threads.names[row]}".strip() if tid > 0 else "thread not known"
        if row or counts[0]:
            by_process.setdefault(process, []).append(Leaf(row, title, int(counts[row])))
    groups = [
        Group(_process_title(trace, process), tuple(leaves), trace.processes.names[process])
        for process, leaves in by_process.items()
    ]
    return sorted(groups, key=lambda group: -sum(leaf.count for leaf in group.leaves))


def _process_title(trace: Trace, process: int) -> str:
    if not process:
        return "not known"
    name = trace.process_name(process)
    pid = int(trace.processes.pid[process])
    return name if name == f"pid {pid}" else f"{name}  (pid {pid})"
