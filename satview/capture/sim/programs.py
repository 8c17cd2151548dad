"""Runs the programs of threads and records their faults; also contains the programs of the process manager."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from satview.base.errors import one_line
from satview.base.threads import Stuck
from satview.capture.sim.calls import processes, signals
from satview.capture.sim.calls.call import SIGCHLD, Call, Compute
from satview.capture.sim.calls.messages import MsgError, MsgReceive, MsgReply, Received
from satview.capture.sim.services import (
    ADVICE,
    WATCH,
    Errno,
    KernelServices,
    QnxError,
    Recorder,
    ThreadCancelled,
    location_of,
)
from satview.capture.sim.target import Target
from satview.capture.sim.threads import Body, Channel, Cpu, Policy, Process, Program, Thread
from satview.events.spec import Release
from satview.events.variants import name_bytes

# The process manager: a pool of threads that start processes, map memory and clean up after dead processes.


MANAGER_WORKERS = 6
_LIBRARY_TEXT, _LIBRARY_DATA = 0x2071B8, 0x43C4  # lengths as in a 7.1 listing
_EVERYTHING = 0xFFFFFFFFFFFFFFFF
_PAGE = 0x1000
CLD_EXITED = 1  # si_code of SIGCHLD
_MAP_NS, _SET_UP_NS = 4_000, 6_000


def boot(kernel: KernelServices, name: str) -> Process:
    """Start the process manager, with an idle thread for each CPU and a pool of worker threads; return its process."""
    manager = processes.add_process(kernel, name, pid=1)
    for cpu in kernel.cpus:
        idle = processes.add_thread(manager, _idle(), 0, Policy.FIFO, "idle", runmask=1 << cpu.index)
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
        processes.start(
            kernel, kernel.cpus[0], processes.add_thread(manager, _worker(), processes.MANAGER_PRIORITY), is_boot=True
        )
    return manager


def _idle() -> Program:
    while True:
        yield Compute(1)


def _worker() -> Program:
    """Run a worker thread: serve the requests that the process manager's channel receives."""
    while True:
        received = yield MsgReceive(1)
        if received.is_pulse and received.code == processes.CODE_FAULT:
            yield processes.Ring0(partial(processes.provide_resources, received.value))
        elif received.is_pulse:
            dead = yield processes.Ring0(partial(_reap, received.value))
            for rcvid, value in dead.waiters:
                yield from _answer(rcvid, value)
            if dead.is_awaited:
                yield processes.Ring0(partial(_notify_parent, received.value))
        elif isinstance(received.payload, (processes.Spawn, processes.Fork)):
            yield Compute(40_000)
            pid = yield processes.Ring0(partial(_create, received.payload, received.pid))
            yield MsgReply(received.rcvid, payload=pid)
        elif isinstance(received.payload, processes.Exec):
            yield Compute(60_000)
            yield processes.Ring0(partial(_replace, received.payload, received.pid, received.tid))
            yield from _answer(received.rcvid, None)
        elif isinstance(received.payload, processes.Mmap):
            address = yield processes.Ring0(partial(_map, received.payload, received.pid))
            yield MsgReply(received.rcvid, payload=address)
        elif isinstance(received.payload, processes.Munmap):
            yield processes.Ring0(partial(_unmap, received.payload, received.pid))
            yield MsgReply(received.rcvid, payload=0)
        elif isinstance(received.payload, processes.WaitPid):
            yield from _wait_for_child(received)
        else:
            yield MsgReply(received.rcvid)


def _answer(rcvid: int, payload: Any) -> Program:
    """Reply to a client; ignore the error if a signal has ended the client's wait meanwhile."""
    try:
        yield MsgReply(rcvid, payload=payload)
    except QnxError as error:
        if error.errno != Errno.ESRCH:
            raise


def _wait_for_child(received: Received) -> Program:
    known = yield processes.Ring0(partial(_note_waiter, received.payload.pid, received.rcvid))
    if known is None:
        yield MsgError(received.rcvid, Errno.ECHILD)
    elif known:
        yield MsgReply(received.rcvid, payload=known[0])


def _note_waiter(pid: int, rcvid: int, kernel: KernelServices, cpu: Cpu) -> tuple[Any, ...] | None:  # noqa: ARG001
    process = kernel.processes.get(pid)
    if process is None:
        return None
    if process.is_dead:
        return (process.exit_value,)
    process.waiters.append(rcvid)
    return ()


