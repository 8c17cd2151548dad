from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from satview.base.errors import Cancelled
from satview.events import wire
from satview.filters.expressions.expression import Expression
from satview.filters.passes import Effect, Pass
from satview.gui.filters.chips import of_event, proposals
from satview.session.filter_stack import count_hits
from satview.session.lanes.lane_overlay import LaneOverlay
from satview.timeline.spans import NO_EVENT, pixel_edges
from tests.filters.made import START_CYCLES, Maker, make_trace

USER_7 = wire.code(wire.WireClass.USER, 7)


def settled(opened, qtbot):
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    return opened.filters


def rows_that_fit(opened, text):
    return np.flatnonzero(Expression(text, opened.trace.release).mask(opened.trace)).tolist()


@pytest.mark.parametrize("chosen", [{"expression": "class == USREVENT"}, {"rules": "ADDCLASS USER"}], ids=str)
def test_a_condition_or_rules_hide_all_others(opened, qtbot, chosen):
    opened.filters.add_pass(**chosen)
    filters = settled(opened, qtbot)
    assert filters.rows.tolist() == rows_that_fit(opened, "class == USREVENT")
    assert filters.row_count == 2
    assert filters.view.counts == {"A": 2}


def test_dim_and_mark_hide_nothing(opened, qtbot):
    opened.filters.add_pass("class == USREVENT", effect=Effect.DIM)
    opened.filters.add_pass("cpu == 0", effect=Effect.MARK)
    filters = settled(opened, qtbot)
    assert filters.rows is None
    users = rows_that_fit(opened, "class == USREVENT")
    assert np.flatnonzero(~filters.view.dimmed).tolist() == users
    assert np.flatnonzero(filters.view.marked).tolist() == rows_that_fit(opened, "cpu == 0")


def test_check_boxes_can_dim(opened, qtbot):
    opened.filters.set_effect(Effect.DIM)
    opened.filters.show_codes([USER_7], False)
    filters = settled(opened, qtbot)
    assert filters.row_count == len(opened.trace.events)
    assert np.flatnonzero(filters.view.dimmed).tolist() == np.flatnonzero(opened.trace.events.code == USER_7).tolist()
    assert filters.codes.all()  # nothing is hidden, so lanes and mouse see everything


def test_undo_redo_and_remove(opened, qtbot):
    name = opened.filters.add_pass("class == USREVENT")
    assert settled(opened, qtbot).row_count == 2
    opened.filters.change_pass(name, is_inverted=True)
    assert settled(opened, qtbot).row_count == len(opened.trace.events) - 2
    opened.edits.undo()
    assert settled(opened, qtbot).row_count == 2
    opened.edits.undo()
    assert not settled(opened, qtbot).is_active
    opened.edits.redo()
    assert settled(opened, qtbot).row_count == 2
    opened.filters.remove_pass(name)
    assert settled(opened, qtbot).rows is None


def test_combination(opened, qtbot):
    opened.filters.add_pass("class == USREVENT")
    opened.filters.add_pass("class == KER_CALL")
    assert settled(opened, qtbot).row_count == 0  # both at once is impossible
    opened.filters.combine("A or B")
    assert settled(opened, qtbot).rows.tolist() == rows_that_fit(opened, "class in (USREVENT, KER_CALL)")
    opened.filters.change_pass("B", is_on=False)  # left out of the combination
    assert settled(opened, qtbot).rows.tolist() == rows_that_fit(opened, "class == USREVENT")


def test_threads_without_events_lose_their_lanes(opened, qtbot):
    client = opened.trace.threads.row(2, 1)
    opened.filters.add_pass("not (pid == 2 and tid == 1)")
    settled(opened, qtbot)
    assert opened.lane_of_thread(client) not in {row.index for row in opened.lanes.rows}


def test_failure_is_reported(opened, qtbot):
    with qtbot.waitSignal(opened.filters.failed) as reported:
        opened.filters.add_pass(rules="ADDCLASS NONSENSE")
    assert "NONSENSE" in reported.args[0]


