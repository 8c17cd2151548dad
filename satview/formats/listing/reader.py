"""Opens listings that traceprinter printed, of QNX 6, 7.1 and 8.0, as traces.

A listing may be all that is left of a .kev file: it is parsed back into slots, so that all views and tools can be used.
Data that a listing does not contain (the system page, words that were not printed) is missing or zero.

A listing is read line by line: header, sections, events, and lines between them. Every line is counted or reported.
Continuation lines belong to the event before them. A failed kernel exit of the 6.4 printer has no line end, so the next
event is on the same line. Lines with a single dot mark omissions. Published listings have extra blank lines and
occasional numbers that lost a digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, TraceFormatError
from satview.base.time import NS_PER_S
from satview.events import wire
from satview.events.catalogue import catalogue, release_of
from satview.events.spec import EventSpec, Release
from satview.events.wire import CONTROL_TIME, WireClass
from satview.formats.kev.assemble import LISTING, trace_from_slots
from satview.formats.kev.header import holds_key, is_key
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.listing.events import EventParser, LineFit, Parsed
from satview.formats.listing.model import MOST_UNLISTED, Listing, Stamps
from satview.store.problems import Problems
from satview.store.trace import Listed, Trace

# Guesses the release of a listing without a release in the header, from columns, names and numbers of calls.


_ONLY_8: Final = re.compile(r"INTERRUPT\s*:|CONTROL\s*:\s*(?:BUFFER_END|DROPPED)\b")
_CALL: Final = re.compile(r"KER_(?:CALL|EXIT)\s*:\s*(\w+)/(\d{1,3})\b")
_NEW_COLUMN: Final = re.compile(r"[A-Z_ ]{16}:")  # the class column of 7.1 on
_OLD_COLUMN: Final = re.compile(r"[A-Z_]+ *:(?! )|CONTROL: BUFFER")
_WIDE_STAMP: Final = re.compile(r"t:0x[1-9a-f][0-9a-f]{8,}")
_NEW: Final = (Release.QNX_7, Release.QNX_8, Release.QNX_6_6)
_OLD: Final = (Release.QNX_6, Release.QNX_7, Release.QNX_8, Release.QNX_6_6)
_ORDER: Final = (Release.QNX_7, Release.QNX_8, Release.QNX_6_6, Release.QNX_6)


def possible_releases(events: Sequence[tuple[str, str]]) -> tuple[Release, ...]:
    """Return the releases that printed events may be from, most likely first.

    If an event exists only in 8.0, the result is 8.0. Otherwise the result is the releases that have the most of the
    printed kernel calls, by number and name. A narrow class column makes 6.x the most likely; a wide column, or times
    above 32 bits, exclude 6.x. For each event the text after `CPU:00 ` and the text before it are given.
    """
    calls: set[tuple[str, int]] = set()
    is_new: bool | None = None
    for text, time in events:
        if _ONLY_8.match(text):
            return (Release.QNX_8,)
        if call := _CALL.match(text):
            calls.add((call[1], int(call[2])))
        if is_new is None and _NEW_COLUMN.match(text):
            is_new = True
        elif is_new is None and _OLD_COLUMN.match(text):
            is_new = False
        if is_new is None and _WIDE_STAMP.search(time):
            is_new = True
    candidates = _ORDER if is_new is None else _NEW if is_new else _OLD
    known = [_known_calls(release, calls) for release in candidates]
    return tuple(release for release, count in zip(candidates, known, strict=True) if count == max(known))


def _known_calls(release: Release, calls: Iterable[tuple[str, int]]) -> int:
    names = catalogue(release)
    return sum(
        _has_call(names.spec(wire.code(WireClass.KER_CALL, number)), name)
        for name, number in calls
        if number < wire.KER_EXIT_OFFSET
    )


def _has_call(spec: EventSpec, name: str) -> bool:
    return name in (spec.name, spec.label)


MAX_LINE_BYTES = 1 << 16  # no printer writes longer lines; the rest of such a line is counted as another line
MAX_BODY_LINES = 4096  # continuation lines of one event
_REPORT_LINES = 1 << 14
_LOOK_AHEAD = 4096  # events that are examined for the release if the header does not have it
_LOOK_AT_STAMPS = 64  # events that are examined for decimal stamps
_LAST_CPU = 63
_MAX_NOISE = 200  # an event may begin within this many characters of a line, after a prompt

_EVENT = re.compile(r"((?:[tce]:\S{1,40}\s+){1,3})CPU:\s{0,4}(\d{1,3})\s+((?:[tce]:\S{1,40}\s+){0,3})")
_GLUED = re.compile(r"ret_val:-1, errno:-?\d{1,10}(?=t:0x|event => |TRACEPARSER: |TRACEPRINTER: )")
_HEADER = re.compile(r"\s*TRACE_(.+?):: ?(.*)")
_VERBOSE_VALUE = re.compile(r'\(len=\d+\) -> "(.*)" ?')
_RAW_SLOT = re.compile(r"event => h:0x([0-9a-f]{8}) d0:0x([0-9a-f]{8}) d1:0x([0-9a-f]{8}) d2:0x([0-9a-f]{8})")
_TITLE = re.compile(r"\s*-- (HEADER FILE|SYSPAGE|KERNEL) (?:INFORMATION|EVENTS) --\s*")
_NOTICE = re.compile(r"TRACE(?:PARSER|PRINTER)\b.*")
# Additions of a terminal or pager: escape sequences, overstruck characters, other control characters.
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|.\x08|[\x00-\x08\x0b-\x1f\x7f]")


def read_listing(
    file: BinaryIO,
    problems: Problems,
    progress: Callable[[int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Listing:
    """Read a whole listing.

    Args:
        file: A binary stream, because texts may not be UTF-8; need not be seekable.
        problems: Receives lines that are not understood, with line numbers.
        progress: Called from time to time with the number of bytes read.
        cancelled: Polled during the work.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    reader = _ListingReader(Listing(problems))
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


