"""Opens a trace, from a file or a pipe, for a single pass: first the header is read, then the events."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import IS_A_FOLDER, TraceFormatError
from satview.events.catalogue import Catalogue, catalogue, listed_catalogue
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.formats import qst
from satview.formats.kev.assemble import LISTING, choose_rate, choose_release, clock_surroundings
from satview.formats.kev.header import (
    BEGIN,
    END,
    FROM_LISTING,
    MAX_HEADER_BYTES,
    key_byte_order,
    parse_header,
    parse_syspage,
)
from satview.formats.kev.reader import SAMPLE_SLOTS, byte_order_of
from satview.formats.kev.stream import EventStream, blocks_of_array, blocks_of_file
from satview.formats.linux import reader as linux
from satview.formats.listing.model import StampNotation
from satview.formats.listing.reader import read_listing
from satview.formats.listing.reader import score as listing_score
from satview.formats.qst import one_pass
from satview.formats.registry import is_packed, unpacked_stream
from satview.formats.unixware import reader as unixware
from satview.store.axis import looks_like_axis
from satview.store.problems import Problems
from satview.store.trace import Header, SystemInfo

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BLOCK: Final = 1 << 16
_SAMPLE: Final = 1 << 12
_CERTAIN: Final = 100
_AS_CSV: Final = "list their events with `satview export FILE -o events.csv --format list`"
# Formats that only `open_trace` reads: score of a file, least score, reason and remedy.
_NOT_IN_ONE_PASS: Final = (
    (qst.score, _CERTAIN, "the buffers of a QST file are not in time order, so it cannot be read as it comes",
     "unpack it, or write it to a file first"),
    (linux.score, 1, "a trace of Linux is not printed in the vendor's layout",
     "list its events with `satview export FILE -o events.csv --format list`"),
    (unixware.score, 1, "a trace of the threads library is not printed in the vendor's layout",
     "print it with `satview records`"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A trace that is read in a single pass.

    Attributes:
        path: The file; `-` for a pipe.
        format: `kev`, `qst` or `traceprinter`.
        header: Keys and values of the header.
        system_page: Image of the target's system page; empty if there is none.
        system: Content of the system page; None if there is none.
        byte_order: Byte order of the target.
        release: Release whose tables apply.
        cycles_per_s: Rate of the stamps.
        events: The events; can be iterated once.
        problems: Problems so far; more are added while the events are read.
        notations: For a listing: (class, event, argument) -> `%` template of numbers whose notation differs from that
            of the release's printer.
        listed: For a listing: number of the last slot of each event whose layout comes from its line, int64 (n,)
            ascending, and the variant of the layout, int32 (n,).
        stamps: For a listing: notation of times; None = that of the release's printer.
    """

    path: Path
    format: str
    header: Header
    system_page: bytes
    system: SystemInfo | None
    byte_order: str
    release: Release
    cycles_per_s: int
    events: EventStream
    problems: Problems
    notations: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    listed: tuple[NDArray[np.int64], NDArray[np.int32]] = field(
        default_factory=lambda: (np.empty(0, np.int64), np.empty(0, np.int32))
    )
    stamps: StampNotation | None = None

    @property
    def catalogue(self) -> Catalogue:
        """Names and argument lists of the release; for a listing, also of events that are only in the listing."""
        return listed_catalogue(self.release) if self.format == LISTING else catalogue(self.release)


@contextmanager
def opened(path: Path | str, standard_input: BinaryIO | None = None) -> Iterator[TraceSource]:
    """Open a trace for a single pass; the file is closed at the end of the block.

    Args:
        path: A file, or `-` for standard input.
        standard_input: The stream that `-` stands for.

    Raises:
        TraceFormatError: The file is no trace that can be read in a single pass, or its header is damaged.
        OSError: The file cannot be read.
    """
    if str(path) == "-":
        if standard_input is None:
            raise ValueError("no standard input was given")
        yield source_of(standard_input, Path("-"))
        return
    path = Path(path)
    if path.is_dir():
        raise TraceFormatError(path, None, *IS_A_FOLDER)
    with io.BufferedReader(_TraceFile(path)) as file:
        if qst.score(file.read(_SAMPLE), path) == _CERTAIN:
            yield _qst(path)
            return
        file.seek(0)
        yield source_of(file, path)


