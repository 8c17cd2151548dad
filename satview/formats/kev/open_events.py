"""Combine events whose end has not come yet, for a reader that passes once over the slots.

Source: kernel event trace format, section 3.3. Per CPU, stamp, class and number there is a queue, oldest first. A file
of rubbish opens events without end, so their number is bounded: beyond it the oldest is given up. So is an event whose
CPU is a rollover away, by the rule of `combine`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import SLOT_BYTES
from satview.formats.kev.clocks.clock import held_times
from satview.formats.kev.clocks.rollover import ROLLOVER
from satview.formats.kev.slots.combine import MAX_SLOTS
from satview.store.problems import Problems

MAX_OPEN: Final = 1 << 16  # events; a real trace has a handful, of which each may have a few slots
MAX_WORDS: Final = 1 << 22  # payload words of all of them


@dataclass(slots=True)
class OpenEvent:
    """An event whose end has not come: what its first slot reported, and its payload so far."""

    header: int
    stamp: int
    time: int
    thread: int
    position: int
    words: list[NDArray[np.uint32]]
    slots: int = 1


class OpenEvents:
    """The queues.

    Args:
        problems: Receives events that are given up.
        offset: Byte offset of the first slot in the file.
    """

    def __init__(self, problems: Problems, offset: int) -> None:
        self._problems = problems
        self._offset = offset
        self._queues: OrderedDict[int, deque[OpenEvent]] = OrderedDict()
        self._count = 0
        self._words = 0

    def __len__(self) -> int:
        return self._count

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys that have an open event.

        Returns:
            uint64 (n,).
        """
        return np.fromiter(self._queues, np.uint64, len(self._queues))

    def has_room(self, events: int, words: int) -> bool:
        """Return whether so many events and words more would not make any event be given up."""
        return self._count + events <= MAX_OPEN and self._words + words <= MAX_WORDS

    def add(self, key: int, event: OpenEvent) -> None:
        """Open an event."""
        self._queues.setdefault(key, deque()).append(event)
        self._count += 1
        self._words += len(event.words[0])
        # Both are bounded: many events of two words, or few that never end, fill the memory alike.
        while self._count > MAX_OPEN or self._words > MAX_WORDS:
            self._give_up_oldest()

    def append(
        self, key: int, words: NDArray[np.uint32], slots: int, now_cycles: int, *, closes: bool
    ) -> OpenEvent | None:
        """Continue the oldest open event of a key; return it if that ends it.

        Args:
            key: Of the event.
            words: Payload that it gets.
            slots: Slots that it gets.
            now_cycles: When the last event before them began on their CPU: older events may be given up by it.
            closes: The last one is an end slot.

        Raises:
            KeyError: None is open, or none any more.
        """
        queue = self._queues[key]
        # Rule 7 of section 3.3: by now the stamp may have come round, and the slots belong to a later event.
        while queue and abs(now_cycles - queue[0].time) >= ROLLOVER:
            self._report(self._remove(key, queue))
        queue = self._queues[key]
        event = queue[0]
        event.words.append(words)
        event.slots += slots
        self._words += len(words)
        # An event without end would grow with the file; beyond the limit it is delivered as it is.
        if not closes and event.slots <= MAX_SLOTS:
            return None
        self._remove(key, queue)
        return event

    def move_before(self, from_cycles: int) -> None:
        """Set the times of all open events again: backwards from the first TIME of the file."""
        for event in (event for queue in self._queues.values() for event in queue):
            event.time = int(held_times(np.array([event.stamp], np.uint32), from_cycles)[0])

    def finish(self) -> None:
        """Report everything still open, at the end of the file."""
        left = [event for queue in self._queues.values() for event in queue]
        for event in sorted(left, key=lambda event: event.position):
            self._report(event)

    def _give_up_oldest(self) -> None:
        key, queue = next(iter(self._queues.items()))
        self._report(self._remove(key, queue))

    def _remove(self, key: int, queue: deque[OpenEvent]) -> OpenEvent:
        event = queue.popleft()
        self._count -= 1
        self._words -= sum(len(words) for words in event.words)
        if not queue:
            del self._queues[key]
        return event

    def _report(self, event: OpenEvent) -> None:
        self._problems.add(
            "unfinished-events", "the end of this event is missing", self._offset + event.position * SLOT_BYTES
        )
