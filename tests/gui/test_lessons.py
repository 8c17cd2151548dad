"""Six lessons, each answered in the window by keys and clicks alone, as docs/answers.md says."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from satview.__main__ import main

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
    for name, *_ in LESSONS:
        paths[name] = folder / f"{name}.kev"
        main(["tracelogger", "--workload", name, "-w", "-f", str(paths[name])])  # some programs get stuck: that is 1
    return paths


def click(tree, item):
    """Click an item of a tree with the mouse."""
    position = tree.visualItemRect(item).center()
    QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, position.y()))


@pytest.mark.parametrize(("name", "kind", "who", "answer"), LESSONS, ids=[name for name, *_ in LESSONS])
def test_a_lesson_is_found_by_two_keys_and_a_click(name, kind, who, answer, captured, empty_window, load, qtbot):
    window = load(empty_window, captured[name])
    opened, work = window.session.opened, window.workspace
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(work.area.view, Qt.Key.Key_V, both)
    qtbot.waitUntil(lambda: opened.verdicts.found is not None, timeout=20_000)
    tree = work.panels["verdicts"].tree
    qtbot.waitUntil(lambda: tree.topLevelItemCount() > 0)
    item = next(tree.topLevelItem(row) for row in range(tree.topLevelItemCount())
                if tree.topLevelItem(row).text(0) == kind)  # fmt: skip
    click(tree, item)
    verdict = next(verdict for verdict in opened.verdicts.found.verdicts if verdict.kind == kind)
    thread = int(opened.trace.events.thread[opened.selection.event])
    assert thread in verdict.threads
    if who is not None:
        assert opened.trace.thread_name(thread) == who
    assert opened.viewport.window.start <= verdict.start_cycles < opened.viewport.window.end
    QTest.keyClick(work.area.view, Qt.Key.Key_Y)
    qtbot.waitUntil(lambda: "Why " in work.panels["details"].as_text() and bool(opened.why.steps), timeout=20_000)
    assert answer in " ".join(step.says for step in opened.why.steps)
