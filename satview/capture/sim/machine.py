"""The simulated machine: executes kernel calls, changes thread states and takes interrupts.

One kernel operation runs at a time (QNX up to 7.x has one kernel lock), so the clock that stamps events only moves
forward; only user code runs on several CPUs at the same time. An event takes the same time whether it is logged or not:
the same seed gives the same history under every filter.
"""

from __future__ import annotations

from collections.abc import Callable

from satview.base.errors import one_line
from satview.capture.sim.calls import signals
from satview.capture.sim.calls.call import Call, Compute, code_address
from satview.capture.sim.calls.channels import deliver
from satview.capture.sim.calls.processes import end_of_program
from satview.capture.sim.calls.queues import show_virtual
from satview.capture.sim.calls.timers import Timers, unblock
from satview.capture.sim.programs import ProgramRunner
from satview.capture.sim.scheduler import Scheduler
from satview.capture.sim.services import Errno, KernelServices, QnxError, Recorder, ThreadCancelled, location_of
from satview.capture.sim.target import Target
from satview.capture.sim.threads import (
    CLOCK_VECTOR,
    Attachment,
    Cpu,
    InterruptSource,
    Process,
    Sigevent,
    Thread,
    TraceHooks,
)
from satview.capture.sim.truth import Delivery, HandlerSpan, InterruptSpan

# The interrupt controller: takes interrupts, runs handlers, delivers events; clock tick and service threads.


_ENTRY_NS = 250
_MAX_NS = 1 << 62
_NOW_UNI, _NOW_SMP = 0x80, 0x800  # flag "inside the kernel", combined with the nesting depth
# Attachment, event to deliver, time when the interrupt was logged, and span of the handler that returned the event.
_Due = tuple[Attachment, Sigevent, int, HandlerSpan | None]


