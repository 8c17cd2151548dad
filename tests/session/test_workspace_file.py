"""A saved session as a file: files of earlier versions open, and whatever is wrong with one is said in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from satview.base.shared_file import DamagedFileError
from satview.filters.passes import Effect, Pass
from satview.session.lanes.lane_arrangement import GroupBy, SortBy
from satview.session.workspace_file import (
    CodeRange,
    ComparedState,
    FloatingPanel,
    GroupState,
    OwnedLane,
    OwnedThread,
    PanelGroup,
    SelectionState,
    TraceSign,
    WorkspaceState,
    from_json,
    from_text,
    to_json,
    to_text,
)

LANES = """{"lanes": [{"kind": "cpu", "cpu": 1, "pid": -1, "tid": -1, "process": "", "thread": ""},
  {"kind": "process", "cpu": -1, "pid": 2, "tid": -1, "process": "client", "thread": ""},
  {"kind": "process", "cpu": -1, "pid": 3, "tid": -1, "process": "server", "thread": ""},
  {"kind": "thread", "cpu": -1, "pid": 3, "tid": 1, "process": "server", "thread": ""}],
 "open": [], "closed": [1], "hidden": [0], "pinned": [3], "hides_empty": false, "sort": "cpu", "order": [2, 1],
 "group": "pattern", "patterns": "Servers: ser*", "groups": [{"title": "Servers", "members": [2]}],
 "closed_groups": ["Servers"], "classes": ["paths"], "labels": ["state"], "shows_kinds": false}"""
VIEW = """{"start_cycles": 4294968296, "end_cycles": 4294976796, "start_ns": 1000, "end_ns": 9500, "width_px": 1000,
 "top": ["cpu", 0, -1, -1], "top_px": 2, "is_whole": false}"""
# As satview wrote it before msgspec read it.
WRITTEN = f"""{{"satview_session": 1, "trace": {{"path": "/traces/scene.kev", "size": 4096, "head_bytes": 64,
 "head": "ab12"}},
"view": {VIEW},
"selection": {{"event": 5, "lane": ["thread", -1, 2, 1], "span_start": null, "is_interval": false,
 "range_start": 4294969296, "range_end": 4294971296, "cursor_a": 4294970296, "cursor_b": 4294974296}},
"compared": {{"path": "/traces/after.kev", "first_cycles": 12, "second_cycles": 40, "aligned_by": "the first event",
 "is_linked": false}},
"user_events": "/traces/events.xml", "timing": "timing.toml",
"lanes": {LANES},
"filter": {{"hidden_codes": [{{"first": 0, "last": 4100}}, {{"first": 4102, "last": 32767}}], "shows": false,
 "threads": [{{"row": 2, "pid": 3, "tid": 1, "process": "server", "thread": "main"}}], "effect": "hide",
 "passes": [{{"name": "A", "rules": "", "expression": "event != BUFFER", "effect": "dim", "is_on": true,
 "is_inverted": false}}], "combination": "not A", "forms": [{{"code": 5, "is_wide": true}}]}},
"panels": {{"layout": {{"groups": [{{"area": "right", "tabs": ["filter", "marks"], "front": "filter",
 "x_px": 700, "y_px": 40, "width_px": 300, "height_px": 500}}],
 "floating": [{{"name": "sql", "x_px": 40, "y_px": 60, "width_px": 420, "height_px": 300}}], "hidden": ["doctor"]}},
 "values": {{"statistics": {{"tabs": 2, "follows": true, "sort": "-time"}}}}, "search": "MSG_SENDV", "finds": true}},
"second": {{"view": {VIEW}, "lanes": {LANES}, "is_linked": false}}}}"""


def changed(place: str, value: Any) -> Any:
    """Return the parsed file with another value at a place such as `lanes.lanes.3.pid`."""
    content = json.loads(WRITTEN)
    *folders, name = place.split(".")
    part = content
    for folder in folders:
        part = part[int(folder) if folder.isdigit() else folder]
    part[name] = value
    return content


def test_a_file_written_before_means_what_it_meant_and_is_written_alike():
    state = from_json(json.loads(WRITTEN))
    assert json.loads(json.dumps(to_json(state))) == json.loads(WRITTEN)
    assert state.trace == TraceSign("/traces/scene.kev", 4096, 64, "ab12")
    assert state.view is not None
    assert (state.view.end_cycles, state.view.top, state.view.top_px) == (4294976796, ("cpu", 0, -1, -1), 2)
    assert state.selection == SelectionState(
        5, ("thread", -1, 2, 1), None, False, 4294969296, 4294971296, 4294970296, 4294974296
    )
    assert state.compared == ComparedState("/traces/after.kev", 12, 40, "the first event", False)
    lanes = state.lanes
    assert lanes is not None
    assert lanes.lanes[3] == OwnedLane(3, 1, "server", "", "thread", -1)
    assert (lanes.hidden, lanes.pinned, lanes.order) == ((0,), (3,), (2, 1))
    assert (lanes.sort, lanes.group, lanes.groups) == (SortBy.CPU, GroupBy.PATTERN, (GroupState("Servers", (2,)),))
    assert state.filter is not None
    assert state.filter.hidden_codes == (CodeRange(0, 4100), CodeRange(4102, 32767))
    assert state.filter.threads == (OwnedThread(3, 1, "server", "main", 2),)
    assert state.filter.passes == (Pass("A", "", "event != BUFFER", Effect.DIM),)
    assert state.filter.stack().combination == "not A"
    assert state.panels is not None
    assert state.panels.layout is not None
    assert state.panels.layout.groups == (PanelGroup("right", ("filter", "marks"), "filter", 700, 40, 300, 500),)
    assert state.panels.layout.floating == (FloatingPanel("sql", 40, 60, 420, 300),)
    assert state.panels.values == {"statistics": {"tabs": 2, "follows": True, "sort": "-time"}}
    assert state.second is not None
    assert (state.second.view, state.second.lanes) == (state.view, lanes)
    assert state.user_events == "/traces/events.xml"
    assert state.timing == "timing.toml"


def test_what_a_file_does_not_say_has_its_usual_value():
    content = changed("lanes", {"lanes": [{"kind": "cpu", "cpu": 0}], "hidden": [0]})
    lanes = from_json(content).lanes
    assert lanes is not None
    assert lanes.lanes[0].key == ("cpu", 0, -1, -1)
    assert (lanes.labels, lanes.sort, lanes.group) == (None, SortBy.TRACE, GroupBy.PROCESS)
    assert from_json({"satview_session": 1}) == WorkspaceState()
    assert from_json({"satview_session": 1, "of_tomorrow": [1]}) == WorkspaceState()


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("lanes.lanes.3.pid", "x", "lanes.lanes[3].pid: expected a whole number, got text"),
        ("lanes.lanes.3.pid", 2**63, "lanes.lanes[3].pid: expected a whole number <= 9223372036854775807"),
        ("lanes.lanes.3.pid", 1.0, "lanes.lanes[3].pid: expected a whole number, got a fraction"),
        ("lanes.lanes.3.kind", "x" * 100_001, "lanes.lanes[3].kind: expected text of length <= 100000"),
        ("lanes.pinned", [99], "lanes: there is no lane 99"),
        ("lanes.pinned", [-1], "lanes.pinned[0]: expected a whole number >= 0"),
        ("lanes.pinned", [0] * 1_000_001, "lanes.pinned: expected a list of length <= 1000000"),
        ("lanes.sort", "x\n\u202e", r"lanes.sort: invalid enum value 'x\n\u202e'"),
        ("second.lanes.groups.0.members", [4], "second.lanes: there is no lane 4"),
        ("lanes.sort", "\ud800", r"'\ud800' is not text"),
        ("lanes.\ud800", 1, r"'\ud800' is not text"),
        ("view.top", ["cpu", 0, 1], "view.top: expected a list of length 4, got 3"),
        ("view.width_px", 0, "view.width_px: expected a whole number >= 1"),
        ("view.end_cycles", 5, "view: it ends before it begins"),
        ("trace.size", True, "trace.size: expected a whole number, got true or false"),
        ("trace.size", -1, "trace.size: expected a whole number >= 0"),
        ("compared.first_cycles", 1 << 63, "compared.first_cycles: expected a whole number <= 4611686018427387904"),
        ("filter.hidden_codes.1.last", 32768, "filter.hidden_codes[1].last: expected a whole number <= 32767"),
        ("filter.passes.0.rules", "x" * 100_001, "filter.passes: a text has more than 100,000 characters"),
        ("filter.combination", "B", "filter: column 1: there is no filter 'B'"),
        ("panels.layout.groups.0.area", "x", "panels.layout.groups[0].area: invalid enum value 'x'"),
        ("panels.layout.groups.0.x_px", 32769, "panels.layout.groups[0].x_px: expected a whole number <= 32768"),
        ("panels.finds", 1, "panels.finds: expected true or false, got a whole number"),
        ("selection", [], "selection: expected an object or nothing, got a list"),
        ("satview_session", 2, "a newer satview wrote it"),
        ("satview_session", "1", "it holds no session"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(place, value, says):
    with pytest.raises(DamagedFileError) as refused:
        from_json(changed(place, value))
    assert str(refused.value) == says


def test_numbers_and_texts_at_their_limits_are_read():
    state = from_json(changed("lanes.lanes.3.pid", -(2**63 - 1)))
    assert state.lanes is not None
    assert state.lanes.lanes[3].pid == -9223372036854775807
    assert from_json(changed("user_events", "x" * 100_000)).user_events == "x" * 100_000
    assert from_json(changed("user_events", "/caf\udce9.xml")).user_events == "/caf\udce9.xml", "a path in Latin-1"


def test_the_panels_of_a_setting():
    layout = from_json(json.loads(WRITTEN)).panels.layout
    assert from_text(to_text(layout)) == layout
    for text in ("", "{", "[]", '{"groups": [{"area": "middle"}]}', '{"hidden": "doctor"}'):
        assert from_text(text) is None
