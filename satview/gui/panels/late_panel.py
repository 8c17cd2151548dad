"""The panel Late: recurring activities, their late instances, and where the time of an instance went."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from satview.answers.activity_lanes import ACTIVITIES as ACTIVITY_LANES
from satview.answers.late import ACTIVITIES, BLAME, CHAINS, INSTANCES, Late
from satview.answers.late_comparison import CAUSES, COMPARISON, PATHS
from satview.answers.table import Table
from satview.base.safe_text import counted, tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.gui import dialogs
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import Panel, PanelContext, select_row
from satview.gui.theme import Theme
from satview.gui.widgets import ElidedLabel, Notice, flat_button, line_up, named
from satview.session.highlight import Highlighted, Leg
from satview.session.panels.plots import ActivitiesView, ExplainedInstance, InstanceView
from satview.timeline.spans import NO_EVENT

if TYPE_CHECKING:
    from satview.gui.plots.duration_plot import ResponsePlot

_SHARES: Final = (5, 4, 5)  # relative widths of the tables
_TABS: Final = {CAUSES.name: "More in slow", PATHS.name: "Paths"}  # shorter titles, so that four tabs fit
_MARGIN: Final = 0.25  # margin on both sides of an instance in the lanes
_TIMING_PX, _LEAST_NAME_PX = 200, 160
# The columns shown; exported files have all.
_SHOWN: Final = {
    ACTIVITIES.name: ("activity", "misses", "max", "deadline", "count", "median", "p99", "margin", "overrun", "period",
                 "start_jitter", "end_jitter", "utilisation", "undecided", "trigger", "deadline_from"),
    INSTANCES.name: ("start", "response", "overrun", "outcome", "thread"),
    CHAINS.name: ("chain", "measure", "misses", "count", "median", "p99", "max", "bound", "undecided"),
    BLAME.name: ("part", "length", "whom", "what", "share"),
    COMPARISON.name: ("part", "explains", "whom", "what", "share", "sure", "slow", "fast", "in_slow", "in_fast"),
    CAUSES.name: ("cause", "what", "slow", "fast", "in_slow", "in_fast", "sure"),
    PATHS.name: ("explains", "path", "share", "sure", "slow", "fast", "in_slow", "in_fast", "via"),
}  # fmt: skip


class _Tables(AnswerPanel):
    """A table with several answers, one per tab.

    Signals:
        chosen: A row was clicked; sends the position of the row in the whole answer.
        event_chosen: A row about slow instances was clicked; sends the row of the event to show.
        focused: The table got the focus.
    """

    widest_px = 560  # paths differ at their ends, which must be visible
    chosen = Signal(int)
    event_chosen = Signal(int)
    focused = Signal()

    def __init__(self, context: PanelContext, name: str, buttons: QHBoxLayout, parent: QWidget) -> None:
        """Create empty tables with an accessible name; `buttons` gets Copy and Export, shown while in use."""
        super().__init__(context, name, parent)
        self._answers: list[Table] = []
        self._drawing: tuple[str, _Responses] | None = None
        self.tabs = named(QTabBar(self, expanding=False, drawBase=False), name)
        self.tabs.currentChanged.connect(self._fill)
        self.statement = ElidedLabel("", self, role="dim")
        head = line_up(QHBoxLayout(), self.tabs, (self.statement, 1), margins=(2, 0, 8, 0))
        self.add_buttons(buttons, self.statement)
        for button in self._buttons:
            button.setToolTip(tool_tip(f"Rows of the table {name}"))
        self._lay_out(head, self.stack)

    def add_drawing(self, title: str, drawing: _Responses) -> None:
        """Add a tab with a drawing behind the tabs of the answers."""
        self._drawing = title, drawing
        self.stack.addWidget(drawing)

    def show_buttons(self, is_used: bool) -> None:
        """Show or hide Copy and Export."""
        for button in self._buttons:
            button.setVisible(is_used)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send `focused` when the table gets the focus."""
        if watched is self.table and event.type() == QEvent.Type.FocusIn:
            self.focused.emit()
        return super().eventFilter(watched, event)

    def _share_width(self) -> None:
        """Set column widths without cutting texts; only names of activities leave room for the figure beside them."""
        widths = self._needed_px.copy()
        if len(widths) > 1 and self.model.columns[0].name == "activity":
            room_px = self.table.viewport().width() - widths[1]
            widths[0] = min(widths[0], max(room_px, _LEAST_NAME_PX))
        for section, width_px in widths.items():
            self.table.setColumnWidth(section, width_px)
        self._fitted_px = widths

    def show_answers(self, *answers: Table) -> None:
        """Set the answers, one per tab; the same tab stays selected."""
        if list(map(id, answers)) == list(map(id, self._answers)):
            return
        before, self._answers = self.shown, list(answers)
        titles = [(_TABS.get(answer.question.name, answer.question.title), answer.question.text) for answer in answers]
        titles += [(self._drawing[0], "")] if self._drawing is not None else []
        with QSignalBlocker(self.tabs):
            while self.tabs.count() > len(titles):
                self.tabs.removeTab(self.tabs.count() - 1)
            for number, (title, question) in enumerate(titles):
                if number == self.tabs.count():
                    self.tabs.addTab("")
                self.tabs.setTabText(number, title)
                self.tabs.setTabToolTip(number, tool_tip(question))
        if self.shown is not before or self._drawing is not None:  # otherwise keep the selected row
            self._fill()

    def show_row(self, position: int) -> None:
        """Select the row at a position in the whole answer."""
        if self.model.answer is not None:
            rows = np.flatnonzero(self.model.answer.positions == position)
            if len(rows) and rows[0] != self.table.currentIndex().row():
                select_row(self.table, int(rows[0]))

    @property
    def shown(self) -> Table | None:
        """The answer in the current tab; if the tab with the drawing is selected, the last answer."""
        return self._answers[min(self.tabs.currentIndex(), len(self._answers) - 1)] if self._answers else None

    @Slot()
    def _fill(self) -> None:
        answer = self.shown
        if answer is None:
            return
        self.model.names = _SHOWN[answer.question.name]
        if self._order[0] not in self.model.names:
            self._order = "", False
        self._show_in_order(answer)
        self.statement.setText(visible_line("; ".join(answer.missing)))
        self.show_page("" if len(answer) else answer.says_why_empty)
        if self._drawing is not None and self.tabs.currentIndex() == len(self._answers):
            self.stack.setCurrentWidget(self._drawing[1])
            self.statement.setText(self._drawing[1].count_text)

    def _show(self, row: int) -> None:
        """Send `chosen` or `event_chosen` for a clicked row; a row on where the time went is shown in the lanes."""
        answer = self.model.answer
        if answer is None or not 0 <= row < len(answer):
            return
        if answer.question in (ACTIVITIES, INSTANCES):
            self.chosen.emit(int(answer.positions[row]))
        elif answer.question.name in (COMPARISON.name, CAUSES.name, PATHS.name) and answer.event(row) >= 0:
            self.event_chosen.emit(answer.event(row))
        else:
            super()._show(row)


