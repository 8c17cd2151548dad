"""Threads and processes come and go; the process manager that does it, and scheduling calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from satview.capture.sim import channels, messages, pulses
from satview.capture.sim.calls import (
    SIDE_CHANNEL,
    Call,
    Compute,
    MsgError,
    MsgReceive,
    MsgReply,
    MsgSend,
    Ring0,
    Spawn,
    WaitPid,
)
from satview.capture.sim.errors import Errno
from satview.capture.sim.threads import ANY_CPU, Channel, Connection, Policy, Process, Program, Thread

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

MANAGER_WORKERS = 6
MANAGER_PRIORITY = 10
_DEATH = 2           # pulse code by which the kernel tells the manager of a process without threads


@dataclass(slots=True)
class Destroy(Call):
    """A thread ends itself."""

    name = "THREAD_DESTROY"

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return -1 for the caller."""
        return {"tid": -1, "priority": -1, "status_p": 0}


@dataclass(slots=True)
class DestroyAll(Call):
    """The last thread of a process ends itself; up to 7.x."""

    name = "THREAD_DESTROYALL"


def add_process(machine: Machine, name: str, parent: int = 0, bits: int = 0, pid: int = 0) -> Process:
    """Add a process without threads."""
    pid = pid or _new_pid(machine)
    bits = bits or (64 if machine.target.is_64bit else 32)
    process = Process(pid, parent, name, bits, machine.partitions[0] if machine.partitions else None)
    machine.processes[pid] = process
    return process


def _new_pid(machine: Machine) -> int:
    """Return a number as QNX makes them: index in the low bits, a growing count above, so none comes back soon."""
    index = len(machine.processes) + 1
    return index if index < 4 else index + 4096 * (index + machine.random.randrange(1, 30))


def add_thread(process: Process, program: Program, priority: int, policy: Policy = Policy.RR, name: str = "",
               runmask: int = ANY_CPU) -> Thread:
    """Add a thread to a process; it is nowhere until it is started."""
    thread = Thread(process, process.next_tid, program, priority, policy, name, runmask)
    process.next_tid += 1
    process.threads[thread.tid] = thread
    return thread


def boot(machine: Machine, name: str) -> Process:
    """Start the process manager: one idle thread per CPU, and a pool of workers at its channel."""
    manager = add_process(machine, name, pid=1)
    for cpu in machine.cpus:
        idle = add_thread(manager, _idle(), 0, Policy.FIFO, "idle", runmask=1 << cpu.index)
        idle.remaining = None
        idle.state = "RUNNING"
        idle.cpu = idle.last_cpu = cpu.index
        idle.run_since = machine.now
        cpu.thread = cpu.idle = idle
    channel = Channel(manager, 1)
    manager.channels[1] = channel
    manager.next_chid = 2
    for _ in range(MANAGER_WORKERS):
        start(machine, machine.cpus[0], add_thread(manager, _worker(), MANAGER_PRIORITY), is_boot=True)
    return manager


def _idle() -> Program:
    while True:
        yield Compute(1)


def _worker() -> Program:
    """Serve the process manager's channel: start processes, clean up dead ones, answer those who wait for them."""
    while True:
        got = yield MsgReceive(1)
        if got.is_pulse:
            dead = yield Ring0(partial(_reap, got.value))
            for rcvid, value in dead:
                yield MsgReply(rcvid, payload=value)
        elif isinstance(got.payload, Spawn):
            yield Compute(40_000)
            pid = yield Ring0(partial(_create, got.payload, got.pid))
            yield MsgReply(got.rcvid, payload=pid)
        elif isinstance(got.payload, WaitPid):
            yield from _wait_for_child(got)
        else:
            yield MsgReply(got.rcvid)


def _wait_for_child(got: messages.Received) -> Program:
    known = yield Ring0(partial(_note_waiter, got.payload.pid, got.rcvid))
    if known is None:
        yield MsgError(got.rcvid, Errno.ECHILD)
    elif known:
        yield MsgReply(got.rcvid, payload=known[0])


def _note_waiter(pid: int, rcvid: int, machine: Machine, cpu: Cpu) -> tuple[Any, ...] | None:  # noqa: ARG001
    process = machine.processes.get(pid)
    if process is None:
        return None
    if process.is_dead:
        return (process.exit_value,)
    process.waiters.append(rcvid)
    return ()


def _create(spawn: Spawn, parent: int, machine: Machine, cpu: Cpu) -> int:
    """Make a process with its first thread."""
    bits = spawn.bits or machine.processes[parent].bits
    process = new_process(machine, spawn.program, parent, bits)
    machine.record.process_life(cpu.index, machine.stamp(), process, "CREATE")
    machine.spend(60_000)
    machine.truth.processes.append((machine.now, "created", process.pid, process.name))
    caller = machine.processes[parent]
    inherited = max((t.base_priority for t in caller.threads.values()), default=MANAGER_PRIORITY)
    priority = spawn.priority if spawn.priority > 0 else inherited
    asker = next((t for t in caller.threads.values() if t.state != "DEAD"), None)
    if asker is not None:
        machine.record.path(cpu.index, machine.stamp(), asker, spawn.program)
    thread = add_thread(process, spawn.body(*spawn.args), priority)
    start(machine, cpu, thread)
    machine.record.process_life(cpu.index, machine.stamp(), process, "CREATE_NAME")
    return process.pid


