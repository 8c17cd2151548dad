"""Lanes of activities: a bar for each instance from its trigger to its end, in the colour of its outcome.

Overlapping instances of one activity, such as messages that wait for the same server, get separate lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import CALLED, Activities, Activity, Instances, Timing, activities, chain_of
from satview.base.safe_text import AT_LEAST_SIGN, with_sign
from satview.base.time import format_duration
from satview.events.states import QUIET_PROCESS, READY, RUNNING, STATE_BY_NAME, UNKNOWN
from satview.store.trace import Trace
from satview.timeline.finders import UserLanes
from satview.timeline.lane_classes import LaneClass, Owner
from satview.timeline.track import TrackRows

ACTIVITIES: Final = "activities"
"""Name of the class of these lanes."""
IN_TIME: Final = RUNNING
LATE: Final = STATE_BY_NAME["MUTEX"].value
DONE: Final = QUIET_PROCESS
UNFINISHED: Final = READY
MEANINGS: Final[Mapping[int, str]] = MappingProxyType({
    IN_TIME: "done in time", LATE: "later than its deadline", DONE: "done, without a deadline",
    UNFINISHED: "not done when the trace ends", UNKNOWN: "events are missing, or its thread is not known",
})  # fmt: skip
"""Meanings of the values of bars. The values are thread states, so that every palette has colours for them."""
_MOST_AT_ONCE: Final = 32  # lanes of one activity

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ActivityLanes:
    """Makes lanes for the activities that a timing file names.

    If the file names none, all activities get lanes, except kernel calls and functions.

    Attributes:
        timing: Entries of the timing file.
    """

    timing: Mapping[str, Timing] = field(default_factory=dict)

    def __call__(self, trace: Trace, _lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
        """Return the lanes; those of activities with the most missed deadlines come first.

        Raises:
            UsageError: An entry of the timing file is wrong, see `activities`.
        """
        learned = activities(trace, self.timing)
        lanes = []
        for position in self._named(learned):
            activity = learned.activities[position]
            instances = learned.instances.taken(learned.instances.activity == position)
            value = outcomes(instances, activity)
            misses = int(np.count_nonzero(value == LATE))
            lanes.append((-misses, _lanes_of(trace, activity, instances, value)))
        lanes.sort(key=lambda misses_and_lanes: misses_and_lanes[0])
        return [lane for _, of_activity in lanes for lane in of_activity]

    def _named(self, learned: Activities) -> list[int]:
        """Return the indices of the activities that get lanes."""
        named = set[int]()
        for name, entry in self.timing.items():
            named.update(chain_of(learned, entry.chain) if entry.chain else (learned.named(name),))
        if named:
            return sorted(named)
        return [number for number, activity in enumerate(learned.activities) if activity.trigger not in CALLED]


def outcomes(instances: Instances, activity: Activity) -> NDArray[np.uint8]:
    """Return the outcome of each instance of an activity, a key of `MEANINGS`, uint8 (n,).

    An instance that is not done when the trace ends is late if its deadline has passed by then.
    """
    deadline = activity.deadline_cycles
    value = np.full(len(instances), IN_TIME if deadline > 0 else DONE, np.uint8)
    value[instances.is_open] = UNFINISHED
    if deadline > 0:
        value[instances.response_cycles > deadline] = LATE
    value[~instances.is_known] = UNKNOWN
    return value


def _lanes_of(trace: Trace, activity: Activity, instances: Instances, value: NDArray[np.uint8]) -> Iterator[TrackRows]:
    start = instances.start_cycles
    end = np.maximum(instances.end_cycles, start + 1)  # an instance without length still gets a bar
    deadline = np.full(len(start), -1, np.int64)
    if activity.deadline_cycles > 0:
        deadline = np.where(value == UNKNOWN, -1, start + activity.deadline_cycles)
    event, name_of = instances.start_row.astype(np.uint32), _texts(trace, activity, instances, value)
    rest = np.arange(len(start))
    for depth in range(_MOST_AT_ONCE):
        if not len(rest):
            return
        has_room = without_overlap(start[rest], end[rest])
        placed, rest = rest[has_room], rest[~has_room]
        title = activity.name if not depth else f"{activity.name} {depth + 1}"
        left_out = f"{len(rest):,} more at the same time" if len(rest) and depth == _MOST_AT_ONCE - 1 else ""
        yield TrackRows(
            Owner.TRACE, np.zeros(len(placed), np.int64), start[placed], end[placed], event[placed], value[placed],
            title, f"{activity.name}:{depth}", left_out or activity.trigger, text=name_of, deadline=deadline[placed],
            meanings=MEANINGS,
        )  # fmt: skip


def without_overlap(start: _Ints, end: _Ints) -> NDArray[np.bool_]:
    """Return which intervals one lane can show without overlap.

    These are the first interval, then repeatedly the next one that begins at or after the end of the last one chosen.

    Args:
        start: int64 (n,), ascending, n > 0.
        end: int64 (n,), above the starts.

    Returns:
        bool (n,).
    """
    count = len(start)
    following = np.append(np.searchsorted(start, end), count)
    has_room = np.zeros(count + 1, np.bool_)
    has_room[0] = True
    # After k rounds, all selected intervals fewer than 2^k steps from the first are marked.
    for _ in range(count.bit_length()):
        has_room[following[np.flatnonzero(has_room)]] = True
        following = following[following]
    return has_room[:count]


def _texts(trace: Trace, activity: Activity, instances: Instances, value: NDArray[np.uint8]) -> Callable[[int], str]:
    """Return a function that takes an instance's first event and returns its response time and lateness as text."""
    rows, response, clock = instances.start_row, instances.response_cycles, trace.clock

    def name(row: int) -> str:
        position = int(np.searchsorted(rows, row))
        sign, ending = (AT_LEAST_SIGN, ", not done") if instances.is_open[position] else ("", "")
        length = with_sign(sign, format_duration(clock.duration_ns(int(response[position]))))
        if value[position] == UNKNOWN:
            return "unknown"
        if value[position] == LATE:
            overrun = int(response[position]) - activity.deadline_cycles
            return f"{length}, {format_duration(clock.duration_ns(overrun))} late"
        return length + ending

    return name
