"""File > Save events to a file, by keys and clicks."""

from __future__ import annotations

import time

import numpy as np
import pytest
from PySide6.QtTest import QTest

from satview.events import wire
from satview.formats.registry import open_trace
from satview.gui import dialogs, save_events
from satview.gui.save_events import SaveEventsDialog, write_events, write_list
from tests.gui.conftest import part
from tests.gui.hands import CONTROL_SHIFT, LEFT, K
from tests.helpers.kev import TraceBuilder, write_trace

MSG_SENDV = wire.code(wire.WireClass.KER_CALL, 11)


@pytest.fixture
def dialog(window, view, qtbot):
    """Return a function that opens the dialog."""

    def show():
        QTest.keyClick(view, K.Key_E, CONTROL_SHIFT)
        return window.findChild(SaveEventsDialog)

    yield show
    left = window.findChild(SaveEventsDialog)
    if left is not None:
        left.close()


def save(dialog, path, qtbot, monkeypatch):
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: path)
    QTest.mouseClick(dialog.save_button, LEFT)
    qtbot.waitUntil(lambda: dialog.message.text() != "", timeout=5_000)
    return dialog.message.text()


def choose(dialog, kind):
    dialog.kind.setCurrentIndex(dialog.kind.findData(kind))


@pytest.mark.thorough
def test_the_selected_range_as_a_trace(dialog, opened, tmp_path, qtbot, monkeypatch):
    opened.selection.set_range(part(opened, 1_000, 5_000))
    shown = dialog()
    assert shown.in_range.isChecked()
    assert shown.count.text() == "4 of 17 events"
    said = save(shown, tmp_path / "part.kev", qtbot, monkeypatch)
    assert said.startswith("Saved part.kev: 4 events, and ")
    saved = open_trace(tmp_path / "part.kev")
    names = [saved.spec(row).name for row in range(len(saved.events))]
    assert names[-4:] == ["THRUNNING", "MSG_SENDV", "THREPLY", "THRUNNING"]


@pytest.mark.thorough
def test_escape_stops_what_is_being_saved(dialog, tmp_path, monkeypatch, qtbot):
    stopped = []

    def write(_trace, _path, _kind, _rows, _window, is_cancelled, _report):
        end_s = time.monotonic() + 5
        while not is_cancelled() and time.monotonic() < end_s:
            time.sleep(0.01)
        stopped.append(is_cancelled())

    monkeypatch.setattr(save_events, "write_events", write)
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: tmp_path / "all.kev")
    shown = dialog()
    QTest.mouseClick(shown.save_button, LEFT)
    assert shown.stop_button.isVisible()
    QTest.keyClick(shown, K.Key_Escape)
    qtbot.waitUntil(lambda: stopped == [True], timeout=7_000)


@pytest.mark.thorough
def test_what_the_filter_shows_as_csv(dialog, opened, tmp_path, qtbot, monkeypatch):
    opened.filters.add_pass("event == MSG_SENDV")
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    shown = dialog()
    choose(shown, "csv")
    assert (shown.filtered.isChecked(), shown.in_range.isEnabled()) == (True, False)
    assert save(shown, tmp_path / "list.csv", qtbot, monkeypatch) == "Saved list.csv: 2 events."
    lines = (tmp_path / "list.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[1:4] for line in lines[1:]] == [["2000", "4294969296", "0"], ["9000", "4294976296", "7000"]]


@pytest.mark.thorough
def test_all_of_it_as_a_listing(dialog, tmp_path, qtbot, monkeypatch):
    shown = dialog()
    choose(shown, "txt")
    assert save(shown, tmp_path / "all.txt", qtbot, monkeypatch) == "Saved all.txt: 17 events."
    assert sum(line.startswith("t:") for line in (tmp_path / "all.txt").read_text("utf-8").splitlines()) == 17


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_an_event_without_end_is_said_to_be_left_out(tmp_path, kind):
    """Of two events of six words, the last slot of the second one never came."""
    builder = TraceBuilder().time_event(0).event(MSG_SENDV, 100, range(6)).event(MSG_SENDV, 200, range(6))
    trace = open_trace(write_trace(tmp_path / "cut.kev", builder.writer.slots()[:-1]))
    rows, done = np.flatnonzero(trace.events.code == MSG_SENDV).astype(np.uint32), lambda *_: False
    assert (len(rows), len(trace.truncated)) == (2, 1)
    says = "1 event; left out, as by the vendor's printer: 1 event without end"
    assert write_events(trace, tmp_path / "x", kind, rows, None, done, done) == f"x: {says}"
    assert write_list(trace, tmp_path / "x", rows, done, done) == f"Wrote {says}"


@pytest.mark.thorough
def test_the_trace_itself_is_never_replaced(dialog, opened, qtbot, monkeypatch):
    before = opened.trace.path.read_bytes()
    said = save(dialog(), opened.trace.path, qtbot, monkeypatch)
    assert said.startswith("Not saved: ")
    assert opened.trace.path.read_bytes() == before


@pytest.mark.thorough
def test_no_event_is_nothing_to_save(dialog, opened):
    opened.selection.set_range(part(opened, 17_000, 18_000))
    shown = dialog()
    assert not shown.save_button.isEnabled()
    QTest.mouseClick(shown.in_range, LEFT)
    assert shown.save_button.isEnabled()
