"""Kernel calls for the clock, sleeps, timeouts and timers."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from satview.base.time import NS_PER_S
from satview.capture.sim.calls.call import CLOCK_MONOTONIC, SIGALRM, Call
from satview.capture.sim.calls.channels import CODE_NET_UNBLOCK, CODE_UNBLOCK, PULSE_PRIORITY, deliver, send_pulse
from satview.capture.sim.calls.messages import ChannelWait, Envelope, NetWait
from satview.capture.sim.calls.mutexes import forget_waiter, reacquire_mutex
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import (
    CHF_UNBLOCK,
    CLOCK_VECTOR,
    Condvar,
    Cpu,
    Sigevent,
    Thread,
    Timer,
)

__all__ = [
    "ClockAdjust", "ClockPeriod", "ClockTime", "Sleep", "TimerAlarm", "TimerCreate", "TimerDestroy", "TimerInfo",
    "TimerSettime", "TimerTimeout",
]  # fmt: skip


# Kernel calls that read, set and adjust the clock.


_MIN_TICK_NS = 10_000


@dataclass(slots=True)
class ClockTime(Call):
    """Query the clock; result: nanoseconds since boot."""

    name = "CLOCK_TIME"
    logs: ClassVar = {"id": CLOCK_MONOTONIC}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return nanoseconds since boot."""
        kernel.enter(cpu, thread, self)
        now_ns = kernel.now * NS_PER_S // kernel.target.cycles_per_s
        kernel.complete(thread, now_ns, **{"old(sec)": now_ns // NS_PER_S, "old(nsec)": now_ns % NS_PER_S})


@dataclass(slots=True)
class ClockPeriod(Call):
    """Query or set the period of the clock tick in ns; result: the old period. 8.0 has no tick and returns 1 ms."""

    name = "CLOCK_PERIOD"
    logs: ClassVar = {"new->nsec": "new_ns"}
    new_ns: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the period, which applies from the tick after the next one; 0 = only query.

        Raises:
            QnxError: EINVAL (the period is less than 10 us).
        """
        kernel.enter(cpu, thread, self)
        clock = kernel.sources[CLOCK_VECTOR]
        old = clock.gap_ns() or 0
        if self.new_ns:
            if self.new_ns < _MIN_TICK_NS:
                raise QnxError(Errno.EINVAL, f"a tick of {self.new_ns} ns")
            clock.gap_ns = lambda: self.new_ns
        kernel.complete(thread, old, **{"old->nsec": old})


@dataclass(slots=True)
class ClockAdjust(Call):
    """Set a gradual adjustment of the time of day (number of ticks, increment per tick); result: the old adjustment."""

    name = "CLOCK_ADJUST"
    logs: ClassVar = {"new->tick_count": "tick_count", "new->tick_nsec_inc": "tick_nsec_inc"}
    tick_count: int = 0
    tick_nsec_inc: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Store the new adjustment, which has no effect because no program reads the time of day."""
        kernel.enter(cpu, thread, self)
        old, kernel.clock_adjust = kernel.clock_adjust, (self.tick_count, self.tick_nsec_inc)
        kernel.complete(thread, old, **{"old->tick_count": old[0], "old->tick_nsec_inc": old[1]})


# Expiry of timers, sleeps and timeouts of blocking calls.


Fire = Callable[[Cpu], None]
NO_TIMER = 0xFFFFFFFF
FLAGS_THREAD, FLAGS_PROCESS = 0x110, 0x111


class Timers:
    """Runs functions when their deadlines have passed: at a clock tick (up to 7.x), or at the exact time (8.0)."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self._due: list[tuple[int, int, Fire]] = []
        self._sequence = 0
        self.pending = 0  # number of functions started and not yet called
        self.clock_interrupt = -1  # time of the last clock interrupt

    def arm(self, timer: Timer, ns: int) -> None:
        """Start a timer that expires after `ns`, and then periodically at its interval."""
        _start(self.kernel, timer, self.kernel.now + self.kernel.target.cycles(ns))

    def start(self, deadline: int, fire: Fire) -> None:
        """Call `fire(cpu)` in the kernel once the deadline, in cycles, has passed."""
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
        """Call all functions that are due; called after the clock interrupt."""
        now = self.kernel.now
        while self._due and self._due[0][0] <= now:
            self.pending -= 1
            heapq.heappop(self._due)[2](cpu)

    def arm_timeout(self, thread: Thread) -> None:
        """Start the timeout set by TimerTimeout for a wait that has just begun."""
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
    """Log a timer's expiry, and record it as the cause of the changes that follow; before 6.6 the tick is their cause.

    `ident` is the id of the timer in the payload; `NO_TIMER` for a sleep or timeout.
    """
    time = kernel.stamp()
    kernel.record.timer(cpu.index, time, thread, ident, flags)
    kernel.history.cause = time if kernel.target.logs_timers else kernel.timers.clock_interrupt


def ask_to_unblock(kernel: KernelServices, cpu: Cpu, thread: Thread) -> bool:
    """Send an unblock pulse to the server of a thread's message, if it requests such pulses; True = one was sent."""
    thing = thread.waiting_on
    if not isinstance(thing, Envelope) or thing.server is None:
        return False
    if not thing.connection.channel.flags & CHF_UNBLOCK or thing.server.state == "DEAD":
        return False
    send_pulse(kernel, cpu, thing.connection, "SPULSE_UN", PULSE_PRIORITY, CODE_UNBLOCK, thing.rcvid)
    return True


def unblock(kernel: KernelServices, cpu: Cpu, thread: Thread, error: Errno, outcome: str) -> bool:
    """End a thread's wait, so that its call fails with `error`; after CondWait the thread needs its mutex first.

    `outcome` is how the wait ends, as in `TrueWait`. With `timeout` and `signal`, a server that has received the
    thread's message can delay the end: the result is then False, and the thread stays blocked until the server replies.
    """
    if outcome in ("signal", "timeout") and ask_to_unblock(kernel, cpu, thread):
        return False
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
        reacquire_mutex(kernel, cpu, thing, thread, None, outcome)
        return True
    if isinstance(thing, NetWait):
        cause = kernel.history.cause
        send_pulse(kernel, cpu, thing.link, "SPULSE_QUN", PULSE_PRIORITY, CODE_NET_UNBLOCK, thread.tid)
        kernel.history.cause = cause
    kernel.wake(cpu, thread, outcome=outcome)
    return True


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


_INFO_ADDRESS = 0x8047C80


def _in_seconds(name: str, ns: int) -> dict[str, int]:
    """Return a time in seconds and nanoseconds, as two arguments whose names begin with `name`."""
    return {f"{name}_sec": ns // NS_PER_S, f"{name}_nsec": ns % NS_PER_S}


@dataclass(slots=True)
class Sleep(Call):
    """Sleep for at least `ns` nanoseconds."""

    name = "TIMER_TIMEOUT"
    ns: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: clock, states and time."""
        clock = {"clock_id": CLOCK_MONOTONIC, "id": CLOCK_MONOTONIC}
        return {**clock, "timeout_flags": 1 << 12, **_in_seconds("ntime", self.ns)}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Sleep; the time counts from the entry of the call."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        thread.timeout_token += 1
        token = thread.timeout_token
        deadline = kernel.now + kernel.target.cycles(self.ns)

        def fire(where: Cpu) -> None:
            if thread.timeout_token == token and thread.state == "NANOSLEEP":
                log_expiry(kernel, where, thread, NO_TIMER, FLAGS_THREAD)
                kernel.wake(where, thread)

        kernel.timers.start(deadline, fire)
        kernel.block(cpu, thread, "NANOSLEEP", "time")


@dataclass(slots=True)
class TimerTimeout(Call):
    """Set a timeout for the next blocking call: in one of `states` the call fails with ETIMEDOUT after `ns`."""

    name = "TIMER_TIMEOUT"
    states: tuple[str, ...]
    ns: int

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: clock, states and time."""
        numbers = {
            "SEND": 4, "RECEIVE": 5, "REPLY": 6, "NANOSLEEP": 12, "MUTEX": 13, "CONDVAR": 14, "JOIN": 15, "INTR": 16,
            "SEM": 17,
        }  # fmt: skip
        flags = sum(1 << numbers[state] for state in self.states if state in numbers)
        return {**Sleep(self.ns).arguments(thread), "timeout_flags": flags}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the timeout of the next blocking call."""
        kernel.enter(cpu, thread, self)
        thread.timeout_ns = self.ns
        thread.timeout_states = frozenset(self.states)
        kernel.complete(thread)


@dataclass(slots=True)
class TimerCreate(Call):
    """Create a timer that delivers an event at each expiry; result: the timer's id."""

    name = "TIMER_CREATE"
    logs: ClassVar = {"timer_id": CLOCK_MONOTONIC, "id": CLOCK_MONOTONIC}
    event: Sigevent

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Create the timer in the caller's process."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        timer = Timer(process.next_timer, process, thread, self.event)
        process.next_timer += 1
        process.timers[timer.ident] = timer
        kernel.complete(thread, timer.ident, timer_id=timer.ident)


@dataclass(slots=True)
class TimerSettime(Call):
    """Start a timer that expires after `ns`, and then every `interval_ns`; `ns` 0 stops the timer."""

    name = "TIMER_SETTIME"
    timer: int
    ns: int
    interval_ns: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the timer's id, first period and interval."""
        return {
            "clock_id": self.timer,
            "id": self.timer,
            **_in_seconds("itime->nsec", self.ns),
            **_in_seconds("itime->interval_nsec", self.interval_ns),
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Start or stop a timer.

        Raises:
            QnxError: EINVAL (no such timer).
        """
        kernel.enter(cpu, thread, self)
        timer = thread.process.timers.get(self.timer)
        if timer is None:
            raise QnxError(Errno.EINVAL, f"no timer {self.timer}")
        timer.generation += 1
        timer.interval_ns = self.interval_ns
        kernel.complete(thread)
        if self.ns > 0:
            kernel.timers.arm(timer, self.ns)


@dataclass(slots=True)
class TimerDestroy(Call):
    """Remove a timer."""

    name = "TIMER_DESTROY"
    logs: ClassVar = {"id": "timer"}
    timer: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Remove a timer.

        Raises:
            QnxError: EINVAL (no such timer).
        """
        kernel.enter(cpu, thread, self)
        timer = thread.process.timers.pop(self.timer, None)
        if timer is None:
            raise QnxError(Errno.EINVAL, f"no timer {self.timer}")
        timer.generation += 1
        kernel.complete(thread)


def _left_ns(kernel: KernelServices, timer: Timer | None) -> int:
    left = max(0, timer.deadline - kernel.now) if timer is not None else 0
    return left * NS_PER_S // kernel.target.cycles_per_s


@dataclass(slots=True)
class TimerInfo(Call):
    """Query the first timer with at least this id; result: `(id, remaining ns, interval in ns)`."""

    name = "TIMER_INFO"
    id: int
    pid: int = 0
    info_p: int = _INFO_ADDRESS

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the remaining time of the timer.

        Raises:
            QnxError: EINVAL (no timer with at least this id).
        """
        kernel.enter(cpu, thread, self)
        idents = [ident for ident in sorted(thread.process.timers) if ident >= self.id]
        if not idents:
            raise QnxError(Errno.EINVAL, f"no timer from {self.id} on")
        timer = thread.process.timers[idents[0]]
        left = _left_ns(kernel, timer)
        values = {
            "prev_id": idents[0], "info->tid": timer.thread.tid, "info->notify": timer.event.notify,
            "info->clockid": CLOCK_MONOTONIC, "info->itime.nsec": left, "info->otime.nsec": left,
        }  # fmt: skip
        for name, ns in (
            ("itime.nsec", left),
            ("itime.interval_nsec", timer.interval_ns),
            ("otime.nsec", left),
            ("otime.interval_nsec", timer.interval_ns),
        ):
            values |= {f"info->{name}(sec)": ns // NS_PER_S, f"info->{name}(nsec)": ns % NS_PER_S}
        kernel.complete(thread, (idents[0], left, timer.interval_ns), **values)


@dataclass(slots=True)
class TimerAlarm(Call):
    """Send SIGALRM to the caller's process after `ns` (0 = cancel); result: remaining ns of the previous alarm."""

    name = "TIMER_ALARM"
    ns: int
    interval_ns: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: clock and times."""
        return {
            "id": CLOCK_MONOTONIC,
            "clock_id": CLOCK_MONOTONIC,
            **_in_seconds("itime->nsec", self.ns),
            **_in_seconds("itime->interval_nsec", self.interval_ns),
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Cancel the alarm of the caller's process, and start a new one if `ns` is not 0."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        left = _left_ns(kernel, process.alarm)
        if process.alarm is not None:
            process.alarm.generation += 1
        process.alarm = Timer(-1, process, thread, Sigevent("signal", signo=SIGALRM))
        process.alarm.interval_ns = self.interval_ns
        if self.ns > 0:
            kernel.timers.arm(process.alarm, self.ns)
        kernel.complete(thread, left, **_in_seconds("otime->nsec", left), **_in_seconds("oitime->nsec", left))