def _create(call: processes.Spawn | processes.Fork, parent: int, kernel: KernelServices, cpu: Cpu) -> int:
    """Create a process with its first thread, for spawn or fork, and return its pid."""
    spawn = (
        call
        if isinstance(call, processes.Spawn)
        else processes.Spawn(kernel.processes[parent].name, call.body, call.args)
    )
    bits = spawn.bits or kernel.processes[parent].bits
    process = processes.new_process(kernel, spawn.program, parent, bits)
    kernel.record.process_life(cpu.index, kernel.stamp(), process, "CREATE")
    kernel.spend(60_000)
    kernel.truth.processes.append((kernel.now, "created", process.pid, process.name))
    caller = kernel.processes[parent]
    inherited = max((t.base_priority for t in caller.threads.values()), default=processes.MANAGER_PRIORITY)
    priority = spawn.priority if spawn.priority > 0 else inherited
    asker = next((t for t in caller.threads.values() if t.state != "DEAD"), None)
    if call is spawn and asker is not None:
        kernel.record.path(cpu.index, kernel.stamp(), asker, spawn.program)
    if call is spawn:
        program = _load(kernel, spawn.body, spawn.args)
    else:
        program = _begin(spawn.body, spawn.args)
        process.handlers = dict(caller.handlers)
    thread = processes.add_thread(process, program, priority)
    if kernel.target.waits_for_threads:
        _wait_for_thread(kernel, cpu, thread)
    else:
        processes.start(kernel, cpu, thread)
        kernel.record.process_life(cpu.index, kernel.stamp(), process, "CREATE_NAME")
    return process.pid


