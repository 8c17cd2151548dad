"""Opens QST files: finds headers and buffers, then builds a trace from the slots as for a .kev file.

Stamps have 32 bits. If every CPU has TIME events, these give the rollovers, and the rules of .kev files apply.
Otherwise the last stamp of a CPU without TIME events is assumed to be at the end of the trace, and rollovers of earlier
stamps are counted back from it.

Source: QST description; kernel event trace format, section 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import NS_PER_S
from satview.events import wire
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.clocks.clock import held_times
from satview.formats.kev.clocks.rollover import ROLLOVER, unwrap_segments
from satview.formats.kev.slots.slot_source import ScatteredSlots, SlotSource, SourceFile
from satview.formats.qst.sections import MAGIC_3, MAGIC_4, Buffers, Contents, read_contents
from satview.store.head import Header
from satview.store.problems import Problems
from satview.store.trace import Trace

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
    """Return the trace with a clock that puts its last event at the file's end time."""
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
    """Return the second trace; its problems are not reported, because only its names are used."""
    slots = buffers.slots_in(start.file, start.contents.byte_order)
    return trace_from_slots(
        "names", "qst", start.header, b"", slots, start.contents.byte_order, Problems(), has_whole_buffers=False
    )


_CHUNK = 1 << 17
_Ints = NDArray[np.int64]


def times_without_clock(slots: SlotSource) -> _Ints | None:
    """Return the time of every slot in cycles if any CPU has no TIME event; None if all CPUs have TIME events.

    Args:
        slots: The slots, in the order in which the kernel filled the buffers of each CPU.

    Returns:
        int64 (len(slots),).
    """
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
    """Return the CPU of every slot, and which slots are usable TIME events."""
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
    """Set the times of the slots of one CPU; return the latest time."""
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
    """Return the time of every slot: the time of the last event that begins at or before the slot."""
    order = np.argsort(trace.events.slot, kind="stable")
    slot, time = trace.events.slot[order].astype(np.int64), trace.events.time_cycles[order]
    row = np.searchsorted(slot, np.arange(trace.slot_count), "right") - 1
    return np.asarray(time[np.maximum(row, 0)])
