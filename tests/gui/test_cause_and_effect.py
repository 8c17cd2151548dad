"""Following links with `[` and `]`, and what the details say of them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtTest import QTest

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.linkage import messages
from satview.session import open_trace
from satview.timeline.lane_info import LaneKind
from tests.helpers.kev import START, TraceBuilder

CALLS = call_numbers(Release.QNX_7)


def exchange(folder):
    builder = TraceBuilder().time_event(0).process_name(1, 10, "client").process_name(2, 20, "server")
    builder.state("RUNNING", 50, 20, 1).call(CALLS["MSG_RECEIVEV"], 60, (3, 0)).state("RECEIVE", 70, 20, 1)
    builder.state("RUNNING", 100, 10, 1).call(CALLS["MSG_SENDV"], 110, (0x40000001, 0))
    builder.event(messages.SEND, 120, (0x40000001, 20))
    builder.state("REPLY", 130, 10, 1).state("RUNNING", 131, 20, 1)
    builder.exit(CALLS["MSG_RECEIVEV"], 140, (0x40000001, 0)).event(messages.RECEIPT, 150, (0x40000001, 20))
    return builder.write(folder / "exchange.kev")


@pytest.fixture
def window(empty_window, load, tmp_path):
    return load(empty_window, exchange(tmp_path))


@pytest.fixture
def times(opened):
    """When events are, from the start of the trace; event 110 is found by `times.searchsorted(110)`."""
    return opened.trace.events.time_cycles - opened.trace.clock.start_cycles


@pytest.mark.thorough
def test_brackets_follow_a_message_and_back(window, opened, view, times):
    opened.select_event(int(times.searchsorted(110)))
    way = []
    for key in "]]][[":
        QTest.keyClick(view, key)
        way.append(int(times[opened.selection.event]))
    assert way == [120, 150, 150, 120, 110]
    QTest.keyClick(view, Qt.Key.Key_BracketLeft)
    assert int(times[opened.selection.event]) == 110
    assert "Nothing in the trace shows" in window.statusBar().currentMessage()


def test_details_of_a_send_lead_to_its_receipt(window, opened, times):
    panel = window.workspace.panels["details"]
    opened.select_event(int(times.searchsorted(110)))
    text = panel.as_text()
    assert "Cause and effect" in text
    for part in ("Waits for", "server 1", "The wait lasts to the end of the trace."):
        assert part in text
    panel.browser.anchorClicked.emit(QUrl(f"event:{int(times.searchsorted(120))}"))
    assert int(times[opened.selection.event]) == 120
    assert "REC_MESSAGE" in panel.as_text() or "RMESSAGE" in panel.as_text()


@pytest.mark.thorough
def test_arrow_leads_from_the_client_to_the_server_lane(opened, view, times):
    before = view.grab().toImage()
    opened.select_event(int(times.searchsorted(120)))
    hop = next(hop for hop in opened.event_links.links.way if times[hop.from_row] == 120)
    assert int(times[hop.to_row]) == 150
    rows = {row.index: row for row in view.visible_rows()}
    ends = [(view.scale.x(int(opened.trace.events.time_cycles[event])), rows[opened.lane_of_event(event)])
            for event in (hop.from_row, hop.to_row)]  # fmt: skip
    (x1, first), (x2, second) = ends
    y1, y2 = (row.y_px - view.scroll_px + row.height_px * 0.555 for row in (first, second))
    after = view.grab().toImage()
    x, y = round((x1 + x2) / 2), round((y1 + y2) / 2)
    darkest = min(after.pixelColor(x + step, y).lightness() for step in (-1, 0, 1))
    assert darkest + 15 < min(before.pixelColor(x + step, y).lightness() for step in (-1, 0, 1))
    opened.select_event(int(times.searchsorted(1)))
    assert opened.event_links.links.way == ()


@pytest.mark.thorough
def test_links_of_a_long_trace_come_from_the_background(window, opened, times, qtbot, monkeypatch):
    monkeypatch.setattr(open_trace, "LINKS_AT_ONCE", 0)
    panel = window.workspace.panels["details"]
    opened.select_event(int(times.searchsorted(110)))
    assert opened.event_links.is_busy
    assert "Cause and effect" not in panel.as_text()
    with qtbot.waitSignal(opened.event_links.changed, timeout=10_000):
        pass
    assert "server 1" in panel.as_text()


@pytest.mark.thorough
def test_a_click_on_a_name_in_the_details_goes_to_its_lane_or_event(empty_window, load, tmp_path, qtbot):
    builder = TraceBuilder().time_event(0).process_name(1, 10, "client").process_name(2, 20, "server")
    builder.state("RUNNING", 1_000, 20, 1).call(14, 2_000, (3, 0)).state("RECEIVE", 3_000, 20, 1)
    builder.state("RUNNING", 4_000, 10, 1).call(11, 5_000, (0x40000001, 0)).event(wire.code(7, 0), 6_000, (7, 20))
    builder.state("REPLY", 7_000, 10, 1).state("RUNNING", 7_100, 20, 1).exit(14, 8_000, (7, 0))
    builder.event(wire.code(7, 2), 8_100, (7, 20)).call(15, 9_000, (7, 0)).event(wire.code(7, 10), 9_500, (1, 10))
    window = load(empty_window, builder.write(tmp_path / "names.kev"))
    opened, panel = window.session.opened, window.workspace.panels["details"]
    row = {int(time): row for row, time in enumerate(opened.trace.events.time_cycles - START)}
    opened.select_event(row[5_000])
    assert "0x40000001  to server, channel 3" in panel.as_text()
    server = opened.trace.processes.row(20)
    assert f'href="process:{server}"' in panel.browser.toHtml()
    panel.browser.anchorClicked.emit(QUrl(f"process:{server}"))
    lane = opened.timeline.infos[opened.selection.lane]  # that of its only thread, which stands for it
    assert (lane.process, lane.kind) == (server, LaneKind.THREAD)
    opened.select_event(row[9_000])
    assert "message of client 1" in panel.browser.toPlainText()
    panel.browser.anchorClicked.emit(QUrl(f"event:{row[6_000]}"))
    assert opened.selection.event == row[6_000]
    client = opened.trace.threads.row(10, 1)
    panel.browser.anchorClicked.emit(QUrl(f"thread:{client}"))
    assert opened.selection.lane == opened.lane_of_thread(client)
    panel.browser.anchorClicked.emit(QUrl("thread:99"))  # a link in text that somebody pasted leads nowhere
    assert opened.selection.lane == opened.lane_of_thread(client)
