"""The panel Plots: load over time, histograms of durations, event counts. Imports pyqtgraph when first shown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.times.basis import EXACT, Trust, sign
from satview.analysis.times.cpu_times import LoadBy
from satview.analysis.times.message_times import measures
from satview.base.errors import WriteError
from satview.base.safe_text import counted, percent, tool_tip, visible_line, with_sign
from satview.base.time import format_duration
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.gui.panel import Panel, PanelContext
from satview.gui.plots.duration_plot import DurationPlot
from satview.gui.plots.time_plot import CountPlot, LoadPlot
from satview.gui.swimlane.legend import save_drawing, save_png
from satview.gui.theme import Theme
from satview.gui.widgets import ElidedLabel, Notice, drop_down, line_up, named
from satview.session.panels.plots import (
    CountsPlotted,
    DurationsPlotted,
    LoadPlotted,
    PlotKind,
    PlotsView,
    Plotted,
    write_csv,
)
from satview.session.range_view import NO_RANGE, Extent
from satview.session.tasks import Task

# Messages.


def reason_for(plotted: Plotted | None) -> str:
    """Return a sentence on why no plot is shown; "" if a plot is shown."""
    if plotted is None:
        return "Counting\N{HORIZONTAL ELLIPSIS}"
    if isinstance(plotted, LoadPlotted):
        return plotted.capture
    if isinstance(plotted, CountsPlotted):
        return "" if plotted.titles else "There are no events in this range."
    if plotted.histogram is not None:
        return ""
    of_whom = owner_text(plotted)
    if plotted.occurrences.unfinished:
        count = f"{plotted.occurrences.unfinished:,}"
        return f"{plotted.measure.title}: the trace holds both ends of none of the {count}{of_whom}."
    return (
        f"{plotted.measure.title}: none{of_whom} begins in this part of the trace.\n"
        f"A capture needs {plotted.measure.capture} for it."
    )


def owner_text(plotted: DurationsPlotted) -> str:
    """Return ` of NAME` for the thread or process whose durations are counted; "" for all."""
    return f" of {visible_line(plotted.whose)}" if plotted.whose else ""


_MOST_DIVISIONS: Final = 2000
_PATTERNS: Final = {"png": "PNG (*.png)", "svg": "SVG (*.svg)", "csv": "CSV (*.csv)"}

_EXTENTS: Final = {Extent.VIEW: "In view", Extent.TRACE: "Whole trace", Extent.RANGE: "Selected range"}


class PlotsPanel(Panel):
    """Plots of the open trace, made when first shown, and computed only while the panel is visible."""

    saved_fields = ("tabs", "by", "measure", "extent", "only_selected", "conditions", "divisions")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        opened, labels = self._opened, context.area.labels
        self.view = PlotsView(opened, self)
        self._left_px = labels.width()  # the load plot shares the time axis of the lanes
        labels.width_requested.connect(self.set_left)
        self.load: LoadPlot | None = None
        self.durations: DurationPlot | None = None
        self.counts: CountPlot | None = None
        self._drawn: object = None
        self._job = Task(self, self._on_exported, self._on_exported)
        head = self._head()
        self._options = QStackedWidget(self)
        self._options.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._options.addWidget(self._load_options())
        self._options.addWidget(self._duration_options())
        self._options.addWidget(self._count_options())
        self._stack = QStackedWidget(self)
        self.message = Notice(self)
        self._stack.addWidget(self.message)
        line_up(QVBoxLayout(self), head, self._options, (self._stack, 1), margins=(0, 0, 0, 0), spacing=0)
        self.view.changed.connect(self._on_view)
        opened.selection.changed.connect(self._on_selection)
        opened.reloaded.connect(self._on_reloaded)
        self._on_selection()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        for plot in (self.load, self.durations, self.counts):
            if plot is not None:
                plot.set_theme(theme)

    @Slot(int)
    def set_left(self, left_px: int) -> None:
        """Align plots over time with the lanes, after the width of the label column changed."""
        self._left_px = left_px
        for plot in (self.load, self.counts):
            if plot is not None:
                plot.set_left(left_px)

    @property
    def plot(self) -> QWidget | None:
        """The visible plot; None if a message shows."""
        widget = self._stack.currentWidget()
        return widget if widget is not self.message else None

    def export(self, kind: str, path: Path) -> None:
        """Write the visible plot to a file: `png` or `svg` for the picture, `csv` for the numbers."""
        plotted, plot = self.view.plotted.get(self.view.kind), self.plot
        if plotted is None or plot is None:
            return
        reading = source_files(self._opened.trace.path)
        if kind == "csv":
            self._job.start(partial(write_csv, self._opened.trace, plotted, path, reading))
            return
        size = plot.size()
        plot.resize(size.expandedTo(QSize(0, getattr(plot, "least_height_px", 0))))
        try:
            if kind == "png":
                save_png(plot.grab(), path, reading)
            else:
                save_drawing(partial(_draw, plot), plot.size(), "satview", path, reading, kind=kind)
        except WriteError as error:
            self._on_exported(error)
        else:
            self._on_exported(f"Wrote {path.name}")
        finally:
            plot.resize(size)

    def _head(self) -> QHBoxLayout:
        self.tabs = named(QTabBar(self, expanding=False, drawBase=False), "Plot")
        for plot_kind in PlotKind:
            self.tabs.addTab(plot_kind.value)
        self.tabs.currentChanged.connect(self._on_tab)
        self.export_button = QPushButton("Export", self)
        self.export_button.setProperty("flat", "true")
        menu = QMenu(self.export_button)
        for kind in _PATTERNS:
            action = menu.addAction(f"{kind.upper()}\N{HORIZONTAL ELLIPSIS}")
            action.setData(kind)
        menu.triggered.connect(self._on_export)
        self.export_button.setMenu(menu)
        self.statement = ElidedLabel("", self, role="dim")
        self.statement.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return line_up(QHBoxLayout(), self.tabs, (self.statement, 1), self.export_button, margins=(2, 0, 8, 0))

    def _load_options(self) -> QWidget:
        titles = (f"By {by.value if by is LoadBy.CPU else by.value.lower()}" for by in LoadBy)
        self.by = drop_down(self, "Bands", titles)
        self.by.setCurrentIndex(list(LoadBy).index(self.view.by))
        self.by.currentIndexChanged.connect(self._on_by)
        return _line(self, self.by)

    def _duration_options(self) -> QWidget:
        self.measure = named(QComboBox(self, maxVisibleItems=24), "What to measure")
        self._fill_measures()
        self.measure.currentIndexChanged.connect(self._on_measure)
        self.extent = drop_down(self, "Part of the trace", _EXTENTS)
        self.extent.setCurrentIndex(list(_EXTENTS).index(self.view.extent))
        self.extent.currentIndexChanged.connect(self._on_extent)
        self.only_selected = QCheckBox("Only the selected lane", self)
        self.only_selected.setToolTip(tool_tip("Only for the selected thread, or for the threads of the process"))
        self.only_selected.toggled.connect(self.view.set_only_selected)
        return _line(self, self.measure, self.extent, self.only_selected)

    def _count_options(self) -> QWidget:
        self.conditions = QLineEdit(self)
        self.conditions.setAccessibleName("Conditions to count")
        self.conditions.setPlaceholderText("Conditions with ; between: state == READY; duration > 2ms. Empty: classes")
        self.conditions.setMinimumWidth(120)
        self.conditions.setMaximumWidth(640)
        self.conditions.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.conditions.editingFinished.connect(self._on_conditions)
        self.divisions = named(QSpinBox(self, suffix=" divisions"), "Divisions")
        self.divisions.setRange(1, _MOST_DIVISIONS)
        self.divisions.setValue(self.view.divisions)
        self.divisions.valueChanged.connect(self.view.set_divisions)
        return _line(self, self.conditions, self.divisions)

    @Slot()
    def _on_reloaded(self) -> None:
        self._fill_measures()
        if self.durations is not None:
            self.durations.forget_positions()

    def _fill_measures(self) -> None:
        """List the measures that the trace has; keep the selected one."""
        offered = measures(self._opened.trace)
        self.measure.blockSignals(True)
        self.measure.clear()
        for measure in offered:
            self.measure.addItem(measure.title, measure)
        keys = [measure.key for measure in offered]
        self.measure.setCurrentIndex(keys.index(self.view.measure.key) if self.view.measure.key in keys else 0)
        self.measure.blockSignals(False)

    @Slot()
    def _build(self) -> None:
        """Create one plot per turn of the event loop."""
        if self.load is None and self.isVisible():
            self._make_next()

    @Slot()
    def _make_next(self) -> None:
        if self.load is None:
            self.load = LoadPlot(self._opened, self._left_px, self._theme, self)
            self.load.time_requested.connect(self._navigation.show_time)
            self._stack.addWidget(self.load)
        elif self.durations is None:
            self.durations = DurationPlot(self._opened, self._theme, self)
            self.durations.event_requested.connect(self._navigation.show_event)
            self._stack.addWidget(self.durations)
        else:
            self.counts = CountPlot(self._opened, self._left_px, self._theme, self)
            self.counts.time_requested.connect(self._navigation.show_time)
            self.counts.event_requested.connect(self._navigation.show_event)
            self._stack.addWidget(self.counts)
            self.watched = self.view  # computed only now that it can be drawn
            self.view.watch(self.isVisible())
            self._on_view()
            return
        QTimer.singleShot(0, self, self._make_next)

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        self._options.setCurrentIndex(number)
        self.view.show_plot(list(PlotKind)[number])

    @Slot(int)
    def _on_by(self, number: int) -> None:
        self.view.set_by(list(LoadBy)[number])

    @Slot()
    def _on_conditions(self) -> None:
        self.view.set_conditions(self.conditions.text())

    @Slot(int)
    def _on_measure(self, number: int) -> None:
        self.view.set_measure(self.measure.itemData(number))

    @Slot(int)
    def _on_extent(self, number: int) -> None:
        self.view.set_extent(list(_EXTENTS)[number])

    @Slot()
    def _on_selection(self) -> None:
        self.only_selected.setEnabled(self.view.selected is not None or self.only_selected.isChecked())

    @Slot()
    def _on_view(self) -> None:
        """Show the plot, or why there is none."""
        if self.load is None or self.durations is None or self.counts is None:
            return
        self.extent.blockSignals(True)
        self.extent.setCurrentIndex(list(_EXTENTS).index(self.view.extent))
        self.extent.blockSignals(False)
        plotted = self.view.plotted.get(self.view.kind)
        reason = self.view.error or (NO_RANGE if self.view.needs_range else reason_for(plotted))
        self.message.setText(reason)
        plot = {PlotKind.LOAD: self.load, PlotKind.DURATIONS: self.durations}.get(self.view.kind, self.counts)
        self._stack.setCurrentWidget(self.message if reason else plot)
        self.export_button.setEnabled(not reason)
        if reason or plotted is None:
            self._drawn = None
            self._say("")
            return
        if plotted is self._drawn:
            return
        self._drawn = plotted
        if isinstance(plotted, LoadPlotted):
            self.load.show_load(plotted)
            share = with_sign(sign(plotted.trust.mark), percent(float(plotted.shares.sum())))
            self._say(
                f"CPU time without idle and interrupts: {share} of {counted(plotted.load.cpus, 'CPU')}",
                plotted.trust,
            )
        elif isinstance(plotted, CountsPlotted):
            self.counts.show_counts(plotted)
            length = plotted.window.length // max(1, len(plotted.divisions.edges) - 1)
            self._say(f"each division {format_duration(self._opened.trace.clock.duration_ns(length))}")
        else:
            self.durations.show_durations(plotted)
            of_whom = owner_text(plotted)
            left_out = plotted.occurrences.unfinished
            self._say(
                f"{len(plotted.occurrences):,} times{of_whom}"
                + (f"; {left_out:,} more without both ends in the trace" if left_out else ""),
                plotted.trust,
            )

    def _say(self, text: str, trust: Trust = EXACT) -> None:
        text = " \N{MIDDLE DOT} ".join(filter(None, (text, trust.says)))
        self.statement.setText(text)

    @Slot(object)
    def _on_export(self, action: object) -> None:
        kind = str(action.data())  # type: ignore[attr-defined]  # a QAction
        path = self._opened.trace.path
        measure = self.view.measure.key.replace(":", "-").lower()
        name = {PlotKind.LOAD: "load", PlotKind.COUNTS: "events"}.get(self.view.kind, measure)
        target = dialogs.ask_save(self, Path(f"{path.stem}-{name}.{kind}"), _PATTERNS[kind])
        if target is not None:
            self.export(kind, target)

    @Slot(object)
    def _on_exported(self, message: object) -> None:
        self._say(str(message))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Create the plots at the first paint event: unlike a show event, it is not sent while docks are arranged."""
        super().paintEvent(event)
        if self.load is None:
            QTimer.singleShot(0, self, self._build)


def _line(parent: QWidget, *widgets: QWidget) -> QWidget:
    line = QWidget(parent)
    layout = QHBoxLayout(line)
    layout.setContentsMargins(8, 2, 8, 4)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget, 4 if isinstance(widget, QLineEdit) else 0)
    layout.addStretch(1)
    return line


def _draw(widget: QWidget, painter: QPainter) -> None:
    widget.render(painter, QPoint())
