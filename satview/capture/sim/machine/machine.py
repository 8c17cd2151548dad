"""The machine: clock, CPUs, event heap, and the way of every thread into the kernel and out again.

One kernel operation happens at a time (QNX up to 7.x holds one kernel lock), so the clock that stamps events only moves
forward; CPUs overlap in user code. What an event costs does not depend on whether it is recorded: the same seed gives
the same history under every filter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from satview.capture.sim.calls import signals
from satview.capture.sim.calls.call import Call, Compute
from satview.capture.sim.calls.lifecycle import end_of_program
from satview.capture.sim.calls.timeouts import Timers, unblock
from satview.capture.sim.machine.interrupt_controller import Interrupts
from satview.capture.sim.machine.programs import ProgramRunner
from satview.capture.sim.machine.scheduler import SLICE_TICKS, Scheduler
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError, ThreadCancelled
from satview.capture.sim.parts.history import History
from satview.capture.sim.parts.interrupt_sources import InterruptSource
from satview.capture.sim.parts.recorder import Recorder, polled
from satview.capture.sim.parts.target import Target
from satview.capture.sim.parts.threads import Partition, PendingCall, Process, Thread
from satview.capture.sim.parts.truth import Truth

# Costs in nanoseconds, about those of a 2.5 GHz machine.
SWITCH_NS = (300, 900)
USER_NS = (150, 900)
IPI_NS = (900, 2200)


class Machine(ProgramRunner):
    """A target that runs programs.

    Args:
        target: Release, CPUs, clock.
        seed: Of everything that varies.
        recorder: Gets every event.
        start_cycles: Counter value at which the simulation begins.
    """

    def __init__(self, target: Target, seed: int, recorder: Recorder, start_cycles: int = 0) -> None:
        super().__init__(target, seed, start_cycles)
        self.record = polled(recorder, self)
        self.cpus = [Cpu(i) for i in range(target.cpus)]
        self.processes: dict[int, Process] = {}
        self.partitions: list[Partition] = []
        self.history = History(start_cycles)
        self.history.truth.skew_cycles = target.skews(seed)
        self.scheduler = Scheduler(self)
        self.sources: dict[int, InterruptSource] = {}
        self.timers = Timers(self)
        self.interrupts = Interrupts(self)
        self.trace_event: Callable[..., int] = _no_trace_control
        self.on_death: list[Callable[[Process], None]] = []
        self.clock_adjust = (0, 0)  # ticks left, nanoseconds per tick
        self.steps = 0
        self._user_cost = self.bounds(USER_NS)
        self._switch_cost = self.bounds(SWITCH_NS)
        self._ipi_cost = self.bounds(IPI_NS)

    @property
    def slice_ns(self) -> int:
        """Length of a time slice of round robin."""
        return SLICE_TICKS * (self.target.tick_ns or 1_000_000)

    @property
    def truth(self) -> Truth:
        """What really happened so far."""
        return self.history.truth

    def post_signal(self, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
        """Send a signal; here so that messages need not know signals."""
        signals.post(self, cpu, process, target, signo, code)

    def stop_waiting(self, cpu: Cpu, thread: Thread) -> None:
        """Take a thread that is about to die out of whatever it waits for."""
        if thread.state not in ("READY", "RUNNING", "DEAD"):
            unblock(self, cpu, thread, Errno.EINTR, "dead")

    def finish_silently(self, thread: Thread) -> None:
        """End the call a thread is in, with its exit event, but without going back to its program."""
        call, thread.call = thread.call, None
        time = self.stamp()
        self.history.call_ends(time, thread, thread.exit_error)
        if call is not None:
            self.record.kernel_exit(max(thread.cpu, 0), time, thread, call)

    # Into the kernel and out

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Interrupt the user code of a CPU, run kernel code there, and go on with the thread that is due."""
        self.hold(cpu)
        function(cpu)
        self.leave(cpu)

    def hold(self, cpu: Cpu) -> None:
        """Stop the user code of a CPU and note how much of it is left."""
        cpu.token += 1
        thread = cpu.thread
        if thread is not None and cpu.until is not None:
            thread.remaining = max(0, cpu.until - self.now)

    def leave(self, cpu: Cpu) -> None:
        """Give the CPU to the thread that is due and let its user code go on."""
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
        """Complete the call a thread is in: what remains to be done on its own CPU, then the exit event."""
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
        """The user code of a CPU has come to its next call."""
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
        """Carry out a kernel call of the thread that runs on a CPU."""
        thread.exit_values = {}
        thread.exit_error = 0
        if thread.is_cancelled and call.is_cancellation_point:
            thread.error = ThreadCancelled()
            return
        try:
            call.carry_out(self, cpu, thread)
        except QnxError as error:
            self.fail(thread, Errno(error.errno or 0), error.detail)
        except Exception as error:  # noqa: BLE001  -- arguments of the wrong type show wherever they are first used
            self.fault(thread, f"called {type(call).__name__} with bad arguments: {error}", thread.location())
            self.fail(thread, Errno.EFAULT)

    def enter(self, cpu: Cpu, thread: Thread, call: PendingCall) -> None:
        """Emit the entry of a call; each call does it itself, as some never reach the kernel.

        Raises:
            QnxError: ENOSYS; the release has no such call, and its library no older one to call instead.
        """
        if not self.target.has_call(call.name):
            older = call.older()
            if older is None:
                raise QnxError(Errno.ENOSYS, f"release {self.target.release} has no {call.name}")
            call = older
        thread.call = call
        time = self.stamp()
        is_logged = self.target.has_call(call.name) and not call.is_silent(self.target)
        self.history.call_begins(time, thread, call.name, is_logged)
        self.record.kernel_enter(cpu.index, time, thread, call)

    def interrupted(self, cpu: Cpu, thread: Thread) -> None:
        """End the call a thread is in without an exit event: its arguments are gone."""
        call, thread.call = thread.call, None
        thread.finish = None
        if call is None:
            return
        time = self.stamp()
        self.history.call_ends(time, thread, int(Errno.EINTR), is_interrupted=True)
        self.record.kernel_interrupted(cpu.index, time, thread, call)

    @staticmethod
    def complete(thread: Thread, value: Any = 0, **values: int) -> None:
        """Set the outcome of the call a thread is in; `values` are those of the exit event."""
        thread.value = value
        thread.error = None
        thread.exit_error = 0
        thread.exit_values = values

    @staticmethod
    def fail(thread: Thread, number: Errno, detail: str = "") -> None:
        """Let the call a thread is in fail."""
        thread.value = None
        thread.error = QnxError(number, detail)
        thread.exit_error = int(number)

    # States

    def set_state(self, cpu: Cpu, thread: Thread, state: str, on_cpu: int | None = None) -> int:
        """Enter a state and emit it; return its time."""
        thread.state = state
        index = cpu.index if on_cpu is None else on_cpu
        time = self.stamp()
        self.history.state(time, thread, state, index)
        self.record.thread_state(index, time, thread)
        return time

    def block(self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...] = ()) -> None:
        """Block the thread that runs on a CPU; the CPU is free afterwards."""
        thread.waiting_on = on
        self.scheduler.release(cpu, thread)
        time = self.set_state(cpu, thread, state)
        self.history.wait_begins(time, thread, state, on, owners)
        if thread.timeout_ns is not None and state in thread.timeout_states:
            self.timers.arm_timeout(thread)
        elif state not in ("REPLY", "SEND"):
            thread.timeout_ns = None

    def change_wait(
        self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...], waker: Thread | None = None
    ) -> None:
        """Let a blocked thread go from one wait into the next (SEND to REPLY, CONDVAR to MUTEX)."""
        thread.waiting_on = on
        time = self.set_state(cpu, thread, state)
        self.history.wait_ends(time, thread, "ok", waker)
        self.history.wait_begins(time, thread, state, on, owners)

    def wake(
        self, cpu: Cpu, thread: Thread, waker: Thread | None = None, outcome: str = "ok", handoff: bool = False
    ) -> None:
        """Make a blocked thread ready; the outcome of its call is already set."""
        thread.waiting_on = None
        thread.timeout_ns = None
        thread.timeout_token += 1
        if handoff and cpu.thread is None and cpu.handoff is None and thread.runmask >> cpu.index & 1:
            cpu.handoff = thread
            self.history.wait_ends(self.now, thread, outcome, waker)
            return
        time = self.scheduler.make_ready(cpu, thread)
        self.history.wait_ends(time, thread, outcome, waker)

    def cancel(self, cpu: Cpu, thread: Thread) -> None:
        """Let a thread end itself: now if it waits where it may be cancelled, else at the next such call."""
        thread.is_cancelled = True
        if thread.call is not None and thread.call.is_cancellation_point and thread.waiting_on is not None:
            unblock(self, cpu, thread, Errno.EINTR, "cancelled")
            thread.error = ThreadCancelled()

    def switch_cost(self) -> None:
        """Spend what a context switch takes."""
        self.now += self.vary(self._switch_cost)

    def send_ipi(self, cpu: Cpu, priority: int) -> None:
        """Have another CPU look at the ready queue."""
        cpu.claimed = max(cpu.claimed, priority)
        if not cpu.ipi_pending:
            cpu.ipi_pending = True
            self.at(self.now + self.vary(self._ipi_cost), self._ipi, cpu)

    def _ipi(self, cpu: Cpu) -> None:
        cpu.ipi_pending = False
        cpu.claimed = -1
        self.hold(cpu)
        if cpu.thread is not None:
            self.record.ipi(cpu.index, self.stamp(), cpu.thread)
        self.leave(cpu)

    def close(self) -> None:
        """Write down what is still open: who runs now."""
        for cpu in self.cpus:
            if cpu.thread is not None:
                self.history.ran(cpu, cpu.thread, cpu.thread.run_since, self.now)
        self.truth.end = self.now


def _no_trace_control(*_: Any) -> int:
    """Refuse TraceEvent() on a machine without a trace control."""
    raise QnxError(Errno.ENOSYS)