class _Responses(QWidget):
    """A histogram of response times, created when first shown, because importing pyqtgraph takes 0.3 s.

    Signals:
        row_requested: A bar was clicked; sends the row of the worst instance in the bar.
    """

    row_requested = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: ExplainedInstance | None = None
        self.plot: ResponsePlot | None = None
        self._layout = line_up(QVBoxLayout(self), margins=(0, 0, 0, 0))

    @property
    def count_text(self) -> str:
        """The number of known and unknown responses, as text."""
        if self._shown is None or self._shown.responses is None:
            return "No response is known"
        count = len(self._shown.responses.bin)
        unknown = len(self._shown.positions) - count
        return counted(count, "response") + (f"; {unknown:,} more are not known" if unknown else "")

    def show_responses(self, shown: ExplainedInstance) -> None:
        """Set the activity whose responses are drawn."""
        self._shown = shown
        if self.plot is not None:
            self.plot.show_responses(shown)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        if self.plot is not None:
            self.plot.set_theme(theme)

    def showEvent(self, event: QShowEvent) -> None:
        """Create the plot."""
        super().showEvent(event)
        if self.plot is None:
            from satview.gui.plots.duration_plot import ResponsePlot  # imports pyqtgraph

            self.plot = ResponsePlot(self._theme, self)
            self.plot.row_requested.connect(self.row_requested)
            self._layout.addWidget(self.plot)
            if self._shown is not None:
                self.show_responses(self._shown)


