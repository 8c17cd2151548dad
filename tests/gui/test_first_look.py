"""`satview FILE --range A..B --select N`, and links: the window opens there."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from satview.base.errors import UsageError
from satview.base.time import range_text
from satview.gui.widgets import LinePrompt
from satview.session.trace_link import TraceLink, link_to, parse_link
from tests.gui.conftest import part, settle
from tests.gui.hands import CONTROL_SHIFT, K, answer_prompt
from tests.helpers.scene import scene


def opened_with(application, qtbot, link):
    window = application.new_window()
    window.resize(1000, 700)
    application.open_links([link], window)
    qtbot.waitUntil(lambda: window.workspace is not None)
    settle(qtbot, window)
    return window


@pytest.mark.thorough
def test_range_and_event(application, qtbot, load, tmp_path):
    window = opened_with(application, qtbot, TraceLink(scene(tmp_path), "4us..9us", 12))
    opened, clock = window.session.opened, window.session.opened.trace.clock
    qtbot.waitUntil(lambda: opened.selection.event == 11)
    shown = opened.viewport.window
    assert (clock.ns(shown.start), clock.ns(shown.end)) == (4_000, 9_000)
    load(window, scene(tmp_path))  # opened again by hand: requested once
    assert window.session.opened.viewport.is_whole


@pytest.mark.thorough
def test_a_range_that_says_nothing_is_told_and_shows_all(application, qtbot, tmp_path):
    window = opened_with(application, qtbot, TraceLink(scene(tmp_path), "nonsense"))
    qtbot.waitUntil(lambda: "is not a range" in window.statusBar().currentMessage())
    assert window.session.opened.viewport.is_whole


@pytest.mark.thorough
def test_a_copied_link_leads_back_to_the_same_view(window, application, opened, view, qtbot, tmp_path):
    opened.viewport.jump(part(opened, 2_000, 9_000))
    opened.select_event(8, reveal=False)
    opened.selection.set_range(part(opened, 3_000, 4_000))
    qtbot.keyClick(view, K.Key_C, CONTROL_SHIFT)
    copied = QGuiApplication.clipboard().text()
    path = tmp_path / "scene.kev"
    shown = opened.viewport.window
    text = range_text(shown, opened.trace.clock)
    assert copied == f"{path}#t={text}&sel=9&range=0.000003s..0.000004s"
    opened.viewport.show_all()
    opened.selection.select(None, None, None)
    opened.selection.set_range(None)
    qtbot.keyClick(view, K.Key_O, CONTROL_SHIFT)
    prompt = window.findChild(LinePrompt)
    assert prompt.line.text() == copied
    qtbot.keyClick(prompt.line, K.Key_Return)
    assert opened.viewport.window == shown  # in the window that shows the file
    assert len(application.windows) == 1
    assert opened.selection.event == 8
    assert link_to(opened) == copied


@pytest.mark.thorough
def test_open_link_says_what_is_wrong_under_the_line(window, view, qtbot):
    QGuiApplication.clipboard().setText("")
    qtbot.keyClick(view, K.Key_O, CONTROL_SHIFT)
    prompt = answer_prompt(window, qtbot, "/nowhere/boot.kev#sel=2")
    assert prompt.error.text() == "There is no file '/nowhere/boot.kev'."


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("boot.kev", TraceLink("boot.kev")),
        ("a b.kev#t=1s..2s", TraceLink("a b.kev", "1s..2s")),
        ("'x.kev#t=-5s..&sel=12&range=25%..30%'", TraceLink("x.kev", "-5s..", 12, "25%..30%")),
        ("file:///tmp/a%20b.kev#sel=3", TraceLink("/tmp/a b.kev", "", 3)),
        ("x#1.kev", TraceLink("x#1.kev")),
        ("x#1.kev#sel=4", TraceLink("x#1.kev", "", 4)),
    ],
)
def test_links_are_read(text, link):
    found = parse_link(text)
    assert str(found.path) == str(link.path)
    assert (found.range_text, found.event, found.selected) == (link.range_text, link.event, link.selected)


def test_a_file_that_is_called_like_a_link_is_a_file(tmp_path):
    path = tmp_path / "x.kev#sel=4"
    path.write_bytes(b"")
    assert parse_link(str(path)) == TraceLink(path)


@pytest.mark.parametrize("text", ["", "x.kev#sel=-1", "x.kev#sel=1e3", "a" * 5000, "a\0b"])
def test_what_is_no_link_is_refused(text):
    with pytest.raises(UsageError):
        parse_link(text)
