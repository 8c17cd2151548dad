"""The tool bar says what the trace is and what stands out; each part leads to the panel that says more."""

from __future__ import annotations

import pytest

from satview.gui.theme import LIGHT
from tests.gui.conftest import DENSE
from tests.gui.hands import LEFT, colours
from tests.helpers.commands import satview as command
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

SYNC_SEM_POST = 84  # never blocks, so that its caller had the CPU


def texts(window):
    return {name: button.text() for name, button in window.workspace.summary.buttons.items() if button.isVisible()}


@pytest.fixture
def dense(empty_window, load, qtbot):
    window = load(empty_window, DENSE)
    opened = window.session.opened
    qtbot.waitUntil(
        lambda: opened.verdicts.answer is not None and opened.has_priorities.answer is not None, timeout=20_000
    )
    return window


@pytest.mark.thorough
def test_a_trace_is_named_with_what_stands_out(dense):
    assert texts(dense) == {
        "size": "7.049 s, 4 CPUs 54 % busy",
        "loss": "nothing lost",
        "verdict": "priority inversion 3 times, longest 3.814 ms",
    }
    assert LIGHT.error in colours(dense.workspace.summary.buttons["verdict"].grab().toImage())


@pytest.mark.thorough
def test_each_part_leads_to_its_panel(dense, qtbot):
    workspace, buttons = dense.workspace, dense.workspace.summary.buttons
    for name, panel in (("size", "statistics"), ("loss", "problems"), ("verdict", "verdicts")):
        qtbot.mouseClick(buttons[name], LEFT)
        qtbot.waitUntil(lambda panel=panel: workspace.panel_shows(panel))
    opened = dense.session.opened
    longest = opened.verdicts.answer.verdicts[0].occurrences[2]
    assert opened.viewport.window.start < longest.start_cycles < longest.end_cycles < opened.viewport.window.end


@pytest.mark.thorough
def test_what_takes_time_comes_later(empty_window, load, tmp_path, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 0)  # never by itself, as for a very long trace
    window = load(empty_window, DENSE)
    known = {"size": "7.049 s, 4 CPUs 54 % busy", "loss": "nothing lost"}  # the lanes of the CPUs say how busy
    qtbot.waitUntil(lambda: texts(window) == known, timeout=20_000)
    window.session.opened.verdicts.start()
    qtbot.waitUntil(lambda: "verdict" in texts(window), timeout=20_000)


@pytest.mark.thorough
def test_lost_data_is_said_in_the_colour_of_warnings(window, qtbot):
    button = window.workspace.summary.buttons["loss"]
    assert button.text() == "lost buffers: 4"
    assert button.property("state") == "warning"


@pytest.mark.thorough
def test_a_trace_without_priorities_says_what_to_capture(empty_window, load, tmp_path, qtbot):
    window = load(empty_window, TraceBuilder().time_event(0).state("RUNNING", 5, 2, 1).write(tmp_path / "fast.kev"))
    button = window.workspace.summary.buttons["lack"]
    qtbot.waitUntil(button.isVisible)
    assert button.text() == "no priorities: capture wide events of the class THREAD"
    qtbot.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: window.workspace.panel_shows("doctor"))


def test_a_trace_without_states_says_what_to_capture(empty_window, load, tmp_path, qtbot):
    """A call that lasts 500 of 10,000 shows that its CPU was busy then, and of the rest nothing: not 5 % busy."""
    trace = TraceBuilder().time_event(0).call(SYNC_SEM_POST, 5_000).exit(SYNC_SEM_POST, 5_500).call(11, 10_000)
    window = load(empty_window, trace.write(tmp_path / "calls.kev"))
    qtbot.waitUntil(lambda: bool(window.session.opened.timeline.lanes_of_cpus))
    window.workspace.summary.refresh()
    assert window.workspace.summary.buttons["lack"].text() == "no states of threads: capture the class THREAD"
    assert "busy" not in window.workspace.summary.buttons["size"].text()


@pytest.mark.thorough
def test_in_a_narrow_window_the_verdict_stays_and_another_trace_has_a_line_of_its_own(dense, qtbot, load, tmp_path):
    dense.resize(700, 600)
    qtbot.waitUntil(lambda: list(texts(dense)) == ["verdict"])
    button = dense.workspace.summary.buttons["verdict"]
    qtbot.waitUntil(lambda: button.width() >= button.sizeHint().width())
    dense.resize(1200, 800)
    qtbot.waitUntil(lambda: len(texts(dense)) == 3)
    load(dense, scene(tmp_path))
    bars = [child for child in dense.findChildren(type(dense.workspace.summary)) if child.isVisible()]
    assert bars == [dense.workspace.summary]
    assert texts(dense)["size"].startswith("20.00 \u00b5s, 2 CPUs")


@pytest.mark.thorough
def test_a_guess_is_named_beside_that_nothing_is_wrong(empty_window, load, tmp_path, qtbot):
    path = tmp_path / "guess.kev"
    assert command("tracelogger", "--release", "8.0", "-s", "1", "-f", path).returncode == 0
    load(empty_window, path)
    qtbot.waitUntil(lambda: empty_window.session.opened.verdicts.answer is not None, timeout=10_000)
    assert texts(empty_window)["verdict"] == "nothing wrong for certain, 1 verdict: waits-for-ever"
