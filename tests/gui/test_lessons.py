"""Six lessons, each answered in the window by keys and clicks alone, as docs/answers.md says."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from satview.__main__ import main
from satview.base.time import TimeWindow
from tests.helpers.commands import SAMPLE
from tests.helpers.extent import fewer

# Workload, kind of the first verdict, who suffers, a part of the answer to Y there.
LESSONS = (
    ("deadlock", "deadlock", "deadlock 2 (forwards)", "waits in MUTEX"),
    ("inversion", "priority-inversion", "high 1 (high)", "waits in MUTEX"),
    ("client-server", "server-saturation", None, "serves a message of client"),
    ("lost-wakeup", "lost-wakeup", None, "CONDVAR"),
    ("starvation", "starvation", None, "is ready since"),
    ("nested-inversion", "priority-inversion", "high 1", "waits in REPLY"),
)


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("lessons"), {}
    for name, *_ in fewer(LESSONS, 2):
        paths[name] = folder / f"{name}.kev"
        main(["tracelogger", "--workload", name, "-w", "-f", str(paths[name])])  # some programs get stuck: that is 1
    return paths


def click(table, index):
    """Click a row of a table with the mouse, right of the sign that unfolds it."""
    position = table.visualRect(index).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, position.y()))


@pytest.mark.parametrize(("name", "kind", "who", "answer"), fewer(LESSONS, 2))
def test_a_lesson_is_found_by_two_keys_and_a_click(name, kind, who, answer, captured, empty_window, load, qtbot):
    window = load(empty_window, captured[name])
    opened, workspace = window.session.opened, window.workspace
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(workspace.area.view, Qt.Key.Key_V, both)
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None, timeout=20_000)
    table = workspace.panels["verdicts"].table
    model = table.model()
    qtbot.waitUntil(lambda: model.rowCount() > 0)
    click(table, next(model.index(row, 0) for row in range(model.rowCount()) if kind in model.index(row, 0).data()))
    verdict = next(verdict for verdict in opened.verdicts.answer.verdicts if verdict.kind == kind)
    thread = int(opened.trace.events.thread[opened.selection.event])
    assert thread in verdict.threads
    if who is not None:
        assert opened.trace.thread_name(thread) == who
    worst = max(verdict.occurrences, key=lambda case: case.end_cycles - case.start_cycles)
    assert opened.viewport.window.start <= worst.start_cycles < worst.end_cycles <= opened.viewport.window.end
    QTest.keyClick(workspace.area.view, Qt.Key.Key_Y)
    qtbot.waitUntil(lambda: "Why " in workspace.panels["why"].as_text() and bool(opened.why.steps), timeout=20_000)
    assert answer in " ".join(step.says for step in opened.why.steps)


def test_y_is_about_the_moment_that_was_clicked(empty_window, load, qtbot):
    """A thread is ready all the time; another thread has the CPU at its beginning than at its end."""
    window = load(empty_window, SAMPLE.with_name("vendor-ker_calls-14.kev"))
    opened, view = window.session.opened, window.workspace.area.view
    thread = opened.trace.threads.row(1, 2)
    moment = opened.trace.clock.cycles
    opened.viewport.jump(TimeWindow(moment(360_000), moment(1_220_000)))
    lane = opened.lane_of_thread(thread)
    row = next(row for row in opened.lanes.rows if row.index == lane)
    for at_ns, has_cpu in ((420_000, "pid 12302 1 has CPU 0"), (1_000_000, "pid 4 1 has CPU 0")):
        x = view.scale.x(moment(at_ns))
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(int(x), row.y_px + row.height_px // 2))
        assert opened.selection.lane == lane
        QTest.keyClick(view, Qt.Key.Key_Y)
        assert not opened.why.steps, "another moment is another question"
        qtbot.waitUntil(lambda: bool(opened.why.steps), timeout=20_000)
        assert has_cpu in opened.why.steps[0].says
