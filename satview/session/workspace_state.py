"""What a window shows of a trace, as plain values; `workspace_json` writes and reads them.

The state of a trace and a session saved under a name have one form; a session leaves out what only one trace has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from satview.filters.views.passes import Effect, PassStack
from satview.session.lanes.lane_arrangement import (
    LaneArrangement,
)
from satview.session.lanes.remap import LaneKey
from satview.session.panel_layout import PanelLayout


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
