"""A tracer on the target that saves the kernel's ring of buffers as a QST file, as an alternative to tracelogger.

The file also contains a second, very short trace with the names of the existing processes and threads. The tracer
copies the kernel's memory: all buffers, including empty ones, ordered by address, not by sequence number. Source: QST
description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError, WriteError
from satview.base.new_file import write_file
from satview.base.time import NS_PER_S
from satview.capture.buffers import BufferRing
from satview.capture.files import CaptureError
from satview.capture.flight_recorder import BUFFER_BYTES
from satview.capture.kernel import Kernel
from satview.capture.logger import Probe
from satview.capture.logger_options import LoggerOptions, Say
from satview.capture.sim.parts.target import Target
from satview.events.kernel_calls import BUFFER_SIZES
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.formats.qst import sections

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


class QstFile:
    """A QST file, written as a whole at the end of a capture.

    Args:
        path: The file.
        form: Variant of the format.
        target: The traced target.

    Raises:
        UsageError: The target's release has no tracer that writes this variant.

    Attributes:
        written: Bytes of slots written.
        is_cut, is_waiting: Always False; they exist because `capture.files.KevFile` has them.
    """

    is_cut = is_waiting = False

    def __init__(self, path: Path, form: QstForm, target: Target) -> None:
        if target.release not in _SYSTEM or (form is QstForm.VERSION_3 and target.release is not Release.QNX_7):
            allowed = "7.x" if form is QstForm.VERSION_3 else "7.x and 8.0"
            raise UsageError(f"QST files of form {form} are written by tracers of {allowed}, not of {target.release}")
        self._path, self._form, self._target = path, form, target
        self.written = 0

    def is_behind(self) -> bool:
        """Return False: the file never makes the logger wait."""
        return False

    def write(self, slots: NDArray[np.uint32]) -> None:  # noqa: ARG002
        """Not supported, because `finish` writes the whole file.

        Raises:
            CaptureError: Always.
        """
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: the file is either complete or does not exist."""


class QstTracer(Probe):
    """Keeps the newest buffers in the kernel's ring, and writes them at the end; has the arguments of `Probe`."""

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
    """Return the stamp and the time of the last event, which is less than one rollover before `end`."""
    stamps = [int(buffer.slots[-1, 1]) for buffer in buffers if len(buffer.slots)]
    if not stamps:
        return 0, end
    ages = [(end - stamp) % (1 << 32) for stamp in stamps]
    nearest = min(ages)
    return stamps[ages.index(nearest)], end - nearest


def _filled(buffers: Sequence[_KernelBuffer]) -> list[_KernelBuffer]:
    """Return the buffers with slots, in the order in which they were filled."""
    return sorted((buffer for buffer in buffers if len(buffer.slots)), key=lambda buffer: (buffer.cpu, buffer.sequence))


def _slot_bytes(buffers: Sequence[_KernelBuffer]) -> bytes:
    return b"".join(buffer.slots.astype("<u4").tobytes() for buffer in buffers)


def _version_3(
    main: Sequence[_KernelBuffer], names: Sequence[_KernelBuffer], target: Target, end_ns: int, last_stamp: int
) -> bytes:
    head = np.zeros(1, sections.HEAD_3)
    head[0] = (sections.MAGIC_3, 3, target.cycles_per_s, end_ns // NS_PER_S, end_ns % NS_PER_S, last_stamp, b"")
    parts = [head.tobytes()]
    for magic, buffers in ((sections.NAMES, names), (sections.MAIN, main)):
        data = _slot_bytes(_filled(buffers))
        section = np.zeros(1, sections.SECTION_3)
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
    head = np.zeros(1, sections.HEAD_4)
    head[0] = (
        sections.MAGIC_4, 4, sections.HEAD_BYTES, 0, target.cycles_per_s, *wall_ns, target.cpus,
        _SYSTEM[target.release],
        BUFFER_BYTES if is_raw else 0, slots_at if is_raw else 0,
        len(main) // target.cpus if has_own_rings else 0, 0,
    )  # fmt: skip
    if is_raw:
        return b"".join((
            head.tobytes(), _raw_section(sections.DATA, main, slots_at), _raw_section(sections.NAMES, names, slots_at),
        ))  # fmt: skip
    listed = np.zeros(len(main), sections.BUFFER_4)
    for row, buffer in enumerate(main):
        cpu = buffer.cpu if has_own_rings else sections.NO_CPU
        listed[row] = (buffer.index, buffer.sequence, len(buffer.slots), 0, cpu, b"")
    slots, pinf = _slot_bytes(main), _slot_bytes(_filled(names))
    return b"".join((
        head.tobytes(), _section(sections.BUFFERS, listed.tobytes(), len(main)),
        _section(sections.MAIN, slots, len(slots) // SLOT_BYTES),
        _section(sections.NAMES, pinf, len(pinf) // SLOT_BYTES),
    ))  # fmt: skip


def _raw_section(magic: int, buffers: Sequence[_KernelBuffer], slots_at: int) -> bytes:
    """Return a section of kernel buffers, each padded to its full size."""
    data: NDArray[Any] = np.zeros((len(buffers), BUFFER_BYTES), np.uint8)
    for row, buffer in zip(data, buffers, strict=True):
        head = np.array([len(buffer.slots), buffer.sequence & 0xFFFFFFFF], "<u4")
        row[sections.SLOT_COUNT_AT : sections.SLOT_COUNT_AT + 8] = head.view(np.uint8)
        slots = buffer.slots.astype("<u4").tobytes()
        row[slots_at : slots_at + len(slots)] = np.frombuffer(slots, np.uint8)
    return _section(magic, data.tobytes(), len(buffers))


def _section(magic: int, data: bytes, entries: int) -> bytes:
    head = np.zeros(1, sections.SECTION_4)
    head[0] = (magic, sections.SECTION_VERSION, len(data), entries, 0)
    return head.tobytes() + data
