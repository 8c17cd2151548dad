"""Reads a listing line by line: header, sections, events, and what is between them. No line is passed over silently.

Continuation lines belong to the event before them; a failed kernel exit of the 6.4 printer has no line end, so the next
event stands on the same line; stretches somebody left out are marked by lines of a single dot; published listings have
extra blank lines and here and there a number that lost a digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.formats.listing.events import EventParser
from satview.formats.listing.slots import SlotList
from satview.store.problems import Problems
from satview.store.trace import Header

MAX_LINE_BYTES = 1 << 16      # no printer writes longer ones; the rest of such a line is counted as a line of its own
MAX_BODY_LINES = 4096         # continuation lines of one event
_REPORT_LINES = 1 << 14
_MAX_CYCLES = (1 << 63) - 1

_EVENT = re.compile(r"t:(\S{1,40}) +CPU:(\d{1,2}) +")
_GLUED = re.compile(r"ret_val:-1, errno:-?\d{1,10}(?=t:0x|event => |TRACEPARSER: |TRACEPRINTER: )")
_HEADER = re.compile(r"\s*TRACE_(.+?):: ?(.*)")
_VERBOSE_VALUE = re.compile(r'\(len=\d+\) -> "(.*)" ?')
_RAW_SLOT = re.compile(r"event => h:0x([0-9a-f]{8}) d0:0x([0-9a-f]{8}) d1:0x([0-9a-f]{8}) d2:0x([0-9a-f]{8})")
_TITLE = re.compile(r"\s*-- (HEADER FILE|SYSPAGE|KERNEL) (?:INFORMATION|EVENTS) --\s*")
_NOTICE = re.compile(r"TRACE(?:PARSER|PRINTER)\b.*")
_WIDE_COLUMN = re.compile(r"[A-Z_ ]{16}:")   # the class column of 7.1 on
_WALL = re.compile(r"(\d{1,9})\.(\d{1,3})\.(\d{1,3})us")
_TYPESET = str.maketrans("lIoO", "1100")   # letters that typesetting puts for digits


@dataclass(slots=True)
class Census:
    """How many lines of each kind a listing has; their sum is its number of lines."""

    title: int = 0
    header: int = 0
    syspage: int = 0
    event: int = 0
    raw_slot: int = 0
    continuation: int = 0
    blank: int = 0
    cut: int = 0
    notice: int = 0
    bad: int = 0

    @property
    def lines(self) -> int:
        """All lines."""
        return (self.title + self.header + self.syspage + self.event + self.raw_slot + self.continuation + self.blank
                + self.cut + self.notice + self.bad)


@dataclass(slots=True)
class Listing:
    """What a listing holds.

    Attributes:
        pairs: Header keys and values.
        slots: Everything printed as slots, in file order.
        census: Lines per kind.
        events: Printed events, glued ones included.
        release: Whose lists were used.
        byte_order: As the header says; little if it says nothing.
    """

    problems: Problems
    pairs: list[tuple[str, str]] = field(default_factory=list)
    slots: SlotList = field(default_factory=SlotList)
    census: Census = field(default_factory=Census)
    events: int = 0
    release: Release = Release.QNX_6
    byte_order: str = "little"

    @property
    def header(self) -> Header:
        """The header as readers of .kev files give it."""
        return Header(tuple(self.pairs))

    def slot_array(self) -> NDArray[np.uint32]:
        """Return the slots, shape (n, 4), host order."""
        return self.slots.slots()

    def full_times(self) -> NDArray[np.int64] | None:
        """Return the time of every slot where the listing gives all 64 bits, shape (n,); else None."""
        return self.slots.times() if self.slots.has_full_times and not self.census.raw_slot else None


def read_listing(
    file: BinaryIO, problems: Problems, progress: Callable[[int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Listing:
    """Read a whole listing.

    Args:
        file: Binary, so that bytes that are no UTF-8 survive; need not be seekable.
        problems: Receives what is not understood, with line numbers.
        progress: Called now and then with the bytes read so far.
        cancelled: Asked now and then.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    reader = _Reader(Listing(problems))
    done_bytes = 0
    for number, raw in enumerate(_lines(file), 1):
        done_bytes += len(raw)
        if number % _REPORT_LINES == 0:
            if cancelled is not None and cancelled():
                raise Cancelled
            if progress is not None:
                progress(done_bytes)
        reader.line(number, raw.decode("utf-8", "surrogateescape").rstrip("\n").removesuffix("\r"))
    reader.finish()
    return reader.listing


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE_BYTES):
        yield line