class LatePanel(Panel):
    """Three tables: activities, instances of the selected activity, and where the time of the selected one went."""

    waits_to_be_seen = True

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self._report, self._area = context.report, context.area
        self._pending: Callable[[Late], str] | None = None  # pending request, run once the activities are known
        self._is_chosen = False  # whether the user chose what is explained, which stays then
        self.activities_view, self.instance_view = ActivitiesView(self._opened, self), InstanceView(self)
        head = self._head()
        self._tables = self.activities, self.instances, self.blame = (
            _Tables(context, "Activities", head, self), _Tables(context, "Instances", head, self),
            _Tables(context, "Blame", head, self),
        )  # fmt: skip
        self.activities.sort("misses", descending=True)
        self.responses = _Responses(context.theme, self)
        self.responses.row_requested.connect(self._on_instance)
        self.instances.add_drawing("Histogram", self.responses)
        self.message = Notice("", self)
        split = QSplitter(Qt.Orientation.Horizontal, self, childrenCollapsible=False)
        for number, table in enumerate(self._tables):
            split.addWidget(table)
            split.setStretchFactor(number, _SHARES[number])
            table.setMinimumWidth(_TIMING_PX)
            table.menu_requested.connect(self.menu_requested)
            table.focused.connect(partial(self._on_used, table))
        self._on_used(self.activities)
        self.stack = QStackedWidget(self)
        self.stack.addWidget(split)
        self.stack.addWidget(self.message)
        line_up(QVBoxLayout(self), head, (self.stack, 1), margins=(0, 0, 0, 0), spacing=0)
        self.activities.chosen.connect(self._on_activity)
        self.instances.chosen.connect(self._on_instance)
        self.blame.event_chosen.connect(self._on_event)
        self.activities_view.changed.connect(self._on_activities)
        self.instance_view.changed.connect(self._on_explained)
        self._opened.timed.connect(self._on_timed)
        self._opened.lanes.changed.connect(self._on_lanes)
        self._opened.selection.changed.connect(self._on_selection)
        self._on_timed()
        self._on_lanes()
        self._on_activities()

    def _head(self) -> QHBoxLayout:
        self.sentence = ElidedLabel("", self)
        self.timing = QLineEdit(self)
        self.timing.setMaximumWidth(_TIMING_PX)
        self.timing.setClearButtonEnabled(True)
        self.timing.setPlaceholderText("Timing file")
        self.timing.setAccessibleName("Timing file")
        self.timing.setToolTip(tool_tip("A TOML file with deadlines, activities and chains of your own"))
        self.timing.editingFinished.connect(self._on_timing)
        self.on_lanes = QCheckBox("On the lanes", self)
        self.on_lanes.setToolTip(tool_tip("A lane for each activity: those of the timing file, else all"))
        self.on_lanes.clicked.connect(self._on_show)
        choose = flat_button("Choose\N{HORIZONTAL ELLIPSIS}", self, self._on_choose)
        return line_up(
            QHBoxLayout(), (self.sentence, 1), self.on_lanes, self.timing, choose, margins=(8, 3, 8, 3), spacing=10
        )

    def reload(self) -> None:
        """Search for activities, initially and after the trace was refreshed."""
        self.activities_view.start()

    def explain(self, thread: int, cycles: int) -> None:
        """Explain the instance that a thread (row of the thread table) works on at a time."""
        name = visible_line(self._opened.trace.thread_name(thread))
        nothing = f"{name} does nothing again and again: no pulse, message, sleep or interrupt begins its work"
        self._ask(lambda late: "" if self.instance_view.explain_thread(late, thread, cycles) else nothing)

    def explain_selected(self) -> bool:
        """Explain the instance of the bar selected on the lane of an activity; return False if none is selected."""
        selection = self._opened.selection
        track = self._opened.timeline.infos[selection.lane].track if selection.lane is not None else None
        event = selection.span.event if selection.span is not None else NO_EVENT
        if track is None or track.lane_class.name != ACTIVITY_LANES or event == NO_EVENT:
            return False
        name = track.content.key.rpartition(":")[0]
        message = f"{visible_line(name)} is no longer an activity"
        self._ask(lambda late: "" if self.instance_view.explain_bar(late, name, event) else message)
        return True

    def _ask(self, request: Callable[[Late], str]) -> None:
        self._pending = request
        if self.activities_view.answer is not None and not self.activities_view.is_busy:
            self._answer_asked()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        for table in self._tables:
            table.set_theme(theme)
        self.responses.set_theme(theme)

    def copied_text(self) -> str:
        """Return the selected or first rows of the table that has the focus, as text; "" if none has."""
        return "".join(table.copied_text() for table in self._tables)

    def _on_used(self, used: _Tables) -> None:
        for table in self._tables:
            table.show_buttons(table is used)

    @Slot()
    def _on_timing(self) -> None:
        self._opened.time_activities(self.timing.text().strip())

    @Slot()
    def _on_timed(self) -> None:
        self.timing.setText(self._opened.timing_file)
        if self.activities_view.answer is not None or self.activities_view.error:  # otherwise `reload` is still to come
            self.reload()

    @Slot()
    def _on_lanes(self) -> None:
        self.on_lanes.setChecked(ACTIVITY_LANES in self._opened.lanes.arrangement.classes)

    @Slot()
    def _on_show(self) -> None:
        lanes = self._opened.lanes
        lanes.show_classes(lanes.arrangement.classes ^ {ACTIVITY_LANES})

    @Slot()
    def _on_selection(self) -> None:
        if self.isVisible():
            self.explain_selected()

    @Slot()
    def _on_choose(self) -> None:
        path = dialogs.ask_file(self, "Timing file", "TOML (*.toml);;All files (*)")
        if path is not None:
            self.timing.setText(str(path))
            self._on_timing()

    @Slot()
    def _on_activities(self) -> None:
        view, answer = self.activities_view, self.activities_view.answer
        if view.is_busy and answer is not None:
            return  # keep the old tables until the search ends
        if answer is None or not len(answer.activities):
            self.instance_view.forget()
            why = view.error if answer is None else answer.activities.says_why_empty
            self.message.setText(why or "Looking for what is done again and again\N{HORIZONTAL ELLIPSIS}")
            self.stack.setCurrentIndex(1)
            return
        self.stack.setCurrentIndex(0)
        before = self.instance_view.answer
        if before is not None and before.late is answer.late:
            return
        self.activities.show_answers(answer.activities, *([answer.chains] if len(answer.chains) else []))
        names = [activity.name for activity in answer.late.learned.activities]
        if self._pending is not None:
            self._answer_asked()
        elif self._is_chosen and before and (name := before.late.learned.activities[before.activity].name) in names:
            self.instance_view.explain(answer.late, names.index(name))
        elif answer.telling is not None:
            self._is_chosen = False
            self.instance_view.explain(answer.late, answer.telling)

    def _answer_asked(self) -> None:
        answer, request = self.activities_view.answer, self._pending
        self._pending = None
        self._is_chosen = True
        if answer is not None and request is not None and (nothing := request(answer.late)):
            self._report(nothing)

    @Slot(int)
    def _on_activity(self, activity: int) -> None:
        if (answer := self.activities_view.answer) is not None:
            self._is_chosen = True
            self.instance_view.explain(answer.late, activity)

    @Slot(int)
    def _on_instance(self, row: int) -> None:
        """Show an instance of the activity in the lanes, select its first event, and start to explain the instance."""
        shown = self.instance_view.answer
        if shown is None or shown.late.trace is not self._opened.trace:
            return
        self._is_chosen = True
        instance = shown.late.learned.instances.taken(shown.positions[row : row + 1])
        lane = self._opened.lane_of_thread(int(instance.thread[0]))
        if lane is not None:
            self._opened.lanes.reveal(lane)
        self._navigation.show_event(int(instance.start_row[0]))
        if lane is not None:
            self._area.view.reveal_lane(lane)
            last = int(instance.end_row[0])
            end = last if last >= 0 else len(self._opened.trace.events) - 1  # unfinished: up to the end of the trace
            title = shown.late.learned.activities[shown.activity].name
            leg = Leg(int(instance.thread[0]), int(instance.start_row[0]), end, title)
            self._opened.highlight.show(Highlighted(int(instance.start_row[0]), (), (leg,)))
        self._opened.viewport.fit(TimeWindow(int(instance.start_cycles[0]), int(instance.end_cycles[0])), _MARGIN)
        self.instance_view.explain(shown.late, shown.activity, row)

    @Slot(int)
    def _on_event(self, event: int) -> None:
        """Show an event, and the instance of the activity that contains it."""
        shown = self.instance_view.answer
        row = -1 if shown is None else shown.row_of(event)
        if row >= 0:
            self._on_instance(row)
        self._navigation.show_event(event)

    @Slot()
    def _on_explained(self) -> None:
        view, instance = self.instance_view, self.instance_view.answer
        self.sentence.setText(view.error if instance is None else visible_line(instance.says))
        if instance is None or view.is_busy:
            return
        self.responses.show_responses(instance)
        self.instances.show_answers(instance.instances)
        compared = instance.compared
        self.blame.show_answers(instance.blame, compared.times, compared.causes, compared.paths)
        self.activities.show_row(instance.activity)
        self.instances.show_row(instance.row)
