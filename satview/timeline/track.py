"""The content of one track lane, and the division of a class's intervals into lanes by owner and nesting depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.events.states import ABSENT, FIRST_PROCESS, PROCESS_HUES
from satview.formats.outside_names import symbols_of
from satview.store.axis import ends_of_files
from satview.store.trace import Trace
from satview.timeline.lane_classes import LaneClass, Owner
from satview.timeline.spans import NO_EVENT, LaneSpans, spread, touching

Rows = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class TrackRows:
    """Intervals, moments or numbers of events; every column has shape (n,), in any order.

    Attributes:
        owner_kind: Kind of owner of the lanes.
        owner: int64, row of the thread or process, or number of the CPU; 0 for the trace.
        start, end: int64, cycles; a moment ends where it begins.
        event: uint32, row of the event that begins each entry.
        value: uint8, lane value that decides the colour.
        title: Name of the lanes.
        key: Name that distinguishes these lanes from others of the class.
        subtitle: Additional text.
        number: float64, value of the counter from then on; None for lanes that are no counters.
        text: Text of an interval or moment: a template as `LaneClass.text`, or a function of its event's row; empty =
            the template of the class.
        deadline: int64, cycles, time by which each should have ended; -1 = no deadline; None = no entry has a deadline.
        meanings: Meanings of lane values, where colours have a meaning; short intervals of these values always show.
    """

    owner_kind: Owner
    owner: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    event: Rows
    value: NDArray[np.uint8]
    title: str
    key: str = ""
    subtitle: str = ""
    number: NDArray[np.float64] | None = None
    text: str | Callable[[int], str] = ""
    deadline: NDArray[np.int64] | None = None
    meanings: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.event)

    def take(self, positions: NDArray[np.integer]) -> TrackRows:
        """Return the entries at the given positions."""
        number = self.number[positions] if self.number is not None else None
        deadline = self.deadline[positions] if self.deadline is not None else None
        columns = (
            self.owner[positions],
            self.start[positions],
            self.end[positions],
            self.event[positions],
            self.value[positions],
        )
        return TrackRows(self.owner_kind, *columns, self.title, self.key, self.subtitle, number, self.text, deadline,
                         self.meanings)  # fmt: skip


def hues(numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return lane values that give successive numbers different colours, uint8 (n,)."""
    return np.asarray(FIRST_PROCESS + numbers % PROCESS_HUES, np.uint8)


_DEEPEST: Final = 32  # lanes of one owner; intervals that are nested deeper are on the last lane
_TEXT_WORDS: Final = 80  # most payload words that are decoded for a text
_ARGUMENTS: Final = re.compile(r"\{(\w+)\}")
_CACHE_LIMIT: Final = 20_000
_TIMEOUT: Final = (-1, 0xFFFFFFFF)  # values of timer_id for TimerTimeout()


@dataclass(frozen=True, eq=False)
class Track:
    """The intervals or moments of one lane.

    Attributes:
        lane_class: Class of the lane.
        content: The intervals or moments of one owner, in time order, not overlapping.
        depth: Nesting depth; 0 = outermost.
        is_whole: Whether the lane shows the events of all processes.
    """

    lane_class: LaneClass
    content: TrackRows
    depth: int
    is_whole: bool = False

    @property
    def owner(self) -> int:
        """Row of the thread or process, or number of the CPU."""
        return int(self.content.owner[0])

    @property
    def key(self) -> str:
        """Name that distinguishes the track from others of the same owner."""
        return f"{self.lane_class.name}:{self.content.key}:{self.depth}"

    @cached_property
    def rows(self) -> Rows:
        """Rows of the track's events, uint32, ascending."""
        return np.unique(self.content.event)

    @cached_property
    def moments(self) -> Rows:
        """Rows of the events that have marks on the lane, uint32, ascending: those that begin no interval."""
        return np.unique(self.content.event[self.content.end == self.content.start])

    @cached_property
    def values(self) -> frozenset[int]:
        """The lane values of the track's intervals and moments."""
        return frozenset(np.unique(self.content.value).tolist())

    def is_busy(self, window: TimeWindow) -> bool:
        """Return whether the track has an interval or moment in a window."""
        drawn = self.content
        next_one = int(np.searchsorted(drawn.end, window.start))  # ends ascend with starts: nothing overlaps
        return next_one < len(drawn) and int(drawn.start[next_one]) < window.end

    def spans(self, trace: Trace) -> tuple[LaneSpans, NDArray[np.float64] | None]:
        """Return the intervals of the track over the whole trace and, if it is a counter, its value in each.

        A moment, or an event of a counter, becomes an `ABSENT` interval up to the next one, so that it can have a text.

        Returns:
            The intervals; and float64 (intervals,), NaN = not known, or None if the lane is no counter.
        """
        drawn, window = self.content, trace.window
        is_interval = drawn.end > drawn.start
        if is_interval.any():
            drawn = drawn.take(np.flatnonzero(is_interval))
            start, item = spread(drawn.start, np.minimum(drawn.end, np.append(drawn.start[1:], window.end)), window)
            value = np.where(item >= 0, drawn.value[item], ABSENT).astype(np.uint8)
        else:
            item = np.arange(-1 if not len(drawn) or int(drawn.start[0]) > window.start else 0, len(drawn))
            start = np.where(item >= 0, drawn.start[item], window.start)
            end = ends_of_files(trace, drawn.event[-1:])
            if drawn.number is not None and not self.is_whole and (end < window.end).any():
                start, item = np.append(start, end), np.append(item, -1)  # a counter is known up to the end of its file
            value = np.full(len(start), ABSENT, np.uint8)
        event = np.where(item >= 0, drawn.event[item], np.uint32(NO_EVENT)).astype(np.uint32)
        spans = touching(start, value, event, window.end)
        texts = EventTexts(spans.event, text_of(trace, self))
        named = LaneSpans(spans.start_cycles, spans.value, spans.event, None, spans.end_cycles, texts)
        return named, _numbers(drawn, spans) if drawn.number is not None else None


