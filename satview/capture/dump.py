"""The state dump of START: what exists and in which state, written as if it were just being created; and names alone.

Source: capture side, section 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satview.capture.emit import Emitter
    from satview.capture.sim.machine.machine import Machine


def dump_state(machine: Machine, emitter: Emitter, cpu: int) -> None:
    """Emit TIME, partitions, processes and threads, in that order; each passes the filters like any event."""
    buffers, emitter.origin = emitter.buffers, None
    emitter.running = [None] * machine.target.cpus  # the trace shows who runs from here on

    def stamp(on_cpu: int = cpu) -> int:
        time = machine.stamp()
        emitter.begins_at(on_cpu, time)
        return time

    if buffers is not None and (buffers.rings[0].current is not None or machine.target.is_old):
        buffers.time(cpu, stamp())  # a new buffer begins with one anyway
    for partition in machine.partitions:
        emitter.partition(cpu, stamp, partition)
    for process in sorted(machine.processes.values(), key=lambda p: p.pid & 0xFFF):
        if process.is_dead:
            continue
        emitter.process_life(cpu, stamp(), process, "CREATE_NAME" if process.name else "CREATE")
        for thread in process.threads.values():
            emitter.thread_life(cpu, stamp(), thread, "CREATE")
            here = thread.cpu if thread.state == "RUNNING" else cpu
            emitter.thread_state(here, stamp(here), thread)
            if thread.name and not machine.target.is_old:
                emitter.thread_name(cpu, stamp(), thread)
    if not machine.target.has_handlers:
        _dump_service_threads(machine, emitter, cpu)


def dump_names(machine: Machine, emitter: Emitter, cpu: int, start_cycles: int) -> int:
    """Emit the names of all processes and threads that exist, a microsecond apart; return when the last one is over.

    Args:
        machine: Whose processes.
        emitter: Writes them, and leaves out what the filters do.
        cpu: That reports them.
        start_cycles: When, by the machine's clock; it may be in the future.
    """
    time, step = start_cycles, max(1, machine.target.cycles(1000))
    for process in sorted(machine.processes.values(), key=lambda p: p.pid & 0xFFF):
        if process.is_dead or not process.name:
            continue
        emitter.process_life(cpu, time, process, "CREATE_NAME")
        time += step
        for thread in process.threads.values():
            if thread.name:
                emitter.thread_name(cpu, time, thread)
                time += step
    return time


def _dump_service_threads(machine: Machine, emitter: Emitter, cpu: int) -> None:
    """8.0: report which threads serve which interrupts."""
    for source in machine.sources.values():
        for attachment in source.attachments:
            emitter.service_thread(cpu, machine.stamp(), attachment.thread, attachment.ident, source.cpu)
