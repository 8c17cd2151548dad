"""Classes for the stored state of a window and its views, and conversion of a state to and from JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from satview.base.errors import UsageError
from satview.base.shared_file import DamagedFileError, as_declared, parsed_json
from satview.events.wire import CODE_COUNT
from satview.filters.passes import Effect, Pass, PassStack
from satview.session.lanes.lane_arrangement import GroupBy, SortBy
from satview.session.lanes.lane_row import LaneKey

# Types of the values in a file; other values mean that it is damaged. Every number fits into 64 bits.

_TEXT_MAX: Final = 100_000
_WHOLE_MAX: Final = 2**63 - 1
_PX_MAX: Final = 1 << 15
_Item = TypeVar("_Item")
Text = Annotated[str, msgspec.Meta(max_length=_TEXT_MAX)]
Many = Annotated[tuple[_Item, ...], msgspec.Meta(max_length=1_000_000)]
Whole = Annotated[int, msgspec.Meta(ge=-_WHOLE_MAX, le=_WHOLE_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_WHOLE_MAX)]
Code = Annotated[int, msgspec.Meta(ge=0, le=CODE_COUNT - 1)]
Cycles = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
PositionPx = Annotated[int, msgspec.Meta(ge=-_PX_MAX, le=_PX_MAX)]
SizePx = Annotated[int, msgspec.Meta(ge=0, le=_PX_MAX)]
WindowPx = Annotated[int, msgspec.Meta(ge=1, le=_PX_MAX)]
Area = Literal["left", "right", "top", "bottom"]
Key = tuple[Text, Whole, Whole, Whole]  # of a lane

# Layout of panels as plain values; Qt's own format makes it crash if one byte of it is wrong.


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Panels behind one row of tabs.

    Attributes:
        area: Side of the window.
        tabs: Names of the panels, hidden ones included.
        front: The panel in front; empty if none is shown.
        x_px, y_px, width_px, height_px: Position in the window and size; all 0 if none is shown.
    """

    area: Area
    tabs: Many[Text] = ()
    front: Text = ""
    x_px: PositionPx = 0
    y_px: PositionPx = 0
    width_px: SizePx = 0
    height_px: SizePx = 0


