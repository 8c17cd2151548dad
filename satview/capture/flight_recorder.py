"""Flight recorders, which keep the newest buffers in a ring until a trigger fires, and a writer of QST files."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError, WriteError
from satview.base.new_file import write_file
from satview.base.time import NS_PER_S
from satview.capture.buffers import BufferRing, CaptureError, KevFile, LoggerOptions, Output, Say, start_of_file
from satview.capture.kernel import Kernel, mode
from satview.capture.logger import Probe
from satview.capture.sim.target import Target
from satview.events import wire
from satview.events.catalogue import BUFFER_SIZES
from satview.events.spec import Release
from satview.events.variants import text_words
from satview.events.wire import SLOT_BYTES
from satview.filters.external import EventContext
from satview.filters.rules.triggers import Trigger, Watch
from satview.formats import qst
from satview.formats.kev.header import SlotWriter, write_kev
from satview.store.mark_file import MARK_EVENT, is_mark, mark_number, mark_text

# A flight recorder: keeps the newest buffers in memory, and writes them to a file when a trigger hits.
#
# The buffers come from a simulated kernel or over a connection; tracing never stops for the recorder. A trigger with
# STOP ends the incident after as many further buffers as its KEEP specifies; further hits until then become marks in
# the same file. Writing the file empties the ring, and with `every` the next incident begins: each buffer and each mark
# is in at most one file.


BUFFER_BYTES: Final = 16 << 10
_MAX_EXTRA_BUFFERS: Final = 4  # that a file may contain so that its last events are complete
_HEADER_BYTES: Final = 64 << 10  # upper limit for header, system page and names
_NAMES_PAUSE_S: Final = 2.5  # as in ring captures of 7.x: names after such a pause do not extend the trace
_MAX_NAMES: Final = 4096  # names of processes and threads in a file
_SIZE: Final = re.compile(r"(\d{1,12})\s*([kKmMgG]?)B?")
Slots = NDArray[np.uint32]


def disk_bytes(text: str, option: str) -> int:
    """Return a size such as `2GB` or `500M` in bytes, by powers of 1024; UsageError, with `option`, for other texts."""
    size = _SIZE.fullmatch(text.strip())
    if size is None or not int(size[1]):
        raise UsageError(f"{option} {text[:40]}: must be a size, for example 500M or 2GB")
    return int(size[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[size[2].lower()]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a trigger.

    Attributes:
        trigger: The trigger.
        cycles: Time of the event that hit, by the target's clock.
    """

    trigger: Trigger
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a flight recorder.

    Attributes:
        buffers: Size of the ring: number of buffers before and after a trigger together.
        is_repeated: After writing a file, continue with the next incident.
        files: Maximum number of files to keep; the oldest are removed. 0 = no limit.
        disk_bytes: Total size of the files to keep; 0 = no limit.
    """

    buffers: int
    is_repeated: bool = False
    files: int = 0
    disk_bytes: int = 0

    def check(self, triggers: Sequence[Trigger]) -> None:
        """Raise UsageError, with the remedy, if the limits contradict each other or the triggers."""
        keep = max((trigger.action.keep for trigger in triggers if trigger.action.stops), default=-1)
        if keep < 0:
            raise UsageError("the recorder needs a rule that ends an incident, as in WHEN ... THEN STOP")
        if keep >= self.buffers:
            raise UsageError(f"KEEP {keep} buffers: the ring has {self.buffers}, and the one with the trigger has to "
                             f"stay too; -k {keep + 1} or more")  # fmt: skip
        if (self.files or self.disk_bytes) and not self.is_repeated:
            raise UsageError("a number of files and a limit of the disk are for --every; without it there is one file")
        if 0 < self.disk_bytes < (size := (self.buffers + _MAX_EXTRA_BUFFERS) * BUFFER_BYTES + _HEADER_BYTES):
            raise UsageError(f"the limit of the disk is {self.disk_bytes:,} bytes, and one file of {self.buffers} "
                             f"buffers may take {size:,}")  # fmt: skip


class FlightRecorder:
    """A ring of buffers that is written to a file after each incident.

    Args:
        path: The file. With `bounds.is_repeated` each file gets a number: `incident-0001.kev` for `incident.kev`.
        bounds: Limits.
        write: Writes slots, shape (n, 4), and the hits in them to a file; raises SatviewError on failure.
        tell: Called with a sentence for each file.

    Attributes:
        files: Files that this recorder wrote and kept, oldest first; those of earlier runs are not counted or removed.
        incidents: Number of files written.
        marks: Number of hits in the files written.
        is_done: Only one incident was requested, and its file is written.
    """

    def __init__(
        self, path: Path, bounds: Bounds, write: Callable[[Path, Slots, Sequence[Hit]], None],
        tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.files: list[Path] = []
        self.incidents = self.marks = 0
        self.is_done = False
        self._path, self._bounds, self._write, self._tell = path, bounds, write, tell
        self._ring: deque[tuple[Slots, Sequence[Hit]]] = deque()
        self._extra_buffers = 0  # buffers added so that the last events are complete
        self._awaited_buffers = -1  # buffers to add before the file is written; -1 = no trigger has hit
        self._number = _last_number(path) if bounds.is_repeated else 0

    def take(self, slots: Slots, hits: Sequence[Hit] = ()) -> bool:
        """Add a buffer and the trigger hits in it; return whether a file was written."""
        if self.is_done:
            return False
        self._ring.append((slots, hits))
        if len(self._ring) > self._bounds.buffers and self._awaited_buffers:
            self._ring.popleft()
        stops = [hit.trigger.action.keep for hit in hits if hit.trigger.action.stops]
        if self._awaited_buffers >= 0:
            self._awaited_buffers = max(0, self._awaited_buffers - 1)
        elif stops:
            self._awaited_buffers = stops[0]
        if self._awaited_buffers:
            return False
        if self._extra_buffers < _MAX_EXTRA_BUFFERS and unfinished(slots):  # an event continues in the next buffer
            self._extra_buffers += 1
            return False
        self.hand_over()
        return True

    @property
    def is_ending(self) -> bool:
        """Whether a trigger with STOP has hit, and the file of its incident is not written yet."""
        return self._awaited_buffers >= 0

    def hand_over(self) -> None:
        """Write the buffers of the ring to a file, and empty the ring."""
        if not self._ring:
            return
        path = self._path
        if self._bounds.is_repeated:
            self._number += 1
            path = path.with_name(f"{path.stem}-{self._number:04}{path.suffix}")
        hits = [hit for _, of_buffer in self._ring for hit in of_buffer]
        slots = np.concatenate([slots for slots, _ in self._ring])
        self._make_room(slots.nbytes + _HEADER_BYTES)
        self._write(path, slots, hits)
        marks, buffers = len(hits), len(self._ring)
        self._ring.clear()
        self._awaited_buffers, self._extra_buffers = -1, 0
        self.incidents += 1
        self.marks += marks
        self.files.append(path)
        self.is_done = not self._bounds.is_repeated
        self._tell(f"{path.name}: {buffers} buffers, {marks} mark{'s' * (marks != 1)}")

    def save_untriggered(self) -> bool:
        """Write the ring to a file if the recorder is for a single incident; called at the end if no trigger has hit.

        Returns:
            Whether a file exists.
        """
        if not self._bounds.is_repeated:
            self.hand_over()
        return bool(self.files)

    def _make_room(self, size: int) -> None:
        """Remove the oldest files until a further file of `size` bytes is within the limits."""
        sizes = [path.stat().st_size if path.exists() else 0 for path in self.files]
        bounds = self._bounds
        while self.files and (
            0 < bounds.files <= len(self.files) or 0 < bounds.disk_bytes < sum(sizes) + size
        ):  # fmt: skip
            self.files.pop(0).unlink(missing_ok=True)
            sizes.pop(0)


def unfinished(slots: Slots) -> list[int]:
    """Return the row of the first slot of each incomplete event; only the last event of a CPU can be incomplete."""
    kind, cpu_of = slots[:, 0] >> wire.STRUCT_SHIFT, slots[:, 0] >> wire.CPU_SHIFT & wire.CPU_MASK
    rows = []
    for cpu in np.unique(cpu_of[kind == wire.Struct.COMBINE_BEGIN]).tolist():
        begins = np.flatnonzero((cpu_of == cpu) & (kind == wire.Struct.COMBINE_BEGIN))
        ends = np.flatnonzero((cpu_of == cpu) & (kind == wire.Struct.COMBINE_END))
        if not len(ends) or begins[-1] > ends[-1]:
            rows.append(int(begins[-1]))
    return rows


def _last_number(path: Path) -> int:
    """Return the highest number of the existing numbered files of a recorder; 0 = there are none."""
    name = re.compile(re.escape(path.stem) + r"-(\d{4,9})" + re.escape(path.suffix))
    matches = (name.fullmatch(other.name) for other in path.absolute().parent.glob(f"*{path.suffix}"))
    return max((int(match[1]) for match in matches if match), default=0)


@dataclass(frozen=True, slots=True)
class TargetName:
    """Name of a process or thread.

    Attributes:
        pid: Pid of the process.
        tid: Tid of the thread; 0 = this is the name of the process.
        parent: Pid of the parent process, for the name of a process.
        text: The name.
    """

    pid: int
    tid: int
    text: str
    parent: int = 0


def names_tail(
    names: Iterable[TargetName], now_cycles: int, cycles_per_s: int, sequence: int | None, byte_order: str
) -> Slots:
    """Return slots, shape (n, 4), with names of processes and threads, as a 7.x kernel appends them to a ring.

    The events with these names at the start of the recording are no longer in the ring. Of the names, each process
    comes before its threads. `now_cycles` is the time of the last event, `sequence` the number of the last buffer; None
    = the release has no such numbers.
    """
    writer = SlotWriter(byte_order)
    time = now_cycles + int(_NAMES_PAUSE_S * cycles_per_s)
    if sequence is not None:
        writer.event(wire.CONTROL_BUFFER, 0, time, (sequence + 1, 0))  # no slots: it was never handed over
    writer.event(wire.CONTROL_TIME, 0, time, (time >> 32, time))
    for count, name in enumerate(names):
        if count >= _MAX_NAMES:
            break
        time += max(1, cycles_per_s // 1_000_000)
        words = (name.pid, name.tid) if name.tid else (name.parent, name.pid)
        code = wire.PROC_THREAD_NAME if name.tid else wire.PROC_CREATE_NAME
        writer.text_event(code, 0, time, words, name.text.encode(errors="replace")[:512])
    return writer.slots()


# Triggers on the simulated target: checks every event that its kernel logs, and inserts a mark for each hit.
#
# User events are checked too. On a real target that is impossible: the kernel calls no handler for user events, and 8.0
# has no handlers at all. Exported C programs list the triggers that they cannot check (`export.c_program`); this
# machine checks the events of a capture over ssh (`target.watching`).


_MARK_CODE = wire.code(wire.WireClass.USER, MARK_EVENT)


class TriggerWatch:
    """Checks the events that a kernel logs against triggers, and inserts a mark after each event that hits.

    Args:
        kernel: The kernel to watch from now on.
        triggers: The triggers, in the order in which they are checked.

    Attributes:
        hits: The trigger of each hit; a mark in the trace contains the hit's index in this list.
    """

    def __init__(self, kernel: Kernel, triggers: Sequence[Trigger]) -> None:
        self.hits: list[Trigger] = []
        self._kernel = kernel
        self._watches = [Watch(trigger, kernel.target.cycles_per_s) for trigger in triggers]
        codes = np.logical_or.reduce([trigger.codes for trigger in triggers])
        codes[_MARK_CODE] = False
        kernel.emitter.watched = codes.astype(np.uint8).tobytes()
        kernel.emitter.watch = self._see

    def _see(self, context: EventContext, cycles: int, time: int) -> None:
        for watch in self._watches:
            context.latency_ns = None
            if watch.hits(context, cycles):
                self._mark(watch.trigger, context.cpu, time)

    def _mark(self, trigger: Trigger, cpu: int, time: int) -> None:
        emitter, machine = self._kernel.emitter, self._kernel.machine
        text = mark_text(len(self.hits), trigger.mark).encode()
        self.hits.append(trigger)
        emitter.put(cpu, _MARK_CODE, time, text_words(text, emitter.byte_order))
        if trigger.action.stops and not trigger.action.keep:  # the buffer with the mark is the last one
            machine.at(machine.now, lambda _: self._flush())

    def _flush(self) -> None:
        if self._kernel.emitter.is_tracing:
            self._kernel.control.call(mode("FLUSHBUFFER"), ())


@dataclass
class TriggeredOutput(Output):
    """Receives the buffers of a logger, and ends the capture after a hit of a trigger with STOP.

    Attributes:
        watch: Maps marks to triggers.
        output: The file of a linear capture; None in ring mode.
        recorder: The flight recorder; None for a linear capture.
        byte_order: Byte order of the target.
        received_marks: Number of marks in the buffers received so far.
    """

    watch: TriggerWatch
    output: KevFile | None
    recorder: FlightRecorder | None
    byte_order: str
    received_marks: int = 0
    _awaited_buffers: int = -1  # buffers to write before the capture ends; -1 = no trigger has ended it

    @property
    def is_waiting(self) -> bool:
        """Whether a write is in progress."""
        return self.output is not None and self.output.is_waiting

    def is_behind(self) -> bool:
        """Return whether the logger must wait before it can write more."""
        return self.output is not None and self.output.is_behind()

    def close(self, error: BaseException | None = None) -> None:
        """Close the file of a linear capture."""
        if self.output is not None:
            self.output.close(error)

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Accept a buffer; raises CaptureError if it cannot be written."""
        hits = [*self._hits(slots)]
        self.received_marks += len(hits)
        self.written += slots.nbytes
        if self.recorder is not None:
            self.recorder.take(slots, [Hit(trigger) for trigger in hits])
            self.is_cut = self.recorder.is_done
            return
        assert self.output is not None
        self.output.write(slots)
        stops = [trigger.action.keep for trigger in hits if trigger.action.stops]
        if self._awaited_buffers > 0:
            self._awaited_buffers -= 1
        elif self._awaited_buffers < 0 and stops:
            self._awaited_buffers = stops[0]
        self.is_cut = self.output.is_cut or self._awaited_buffers == 0

    def _hits(self, slots: NDArray[np.uint32]) -> Iterator[Trigger]:
        """Yield the trigger of each mark in a buffer."""
        for slot in slots[is_mark(slots[:, 0])].tolist():
            number = mark_number((slot[2], slot[3]), "big" if self.byte_order == "big" else "little")
            if number is not None and number < len(self.watch.hits):
                yield self.watch.hits[number]

    def finish(self) -> list[str]:
        """Write the file of an incident that has not ended, or raise CaptureError; return sentences for the user."""
        messages = []
        recorder, lost = self.recorder, len(self.watch.hits) - self.received_marks
        if recorder is not None and not recorder.is_done:
            if recorder.is_ending:
                messages.append("the recording ended before as many buffers as KEEP says had come")
                recorder.hand_over()
            elif not self.watch.hits:
                is_saved = recorder.save_untriggered()
                messages.append("no trigger has hit" + "; the file has the newest buffers" * is_saved)
        if lost and not self.is_cut:
            messages.append(f"the marks of {lost} hits are in buffers that were lost, because the logger was too slow")
        return messages