def _numbers(drawn: TrackRows, spans: LaneSpans) -> NDArray[np.float64]:
    """Return the value of a counter in every interval of its lane, float64 (intervals,); NaN before its first event."""
    assert drawn.number is not None
    of_event = np.searchsorted(drawn.event, spans.event)  # events ascend, as their times do
    known = spans.event != NO_EVENT
    return np.where(known, drawn.number[np.minimum(of_event, len(drawn) - 1)], np.nan)


class EventTexts(Sequence[str]):
    """The texts of intervals; each text is made when it is first read.

    Args:
        events: uint32 (n,), rows of the events that begin the intervals.
        name: Function that returns the text for an event's row.
    """

    def __init__(self, events: Rows, name: Callable[[int], str]) -> None:
        self._events, self._name = events, name
        self._cache: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return EventTexts(self._events[index], self._name)
        event = int(self._events[index])
        if event == NO_EVENT:
            return ""
        if event not in self._cache:
            if len(self._cache) > _CACHE_LIMIT:
                self._cache.clear()
            self._cache[event] = self._name(event)
        return self._cache[event]


def text_of(trace: Trace, track: Track) -> Callable[[int], str]:
    """Return the function that returns the text of a track's event by its row."""
    if callable(track.content.text):
        return track.content.text
    template = track.content.text or track.lane_class.text
    if track.is_whole:
        template = "{process}: " + template
    names = frozenset(_ARGUMENTS.findall(template))

    def name(event: int) -> str:
        values = _values(trace, event, names)
        return " ".join(_ARGUMENTS.sub(lambda argument: values.get(argument[1], ""), template).split())

    return name


def _values(trace: Trace, event: int, names: frozenset[str]) -> dict[str, str]:
    values, symbols = {}, symbols_of(trace)
    spec = trace.spec(event)
    if "event" in names:
        values["event"] = spec.label or spec.name
    if names - {"event"}:
        pid = -1
        for argument in trace.payloads.decode(event, _TEXT_WORDS).arguments:
            values[argument.name] = _short(argument.value, argument.text)
            if argument.name == "thisfn" and symbols is not None and isinstance(argument.value, int):
                process = int(trace.threads.process[trace.events.thread[event]])
                values["thisfn"] = symbols.place(process, argument.value).function or values["thisfn"]
            if argument.name == "pid" and isinstance(argument.value, int):
                pid = argument.value
            if argument.name == "timer_id":
                values["timer"] = "timeout" if argument.value in _TIMEOUT else f"timer {argument.value!r}"
        if "process" in names:
            process = trace.processes.row(pid) or int(trace.threads.process[trace.events.thread[event]])
            values["process"] = trace.process_name(process)
    return values


def _short(value: int | str | bytes, text: str) -> str:
    """Return the text of an argument, with hexadecimal numbers without leading zeros."""
    if isinstance(value, int) and text.startswith("0x"):
        return f"{value:#x}" if value > 9 else f"{value}"
    return value if isinstance(value, str) else text


def tracks_of(lane_class: LaneClass, drawn: TrackRows) -> Iterator[Track]:
    """Yield the tracks for intervals and moments: one for each owner and depth, in this order.

    For processes, a track with the events of all processes comes first.
    """
    if not len(drawn):
        return
    depth = depths(drawn)
    order = np.lexsort((drawn.start, depth, drawn.owner))
    by_owner, depth = drawn.take(order), depth[order]
    if drawn.owner_kind is Owner.PROCESS:
        yield Track(lane_class, drawn.take(np.argsort(drawn.start, kind="stable")), 0, is_whole=True)
    changes = (by_owner.owner[1:] != by_owner.owner[:-1]) | (depth[1:] != depth[:-1])
    begins = np.concatenate(([0], np.flatnonzero(changes) + 1, [len(order)])).tolist()
    for begin, stop in pairwise(begins):
        yield Track(lane_class, by_owner.take(np.arange(begin, stop)), int(depth[begin]))


def depths(drawn: TrackRows) -> NDArray[np.int64]:
    """Return in how many intervals of the same owner each interval is nested, int64 (n,), at most 31; 0 for moments."""
    count = len(drawn)
    owner, time = np.tile(drawn.owner, 2), np.concatenate((drawn.start, drawn.end))
    step = np.repeat(np.array([1, -1]), count)
    moments = np.tile(drawn.end == drawn.start, 2)
    step[moments] = 0
    # At equal times, ends come before starts, and of several starts the longest interval is the outermost.
    longest = np.concatenate((-(drawn.end - drawn.start), np.zeros(count, np.int64)))
    order = np.lexsort((longest, step, time, owner))
    open_now = np.cumsum(step[order])
    after = np.empty(2 * count, np.int64)  # how many are open after each beginning and each end
    after[order] = open_now
    return np.where(drawn.end == drawn.start, 0, np.clip(after[:count] - 1, 0, _DEEPEST - 1))
