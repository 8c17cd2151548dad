"""Opens .kev files without a copy of their events in memory, and converts decoded files for a cache and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.base.shared_file import DamagedFileError
from satview.base.time import Clock
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.header import (
    BEGIN,
    MAX_HEADER_BYTES,
    fits,
    key_byte_order,
    parse_header,
    parse_syspage,
    slot_byte_order,
)
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.slot_source import FileSlots, ScatteredSlots, SourceFile
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, Fragments, ProcessTable, StateIndex, ThreadTable
from satview.store.trace import Header, Trace

# Opens .kev files. Slots are read when requested: no copy of the event region is held in memory.
#
# A bad copy may lose or gain bytes, which shifts all slots after that place. If the shift is not a multiple of 16
# bytes, reading on in steps of 16 bytes gives noise that looks like events. Only a file whose size is not valid is
# searched for shifts: if the last kernel buffers are at multiples of 16 bytes, nothing is shifted. A kernel buffer
# begins with a BUFFER slot, which has the same stamp as the next slot (section 6.1).


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
    """Return the byte order of a file from its header, else guess it from page and first slots, and report this."""
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
    """Return the slots from an offset on, even if bytes are missing or inserted between slots, which is reported."""
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
    """Return the offsets of BUFFER slots, except those inside a buffer that ends right before another BUFFER slot.

    `heads` are the offset of each BUFFER slot and the offset of the end of its buffer.
    """
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
    """Return the end of slots with the old alignment and the start of the new: those with most plausible slots.

    `last` and `head` are the offsets of the last BUFFER slot with the old alignment, and the first with the new one.
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


# Converts a decoded .kev file to arrays and plain values for a cache, and back. Payloads stay in the file itself.
#
# Types, lengths, and the range of every row and slot number from the cache are checked here. The cache itself checks
# that the file is the same.


Arrays = Mapping[str, NDArray[Any]]
_TABLES: Final = {
    "events": EventTable, "threads": ThreadTable, "processes": ProcessTable, "states": StateIndex,
    "buffers": BufferTable, "fragments": Fragments,
}  # fmt: skip
_DTYPES: Final = {
    "events.time_cycles": "i8", "events.code": "u2", "events.cpu": "u1", "events.thread": "u2 u4",
    "events.slot": "u4 u8", "events.slot_count": "u2 u4", "threads.pid": "i4", "threads.tid": "i4",
    "threads.process": "i4", "processes.pid": "i4", "processes.parent_pid": "i4", "processes.created_cycles": "i8",
    "processes.destroyed_cycles": "i8", "states.event": "u4", "states.start": "i8", "buffers.slot": "i8",
    "buffers.cpu": "u1", "buffers.sequence": "u4", "buffers.slots": "u4", "buffers.time_cycles": "i8",
    "buffers.lost_before": "u4", "fragments.event": "u4", "fragments.start": "i8", "fragments.slot": "u4 u8",
    "truncated": "u4", "code_counts": "i8", "gaps": "i8",
}  # fmt: skip
_CPUS: Final = 64


