"""The process manager: a pool of threads that start processes, map memory, and clean up after those that have died."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from satview.capture.sim import messages
from satview.capture.sim.calls import (
    SIDE_CHANNEL,
    Compute,
    Mmap,
    MsgError,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendnc,
    Munmap,
    Ring0,
    Spawn,
    WaitPid,
)
from satview.capture.sim.errors import Errno
from satview.capture.sim.processes import MANAGER_PRIORITY, add_process, add_thread, create, new_process, start
from satview.capture.sim.threads import Channel, Policy, Process, Program, Thread

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

MANAGER_WORKERS = 6
_MESSAGE_TYPE = {Spawn: 0x0E, WaitPid: 0x0F, Mmap: 0x40, Munmap: 0x41}
_LIBRARY_TEXT, _LIBRARY_DATA = 0x2071B8, 0x43C4     # lengths as in a 7.1 listing
_EVERYTHING = 0xFFFFFFFFFFFFFFFF
_PAGE = 0x1000
_MAP_NS, _SET_UP_NS = 4_000, 6_000


def boot(machine: Machine, name: str) -> Process:
    """Start the process manager: one idle thread per CPU, and a pool of workers at its channel."""
    manager = add_process(machine, name, pid=1)
    for cpu in machine.cpus:
        idle = add_thread(manager, _idle(), 0, Policy.FIFO, "idle", runmask=1 << cpu.index)
        idle.remaining = None
        idle.state = "RUNNING"
        idle.cpu = idle.last_cpu = cpu.index
        idle.run_since = machine.now
        machine.history.state(machine.now, idle, "RUNNING", cpu.index)
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
        elif isinstance(got.payload, Mmap):
            address = yield Ring0(partial(_map, got.payload, got.pid))
            yield MsgReply(got.rcvid, payload=address)
        elif isinstance(got.payload, Munmap):
            yield Ring0(partial(_unmap, got.payload, got.pid))
            yield MsgReply(got.rcvid, payload=0)
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
    thread = add_thread(process, _load(machine, spawn), priority)
    if machine.target.waits_for_threads:
        _wait_for_thread(machine, cpu, thread)
    else:
        start(machine, cpu, thread)
        machine.record.process_life(cpu.index, machine.stamp(), process, "CREATE_NAME")
    return process.pid


def _wait_for_thread(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """Let a new thread set itself up while the worker that created it waits for that; it never was READY."""
    worker = cpu.thread
    if worker is None:
        raise AssertionError("the worker runs this")
    create(machine, cpu, thread)
    machine.block(cpu, worker, "WAITTHREAD", f"set-up of {thread.label}", (thread,))

    def set_up() -> None:
        machine.spend(_SET_UP_NS)
        machine.record.process_life(thread.cpu, machine.stamp(), thread.process, "CREATE_NAME")
        machine.deferred.append((machine.cpus[thread.cpu], lambda here: machine.wake(here, worker, waker=thread)))

    thread.finish = set_up
    if cpu.handoff is None:
        cpu.handoff = thread
    else:
        machine.scheduler.make_ready(cpu, thread)


def _load(machine: Machine, spawn: Spawn) -> Program:
    """Map the C library, as the loader does, then run the program."""
    library = "libc.so.3" if not machine.target.is_64bit else "libc.so.5"
    yield Mmap(_LIBRARY_TEXT, file=library)
    yield Mmap(_LIBRARY_DATA, file=library, flags=0x00100071, prot=0x300)
    return (yield from spawn.body(*spawn.args))


def _map(call: Mmap, pid: int, machine: Machine, cpu: Cpu) -> int:
    process = machine.processes[pid]
    address = process.next_address
    process.next_address += -(-call.length // _PAGE) * _PAGE
    machine.spend(_MAP_NS)
    machine.record.mapped(cpu.index, machine.stamp(), process, address, call)
    return address


def _unmap(call: Munmap, pid: int, machine: Machine, cpu: Cpu) -> int:
    machine.spend(_MAP_NS)
    machine.record.unmapped(cpu.index, machine.stamp(), machine.processes[pid], call.address, call.length)
    return 0


def ring0(machine: Machine, cpu: Cpu, thread: Thread, call: Ring0) -> None:
    """Run a function of the process manager in the kernel's mode."""
    machine.enter(cpu, thread, call)
    value = machine.guard(thread, "Ring0 function", lambda: call.function(machine, cpu))
    machine.complete(thread, value, ret_val=value if isinstance(value, int) else 0)


def ask_manager(machine: Machine, cpu: Cpu, thread: Thread, call: Spawn | WaitPid | Mmap | Munmap) -> None:
    """Turn a library function into the message it is."""
    send = MsgSendnc if isinstance(call, (Mmap, Munmap)) else MsgSend
    message = bytes((_MESSAGE_TYPE[type(call)],)).ljust(64, b"\0")
    messages.msg_send(machine, cpu, thread, send(SIDE_CHANNEL, message, payload=call))


def _reap(pid: int, machine: Machine, cpu: Cpu) -> list[tuple[int, Any]]:
    """Remove what is left of a dead process; return whom to tell."""
    process = machine.processes[pid]
    machine.spend(30_000)
    machine.record.unmapped(cpu.index, machine.stamp(), process, 0, _EVERYTHING)
    time = machine.stamp()
    machine.record.process_life(cpu.index, time, process, "DESTROY_NAME")
    machine.record.process_life(cpu.index, machine.stamp(), process, "DESTROY")
    machine.truth.processes.append((time, "destroyed", pid, process.name))
    return [(rcvid, process.exit_value) for rcvid in process.waiters]
