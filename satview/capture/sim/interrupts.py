"""Hardware interrupts: sources, handlers and events; the clock tick; and what 8.0 made of it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from satview.base.errors import told
from satview.capture.sim import pulses
from satview.capture.sim.call_base import Sigevent, code_address
from satview.capture.sim.errors import Errno, place_of
from satview.capture.sim.privilege import refused
from satview.capture.sim.trace_hooks import TraceHooks
from satview.capture.sim.truth import Delivery, HandlerSpan, InterruptSpan

if TYPE_CHECKING:
    from satview.capture.sim.calls import (
        InterruptAttach,
        InterruptAttachEvent,
        InterruptDetach,
        InterruptUnmask,
        InterruptWait,
    )
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Process, Thread

CLOCK_VECTOR = 0
_ENTRY_NS = 250
_LONGEST_NS = 1 << 62
_NOW_UNI, _NOW_SMP = 0x80, 0x800     # "inside the kernel" beside the nesting depth


class Attachment:
    """A handler or an event attached to an interrupt."""

    __slots__ = ("event", "handler", "handler_ns", "ident", "is_latched", "is_masked", "process", "thread", "vector")

    def __init__(self, ident: int, vector: int, thread: Thread, event: Sigevent | None,
                 handler: Callable[[], Sigevent | None] | None, handler_ns: int) -> None:
        self.ident = ident
        self.vector = vector
        self.thread = thread
        self.process: Process = thread.process
        self.event = event
        self.handler = handler
        self.handler_ns = handler_ns
        self.is_masked = False
        self.is_latched = False


class InterruptSource:
    """A device that raises interrupts.

    Attributes:
        gap_ns: Called for the time to the next one; None from it ends them.
        is_clock: The tick, or in 8.0 the silent beat that only serves time slices.
    """

    __slots__ = ("attachments", "cpu", "gap_ns", "is_active", "is_clock", "is_silent", "vector")

    def __init__(self, vector: int, cpu: int, gap_ns: Callable[[], int | None], is_clock: bool = False,
                 is_silent: bool = False) -> None:
        self.vector = vector
        self.cpu = cpu
        self.gap_ns = gap_ns
        self.is_clock = is_clock
        self.is_silent = is_silent
        self.is_active = False         # a further interrupt of a device is due
        self.attachments: list[Attachment] = []


# The event an interrupt is to deliver, when the interrupt was logged, and the handler that returned the event.
_Due = tuple[Attachment, Sigevent, int, HandlerSpan | None]


class Interrupts:
    """The interrupt controller of a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._next_ident = 1
        self.trace_hooks: TraceHooks[Any] = TraceHooks()
        machine.service = self.service
        machine.due = self._due

    def add(self, source: InterruptSource) -> None:
        """Connect a source; one that a handler asked for earlier keeps its handlers."""
        known = self.machine.sources.get(source.vector)
        if known is not None:
            source.attachments = known.attachments
        self.machine.sources[source.vector] = source
        self._schedule(source, self.machine.now)

    def start_clock(self) -> None:
        """Start the tick."""
        tick_ns = self.machine.target.tick_ns
        self.add(InterruptSource(CLOCK_VECTOR, 0, lambda: tick_ns or 1_000_000, is_clock=True, is_silent=not tick_ns))

    def _schedule(self, source: InterruptSource, after: int) -> None:
        gap_ns = self._gap_of(source)
        source.is_active = gap_ns is not None and not source.is_clock
        if gap_ns is not None:
            self.machine.at(after + max(1, self.machine.target.cycles(gap_ns)), self._due, (source, after, gap_ns))

    def _gap_of(self, source: InterruptSource) -> int | None:
        """Return the time to the next interrupt of a source; one that tells no time is silent from now on."""
        what, place = "", ""
        try:
            gap_ns = source.gap_ns()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  -- the workload's fault, not the simulation's
            what, place = f"raised {told(error)}", place_of(error)
        else:
            if gap_ns is None:
                return None
            if isinstance(gap_ns, (int, float)) and 0 <= gap_ns < _LONGEST_NS:
                return int(gap_ns)
            what = f"gave {gap_ns!r:.40}, which is no time in nanoseconds"
        self.machine.fault(f"of device {source.vector}", what, place)
        return None

    def _due(self, argument: tuple[InterruptSource, int, int]) -> None:
        # Two steps, so that the action on the heap at the moment itself is `service` with the source alone.
        source, after, gap_ns = argument
        # What came while the last one was still being served is one interrupt, not many.
        self._schedule(source, max(after + self.machine.target.cycles(int(gap_ns)), self.machine.now))
        self.machine.at(self.machine.now, self.service, source)

    def service(self, source: InterruptSource) -> None:
        """Take one interrupt: on a CPU in user code, or (nested) between two slots of an event."""
        machine = self.machine
        cpu = machine.cpus[source.cpu % len(machine.cpus)]
        if machine.is_polling:
            events = self._take(cpu, source)
            machine.deferred.append((cpu, lambda here: self._follow_up(here, source, events)))
            return
        machine.hold(cpu)
        self._follow_up(cpu, source, self._take(cpu, source))
        machine.leave(cpu)

    def _take(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        """Run the interrupt itself: entry, handlers, exit. Returns the events that the kernel is to deliver."""
        machine = self.machine
        if source.is_silent:
            return []
        machine.nesting += 1
        try:
            return self._run(cpu, source) if machine.target.has_handlers else self._deliver_all(cpu, source)
        finally:
            machine.nesting -= 1

    def _run(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        machine, record = self.machine, self.machine.record
        running = cpu.thread
        address = code_address(None, running) + 0x150 * (running.tid if running is not None else 1)
        begin = machine.stamp()
        if source.is_clock:
            machine.timers.clock_interrupt = begin
        record.interrupt_enter(cpu.index, begin, source.vector, address)
        machine.spend(_ENTRY_NS)
        events: list[_Due] = []
        handlers: list[HandlerSpan] = []
        for attachment in source.attachments:
            count = len(handlers)
            event = self._handle(cpu, attachment, begin, handlers)
            if event is not None:
                events.append((attachment, event, begin, handlers[-1] if len(handlers) > count else None))
        end = machine.stamp()
        now_bit = (_NOW_SMP if len(machine.cpus) > 1 else _NOW_UNI) if machine.is_polling else 0
        record.interrupt_exit(cpu.index, end, source.vector, 1 | now_bit)
        machine.truth.interrupts.append(InterruptSpan(cpu.index, source.vector, begin, end,
                                                      tuple(handler.enter for handler in handlers)))
        machine.truth.handlers += handlers
        return events

    def _handle(self, cpu: Cpu, attachment: Attachment, interrupt: int, handlers: list[HandlerSpan]) -> Sigevent | None:
        """Run the handler of an attachment and note when; return the event that is to be delivered."""
        machine = self.machine
        if attachment.handler is None:
            return self._event_of(attachment)
        if attachment.is_masked:
            return None
        span = HandlerSpan(cpu.index, attachment.vector, interrupt, machine.stamp())
        handlers.append(span)
        machine.record.handler_enter(cpu.index, span.enter, attachment.process, attachment.vector,
                                     code_address(attachment.handler, attachment.thread))
        machine.spend(attachment.handler_ns)
        said = machine.guard(attachment.thread, "interrupt handler", attachment.handler)
        event = said if isinstance(said, Sigevent) else None
        if said is not event:
            machine.fault(attachment.thread, f"interrupt handler returned {said!r:.40}, which is no Sigevent", "")
        span.exit = machine.stamp()
        machine.record.handler_exit(cpu.index, span.exit, attachment.vector, event)
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
        machine = self.machine
        events: list[_Due] = []
        for attachment in source.attachments:
            event = self._event_of(attachment)
            if event is not None:
                time = machine.stamp()
                machine.record.deliver_interrupt(cpu.index, time, attachment.ident)
                machine.truth.deliveries.append(Delivery(cpu.index, attachment.ident, time))
                events.append((attachment, event, time, None))
        return events

    def _follow_up(self, cpu: Cpu, source: InterruptSource, events: list[_Due]) -> None:
        if source.is_clock:
            self.machine.timers.expire(cpu)
            self.machine.scheduler.tick(cpu)
        for attachment, event, cause, handler in events:
            self.machine.history.cause = cause
            count, is_waiting = len(self.machine.truth.pulses), attachment.thread.state == "INTR"
            pulses.deliver(self.machine, cpu, attachment.process, attachment.thread, event, "SPULSE_EXE")
            if handler is not None and event.kind == "pulse" and len(self.machine.truth.pulses) > count:
                handler.pulse = self.machine.truth.pulses[count].sent
            elif handler is not None and event.kind == "intr" and is_waiting:
                handler.woken = attachment.thread.pid, attachment.thread.tid

    def attach(self, thread: Thread, vector: int, event: Sigevent | None,
               handler: Callable[[], Sigevent | None] | None, handler_ns: int = 0) -> Attachment:
        """Attach to a vector; a vector without a device just never fires."""
        source = self.machine.sources.get(vector)
        if source is None:
            source = self.machine.sources[vector] = InterruptSource(vector, 0, lambda: None)
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
        for source in self.machine.sources.values():
            for attachment in source.attachments:
                if attachment.ident == ident and attachment.process is process:
                    source.attachments.remove(attachment)
                    return True
        return self.trace_hooks.detach(ident, process)

    def detach_all(self, process: Process) -> None:
        """Detach everything of a process that dies."""
        for source in self.machine.sources.values():
            source.attachments[:] = [a for a in source.attachments if a.process is not process]
        self.trace_hooks.detach_all(process)


def interrupt_attach(machine: Machine, cpu: Cpu, thread: Thread, call: InterruptAttach) -> None:
    """Attach a handler."""
    machine.enter(cpu, thread, call)
    if not machine.target.has_handlers:
        machine.fail(thread, Errno.ENOTSUP, "this release has no interrupt handlers")
        return
    if refused(machine, thread):
        return
    attachment = machine.interrupts.attach(thread, call.vector, None, call.handler, call.handler_ns)
    machine.complete(thread, attachment.ident, int_fun_id=attachment.ident)


def interrupt_attach_event(machine: Machine, cpu: Cpu, thread: Thread, call: InterruptAttachEvent) -> None:
    """Attach an event."""
    machine.enter(cpu, thread, call)
    if machine.target.has_handlers and refused(machine, thread):
        return
    attachment = machine.interrupts.attach(thread, call.vector, call.event, None)
    if not machine.target.has_handlers:
        machine.record.service_thread(cpu.index, machine.stamp(), thread, attachment.ident, cpu.index)
    machine.complete(thread, attachment.ident, int_fun_id=attachment.ident)


def interrupt_detach(machine: Machine, cpu: Cpu, thread: Thread, call: InterruptDetach) -> None:
    """Detach."""
    machine.enter(cpu, thread, call)
    if machine.interrupts.detach(call.ident, thread.process):
        machine.complete(thread)
    else:
        machine.fail(thread, Errno.EINVAL, f"no attachment {call.ident}")


def interrupt_wait(machine: Machine, cpu: Cpu, thread: Thread, call: InterruptWait) -> None:
    """Wait for an event of kind `intr`, unless one came already."""
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    if thread.unmasked_intr:
        thread.unmasked_intr -= 1
        return
    machine.block(cpu, thread, "INTR", "interrupt")


def interrupt_unmask(machine: Machine, cpu: Cpu, thread: Thread, call: InterruptUnmask) -> None:
    """Let an interrupt through again; one that came meanwhile is delivered now."""
    machine.enter(cpu, thread, call)
    machine.complete(thread, 0, mask_level=0)
    source = machine.sources.get(call.vector)
    for attachment in source.attachments if source is not None else ():
        if attachment.process is thread.process and attachment.is_masked:
            attachment.is_masked = False
            if attachment.is_latched and attachment.event is not None:
                attachment.is_latched = False
                attachment.is_masked = True
                pulses.deliver(machine, cpu, attachment.process, attachment.thread, attachment.event, "SPULSE_EXE")
