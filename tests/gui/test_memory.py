"""Memory: what a closed trace held is given back at once, and garbage is collected in the GUI thread alone."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from satview.gui.windows import command_window
from satview.gui.windows.command_window import GuiThreadCollector
from satview.session.session import Stage
from tests.helpers.collector import no_collector
from tests.helpers.scene import scene


def settle(qtbot):
    for _ in range(4):
        qtbot.wait(20)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.mark.thorough
def test_a_closed_trace_is_gone_without_the_collector(window, load, qtbot, tmp_path):
    load(window, scene(tmp_path))
    for panel in ("events", "statistics", "details", "filter", "plots"):
        window.workspace.show_panel(panel)
        qtbot.waitUntil(lambda panel=panel: window.workspace.panels[panel].isVisible())
    window.session.opened.select_event(5)
    window.session.opened.filters.add_pass("pid == 1")
    qtbot.wait(300)
    with no_collector():
        opened = window.session.opened
        dead = {
            "trace": weakref.ref(opened.trace),
            "lanes": weakref.ref(opened.timeline),
            "times": weakref.ref(opened.trace.events.time_cycles),
        }
        del opened
        window.session.close()
        settle(qtbot)
        assert window.session.stage is Stage.EMPTY
        assert {name for name, alive in dead.items() if alive() is not None} == set()


@pytest.mark.thorough
def test_plots_hold_no_closed_trace(window, load, qtbot, tmp_path):
    load(window, scene(tmp_path))
    window.workspace.toggle_panel("plots")
    qtbot.waitUntil(lambda: window.workspace.panels["plots"].plot is not None)
    window.workspace.panels["plots"].tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: window.workspace.panels["plots"].plot is window.workspace.panels["plots"].durations)
    with no_collector():
        times = weakref.ref(window.session.opened.trace.events.time_cycles)
        window.session.close()
        settle(qtbot)
        assert times() is None


@pytest.mark.thorough
def test_opening_another_trace_gives_the_first_one_back(window, load, qtbot, tmp_path):
    path = scene(tmp_path)
    load(window, path)
    with no_collector():
        for _ in range(3):
            times = weakref.ref(window.session.opened.trace.events.time_cycles)
            load(window, path)
            settle(qtbot)
            assert times() is None


class Node:
    """One object of a cycle."""


def cycle(threads: list[int]) -> None:
    """Make garbage that notes in which thread it is collected."""
    first, second = Node(), Node()
    first.other, second.other = second, first
    weakref.finalize(first, lambda: threads.append(threading.get_ident()))


def test_while_the_program_starts_nothing_is_collected(application, monkeypatch):
    threads: list[int] = []
    cycle(threads)
    frozen = []
    monkeypatch.setattr(command_window.time, "process_time", lambda: 1.0)
    monkeypatch.setattr(command_window.gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(command_window.gc, "get_count", lambda: (10**9, 0, 0))
    command_window.freeze_loaded_objects.cache_clear()
    application.findChild(GuiThreadCollector).collect()
    assert (frozen, threads) == ([True], [])
    command_window.freeze_loaded_objects()
    application.findChild(GuiThreadCollector).collect()
    assert threads == [threading.get_ident()]


def test_a_worker_that_allocates_collects_nothing(application, qtbot):
    assert not gc.isenabled()
    command_window.freeze_loaded_objects()
    threads: list[int] = []
    cycle(threads)
    worker = threading.Thread(target=lambda: [[object()] for _ in range(200_000)])
    worker.start()
    worker.join()
    assert threads == []
    for _ in range(11 * 11):  # until the oldest generation's turn
        held = [[] for _ in range(1_000)]
        application.findChild(GuiThreadCollector).collect()
        if threads:
            break
    assert len(held) == 1_000
    assert threads == [threading.get_ident()]
