"""Writes a trace while a target sends it, as a whole or as a flight recorder that keeps the newest part."""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError, WriteError
from satview.base.new_file import NewFile
from satview.base.safe_text import byte_text, counted, visible_line
from satview.capture.flight_recorder import Bounds, FlightRecorder, Hit, TargetName, names_tail, unfinished
from satview.events import wire
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.triggers import Scan
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.header import (
    BEGIN,
    END,
    MAX_HEADER_BYTES,
    SlotWriter,
    header_bytes,
    key_byte_order,
    parse_header,
    write_kev,
)
from satview.store.mark_file import HEADER_MARK, HEADER_MARKS_MAX
from satview.store.problems import Problems
from satview.store.trace import Header, Trace
from satview.target.line import TargetError
from satview.target.request import FLUSH_S

# Writes a trace to a file while a target sends it, and adds satview's keys to its header.
#
# The file gets its name once its header is complete, so that it can be followed, and always ends with a whole slot.
# Gaps in the sequence numbers of BUFFER events, and the DROPPED events of 8.0, show losses (format description, 6.2).


_SHARED: Final = -1  # in place of a CPU before 8.0: all CPUs fill the same buffers
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class CutError(TargetError):
    """Writing the file failed; the part already written can be opened."""


class Arrival:
    """A `.kev` file that grows while its bytes are received.

    Args:
        path: The file; an existing file of that name is replaced once a header has been received.
        attributes: Keys and values to add to the header.

    Attributes:
        buffers: Number of BUFFER events received.
        lost: Number of buffers missing between the received ones, by their sequence numbers.
        drops: Number of DROPPED events received, by which the 8.0 kernel reports that it dropped events.
        began_s: `time.monotonic()` when the header was complete; 0 before.
        first_buffer_s: `time.monotonic()` when the first BUFFER event was received; 0 before.

    Raises:
        WriteError: The file cannot be created.
    """

    def __init__(self, path: Path, attributes: Sequence[tuple[str, str]]) -> None:
        self.path, self._attributes = path, list(attributes)
        self.received = self.buffers = self.lost = self.drops = 0
        self.began_s = self.first_buffer_s = 0.0
        self._create()
        self._sum = Checksum()
        self._rest = b""
        self._start_bytes = self._written = 0  # size of header and system page; of the file so far
        self._page_left = 0
        self._order = "<u4"
        self._last: dict[int, int] = {}
        self._is_per_cpu = self._is_cut = False

    @property
    def is_done(self) -> bool:
        """Whether the capture can end because no more data is needed."""
        return False

    @property
    def found_so_far(self) -> str:
        """Status text about results other than the amount of data; empty = none."""
        return ""

    @property
    def checksum(self) -> int:
        """Checksum of all received bytes, as `cksum` prints it."""
        return self._sum.value()

    def take(self, data: bytes) -> None:
        """Append received bytes; TargetError if they are no trace, CutError if the file cannot be written."""
        self.received += len(data)
        self._sum.add(data)
        data = self._rest + data
        if not self.began_s:
            data = self._without_header(data)
        page, data = data[: self._page_left], data[self._page_left :]
        self._page_left -= len(page)
        self._take_page(page)
        whole = len(data) // SLOT_BYTES * SLOT_BYTES if self.began_s else 0
        self._rest = data[whole:]
        self._count(data[:whole])
        self._take_slots(data[:whole])

    def wait(self) -> None:
        """Do work that is due while no data is received; nothing by default."""

    def _create(self) -> None:
        """Create the file."""
        self._new = NewFile(self.path, keeps_part=True, is_buffered=False)

    def _take_header(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Write the header, and give the file its name."""
        start = header_bytes(pairs)
        self._start_bytes = len(start) + self._page_left
        self._write(start)
        self._new.publish()

    def _take_page(self, data: bytes) -> None:
        """Write a part of the system page."""
        self._write(data)

    def _take_slots(self, data: bytes) -> None:
        """Write slots; `data` ends with a whole one."""
        self._write(data)

    def _without_header(self, data: bytes) -> bytes:
        """Write the header with the added keys once `data` contains all of it; return the bytes behind it.

        Until then `data` is returned unchanged.

        Raises:
            TargetError: The data is no trace.
        """
        if not data.startswith(BEGIN[: len(data)]):
            raise TargetError(f"what arrived is not a trace: it begins with {byte_text(data[:40])}; "
                              "check tracelogger on the target")  # fmt: skip
        if END not in data:
            if len(data) > MAX_HEADER_BYTES:
                raise TargetError("what arrived is not a trace: its header has no end; check tracelogger on the target")
            return data
        try:
            header = parse_header(data, self.path, len(data))
        except TraceFormatError as error:
            raise TargetError(str(error)) from error
        self._order = ">u4" if key_byte_order(header) == "big" else "<u4"
        self._is_per_cpu = release_of(header.get("SYS_RELEASE")) is Release.QNX_8
        self._page_left = header.number("SYSPAGE_LEN") or 0
        self._take_header((*header.pairs, *self._attributes))
        self.began_s = time.monotonic()
        return data[header.length :]

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                count = self._new.stream.write(left)
                self._written += count
                left = left[count:]
        except OSError as error:
            is_trace = self._written >= self._start_bytes > 0
            whole = self._start_bytes + (self._written - self._start_bytes) // SLOT_BYTES * SLOT_BYTES
            with contextlib.suppress(OSError):
                os.ftruncate(self._new.stream.fileno(), whole if is_trace else 0)
            self._is_cut = True
            self._new.discard(error if is_trace else None)
            kept = "what was written can be opened; " if is_trace else ""
            raise CutError(f"{self.path.name}: writing stopped after {self._written} bytes: {error.strerror or error}; "
                           f"{kept}make room, or name another file with -o") from error  # fmt: skip

    def _count(self, data: bytes) -> None:
        slots = np.frombuffer(data, self._order).reshape(-1, 4)
        codes = slots[:, 0] & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)
        self.drops += int(np.count_nonzero(codes == wire.CONTROL_DROPPED))
        for head, _, sequence, _ in slots[codes == wire.CONTROL_BUFFER].tolist():
            cpu = head >> wire.CPU_SHIFT & wire.CPU_MASK if self._is_per_cpu else _SHARED
            last = self._last.get(cpu)
            if last is not None and sequence > last:  # a number that is not larger starts a new count
                self.lost += sequence - last - 1
            self._last[cpu] = sequence
            self.buffers += 1
            self.first_buffer_s = self.first_buffer_s or time.monotonic()

    def finish(self) -> None:
        """Complete the file, or remove it if no header has arrived; CutError if it cannot be written."""
        if self._is_cut:
            return
        if not self.began_s:
            self._new.discard()
            return
        try:
            self._new.commit()
        except WriteError as error:
            raise CutError(f"{self.path.name}: could not be finished: {error.what}; make room, and check the file with "
                           "`satview info`") from error  # fmt: skip


class Checksum:
    """The checksum of the POSIX command `cksum`, computed incrementally.

    It is zlib's CRC-32 of the bytes followed by their length, with the bits of every byte and of the result reversed.
    """

    def __init__(self) -> None:
        self._crc, self._length = 0xFFFFFFFF, 0

    def add(self, data: bytes) -> None:
        """Add the next bytes to the checksum."""
        self._crc = zlib.crc32(data.translate(_REVERSED), self._crc)
        self._length += len(data)

    def value(self) -> int:
        """Return the checksum of the bytes so far."""
        length = self._length.to_bytes((self._length.bit_length() + 7) // 8, "little")
        return int(f"{zlib.crc32(length.translate(_REVERSED), self._crc):032b}"[::-1], 2)


# A flight recorder for a target over ssh: the target sends all events, and this machine keeps the ring of buffers.
#
# This machine also checks the triggers, so the target needs no event handlers, and tracing continues while a file is
# written. Buffers are decoded when they are received, once or twice each. As a trigger can depend on earlier events,
# some state is kept: running threads, names and open spans. A buffer goes to the ring once all its events have been
# checked.


_LATE_S: Final = 2 * FLUSH_S  # a CPU that sends nothing for so long had no events
_LOOK_S: Final = 0.05  # minimum time between checks, each of which takes at least some milliseconds
_MAX_UNCHECKED: Final = 64  # number of unchecked buffers at which they are checked at once
_NAMES_MAX: Final = 4096
Slots = NDArray[np.uint32]
_Ints = NDArray[np.int64]


@dataclass(slots=True)
class _Buffer:
    """A received buffer, and the trigger hits found in it so far."""

    slots: Slots
    hits: list[Hit] = field(default_factory=list)


class Recording(Arrival):
    """Puts received buffers into a ring, and writes the ring to a file after a trigger with STOP hits.

    Args:
        path: As for `FlightRecorder`.
        attributes: Keys and values to add to the headers.
        built: The rules, which include the triggers; events that the rules filter out are no hits.
        bounds: Limits of the ring and its files.
        tell: Called with a sentence for each file.

    Attributes:
        delay_s: Maximum time from an event that hit until the hit was noticed on this machine, by the clocks of both.
    """

    def __init__(
        self, path: Path, attributes: Sequence[tuple[str, str]], built: BuiltRules, bounds: Bounds,
        tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(path, attributes)
        self.recorder = FlightRecorder(path, bounds, self._write_file, tell)
        self.hits, self.delay_s = 0, 0.0
        self._built, self._tell = built, tell
        self._scans = [Scan(trigger) for trigger in built.triggers]
        self._pairs: Sequence[tuple[str, str]] = ()
        self._page = b""
        self._part = np.empty((0, 4), np.uint32)  # slots of an incomplete buffer
        self._open: list[_Buffer] = []  # buffers with unchecked events
        self._next = self._first = -1  # times in cycles: of the first unchecked event; of the first event
        self._open_from = -1  # start time of the open buffers in cycles
        self._last_of_cpu: dict[int, int] = {}
        self._running: dict[int, tuple[int, int]] = {}  # pid and tid by CPU
        self._names: dict[tuple[int, int], str] = {}
        self._losses_seen = 0
        self._heard_s = self._checked_s = 0.0
        self._unchecked = 0  # buffers received since the last check

    @property
    def is_done(self) -> bool:
        """See `Arrival.is_done`."""
        return self.recorder.is_done

    @property
    def found_so_far(self) -> str:
        """See `Arrival.found_so_far`."""
        return f"{counted(self.hits, 'hit')}, {counted(self.recorder.incidents, 'file')}"

    @property
    def forgotten(self) -> int:
        """Number of threads whose open spans were dropped because there were too many."""
        return sum(scan.forgotten for scan in self._scans)

    @property
    def byte_order(self) -> str:
        """Byte order of the target."""
        return "big" if self._order == ">u4" else "little"

    def _create(self) -> None:
        """Create no file, because hits of triggers do that."""

    def _take_header(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = pairs
        release = release_of(dict(pairs).get("SYS_RELEASE", ""))
        if release is not self._built.state.release:
            raise TargetError(f"the trace is of {release or 'an unknown release'}, and the rules were read for "
                              f"{self._built.state.release}")  # fmt: skip

    def _take_page(self, data: bytes) -> None:
        self._page += data

    def _take_slots(self, data: bytes) -> None:
        slots = np.frombuffer(data, self._order).reshape(-1, 4).astype(np.uint32)
        self._heard_s = time.monotonic()
        self._part = np.concatenate([self._part, slots])
        count = len(self._open)
        self._split_buffers()
        self._unchecked += len(self._open) - count
        if self._unchecked and (self._unchecked >= _MAX_UNCHECKED or self._heard_s - self._checked_s > _LOOK_S):
            self._check()

    def wait(self) -> None:
        """Check received buffers; after `_LATE_S` without data, check events that were held back too."""
        if self._unchecked:
            self._check()
        elif self._open and time.monotonic() - self._heard_s > _LATE_S:
            self._check(is_all=True)

    def finish(self) -> None:
        """Check the remaining buffers; write an incident that has not ended, or the ring if there was none."""
        if not self.began_s:
            return
        if len(self._part):
            self._open.append(_Buffer(self._part))
        if self._open:
            self._check(is_all=True)
        if self.recorder.is_ending:
            self.recorder.hand_over()
        elif not self.hits:
            self.recorder.save_untriggered()

    def _split_buffers(self) -> None:
        """Move complete buffers from `_part` to `_open`; a buffer's first slot contains its number of slots."""
        slots = self._part
        codes = slots[:, 0] & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)
        starts = np.flatnonzero(codes == wire.CONTROL_BUFFER).tolist()
        if not starts or starts[0]:
            starts.insert(0, 0)
        begin = 0
        for start, stop in zip(starts, [*starts[1:], None], strict=True):
            has_number = codes[start] == wire.CONTROL_BUFFER if len(slots) else False
            size = int(slots[start, 3]) if has_number else 0
            if stop is None and not 0 < size <= len(slots) - start:
                break
            begin = stop if stop is not None else start + size
            self._open.append(_Buffer(slots[start:begin]))
        self._part = slots[begin:]

    # ---- triggers ------------------------------------------------------------------------------------------------

    def _check(self, *, is_all: bool = False) -> None:
        """Check triggers at the unchecked events, up to `_complete_until`, or with `is_all` at all of them."""
        self._unchecked, self._checked_s = 0, time.monotonic()
        head = self._head()
        slots = np.concatenate([head, *(buffer.slots for buffer in self._open)])
        trace = trace_from_slots(
            self.path, "kev", Header(tuple(self._pairs)), self._page, slots, self.byte_order, Problems()
        )
        events = trace.events
        cycles, slot = events.time_cycles.astype(np.int64), events.slot.astype(np.int64)
        is_new = slot >= len(head)
        if not is_new.any():
            return
        if self._first < 0:
            self._first = self._next = int(cycles[is_new][0])
        trace = replace(trace, clock=replace(trace.clock, start_cycles=self._first))  # the zero of `time`
        stop = int(cycles[is_new].max()) + 1 if is_all else self._complete_until(trace, slots, len(head))
        rows = np.flatnonzero(is_new & (cycles >= self._next) & (cycles < stop)).astype(np.int64)
        self._find(trace, rows, self._ends(len(head)))
        self._store_state(trace, np.flatnonzero(cycles < stop))
        self._next = max(self._next, stop)
        self._pass_to_ring(cycles[is_new], slot[is_new] - len(head), stop)

    def _complete_until(self, trace: Trace, slots: Slots, head: int) -> int:
        """Return the time in cycles before which all events have been received.

        `slots` are `head` slots from `_head`, followed by those of the open buffers; `trace` is decoded from them.
        """
        events = trace.events
        is_new = events.slot >= head
        newest = int(events.time_cycles[is_new].max())
        stop = newest
        if self._is_per_cpu:
            for cpu in np.unique(events.cpu[is_new]).tolist():
                last = int(events.time_cycles[is_new & (events.cpu == cpu)].max())
                self._last_of_cpu[cpu] = max(last, self._last_of_cpu.get(cpu, 0))
            silent = newest - _LATE_S * trace.clock.cycles_per_s
            stop = min(max(last, silent) for last in self._last_of_cpu.values())
        for begin in unfinished(slots):
            stop = min([stop, *events.time_cycles[events.slot == begin].tolist()])
        return stop

    def _ends(self, head: int) -> _Ints:
        """Return the end of each open buffer as a slot number, int64 (buffers,); `head` is the start of the first."""
        return head + np.cumsum([len(buffer.slots) for buffer in self._open])

    def _find(self, trace: Trace, rows: _Ints, ends: _Ints) -> None:
        """Find hits of triggers among `rows`, and add them to the open buffers that contain them (`ends`: `_ends`)."""
        if self.lost > self._losses_seen:
            self._losses_seen = self.lost
            for scan in self._scans:
                scan.restart()
        rows = rows[self._built.mask(trace)[rows]]
        now_s, hits = time.monotonic(), []
        for scan in self._scans:
            hits += [(row, scan.trigger) for row in scan.hits(trace, rows).tolist()]
        for row, trigger in sorted(hits, key=lambda hit: hit[0]):
            cycles = int(trace.events.time_cycles[row])
            buffer = int(np.searchsorted(ends, int(trace.events.slot[row]), side="right"))
            self._open[min(buffer, len(self._open) - 1)].hits.append(Hit(trigger, cycles))
            self.hits += 1
            since_s = (cycles - self._first) / trace.clock.cycles_per_s
            self.delay_s = max(self.delay_s, now_s - self.began_s - since_s)

    def _store_state(self, trace: Trace, rows: NDArray[np.intp]) -> None:
        """Store running threads and names for the next check."""
        events, threads, processes = trace.events, trace.threads, trace.processes
        runs = rows[(events.code[rows] == wire.THREAD_RUNNING) & (threads.pid[events.thread[rows]] >= 0)]
        cpus, last = np.unique(events.cpu[runs][::-1], return_index=True)
        for cpu, row in zip(cpus.tolist(), runs[::-1][last].tolist(), strict=True):
            thread = int(events.thread[row])
            self._running[cpu] = (int(threads.pid[thread]), int(threads.tid[thread]))
        named = [((pid, 0), name) for pid, name in zip(processes.pid.tolist(), processes.names, strict=True)]
        named += [((pid, tid), name) for pid, tid, name
                  in zip(threads.pid.tolist(), threads.tid.tolist(), threads.names, strict=True)]  # fmt: skip
        for thread_id, name in named:
            if name and thread_id[0] >= 0:
                self._names[thread_id] = name
        while len(self._names) > _NAMES_MAX:
            del self._names[next(iter(self._names))]

    def _pass_to_ring(self, cycles: _Ints, slot: _Ints, stop: int) -> None:
        """Pass buffers whose events are all before `stop` to the ring, in order of receipt; `slot` as from `_ends`."""
        is_open = cycles >= stop
        first_open = int(slot[is_open].min()) if is_open.any() else None
        ends = self._ends(0).tolist()
        count = sum(end <= first_open for end in ends) if first_open is not None else len(ends)
        stays = cycles[slot >= ends[count - 1]] if count else cycles
        self._open_from = int(stays.min()) if len(stays) else stop
        for buffer in self._open[:count]:
            self.recorder.take(buffer.slots, buffer.hits)
        self._open = self._open[count:]

    def _head(self) -> Slots:
        """Return slots to decode before the open buffers: events with the time, known names and running threads."""
        writer = SlotWriter(self.byte_order)
        if self._next < 0:
            return writer.slots()
        now = self._open_from - 1
        writer.event(wire.CONTROL_TIME, 0, now, (now >> 32, now))
        for name in self._known_names():
            words = (name.pid, name.tid) if name.tid else (1, name.pid)
            code = wire.PROC_THREAD_NAME if name.tid else wire.PROC_CREATE_NAME
            writer.text_event(code, 0, now, words, name.text.encode(errors="replace"))
        for cpu, words in self._running.items():
            writer.event(wire.THREAD_RUNNING, cpu, now, words)
        return writer.slots()

    def _known_names(self) -> list[TargetName]:
        """Return the known names, each process before its threads."""
        return [TargetName(pid, tid, text, 1) for (pid, tid), text in sorted(self._names.items())]

    # ---- files ---------------------------------------------------------------------------------------------------

    def _write_file(self, path: Path, slots: Slots, hits: Sequence[Hit]) -> None:
        starts = slots[(slots[:, 0] & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)) == wire.CONTROL_BUFFER]
        sequence = int(starts[-1, 2]) if len(starts) else None
        rate = int(dict(self._pairs).get("CYCLES_PER_SEC", "0") or 0) or 1
        tail = names_tail(self._known_names(), self._next, rate, sequence, self.byte_order)
        noted = sorted(hits, key=lambda hit: not hit.trigger.action.stops)[:HEADER_MARKS_MAX]  # hits with STOP first
        if len(noted) < len(hits):
            self._tell(
                f"{path.name}: a header holds {HEADER_MARKS_MAX} marks, so {len(hits) - len(noted)} are left out"
            )
        marks = [
            (f"{HEADER_MARK}{number}", f"{hit.cycles} {_header_text(hit.trigger.mark)}")
            for number, hit in enumerate(sorted(noted, key=lambda hit: hit.cycles))
        ]
        try:
            write_kev(path, (*self._pairs, *marks), self._page, np.concatenate([slots, tail]), self.byte_order)
        except WriteError as error:
            raise CutError(f"{path.name}: cannot be written: {error.what}; make room, or name another file with "
                           "-o") from error  # fmt: skip


def _header_text(text: str) -> str:
    return visible_line(text).replace("TRACE_", "TRACE-").replace("::", ":")
