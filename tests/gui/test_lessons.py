"""Six lessons, each answered in the window by keys and clicks alone, as docs/answers.md says."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest

from satview.base.time import TimeWindow
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, all_texts, click_cell
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


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kind", "who", "answer"), fewer(LESSONS, 2))
def test_a_lesson_is_found_by_two_keys_and_a_click(name, kind, who, answer, lesson, empty_window, load, qtbot):
    window = load(empty_window, lesson(name))
    opened, workspace = window.session.opened, window.workspace
    QTest.keyClick(workspace.area.view, K.Key_V, CONTROL_SHIFT)
    table = workspace.panels["verdicts"].table
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None and table.model().rowCount() > 0, timeout=20_000)
    click_cell(table, next(row for row, texts in enumerate(all_texts(table.model())) if kind in texts[0]), x_px=60)
    thread = int(opened.trace.events.thread[opened.selection.event])
    assert thread in next(verdict for verdict in opened.verdicts.answer.verdicts if verdict.kind == kind).threads
    assert who is None or opened.trace.thread_name(thread) == who
    QTest.keyClick(workspace.area.view, K.Key_Y)
    qtbot.waitUntil(lambda: "Why " in workspace.panels["why"].as_text() and bool(opened.why.steps), timeout=20_000)
    assert answer in " ".join(step.says for step in opened.why.steps)


def test_y_is_about_the_moment_that_was_clicked(empty_window, load, qtbot):
    """A thread is ready all the time; another thread has the CPU at its beginning than at its end."""
    window = load(empty_window, SAMPLE.with_name("vendor-ker_calls-14.kev"))
    opened, view = window.session.opened, window.workspace.area.view
    moment = opened.trace.clock.cycles
    opened.viewport.jump(TimeWindow(moment(360_000), moment(1_220_000)))
    lane = opened.lane_of_thread(opened.trace.threads.row(1, 2))
    row = opened.lanes.row_of(lane)
    for at_ns, has_cpu in ((420_000, "pid 12302 1 has CPU 0"), (1_000_000, "pid 4 1 has CPU 0")):
        QTest.mouseClick(view, LEFT, pos=QPoint(int(view.scale.x(moment(at_ns))), row.y_px + row.height_px // 2))
        assert opened.selection.lane == lane
        QTest.keyClick(view, K.Key_Y)
        assert not opened.why.steps, "another moment is another question"
        qtbot.waitUntil(lambda: bool(opened.why.steps), timeout=20_000)
        assert has_cpu in opened.why.steps[0].says