class InterruptController:
    """The interrupt controller of a machine: raises interrupts, runs handlers and delivers their events."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self._next_ident = 1
        self.trace_hooks: TraceHooks = TraceHooks()
        kernel.service = self.service
        kernel.due = self._due

    def add(self, source: InterruptSource) -> None:
        """Add an interrupt source; handlers already attached to its vector are kept."""
        known = self.kernel.sources.get(source.vector)
        if known is not None:
            source.attachments = known.attachments
        self.kernel.sources[source.vector] = source
        self._schedule(source, self.kernel.now)

    def start_clock(self) -> None:
        """Start the clock tick."""
        tick_ns = self.kernel.target.tick_ns
        self.add(InterruptSource(CLOCK_VECTOR, 0, lambda: tick_ns or 1_000_000, is_clock=True, is_silent=not tick_ns))

    def _schedule(self, source: InterruptSource, after: int) -> None:
        gap_ns = self._gap_of(source)
        source.is_active = gap_ns is not None and not source.is_clock
        if gap_ns is not None:
            self.kernel.at(after + max(1, self.kernel.target.cycles(gap_ns)), self._due, (source, after, gap_ns))

    def _gap_of(self, source: InterruptSource) -> int | None:
        """Return the nanoseconds to a source's next interrupt; None = no more, or the workload's function failed."""
        fault, location = "", ""
        try:
            gap_ns = source.gap_ns()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  -- a fault of the workload
            fault, location = f"raised {one_line(error)}", location_of(error)
        else:
            if gap_ns is None:
                return None
            if isinstance(gap_ns, (int, float)) and 0 <= gap_ns < _MAX_NS:
                return int(gap_ns)
            fault = f"gave {gap_ns!r:.40}, which is not a time in nanoseconds"
        self.kernel.fault(f"of device {source.vector}", fault, location)
        return None

    def _due(self, argument: tuple[InterruptSource, int, int]) -> None:
        # In two steps, so that the heap entry at the time of the interrupt is `service` with only the source.
        source, after, gap_ns = argument
        # Interrupts that occur while the previous interrupt is served count as one.
        self._schedule(source, max(after + self.kernel.target.cycles(int(gap_ns)), self.kernel.now))
        self.kernel.at(self.kernel.now, self.service, source)

    def service(self, source: InterruptSource) -> None:
        """Execute one interrupt: in user code, or nested in kernel code before an event or between two of its slots."""
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
        """Execute entry, handlers and exit of an interrupt; return the events that the kernel must deliver."""
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
        """Run the handler of an attachment, if any, and note its span in `handlers`; return the sigevent, or None."""
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
        result = kernel.guard(attachment.thread, "interrupt handler", attachment.handler)
        event = result if isinstance(result, Sigevent) else None
        if result is not event:
            kernel.fault(attachment.thread, f"interrupt handler returned {result!r:.40}, which is not a Sigevent", "")
        span.exit = kernel.stamp()
        kernel.record.handler_exit(cpu.index, span.exit, attachment.vector, event)
        return event

    @staticmethod
    def _event_of(attachment: Attachment) -> Sigevent | None:
        """Return the sigevent of an attachment and mask it; if it is masked already, latch the interrupt: None."""
        if attachment.is_masked:
            attachment.is_latched = True
            return None
        attachment.is_masked = True
        return attachment.event

    def _deliver_all(self, cpu: Cpu, source: InterruptSource) -> list[_Due]:
        """Log the deliveries of an interrupt to its service threads, and return their events (8.0)."""
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
        """Attach an event or a handler to a vector; a vector without a device never raises interrupts.

        Args:
            thread: The caller.
            vector: Number of the interrupt.
            event: Sigevent to deliver at each interrupt; None = there is a handler.
            handler: Called at each interrupt; returns the sigevent to deliver. None = there is an event.
            handler_ns: Simulated time that the handler takes.
        """
        source = self.kernel.sources.get(vector)
        if source is None:
            source = self.kernel.sources[vector] = InterruptSource(vector, 0, lambda: None)
        attachment = Attachment(self.new_ident(), vector, thread, event, handler, handler_ns)
        source.attachments.append(attachment)
        return attachment

    def new_ident(self) -> int:
        """Return an unused attachment id, for InterruptDetach()."""
        ident = self._next_ident
        self._next_ident += 1
        return ident

    def detach(self, ident: int, process: Process) -> bool:
        """Remove an attachment by id; return False if the process has no such attachment."""
        for source in self.kernel.sources.values():
            for attachment in source.attachments:
                if attachment.ident == ident and attachment.process is process:
                    source.attachments.remove(attachment)
                    return True
        return self.trace_hooks.detach(ident, process)

    def detach_all(self, process: Process) -> None:
        """Remove all attachments of a process."""
        for source in self.kernel.sources.values():
            source.attachments[:] = [a for a in source.attachments if a.process is not process]
        self.trace_hooks.detach_all(process)


USER_NS = (150, 900)  # lowest and highest time of user code between two calls


class Machine(ProgramRunner):
    """A simulated target that runs programs; takes the arguments of `KernelServices`."""

    scheduler: Scheduler
    timers: Timers
    interrupts: InterruptController

    def __init__(self, target: Target, seed: int, recorder: Recorder, start_cycles: int = 0) -> None:
        super().__init__(target, seed, recorder, start_cycles)
        self.scheduler = Scheduler(self)
        self.timers = Timers(self)
        self.interrupts = InterruptController(self)
        self.steps = 0
        self._user_cost = self.bounds(USER_NS)

    def post_signal(self, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
        """Send a signal; modules that `signals` imports call this method to avoid an import cycle."""
        signals.post(self, cpu, process, target, signo, code)

    def stop_waiting(self, cpu: Cpu, thread: Thread) -> None:
        """End the wait of a thread that is about to be destroyed."""
        thread.is_held = False
        if thread.state not in ("READY", "RUNNING", "DEAD"):
            unblock(self, cpu, thread, Errno.EINTR, "dead")

    def leave(self, cpu: Cpu) -> None:
        """Give the CPU to the thread that should run and continue its user code."""
        self.scheduler.dispatch(cpu)
        thread = cpu.thread
        if thread is None:
            raise AssertionError(f"CPU {cpu.index} without a thread")
        if thread.call is not None or thread.finish is not None:
            self._finish(cpu, thread)
        if thread.pending_signals:
            signals.start_handler(self, thread)
        if thread.remaining is None:
            cpu.until = None
            return
        cpu.until = self.now + thread.remaining
        self.at(cpu.until, self._step, (cpu, cpu.token))

    def _finish(self, cpu: Cpu, thread: Thread) -> None:
        """Complete a thread's current call on the thread's CPU: run `finish`, and emit the exit event."""
        if thread.finish is not None:
            finish, thread.finish = thread.finish, None
            finish()
        call, thread.call = thread.call, None
        if call is None:
            thread.remaining = self.vary(self._user_cost) if thread.remaining == 0 else thread.remaining
            return
        time = self.stamp()
        self.history.call_ends(time, thread, thread.exit_error)
        self.record.kernel_exit(cpu.index, time, thread, call)
        thread.remaining = self.vary(self._user_cost)

    def _step(self, argument: tuple[Cpu, int]) -> None:
        """Resume the program on a CPU, unless its token has changed, and process the item that it yields."""
        cpu, token = argument
        thread = cpu.thread
        if token != cpu.token or thread is None:
            return
        cpu.token += 1
        thread.remaining = 0
        self.steps += 1
        item = self.next_item(thread)
        if type(item) is Compute:
            thread.remaining = self.compute_cycles(thread, item)
            cpu.until = self.now + thread.remaining
            self.at(cpu.until, self._step, (cpu, cpu.token))
            return
        if item is not None:
            self.call(cpu, thread, item)
        else:
            end_of_program(self, cpu, thread)
        self.leave(cpu)

    def call(self, cpu: Cpu, thread: Thread, call: Call) -> None:
        """Execute a kernel call of the thread that runs on a CPU."""
        thread.exit_values = {}
        thread.exit_error = 0
        if thread.is_cancelled and call.is_cancellation_point:
            thread.error = ThreadCancelled()
            return
        try:
            call.carry_out(self, cpu, thread)
        except QnxError as error:
            self.fail(thread, Errno(error.errno or 0), error.detail)
        except Exception as error:  # noqa: BLE001  -- arguments of the wrong type can raise any error
            self.fault(thread, f"called {type(call).__name__} with bad arguments: {error}", thread.location())
            self.fail(thread, Errno.EFAULT)

    # States

    def set_state(self, cpu: Cpu, thread: Thread, state: str, on_cpu: int | None = None) -> int:
        """Change the state of a thread and emit the event; return the time of the event in cycles.

        The event belongs to CPU number `on_cpu`; None = to `cpu`.
        """
        thread.state = state
        index = cpu.index if on_cpu is None else on_cpu
        time = self.stamp()
        self.history.state(time, thread, state, index)
        self.record.thread_state(index, time, thread)
        if thread.vtid and (state in ("SEND", "REPLY") or (state == "READY" and thread.virtual_state)):
            thread.virtual_state = state if state != "READY" else ""  # READY is shown only at the end of a wait
            show_virtual(self, cpu, thread, state)
        return time

    def cancel(self, cpu: Cpu, thread: Thread) -> None:
        """Cancel a thread: now if it is blocked at a cancellation point, else at its next cancellation point."""
        thread.is_cancelled = True
        if thread.call is not None and thread.call.is_cancellation_point and thread.waiting_on is not None:
            unblock(self, cpu, thread, Errno.EINTR, "cancelled")
            thread.error = ThreadCancelled()

    def close(self) -> None:
        """Record in the history that the running threads ran until now, the end of the simulation."""
        for cpu in self.cpus:
            if cpu.thread is not None:
                self.history.ran(cpu, cpu.thread, cpu.thread.run_since, self.now)
        self.truth.end = self.now
