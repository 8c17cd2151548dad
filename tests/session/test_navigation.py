from __future__ import annotations

import pytest

from satview.base.errors import UsageError
from satview.linkage.calls import partners
from satview.session.commands import ON
from satview.session.navigation import Navigation

CLIENT_1 = 3


@pytest.fixture
def moves(opened):
    return Navigation(opened)


def name(opened):
    return opened.trace.spec(opened.selection.event).name


def test_filtered_events_are_passed_over(opened, moves, ns):
    code = int(opened.trace.catalogue.find("KER_CALL/MSG_SENDV")[0])
    opened.filters.show_codes(list(opened.trace.catalogue.find("MSG_SENDV")), False)
    assert not opened.filters.codes[code]
    opened.select_at(CLIENT_1, ns(1_500))
    moves.step_event(ON)
    assert name(opened) == "THREPLY"


def test_long_traces_are_not_searched_for_pairs_while_the_window_waits(opened, moves, monkeypatch):
    monkeypatch.setattr("satview.session.navigation._AT_ONCE", 0)
    for limit in ("_PAIRS_AT_ONCE", "LINKS_AT_ONCE"):
        monkeypatch.setattr(f"satview.session.open_trace.{limit}", 0)
    monkeypatch.setattr("satview.session.tasks.Task.start", lambda *_: None)  # it would make them meanwhile
    moves.show_position("2us")
    with pytest.raises(UsageError, match="in a moment"):
        moves.show_partner()
    assert name(opened) == "MSG_SENDV"
    partners(opened.trace)
    moves.show_partner()
    assert opened.trace.clock.ns(int(opened.trace.events.time_cycles[opened.selection.event])) == 9_000


def test_focus_centres_an_event_then_returns(opened, moves, ns):
    viewport = opened.viewport
    viewport.zoom(0.5, ns(4_000))
    before = viewport.window
    opened.selection.select(opened.trace.events.time_cycles.tolist().index(ns(9_000)), None, None)
    moves.focus()
    assert viewport.window.length == before.length
    assert abs(viewport.window.start + viewport.window.length // 2 - ns(9_000)) <= 1
    moves.focus()
    assert viewport.window == before


def test_event_by_number_is_selected_in_its_lane(opened, moves):
    moves.show_position("#1")
    assert opened.selection.event == 0
    with pytest.raises(UsageError, match="there is no event"):
        moves.show_position("#9999")
