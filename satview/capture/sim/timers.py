"""Sleeping, timers, timeouts of blocking calls, and the clock they run by."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

from satview.capture.sim import messages, pulses
from satview.capture.sim.errors import Errno
from satview.capture.sim.objects import Condvar
from satview.capture.sim.sync import forget_waiter, retake

if TYPE_CHECKING:
    from satview.capture.sim.calls import (
        ClockTime,
        Sigevent,
        Sleep,
        TimerCreate,
        TimerDestroy,
        TimerSettime,
        TimerTimeout,
    )
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Process, Thread

Fire = Callable[["Cpu"], None]
_NO_TIMER = 0xFFFFFFFF
_FLAGS_THREAD, _FLAGS_PROCESS = 0x110, 0x111
_NS = 1_000_000_000


class Timer:
    """A timer of a process."""

    __slots__ = ("deadline", "event", "generation", "ident", "interval_ns", "process", "thread")

    def __init__(self, ident: int, process: Process, thread: Thread, event: Sigevent) -> None:
        self.ident = ident
        self.process = process
        self.thread = thread
        self.event = event
        self.interval_ns = 0
        self.generation = 0
        self.deadline = 0         # of its next expiry, in cycles


class Timers:
    """Everything that waits for a time. With a clock tick it expires on ticks, as up to 7.x; without, exactly then."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._due: list[tuple[int, int, Fire]] = []
        self._sequence = 0
        self.pending = 0      # started and not yet fired
        self.clock_interrupt = -1      # when the last one came

    def set_off(self, timer: Timer, ns: int) -> None:
        """Let a timer expire after a time, and then at its interval."""
        _start(self.machine, timer, self.machine.now + self.machine.target.cycles(ns))

    def start(self, deadline: int, fire: Fire) -> None:
        """Call `fire(cpu)` in the kernel once the deadline has passed."""
        machine = self.machine
        self.pending += 1
        if machine.target.tick_ns == 0:
            machine.at(deadline, self._fire_now, fire)
            return
        self._sequence += 1
        heapq.heappush(self._due, (deadline, self._sequence, fire))

    def _fire_now(self, fire: Fire) -> None:
        self.pending -= 1
        self.machine.kernel_entry(self.machine.cpus[0], fire)

    def expire(self, cpu: Cpu) -> None:
        """Fire what is due; called after the clock interrupt."""
        now = self.machine.now
        while self._due and self._due[0][0] <= now:
            self.pending -= 1
            heapq.heappop(self._due)[2](cpu)

    def arm_timeout(self, thread: Thread) -> None:
        """Start the timeout that TimerTimeout set up for the wait a thread has just begun."""
        machine = self.machine
        thread.timeout_token += 1
        token = thread.timeout_token
        deadline = machine.now + machine.target.cycles(thread.timeout_ns or 0)
        thread.timeout_ns = None

        def fire(cpu: Cpu) -> None:
            if thread.timeout_token == token and thread.state in thread.timeout_states:
                _expired(machine, cpu, thread, _NO_TIMER, _FLAGS_THREAD)
                unblock(machine, cpu, thread, Errno.ETIMEDOUT, "timeout")

        self.start(deadline, fire)


def _expired(machine: Machine, cpu: Cpu, thread: Thread, ident: int, flags: int) -> None:
    """Log an expiry; where the kernel has no event for it the clock interrupt is what is seen."""
    time = machine.stamp()
    machine.record.timer(cpu.index, time, thread, ident, flags)
    machine.history.cause = time if machine.target.logs_timers else machine.timers.clock_interrupt


def unblock(machine: Machine, cpu: Cpu, thread: Thread, error: Errno, outcome: str) -> None:
    """End a wait from outside: the call fails with `error`. A condition variable's waiter must get its mutex first."""
    thing = thread.waiting_on
    forget_waiter(machine, cpu, thread)
    if isinstance(thing, messages.Envelope):
        thing.dropped = True
        channel = thing.connection.channel
        if thing in channel.senders:
            channel.senders.remove(thing)
        if thing.server is not None:
            thing.server.serving.pop(thing.rcvid, None)
    elif isinstance(thing, messages.ChannelWait) and thread in thing.channel.receivers:
        thing.channel.receivers.remove(thread)
    machine.fail(thread, error)
    if isinstance(thing, Condvar):
        retake(machine, cpu, thing, thread, None, outcome)
        return
    machine.wake(cpu, thread, outcome=outcome)


def sleep(machine: Machine, cpu: Cpu, thread: Thread, call: Sleep) -> None:
    """Sleep; the time runs from now."""
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    thread.timeout_token += 1
    token = thread.timeout_token
    deadline = machine.now + machine.target.cycles(call.ns)

    def fire(where: Cpu) -> None:
        if thread.timeout_token == token and thread.state == "NANOSLEEP":
            _expired(machine, where, thread, _NO_TIMER, _FLAGS_THREAD)
            machine.wake(where, thread)

    machine.timers.start(deadline, fire)
    machine.block(cpu, thread, "NANOSLEEP", "time")


def timer_timeout(machine: Machine, cpu: Cpu, thread: Thread, call: TimerTimeout) -> None:
    """Set the limit of the next blocking call."""
    machine.enter(cpu, thread, call)
    thread.timeout_ns = call.ns
    thread.timeout_states = frozenset(call.states)
    machine.complete(thread)


def timer_create(machine: Machine, cpu: Cpu, thread: Thread, call: TimerCreate) -> None:
    """Make a timer of the caller's process."""
    machine.enter(cpu, thread, call)
    process = thread.process
    timer = Timer(process.next_timer, process, thread, call.event)
    process.next_timer += 1
    process.timers[timer.ident] = timer
    machine.complete(thread, timer.ident, timer_id=timer.ident)


def timer_settime(machine: Machine, cpu: Cpu, thread: Thread, call: TimerSettime) -> None:
    """Start or stop a timer."""
    machine.enter(cpu, thread, call)
    timer = thread.process.timers.get(call.timer)
    if timer is None:
        machine.fail(thread, Errno.EINVAL, f"no timer {call.timer}")
        return
    timer.generation += 1
    timer.interval_ns = call.interval_ns
    machine.complete(thread)
    if call.ns > 0:
        machine.timers.set_off(timer, call.ns)


def _start(machine: Machine, timer: Timer, deadline: int) -> None:
    generation = timer.generation
    timer.deadline = deadline

    def fire(cpu: Cpu) -> None:
        if timer.generation != generation or timer.process.is_dead:
            return
        _expired(machine, cpu, timer.thread, timer.ident, _FLAGS_PROCESS)
        if timer.interval_ns > 0:
            _start(machine, timer, deadline + machine.target.cycles(timer.interval_ns))
        pulses.deliver(machine, cpu, timer.process, timer.thread, timer.event, "SPULSE_EXE")

    machine.timers.start(deadline, fire)


def timer_destroy(machine: Machine, cpu: Cpu, thread: Thread, call: TimerDestroy) -> None:
    """Remove a timer."""
    machine.enter(cpu, thread, call)
    timer = thread.process.timers.pop(call.timer, None)
    if timer is None:
        machine.fail(thread, Errno.EINVAL, f"no timer {call.timer}")
        return
    timer.generation += 1
    machine.complete(thread)


def clock_time(machine: Machine, cpu: Cpu, thread: Thread, call: ClockTime) -> None:
    """Return nanoseconds since boot."""
    machine.enter(cpu, thread, call)
    now_ns = machine.now * _NS // machine.target.cycles_per_s
    machine.complete(thread, now_ns, **{"old(sec)": now_ns // _NS, "old(nsec)": now_ns % _NS})
