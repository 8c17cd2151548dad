"""Opens .kev files. Slots are read when requested: no copy of the event region is held in memory.

A bad copy may lose or gain bytes, which shifts all slots after that place. If the shift is not a multiple of 16 bytes,
reading on in steps of 16 bytes gives noise that looks like events. Only a file whose size is not valid is searched for
shifts: if the last kernel buffers are at multiples of 16 bytes, nothing is shifted. A kernel buffer begins with a
BUFFER slot, which has the same stamp as the next slot (section 6.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.events import wire
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.header import BEGIN, MAX_HEADER_BYTES, key_byte_order, parse_header, slot_byte_order
from satview.formats.kev.slots.slot_source import FileSlots, ScatteredSlots, SourceFile
from satview.formats.kev.syspage import fits
from satview.store.head import Header
from satview.store.problems import Problems
from satview.store.trace import Trace

SAMPLE_SLOTS: Final = 4096


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is a .kev file: 100, 0, or 5 if only its name ends in .kev."""
    if first_bytes.startswith(BEGIN) or (len(first_bytes) >= 5 and BEGIN.startswith(first_bytes)):
        return 100
    return 5 if path.suffix.lower() == ".kev" else 0


def open_kev(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a .kev file.

    Args:
        path: The file; it stays open as long as the trace exists.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Polled during the work; True stops the work.

    Raises:
        TraceFormatError: The file has no usable header, or ends before its events.
        SourceChangedError: The file was overwritten while it was read.
        OSError: The file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    start = read_start(path)
    source, slots, problems = start.source, start.slots, start.problems

    def stops() -> bool:
        source.check()
        return cancelled is not None and cancelled()

    # `tracelogger -S`, a full disk or an interrupted copy may truncate the last slot (section 1.3).
    end = slots.byte(len(slots))
    if rest := source.size - end:
        problems.add("partial-slot", f"{rest} of {SLOT_BYTES} bytes of the last slot", end)
    return trace_from_slots(
        path,
        "kev",
        start.header,
        start.page,
        slots,
        start.byte_order,
        problems,
        byte_of_slot=slots.byte,
        progress=progress,
        cancelled=stops,
    )


@dataclass(frozen=True, slots=True)
class KevStart:
    """Header and system page of a file, and access to its slots.

    Attributes:
        header: The text header.
        page: Image of the system page.
        byte_order: `little` or `big`.
        problems: Problems of header and byte order.
        source: The open file.
        slots: Source of its slots.
        offset: Byte offset of the first slot.
    """

    header: Header
    page: bytes
    byte_order: str
    problems: Problems
    source: SourceFile
    slots: FileSlots | ScatteredSlots
    offset: int


def read_start(path: Path | str) -> KevStart:
    """Read header and system page of a .kev file; the file stays open as long as its slots are used.

    Raises:
        TraceFormatError: The file has no usable header, or ends before its events.
        OSError: The file cannot be read.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        header = parse_header(file.read(min(size, MAX_HEADER_BYTES)), path, size)
        page_length = header.number("SYSPAGE_LEN") or 0
        # Checked before anything is allocated: the number comes from the file (section 11).
        offset = header.length + page_length
        if offset > size:
            raise TraceFormatError(
                path,
                header.length,
                f"the header announces a system page of {page_length} bytes, but only "
                f"{size - header.length} bytes follow",
                "the file was cut short; copy it from the target again",
            )
        file.seek(header.length)
        page = file.read(page_length)
        sample = file.read(SAMPLE_SLOTS * SLOT_BYTES)
    problems = Problems()
    byte_order = byte_order_of(header, page, sample, problems)
    report_header(header, problems)
    source = SourceFile(path, size)
    slots = slots_of(source, offset, byte_order, problems)
    return KevStart(header, page, byte_order, problems, source, slots, offset)


def byte_order_of(header: Header, page: bytes, sample: bytes, problems: Problems) -> str:
    """Return the byte order of a file from its header; if the header has none, guess from the data and report this."""
    order = key_byte_order(header)
    if order is not None:
        return order
    keys = [key for key, _ in header.pairs if key.endswith("_ENDIAN")]
    # `size <= total_size == SYSPAGE_LEN` holds in one order only (section 2).
    usable = [name for name in ("little", "big") if fits(page, name)]
    byte_order = usable[0] if len(usable) == 1 else slot_byte_order(sample)
    header_says = " and ".join(f"TRACE_{key}" for key in keys) or "neither byte order"
    problems.add("byte-order", f"the header says {header_says}; the data reads as {byte_order}-endian", 0)
    return byte_order


def report_header(header: Header, problems: Problems) -> None:
    """Report header keys that are missing or invalid."""
    missing = [key for key in ("CYCLES_PER_SEC", "SYS_RELEASE", "SYSPAGE_LEN") if header.get(key) == ""]
    if missing:
        problems.add("header", f"no TRACE_{', no TRACE_'.join(missing)}", 0, len(missing))
    elif header.number("SYSPAGE_LEN") is None:
        problems.add("header", f"TRACE_SYSPAGE_LEN is {header.get('SYSPAGE_LEN')!r}, no number: taken as 0", 0)


_CHUNK_BYTES: Final = 1 << 22
_LONGEST_BUFFER: Final = 1 << 18  # bytes; kernel buffers have 16 KiB
_UNUSED_BITS: Final = 0x00FE8000  # of a header word
_SLACK_CYCLES: Final = 1 << 20  # stamps may step back by this much without any loss
_HEADS: Final = {
    "little": re.compile(rb"\x02\x04\x00[\x00-\x3f]", re.DOTALL),
    "big": re.compile(rb"[\x00-\x3f]\x00\x04\x02", re.DOTALL),
}


def slots_of(file: SourceFile, offset: int, byte_order: str, problems: Problems) -> FileSlots | ScatteredSlots:
    """Return the slots of a file from an offset on, even if bytes are missing or inserted between slots.

    Args:
        file: The file.
        offset: Byte offset of the first slot.
        byte_order: Byte order of the file.
        problems: Receives `shifted-slots`.
    """
    in_a_row = FileSlots(file, offset, (file.size - offset) // SLOT_BYTES, byte_order)
    tail = max(offset, file.size - _CHUNK_BYTES)
    if not (file.size - offset) % SLOT_BYTES:
        return in_a_row
    heads = _outside_buffers(_buffer_heads(file, tail, file.size, byte_order))
    if not heads or not (heads[-1] - offset) % SLOT_BYTES:
        return in_a_row
    runs = [(offset, offset)]  # offsets of the first slot and of the last BUFFER slot of each aligned run
    heads = _outside_buffers(_buffer_heads(file, offset, file.size, byte_order))
    for head, following in zip(heads, [*heads[1:], heads[-1]], strict=True):
        start, last = runs[-1]
        if (head - start) % SLOT_BYTES:
            if not (following - start) % SLOT_BYTES:
                continue  # the next buffer is aligned as before: this one is payload that looks like a buffer
            cut, begin = _border(file, max(last, head - _LONGEST_BUFFER // SLOT_BYTES * SLOT_BYTES), head, byte_order)
            # The run before must end with a whole slot.
            cut -= (cut - start) % SLOT_BYTES
            problems.add("shifted-slots", f"from here on slots lie {(head - start) % SLOT_BYTES} bytes further on", cut)
            runs[-1] = start, cut
            runs.append((begin, head))
        else:
            runs[-1] = start, head
    runs[-1] = runs[-1][0], file.size
    offsets, ends = np.array(runs, np.int64).T
    return ScatteredSlots(file, offsets, (ends - offsets) // SLOT_BYTES, byte_order)


def _outside_buffers(heads: Iterator[tuple[int, int]]) -> list[int]:
    """Return the offsets of BUFFER slots, except false ones inside a buffer with a BUFFER slot right after its end."""
    buffers, offsets, over = list(heads), list[int](), 0
    starts = {start for start, _ in buffers}
    for start, end in buffers:
        if start >= over:
            offsets.append(start)
            over = end if end in starts else over
    return offsets


def _buffer_heads(file: SourceFile, start: int, end: int, byte_order: str) -> Iterator[tuple[int, int]]:
    """Yield offset and end of the buffer for each BUFFER slot between two offsets, also at unaligned offsets."""
    for chunk_offset in range(start, end, _CHUNK_BYTES):
        data = file.bytes_at(min(_CHUNK_BYTES + 2 * SLOT_BYTES - 1, end - chunk_offset), chunk_offset)
        for match in _HEADS[byte_order].finditer(data):
            position = match.start()
            stamps = [data[offset : offset + 4] for offset in (position + 4, position + SLOT_BYTES + 4)]
            if position < _CHUNK_BYTES and stamps[0] == stamps[1] and len(stamps[1]) == 4:
                slots = int(_words(data, position, 1, byte_order)[0, 3])  # 0 in rings and before 6.6
                yield chunk_offset + position, chunk_offset + position + slots * SLOT_BYTES


def _border(file: SourceFile, last: int, head: int, byte_order: str) -> tuple[int, int]:
    """Return the offsets where slots with the old alignment end and slots with the new alignment begin.

    These are the offsets that give the largest number of plausible slots.

    Args:
        file: The file.
        last: Offset of the last BUFFER slot with the old alignment.
        head: Offset of the first BUFFER slot with the new alignment.
        byte_order: Byte order of the file.
    """
    data = file.bytes_at(head + 2 * SLOT_BYTES - last, last)
    before = _words(data, 0, (head - last) // SLOT_BYTES, byte_order)
    lead = (head - last) % SLOT_BYTES
    behind = _words(data, lead, (head - last) // SLOT_BYTES, byte_order)
    begin, end = before[:1, 1], _words(data, head - last, 1, byte_order)[:, 1]
    before_fits, behind_fits = (np.cumsum(_can_be(slots, begin, end)) for slots in (before, behind))
    behind_fits = behind_fits[-1:] - behind_fits
    slots = np.arange(len(before_fits) + 1)
    fitting_count = np.concatenate(([0], before_fits)) + np.concatenate((behind_fits, [0]))
    cut = int(slots[np.argmax(fitting_count)])
    return last + cut * SLOT_BYTES, last + lead + min(cut, len(behind)) * SLOT_BYTES


def _words(data: bytes, position: int, count: int, byte_order: str) -> NDArray[np.uint32]:
    words = np.frombuffer(data, f"{'<' if byte_order == 'little' else '>'}u4", count * 4, position)
    return words.astype(np.uint32).reshape(count, 4)


def _can_be(slots: NDArray[np.uint32], begin: NDArray[np.uint32], end: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which slots may be events between two stamps, by stamp, class and unused bits, bool (n,)."""
    since = slots[:, 1] - begin + np.uint32(_SLACK_CYCLES)  # modulo 2^32, as stamps are
    is_in_time = since <= end - begin + np.uint32(2 * _SLACK_CYCLES)
    has_class = (slots[:, 0] >> wire.CLASS_SHIFT & wire.CLASS_MASK) != wire.WireClass.EMPTY
    fits: NDArray[np.bool_] = is_in_time & has_class & (slots[:, 0] & _UNUSED_BITS == 0)
    return fits