def test_newest_filter_wins(opened, qtbot):
    for expression in ("cpu == 0", "cpu == 1", "class == USREVENT"):
        opened.filters.show_all()
        opened.filters.add_pass(expression)
    assert settled(opened, qtbot).row_count == 2


def test_cancelled_count_stops(opened):
    given = opened.filters.evaluator, Pass("x", "", "cpu == 0")
    with pytest.raises(Cancelled):
        count_hits(*given, lambda: True)
    assert count_hits(*given, lambda: False) == (len(rows_that_fit(opened, "cpu == 0")), "")


@pytest.mark.thorough
def test_every_proposal_fits_the_selected_event(opened):
    for event in range(len(opened.trace.events)):
        opened.select_event(event)
        found = proposals(opened)
        assert found
        for proposal in found:
            if proposal.what != "State":  # the interval's state may be another than the event's
                assert event in rows_that_fit(opened, proposal.expression), proposal


def test_proposals_for_texts_with_signs():
    maker = Maker()
    maker.text_event(wire.PROC_CREATE_NAME, 0, START_CYCLES, (1, 20), b'C:\\dir [1]*"a' + b"*" * 80)
    maker.text_event(wire.PROC_CREATE_NAME, 0, START_CYCLES + 20, (1, 21), b'C:\\dir 1xx"a' + b"*" * 80)
    trace = make_trace(maker)
    found = [proposal.expression for proposal in of_event(trace, 0) if proposal.what == "name"]
    assert [Expression(text, trace.release).mask(trace).tolist() for text in found] == [[True, False]], found


def test_highlights_follow_the_event_that_began_an_interval(opened, qtbot):
    opened.filters.add_pass("state == RUNNING")
    view = settled(opened, qtbot).view
    lane = opened.lane_of_thread(opened.trace.threads.row(2, 1))
    spans = opened.timeline.lane(lane).spans
    edges = pixel_edges(opened.viewport.limits, 500)
    values = opened.timeline.raster((lane,), opened.viewport.limits, 500, exact=True)
    before = set((values & 63).ravel().tolist())
    LaneOverlay(opened.timeline, view).hide((lane,), values, edges, True)
    shown = set((values & 63).ravel().tolist())
    running = {
        int(value)
        for value, event in zip(spans.value, spans.event, strict=True)
        if event < len(view.passing) and view.passing[event]
    }
    assert shown - {0} <= running | set(spans.value[spans.event >= len(view.passing)].tolist())
    assert before - shown


@pytest.mark.parametrize("effect", [Effect.HIDE, Effect.DIM, Effect.MARK])
def test_shares_are_those_of_the_intervals_that_pass(opened, qtbot, effect):
    """Each interval's time by hand; what no event began is never hidden, and fades if anything is there."""
    opened.filters.add_pass("state == RUNNING or state == REPLY", "", effect)
    view = settled(opened, qtbot).view
    overlay, whole = LaneOverlay(opened.timeline, view), opened.viewport.limits
    fits = rows_that_fit(opened, "state == RUNNING or state == REPLY")
    lanes = [info.index for info in opened.timeline.infos if info.thread]
    opened.timeline.build(lanes)
    assert len(lanes) > 1
    for lane in lanes:
        spans = opened.timeline.lane(lane).spans
        lengths = np.diff(np.append(spans.start_cycles, spans.end_cycles)).tolist()
        shown, plain = Counter(), Counter()
        for value, event, length in zip(spans.value.tolist(), spans.event.tolist(), lengths, strict=True):
            is_lone, passes = event == NO_EVENT, event in fits
            shown[value if effect is not Effect.HIDE or is_lone or passes else 0] += length
            plain[value if effect is Effect.MARK or passes or (is_lone and effect is Effect.HIDE) else 0] += length
        for made, expected in ((overlay.shown(lane, waits=True), shown), (overlay.plain(lane, waits=True), plain)):
            assert dict(zip(made.values.tolist(), made.totals(whole).tolist(), strict=True)) == +expected