@dataclass(slots=True)
class _Printed:
    """A printed event: the text after time and CPU, and the lines up to the next event."""

    text: str
    line: int
    cpu: int
    time: str
    body: list[str] = field(default_factory=list)


class _ListingReader:
    """Reads a listing line by line, and holds the state between lines."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self._section = ""
        self._parser: EventParser | None = None
        self._open: _Printed | None = None
        self._blanks = 0  # blank lines after the open event, which belong to it if another line of it follows
        self._waiting: list[_Printed] = []  # events until there are enough to guess the release
        self._is_verbose = False
        self._is_cut = False
        self._stamps = Stamps(listing.problems)
        self._has_clock = False

    def line(self, number: int, text: str) -> None:
        """Process the line `text`, which has the given number in the listing."""
        if not text.isprintable():
            text = _TERMINAL.sub("", text)
        if "CPU:" in text and (head := _event_head(text)):
            self._event_line(number, text, head)
        elif text.startswith("event => ") and (slot := _RAW_SLOT.match(text)):
            self._raw_slot(number, slot, text[slot.end() :])
        elif not text.strip():
            self.listing.line_counts.blank += 1
            self._blanks += 1
        else:
            self._other_line(number, text)

    def _other_line(self, number: int, text: str) -> None:
        counts = self.listing.line_counts
        if text.strip() == ".":
            self._flush()
            counts.cut += 1
            if not self._is_cut:
                self.listing.problems.add("cut-listing", f"lines were left out at line {number}", line=number)
            self._is_cut = True
        elif title := _TITLE.fullmatch(text):
            self._flush()
            counts.title += 1
            self._section = title[1]
        elif self._section != "KERNEL" and (pair := _header_pair(text)):
            counts.header += 1
            self.listing.pairs.append(pair)
        elif _NOTICE.fullmatch(text):
            counts.notice += 1
        elif self._section == "SYSPAGE":
            counts.syspage += 1
        elif self._open and len(self._open.body) < MAX_BODY_LINES:
            self._continuation(text)
        else:
            self._foreign(number, text)

    def finish(self) -> None:
        """Process the last event at the end of the file."""
        self._flush()
        self._read_waiting()
        self._set_release()
        digits = 8 if self.listing.release in (Release.QNX_6, Release.QNX_6_6) else 16
        self.listing.stamps = self._stamps.notation(digits, self._has_clock)

    def _continuation(self, text: str) -> None:
        # Blank lines before it may be part of a text; they were counted as blank already.
        assert self._open is not None
        self._open.body += [""] * min(self._blanks, MAX_BODY_LINES)
        self._blanks = 0
        self._open.body.append(text)
        self.listing.line_counts.continuation += 1

    def _event_line(self, number: int, text: str, head: re.Match[str]) -> None:
        self._flush()
        self.listing.line_counts.event += 1
        self._section, self._is_cut = "KERNEL", False
        while True:
            rest = text[head.end() :]
            glued = _GLUED.search(rest) if "errno:" in rest else None
            self._start(number, head, rest[: glued.end()] if glued else rest)
            if glued is None:
                return
            text = rest[glued.end() :]
            following = _EVENT.match(text)
            if following is None:
                self._flush()
                if slot := _RAW_SLOT.match(text):
                    self._append_raw(slot)
                return
            self._flush()
            head = following

    def _start(self, number: int, head: re.Match[str], rest: str) -> None:
        self._open, self._blanks = _Printed(rest, number, int(head[2]), f"{head[1]} {head[3]}"), 0

    def _raw_slot(self, number: int, slot: re.Match[str], rest: str) -> None:
        self._flush()
        self.listing.line_counts.raw_slot += 1
        self._section = "KERNEL"
        self._append_raw(slot)
        if rest and (head := _EVENT.match(rest)):
            self._start(number, head, rest[head.end() :])

    def _append_raw(self, slot: re.Match[str]) -> None:
        """Append a slot of the verbose output; its header and stamp are in host order, its payload words are not."""
        if not self._is_verbose:
            self._is_verbose = True
            self._set_release()
        header, stamp, first_word, second_word = (int(word, 16) for word in slot.groups())
        if self.listing.byte_order == "big":
            first_word, second_word = (
                int.from_bytes(word.to_bytes(4, "little"), "big") for word in (first_word, second_word)
            )
        self.listing.slots.slot(header, stamp, first_word, second_word)

    def _flush(self) -> None:
        """Write the collected event as slots."""
        done, self._open = self._open, None
        if done is None:
            return
        self.listing.events += 1
        if self._is_verbose:
            return  # the slots of the event were appended already
        if self._parser is None:
            self._waiting.append(done)
            self._set_release()
            enough = _LOOK_AT_STAMPS if self.listing.is_release_known else _LOOK_AHEAD
            if len(self._waiting) >= enough:
                self._read_waiting()
            return
        self._read(done)

    def _read_waiting(self) -> None:
        """Process the events that waited until the release was known."""
        if self._parser is None:
            self._set_release()
            if not self.listing.is_release_known:
                self._guess_release()
            self._stamps.look_ahead(event.time for event in self._waiting)
            self._parser = EventParser(self.listing.release, self.listing.byte_order)
            self.listing.notations, self.listing.proven = self._parser.notations, self._parser.proven
        for event in self._waiting:
            self._read(event)
        self._waiting.clear()

    def _guess_release(self) -> None:
        """Guess the release from the waiting events: of possible releases, the one whose rows match most lines."""
        listing, waiting = self.listing, self._waiting
        candidates = possible_releases([(event.text, event.time) for event in waiting])
        listing.release = candidates[0]
        listing.release_reason = f"the events look like {listing.release}"
        if len(candidates) == 1:
            return
        parsers = [EventParser(release, listing.byte_order) for release in candidates]
        fits = [sum(parser.fits(event.text, event.body) for event in waiting) for parser in parsers]
        listing.release = candidates[fits.index(max(fits))]
        counts = ", ".join(f"{count:,} as {release}" for release, count in zip(candidates, fits, strict=True))
        listing.release_reason = f"read as {listing.release}: of {len(waiting):,} lines {counts} fit"

    def _read(self, printed: _Printed) -> None:
        assert self._parser is not None
        rate = self.listing.header.number("CYCLES_PER_SEC") or NS_PER_S
        time_cycles = self._stamps.cycles(printed.line, printed.cpu, printed.time, rate)
        text, cpu = printed.text, printed.cpu
        if cpu > _LAST_CPU:  # a slot has no room for this number
            text, cpu = f"{text} CPU:{cpu}", 0
        event = self._parser.parse(text, printed.body)
        counts = self.listing.line_counts
        counts.continuation -= event.foreign
        counts.foreign += event.foreign
        if event.foreign:
            what = f"{event.foreign} in the event of line {printed.line}"
            self.listing.problems.add("foreign-line", what, count=event.foreign, line=printed.line)
        if event.fit is not LineFit.WHOLE:
            self._note_unlisted(printed, event)
        self.listing.slots.event(event.code, cpu, time_cycles, event.words, event.variant)
        self._has_clock |= event.code == CONTROL_TIME and event.words[0] != 0
        self.listing.slots.has_full_times |= self._stamps.is_wall

    def _note_unlisted(self, printed: _Printed, event: Parsed) -> None:
        """Count and report a line that matches no row."""
        counts = self.listing.line_counts
        counts.event -= 1
        if event.fit is LineFit.PART:
            counts.part += 1
        else:
            counts.raw += 1
        how = "in part" if event.fit is LineFit.PART else "with none of its arguments"
        what = f"line {printed.line} fits its row {how}: {_excerpt(printed.text)}"
        self.listing.problems.add("unlisted-line", what, line=printed.line)
        assert self._parser is not None
        key = (*self._parser.names_of(event.code), event.names)
        if key in self.listing.unlisted or len(self.listing.unlisted) < MOST_UNLISTED:
            self.listing.unlisted[key] = self.listing.unlisted.get(key, 0) + 1

    def _foreign(self, number: int, text: str) -> None:
        self.listing.line_counts.foreign += 1
        self.listing.problems.add("foreign-line", f"line {number}: {_excerpt(text)}", line=number)

    def _set_release(self) -> None:
        header = self.listing.header
        self.listing.byte_order = "big" if any(key == "BIG_ENDIAN" for key, _ in header.pairs) else "little"
        known = release_of(header.get("SYS_RELEASE"))
        if known is not None:
            self.listing.release = known
            self.listing.is_release_known = True


def _event_head(text: str) -> re.Match[str] | None:
    """Return the match of the head of an event line; a prompt or a pager's mark may precede it. None = no event."""
    head = _EVENT.match(text)
    if head is None and (head := _EVENT.search(text, 0, _MAX_NOISE)) is not None:
        before = text[: head.start()]
        if '"' in before or before[-1:].isalnum():
            return None
    return head


