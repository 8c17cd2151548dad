"""tracelogger inside the simulation: a process whose threads set the filters, copy full buffers and write them.

The capture thread copies each full kernel buffer to a buffer of tracelogger (`-b`), a writer thread saves the copies at
the speed of the disk, and a signal thread ends the capture. If a thread is too slow, the trace has lost buffers and
blocks out of order, as on a real target. Source: capture side, section 7.

tracelogger's own threads take CPU time, so two captures with the same seed and different rules differ by the logger's
work. A probe instead takes the kernel's buffers from outside the simulation, without simulated time: with the same seed
the simulation is the same under all rules. Rules can thus be compared, which is impossible on a real target.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.capture.buffers import (
    SET_UP_PRIORITY,
    Buffer,
    CaptureError,
    LoggerOptions,
    LoggerReport,
    Output,
    Say,
    begin_events,
    filter_calls,
)
from satview.capture.kernel import Kernel, mode
from satview.capture.sim import calls
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Policy, Program, Semaphore
from satview.events.spec import Release

_FULL, _END = 1, 2  # pulse codes
SIGHUP, SIGINT, SIGABRT, SIGTERM = 1, 2, 6, 15
STOP_SIGNALS = (SIGHUP, SIGINT, SIGABRT, SIGTERM)
_COPY_NS_PER_SLOT = 12
_BEHIND_NS = 1_000_000  # interval between checks whether a slow receiver accepts more data
# Pause between a ring capture and the names in 7.x and 8.0: "over a second" in real files (format description, 6.1).
_NAMES_PAUSE_NS = 2_500_000_000


class Logger:
    """One tracelogger process.

    Args:
        kernel: Kernel on which the process runs.
        options: Command-line options.
        output: Receives the slots.
        say: Called with each console message: its verbosity level (0 always, 1 with `-v`, 3 with `-vvv`) and its text.
        on_ready: Called once, when buffers and filters are set up, before START.

    Attributes:
        is_ready: Buffers and filters are set up.
        is_done: True once everything is written.
        failure: Error of the output that stopped the machine; None = no error.
    """

    def __init__(
        self,
        kernel: Kernel,
        options: LoggerOptions,
        output: Output,
        say: Say = lambda _level, _text: None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.kernel = kernel
        self.options = options
        self.output = output
        self.say = say
        self.on_ready = on_ready
        self.report = LoggerReport()
        self.is_ready = False
        self.is_done = False
        self.failure: CaptureError | None = None
        self._ends = False
        self._coid = self._hook = 0
        self._queue: deque[NDArray[np.uint32]] = deque()
        self._filled = Semaphore("tracelogger-filled")
        self._drained = Semaphore("tracelogger-drained")
        self._is_writing = False
        self.process = kernel.spawn("usr/sbin/tracelogger", self._main, priority=SET_UP_PRIORITY, thread_name="capture")

    def stop(self) -> None:
        """Send SIGINT to the process, as a user does with Ctrl+C."""
        machine = self.kernel.machine
        machine.kernel_entry(machine.cpus[0], lambda cpu: machine.post_signal(cpu, self.process, None, SIGINT, 0))

    # Threads

    def _main(self) -> Program:
        options = self.options
        yield calls.ThreadCtl()  # I/O privilege, for the trace interrupt and handlers of rules
        chid = yield calls.ChannelCreate()
        self._coid = yield calls.ConnectAttach(0, chid)
        yield calls.ThreadCreate(self._signals, (), SET_UP_PRIORITY + 1, Policy.RR, "signals")
        yield calls.ThreadCreate(self._writer, (), SET_UP_PRIORITY - 1, Policy.RR, "writer")
        yield from self._set_up()
        if options.seconds and not options.is_daemon:
            yield calls.ThreadCreate(self._timer, (), SET_UP_PRIORITY + 1, Policy.RR, "timer")
        if options.flush_every_s and not options.is_ring:
            yield calls.ThreadCreate(self._flusher, (), options.priority, Policy.RR, "flush")
        self.is_ready = True
        self.on_ready()
        if not options.is_daemon:
            yield from self._trace_event("START")
        yield from self._collect(chid)  # runs at the priority of the pulses, which is that of the options
        yield calls.SchedSet(SET_UP_PRIORITY)
        yield from self._finish()

    def _set_up(self) -> Program:
        options = self.options
        yield from self._allocate()
        self._hook = yield calls.InterruptHookTrace(self._full)
        if not options.is_daemon or options.sets_filters:
            self._set_filters()
            self.say(1, "events enabled")
        yield from self._trace_event("SETRINGMODE" if options.is_ring else "SETLINEARMODE")

    def _full(self, info: int) -> calls.Sigevent:
        """Handle the trace interrupt, whose argument `info` identifies the full buffer: return a pulse with `info`."""
        self.report.interrupts += 1
        return calls.Sigevent("pulse", self._coid, self.options.priority, _FULL, info)

    def _allocate(self) -> Program:
        options, control, address = self.options, self.kernel.control, list[int]()
        has_buffers = self.kernel.emitter.buffers is not None
        if has_buffers and options.reuses_buffers:
            self.say(1, "kernel buffers reused")
            return
        if has_buffers:
            yield from self._trace_event("DEALLOCBUFFER")
        control.buffer_address = options.physical_address or control.buffer_address
        yield from self._trace_event("ALLOCBUFFER", options.kernel_buffers, address)
        where = f" at physical address {address[0]:#x}" if address else ""
        self.say(1, f"{options.kernel_buffers} kernel buffers allocated{where}")

    def _set_filters(self) -> None:
        """Set the filters without simulated time; otherwise the simulation would depend on the rules."""
        for name, args in filter_calls(self.options, self.kernel.target.release):
            try:
                self.kernel.control.call(mode(name), args, pid=self.process.pid)
            except QnxError as error:
                self.report.errors.append(f"TraceEvent({name}): {error.strerror}")

    def _trace_event(self, name: str, *args: Any) -> Program:
        try:
            return (yield calls.TraceEvent(mode(name), *args))
        except QnxError as error:
            self.report.errors.append(f"TraceEvent({name}): {error.strerror}")
            return -1

    def _signals(self) -> Program:
        signo = yield calls.SignalWaitinfo(STOP_SIGNALS)
        self.say(1, f"signal {signo} caught")
        yield from self._end()

    def _timer(self) -> Program:
        self.say(1, f"timer set: {self.options.seconds:g} s")
        yield calls.Sleep(int(self.options.seconds * 1e9))
        yield from self._end()

    def _end(self) -> Program:
        self._ends = True
        yield calls.MsgSendPulse(self._coid, code=_END)

    def _flusher(self) -> Program:
        while not self._ends:
            yield calls.Sleep(int(self.options.flush_every_s * 1e9))
            yield from self._trace_event("FLUSHBUFFER")

    # Buffers

    def _collect(self, chid: int) -> Program:
        """Copy full buffers up to the requested number or until a signal or timer; in ring mode, copy the ring."""
        options, is_first = self.options, True
        while True:
            pulse = yield calls.MsgReceive(chid)
            if pulse.code == _END:
                if options.is_ring and self.kernel.emitter.is_tracing:
                    yield from self._trace_event("STOP")
                    continue  # STOP hands over the current buffer
                return
            if options.is_ring:
                yield from self._dump_ring()
                return
            if is_first and options.is_daemon and options.seconds:
                yield calls.ThreadCreate(self._timer, (), SET_UP_PRIORITY + 1, Policy.RR, "timer")
            is_first = False
            yield from self._take(pulse.value)
            if (options.iterations and self.report.buffers >= options.iterations) or self.output.is_cut or self._ends:
                return

    def _take(self, info: int) -> Program:
        """Copy the buffer that a trace interrupt announced by its argument `info`, if the buffer is still full."""
        buffer = self._buffer(info >> 13)
        if buffer is not None and buffer.is_full:
            yield from self._copy(buffer)

    def _copy(self, buffer: Buffer) -> Program:
        buffer.is_busy = True
        yield calls.Compute(_COPY_NS_PER_SLOT * buffer.slots)
        words = buffer.words
        buffer.is_busy = False
        buffer.empty()
        if len(self._queue) + self._is_writing >= self.options.own_buffers:
            self.report.dropped += 1
            return
        slots = np.array(words, dtype=np.uint32).reshape(-1, 4)
        self._queue.append(slots)
        self.report.buffers += 1
        self._tabulate(slots)
        self.report.most_used = max(self.report.most_used, len(self._queue) + self._is_writing)
        yield calls.SemPost(self._filled)

    def _tabulate(self, slots: NDArray[np.uint32]) -> None:
        """Print a line of the progress table: interrupts, iterations, and number of events in the buffer."""
        if self.report.buffers == 1:
            self.say(3, f"{'interrupts':>10}  {'iterations':>10}  {'events':>6}")
        begins = begin_events(slots[:, 0])
        self.say(3, f"{self.report.interrupts:10}  {self.report.buffers:10}  {np.count_nonzero(begins):6}")

    def _buffer(self, index: int) -> Buffer | None:
        buffers = self.kernel.emitter.buffers
        if buffers is None:
            return None
        return next((b for ring in buffers.rings for b in ring.buffers if b.index == index), None)

    def _dump_ring(self) -> Program:
        """Copy the buffers of the ring, oldest first, and in 7.x and 8.0 the names that the kernel appends later."""
        yield from self._take_ring()
        if self.kernel.target.release in (Release.QNX_7, Release.QNX_8):
            self.kernel.control.report_names(_NAMES_PAUSE_NS)
            yield from self._take_ring()

    def _take_ring(self) -> Program:
        buffers = self.kernel.emitter.buffers
        for ring in buffers.rings if buffers is not None else ():
            for buffer in ring.oldest_first():
                while len(self._queue) + self._is_writing >= self.options.own_buffers:
                    yield calls.Sleep(1_000_000)
                yield from self._copy(buffer)

    def _writer(self) -> Program:
        disk_ns = self.options.disk_ns_per_buffer
        while True:
            yield calls.SemWait(self._filled)
            if not self._queue:
                break
            slots = self._queue.popleft()
            self._is_writing = True
            yield calls.Compute(20_000)
            if disk_ns:
                yield calls.Sleep(disk_ns)
            while self.output.is_behind():
                yield calls.Sleep(_BEHIND_NS)
            self._write(slots)
            self._is_writing = False
        yield calls.SemPost(self._drained)

    def _write(self, slots: NDArray[np.uint32]) -> None:
        if self.output.is_cut:
            return
        try:
            self.report.write(slots, self.output)
        except CaptureError as error:
            self.failure = error
            self.kernel.machine.stop()

    def _finish(self) -> Program:
        options = self.options
        if options.flushes_at_end and not options.is_ring and self.kernel.emitter.buffers is not None:
            # Also after a STOP by another program, which hands over nothing in linear mode.
            yield from self._trace_event("FLUSHBUFFER")
        if self.kernel.emitter.is_tracing:
            yield from self._trace_event("STOP")
        if not options.is_ring:
            yield from self._take_rest()
        yield calls.InterruptDetach(self._hook)
        yield calls.SemPost(self._filled)
        yield calls.SemWait(self._drained)
        yield from self._trace_event("DELALLCLASSES")
        if not options.keeps_buffers:
            yield from self._trace_event("DEALLOCBUFFER")
        self.is_done = True
        self.kernel.machine.stop()

    def _take_rest(self) -> Program:
        """Copy the remaining full buffers, oldest first, up to the requested number."""
        buffers = self.kernel.emitter.buffers
        waiting = [b for ring in buffers.rings for b in ring.buffers if b.is_full] if buffers is not None else []
        for buffer in sorted(waiting, key=lambda b: b.close_number):
            if self.options.iterations and self.report.buffers >= self.options.iterations:
                return
            yield from self._copy(buffer)


class Probe:
    """Captures without a logger process; takes the options and makes the report of a `Logger`.

    Args:
        kernel: The traced kernel; tracing starts at once.
        options: Options for buffers, filters, ring mode, number of buffers and duration; others are ignored.
        output: Receives the slots.
        say: Called with the level and the text of each console message.

    Attributes:
        is_ready: Always True, because the set-up takes no simulated time.
        is_done: True once everything is written.
        failure: Error of the output that stopped the machine; None = no error.
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
        """End the capture and write the remaining buffers."""
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
        """Write a full buffer and empty it for the kernel."""
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
