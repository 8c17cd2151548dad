"""Threads and processes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call
from satview.capture.sim.calls.channels import close_channel
from satview.capture.sim.calls.pulses import send_pulse
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import ANY_CPU, Connection, Policy, Process, Program, Thread

MANAGER_PRIORITY = 10
_DEATH = 2  # pulse code by which the kernel shows the manager of a process without threads


@dataclass(slots=True)
class ThreadDestroy(Call):
    """A thread ends itself."""

    name = "THREAD_DESTROY"

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return -1 for the caller."""
        return {"tid": -1, "priority": -1, "status_p": 0}


@dataclass(slots=True)
class ThreadDestroyAll(Call):
    """The last thread of a process ends itself; up to 7.x."""

    name = "THREAD_DESTROYALL"


def add_process(kernel: KernelServices, name: str, parent: int = 0, bits: int = 0, pid: int = 0) -> Process:
    """Add a process without threads."""
    pid = pid or _new_pid(kernel)
    bits = bits or (64 if kernel.target.is_64bit else 32)
    process = Process(pid, parent, name, bits, kernel.partitions[0] if kernel.partitions else None)
    kernel.processes[pid] = process
    return process


def _new_pid(kernel: KernelServices) -> int:
    """Return a number as QNX makes them: index in the low bits, a growing count above, so none comes back soon."""
    index = len(kernel.processes) + 1
    return index if index < 4 else index + 4096 * (index + kernel.random.randrange(1, 30))


def add_thread(
    process: Process,
    program: Program,
    priority: int,
    policy: Policy = Policy.RR,
    name: str = "",
    runmask: int = ANY_CPU,
) -> Thread:
    """Add a thread to a process; it is nowhere until it is started."""
    thread = Thread(process, process.next_tid, program, priority, policy, name, runmask)
    process.next_tid += 1
    process.threads[thread.tid] = thread
    return thread


def new_process(kernel: KernelServices, name: str, parent: int = 1, bits: int = 0) -> Process:
    """Make a process without threads that is connected to the process manager."""
    process = add_process(kernel, name, parent, bits)
    manager = kernel.processes[1].channels[1]
    manager.process.scoids += 1
    process.connections[SIDE_CHANNEL] = Connection(process, SIDE_CHANNEL, manager, manager.process.scoids)
    process.next_coid = 1
    return process


def create(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Report a new thread; its first state follows."""
    _report(kernel, cpu, thread, "CREATE")


def _report(kernel: KernelServices, cpu: Cpu, thread: Thread, event: str) -> None:
    time = kernel.stamp()
    kernel.history.life(time, thread, event, cpu.index)
    kernel.record.thread_life(cpu.index, time, thread, event)
    if event == "DESTROY":
        kernel.history.cause = time


def start(kernel: KernelServices, cpu: Cpu, thread: Thread, is_boot: bool = False) -> None:
    """Bring a new thread to life: created, named, ready."""
    create(kernel, cpu, thread)
    if thread.name and not is_boot:
        kernel.record.thread_name(cpu.index, kernel.stamp(), thread)
    kernel.scheduler.make_ready(cpu, thread)


def end_of_program(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """A thread's program has ended: the thread dies, with it perhaps its process."""
    process = thread.process
    kernel.enter(cpu, thread, ThreadDestroy())
    is_last = all(t is thread or t.state == "DEAD" for t in process.threads.values())
    if is_last and not kernel.target.has_buffer_end:
        kernel.fail(thread, Errno.ENOTSUP)
        kernel.finish_silently(thread)
        kernel.enter(cpu, thread, ThreadDestroyAll())
    bury(kernel, cpu, thread)
    if is_last:
        _end_process(kernel, cpu, process)


def bury(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Take a thread out of life, wherever it is."""
    _report(kernel, cpu, thread, "DESTROY")
    if thread.cpu >= 0:
        kernel.scheduler.release(kernel.cpus[thread.cpu], thread)
    elif thread.state == "READY":
        kernel.scheduler.forget(thread)
    thread.call = thread.finish = None
    kernel.set_state(cpu, thread, "DEAD")
    for envelope in list(thread.serving.values()):
        if not envelope.dropped:
            kernel.fail(envelope.client, Errno.ESRCH)
            envelope.dropped = True
            kernel.wake(cpu, envelope.client, outcome="dead")
    thread.serving.clear()
    if thread.joiner is not None:
        kernel.complete(thread.joiner, thread.exit_value)
        kernel.wake(cpu, thread.joiner, waker=thread)


def _end_process(kernel: KernelServices, cpu: Cpu, process: Process) -> None:
    process.is_dead = True
    main = min(process.threads)
    process.exit_value = process.threads[main].exit_value
    for channel in process.channels.values():
        close_channel(kernel, cpu, channel)
    for timer in process.timers.values():
        timer.generation += 1
    kernel.interrupts.detach_all(process)
    for notify in kernel.on_death:
        notify(process)
    manager = kernel.processes[1]
    link = Connection(process, 0, manager.channels[1], 0)
    send_pulse(kernel, cpu, link, "SPULSE_DEA", MANAGER_PRIORITY, _DEATH, process.pid)


def kill(kernel: KernelServices, cpu: Cpu, process: Process, signo: int) -> None:
    """End a process with all its threads by a signal without a handler."""
    if process.pid == 1 or process.is_dead:
        return
    cause = kernel.history.cause
    for thread in process.threads.values():
        if thread.state != "DEAD":
            thread.exit_value = -signo
            kernel.history.cause = cause
            kernel.stop_waiting(cpu, thread)
            bury(kernel, cpu, thread)
    _end_process(kernel, cpu, process)