@dataclass(frozen=True, slots=True)
class FloatingPanel:
    """A panel in a window of its own, with its position on the screen."""

    name: Text
    x_px: PositionPx = 0
    y_px: PositionPx = 0
    width_px: WindowPx = 1
    height_px: WindowPx = 1


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The arrangement of the panels of one window.

    Attributes:
        groups: Docked panels.
        floating: Panels in windows of their own.
        hidden: Names of hidden panels.
    """

    groups: Many[PanelGroup] = ()
    floating: Many[FloatingPanel] = ()
    hidden: Many[Text] = ()


def to_text(layout: PanelLayout) -> str:
    """Return a layout as the text of a setting."""
    return msgspec.json.encode(layout).decode()


def from_text(text: str) -> PanelLayout | None:
    """Return the layout in the text of a setting; None if the text is not a valid layout."""
    try:
        return as_declared(parsed_json(text.encode("utf-8", "replace")), PanelLayout) if text else None
    except DamagedFileError:
        return None


# State of a window as plain values.


@dataclass(frozen=True, slots=True)
class TraceSign:
    """Path, size and digest of the beginning of a file, by which a trace is recognized.

    Attributes:
        path: Path of the file.
        size: Size of the file in bytes.
        head_bytes, head: Number of bytes at the beginning of the file, and their SHA-256.
    """

    path: Text
    size: Count
    head_bytes: Count
    head: Text


@dataclass(frozen=True, slots=True)
class ViewState:
    """The visible part of a trace: time range, and the lane at the top edge.

    Attributes:
        start_cycles, end_cycles: Start and end of the time range.
        start_ns, end_ns: The same, counted from the start of the trace, for use with another trace.
        width_px: Width of the lanes, on whose pixels the window begins.
        top: Lane at the top edge; None = the first.
        top_px: Height of the part of that lane above the edge.
        is_whole: True if all of the trace is visible.
    """

    start_cycles: Whole
    end_cycles: Whole
    start_ns: Whole
    end_ns: Whole
    width_px: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    top: Key | None = None
    top_px: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    is_whole: bool = False

    def __post_init__(self) -> None:
        if self.end_cycles <= self.start_cycles or self.end_ns < self.start_ns:
            raise ValueError("it ends before it begins")


@dataclass(frozen=True, slots=True)
class SelectionState:
    """The selection: event row, lane and start of its interval, range, cursors; None = not selected."""

    event: Whole | None = None
    lane: Key | None = None
    span_start: Whole | None = None
    is_interval: bool = False
    range_start: Whole | None = None
    range_end: Whole | None = None
    cursor_a: Whole | None = None
    cursor_b: Whole | None = None


@dataclass(frozen=True, slots=True)
class ComparedState:
    """The second trace of a comparison.

    Attributes:
        path: File of the second trace.
        first_cycles, second_cycles: The moments of the first and the second trace that are aligned.
        aligned_by: Description of that moment.
        is_linked: True if the views of both traces move together.
    """

    path: Text
    first_cycles: Cycles
    second_cycles: Cycles
    aligned_by: Text
    is_linked: bool = True


@dataclass(frozen=True, slots=True)
class OwnerName:
    """pid, tid and names of a process or thread, to find it in another trace too; the names may be patterns."""

    pid: Whole = -1
    tid: Whole = -1
    process: Text = ""
    thread: Text = ""


@dataclass(frozen=True, slots=True)
class OwnedLane(OwnerName):
    """A stored lane: kind, CPU, and the process or thread that the lane shows."""

    kind: Text = ""
    cpu: Whole = -1

    @property
    def key(self) -> LaneKey:
        """Key of the lane, unique in its trace."""
        return self.kind, self.cpu, self.pid, self.tid


@dataclass(frozen=True, slots=True)
class OwnedThread(OwnerName):
    """A stored thread: its row in the thread table, pid, tid and names."""

    row: Count = 0


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group of lanes; `members` are indices into `LanesState.lanes`."""

    title: Text = ""
    members: Many[Count] = ()


@dataclass(frozen=True, slots=True)
class LanesState:
    """The arrangement of lanes, as in `LaneArrangement`, but lanes are indices into `lanes`.

    Attributes:
        lanes: The lanes that the other fields refer to.
        open, closed: Lanes that the user has unfolded, and lanes that the user has folded.
        closed_groups: Titles of groups that are folded.
        labels: Labels shown in intervals; None in files of an older version.
    """

    lanes: Many[OwnedLane] = ()
    open: Many[Count] = ()
    closed: Many[Count] = ()
    hidden: Many[Count] = ()
    pinned: Many[Count] = ()
    hides_empty: bool = False
    sort: SortBy = SortBy.TRACE
    order: Many[Count] = ()
    group: GroupBy = GroupBy.PROCESS
    patterns: Text = ""
    groups: Many[GroupState] = ()
    closed_groups: Many[Text] = ()
    classes: Many[Text] = ()
    labels: Many[Text] | None = None
    shows_kinds: bool = False

    def __post_init__(self) -> None:
        members = (group.members for group in self.groups)
        for indices in (self.open, self.closed, self.hidden, self.pinned, self.order, *members):
            if max(indices, default=-1) >= len(self.lanes):
                raise ValueError(f"there is no lane {max(indices)}")


@dataclass(frozen=True, slots=True)
class CodeRange:
    """A range of event codes, `first` to `last` inclusive."""

    first: Code = 0
    last: Code = 0


