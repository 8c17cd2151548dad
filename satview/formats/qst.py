"""Opens QST files: finds the kernel buffers in the order they were filled, and builds a trace from their slots."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.base.time import NS_PER_S
from satview.events import wire
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.clock import held_times
from satview.formats.kev.consensus import ROLLOVER, unwrap_segments
from satview.formats.kev.slot_source import ScatteredSlots, SlotSource, SourceFile
from satview.store.problems import Problems
from satview.store.trace import Header, Trace

# Finds the kernel buffers in a QST file, in the order in which the kernel filled them.
#
# Sizes are checked before use: a section is cut at the end of the file; a buffer that is truncated or announces more
# slots than fit is reported and left out. All complete buffers are used.


MAGIC_3: Final = 0x51535433
MAGIC_4: Final = 0x51535434
MAIN: Final = 0x4D41494E  # slots, one after the other
DATA: Final = 0x44415441  # whole kernel buffers
BUFFERS: Final = 0x4B425546  # descriptions of the buffers of the slots in MAIN
NAMES: Final = 0x50494E46  # a second, short trace with names
SECTION_NAMES: Final = {MAIN: "MAIN", DATA: "DATA", BUFFERS: "KBUF", NAMES: "PINF"}
SECTION_VERSION: Final = 1
HEAD_BYTES: Final = 64
NO_CPU: Final = 0xFF  # 7.1 has one ring for all CPUs
SYSTEMS: Final = {710: "7.1.0", 800: "8.0.0"}

HEAD_4: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("head_bytes", "<u4"), ("flags", "<u4"), ("cycles_per_s", "<u8"),
    ("start_ns", "<i8"), ("end_ns", "<i8"), ("cpus", "<u4"), ("system", "<u4"), ("buffer_bytes", "<u4"),
    ("slots_at", "<u4"), ("buffers_per_cpu", "<u4"), ("reserved", "<u4"),
])  # fmt: skip
SECTION_4: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("bytes", "<u8"), ("entries", "<u4"), ("reserved", "<u4"),
])  # fmt: skip
BUFFER_4: Final = np.dtype([
    ("index", "<u4"), ("sequence", "<u4"), ("slots", "<u4"), ("flags", "<u4"), ("cpu", "u1"), ("reserved", "V7"),
])  # fmt: skip
HEAD_3: Final = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("cycles_per_s", "<u8"), ("end_s", "<u8"), ("end_rest_ns", "<u8"),
    ("last_stamp", "<u4"), ("reserved", "V28"),
])  # fmt: skip
SECTION_3: Final = np.dtype([("magic", "<u4"), ("entries", "<u4"), ("reserved", "V8")])

# Offsets in a kernel buffer (tracebuf_t), which is in the byte order of the target.
SLOT_COUNT_AT: Final = 20
SEQUENCE_AT: Final = 24
LEAST_BUFFER_HEAD: Final = 28
LEAST_BUFFER: Final = 1024  # minimum size of a kernel buffer; those of QNX have 16 KiB


_COPY_AGAIN: Final = "copy it from the target again"
_MANY: Final = 200
_MOST_CPUS: Final = 64
_HALF_RANGE: Final = 1 << 31
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Buffers:
    """Complete kernel buffers, in the order in which the kernel filled them; in 8.0 CPU by CPU.

    Attributes:
        offsets: int64 (n,), byte offset of the first slot.
        slots: int64 (n,), number of used slots.
        cpu: int64 (n,), CPU of the ring that contains the buffer; 0 if all CPUs share a ring.
        sequence: int64 (n,), sequence number.
    """

    offsets: _Ints
    slots: _Ints
    cpu: _Ints
    sequence: _Ints

    @classmethod
    def of(cls, columns: tuple[_Ints, _Ints, _Ints, _Ints]) -> Buffers:
        """Return the buffers that have slots, in the order in which the kernel filled them.

        `columns` are offset, slots, CPU and sequence number of all buffers, int64 (n,) each.
        """
        offsets, slots, cpu, sequence = columns
        used = np.flatnonzero(slots > 0)
        order = used[_in_order(cpu[used], sequence[used])]
        return cls(offsets[order], slots[order], cpu[order], sequence[order])

    def slots_in(self, file: SourceFile, byte_order: str) -> ScatteredSlots:
        """Return the slots of all buffers as one sequence."""
        return ScatteredSlots(file, self.offsets, self.slots, byte_order)

    @classmethod
    def run(cls, offset: int, slots: int) -> Buffers:
        """Return `slots` contiguous slots from byte `offset` on as one buffer; no buffer if there are no slots."""
        columns = [np.array([value], np.int64)[: int(slots > 0)] for value in (offset, slots, 0, 0)]
        return cls(*columns)


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a QST file.

    Attributes:
        version: 3 or 4.
        cycles_per_s: Rate of the stamps according to the file.
        start_ns, end_ns: Wall clock, ns since 1970 UTC; 0 = not given.
        cpus: Number of CPUs according to the file; 0 = not given.
        sys_release: `7.1.0` or `8.0.0`; empty if the file names another system.
        byte_order: Byte order of slots and of the headers of kernel buffers.
        main: Buffers of the trace.
        names: Buffers of a second, short trace, of which only names are used.
        last_stamp: Version 3: stamp of the last event; -1 = not given.
    """

    version: int
    cycles_per_s: int
    start_ns: int
    end_ns: int
    cpus: int
    sys_release: str
    byte_order: str
    main: Buffers
    names: Buffers
    last_stamp: int = -1