def source_of(file: BinaryIO, path: Path) -> TraceSource:
    """Return the trace in an open stream, also compressed by gzip or zstd; the first bytes determine the format.

    Raises:
        TraceFormatError: The stream is no trace that can be read in a single pass, or its header is damaged.
    """
    first_bytes = _read(file, _SAMPLE)
    if is_packed(first_bytes):
        file = unpacked_stream(first_bytes, file, path)
        first_bytes = _read(file, _SAMPLE)
    if not first_bytes:
        raise TraceFormatError(path, 0, "it is empty", "the capture wrote nothing; look at tracelogger's messages")
    if first_bytes.startswith(BEGIN) or BEGIN.startswith(first_bytes):
        return _kev(file, path, first_bytes)
    if listing_score(first_bytes, path) > 0:
        return _listing(file, path, first_bytes)
    for score, least, what, remedy in _NOT_IN_ONE_PASS:
        if score(first_bytes, path) >= least:
            raise TraceFormatError(path, 0, what, remedy)
    if looks_like_axis(first_bytes, path):
        raise TraceFormatError(path, None, "files on one axis are not printed together", f"print each, or {_AS_CSV}")
    raise TraceFormatError(
        path,
        0,
        "this is not a trace that satview knows",
        "give a .kev file written by tracelogger, or a listing printed by traceprinter",
    )


def _read(file: BinaryIO, size: int) -> bytes:
    """Return `size` bytes; fewer only at the end of the stream."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _kev(file: BinaryIO, path: Path, data: bytes) -> TraceSource:
    while END not in data and len(data) < MAX_HEADER_BYTES and (more := file.read(_BLOCK)):
        data += more
    is_all = END not in data and len(data) < MAX_HEADER_BYTES
    header = parse_header(data, path, len(data) if is_all or END in data else len(data) + 1)
    problems = Problems()
    length = header.number("SYSPAGE_LEN") or 0
    need = header.length + length
    if need > len(data):
        data += _read_at_most(file, need - len(data))
    if need > len(data):
        raise TraceFormatError(
            path,
            header.length,
            f"the header announces a system page of {length} bytes, but only {len(data) - header.length} bytes follow",
            "the file was cut short; copy it from the target again",
        )
    page, rest = data[header.length : need], data[need:]
    sample = SAMPLE_SLOTS * SLOT_BYTES
    if key_byte_order(header) is None:  # else do not wait for these bytes from a pipe
        rest += _read(file, max(0, sample - len(rest)))
    byte_order = byte_order_of(header, page, rest[:sample], problems)
    system, doubts = parse_syspage(page, byte_order)
    for doubt in doubts:
        problems.add("syspage", doubt, header.length)
    release = choose_release(header, system, problems)
    rate = choose_rate(header, system, problems)
    blocks = blocks_of_file(file, rest, byte_order, problems, need)
    # Listings may lack lines, so their buffers do not have their announced length.
    is_listed = header.get(FROM_LISTING[0]) == FROM_LISTING[1]
    events = EventStream(blocks, problems, need, release, has_whole_buffers=not is_listed)
    events.inform(clock_surroundings(header, system, release))
    return TraceSource(path, "kev", header, page, system, byte_order, release, rate, events, problems)


def _qst(path: Path) -> TraceSource:
    slots_in_order = one_pass(path)
    start = slots_in_order.start
    release = choose_release(start.header, None, start.problems)
    rate = choose_rate(start.header, None, start.problems)
    events = EventStream(slots_in_order.blocks(), start.problems, 0, release, slots_in_order.times)
    return TraceSource(
        path, "qst", start.header, b"", None, start.contents.byte_order, release, rate, events, start.problems
    )


def _read_at_most(file: BinaryIO, size: int) -> bytes:
    """Return up to `size` bytes; memory is allocated only for bytes that exist."""
    parts, left = [], size
    while left > 0 and (more := file.read(min(left, _BLOCK))):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def _listing(file: BinaryIO, path: Path, first_bytes: bytes) -> TraceSource:
    problems = Problems()
    listing = read_listing(unpacked_stream(first_bytes, file, path), problems)
    if not len(listing.slots):
        raise TraceFormatError(
            path, 0, "it has no line with an event", "give a .kev file, or text printed by traceprinter"
        )
    header = listing.header
    slots = listing.slot_array()
    events = EventStream(blocks_of_array(slots), problems, release=None, times=listing.full_times())
    rate = choose_rate(header, None, problems)
    return TraceSource(
        path,
        LISTING,
        header,
        b"",
        None,
        listing.byte_order,
        listing.release,
        rate,
        events,
        problems,
        listing.notations,
        listing.slots.listed(),
        listing.stamps,
    )


class _TraceFile(io.FileIO):
    """A trace file that raises read errors as TraceFormatError, to distinguish them from errors of an output file."""

    def readinto(self, buffer: Buffer, /) -> int | None:
        """Read as `FileIO` does; TraceFormatError if the system cannot read the file at this position."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            what = f"cannot be read: {error.strerror or error}"
            raise TraceFormatError(Path(str(self.name)), self.tell(), what, "copy it from the target again") from error

    def readall(self) -> bytes:
        """Read as `FileIO` does, but with `readinto` above."""
        return io.RawIOBase.readall(self) or b""
