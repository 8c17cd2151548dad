"""Runs programs on the simulated kernel, which logs a trace."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.kernel import Kernel
from satview.capture.run import Capture, run
from satview.capture.sim import threads
from satview.capture.sim.calls import (
    BarrierWait,
    Compute,
    CondSignal,
    CondWait,
    InterruptUnmask,
    InterruptWait,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendPulse,
    MutexLock,
    MutexUnlock,
    RwLockAcquire,
    RwLockRelease,
    SchedSet,
    SemPost,
    SemWait,
    TraceEvent,
)
from satview.capture.sim.calls import Sleep as SleepCall
from satview.capture.sim.calls.call import Call
from satview.capture.sim.calls.channels import send_pulse, wake_for_interrupt
from satview.capture.sim.calls.processes import add_process, add_thread, start
from satview.capture.sim.calls.timers import FLAGS_PROCESS, FLAGS_THREAD, NO_TIMER, log_expiry
from satview.capture.sim.machine import Machine
from satview.capture.sim.services import KernelServices
from satview.capture.sim.target import target
from satview.capture.workloads.registry import Workload
from satview.events.modes import Mode
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.store.trace import Trace
from satview.whatif import steps as steps_of
from satview.whatif.program import BEAT_NS
from satview.whatif.steps import InterruptLine, Programs, Step, Stream, ThreadProgram, TimerSource

MOST_REPLAYED: Final = 20_000_000
"""Most steps of all threads together, including repeated ones."""
_LOCATION: Final = re.compile(r" at replay\.py:\d+")  # the same for every thread
LEAD_NS: Final = 3_000_000
"""Time before the trace begins, in which all threads reach the waits in which they are then."""
_OWN_SCOIDS: Final = 0x8000  # connections that bring no pulses have numbers from here on
_MANAGER_CHANNELS: Final = 1000  # channels of the process manager that are replayed have numbers from here on


@dataclass(slots=True)
class _Pause(Call):
    """Call that waits in a state until an exact moment, or sleeps until the tick nearest to that moment.

    Attributes:
        cycles: The moment, or the time from now.
        is_absolute: Whether `cycles` is a moment.
        is_sleep: Whether a tick ends the wait.
        cpu: CPU on which the thread runs afterwards, if its runmask allows it; -1 = any.
    """

    name = "NOP"
    state: str
    cycles: int
    is_absolute: bool = False
    is_sleep: bool = False
    cpu: int = -1

    def carry_out(self, kernel: KernelServices, cpu: threads.Cpu, thread: threads.Thread) -> None:
        """Block the calling thread until the moment; a sleep ends on the tick nearest to the moment."""
        due = self.cycles if self.is_absolute else kernel.now + self.cycles
        kernel.complete(thread)
        if due <= kernel.now:
            return
        kernel.block(cpu, thread, self.state, "what the replay does not have")
        if self.cpu >= 0 and thread.runmask >> self.cpu & 1:
            thread.last_cpu = self.cpu
        if self.is_sleep:

            def fire(here: threads.Cpu) -> None:
                log_expiry(kernel, here, thread, NO_TIMER, FLAGS_THREAD)
                kernel.wake(here, thread)

            kernel.timers.start(due - kernel.target.cycles(kernel.target.tick_ns // 2), fire)
            return
        kernel.at(due, lambda _nothing: kernel.kernel_entry(
            kernel.cpus[max(thread.last_cpu, 0)], lambda here: kernel.wake(here, thread)))  # fmt: skip


@dataclass(slots=True)
class _Wake(Call):
    """End another thread's wait for an interrupt."""

    name = "NOP"
    woken: threads.Thread | None

    def carry_out(self, kernel: KernelServices, cpu: threads.Cpu, thread: threads.Thread) -> None:
        """Wake the thread `woken` if it waits for the interrupt, else let its next wait end at once."""
        kernel.complete(thread)
        if self.woken is not None:
            wake_for_interrupt(kernel, cpu, self.woken)


@dataclass(slots=True)
class _AwaitStart(Call):
    """Wait until another thread starts the calling thread, unless that has already happened."""

    name = "NOP"
    started: set[threads.Thread]

    def carry_out(self, kernel: KernelServices, cpu: threads.Cpu, thread: threads.Thread) -> None:
        """Block the calling thread until it is started; return at once if it already was."""
        kernel.complete(thread)
        if thread not in self.started:
            kernel.block(cpu, thread, "STOPPED", "being created")


