"""Triggers on the simulated target: checks every event that its kernel logs, and inserts a mark for each hit.

User events are checked too. On a real target that is impossible: the kernel calls no handler for user events, and 8.0
has no handlers at all. Exported C programs list the triggers that they cannot check (`export.c_program`); this machine
checks the events of a capture over ssh (`target.watching`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import WriteError
from satview.capture.files import CaptureError, KevFile, start_of_file
from satview.capture.flight_recorder import FlightRecorder, Hit, TargetName, names_tail
from satview.capture.kernel import Kernel
from satview.capture.trace_event import mode
from satview.events import wire
from satview.events.words import text_words
from satview.filters.event_context import EventContext
from satview.filters.rules.triggers import Trigger, Watch
from satview.formats.kev.writer import write_kev
from satview.store.recorded_marks import MARK_EVENT, is_mark, mark_number, mark_text

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


@dataclass(slots=True)
class TriggeredOutput:
    """Receives the buffers of a logger, and ends the capture after a hit of a trigger with STOP.

    Attributes:
        watch: Maps marks to triggers.
        output: The file of a linear capture; None in ring mode.
        recorder: The flight recorder; None for a linear capture.
        byte_order: Byte order of the target.
        is_cut: No more buffers are accepted.
        written: Bytes received so far.
        received_marks: Number of marks in the buffers received so far.
    """

    watch: TriggerWatch
    output: KevFile | None
    recorder: FlightRecorder | None
    byte_order: str
    is_cut: bool = False
    written: int = 0
    received_marks: int = 0
    _awaited_buffers: int = -1  # buffers to write before the capture ends; -1 = no trigger has ended it

    @property
    def is_waiting(self) -> bool:
        """Whether a write is in progress."""
        return self.output is not None and self.output.is_waiting

    def is_behind(self) -> bool:
        """Return whether the logger must wait before it can write more."""
        return self.output is not None and self.output.is_behind()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """Write the file of an incident that has not ended; return messages for the user, one sentence each.

        Raises:
            CaptureError: The file cannot be written.
        """
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
    """Return a function that writes buffers of a kernel to a file and appends the names of its current processes."""
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
