"""What a listing holds: header, slots, notations, and how many lines of each kind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.formats.kev.head.header import plain_pairs
from satview.formats.listing.slots import SlotList
from satview.formats.listing.stamps import StampNotation
from satview.store.head import Header
from satview.store.problems import Problems

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
