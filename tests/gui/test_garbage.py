"""Garbage is collected in the GUI thread, whichever thread allocates."""

from __future__ import annotations

import gc
import threading
import weakref

from satview.gui.windows import command_window
from satview.gui.windows.command_window import GuiThreadCollector


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