def recorder_writer(
    kernel: Kernel, started_cycles: int, attributes: Sequence[tuple[str, str]]
) -> Callable[[Path, NDArray[np.uint32], Sequence[Hit]], None]:
    """Return a function that writes buffers of a kernel to a file and appends the names of its current processes.

    The function takes the file, the slots of the buffers, and hits of triggers, which it ignores. `started_cycles` and
    `attributes` are for the header.
    """
    target = kernel.target

    def write(path: Path, slots: NDArray[np.uint32], _hits: Sequence[Hit]) -> None:
        pairs, page, order = start_of_file(target, path.name, started_cycles, attributes)
        rings = kernel.emitter.buffers.rings if kernel.emitter.buffers is not None else ()
        sequence = None if target.is_old or not rings else rings[0].sequence
        tail = names_tail(_names(kernel), kernel.machine.now, target.cycles_per_s, sequence, order)
        try:
            write_kev(path, pairs, page, np.concatenate([slots, tail]), order)
        except WriteError as error:
            raise CaptureError(f"{path.name}: cannot be written: {error.what}") from error

    return write


def _names(kernel: Kernel) -> Iterator[TargetName]:
    """Yield the names of all existing processes and threads."""
    for process in sorted(kernel.machine.processes.values(), key=lambda process: process.pid & 0xFFF):
        if process.name and not process.is_dead:
            yield TargetName(process.pid, 0, process.name, process.parent)
            for thread in process.threads.values():
                if thread.name and not kernel.target.is_old:
                    yield TargetName(process.pid, thread.tid, thread.name)