def new_process(machine: Machine, name: str, parent: int = 1, bits: int = 0) -> Process:
    """Make a process without threads that is connected to the process manager."""
    process = add_process(machine, name, parent, bits)
    manager = machine.processes[1].channels[1]
    manager.process.scoids += 1
    process.connections[SIDE_CHANNEL] = Connection(process, SIDE_CHANNEL, manager, manager.process.scoids)
    process.next_coid = 1
    return process


def start(machine: Machine, cpu: Cpu, thread: Thread, is_boot: bool = False) -> None:
    """Bring a new thread to life: created, named, ready."""
    machine.record.thread_life(cpu.index, machine.stamp(), thread, "CREATE")
    if thread.name and not is_boot:
        machine.record.thread_name(cpu.index, machine.stamp(), thread)
    machine.scheduler.make_ready(cpu, thread)


def ring0(machine: Machine, cpu: Cpu, thread: Thread, call: Ring0) -> None:
    """Run a function of the process manager in the kernel's mode."""
    machine.enter(cpu, thread, call)
    value = machine.guard(thread, "Ring0 function", lambda: call.function(machine, cpu))
    machine.complete(thread, value, ret_val=value if isinstance(value, int) else 0)


def ask_manager(machine: Machine, cpu: Cpu, thread: Thread, call: Spawn | WaitPid) -> None:
    """Turn a library function into the message it is."""
    kind = b"\x0e\x00\x00\x00" if isinstance(call, Spawn) else b"\x0f\x00\x00\x00"
    messages.msg_send(machine, cpu, thread, MsgSend(SIDE_CHANNEL, kind.ljust(64, b"\0"), payload=call))


def end_of_program(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """A thread's program has ended: the thread dies, with it perhaps its process."""
    process = thread.process
    machine.enter(cpu, thread, Destroy())
    is_last = all(t is thread or t.state == "DEAD" for t in process.threads.values())
    if is_last and not machine.target.has_buffer_end:
        machine.fail(thread, Errno.ENOTSUP)
        machine.finish_silently(thread)
        machine.enter(cpu, thread, DestroyAll())
    bury(machine, cpu, thread)
    if is_last:
        _end_process(machine, cpu, process)


def bury(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """Take a thread out of life, wherever it is."""
    machine.record.thread_life(cpu.index, machine.stamp(), thread, "DESTROY")
    if thread.cpu >= 0:
        machine.scheduler.release(machine.cpus[thread.cpu], thread)
    elif thread.state == "READY":
        machine.scheduler.forget(thread)
    thread.call = thread.finish = None
    machine.set_state(cpu, thread, "DEAD")
    for envelope in list(thread.serving.values()):
        if not envelope.dropped:
            machine.fail(envelope.client, Errno.ESRCH)
            envelope.dropped = True
            machine.wake(cpu, envelope.client, outcome="dead")
    thread.serving.clear()
    if thread.joiner is not None:
        machine.complete(thread.joiner, thread.exit_value)
        machine.wake(cpu, thread.joiner, waker=thread)


def _end_process(machine: Machine, cpu: Cpu, process: Process) -> None:
    process.is_dead = True
    main = min(process.threads)
    process.exit_value = process.threads[main].exit_value
    for channel in process.channels.values():
        channels.close_channel(machine, cpu, channel)
    for timer in process.timers.values():
        timer.generation += 1
    machine.interrupts.detach_all(process)
    for tell in machine.on_death:
        tell(process)
    manager = machine.processes[1]
    link = Connection(process, 0, manager.channels[1], 0)
    pulses.send_pulse(machine, cpu, link, "SPULSE_DEA", MANAGER_PRIORITY, _DEATH, process.pid)


def kill(machine: Machine, cpu: Cpu, process: Process, signo: int) -> None:
    """End a process with all its threads by a signal without a handler."""
    if process.pid == 1 or process.is_dead:
        return
    for thread in process.threads.values():
        if thread.state != "DEAD":
            thread.exit_value = -signo
            machine.stop_waiting(cpu, thread)
            bury(machine, cpu, thread)
    _end_process(machine, cpu, process)


def _reap(pid: int, machine: Machine, cpu: Cpu) -> list[tuple[int, Any]]:
    """Remove what is left of a dead process; return whom to tell."""
    process = machine.processes[pid]
    machine.spend(30_000)
    time = machine.stamp()
    machine.record.process_life(cpu.index, time, process, "DESTROY_NAME")
    machine.record.process_life(cpu.index, machine.stamp(), process, "DESTROY")
    machine.truth.processes.append((time, "destroyed", pid, process.name))
    return [(rcvid, process.exit_value) for rcvid in process.waiters]
