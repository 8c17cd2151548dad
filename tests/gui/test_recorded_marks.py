"""A file of a flight recorder opens at its mark, the first time it is shown."""

import pytest

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.session.state_files import StateFiles
from tests.capture.test_flight_recorder import MS, jobs

RULES = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP'


@pytest.fixture
def state_files(tmp_path):
    return StateFiles(tmp_path / "views", tmp_path / "sessions")


@pytest.fixture
def incident(tmp_path):
    """Return a file whose mark is in its second half."""
    options = LoggerOptions(is_ring=True, kernel_buffers=4)
    lates = [number == 120 for number in range(160)]
    run(
        Capture(jobs(lates, 5 * MS), duration_ns=1500 * MS, options=options, rules_text=RULES),
        tmp_path / "incident.kev",
    )
    return tmp_path / "incident.kev"


def test_a_recording_opens_at_its_mark_and_later_where_it_was_left(application, load, incident, qtbot):
    window = load(application.new_window(), incident)
    opened = window.session.opened
    (mark,) = opened.marks
    assert mark.text == "late"
    assert opened.marks.selected == mark
    shown = opened.viewport.window
    assert shown.start < mark.start_cycles < shown.end
    assert shown.length <= opened.trace.window.length // 9  # a tenth of it, at whole pixels
    assert opened.trace.events.time_cycles[opened.selection.event] == mark.start_cycles
    assert [*incident.parent.glob("*.marks.*")] == []  # it is in the trace, and not beside it
    opened.viewport.jump(opened.trace.window)
    with qtbot.waitSignal(window.destroyed):
        window.close()
    again = load(application.new_window(), incident).session.opened
    assert [other.text for other in again.marks] == ["late"]
    assert again.viewport.window.length > 0.99 * again.trace.window.length  # at whole pixels


@pytest.mark.thorough
def test_a_recorded_mark_can_be_removed_from_view(empty_window, load, incident):
    marks = load(empty_window, incident).session.opened.marks
    (mark,) = marks
    marks.remove(mark)
    assert len(marks) == 0
    assert [*incident.parent.glob("*.marks.*")] == []
