"""States of windows as JSON files, and back. Every value is checked when it is read, and reading runs no code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from satview.base.checked_json import LARGEST, Fields
from satview.base.errors import UsageError
from satview.base.shared_file import DamagedFileError
from satview.events.wire import CODE_COUNT
from satview.filters.views.passes import Effect, Pass, PassStack
from satview.session.lanes.lane_arrangement import (
    GroupBy,
    Label,
    LaneArrangement,
    LaneGroup,
    SortBy,
    labels_in,
)
from satview.session.lanes.remap import LaneKey
from satview.session.panel_layout import layout_of
from satview.session.workspace_state import (
    ComparedState,
    FilterPart,
    LanesState,
    OwnerName,
    PanelsState,
    SecondState,
    SelectionState,
    TraceSign,
    ViewState,
    WorkspaceState,
)

KEY: Final = "satview_session"
VERSION: Final = 1
FILE_BYTES_MAX: Final = 16 << 20


def to_json(state: WorkspaceState) -> dict[str, Any]:
    """Return what a file holds."""
    content: dict[str, Any] = {KEY: VERSION}
    for name in ("trace", "view", "selection", "compared"):
        part = getattr(state, name)
        if part is not None:
            content[name] = asdict(part)
    if state.user_events is not None:
        content["user_events"] = state.user_events
    if state.lanes is not None:
        content["lanes"] = _lanes_to_json(state.lanes)
    if state.filter is not None:
        content["filter"] = _filter_to_json(state.filter)
    if state.panels is not None:
        content["panels"] = asdict(state.panels)
    if state.second is not None:
        content["second"] = {
            "view": asdict(state.second.view),
            "lanes": _lanes_to_json(state.second.lanes),
            "is_linked": state.second.is_linked,
        }
    return content


def from_json(content: Any) -> WorkspaceState:
    """Return what a parsed file holds.

    Raises:
        DamagedFileError: It holds something else.
    """
    if not isinstance(content, dict) or type(content.get(KEY)) is not int:
        raise DamagedFileError("it holds no session")
    if content[KEY] > VERSION:
        raise DamagedFileError("a newer satview wrote it")
    fields = Fields(content, "session")
    trace, view, selection = (fields.part(name) for name in ("trace", "view", "selection"))
    lanes, filters, panels = (fields.part(name) for name in ("lanes", "filter", "panels"))
    return WorkspaceState(
        None if trace is None else _sign(trace),
        None if view is None else _view(view),
        None if selection is None else _selection(selection),
        None if lanes is None else _lanes(lanes),
        None if filters is None else _filter(filters),
        None if panels is None else _panels(panels),
        _second(fields.part("second")),
        None if (compared := fields.part("compared")) is None else _compared(compared),
        fields.text("user_events") if "user_events" in content else None,
    )


def checked(content: Any) -> Any:
    """Return a parsed file as it is.

    Raises:
        DamagedFileError: It is no session.
    """
    from_json(content)
    return content


def _sign(fields: Fields) -> TraceSign:
    return TraceSign(
        fields.text("path"), fields.whole("size", low=0), fields.whole("head_bytes", low=0), fields.text("head")
    )


def _compared(fields: Fields) -> ComparedState:
    bounds = -(1 << 62), 1 << 62
    return ComparedState(
        fields.text("path"),
        fields.whole("first_cycles", 0, *bounds),
        fields.whole("second_cycles", 0, *bounds),
        fields.text("aligned_by"),
        fields.flag("is_linked", True),
    )


def _view(fields: Fields) -> ViewState:
    found = ViewState(
        fields.whole("start_cycles"),
        fields.whole("end_cycles"),
        fields.whole("start_ns"),
        fields.whole("end_ns"),
        fields.whole("width_px", 1, low=1, high=1 << 20),
        _key(fields, "top"),
        fields.whole("top_px", low=0, high=1 << 20),
        fields.flag("is_whole"),
    )
    if found.end_cycles <= found.start_cycles or found.end_ns < found.start_ns:
        raise DamagedFileError("view: it ends before it begins")
    return found


def _second(fields: Fields | None) -> SecondState | None:
    view, lanes = (None, None) if fields is None else (fields.part("view"), fields.part("lanes"))
    if fields is None or view is None or lanes is None:
        return None
    return SecondState(_view(view), _lanes(lanes), fields.flag("is_linked"))


def _selection(fields: Fields) -> SelectionState:
    names = ("range_start", "range_end", "cursor_a", "cursor_b")
    return SelectionState(
        fields.whole_or_none("event"),
        _key(fields, "lane"),
        fields.whole_or_none("span_start"),
        fields.flag("is_interval"),
        *(fields.whole_or_none(name) for name in names),
    )


def _key(fields: Fields, name: str) -> LaneKey | None:
    """Return the key of a lane, written as a list or left out."""
    found = fields.list_or_none(name)
    return None if found is None else _as_key(found)


def _as_key(found: Any) -> LaneKey:
    if not (isinstance(found, list | tuple) and len(found) == 4 and isinstance(found[0], str)):
        raise DamagedFileError("lanes: a lane is no list of kind, CPU, pid and tid")
    if not all(type(number) is int and abs(number) <= LARGEST for number in found[1:]):
        raise DamagedFileError("lanes: a lane has no numbers")
    return found[0], found[1], found[2], found[3]


def _lanes_to_json(state: LanesState) -> dict[str, Any]:
    """Return lanes as a table of those that are named, and their indices in it for the rest."""
    now = state.arrangement
    keys = sorted({*state.open, *state.closed, *now.hidden, *now.pinned, *now.order,
                   *(key for group in now.groups for key in group.members)})  # fmt: skip
    index_of = {key: index for index, key in enumerate(keys)}

    def rows(some: Iterable[LaneKey]) -> list[int]:
        return [index_of[key] for key in some]

    return {
        "lanes": [_lane_row(key, state.names.get(key)) for key in keys],
        "open": sorted(rows(state.open)),
        "closed": sorted(rows(state.closed)),
        "hidden": sorted(rows(now.hidden)),
        "pinned": rows(now.pinned),
        "hides_empty": now.hides_empty,
        "sort": now.sort.value,
        "order": rows(now.order),
        "group": now.group.value,
        "patterns": now.patterns,
        "groups": [{"title": group.title, "members": sorted(rows(group.members))} for group in now.groups],
        "closed_groups": sorted(now.closed),
        "classes": sorted(now.classes),
        "labels": sorted(now.labels),
        "shows_kinds": now.shows_kinds,
    }


def _lane_row(key: LaneKey, name: OwnerName | None) -> dict[str, Any]:
    kind, cpu, pid, tid = key
    row: dict[str, Any] = {"kind": kind, "cpu": cpu, "pid": pid, "tid": tid}
    return row | ({"process": name.process, "thread": name.thread} if name is not None else {})


def _lanes(fields: Fields) -> LanesState:
    keys, names = list[LaneKey](), dict[LaneKey, OwnerName]()
    for row in fields.parts("lanes"):
        key = row.text("kind"), row.whole("cpu", -1), row.whole("pid", -1), row.whole("tid", -1)
        keys.append(key)
        names[key] = OwnerName(key[2], key[3], row.text("process"), row.text("thread"))

    def lanes(part: Fields, name: str) -> tuple[LaneKey, ...]:
        return tuple(keys[index] for index in part.wholes(name, 0, len(keys) - 1))

    groups = tuple(LaneGroup(part.text("title"), frozenset(lanes(part, "members"))) for part in fields.parts("groups"))
    arrangement = LaneArrangement(
        frozenset(),
        frozenset(lanes(fields, "hidden")),
        tuple(dict.fromkeys(lanes(fields, "pinned"))),
        fields.flag("hides_empty"),
        fields.member("sort", SortBy, SortBy.TRACE),
        tuple(dict.fromkeys(lanes(fields, "order"))),
        fields.member("group", GroupBy, GroupBy.PROCESS),
        tuple({group.title: group for group in groups}.values()),
        fields.text("patterns"),
        frozenset(fields.texts("closed_groups")),
        frozenset(fields.texts("classes")),
        _labels(fields),
        fields.flag("shows_kinds"),
    )
    return LanesState(arrangement, frozenset(lanes(fields, "open")), frozenset(lanes(fields, "closed")), names)


def _labels(fields: Fields) -> frozenset[Label]:
    """Return what is written into intervals; a file of an older satview does not say it."""
    if fields.list_or_none("labels") is None:
        return LaneArrangement().labels
    return labels_in(",".join(fields.texts("labels")))


def _filter_to_json(part: FilterPart) -> dict[str, Any]:
    return {
        "hidden_codes": [{"first": first, "last": last} for first, last in part.hidden_codes],
        "shows": part.shows,
        "threads": [{"row": row} | asdict(name) for row, name in part.threads],
        "effect": part.effect.value,
        "passes": [asdict(item) | {"effect": item.effect.value} for item in part.stack.passes],
        "combination": part.stack.combination,
        "forms": [{"code": code, "is_wide": is_wide} for code, is_wide in part.is_wide],
    }


def _filter(fields: Fields) -> FilterPart:
    codes = tuple(
        (row.whole("first", low=0, high=CODE_COUNT - 1), row.whole("last", low=0, high=CODE_COUNT - 1))
        for row in fields.parts("hidden_codes")
    )
    threads = tuple(
        (
            row.whole("row", low=0),
            OwnerName(row.whole("pid", -1), row.whole("tid", -1), row.text("process"), row.text("thread")),
        )
        for row in fields.parts("threads")
    )
    passes = tuple(
        Pass(row.text("name"), row.text("rules"), row.text("expression"), row.member("effect", Effect, Effect.HIDE),
             row.flag("is_on", True), row.flag("is_inverted"))
        for row in fields.parts("passes")
    )  # fmt: skip
    try:
        stack = PassStack(passes).combined(fields.text("combination"))
    except UsageError as error:
        raise DamagedFileError(f"filter: {error}") from error
    forms = tuple((row.whole("code", low=0, high=CODE_COUNT - 1), row.flag("is_wide")) for row in fields.parts("forms"))
    effect = fields.member("effect", Effect, Effect.HIDE)
    return FilterPart(codes, fields.flag("shows"), threads, effect, stack, forms)


def _panels(fields: Fields) -> PanelsState:
    values = {}
    found = fields.part("values")
    for name in found.names() if found is not None else ():
        panel = found.part(name) if found is not None else None
        values[name] = dict(panel.plain()) if panel is not None else {}
    layout = fields.part("layout")
    return PanelsState(
        None if layout is None else layout_of(layout), values, fields.text("search"), fields.flag("finds")
    )