@dataclass(frozen=True, slots=True)
class _Section:
    magic: int
    offset: int  # byte offset of its content
    size: int  # bytes of the content that are in the file
    entries: int


def read_contents(file: SourceFile, path: Path, problems: Problems) -> Contents:
    """Return the content of a QST file.

    Args:
        file: The open file.
        path: For errors.
        problems: Receives damage.

    Raises:
        TraceFormatError: The header is truncated or invalid, or there is no buffer of the trace.
    """
    if file.size < HEAD_BYTES:
        raise TraceFormatError(path, file.size, f"the file ends inside its head of {HEAD_BYTES} bytes",
                               _COPY_AGAIN)  # fmt: skip
    magic = int(_records(file, 0, SECTION_3, 1)["magic"][0])
    contents = _version_3(file, path, problems) if magic == MAGIC_3 else _version_4(file, path, problems)
    if not len(contents.main.slots):
        raise TraceFormatError(path, HEAD_BYTES, "no complete kernel buffer with events is in it",
                               "the tracer wrote nothing, or the file was cut short; write it out again")  # fmt: skip
    return contents


def _records(file: SourceFile, offset: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    return np.frombuffer(file.bytes_at(dtype.itemsize * count, offset), dtype)


# ---- version 4 -----------------------------------------------------------------------------------------------------


def _version_4(file: SourceFile, path: Path, problems: Problems) -> Contents:
    head = _records(file, 0, HEAD_4, 1)[0]
    if int(head["version"]) != 4:
        raise TraceFormatError(path, 4, f"version {head['version']} in a file that begins as version 4 does",
                               "satview reads versions 3 and 4; the file may be damaged")  # fmt: skip
    head_bytes = int(head["head_bytes"])
    if not HEAD_BYTES <= head_bytes <= file.size:
        problems.add("header", f"a head of {head_bytes} bytes cannot be; read as {HEAD_BYTES}", 8)
        head_bytes = HEAD_BYTES
    order = "big" if int(head["flags"]) & 1 else "little"
    sections = {section.magic: section for section in _sections(file, head_bytes, problems)}
    if DATA in sections:
        shape = _Shape.of(head, path)
        main = _kernel_buffers(file, sections[DATA], shape, order, problems)
        names = Buffers.run(0, 0)
        if NAMES in sections:
            names = _kernel_buffers(file, sections[NAMES], shape, order, problems, is_main=False)
    else:
        main = _listed_slots(file, sections, problems)
        names = _slots_of(sections.get(NAMES), problems)
    system = int(head["system"])
    if system not in SYSTEMS:
        problems.add("header", f"system {system} is neither 710 nor 800", 44)
    return Contents(
        4, int(head["cycles_per_s"]), int(head["start_ns"]), int(head["end_ns"]), _cpus(int(head["cpus"]), problems),
        SYSTEMS.get(system, ""), order, main, names,
    )  # fmt: skip


def _cpus(count: int, problems: Problems) -> int:
    if 1 <= count <= _MOST_CPUS:
        return count
    problems.add("header", f"{count} CPUs: a target has 1 to {_MOST_CPUS}", 40)
    return 0


def _sections(file: SourceFile, offset: int, problems: Problems) -> list[_Section]:
    """Return the sections from an offset on, up to the first invalid one."""
    sections: list[_Section] = []
    size = SECTION_4.itemsize
    while offset + size <= file.size:
        head = _records(file, offset, SECTION_4, 1)[0]
        magic, length = int(head["magic"]), int(head["bytes"])
        if magic not in SECTION_NAMES or int(head["version"]) != SECTION_VERSION:
            what = f"{file.size - offset:,} bytes that are not a known section are left out"
            problems.add("section-cut", what, offset)
            return sections
        held_bytes = min(length, file.size - offset - size)
        if held_bytes < length:
            what = f"section {SECTION_NAMES[magic]} announces {length:,} bytes, {held_bytes:,} are there"
            problems.add("section-cut", what, offset + 8)
        sections.append(_Section(magic, offset + size, held_bytes, int(head["entries"])))
        offset += size + held_bytes
    if offset < file.size:
        problems.add("section-cut", f"{file.size - offset} bytes of the head of a section", offset)
    return sections


@dataclass(frozen=True, slots=True)
class _Shape:
    """Size of a kernel buffer, offset of its slots, and number of buffers per CPU (0: all CPUs share a ring)."""

    buffer_bytes: int
    slots_at: int
    buffers_per_cpu: int

    @property
    def capacity(self) -> int:
        """Number of slots that fit a buffer."""
        return (self.buffer_bytes - self.slots_at) // SLOT_BYTES

    @classmethod
    def of(cls, head: Any, path: Path) -> _Shape:
        """Return the sizes of kernel buffers in the header of a QST file; TraceFormatError if they are impossible."""
        size, slots_offset = int(head["buffer_bytes"]), int(head["slots_at"])
        if size < LEAST_BUFFER or not LEAST_BUFFER_HEAD <= slots_offset <= size - SLOT_BYTES:
            raise TraceFormatError(
                path, 48, f"kernel buffers of {size} bytes with slots from byte {slots_offset} on cannot be",
                "the head of the file is damaged; write it out again",
            )  # fmt: skip
        return cls(size, slots_offset, int(head["buffers_per_cpu"]) if int(head["system"]) == 800 else 0)


def _kernel_buffers(
    file: SourceFile, section: _Section, shape: _Shape, order: str, problems: Problems, *, is_main: bool = True
) -> Buffers:
    """Return the complete kernel buffers in a section; `is_main` = of the trace, not of the names beside it."""
    name = SECTION_NAMES[section.magic]
    count, rest = divmod(section.size, shape.buffer_bytes)
    if rest:
        what = f"a kernel buffer of {name} has {rest} of {shape.buffer_bytes} bytes"
        problems.add("section-cut", what, section.offset + count * shape.buffer_bytes)
    if section.entries != count + bool(rest):
        what = f"{name} announces {section.entries} kernel buffers, {count} are complete"
        problems.add("section-cut", what, section.offset - 8, abs(section.entries - count) or 1)
    offsets = section.offset + np.arange(count, dtype=np.int64) * shape.buffer_bytes
    heads = [file.bytes_at(8, int(buffer) + SLOT_COUNT_AT) for buffer in offsets]
    words = np.frombuffer(b"".join(heads), "<u4" if order == "little" else ">u4").reshape(-1, 2).astype(np.int64)
    slots, sequence = words[:, 0], words[:, 1]
    too_many = np.flatnonzero(slots > shape.capacity)
    for buffer in too_many[:_MANY].tolist():
        what = f"a kernel buffer of {name} announces {slots[buffer]} slots where {shape.capacity} fit; it is left out"
        problems.add("buffer-length", what, int(offsets[buffer]) + SLOT_COUNT_AT)
    if len(too_many) > _MANY:
        problems.add("buffer-length", "and more of the same", None, len(too_many) - _MANY)
    slots[too_many] = 0
    cpu = np.arange(count, dtype=np.int64) // shape.buffers_per_cpu if shape.buffers_per_cpu else slots * 0
    if is_main:
        _report_repeated(offsets, slots, cpu, sequence, problems)
    return Buffers.of((offsets + shape.slots_at, slots, cpu, sequence))


def _report_repeated(offsets: _Ints, slots: _Ints, cpu: _Ints, sequence: _Ints, problems: Problems) -> None:
    """Report buffers of a ring that have the same number, one of which must be wrong."""
    used = np.flatnonzero(slots > 0)
    key = cpu[used] << 32 | sequence[used]
    order = np.argsort(key, kind="stable")
    again = used[order[1:][key[order][1:] == key[order][:-1]]]
    for buffer in again[:_MANY].tolist():
        what = f"a kernel buffer has the number {sequence[buffer]} of another one"
        problems.add("buffer-order", what, int(offsets[buffer]) + SEQUENCE_AT)


def _slots_of(section: _Section | None, problems: Problems) -> Buffers:
    """Return a section of slots as one buffer."""
    if section is None:
        return Buffers.run(0, 0)
    count = min(section.entries, section.size // SLOT_BYTES)
    if count < section.entries:
        what = f"{SECTION_NAMES[section.magic]} announces {section.entries:,} slots, {count:,} are there"
        problems.add("section-cut", what, section.offset, section.entries - count)
    return Buffers.run(section.offset, count)


def _listed_slots(file: SourceFile, sections: dict[int, _Section], problems: Problems) -> Buffers:
    """Return the buffers of the older variant: slots in one section, the number of slots of each buffer in another."""
    slots, listed = _slots_of(sections.get(MAIN), problems), sections.get(BUFFERS)
    if listed is None or not len(slots.offsets):
        return slots
    count = min(listed.entries, listed.size // BUFFER_4.itemsize)
    rows = _records(file, listed.offset, BUFFER_4, count)
    counts, held_slots = rows["slots"].astype(np.int64), int(slots.slots[0])
    if int(counts.sum()) < held_slots or count < listed.entries:
        what = (
            f"KBUF lists {int(counts.sum()):,} slots, MAIN has {held_slots:,}; they are read in the order of the file"
        )
        problems.add("section-cut", what, listed.offset)
        return slots
    # The end of MAIN is missing: buffers whose slots are not all there are left out.
    ends = np.cumsum(counts)
    whole = ends <= held_slots
    if not whole.all():
        left_out = int(np.count_nonzero(counts[~whole]))
        problems.add(
            "section-cut", f"{left_out} kernel buffers of KBUF are not complete in MAIN", listed.offset, left_out
        )
    cpu = np.where(rows["cpu"] == NO_CPU, 0, rows["cpu"]).astype(np.int64)
    offsets = int(slots.offsets[0]) + (ends - counts) * SLOT_BYTES
    return Buffers.of((offsets[whole], counts[whole], cpu[whole], rows["sequence"].astype(np.int64)[whole]))


def _in_order(cpu: _Ints, sequence: _Ints) -> NDArray[np.intp]:
    """Return the order in which the kernel filled buffers, intp; numbers of a ring may have wrapped around once."""
    sequence = sequence.copy()
    for number in np.unique(cpu).tolist():
        of_cpu = cpu == number
        if np.ptp(sequence[of_cpu]) > _HALF_RANGE:
            sequence[of_cpu & (sequence < _HALF_RANGE)] += 1 << 32
    return np.lexsort((sequence, cpu))


# ---- version 3 -----------------------------------------------------------------------------------------------------


def _version_3(file: SourceFile, path: Path, problems: Problems) -> Contents:
    head = _records(file, 0, HEAD_3, 1)[0]
    if int(head["version"]) != 3:
        raise TraceFormatError(path, 4, f"version {head['version']} in a file that begins as version 3 does",
                               "satview reads versions 3 and 4; the file may be damaged")  # fmt: skip
    end_s, end_rest_ns = int(head["end_s"]), int(head["end_rest_ns"])
    sections: dict[int, _Section] = {}
    offset, size = HEAD_BYTES, SECTION_3.itemsize
    for magic in (NAMES, MAIN):
        if offset + size > file.size:
            problems.add("section-cut", f"section {SECTION_NAMES[magic]} is missing", offset)
            break
        section = _records(file, offset, SECTION_3, 1)[0]
        if int(section["magic"]) != magic:
            problems.add("section-cut", f"section {SECTION_NAMES[magic]} is not where it belongs", offset)
            break
        entries = int(section["entries"])
        sections[magic] = _Section(magic, offset + size, min(entries * SLOT_BYTES, file.size - offset - size), entries)
        offset += size + entries * SLOT_BYTES
    if offset < file.size and MAIN in sections:
        problems.add("section-cut", f"{file.size - offset:,} bytes behind the last slot are left out", offset)
    return Contents(
        3, int(head["cycles_per_s"]), 0, end_s * NS_PER_S + end_rest_ns, 0, "7.1.0", "little",
        _slots_of(sections.get(MAIN), problems), _slots_of(sections.get(NAMES), problems),
        int(head["last_stamp"]),
    )  # fmt: skip


# Opens QST files: finds headers and buffers, then builds a trace from the slots as for a .kev file.
#
# Stamps have 32 bits. If every CPU has TIME events, these give the rollovers, and the rules of .kev files apply.
# Otherwise the last stamp of a CPU without TIME events is assumed to be at the end of the trace, and rollovers of
# earlier stamps are counted back from it.
#
# Source: QST description; kernel event trace format, section 5.3.


_BEGINNINGS = tuple(struct.pack("<I", magic) for magic in (MAGIC_3, MAGIC_4))


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is a QST file: 100, 0, or 5 if only its name ends in .qst."""
    if first_bytes.startswith(_BEGINNINGS):
        return 100
    return 5 if path.suffix.lower() == ".qst" else 0


@dataclass(frozen=True, slots=True)
class QstStart:
    """A QST file before its slots are decoded.

    Attributes:
        contents: The content of the headers.
        header: The same content as keys and values.
        slots: Slots of the trace, in the order in which the kernel filled its buffers.
        times: int64 (slots,), cycles, if TIME events do not give them; else None.
        problems: Damage found so far.
        file: The open file.
    """

    contents: Contents
    header: Header
    slots: ScatteredSlots
    times: NDArray[np.int64] | None
    problems: Problems
    file: SourceFile


def read_start(path: Path | str) -> QstStart:
    """Read the headers of a QST file; the file stays open as long as its slots are used.

    Raises:
        TraceFormatError: There is no usable header, or no complete kernel buffer.
        OSError: The file cannot be read.
    """
    path, problems = Path(path), Problems()
    file = SourceFile(path, path.stat().st_size)
    contents = read_contents(file, path, problems)
    slots = contents.main.slots_in(file, contents.byte_order)
    if contents.last_stamp >= 0 and (last := int(slots.read(len(slots) - 1, len(slots))[0, 1])) != contents.last_stamp:
        what = f"the last stamp is {last:#x}, the head of the file says {contents.last_stamp:#x}"
        problems.add("clock-damaged", what, slots.byte(len(slots) - 1))
    return QstStart(contents, _header(path, contents), slots, times_without_clock(slots), problems, file)


def open_qst(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a QST file.

    Args:
        path: The file; it stays open as long as the trace exists.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Polled during the work; True stops the work.

    Raises:
        TraceFormatError: There is no usable header, or no complete kernel buffer.
        SourceChangedError: The file was overwritten while it was read.
        OSError: The file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    start = read_start(path)

    def stops() -> bool:
        start.file.check()
        return cancelled is not None and cancelled()

    trace = trace_from_slots(
        path, "qst", start.header, b"", start.slots, start.contents.byte_order, start.problems,
        progress=progress, cancelled=stops, times=start.times, byte_of_slot=start.slots.byte,
        has_whole_buffers=start.contents.version == 4,
    )  # fmt: skip
    return _with_wall_clock(_with_names(trace, start), start.contents)


def _header(path: Path, contents: Contents) -> Header:
    """Return the content of the file header under the keys of a .kev file."""
    pairs = [
        ("FILE_NAME", path.name),
        ("QST_VERSION", str(contents.version)),
        ("DATE", _date(contents.start_ns)),
        ("END_DATE", _date(contents.end_ns)),
        (f"{contents.byte_order.upper()}_ENDIAN", "TRUE"),
        ("CYCLES_PER_SEC", str(contents.cycles_per_s)),
        ("CPU_NUM", str(contents.cpus) if contents.cpus else ""),
        ("SYS_RELEASE", contents.sys_release),
        ("BUFFERS", str(len(contents.main.offsets))),
    ]
    return Header(tuple((key, value) for key, value in pairs if value))


def _date(wall_ns: int) -> str:
    try:
        return datetime.fromtimestamp(wall_ns // NS_PER_S, tz=UTC).strftime("%a %b %d %H:%M:%S %Y") if wall_ns else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _with_wall_clock(trace: Trace, contents: Contents) -> Trace:
    """Return the trace with a clock that puts its last event at the file's end time; unchanged without an end time."""
    if not _date(contents.end_ns) or not len(trace.events):
        return trace
    since_zero_ns = int(trace.events.time_cycles[-1]) * NS_PER_S // trace.clock.cycles_per_s
    zero_s, rest_ns = divmod(contents.end_ns - since_zero_ns, NS_PER_S)
    return replace(trace, clock=replace(trace.clock, boot_time_s=zero_s, boot_rest_ns=rest_ns))


def _with_names(trace: Trace, start: QstStart) -> Trace:
    """Return the trace with unnamed processes and threads named from the second, short trace of the file."""
    if not len(start.contents.names.offsets):
        return trace
    named = _names(start.contents.names, start)
    processes = {int(pid): name for pid, name in zip(named.processes.pid.tolist(), named.processes.names, strict=True)}
    threads = dict(zip(zip(named.threads.pid.tolist(), named.threads.tid.tolist(), strict=True), named.threads.names,
                       strict=True))  # fmt: skip
    process_names = tuple(
        name or processes.get(pid, "")
        for pid, name in zip(trace.processes.pid.tolist(), trace.processes.names, strict=True)
    )
    keys = zip(trace.threads.pid.tolist(), trace.threads.tid.tolist(), strict=True)
    thread_names = tuple(name or threads.get(key, "") for key, name in zip(keys, trace.threads.names, strict=True))
    return replace(
        trace,
        processes=replace(trace.processes, names=process_names),
        threads=replace(trace.threads, names=thread_names),
    )


def _names(buffers: Buffers, start: QstStart) -> Trace:
    """Return the second, short trace of a file, whose problems are not reported because only its names are used."""
    slots = buffers.slots_in(start.file, start.contents.byte_order)
    return trace_from_slots(
        "names", "qst", start.header, b"", slots, start.contents.byte_order, Problems(), has_whole_buffers=False
    )


_CHUNK = 1 << 17


def times_without_clock(slots: SlotSource) -> _Ints | None:
    """Return the time of every slot, cycles, int64, if any CPU has no TIME event; None if all CPUs have TIME events."""
    cpu, is_time = _heads(slots)
    present = np.flatnonzero(np.bincount(cpu, minlength=64))
    timed = np.bincount(cpu[is_time], minlength=64)
    if timed[present].all():
        return None
    stamps = slots.take(np.arange(len(slots), dtype=np.int64), 1)
    out = np.empty(len(slots), np.int64)
    ends = {number: _unwrap(number, slots, stamps, cpu, is_time, out) for number in present.tolist()}
    known = [end for number, end in ends.items() if timed[number]]
    last = max(known) if known else max(ends.values(), key=lambda end: end % ROLLOVER) % ROLLOVER
    for number, end in ends.items():
        if not timed[number]:  # the last stamp is at the end, or less than a rollover before it
            out[cpu == number] += last - (last - end) % ROLLOVER - end
    lowest = int(out.min())
    return out + (-lowest // ROLLOVER + 1) * ROLLOVER if lowest < 0 else out


def _heads(slots: SlotSource) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the CPU of every slot, uint8 (slots,), and which slots are usable TIME events, bool (slots,)."""
    cpu, is_time = np.empty(len(slots), np.uint8), np.empty(len(slots), np.bool_)
    for start in range(0, len(slots), _CHUNK):
        part = slots.read(start, min(start + _CHUNK, len(slots)))
        rows = slice(start, start + len(part))
        cpu[rows] = part[:, 0] >> wire.CPU_SHIFT & wire.CPU_MASK
        is_time[rows] = (part[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME) & (part[:, 2] >> 31 == 0)
    return cpu, is_time


def _unwrap(
    cpu: int,
    slots: SlotSource,
    stamps: NDArray[np.uint32],
    cpus: NDArray[np.uint8],
    is_time: NDArray[np.bool_],
    out: _Ints,
) -> int:
    """Set the times of the slots of one CPU, by the usable TIME events `is_time`; return the latest time."""
    rows = np.flatnonzero(cpus == cpu)
    time_at = np.flatnonzero(is_time[rows])
    time_slots = rows[time_at].astype(np.int64)
    values = slots.take(time_slots, 2).astype(np.int64) << 32 | slots.take(time_slots, 3)
    unwrap_segments(np.append(int(stamps[rows[0]]), values), stamps, rows, time_at, out)
    if len(time_at):
        before = rows[: time_at[0]]
        out[before] = held_times(stamps[before], int(values[0]))
    return int(out[rows].max())


_PASS_SLOTS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class OnePass:
    """The slots of a QST file, for one pass in time order.

    Attributes:
        start: Headers, and problems so far.
        slots: Buffers of all CPUs in the order of their first events.
        times: int64 (slots,), cycles.
    """

    start: QstStart
    slots: ScatteredSlots
    times: NDArray[np.int64]

    def blocks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the slots in chunks, uint32 (n, 4), host order."""
        for start in range(0, len(self.slots), _PASS_SLOTS):
            yield self.slots.read(start, min(start + _PASS_SLOTS, len(self.slots)))


def one_pass(path: Path) -> OnePass:
    """Return the slots of a file in time order; the whole file is decoded first, because it is ordered by CPU.

    Raises:
        TraceFormatError: As for `open_qst`.
        OSError: The file cannot be read.
    """
    times = _slot_times(open_qst(path))
    start = read_start(path)
    first_slots = start.slots.first
    order = np.argsort(times[first_slots[:-1]], kind="stable")
    main = start.contents.main
    buffers = Buffers(main.offsets[order], main.slots[order], main.cpu[order], main.sequence[order])
    moved = np.concatenate([times[first_slots[buffer] : first_slots[buffer + 1]] for buffer in order.tolist()])
    return OnePass(start, buffers.slots_in(start.file, start.contents.byte_order), moved)


def _slot_times(trace: Trace) -> NDArray[np.int64]:
    """Return the time of every slot: that of the last event that starts up to it, else of the first, int64."""
    order = np.argsort(trace.events.slot, kind="stable")
    slot, time = trace.events.slot[order].astype(np.int64), trace.events.time_cycles[order]
    row = np.searchsorted(slot, np.arange(trace.slot_count), "right") - 1
    return np.asarray(time[np.maximum(row, 0)])
