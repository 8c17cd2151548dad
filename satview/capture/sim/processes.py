"""Threads and processes come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.capture.sim import channels, pulses
from satview.capture.sim.call_base import SIDE_CHANNEL, Call
from satview.capture.sim.errors import Errno
from satview.capture.sim.threads import ANY_CPU, Connection, Policy, Process, Program, Thread

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

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


def new_process(machine: Machine, name: str, parent: int = 1, bits: int = 0) -> Process:
    """Make a process without threads that is connected to the process manager."""
    process = add_process(machine, name, parent, bits)
    manager = machine.processes[1].channels[1]
    manager.process.scoids += 1
    process.connections[SIDE_CHANNEL] = Connection(process, SIDE_CHANNEL, manager, manager.process.scoids)
    process.next_coid = 1
    return process


def create(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """Report a new thread; its first state follows."""
    _report(machine, cpu, thread, "CREATE")


def _report(machine: Machine, cpu: Cpu, thread: Thread, event: str) -> None:
    time = machine.stamp()
    machine.history.life(time, thread, event, cpu.index)
    machine.record.thread_life(cpu.index, time, thread, event)
    if event == "DESTROY":
        machine.history.cause = time


def start(machine: Machine, cpu: Cpu, thread: Thread, is_boot: bool = False) -> None:
    """Bring a new thread to life: created, named, ready."""
    create(machine, cpu, thread)
    if thread.name and not is_boot:
        machine.record.thread_name(cpu.index, machine.stamp(), thread)
    machine.scheduler.make_ready(cpu, thread)


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
    _report(machine, cpu, thread, "DESTROY")
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
    cause = machine.history.cause
    for thread in process.threads.values():
        if thread.state != "DEAD":
            thread.exit_value = -signo
            machine.history.cause = cause
            machine.stop_waiting(cpu, thread)
            bury(machine, cpu, thread)
    _end_process(machine, cpu, process)