def _header_pair(text: str) -> tuple[str, str] | None:
    pair = _HEADER.fullmatch(text)
    if pair is None:
        return None
    quoted = _VERBOSE_VALUE.fullmatch(pair[2])
    value = quoted[1] if quoted else pair[2]
    return (pair[1], value) if is_key(pair[1]) and not holds_key(value) else None


def _excerpt(text: str) -> str:
    shown = text.split("\n", 1)[0][:60].encode("utf-8", "replace").decode("utf-8")
    return repr(shown)


_EVENT_BYTES = re.compile(
    rb"^.{0,40}?\b[tc]:\S{1,40}\s+(?:[tce]:\S{1,40}\s+){0,2}CPU:\d{1,3}\s+"
    rb"(?:[tce]:\S{1,40}\s+){0,2}[A-Z]",
    re.MULTILINE,
)
_TITLE_BYTES = re.compile(
    rb"^\s*(?:TRACEPRINTER version|-- HEADER FILE INFORMATION --|-- KERNEL EVENTS --|TRACE_\w+:: )", re.MULTILINE
)


def score(first_bytes: bytes, _path: Path) -> int:
    """Return how likely a file is a listing, 0 to 95, by its banner, titles and event lines."""
    if first_bytes.startswith(b"TRACE_HEADER_BEGIN::"):
        return 0
    sample = first_bytes[:4096]
    if sample.startswith(b"TRACEPRINTER version"):
        return 95
    if _EVENT_BYTES.search(sample):
        return 90 if _TITLE_BYTES.search(sample) else 70
    return 60 if _TITLE_BYTES.search(sample) and b"\0" not in sample else 0