# A tracer on the target that saves the kernel's ring of buffers as a QST file, as an alternative to tracelogger.
#
# The file also contains a second, very short trace with the names of the existing processes and threads. The tracer
# copies the kernel's memory: all buffers, including empty ones, ordered by address, not by sequence number. Source: QST
# description.


_SYSTEM: Final = {Release.QNX_7: 710, Release.QNX_8: 800}


class QstForm(StrEnum):
    """The three variants of the QST format."""

    VERSION_3 = "3"
    VERSION_4 = "4"
    VERSION_4_SLOTS = "4-slots"  # the older variant of version 4: slots, and a list of their buffers


@dataclass(frozen=True, slots=True)
class _KernelBuffer:
    """A copy of a kernel buffer; `slots` is uint32, shape (n, 4)."""

    index: int
    cpu: int
    sequence: int
    slots: NDArray[np.uint32]


class QstFile(Output):
    """A QST file, written as a whole at the end of a capture.

    Args:
        path: The file.
        form: Variant of the format.
        target: The traced target.

    Raises:
        UsageError: The target's release has no tracer that writes this variant.

    Attributes:
        written: Bytes of slots written.
    """

    def __init__(self, path: Path, form: QstForm, target: Target) -> None:
        if target.release not in _SYSTEM or (form is QstForm.VERSION_3 and target.release is not Release.QNX_7):
            allowed = "7.x" if form is QstForm.VERSION_3 else "7.x and 8.0"
            raise UsageError(f"QST files of form {form} are written by tracers of {allowed}, not of {target.release}")
        self._path, self._form, self._target = path, form, target

    def write(self, slots: NDArray[np.uint32]) -> None:  # noqa: ARG002
        """Raise CaptureError, because `finish` writes the whole file."""
        raise CaptureError(f"{self._path.name}: a QST file is written in one piece")

    def finish(self, rings: Sequence[BufferRing], names: Sequence[BufferRing], begin: int, end: int) -> None:
        """Write the file.

        Args:
            rings: The kernel's rings at the end of tracing.
            names: The rings of the second trace, which contains the names.
            begin: Start of tracing, in cycles.
            end: End of tracing, in cycles.

        Raises:
            CaptureError: The file cannot be written.
        """
        main, pinf = _kernel_buffers(rings), _kernel_buffers(names)
        last_stamp, last = _last(main, end)
        target = self._target
        wall_ns = [target.boot_s * NS_PER_S + cycles * NS_PER_S // target.cycles_per_s for cycles in (begin, last)]
        if self._form is QstForm.VERSION_3:
            data = _version_3(main, pinf, self._target, wall_ns[1], last_stamp)
        else:
            data = _version_4(main, pinf, self._target, (wall_ns[0], wall_ns[1]), self._form)
        try:
            write_file(self._path, data, streams=True)
        except WriteError as error:
            raise CaptureError(f"{self._path.name}: cannot be written: {error.what}") from error
        self.written = sum(len(buffer.slots) for buffer in main) * SLOT_BYTES


class QstTracer(Probe):
    """Keeps the newest buffers in the kernel's ring, and writes them at the end; takes the arguments of `Probe`."""

    def __init__(self, kernel: Kernel, options: LoggerOptions, output: QstFile, say: Say) -> None:
        self._file, self._begin = output, kernel.machine.now
        super().__init__(kernel, replace(options, is_ring=True, iterations=0), output, say)

    def _end(self, _nothing: object) -> None:
        if self.is_done:
            return
        self.is_done = True
        kernel, machine = self.kernel, self.kernel.machine
        kernel.control.hook = None
        self._trace_event("STOP")
        end = machine.now
        rings = self._rings()
        self._trace_event("DEALLOCBUFFER")
        self._trace_event("ALLOCBUFFER", self.options.kernel_buffers, [])
        self._trace_event("SETRINGMODE")
        self._trace_event("START")  # reports all processes and threads that exist
        self._trace_event("STOP")
        try:
            self._file.finish(rings, self._rings(), self._begin, end)
            buffers = [buffer for ring in rings for buffer in ring.buffers if buffer.slots]
            self.report.buffers, self.report.slots = len(buffers), sum(buffer.slots for buffer in buffers)
        except CaptureError as error:
            self.failure = error
        self._trace_event("DELALLCLASSES")
        self._trace_event("DEALLOCBUFFER")
        machine.stop()

    def _rings(self) -> list[BufferRing]:
        buffers = self.kernel.emitter.buffers
        return buffers.rings if buffers is not None else []


def _kernel_buffers(rings: Sequence[BufferRing]) -> list[_KernelBuffer]:
    return [
        _KernelBuffer(buffer.index, ring.cpu, buffer.sequence, np.array(buffer.words, np.uint32).reshape(-1, 4))
        for ring in rings
        for buffer in ring.buffers
    ]


def _last(buffers: Sequence[_KernelBuffer], end: int) -> tuple[int, int]:
    """Return stamp and time, cycles, of the last event, within a rollover before `end`; (0, `end`) = no event."""
    stamps = [int(buffer.slots[-1, 1]) for buffer in buffers if len(buffer.slots)]
    if not stamps:
        return 0, end
    ages = [(end - stamp) % (1 << 32) for stamp in stamps]
    nearest = min(ages)
    return stamps[ages.index(nearest)], end - nearest


def _filled(buffers: Sequence[_KernelBuffer]) -> list[_KernelBuffer]:
    """Return the buffers that have slots, by CPU, then in the order in which they were filled."""
    return sorted((buffer for buffer in buffers if len(buffer.slots)), key=lambda buffer: (buffer.cpu, buffer.sequence))


def _slot_bytes(buffers: Sequence[_KernelBuffer]) -> bytes:
    return b"".join(buffer.slots.astype("<u4").tobytes() for buffer in buffers)


def _version_3(
    main: Sequence[_KernelBuffer], names: Sequence[_KernelBuffer], target: Target, end_ns: int, last_stamp: int
) -> bytes:
    head = np.zeros(1, qst.HEAD_3)
    head[0] = (qst.MAGIC_3, 3, target.cycles_per_s, end_ns // NS_PER_S, end_ns % NS_PER_S, last_stamp, b"")
    parts = [head.tobytes()]
    for magic, buffers in ((qst.NAMES, names), (qst.MAIN, main)):
        data = _slot_bytes(_filled(buffers))
        section = np.zeros(1, qst.SECTION_3)
        section[0] = (magic, len(data) // SLOT_BYTES, b"")
        parts += [section.tobytes(), data]
    return b"".join(parts)


def _version_4(
    main: Sequence[_KernelBuffer],
    names: Sequence[_KernelBuffer],
    target: Target,
    wall_ns: tuple[int, int],
    form: QstForm,
) -> bytes:
    is_raw = form is QstForm.VERSION_4
    has_own_rings = target.release is Release.QNX_8
    slots_at = BUFFER_BYTES - BUFFER_SIZES[target.release].slots * SLOT_BYTES
    head = np.zeros(1, qst.HEAD_4)
    head[0] = (
        qst.MAGIC_4, 4, qst.HEAD_BYTES, 0, target.cycles_per_s, *wall_ns, target.cpus,
        _SYSTEM[target.release],
        BUFFER_BYTES if is_raw else 0, slots_at if is_raw else 0,
        len(main) // target.cpus if has_own_rings else 0, 0,
    )  # fmt: skip
    if is_raw:
        return b"".join((
            head.tobytes(), _raw_section(qst.DATA, main, slots_at), _raw_section(qst.NAMES, names, slots_at),
        ))  # fmt: skip
    listed = np.zeros(len(main), qst.BUFFER_4)
    for row, buffer in enumerate(main):
        cpu = buffer.cpu if has_own_rings else qst.NO_CPU
        listed[row] = (buffer.index, buffer.sequence, len(buffer.slots), 0, cpu, b"")
    slots, pinf = _slot_bytes(main), _slot_bytes(_filled(names))
    return b"".join((
        head.tobytes(), _section(qst.BUFFERS, listed.tobytes(), len(main)),
        _section(qst.MAIN, slots, len(slots) // SLOT_BYTES),
        _section(qst.NAMES, pinf, len(pinf) // SLOT_BYTES),
    ))  # fmt: skip


def _raw_section(magic: int, buffers: Sequence[_KernelBuffer], slots_at: int) -> bytes:
    """Return a section with kernel buffers, each padded to its full size, whose slots begin at byte `slots_at`."""
    data: NDArray[Any] = np.zeros((len(buffers), BUFFER_BYTES), np.uint8)
    for row, buffer in zip(data, buffers, strict=True):
        head = np.array([len(buffer.slots), buffer.sequence & 0xFFFFFFFF], "<u4")
        row[qst.SLOT_COUNT_AT : qst.SLOT_COUNT_AT + 8] = head.view(np.uint8)
        slots = buffer.slots.astype("<u4").tobytes()
        row[slots_at : slots_at + len(slots)] = np.frombuffer(slots, np.uint8)
    return _section(magic, data.tobytes(), len(buffers))


def _section(magic: int, data: bytes, entries: int) -> bytes:
    head = np.zeros(1, qst.SECTION_4)
    head[0] = (magic, qst.SECTION_VERSION, len(data), entries, 0)
    return head.tobytes() + data