@dataclass(frozen=True, slots=True)
class CodeForm:
    """The form in which events of a code are shown: wide, or fast."""

    code: Code = 0
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class FilterPart:
    """The filter in its stored form.

    Attributes:
        hidden_codes: Codes that are not checked.
        shows: True if `threads` lists the checked threads, False if it lists the unchecked ones.
        threads: Rows of the thread table with their names.
        effect: Whether unchecked events are hidden or dimmed, or checked events are highlighted.
        passes, combination: Conditions and rules, and the expression that combines these.
        forms: Event codes whose events are shown as fast or wide mode logs them.
    """

    hidden_codes: Many[CodeRange] = ()
    shows: bool = False
    threads: Many[OwnedThread] = ()
    effect: Effect = Effect.HIDE
    passes: Many[Pass] = ()
    combination: Text = ""
    forms: Many[CodeForm] = ()

    def stack(self) -> PassStack:
        """Return the passes with their combination.

        Raises:
            UsageError: The combination does not fit the passes.
        """
        return PassStack(self.passes).combined(self.combination)


@dataclass(frozen=True, slots=True)
class PanelsState:
    """Panels around the lanes.

    Attributes:
        layout: Positions of the panels; None = unchanged.
        values: Values of the saved fields of each panel, by panel name and field name.
        search: Text in the find bar.
        finds: True if the find bar is shown.
    """

    layout: PanelLayout | None = None
    values: dict[str, dict[str, str | int | bool]] = field(default_factory=dict)
    search: Text = ""
    finds: bool = False


@dataclass(frozen=True, slots=True)
class SecondState:
    """A second set of lanes, below the first.

    Attributes:
        view: The part of the trace that the second set shows.
        lanes: Arrangement of the lanes of the second set.
        is_linked: True if the second set follows the view of the first.
    """

    view: ViewState
    lanes: LanesState
    is_linked: bool = False


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The whole state of a window; a part that is None is not stored.

    Attributes:
        user_events: File with descriptions of events; empty = none.
        symbols: Folder of programs whose symbols name addresses; empty = none.
        pidin: File with output of QNX `pidin` that names processes and threads; empty = none.
        timing: Timing file, relative to the trace; empty = none.
    """

    trace: TraceSign | None = None
    view: ViewState | None = None
    selection: SelectionState | None = None
    lanes: LanesState | None = None
    filter: FilterPart | None = None
    panels: PanelsState | None = None
    second: SecondState | None = None
    compared: ComparedState | None = None
    user_events: Text | None = None
    symbols: Text | None = None
    pidin: Text | None = None
    timing: Text | None = None


# Conversion to JSON and back. Every value is checked when it is read, and reading runs no code.


KEY: Final = "satview_session"
VERSION: Final = 1
FILE_BYTES_MAX: Final = 16 << 20


def to_json(state: WorkspaceState) -> dict[str, Any]:
    """Return a state as the content of a JSON file."""
    parts = msgspec.to_builtins(state).items()
    return {KEY: VERSION} | {name: part for name, part in parts if part is not None}


def from_json(content: Any) -> WorkspaceState:
    """Return the state that the parsed content of a JSON file holds.

    Raises:
        DamagedFileError: The content is not valid.
    """
    if not isinstance(content, dict) or type(content.get(KEY)) is not int:
        raise DamagedFileError("it holds no session")
    if content[KEY] > VERSION:
        raise DamagedFileError("a newer satview wrote it")
    state = as_declared(content, WorkspaceState)
    part = state.filter or FilterPart()
    if any(len(text) > _TEXT_MAX for item in part.passes for text in (item.name, item.rules, item.expression)):
        raise DamagedFileError(f"filter.passes: a text has more than {_TEXT_MAX:,} characters")
    try:
        part.stack()
    except UsageError as error:
        raise DamagedFileError(f"filter: {error}") from error
    return state


def checked(content: Any) -> Any:
    """Return parsed content unchanged if it is a valid session.

    Raises:
        DamagedFileError: The content is not valid.
    """
    from_json(content)
    return content
