"""What the clock has to know of a chunk of events; the decoders of files and of streams make it the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

LATEST: Final = 1 << 62  # beyond this a TIME event is damage: no counter has run that long
_LAG: Final = 1 << 26  # cycles between the clock in a TIME event and its stamp, generously; a real one has 0x32c


@dataclass(frozen=True, slots=True, eq=False)
class ClockChunk:
    """What the clock has to know of a chunk of events.

    Attributes:
        stamps: uint32 (n,), low halves; damaged ones of TIME events are mended.
        cpus: uint8 (n,).
        time_rows: Positions of the TIME events, ascending.
        time_values: int64, their payload as `time_values` gives it; negative = unusable.
        same_as_next: Positions of BUFFER events that share their stamp with the next event of the chunk: they take its
            time and leave the clock alone.
        first_row: Number of the chunk's first event, for reports.
    """

    stamps: NDArray[np.uint32]
    cpus: NDArray[np.uint8]
    time_rows: NDArray[np.intp]
    time_values: NDArray[np.int64]
    same_as_next: NDArray[np.intp]
    first_row: int

    @classmethod
    def of(
        cls,
        slots: NDArray[np.uint32],
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        buffer_rows: NDArray[np.intp],
        first_row: int,
    ) -> ClockChunk:
        """Return the record of a chunk.

        Args:
            slots: uint32 (k, 4), the first slot of each TIME event.
            stamps: uint32 (n,), of all events.
            cpus: uint8 (n,), of all events.
            time_rows: Positions of the k TIME events, ascending.
            buffer_rows: Positions of the BUFFER events, ascending.
            first_row: Number of the first event.
        """
        values = time_values(slots[:, 2], slots[:, 3], slots[:, 1])
        is_unusable = values < 0
        if is_unusable.any():
            stamps = _with_stamps_mended(stamps, time_rows, slots[:, 3], is_unusable=is_unusable)
        with_next = buffer_rows[buffer_rows + 1 < len(stamps)]
        shared = with_next[stamps[with_next] == stamps[with_next + 1]]
        return cls(stamps, cpus, time_rows, values, shared, first_row)

    @property
    def takes_part(self) -> NDArray[np.bool_]:
        """The events that move the clock, bool (n,)."""
        mask = np.ones(len(self.stamps), np.bool_)
        mask[self.same_as_next] = False
        return mask

    def without(self, held: int) -> ClockChunk:
        """Return the chunk without its first events."""
        if not held:
            return self
        is_time, is_shared = self.time_rows >= held, self.same_as_next >= held
        return ClockChunk(
            self.stamps[held:],
            self.cpus[held:],
            self.time_rows[is_time] - held,
            self.time_values[is_time],
            self.same_as_next[is_shared] - held,
            self.first_row + held,
        )


def _with_stamps_mended(
    stamps: NDArray[np.uint32],
    time_rows: NDArray[np.intp],
    lower: NDArray[np.uint32],
    *,
    is_unusable: NDArray[np.bool_],
) -> NDArray[np.uint32]:
    """Return stamps in which those of unusable TIME events are the lower halves of their payloads, where that is right.

    The kernel writes a TIME event right before the event that needs it (section 5.2), so of a stamp and a lower half
    that contradict each other the one nearer to the next event is the sound one. A damaged stamp left as it is would
    make the clock of its CPU pass rollovers that never were.
    """
    sound = np.ones(len(stamps), np.bool_)
    sound[time_rows[is_unusable]] = False
    near = np.flatnonzero(sound)
    if not len(near):
        return stamps
    rows = time_rows[is_unusable]
    behind = stamps[near[np.minimum(np.searchsorted(near, rows), len(near) - 1)]]  # at the end, the one in front
    payload = lower[is_unusable]
    is_wrong = _distance(payload, behind) < _distance(stamps[rows], behind)
    mended = stamps.copy()
    mended[rows[is_wrong]] = payload[is_wrong]
    return mended


def _distance(stamps: NDArray[np.uint32], others: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return how far stamps are from others, on the shorter way around the counter."""
    return np.abs((stamps - others).astype(np.int32).astype(np.int64))


def time_values(upper: NDArray[np.uint32], lower: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the 64-bit clock in TIME events, cycles, -1 for values that no kernel writes; same shape.

    Args:
        upper: First payload words.
        lower: Second payload words.
        stamps: Of the TIME slots: read right after the clock.
    """
    values = upper.astype(np.int64) << 32 | lower
    # The counter in the payload is read before the slot's own stamp (section 5.2), so a real pair is a little apart;
    # the difference of unsigned words wraps as the counter does.
    values[(values >= LATEST) | (values < 0) | (_distance(stamps, lower) > _LAG)] = -1
    return values
