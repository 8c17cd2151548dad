"""What a saved session holds of a window and its views, and its form in the file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from satview.base.checked_json import LARGEST, Fields
from satview.base.errors import UsageError
from satview.base.shared_file import DamagedFileError, parsed_json
from satview.events.wire import CODE_COUNT
from satview.filters.views.passes import Effect, Pass, PassStack
from satview.session.lanes.lane_arrangement import GroupBy, Label, LaneArrangement, LaneGroup, SortBy, labels_in
from satview.session.lanes.lane_row import LaneKey

# Where panels are, as plain values. Qt has a form of its own for it, and crashes when one byte of that is wrong.


AREAS: Final = ("left", "right", "top", "bottom")
_PX_MAX: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Panels behind one row of tabs.

    Attributes:
        area: Side of the window.
        tabs: Names of the panels, hidden ones included.
        front: The one in front; empty if none of them shows.
        x_px, y_px, width_px, height_px: Position in the window and size; all 0 if none of them shows.
    """

    area: str
    tabs: tuple[str, ...]
    front: str = ""
    x_px: int = 0
    y_px: int = 0
    width_px: int = 0
    height_px: int = 0


@dataclass(frozen=True, slots=True)
class FloatingPanel:
    """A panel in a window of its own, and where that is on the screen."""

    name: str
    x_px: int
    y_px: int
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The panels of one window.

    Attributes:
        groups: Those at its sides.
        floating: Those in windows of their own.
        hidden: Names of those that do not show.
    """

    groups: tuple[PanelGroup, ...] = ()
    floating: tuple[FloatingPanel, ...] = ()
    hidden: tuple[str, ...] = ()


def layout_of(fields: Fields) -> PanelLayout:
    """Return a layout that a file holds.

    Raises:
        DamagedFileError: It holds something else.
    """
    groups = []
    for row in fields.parts("groups"):
        area = row.text("area")
        if area not in AREAS:
            raise DamagedFileError("panels: a group is at no side of the window")
        groups.append(PanelGroup(area, row.texts("tabs"), row.text("front"), *_rect(row, 0)))
    floating = tuple(FloatingPanel(row.text("name"), *_rect(row, 1)) for row in fields.parts("floating"))
    return PanelLayout(tuple(groups), floating, fields.texts("hidden"))


def to_text(layout: PanelLayout) -> str:
    """Return a layout as the text of a setting."""
    return json.dumps(asdict(layout))


def from_text(text: str) -> PanelLayout | None:
    """Return the layout that the text of a setting holds, None if it holds none."""
    try:
        return layout_of(Fields(parsed_json(text.encode("utf-8", "replace")), "panels")) if text else None
    except DamagedFileError:
        return None


def _rect(row: Fields, least_px: int) -> tuple[int, int, int, int]:
    names: tuple[Any, ...] = ("x_px", "y_px", "width_px", "height_px")
    x, y, width, height = (row.whole(name, 0, -_PX_MAX, _PX_MAX) for name in names)
    return x, y, max(least_px, width), max(least_px, height)


# What a window shows of a trace, as plain values; `workspace_json` writes and reads them.


@dataclass(frozen=True, slots=True)
class TraceSign:
    """By what a trace is known again.

    Attributes:
        path: Where it was.
        size: Bytes that it had.
        head_bytes, head: How many bytes at its beginning, and their SHA-256.
    """

    path: str
    size: int
    head_bytes: int
    head: str


@dataclass(frozen=True, slots=True)
class ViewState:
    """The part of the trace that shows.

    Attributes:
        start_cycles, end_cycles: Its ends.
        start_ns, end_ns: The same from the start of the trace, for another trace.
        width_px: Width of the drawing, on whose pixels the window begins.
        top: Lane at the top edge; None = the first.
        top_px: How much of it is above the edge.
        is_whole: All of the trace shows.
    """

    start_cycles: int
    end_cycles: int
    start_ns: int
    end_ns: int
    width_px: int
    top: LaneKey | None = None
    top_px: int = 0
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class SelectionState:
    """What is selected: event row, lane and a moment of its interval, range, cursors; None = nothing of that kind."""

    event: int | None = None
    lane: LaneKey | None = None
    span_start: int | None = None
    is_interval: bool = False
    range_start: int | None = None
    range_end: int | None = None
    cursor_a: int | None = None
    cursor_b: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedState:
    """The second trace that is compared.

    Attributes:
        path: Its file.
        first_cycles, second_cycles: The moment of each trace that is the same.
        aligned_by: What that is, in words.
        is_linked: Both move together.
    """

    path: str
    first_cycles: int
    second_cycles: int
    aligned_by: str
    is_linked: bool = True


@dataclass(frozen=True, slots=True)
class OwnerName:
    """A process or thread as another trace may have it: numbers, and names, which may be patterns."""

    pid: int
    tid: int
    process: str
    thread: str


@dataclass(frozen=True, slots=True)
class LanesState:
    """How lanes are arranged.

    Attributes:
        arrangement: As it is; `turned` is empty.
        open, closed: Lanes that the user opened and closed.
        names: Whose the lanes are that it names.
    """

    arrangement: LaneArrangement
    open: frozenset[LaneKey]
    closed: frozenset[LaneKey]
    names: dict[LaneKey, OwnerName]


@dataclass(frozen=True, slots=True)
class FilterPart:
    """The filter.

    Attributes:
        hidden_codes: First and last of ranges of codes that are not checked.
        shows: True if `threads` are those that are checked, False if those that are not.
        threads: Rows of the thread table with whose they are.
        effect, stack, is_wide: As of `FilterState`.
    """

    hidden_codes: tuple[tuple[int, int], ...] = ()
    shows: bool = False
    threads: tuple[tuple[int, OwnerName], ...] = ()
    effect: Effect = Effect.HIDE
    stack: PassStack = field(default_factory=PassStack)
    is_wide: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class PanelsState:
    """Panels around the lanes.

    Attributes:
        layout: Where they are; None = as they are anyway.
        values: What each panel keeps: name of the panel to names and values.
        search: What the find bar looks for.
        finds: The find bar shows.
    """

    layout: PanelLayout | None = None
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    search: str = ""
    finds: bool = False


@dataclass(frozen=True, slots=True)
class SecondState:
    """A second set of lanes, below the first.

    Attributes:
        view: The part of the trace that it shows.
        lanes: How its lanes are arranged.
        is_linked: It follows the first one.
    """

    view: ViewState
    lanes: LanesState
    is_linked: bool


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """All of it; None = not stored.

    Attributes:
        user_events: File with descriptions of events; empty = none.
    """

    trace: TraceSign | None = None
    view: ViewState | None = None
    selection: SelectionState | None = None
    lanes: LanesState | None = None
    filter: FilterPart | None = None
    panels: PanelsState | None = None
    second: SecondState | None = None
    compared: ComparedState | None = None
    user_events: str | None = None


# States of windows as JSON files, and back. Every value is checked when it is read, and reading runs no code.


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
