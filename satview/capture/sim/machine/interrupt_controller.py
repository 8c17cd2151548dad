"""The interrupt controller: takes interrupts, runs handlers, delivers events; the clock tick, service threads."""

from __future__ import annotations

from collections.abc import Callable

from satview.base.errors import one_line
from satview.capture.sim.calls.call import code_address
from satview.capture.sim.calls.pulses import deliver
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import location_of
from satview.capture.sim.parts.interrupt_sources import CLOCK_VECTOR, Attachment, InterruptSource, TraceHooks
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.threads import Process, Thread
from satview.capture.sim.parts.truth import Delivery, HandlerSpan, InterruptSpan

_ENTRY_NS = 250
_LONGEST_NS = 1 << 62
_NOW_UNI, _NOW_SMP = 0x80, 0x800  # "inside the kernel" beside the nesting depth
# The event an interrupt is to deliver, when the interrupt was logged, and the handler that returned the event.
_Due = tuple[Attachment, Sigevent, int, HandlerSpan | None]


class Interrupts:
    """The interrupt controller of a machine."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self._next_ident = 1
        self.trace_hooks: TraceHooks = TraceHooks()
        kernel.service = self.service
        kernel.due = self._due

    def add(self, source: InterruptSource) -> None:
        """Connect a source; one that a handler requested earlier keeps its handlers."""
        known = self.kernel.sources.get(source.vector)
        if known is not None:
            source.attachments = known.attachments
        self.kernel.sources[source.vector] = source
        self._schedule(source, self.kernel.now)

    def start_clock(self) -> None:
        """Start the tick."""
        tick_ns = self.kernel.target.tick_ns
        self.add(InterruptSource(CLOCK_VECTOR, 0, lambda: tick_ns or 1_000_000, is_clock=True, is_silent=not tick_ns))

    def _schedule(self, source: InterruptSource, after: int) -> None:
        gap_ns = self._gap_of(source)
        source.is_active = gap_ns is not None and not source.is_clock
        if gap_ns is not None:
            self.kernel.at(after + max(1, self.kernel.target.cycles(gap_ns)), self._due, (source, after, gap_ns))

    def _gap_of(self, source: InterruptSource) -> int | None:
        """Return the time to the next interrupt of a source; one that shows no time is silent from now on."""
        what, location = "", ""
        try:
            gap_ns = source.gap_ns()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  -- the workload's fault, not the simulation's
            what, location = f"raised {one_line(error)}", location_of(error)
        else:
            if gap_ns is None:
                return None
            if isinstance(gap_ns, (int, float)) and 0 <= gap_ns < _LONGEST_NS:
                return int(gap_ns)
            what = f"gave {gap_ns!r:.40}, which is no time in nanoseconds"
        self.kernel.fault(f"of device {source.vector}", what, location)
        return None

    def _due(self, argument: tuple[InterruptSource, int, int]) -> None:
        # Two steps, so that the action on the heap at the moment itself is `service` with the source alone.
        source, after, gap_ns = argument
        # What came while the last one was still being served is one interrupt, not many.
        self._schedule(source, max(after + self.kernel.target.cycles(int(gap_ns)), self.kernel.now))
        self.kernel.at(self.kernel.now, self.service, source)

    def service(self, source: InterruptSource) -> None:
        """Take one interrupt: on a CPU in user code, or (nested) between two slots of an event."""
        kernel = self.kernel
        cpu = kernel.cpus[source.cpu % len(kernel.cpus)]
        if kernel.is_polling:
            events = self._take(cpu, source)
            kernel.deferred.append((cpu, lambda here: self._follow_up(here, source, events)))
            return
        kernel.hold(cpu)
        self._follow_up(cpu, source, self._take(cpu, source))
        kernel.leave(cpu)

    def _take(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        """Run the interrupt itself: entry, handlers, exit. Returns the events that the kernel is to deliver."""
        kernel = self.kernel
        if source.is_silent:
            return []
        kernel.nesting += 1
        try:
            return self._run(cpu, source) if kernel.target.has_handlers else self._deliver_all(cpu, source)
        finally:
            kernel.nesting -= 1

    def _run(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        kernel, record = self.kernel, self.kernel.record
        running = cpu.thread
        address = code_address(None, running) + 0x150 * (running.tid if running is not None else 1)
        begin = kernel.stamp()
        if source.is_clock:
            kernel.timers.clock_interrupt = begin
        record.interrupt_enter(cpu.index, begin, source.vector, address)
        kernel.spend(_ENTRY_NS)
        events: list[_Due] = []
        handlers: list[HandlerSpan] = []
        for attachment in source.attachments:
            count = len(handlers)
            event = self._handle(cpu, attachment, begin, handlers)
            if event is not None:
                events.append((attachment, event, begin, handlers[-1] if len(handlers) > count else None))
        end = kernel.stamp()
        now_bit = (_NOW_SMP if len(kernel.cpus) > 1 else _NOW_UNI) if kernel.is_polling else 0
        record.interrupt_exit(cpu.index, end, source.vector, 1 | now_bit)
        kernel.truth.interrupts.append(
            InterruptSpan(cpu.index, source.vector, begin, end, tuple(handler.enter for handler in handlers))
        )
        kernel.truth.handlers += handlers
        return events

    def _handle(self, cpu: Cpu, attachment: Attachment, interrupt: int, handlers: list[HandlerSpan]) -> Sigevent | None:
        """Run the handler of an attachment and note when; return the event that is to be delivered."""
        kernel = self.kernel
        if attachment.handler is None:
            return self._event_of(attachment)
        if attachment.is_masked:
            return None
        span = HandlerSpan(cpu.index, attachment.vector, interrupt, kernel.stamp())
        handlers.append(span)
        kernel.record.handler_enter(
            cpu.index,
            span.enter,
            attachment.process,
            attachment.vector,
            code_address(attachment.handler, attachment.thread),
        )
        kernel.spend(attachment.handler_ns)
        said = kernel.guard(attachment.thread, "interrupt handler", attachment.handler)
        event = said if isinstance(said, Sigevent) else None
        if said is not event:
            kernel.fault(attachment.thread, f"interrupt handler returned {said!r:.40}, which is no Sigevent", "")
        span.exit = kernel.stamp()
        kernel.record.handler_exit(cpu.index, span.exit, attachment.vector, event)
        return event

    @staticmethod
    def _event_of(attachment: Attachment) -> Sigevent | None:
        """Return the event of an attachment without handler, unless it is masked; then remember that it came."""
        if attachment.is_masked:
            attachment.is_latched = True
            return None
        attachment.is_masked = True
        return attachment.event

    def _deliver_all(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        """8.0: no handlers; each attached event goes to its service thread."""
        kernel = self.kernel
        events: list[_Due] = []
        for attachment in source.attachments:
            event = self._event_of(attachment)
            if event is not None:
                time = kernel.stamp()
                kernel.record.deliver_interrupt(cpu.index, time, attachment.ident)
                kernel.truth.deliveries.append(Delivery(cpu.index, attachment.ident, time))
                events.append((attachment, event, time, None))
        return events

    def _follow_up(self, cpu: Cpu, source: InterruptSource, events: list[_Due]) -> None:
        if source.is_clock:
            self.kernel.timers.expire(cpu)
            self.kernel.scheduler.tick(cpu)
        for attachment, event, cause, handler in events:
            self.kernel.history.cause = cause
            count, is_waiting = len(self.kernel.truth.pulses), attachment.thread.state == "INTR"
            deliver(self.kernel, cpu, attachment.process, attachment.thread, event, "SPULSE_EXE")
            if handler is not None and event.kind == "pulse" and len(self.kernel.truth.pulses) > count:
                handler.pulse = self.kernel.truth.pulses[count].sent
            elif handler is not None and event.kind == "intr" and is_waiting:
                handler.woken = attachment.thread.pid, attachment.thread.tid

    def attach(
        self,
        thread: Thread,
        vector: int,
        event: Sigevent | None,
        handler: Callable[[], Sigevent | None] | None,
        handler_ns: int = 0,
    ) -> Attachment:
        """Attach to a vector; a vector without a device just never fires."""
        source = self.kernel.sources.get(vector)
        if source is None:
            source = self.kernel.sources[vector] = InterruptSource(vector, 0, lambda: None)
        attachment = Attachment(self.new_ident(), vector, thread, event, handler, handler_ns)
        source.attachments.append(attachment)
        return attachment

    def new_ident(self) -> int:
        """Return an id for an attachment; InterruptDetach() takes it."""
        ident = self._next_ident
        self._next_ident += 1
        return ident

    def detach(self, ident: int, process: Process) -> bool:
        """Detach by id; False if the process has no such attachment."""
        for source in self.kernel.sources.values():
            for attachment in source.attachments:
                if attachment.ident == ident and attachment.process is process:
                    source.attachments.remove(attachment)
                    return True
        return self.trace_hooks.detach(ident, process)

    def detach_all(self, process: Process) -> None:
        """Detach everything of a process that dies."""
        for source in self.kernel.sources.values():
            source.attachments[:] = [a for a in source.attachments if a.process is not process]
        self.trace_hooks.detach_all(process)