@dataclass(slots=True)
class _Start(Call):
    """Start a thread that waits in `_AwaitStart`."""

    name = "NOP"
    created: threads.Thread | None
    started: set[threads.Thread]

    def carry_out(self, kernel: KernelServices, cpu: threads.Cpu, thread: threads.Thread) -> None:
        """Wake the created thread; calls after the first one have no effect."""
        kernel.complete(thread)
        created = self.created
        if created is None or created in self.started:
            return
        self.started.add(created)
        if created.state == "STOPPED":
            kernel.wake(cpu, created, waker=thread)


class _Replay:
    """One run of programs: sets up a kernel, and tracks the progress of each thread."""

    def __init__(self, programs: Programs, kernel: Kernel, begin_cycles: int) -> None:
        self.programs, self.kernel, self.machine = programs, kernel, kernel.machine
        self.begin = begin_cycles
        self.rcvids: dict[int, deque[int]] = defaultdict(deque)
        self.early: dict[int, int] = defaultdict(int)
        self.taken = [0] * len(programs.streams)
        self.tokens: dict[int, int] = defaultdict(int)
        self.threads: dict[int, threads.Thread] = {}
        self.started: set[threads.Thread] = set()
        self.coids: dict[tuple[int, int, int, int], int] = {}
        self.things: list[Any] = [_thing(thing) for thing in programs.things]
        self.gates = [threads.Mutex(f"gate-{number}") for number in range(len(programs.things))]
        self.nobody, self.nothing = threads.Condvar("nobody"), threads.Semaphore("nothing")
        self.alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, message in enumerate(programs.messages):
            if message.steps is not None and message.is_answered:
                self.alike[message.pid, message.first_word].append(number)
                self.alike[message.pid, -1].append(number)

    def cycles(self, ns: int) -> int:
        """Return a length in nanoseconds as cycles of the simulated target."""
        return self.machine.target.cycles(ns)

    def set_up(self) -> None:
        """Create processes, channels, threads, timers and interrupts on the simulated kernel."""
        programs, machine = self.programs, self.machine
        shares = {partition.number: partition for partition in programs.partitions if partition.number}
        self.partitions: dict[int, threads.Partition] = {}
        if shares:
            partitions = self.kernel.partitions(
                *((share.name, share.percent, share.critical_ms) for share in shares.values())
            )
            self.partitions = {0: machine.partitions[0], **dict(zip(shares, partitions, strict=True))}
        chids = {(message.pid, message.chid) for message in programs.messages if message.chid}
        chids |= {(stream.pid, stream.chid) for stream in programs.streams if stream.chid}
        chids |= {(thread.pid, step.chid) for thread in programs.threads for step in thread.steps
                  if isinstance(step, steps_of.Receive)}  # fmt: skip
        for thread in programs.threads:
            if thread.pid not in machine.processes:
                add_process(machine, thread.process, 1, pid=thread.pid)
        for pid, chid in sorted(chids):
            if pid in machine.processes:
                process = machine.processes[pid]
                process.channels[_chid(pid, chid)] = threads.Channel(process, _chid(pid, chid))
        for thread in programs.threads:
            self._add(thread)
        for timer in programs.timers:
            self._add_timer(timer)
        for line in programs.interrupts:
            self._add_line(line)

    def _add(self, program: ThreadProgram) -> None:
        machine, process = self.machine, self.machine.processes[program.pid]
        body = self._body(program)
        policy = threads.Policy(program.policy) if program.policy in (1, 2, 3) else threads.Policy.RR
        if program.pid == 1:
            self._run_in_manager(program, body)
            return
        process.next_tid = program.tid
        thread = add_thread(process, body, program.priority, policy, program.name, program.runmask)
        self.threads[program.row] = thread
        if program.partition in self.partitions:
            thread.partition = thread.own_partition = self.partitions[program.partition]
            thread.is_critical = thread.is_critical_itself = program.is_critical
        start(machine, machine.cpus[0], thread)

    def _run_in_manager(self, program: ThreadProgram, body: threads.Program) -> None:
        """Let a thread of the simulated process manager run the steps of a recorded one, if there is such a thread."""
        tid = program.tid - self.programs.trace.cpu_count + len(self.machine.cpus)
        thread = self.machine.processes[1].threads.get(tid)
        if thread is None or len(program.steps) < 2:
            return
        thread.generator = body
        self.threads[program.row] = thread

    def _connection(self, owner: threads.Process, pid: int, chid: int, scoid: int = 0) -> int | None:
        """Return a process's connection to a channel, new if `scoid` is 0; None without such a channel."""
        key = (owner.pid, pid, chid, scoid)
        if key in self.coids:
            return self.coids[key]
        server = self.machine.processes.get(pid)
        channel = server.channels.get(_chid(pid, chid)) if server is not None else None
        if server is None or channel is None:
            return None
        server.scoids = max(server.scoids, _OWN_SCOIDS) + (not scoid)
        coid = 0x40000000 | (owner.next_coid + 0x100)
        owner.next_coid += 1
        owner.connections[coid] = threads.Connection(owner, coid, channel, scoid or server.scoids)
        self.coids[key] = coid
        return coid

    # What threads do.

    def _body(self, program: ThreadProgram) -> threads.Program:
        if program.sporadic is not None:
            low, budget_ns, period_ns = program.sporadic
            yield SchedSet(program.priority, threads.Policy.SPORADIC, low, budget_ns, period_ns)
        for step in program.steps:
            yield from self._step(step, program)
        begin, stop = program.repeats
        while begin < stop:
            for step in program.steps[begin:stop]:
                yield from self._step(step, program)
        if not program.ends:
            yield _Pause("NANOSLEEP", 1 << 60)

    def _step(self, step: Step, program: ThreadProgram) -> threads.Program:
        """Yield the calls that carry out one step of a thread."""
        call = self._call(step, program)
        if call is not None:
            yield call
        elif isinstance(step, steps_of.Receive):
            yield from self._receive(step.chid, program)
        elif isinstance(step, steps_of.Send):
            yield from self._send(step.message, program)
        elif isinstance(step, steps_of.Await):
            yield from self._await(step.thing)

    def _call(self, step: Step, program: ThreadProgram) -> Call | Compute | None:  # noqa: C901, PLR0911, PLR0912
        """Return the single call that carries out a step; None if the step takes several calls, or none."""
        match step:
            case steps_of.Work(ns):
                return Compute(int(ns / program.speed))
            case steps_of.SleepStep(ns):
                return SleepCall(ns)
            case steps_of.TimedWait(state, ns):
                return _Pause(state, self.cycles(ns))
            case steps_of.Reply(number):
                if self.rcvids[number]:
                    return MsgReply(self.rcvids[number].popleft())
                self.early[number] += 1
            case steps_of.Signal(thing, count):
                return self._signal(thing, count)
            case steps_of.Lock(number, is_write):
                lock, thread = self.things[number], self.threads[program.row]
                if thread not in _holders(lock):
                    return RwLockAcquire(lock, is_write) if isinstance(lock, threads.RwLock) else MutexLock(lock)
            case steps_of.Unlock(number):
                lock, thread = self.things[number], self.threads[program.row]
                if thread in _holders(lock):
                    return RwLockRelease(lock) if isinstance(lock, threads.RwLock) else MutexUnlock(lock)
            case steps_of.Meet(number):
                return BarrierWait(self.things[number])
            case steps_of.AwaitInterrupt():
                return InterruptWait()
            case steps_of.Unmask(vector):
                return InterruptUnmask(vector)
            case steps_of.SendPulse(number):
                stream = self.programs.streams[number]
                coid = self._connection(self.threads[program.row].process, stream.pid, stream.chid, stream.scoid)
                return MsgSendPulse(coid, self._priority(stream), 0, number + 1) if coid is not None else None
            case steps_of.LogEvent(event, words):
                return TraceEvent(Mode.INSERTSUSEREVENT, event, *words)
            case steps_of.Begin(after_ns, state, is_sleep):
                due = self.begin + (self.cycles(after_ns) if after_ns >= 0 else -self.cycles(-after_ns))
                cpu = program.cpu if program.cpu < len(self.machine.cpus) else -1
                return _Pause(state, due, True, is_sleep, cpu)
            case steps_of.Wake(row):
                return _Wake(self.threads.get(row))
            case steps_of.AwaitStart():
                return _AwaitStart(self.started)
            case steps_of.StartThread(row):
                return _Start(self.threads.get(row), self.started)
            case steps_of.Every(period_ns):
                gone_ns = self._since_begin_ns() % period_ns
                return SleepCall(period_ns - gone_ns)  # longer by up to a tick, as with a real timer
        return None

    def _since_begin_ns(self) -> int:
        return (self.machine.now - self.begin) * 1_000_000_000 // self.machine.target.cycles_per_s

    def _priority(self, stream: Stream) -> int:
        """Return the priority of a stream's pulses; if the trace does not show it, the receiving thread's priority."""
        if stream.priority > 0:
            return stream.priority
        thread = self.threads.get(-stream.priority)
        return thread.base_priority if thread is not None else 10

    def _send(self, number: int, program: ThreadProgram) -> threads.Program:
        message = self.programs.messages[number]
        if not (message.is_answered and message.steps is not None):  # unanswered in the trace: replay a similar message
            others = self.alike.get((message.pid, message.first_word)) or self.alike.get((message.pid, -1))
            if others:
                number = others[number % len(others)]
                message = self.programs.messages[number]
        coid = self._connection(self.threads[program.row].process, message.pid, message.chid)
        if coid is None:
            yield _Pause("REPLY", 1 << 60)
        else:
            yield MsgSend(coid, message.first_word.to_bytes(4, "little"), payload=number)

    def _receive(self, chid: int, program: ThreadProgram) -> threads.Program:
        received = yield MsgReceive(_chid(program.pid, chid))
        if received.is_pulse:
            number = received.value - 1
            stream = self.programs.streams[number] if 0 <= number < len(self.programs.streams) else None
            if stream is None or not stream.works:
                return
            work = stream.works[self.taken[number] % len(stream.works)]
            self.taken[number] += 1
        else:
            number = received.payload
            if not isinstance(number, int):
                yield MsgReply(received.rcvid)
                return
            work = self.programs.messages[number].steps or []
            self.rcvids[number].append(received.rcvid)
            if self.early[number]:
                self.early[number] -= 1
                yield MsgReply(self.rcvids[number].popleft())
        for step in work:
            yield from self._step(step, program)

    def _await(self, thing: int) -> threads.Program:
        if self.programs.things[thing].kind == "SEM":
            yield SemWait(self.things[thing])
            return
        yield MutexLock(self.gates[thing])
        while not self.tokens[thing]:
            yield CondWait(self.things[thing], self.gates[thing])
        self.tokens[thing] -= 1
        yield MutexUnlock(self.gates[thing])

    def _signal(self, thing: int, count: int) -> Call:
        if self.programs.things[thing].kind == "SEM":
            return SemPost(self.things[thing] if count else self.nothing)
        self.tokens[thing] += count
        return CondSignal(self.things[thing] if count else self.nobody, count > 1)

    # Timers and interrupts.

    def _add_timer(self, timer: TimerSource) -> None:
        """Make the kernel send a stream's pulses at recorded moments; those of a timer on the nearest ticks."""
        stream, machine = self.programs.streams[timer.stream], self.machine
        receiver = self._receiver(stream)
        if receiver is None:
            return
        process, coid = receiver
        connection = process.connections[coid]
        thread = self.threads.get(timer.thread) or next(iter(process.threads.values()))
        moments = iter(timer.moments_ns)
        early = self.cycles(self.programs.tick_ns // 2)

        def fire(cpu: threads.Cpu) -> None:
            if not process.is_dead:
                if timer.thread:
                    log_expiry(machine, cpu, thread, timer.ident, FLAGS_PROCESS)
                send_pulse(machine, cpu, connection, "SPULSE_EXE", self._priority(stream), 0, timer.stream + 1)
            set_off()

        def set_off() -> None:
            moment_ns = next(moments, None)
            if moment_ns is not None and timer.thread:
                machine.timers.start(self.begin + self.cycles(moment_ns) - early, fire)
            elif moment_ns is not None:  # sent by the kernel itself, as a buffer of the logger is full
                machine.at(self.begin + self.cycles(moment_ns), lambda _: machine.kernel_entry(machine.cpus[0], fire))

        set_off()

    def _add_line(self, line: InterruptLine) -> None:
        gaps = self._gaps(line)
        self.kernel.device(line.vector, lambda: next(gaps, None), line.cpu)
        source = self.machine.sources[line.vector]
        for pid, outcomes in line.handlers.items():
            process = self.machine.processes.get(pid)
            if process is not None and process.threads:
                source.attachments.append(self._handler(line, process, outcomes))
        for row in line.threads:
            if row in self.threads:
                self.machine.interrupts.attach(self.threads[row], line.vector, threads.Sigevent("intr"), None)
        for number in line.streams:
            stream = self.programs.streams[number]
            if (receiver := self._receiver(stream)) is not None:
                process, coid = receiver
                event = threads.Sigevent("pulse", coid, self._priority(stream), 0, number + 1)
                self.machine.interrupts.attach(next(iter(process.threads.values())), line.vector, event, None)

    def _receiver(self, stream: Stream) -> tuple[threads.Process, int] | None:
        """Return the process that receives a stream's pulses and its connection to the channel, or None."""
        process = self.machine.processes.get(stream.pid)
        coid = self._connection(process, stream.pid, stream.chid, stream.scoid) if process is not None else None
        return None if process is None or coid is None else (process, coid)

    def _gaps(self, line: InterruptLine) -> Iterator[int]:
        """Yield the time to each interrupt from the one before, ns; for the first one, from now."""
        before_ns = self._since_begin_ns()
        for moment_ns in line.moments_ns:
            yield max(0, moment_ns - before_ns)
            before_ns = moment_ns

    def _handler(
        self, line: InterruptLine, process: threads.Process, outcomes: list[tuple[int, int | None]]
    ) -> threads.Attachment:
        """Return an attached handler with the recorded `outcomes` of each interrupt, as in `InterruptLine.handlers`."""
        number = 0
        thread = next(iter(process.threads.values()))

        def handle() -> threads.Sigevent | None:
            nonlocal number
            _, outcome = outcomes[number % len(outcomes)]
            number += 1
            attachment.handler_ns = max(0, outcomes[number % len(outcomes)][0])
            if outcome is None:
                return None
            if outcome < 0:
                woken = self.threads.get(-1 - outcome)
                if woken is not None:
                    attachment.thread = woken
                    return threads.Sigevent("intr")
                return None
            stream = self.programs.streams[outcome]
            coid = self._connection(process, stream.pid, stream.chid, stream.scoid)
            return threads.Sigevent("pulse", coid, self._priority(stream), 0, outcome + 1) if coid is not None else None

        attachment = threads.Attachment(self.machine.interrupts.new_ident(), line.vector, thread, None, handle,
                                max(0, outcomes[0][0]))  # fmt: skip
        return attachment


def _chid(pid: int, chid: int) -> int:
    return chid + _MANAGER_CHANNELS * (pid == 1)


def _holders(lock: threads.Mutex | threads.RwLock) -> Collection[threads.Thread | None]:
    return (*lock.readers, lock.writer) if isinstance(lock, threads.RwLock) else (lock.owner,)


def _thing(thing: steps_of.Thing) -> threads.SyncObject:
    """Return the simulated object for a synchronization object of the trace, at its recorded address."""
    name = f"{thing.address:#x}"
    makers: dict[str, Callable[[], threads.SyncObject]] = {
        "MUTEX": lambda: threads.Mutex(name, thing.inherits, thing.ceiling),
        "RWLOCK": lambda: threads.RwLock(name),
        "BARRIER": lambda: threads.Barrier(name, thing.count),
        "SEM": lambda: threads.Semaphore(name),
        "CONDVAR": lambda: threads.Condvar(name),
    }
    simulated = makers[thing.kind]()
    simulated.address = thing.address
    return simulated


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace that a replay wrote, its start in cycles, and the problems that the simulated kernel found."""

    trace: Trace
    begin_cycles: int
    findings: tuple[str, ...]


def replay(
    programs: Programs, path: Path, cpus: int = 0, seed: int = 1, attributes: Sequence[tuple[str, str]] = ()
) -> Replay:
    """Run programs on a simulated kernel, and write a trace of wide events; return that trace, with problems found.

    `cpus` = 0 takes the number of CPUs of the programs; `seed` sets the random costs of kernel calls; `attributes` are
    pairs for the header. Raises CaptureError if the file cannot be written, UsageError if the replay is too large.
    """
    trace = programs.trace
    base = target(trace.release, cpus or programs.cpus)
    tick_ns = (programs.tick_ns or base.tick_ns) if base.tick_ns else 0
    own_target = replace(base, cycles_per_s=int(trace.clock.cycles_per_s), tick_ns=tick_ns)
    lead_ns = -(-LEAD_NS // (tick_ns or BEAT_NS)) * (tick_ns or BEAT_NS) + programs.tick_offset_ns
    begin_cycles = 0
    machine: Machine | None = None

    def setup(kernel: Kernel) -> None:
        nonlocal begin_cycles, machine
        machine = kernel.machine
        begin_cycles = kernel.machine.now + own_target.cycles(lead_ns)
        _Replay(programs, kernel, begin_cycles).set_up()

    workload = Workload("whatif", "a trace, again", setup, own_target.cpus, programs.length_ns, lead_ns)
    options = LoggerOptions(iterations=0, is_wide=True, is_probe=True)
    capture = Capture(workload, seed, own_target.cpus, trace.release, programs.length_ns, options, lead_in_ns=lead_ns,
                      attributes=attributes, keeps_truth=False, target=own_target)  # fmt: skip
    result = run(capture, path, cancelled=lambda: machine is not None and machine.steps > MOST_REPLAYED)
    if machine is not None and machine.steps > MOST_REPLAYED:
        raise UsageError(f"{trace.path.name}: the replay does more than {MOST_REPLAYED:,} steps; cut out a part")
    written = open_trace(path, None)
    if trace.payloads.described:  # a timing file may name them
        describe_events(written, trace.payloads.described)
    return Replay(written, begin_cycles, tuple(_LOCATION.sub("", finding) for finding in result.findings))