def arrays_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Return the columns of a trace, (n,) each, by `TABLE.COLUMN`, without copying; `gaps` are flattened."""
    columns = {
        f"{name}.{column.name}": getattr(getattr(trace, name), column.name)
        for name, table in _TABLES.items()
        for column in fields(table)
        if column.name != "names"
    }
    return columns | {"truncated": trace.truncated, "code_counts": trace.code_counts, "gaps": trace.gaps.ravel()}


def values_of(trace: Trace) -> dict[str, Any]:
    """Return the values of a trace that are neither columns nor in the header of its file, for JSON."""
    return {
        "release": str(trace.release),
        "is_absolute": trace.clock.is_absolute,
        "cycles_per_s": trace.clock.cycles_per_s,
        "cpu_count": trace.cpu_count,
        "dump_end_cycles": trace.dump_end_cycles,
        "threads": list(trace.threads.names),
        "processes": list(trace.processes.names),
        "problems": trace.problems.values(),
    }


def trace_of(path: Path, start: KevStart, values: Mapping[str, Any], arrays: Arrays) -> Trace:
    """Return the trace of a file from its cached values.

    Args:
        path: The file.
        start: Header, system page and slots of the file.
        values: Result of `values_of`.
        arrays: Result of `arrays_of`.

    Raises:
        DamagedFileError: The values or arrays cannot belong to this file.
    """
    try:
        return _trace_of(path, start, values, arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"it holds no trace: {error}") from error


def _trace_of(path: Path, start: KevStart, values: Mapping[str, Any], arrays: Arrays) -> Trace:
    for name, kinds in _DTYPES.items():
        if arrays[name].dtype not in [np.dtype(kind) for kind in kinds.split()] or arrays[name].ndim != 1:
            raise ValueError(f"column {name} is of another type")
    names = {name: tuple(map(str, values[name])) for name in ("threads", "processes")}
    tables: dict[str, Any] = {}
    for name, table in _TABLES.items():
        columns = {
            column.name: names[name] if column.name == "names" else arrays[f"{name}.{column.name}"]
            for column in fields(table)
        }
        tables[name] = table(**columns)
        # EventTable checks its lengths itself; lengths of groups are checked below.
        if name in ("threads", "processes", "buffers") and len({len(column) for column in columns.values()}) != 1:
            raise ValueError(f"the columns of {name} differ in length")
    _check_numbers(tables, arrays, len(start.slots))
    system, _ = parse_syspage(start.page, start.byte_order)
    release = Release(str(values["release"]))
    events, tables_of = tables["events"], catalogue(release)
    begin = int(events.time_cycles[0]) if len(events) else 0
    clock = Clock(int(values["cycles_per_s"]), begin, system.boot_time_s if system else None,
                  bool(values["is_absolute"]))  # fmt: skip
    cpu_count = int(values["cpu_count"])
    if not 1 <= cpu_count <= _CPUS or clock.cycles_per_s < 1:
        raise ValueError("impossible number of CPUs or clock rate")
    payloads = SlotPayloads(start.slots, events, tables["fragments"], start.byte_order, tables_of)
    trace = Trace(
        path,
        "kev",
        start.header,
        system,
        release,
        start.byte_order,
        clock,
        cpu_count,
        len(start.slots),
        events,
        tables["threads"],
        tables["processes"],
        tables["states"],
        tables["buffers"],
        payloads,
        Problems.of_values(values["problems"]),
        tables_of,
        int(values["dump_end_cycles"]),
        tables["fragments"],
        arrays["truncated"],
        gaps=np.ascontiguousarray(arrays["gaps"]).reshape(-1, 4),
    )
    trace.cached("code_counts", lambda _trace: arrays["code_counts"])
    return trace


def _check_numbers(tables: Mapping[str, Any], arrays: Arrays, slots: int) -> None:
    """Raise ValueError if cached columns, by `TABLE.COLUMN`, contradict each other or name rows that do not exist."""
    events, threads, processes = len(tables["events"]), len(tables["threads"]), len(tables["processes"])
    for name, below in (
        ("events.code", CODE_COUNT), ("events.cpu", _CPUS), ("events.thread", threads), ("events.slot", slots),
        ("threads.process", processes), ("states.event", events), ("fragments.event", events),
        ("fragments.slot", slots), ("truncated", events), ("buffers.slot", slots),
    ):  # fmt: skip
        # These numbers are used as indices without further checks: an invalid one would read another row or raise an
        # exception long after the file was opened.
        column = arrays[name]
        if len(column) and not (int(column.max()) < below and int(column.min()) >= 0):
            raise ValueError(f"column {name} names what is not there")
    for name, of, count in (("states", "event", threads), ("fragments", "slot", len(arrays["fragments.event"]))):
        start, rows = arrays[f"{name}.start"], arrays[f"{name}.{of}"]
        if len(start) != count + 1 or int(start[0]) or int(start[-1]) != len(rows) or np.any(start[1:] < start[:-1]):
            raise ValueError(f"the groups of {name} do not fit")
    if len(arrays["code_counts"]) != CODE_COUNT or int(arrays["code_counts"].sum()) != events:
        raise ValueError("the counts of events do not fit")
    if len(arrays["fragments.event"]) and int(np.diff(arrays["fragments.start"]).min()) < 1:
        raise ValueError("an event has no slots")
    if int(arrays["events.slot_count"].min(initial=1)) < 1:
        raise ValueError("an event has no slots")
    if threads < 1 or processes < 1:
        raise ValueError("the first thread or process is missing")
