"""What a listing holds: header, slots, notations, and how many lines of each kind."""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.events.wire import CPU_SHIFT, STRUCT_SHIFT, Struct
from satview.formats.kev.head.header import plain_pairs
from satview.formats.listing.stamps import StampNotation
from satview.store.head import Header
from satview.store.problems import Problems

# Builds slots from events as they are read, in host order.


_BEGIN = Struct.COMBINE_BEGIN << STRUCT_SHIFT
_CONTINUE = Struct.COMBINE_CONTINUE << STRUCT_SHIFT
_END = Struct.COMBINE_END << STRUCT_SHIFT
_LOW = 0xFFFFFFFF


class SlotList:
    """A growing list of slots: 16 bytes each, and 8 for its full time where the listing gives one."""

    def __init__(self) -> None:
        self._words = array("I")  # 32 bits wherever CPython runs
        self._times = array("q")
        self.has_full_times = False
        self._listed_slot, self._listed_variant = array("q"), array("i")

    def __len__(self) -> int:
        return len(self._words) // 4

    def event(self, code: int, cpu: int, time_cycles: int, words: list[int], variant: int = 0) -> None:
        """Append an event: one slot for up to two words, else combine slots, padded with a zero word.

        Args:
            code: 15 bits.
            cpu: 0 to 63.
            time_cycles: As printed, 32 or up to 63 bits.
            words: Payload.
            variant: Of its layout where only its line shows that; else 0.
        """
        if variant:
            self._listed_slot.append(len(self) + max(1, (len(words) + 1) // 2) - 1)
            self._listed_variant.append(variant)
        header, stamp = code | cpu << CPU_SHIFT, time_cycles & _LOW
        self.has_full_times |= time_cycles > _LOW
        if len(words) <= 2:
            self._words.extend((header, stamp, words[0], words[1] if len(words) > 1 else 0))
            self._times.append(time_cycles)
            return
        last = len(words) - 1 & ~1
        for position in range(0, len(words), 2):
            kind = _BEGIN if position == 0 else _END if position == last else _CONTINUE
            second = words[position + 1] if position + 1 < len(words) else 0
            self._words.extend((header | kind, stamp, words[position], second))
            self._times.append(time_cycles)

    def slot(self, header: int, stamp: int, first_word: int, second_word: int) -> None:
        """Append one slot as it is."""
        self._words.extend((header, stamp, first_word, second_word))
        self._times.append(stamp)

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots, shape (n, 4), host order."""
        return np.frombuffer(self._words, np.uint32).reshape(-1, 4)

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the last slots of the events whose layout only their line shows, ascending, and its variants."""
        return np.frombuffer(self._listed_slot, np.int64), np.frombuffer(self._listed_variant, np.int32)

    def times(self) -> NDArray[np.int64]:
        """Return the time of every slot as printed, shape (n,)."""
        return np.frombuffer(self._times, dtype=np.int64)


MOST_UNLISTED: Final = 4096
_KIND_OF_LINE = {
    "title": "title",
    "header": "header",
    "syspage": "system page",
    "event": "event",
    "part": "event that fits its row in part",
    "raw": "event with raw values",
    "raw_slot": "slot",
    "continuation": "part of event",
    "blank": "blank",
    "cut": "left out",
    "notice": "message of the printer",
    "foreign": "foreign",
}


@dataclass(slots=True)
class LineCounts:
    """How many lines of each kind a listing has; their sum is its number of lines."""

    title: int = 0
    header: int = 0
    syspage: int = 0
    event: int = 0
    part: int = 0
    raw: int = 0
    raw_slot: int = 0
    continuation: int = 0
    blank: int = 0
    cut: int = 0
    notice: int = 0
    foreign: int = 0

    @property
    def lines(self) -> int:
        """All lines."""
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """Return the number of lines of each kind, zeros left out."""
        return {_KIND_OF_LINE[name]: count for name, count in asdict(self).items() if count}


@dataclass(slots=True)
class Listing:
    """What a listing holds.

    Attributes:
        pairs: Header keys and values.
        slots: Everything printed as slots, in file order.
        line_counts: Lines per kind.
        events: Printed events, glued ones included.
        release: Whose lists were used: that of the header, else the one that the events look like.
        notations: How arguments are printed that the release's printer prints otherwise; see `EventParser`.
        proven: Arguments that are printed as the release's printer prints them.
        unlisted: Lines that fit no row, by class, event and the names and notations of their arguments; at most
            `MOST_UNLISTED` kinds.
        is_release_known: The header shows the release.
        release_reason: Why it is taken for that release, where the header does not show it.
        stamps: How its times are printed where that is not how the printer of its release does it.
        byte_order: As the header says; little if it says nothing.
    """

    problems: Problems
    pairs: list[tuple[str, str]] = field(default_factory=list)
    slots: SlotList = field(default_factory=SlotList)
    line_counts: LineCounts = field(default_factory=LineCounts)
    is_release_known: bool = False
    notations: dict[tuple[str, str, str], str] = field(default_factory=dict)
    proven: dict[tuple[str, str, str], str] = field(default_factory=dict)
    unlisted: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = field(default_factory=dict)
    events: int = 0
    release: Release = Release.QNX_6
    release_reason: str = ""
    stamps: StampNotation | None = None
    byte_order: str = "little"

    @property
    def header(self) -> Header:
        """The header as readers of .kev files give it."""
        return Header(plain_pairs(self.pairs))

    def slot_array(self) -> NDArray[np.uint32]:
        """Return the slots, shape (n, 4), host order."""
        return self.slots.slots()

    def full_times(self) -> NDArray[np.int64] | None:
        """Return the time of every slot where the listing gives all 64 bits, shape (n,); else None."""
        return self.slots.times() if self.slots.has_full_times and not self.line_counts.raw_slot else None