class _Reader:
    """State between lines."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self._section = ""
        self._parser: EventParser | None = None
        self._open = ""               # event being collected, its time and CPU taken off
        self._open_line = 0
        self._open_cpu = 0
        self._open_time = 0
        self._body: list[str] = []    # its continuation lines
        self._blanks = 0              # blank lines since, part of its text if more of it follows
        self._is_verbose = False
        self._is_cut = False
        self._last_time: dict[int, int] = {}

    def line(self, number: int, text: str) -> None:
        """Take one line."""
        census = self.listing.census
        if text.startswith("t:") and (head := _EVENT.match(text)):
            self._event_line(number, text, head)
        elif text.startswith("event => ") and (slot := _RAW_SLOT.match(text)):
            self._raw_slot(number, slot, text[slot.end():])
        elif not text.strip():
            census.blank += 1
            self._blanks += 1
        elif text.strip() == ".":
            self._flush()
            census.cut += 1
            if not self._is_cut:
                self.listing.problems.add("cut-listing", f"lines were left out at line {number}", line=number)
            self._is_cut = True
        elif title := _TITLE.fullmatch(text):
            self._flush()
            census.title += 1
            self._section = title[1]
        elif self._section != "KERNEL" and (pair := _HEADER.fullmatch(text)):
            census.header += 1
            quoted = _VERBOSE_VALUE.fullmatch(pair[2])
            self.listing.pairs.append((pair[1], quoted[1] if quoted else pair[2]))
        elif _NOTICE.fullmatch(text):
            self._flush()
            census.notice += 1
        elif self._section == "SYSPAGE":
            census.syspage += 1
        elif self._open and len(self._body) < MAX_BODY_LINES:
            self._continuation(text)
        else:
            self._bad(number, text)

    def finish(self) -> None:
        """Take what is still open at the end of the file."""
        self._flush()
        self._set_release()

    def _continuation(self, text: str) -> None:
        # Blank lines between were part of a text, or of nothing; either way they were counted as blank.
        self._body += [""] * min(self._blanks, MAX_BODY_LINES)
        self._blanks = 0
        self._body.append(text)
        self.listing.census.continuation += 1

    def _event_line(self, number: int, text: str, head: re.Match[str]) -> None:
        self._flush()
        self.listing.census.event += 1
        self._section, self._is_cut = "KERNEL", False
        while True:
            rest = text[head.end():]
            glued = _GLUED.search(rest) if "errno:" in rest else None
            self._start(number, head, rest[:glued.end()] if glued else rest)
            if glued is None:
                return
            text = rest[glued.end():]
            following = _EVENT.match(text)
            if following is None:
                self._flush()
                if slot := _RAW_SLOT.match(text):
                    self._append_raw(slot)
                return
            self._flush()
            head = following

    def _start(self, number: int, head: re.Match[str], rest: str) -> None:
        self._open, self._open_line, self._open_cpu = rest, number, int(head[2])
        self._open_time = self._stamp(number, head[1])

    def _raw_slot(self, number: int, slot: re.Match[str], rest: str) -> None:
        self._flush()
        self.listing.census.raw_slot += 1
        self._section = "KERNEL"
        self._append_raw(slot)
        if rest and (head := _EVENT.match(rest)):
            self._start(number, head, rest[head.end():])

    def _append_raw(self, slot: re.Match[str]) -> None:
        """Take a slot of the verbose output; header and stamp are in host order there, payload words are not."""
        if not self._is_verbose:
            self._is_verbose = True
            self._set_release()
        header, stamp, first, second = (int(word, 16) for word in slot.groups())
        if self.listing.byte_order == "big":
            first, second = (int.from_bytes(word.to_bytes(4, "little"), "big") for word in (first, second))
        self.listing.slots.slot(header, stamp, first, second)

    def _flush(self) -> None:
        """Turn the collected event into slots."""
        if not self._open:
            return
        text = "\n".join((self._open, *self._body)) if self._body else self._open
        line, self._open, self._body, self._blanks = self._open_line, "", [], 0
        self.listing.events += 1
        if self._is_verbose:
            return                    # its slots were given already
        if self._parser is None:
            self._parser = self._make_parser(text)
        event = self._parser.parse(text)
        if event is None or self._open_cpu > 63:
            self._unread(line, text)
            return
        self.listing.slots.event(event[0], self._open_cpu, self._open_time, event[1])

    def _unread(self, line: int, text: str) -> None:
        census = self.listing.census
        self.listing.events -= 1
        census.event -= 1
        census.bad += 1
        self.listing.problems.add("bad-line", f"line {line} fits no known event: {_excerpt(text)}", line=line)

    def _bad(self, number: int, text: str) -> None:
        self.listing.census.bad += 1
        self.listing.problems.add("bad-line", f"line {number} is not understood: {_excerpt(text)}", line=number)

    def _set_release(self) -> None:
        header = self.listing.header
        self.listing.byte_order = "big" if any(key == "BIG_ENDIAN" for key, _ in header.pairs) else "little"
        known = release_of(header.get("SYS_RELEASE"))
        if known is not None:
            self.listing.release = known

    def _make_parser(self, text: str) -> EventParser:
        self._set_release()
        if release_of(self.listing.header.get("SYS_RELEASE")) is None:
            is_new = _WIDE_COLUMN.match(text) is not None
            self.listing.release = Release.QNX_7 if is_new else Release.QNX_6
        return EventParser(self.listing.release, self.listing.byte_order)

    def _stamp(self, number: int, text: str) -> int:
        """Return the time of an event as printed; repairs a number that lost a digit or has letters for digits."""
        if wall := _WALL.fullmatch(text):
            us = int(wall[1]) * 1_000_000 + int(wall[2]) * 1_000 + int(wall[3])
            rate = self.listing.header.number("CYCLES_PER_SEC") or 1_000_000_000
            self.listing.slots.has_full_times = True
            return min(us * rate // 1_000_000, _MAX_CYCLES)
        digits = text.removeprefix("0x")
        last = self._last_time.get(self._open_cpu, -1)
        clean = digits.translate(_TYPESET)
        try:
            value = int(clean, 16)
        except ValueError:
            value = max(last, 0)
            self._damaged(number, text, value)
            return value
        if len(clean) < 8:
            value = _restore(clean, last)
        if digits != f"{value:08x}":
            self._damaged(number, text, value)
        value = min(value, _MAX_CYCLES)
        self._last_time[self._open_cpu] = value
        return value

    def _damaged(self, number: int, text: str, value: int) -> None:
        what = f"time {text} at line {number} is damaged; read as 0x{value:08x}"
        self.listing.problems.add("listing-digits", what, line=number)


def _restore(digits: str, last: int) -> int:
    """Return the stamp of eight digits from which one was lost: the first one after the time before, if any fits."""
    if len(digits) != 7 or last < 0:
        return int(digits, 16)
    base = last & ~0xFFFFFFFF
    fits = {base | int(digits[:at] + digit + digits[at:], 16) for at in range(8) for digit in "0123456789abcdef"}
    later = [value for value in fits if value >= last]
    return min(later, default=int(digits, 16))


def _excerpt(text: str) -> str:
    shown = text.split("\n", 1)[0][:60].encode("utf-8", "replace").decode("utf-8")
    return repr(shown)
