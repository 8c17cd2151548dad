"""What expires: timers, sleeps and timeouts of blocking calls, and the clock they run by."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from satview.capture.sim.calls.delivery import ChannelWait, Envelope
from satview.capture.sim.calls.mutexes import forget_waiter, retake
from satview.capture.sim.calls.pulses import deliver
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno
from satview.capture.sim.parts.objects import Condvar
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread, Timer

Fire = Callable[[Cpu], None]
NO_TIMER = 0xFFFFFFFF
FLAGS_THREAD, FLAGS_PROCESS = 0x110, 0x111


class Timers:
    """Everything that waits for a time. With a clock tick it expires on ticks, as up to 7.x; without, exactly then."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self._due: list[tuple[int, int, Fire]] = []
        self._sequence = 0
        self.pending = 0  # started and not yet fired
        self.clock_interrupt = -1  # when the last one came

    def set_off(self, timer: Timer, ns: int) -> None:
        """Let a timer expire after a time, and then at its interval."""
        _start(self.kernel, timer, self.kernel.now + self.kernel.target.cycles(ns))

    def start(self, deadline: int, fire: Fire) -> None:
        """Call `fire(cpu)` in the kernel once the deadline has passed."""
        kernel = self.kernel
        self.pending += 1
        if kernel.target.tick_ns == 0:
            kernel.at(deadline, self._fire_now, fire)
            return
        self._sequence += 1
        heapq.heappush(self._due, (deadline, self._sequence, fire))

    def _fire_now(self, fire: Fire) -> None:
        self.pending -= 1
        self.kernel.kernel_entry(self.kernel.cpus[0], fire)

    def expire(self, cpu: Cpu) -> None:
        """Fire what is due; called after the clock interrupt."""
        now = self.kernel.now
        while self._due and self._due[0][0] <= now:
            self.pending -= 1
            heapq.heappop(self._due)[2](cpu)

    def arm_timeout(self, thread: Thread) -> None:
        """Start the timeout that TimerTimeout set up for the wait a thread has just begun."""
        kernel = self.kernel
        thread.timeout_token += 1
        token = thread.timeout_token
        deadline = kernel.now + kernel.target.cycles(thread.timeout_ns or 0)
        thread.timeout_ns = None

        def fire(cpu: Cpu) -> None:
            if thread.timeout_token == token and thread.state in thread.timeout_states:
                log_expiry(kernel, cpu, thread, NO_TIMER, FLAGS_THREAD)
                unblock(kernel, cpu, thread, Errno.ETIMEDOUT, "timeout")

        self.start(deadline, fire)


def log_expiry(kernel: KernelServices, cpu: Cpu, thread: Thread, ident: int, flags: int) -> None:
    """Log an expiry; where the kernel has no event for it the clock interrupt is what is seen."""
    time = kernel.stamp()
    kernel.record.timer(cpu.index, time, thread, ident, flags)
    kernel.history.cause = time if kernel.target.logs_timers else kernel.timers.clock_interrupt


def unblock(kernel: KernelServices, cpu: Cpu, thread: Thread, error: Errno, outcome: str) -> None:
    """End a wait from outside: the call fails with `error`. A condition variable's waiter must get its mutex first."""
    thing = thread.waiting_on
    forget_waiter(kernel, cpu, thread)
    if isinstance(thing, Envelope):
        thing.dropped = True
        channel = thing.connection.channel
        if thing in channel.senders:
            channel.senders.remove(thing)
        if thing.server is not None:
            thing.server.serving.pop(thing.rcvid, None)
    elif isinstance(thing, ChannelWait) and thread in thing.channel.receivers:
        thing.channel.receivers.remove(thread)
    kernel.fail(thread, error)
    if isinstance(thing, Condvar):
        retake(kernel, cpu, thing, thread, None, outcome)
        return
    kernel.wake(cpu, thread, outcome=outcome)


def _start(kernel: KernelServices, timer: Timer, deadline: int) -> None:
    generation = timer.generation
    timer.deadline = deadline

    def fire(cpu: Cpu) -> None:
        if timer.generation != generation or timer.process.is_dead:
            return
        log_expiry(kernel, cpu, timer.thread, timer.ident, FLAGS_PROCESS)
        if timer.interval_ns > 0:
            _start(kernel, timer, deadline + kernel.target.cycles(timer.interval_ns))
        deliver(kernel, cpu, timer.process, timer.thread, timer.event, "SPULSE_EXE")

    kernel.timers.start(deadline, fire)