def open_listing(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a listing.

    Args:
        path: The text file.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Polled during the work; True stops the work.

    Raises:
        TraceFormatError: The file has neither a header nor an event.
        OSError: The file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    path = Path(path)
    size = max(1, path.stat().st_size)
    report_progress = None if progress is None else lambda done: progress(min(0.9, 0.9 * done / size))
    with path.open("rb") as file:
        return trace_of_stream(file, path, report_progress, cancelled)


def trace_of_stream(
    file: BinaryIO,
    path: Path,
    progress: Callable[[int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Read a listing from an open stream, such as a pipe; `path` is for titles and messages."""
    problems = Problems()
    listing = read_listing(file, problems, progress, cancelled)
    return trace_of_listing(listing, path, cancelled)


def trace_of_listing(listing: Listing, path: Path, cancelled: Callable[[], bool] | None = None) -> Trace:
    """Build the trace of a listing; TraceFormatError if it has neither a header nor an event."""
    if not len(listing.slots) and not listing.pairs:
        raise TraceFormatError(
            path, 0, "it has no line with an event", "open a .kev file, or text printed by traceprinter"
        )
    if not listing.is_release_known:
        listing.problems.add(
            "release-assumed", f"no usable SYS_RELEASE; {listing.release_reason or f'taken as {listing.release}'}"
        )
    trace = trace_from_slots(
        path,
        LISTING,
        listing.header,
        b"",
        listing.slot_array(),
        listing.byte_order,
        listing.problems,
        cancelled=cancelled,
        has_whole_buffers=False,
        times=listing.full_times(),
        release=listing.release,
    )
    listed = _listed_rows(trace, *listing.slots.listed())
    if isinstance(trace.payloads, SlotPayloads):
        trace.payloads.listed = dict(zip(*(column.tolist() for column in listed), strict=True))
    return replace(trace, lines=listing.line_counts.counts(), listed=listed if len(listed[0]) else None)


def _listed_rows(trace: Trace, slots: NDArray[np.int64], variants: NDArray[np.int32]) -> Listed:
    """Return the row and the layout variant of each event whose last slot is in `slots`, (n,) each; rows ascend."""
    last = trace.last_slots()
    order = np.argsort(last, kind="stable")
    position = np.minimum(np.searchsorted(last[order], slots), max(0, len(last) - 1))
    is_there = last[order][position] == slots if len(last) else np.zeros(len(slots), np.bool_)
    rows = order[position[is_there]] if len(last) else slots
    by_row = np.argsort(rows, kind="stable")
    return rows[by_row].astype(np.int64), variants[is_there][by_row]