def _wait_for_thread(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Block the worker until the thread that it creates has run its set-up.

    The new thread gets the CPU at once, without a READY event, unless another thread is handed over.
    """
    worker = cpu.thread
    if worker is None:
        raise AssertionError("the worker runs this")
    processes.report_life(kernel, cpu, thread, "CREATE")
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


def _replace(call: processes.Exec, pid: int, tid: int, kernel: KernelServices, cpu: Cpu) -> int:
    """Run another program in a process (exec), without exit event; return 0, or ESRCH if the caller waits no more."""
    process = kernel.processes[pid]
    caller = process.threads[tid]
    if caller.state != "REPLY":  # a signal has ended the wait or the thread
        return int(Errno.ESRCH)
    cause = kernel.history.cause
    for thread in list(process.threads.values()):
        if thread is not caller and thread.state != "DEAD":
            kernel.stop_waiting(cpu, thread)
            processes.destroy_thread(kernel, cpu, thread)
            kernel.history.cause = cause
    processes.close_all(kernel, cpu, process)
    process.channels.clear()
    process.timers.clear()
    kernel.record.unmapped(cpu.index, kernel.stamp(), process, 0, _EVERYTHING)
    kernel.record.path(cpu.index, kernel.stamp(), caller, call.program)
    process.name = call.program
    process.handlers = {signo: body for signo, body in process.handlers.items() if body is None}
    kernel.record.process_life(cpu.index, kernel.stamp(), process, "CREATE_NAME")
    kernel.truth.processes.append((kernel.now, "replaced", pid, process.name))
    caller.generator.close()
    caller.generator = _load(kernel, call.body, call.args)
    caller.signal_frames.clear()

    def begin() -> None:
        kernel.complete(caller, None)
        kernel.interrupted(kernel.cpus[caller.cpu], caller)

    caller.finish = begin
    return 0


def _load(kernel: KernelServices, body: Body, args: tuple[Any, ...]) -> Program:
    """Map the C library as the loader does, then run the program `body(*args)`."""
    library = "libc.so.3" if not kernel.target.is_64bit else "libc.so.5"
    yield processes.Mmap(_LIBRARY_TEXT, file=library)
    yield processes.Mmap(_LIBRARY_DATA, file=library, flags=0x00100071, prot=0x300)
    return (yield from _begin(body, args))


def _begin(body: Body, args: tuple[Any, ...]) -> Program:
    """Run the program `body(*args)`; this frame attributes errors to the program, not to the thread that started it."""
    return (yield from body(*args))


def _map(call: processes.Mmap, pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    process = kernel.processes[pid]
    address = process.next_address
    process.next_address += -(-call.length // _PAGE) * _PAGE
    kernel.spend(_MAP_NS)
    kernel.record.mapped(cpu.index, kernel.stamp(), process, address, call)
    if isinstance(call, processes.Dlopen):
        values: dict[str, int | bytes] = {"pid": pid, "vaddr": address, "addr": address, "len": call.length}
        values["name"] = name_bytes(call.file)
        is_wide = kernel.target.release is Release.QNX_8 or process.bits == 64
        kernel.record.system(cpu.index, kernel.stamp(), "MAPNAME_64" if is_wide else "MAPNAME", values)
    return address


def _unmap(call: processes.Munmap, pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    kernel.spend(_MAP_NS)
    kernel.record.unmapped(cpu.index, kernel.stamp(), kernel.processes[pid], call.address, call.length)
    return 0


class _Dead(NamedTuple):
    """Whom to inform of the end of a process.

    Attributes:
        waiters: For each client that waits for the end, rcvid and reply (the exit value of the process).
        is_awaited: Whether the parent gets SIGCHLD.
    """

    waiters: list[tuple[int, Any]]
    is_awaited: bool


def _reap(pid: int, kernel: KernelServices, cpu: Cpu) -> _Dead:
    """Log the end of a dead process and the release of its memory; return the threads to inform."""
    process = kernel.processes[pid]
    kernel.spend(30_000)
    kernel.record.unmapped(cpu.index, kernel.stamp(), process, 0, _EVERYTHING)
    time = kernel.stamp()
    kernel.record.process_life(cpu.index, time, process, "DESTROY_NAME")
    kernel.record.process_life(cpu.index, kernel.stamp(), process, "DESTROY")
    kernel.truth.processes.append((time, "destroyed", pid, process.name))
    parent = kernel.processes.get(process.parent)
    is_awaited = parent is not None and _reacts_to(parent, SIGCHLD)
    return _Dead([(rcvid, process.exit_value) for rcvid in process.waiters], is_awaited)


def _reacts_to(process: Process, signo: int) -> bool:
    """Return whether a process handles, blocks or waits for a signal whose default action is "ignore"."""
    threads = process.threads.values()
    return not process.is_dead and (
        process.handlers.get(signo) is not None
        or any(signo in thread.blocked_signals or signo in thread.wait_signals for thread in threads)
    )


def _notify_parent(pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    """Send SIGCHLD to the parent of a dead process; return 0, the result of the call of `Ring0` that runs this."""
    parent = kernel.processes[kernel.processes[pid].parent]
    kernel.post_signal(cpu, parent, None, SIGCHLD, CLD_EXITED)
    return 0


MIN_NS = 150  # minimum time of user code between two calls, so that time passes even in an empty loop
_MAX_CYCLES = 1 << 62


class ProgramRunner(KernelServices):
    """The part of a machine that runs user code; takes the arguments of `KernelServices`."""

    def __init__(self, target: Target, seed: int, recorder: Recorder, start_cycles: int) -> None:
        super().__init__(target, seed, recorder, start_cycles)
        self._forgotten: set[str] = set()  # locations of calls that were never yielded
        self._min_cycles = target.cycles(MIN_NS)

    def next_item(self, thread: Thread) -> Any:
        """Resume a thread's program and return the item that it yields, None at its end; report calls not yielded."""
        faults, WATCH.is_on = len(self.faults), True
        try:
            item = self._resume(thread)
        finally:
            WATCH.is_on = False
        if WATCH.locations:
            self.report_forgotten(thread, len(self.faults) == faults)
        return item

    def report_forgotten(self, culprit: Thread | str, is_reported: bool = True) -> None:
        """Record a fault for each new source location where TraceEvent() objects were created but not yielded.

        Args:
            culprit: The thread or handler at fault.
            is_reported: False = only discard the locations.
        """
        for location in WATCH.take():
            if is_reported and location not in self._forgotten:
                self._forgotten.add(location)
                self.fault(culprit, ADVICE, location)

    def _resume(self, thread: Thread) -> Any:
        """Resume a thread's program and return the item that it yields; None at its end, normal or by an exception."""
        value, error = thread.value, thread.error
        thread.value = thread.error = None
        try:
            item = thread.generator.throw(error) if error is not None else thread.generator.send(value)
        except StopIteration as end:
            thread.exit_value = end.value
            if thread.signal_frames:
                return signals.HandlerEnd()
            return None
        except ThreadCancelled:
            thread.exit_value = -1
            return None
        except Stuck as stuck:
            self.fault(thread, "ran for long without a kernel call or Compute; was ended", location_of(stuck))
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001  -- ends that thread, not the simulation
            self.fault(thread, f"raised {one_line(fault)}", location_of(fault))
            return None
        if isinstance(item, (Call, Compute)):
            return item
        self.fault(thread, f"yielded {item!r:.80}, which is not a kernel call", thread.location())
        thread.generator.close()
        return None

    def compute_cycles(self, thread: Thread, item: Compute) -> int:
        """Return the duration of a Compute in cycles; record an invalid duration as a fault of the program."""
        try:
            if item.ns < 0:
                raise ValueError
            return max(self._min_cycles, min(self.target.cycles(int(item.ns)), _MAX_CYCLES))
        except (TypeError, ValueError, OverflowError):
            self.fault(thread, f"yielded Compute({item.ns!r:.40}), which is not a time", thread.location())
            return self._min_cycles
