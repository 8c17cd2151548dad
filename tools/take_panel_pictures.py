"""Takes the pictures of the tutorial, and of the pages on filters, statistics and answers: panels and the search.

`python tools/take_panel_pictures.py [--theme light|dark] [--scale 1|2] [--folder docs/images]`. Needs no display.
"""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from satview.__main__ import main as run_command
from satview.base.time import TimeWindow

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication, QWidget

    from satview.gui.windows.main_window import MainWindow

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample_traces" / "dense-4cpu.kev"
PICTURED_FROM = 111_500  # of the dense sample: a message to a server that is folded, and its reply
SETTLED_AFTER_S = 0.5  # longer than the pause after typing and the rest of the view

RULES = """\
# what the disk driver does, and every slow message
DELALLCLASSES
ADDCLASS THREAD
ADDEVENT KERCALL MSG_SENDV
SETCLASSPID KERCALL {process}
ADDEVENTHANDLER KERCALLENTER MSG_SENDV WHERE arg.coid > 2
WHERE time > 1.2s
"""


class States:
    """Puts the window into one state after the other."""

    def __init__(self, app: QApplication, window: MainWindow) -> None:
        assert window.workspace is not None
        self.app, self.window, self.views = app, window, window.workspace
        self.panel, self.filters = self.views.panels["filter"], self.views.opened.filters

    def settle(self) -> None:
        """Wait until nothing is left to do."""
        view = self.views.area.view
        end_s = time.monotonic() + SETTLED_AFTER_S
        while time.monotonic() < end_s or (view.visible_rows() and not view.source.is_refined):
            self.app.processEvents()
            time.sleep(0.005)  # the workers need the interpreter

    def all(self) -> Iterator[tuple[str, QWidget]]:
        """Yield the name of each state and what shows it."""
        self.views.show_panel("filter")
        for states in (
            self._trees,
            self._conditions,
            self._chips,
            self._rules,
            self._search,
            self._statistics,
            self._plots,
            self._sql,
            self._answers,
            partial(self.late, "late", '["control-10ms"]\ndeadline = "1 ms"\n["plan-50ms"]\ndeadline = "50 ms"\n'),
        ):
            yield from states()
            self.filters.show_all()

    def _trees(self) -> Iterator[tuple[str, QWidget]]:
        panel, filters, trace = self.panel, self.filters, self.views.opened.trace
        sends = [code for code in trace.catalogue.find("MSG_SENDV") if trace.code_counts[code]]
        yield "filter-events", panel
        filters.only_codes([*sends, *trace.catalogue.find("THREADY"), *trace.catalogue.find("SND_MESSAGE")], "x")
        filters.set_form(sends, "fast")
        yield "filter-events-selected", panel
        filters.show_all()
        panel.tabs.setCurrentWidget(panel.threads)
        panel.threads.search.setText("adas")
        yield "filter-processes", panel
        panel.threads.search.setText("nobody")
        yield "filter-nothing-found", panel
        panel.threads.search.clear()
        menu = panel.presets.menu()
        next(action for action in menu.actions() if action.text() == "Top 3 by CPU").trigger()
        self.settle()
        yield "filter-top-cpu", self.window

    def _conditions(self) -> Iterator[tuple[str, QWidget]]:
        from PySide6.QtTest import QTest

        self.panel.tabs.setCurrentWidget(self.panel.events)
        line = self.panel.condition.line
        line.setFocus()
        QTest.keyClicks(line, "event == MSG_S")
        yield "filter-proposals", self.window
        line.setText("event == MSG_SENDV and duraton > 2ms")
        yield "filter-fault", self.panel
        line.setText("event == MSG_SENDV and duration > 2ms")
        yield "filter-counted", self.panel
        line.clear()

    def _chips(self) -> Iterator[tuple[str, QWidget]]:
        from satview.filters.passes import Effect

        filters = self.filters
        name = filters.add_pass("class == THREAD or event == MSG_SENDV")
        filters.add_pass("cpu == 1", effect=Effect.DIM)
        filters.add_pass("state == REPLY and length > 2ms", effect=Effect.MARK)
        filters.change_pass(filters.add_pass("priority > 20"), is_on=False)
        yield "filter-chips", self.window
        filters.combine(f"{name} or not B")
        yield "filter-combined", self.views.chips

    def _rules(self) -> Iterator[tuple[str, QWidget]]:
        from satview.gui.filters.rules_tab import WouldCaptureDialog

        panel, trace = self.panel, self.views.opened.trace
        process = next(name.rsplit("/", 1)[-1] for name in trace.processes.names if "devb" in name)
        panel.tabs.setCurrentWidget(panel.rules_page)
        editor = panel.rules.editor
        editor.replace_text(RULES.format(process=process))
        yield "filter-rules", panel
        editor.replace_text(RULES.format(process=process).replace("MSG_SENDV\nSET", "MSG_SENDW\nSET"))
        yield "filter-rules-fault", panel
        editor.replace_text(RULES.format(process=process))
        panel.rules.show_would_capture()
        self.settle()
        dialog = self.window.findChild(WouldCaptureDialog)
        assert dialog is not None
        yield "filter-would-capture", dialog
        dialog.close()

    def _search(self) -> Iterator[tuple[str, QWidget]]:
        search = self.views.opened.search
        search.find("event == MSG_SENDV and duration > 2ms")
        self._raise("results")
        yield "filter-search", self.window
        search.find("")

    def _statistics(self) -> Iterator[tuple[str, QWidget]]:
        statistics, book = self.views.panels["statistics"], self.views.opened.trace.catalogue
        self._raise("statistics")
        yield "statistics", self.window
        self.filters.only_codes([*book.find("MSG_SENDV"), *book.find("SYNC_MUTEX_LOCK")], "x")
        statistics.tabs.setCurrentIndex(5)
        statistics.follows.setChecked(True)
        yield "statistics-filter", statistics

    def _plots(self) -> Iterator[tuple[str, QWidget]]:
        from PySide6.QtCore import Qt

        plots = self.views.panels["plots"]
        self._raise("plots")
        self.window.resizeDocks([self.views.docks["plots"]], [340], Qt.Orientation.Vertical)
        while plots.load is None or plots.view.is_pending:  # pyqtgraph is imported in the background
            self.app.processEvents()
        yield "plots-load", self.window
        plots.tabs.setCurrentIndex(1)
        plots.measure.setCurrentIndex(plots.measure.findText("READY: wait for a CPU"))
        yield "plots-histogram", plots

    def _sql(self) -> Iterator[tuple[str, QWidget]]:
        panel = self.views.panels["sql"]
        self._raise("sql")
        for query, shown, name in (
            ("select cpu, start_ns, busy_cycles from load_per(100000000)", 1, "sql-plot"),
            (
                "select label, start_ns, length_ns from state join thread using (thread) where state = 'MUTEX'",
                2,
                "sql-lanes",
            ),
        ):
            panel.editor.setPlainText(query)
            panel.shown.setCurrentIndex(shown)
            panel.run()
            while panel.run_button.text() != "Run" or panel.reason.isVisible():
                self.app.processEvents()
            yield name, self.window
        panel.shown.setCurrentIndex(0)

    def _answers(self) -> Iterator[tuple[str, QWidget]]:
        opened, verdicts = self.views.opened, self.views.panels["verdicts"]
        self._raise("verdicts")
        self._raise("details")
        while opened.verdicts.answer is None:
            self.app.processEvents()
        verdicts.table.activated.emit(verdicts.model.index(0, 0))
        verdicts.model.unfold(0)
        yield "verdicts", self.window
        self.window.registry["go.why"].run()
        while opened.why.is_busy:
            self.app.processEvents()
        yield "why", self.window
        self._raise("events")
        exchange = next(row for row in range(len(opened.trace.events)) if self._begins_an_exchange(row))
        self.views.navigation.show_event(exchange)
        self.views.area.view.reveal_lane(opened.selection.lane)
        while opened.event_links.is_busy:
            self.app.processEvents()
        hops = opened.event_links.links.way
        times = opened.trace.events.time_cycles[[hops[0].from_row, hops[-1].to_row]].tolist()
        opened.viewport.fit(TimeWindow(times[0], times[1]))
        yield "cause-and-effect", self.window
        yield from self._path()
        yield from self._transactions()

    def _path(self) -> Iterator[tuple[str, QWidget]]:
        opened = self.views.opened
        verdict = opened.verdicts.answer.verdicts[0]
        lane, window = opened.lane_of_thread(verdict.threads[0]), TimeWindow(verdict.start_cycles, verdict.end_cycles)
        opened.lanes.reveal(lane)
        opened.viewport.fit(window)
        opened.select_at(lane, window.start + window.length // 2)
        opened.selection.set_range(window)
        self.views.area.view.reveal_lane(lane)
        self.window.registry["go.path"].run()
        while opened.path.is_busy:
            self.app.processEvents()
        opened.selection.set_range(None)
        yield "critical-path", self.window
        opened.path.forget()

    def _transactions(self) -> Iterator[tuple[str, QWidget]]:
        panel, opened = self.views.panels["transactions"], self.views.opened
        self._raise("transactions")
        while panel.view.answer is None or panel.view.is_busy:
            self.app.processEvents()
        panel.table.selectRow(0)
        panel.table.activated.emit(panel.model.index(0, 0))
        yield "transactions", self.window
        opened.selection.select(None, None, None)
        window, arrows = opened.viewport.window, self.views.area.view.arrows
        self.window.registry["view.arrows_all"].run()
        opened.viewport.fit(TimeWindow(window.start, window.start + window.length // 4))
        while not arrows.source.is_ready:
            self.app.processEvents()
        self._raise("events")
        yield "arrows", self.window
        self.window.registry["view.arrows_selection"].run()

    def late(self, name: str, said: str) -> Iterator[tuple[str, QWidget]]:
        """Show the worst round of the control loop, under deadlines as a timing file says them."""
        opened = self.views.opened
        with tempfile.TemporaryDirectory() as folder:
            timing = Path(folder) / "timing.toml"
            timing.write_text(said)
            opened.time_activities(str(timing))
            opened.lanes.show_classes(frozenset({"activities"}))
            self._raise("details")
            self._raise("late")
            panel = self.views.panels["late"]
            while panel.instance_view.answer is None or panel.instance_view.is_busy or opened.class_loader.is_busy:
                self.app.processEvents()
            panel.activities.chosen.emit(panel.instance_view.answer.late.learned.named("control-10ms"))
            while panel.instance_view.is_busy:
                self.app.processEvents()
            panel.timing.setText(timing.name)
            panel.instances.tabs.setCurrentIndex(1)
            worst = panel.instance_view.answer
            instance = worst.late.learned.instances.at(worst.positions[:1])
            opened.viewport.fit(TimeWindow(int(instance.start_cycles[0]), int(instance.end_cycles[0])), 1.5)
            bar = next(lane for lane in opened.timeline.lanes_of_class("activities")
                       if "control-10ms" in opened.timeline.infos[lane].title)  # fmt: skip
            opened.timeline.lane(bar)
            opened.select_at(bar, int(instance.start_cycles[0]))
            self.views.area.view.reveal_lane(bar)
            yield name, self.window
        opened.time_activities("")
        opened.lanes.show_classes(frozenset())

    def _begins_an_exchange(self, row: int) -> bool:
        """Return whether an event is a call that the dense sample answers by two messages within a few microseconds."""
        trace = self.views.opened.trace
        return row >= PICTURED_FROM and trace.spec(row).name == "MSG_SENDV" and trace.spec(row).class_name == "KER_CALL"

    def _raise(self, panel: str) -> None:
        self.views.show_panel(panel)


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--scale", type=int, choices=(1, 2), default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--trace", type=Path, default=SAMPLE)
    options = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    options.folder.mkdir(parents=True, exist_ok=True)
    _open(options.trace, options.theme, lambda states: _take(states, options.folder))
    with tempfile.TemporaryDirectory() as folder:
        recorded, predicted = Path(folder) / "late.kev", Path(folder) / "inherit.kev"
        run_command(shlex.split(f"tracelogger --workload automotive -w --cpus 3 -s 8 --seed 6 -f {recorded}"))
        run_command(shlex.split(f"whatif {recorded} --set 'lock 0x80d4390:inherit=yes' -o {predicted}"))
        _open(recorded, options.theme, partial(_take_late, name="tutorial-late", folder=options.folder))
        _open(predicted, options.theme, partial(_take_late, name="tutorial-predicted", folder=options.folder))
    return 0


def _open(trace: Path, theme: str, run: Callable[[States], None]) -> None:
    from satview.gui.windows.application import Application, make_qt_application, silence_offscreen
    from satview.gui.windows.command_window import Shared
    from satview.session.loading.files import RecentFiles
    from satview.session.session import Stage
    from satview.session.settings import Settings

    silence_offscreen()
    app = make_qt_application()
    settings = Settings(None)
    settings.set("window/theme", theme)
    application = Application(Shared(settings, RecentFiles(None, 0)))
    window = application.new_window()
    window.resize(1400, 860)
    window.session.open(trace)
    while window.session.stage is Stage.LOADING:
        app.processEvents()
    states = States(app, window)
    states.views.show_panel("filter")
    states.settle()
    run(states)
    application.close_all()


def _take(states: States, folder: Path) -> None:
    for name, widget in states.all():
        states.settle()
        widget.grab().save(str(folder / f"{name}.png"), "PNG", 0)  # 0: as small as can be


def _take_late(states: States, name: str, folder: Path) -> None:
    """Take the window with a capture of the tutorial, or the panel alone with a prediction."""
    for _, window in states.late(name, '["control-10ms"]\ndeadline = "2.5 ms"\n'):
        states.settle()
        is_predicted = name == "tutorial-predicted"
        (states.views.panels["late"] if is_predicted else window).grab().save(str(folder / f"{name}.png"), "PNG", 0)


if __name__ == "__main__":
    raise SystemExit(main())
