"""The process manager: a pool of threads that start processes, map memory, and clean up after those that have died."""

from __future__ import annotations

from functools import partial
from typing import Any

from satview.capture.sim.calls.call import Compute
from satview.capture.sim.calls.delivery import Received
from satview.capture.sim.calls.lifecycle import MANAGER_PRIORITY, add_process, add_thread, create, new_process, start
from satview.capture.sim.calls.messages import MsgError, MsgReceive, MsgReply
from satview.capture.sim.calls.process_calls import Mmap, Munmap, Ring0, Spawn, WaitPid
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Channel, Policy, Process, Program, Thread

MANAGER_WORKERS = 6
_LIBRARY_TEXT, _LIBRARY_DATA = 0x2071B8, 0x43C4  # lengths as in a 7.1 listing
_EVERYTHING = 0xFFFFFFFFFFFFFFFF
_PAGE = 0x1000
_MAP_NS, _SET_UP_NS = 4_000, 6_000


def boot(kernel: KernelServices, name: str) -> Process:
    """Start the process manager: one idle thread per CPU, and a pool of workers at its channel."""
    manager = add_process(kernel, name, pid=1)
    for cpu in kernel.cpus:
        idle = add_thread(manager, _idle(), 0, Policy.FIFO, "idle", runmask=1 << cpu.index)
        idle.remaining = None
        idle.state = "RUNNING"
        idle.cpu = idle.last_cpu = cpu.index
        idle.run_since = kernel.now
        kernel.history.state(kernel.now, idle, "RUNNING", cpu.index)
        cpu.thread = cpu.idle = idle
    channel = Channel(manager, 1)
    manager.channels[1] = channel
    manager.next_chid = 2
    for _ in range(MANAGER_WORKERS):
        start(kernel, kernel.cpus[0], add_thread(manager, _worker(), MANAGER_PRIORITY), is_boot=True)
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


def _wait_for_child(got: Received) -> Program:
    known = yield Ring0(partial(_note_waiter, got.payload.pid, got.rcvid))
    if known is None:
        yield MsgError(got.rcvid, Errno.ECHILD)
    elif known:
        yield MsgReply(got.rcvid, payload=known[0])


def _note_waiter(pid: int, rcvid: int, kernel: KernelServices, cpu: Cpu) -> tuple[Any, ...] | None:  # noqa: ARG001
    process = kernel.processes.get(pid)
    if process is None:
        return None
    if process.is_dead:
        return (process.exit_value,)
    process.waiters.append(rcvid)
    return ()


def _create(spawn: Spawn, parent: int, kernel: KernelServices, cpu: Cpu) -> int:
    """Make a process with its first thread."""
    bits = spawn.bits or kernel.processes[parent].bits
    process = new_process(kernel, spawn.program, parent, bits)
    kernel.record.process_life(cpu.index, kernel.stamp(), process, "CREATE")
    kernel.spend(60_000)
    kernel.truth.processes.append((kernel.now, "created", process.pid, process.name))
    caller = kernel.processes[parent]
    inherited = max((t.base_priority for t in caller.threads.values()), default=MANAGER_PRIORITY)
    priority = spawn.priority if spawn.priority > 0 else inherited
    asker = next((t for t in caller.threads.values() if t.state != "DEAD"), None)
    if asker is not None:
        kernel.record.path(cpu.index, kernel.stamp(), asker, spawn.program)
    thread = add_thread(process, _load(kernel, spawn), priority)
    if kernel.target.waits_for_threads:
        _wait_for_thread(kernel, cpu, thread)
    else:
        start(kernel, cpu, thread)
        kernel.record.process_life(cpu.index, kernel.stamp(), process, "CREATE_NAME")
    return process.pid


def _wait_for_thread(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Let a new thread set itself up while the worker that created it waits for that; it never was READY."""
    worker = cpu.thread
    if worker is None:
        raise AssertionError("the worker runs this")
    create(kernel, cpu, thread)
    kernel.block(cpu, worker, "WAITTHREAD", f"set-up of {thread.label}", (thread,))

    def set_up() -> None:
        kernel.spend(_SET_UP_NS)
        kernel.record.process_life(thread.cpu, kernel.stamp(), thread.process, "CREATE_NAME")
        kernel.deferred.append((kernel.cpus[thread.cpu], lambda here: kernel.wake(here, worker, waker=thread)))

    thread.finish = set_up
    if cpu.handoff is None:
        cpu.handoff = thread
    else:
        kernel.scheduler.make_ready(cpu, thread)


def _load(kernel: KernelServices, spawn: Spawn) -> Program:
    """Map the C library, as the loader does, then run the program."""
    library = "libc.so.3" if not kernel.target.is_64bit else "libc.so.5"
    yield Mmap(_LIBRARY_TEXT, file=library)
    yield Mmap(_LIBRARY_DATA, file=library, flags=0x00100071, prot=0x300)
    return (yield from spawn.body(*spawn.args))


def _map(call: Mmap, pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    process = kernel.processes[pid]
    address = process.next_address
    process.next_address += -(-call.length // _PAGE) * _PAGE
    kernel.spend(_MAP_NS)
    kernel.record.mapped(cpu.index, kernel.stamp(), process, address, call)
    return address


def _unmap(call: Munmap, pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    kernel.spend(_MAP_NS)
    kernel.record.unmapped(cpu.index, kernel.stamp(), kernel.processes[pid], call.address, call.length)
    return 0


def _reap(pid: int, kernel: KernelServices, cpu: Cpu) -> list[tuple[int, Any]]:
    """Remove what is left of a dead process; return the rcvids of those who wait for its end, with its value."""
    process = kernel.processes[pid]
    kernel.spend(30_000)
    kernel.record.unmapped(cpu.index, kernel.stamp(), process, 0, _EVERYTHING)
    time = kernel.stamp()
    kernel.record.process_life(cpu.index, time, process, "DESTROY_NAME")
    kernel.record.process_life(cpu.index, kernel.stamp(), process, "DESTROY")
    kernel.truth.processes.append((time, "destroyed", pid, process.name))
    return [(rcvid, process.exit_value) for rcvid in process.waiters]
