"""A probe: takes the kernel's buffers from outside, so that the target does not notice that it is traced.

tracelogger's own threads take CPU time, so two captures of one run with different rules differ by what the logger did.
A real target has no way round that; the simulated one has: the same seed under a probe is the same run, whatever the
rules. That is how rules are tried against what they were said to capture.
"""

from __future__ import annotations

import numpy as np

from satview.capture.buffers import Buffer
from satview.capture.files import CaptureError
from satview.capture.kernel import Kernel
from satview.capture.logger_options import LoggerOptions, LoggerReport, Output, Say, filter_calls
from satview.capture.sim.parts.errors import QnxError
from satview.capture.trace_event import mode


class Probe:
    """Captures without a logger process; same options and report.

    Args:
        kernel: What is traced; tracing starts at once.
        options: Buffers, filters, ring mode, number of buffers and seconds count; a probe needs no buffers of its own.
        output: Takes the slots.
        say: Called with a level and a line for the console.

    Attributes:
        is_ready: Always: a probe needs no time to set itself up.
        is_done: True once everything is written.
        failure: What the output said when it could not be written; the machine stops then.
    """

    def __init__(self, kernel: Kernel, options: LoggerOptions, output: Output, say: Say) -> None:
        self.kernel, self.options, self.output, self.say = kernel, options, output, say
        self.report = LoggerReport()
        self.is_ready, self.is_done = True, False
        self.failure: CaptureError | None = None
        self._trace_event("ALLOCBUFFER", options.kernel_buffers, [])
        kernel.control.hook = self._take
        for name, args in filter_calls(options, kernel.target.release):
            self._trace_event(name, *args)
        self._trace_event("SETRINGMODE" if options.is_ring else "SETLINEARMODE")
        self._trace_event("START")
        machine = kernel.machine
        if options.seconds:
            machine.at(machine.now + machine.target.cycles(int(options.seconds * 1e9)), self._end)

    def stop(self) -> None:
        """End the capture and write what is left."""
        self._end(None)

    def _end(self, _nothing: object) -> None:
        if self.is_done:
            return
        self.is_done = True
        options, buffers = self.options, self.kernel.emitter.buffers
        if options.flushes_at_end and not options.is_ring:
            self._trace_event("FLUSHBUFFER")
        self.kernel.control.hook = None if options.is_ring else self._take
        self._trace_event("STOP")
        for ring in buffers.rings if buffers is not None and options.is_ring else ():
            for buffer in ring.oldest_first():
                self._take(buffer)
        self.kernel.control.hook = None
        self._trace_event("DELALLCLASSES")
        self._trace_event("DEALLOCBUFFER")
        self.kernel.machine.stop()

    def _trace_event(self, name: str, *args: object) -> None:
        try:
            self.kernel.trace_event(mode(name), *args)
        except QnxError as error:
            self.report.errors.append(f"TraceEvent({name}): {error.strerror}")

    def _take(self, buffer: Buffer) -> None:
        """Write a full buffer and give it back."""
        options = self.options
        is_requested = not options.iterations or self.report.buffers < options.iterations
        if is_requested and not self.output.is_cut and self.failure is None:
            slots = np.array(buffer.words, dtype=np.uint32).reshape(-1, 4)
            try:
                self.report.write(slots, self.output)
            except CaptureError as error:
                self.failure = error
                self.kernel.machine.stop()
            self.report.buffers += 1
        buffer.empty()
        has_all = options.iterations and self.report.buffers >= options.iterations
        if not self.is_done and (self.output.is_cut or has_all):
            self.kernel.machine.at(self.kernel.machine.now, self._end)
