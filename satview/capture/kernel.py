"""The simulated instrumented kernel: machine, emitter and trace control; starts programs and adds devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from satview.base.errors import UsageError
from satview.capture.emit import Emitter
from satview.capture.nto import set_release
from satview.capture.sim.calls.processes import add_thread, new_process, start
from satview.capture.sim.machine.machine import Machine
from satview.capture.sim.machine.programs import boot
from satview.capture.sim.machine.scheduler import PartitionScheduler
from satview.capture.sim.parts.interrupt_sources import InterruptSource
from satview.capture.sim.parts.target import Target
from satview.capture.sim.parts.threads import ANY_CPU, Body, Cpu, Partition, Policy, Process
from satview.capture.trace_event import TraceControl

MAX_PRIORITY = 255
BOOT_SECONDS = 341.7  # uptime at the start of a simulation, so that stamps look like those of a running system


class Kernel:
    """A simulated target that has booted.

    Args:
        target: Properties of the target.
        seed: Random seed.

    Attributes:
        machine: Threads, CPUs and clock.
        emitter: Filters and buffers.
        control: TraceEvent() for callers outside the simulation.
        is_up: `spawn` logs the creation of processes; False = they existed before the trace.
    """

    def __init__(self, target: Target, seed: int = 1) -> None:
        self.target = target
        self.is_up = False
        set_release(target.release)
        self.emitter = Emitter(target)
        start_cycles = int(BOOT_SECONDS * target.cycles_per_s)
        self.machine = machine = Machine(target, seed, self.emitter, start_cycles)
        self.emitter.connect(machine)
        machine.on_death.append(lambda process: self.control.forget_process(process.pid))
        self.control = TraceControl(machine, self.emitter)
        machine.trace_event = self.control.call
        smp = "-smp" if target.cpus > 1 or self.emitter.target.release != "6.x" else ""
        boot(machine, f"proc/boot/procnto{smp}-instr")
        machine.interrupts.start_clock()
        for cpu in machine.cpus:
            if cpu.index == 0:
                machine.at(machine.now + 1, self._first_dispatch, cpu)

    def _first_dispatch(self, cpu: Cpu) -> None:
        self.machine.kernel_entry(cpu, lambda _cpu: None)

    def trace_event(self, mode: int, *args: Any) -> int:
        """Call TraceEvent() from outside the simulation, as root; raises `QnxError` if the call fails."""
        self.machine.history.caller = (0, 0)
        return self.control.call(mode, args)

    def spawn(
        self,
        name: str,
        body: Body,
        *args: Any,
        priority: int = 10,
        policy: Policy = Policy.RR,
        thread_name: str = "",
        bits: int = 0,
        runmask: int = ANY_CPU,
        partition: Partition | None = None,
    ) -> Process:
        """Start a process whose first thread runs `body(*args)`, from outside the simulation.

        Raises:
            UsageError: `body` is no generator function, the priority is outside 1 to 255, or the runmask has none of
                the CPUs.
        """
        if not isinstance(priority, int) or not 1 <= priority <= MAX_PRIORITY:
            raise UsageError(f"{name}: priority {priority!r:.40} is not 1 to {MAX_PRIORITY}")
        if not runmask & (1 << self.target.cpus) - 1:
            raise UsageError(f"{name}: runmask {runmask:#x} has none of the {self.target.cpus} CPUs")
        program = body(*args)
        if not hasattr(program, "send"):
            raise UsageError(f"{name}: {getattr(body, '__name__', body)} is no generator function, it yields nothing")
        process = new_process(self.machine, name, bits=bits)
        if partition is not None:
            process.partition = partition
        thread = add_thread(process, program, priority, policy, thread_name, runmask)
        if self.is_up:
            self.machine.record.process_life(0, self.machine.stamp(), process, "CREATE")
            self.machine.record.process_life(0, self.machine.stamp(), process, "CREATE_NAME")
        start(self.machine, self.machine.cpus[0], thread)
        return process

    def device(self, vector: int, gap_ns: Callable[[], int | None], cpu: int = 0) -> InterruptSource:
        """Add a device that raises interrupts; `gap_ns()` returns the time to the next interrupt, None = no more.

        Raises:
            UsageError: Another device has this vector.
        """
        known = self.machine.sources.get(vector)
        if known is not None and known.is_active and not known.is_silent:
            raise UsageError(f"interrupt {vector} has a device already")
        source = InterruptSource(vector, cpu, gap_ns)
        self.machine.interrupts.add(source)
        return source

    def partitions(self, *shares: tuple[str, int, int]) -> list[Partition]:
        """Load the partition scheduler and return its partitions, without the System partition, which gets the rest.

        Args:
            shares: Name, budget in percent and critical budget in ms of each partition.

        Raises:
            UsageError: A share is negative, or the shares exceed 100 percent together.
        """
        if any(percent < 0 for _, percent, _ in shares) or sum(percent for _, percent, _ in shares) > 100:
            raise UsageError(f"partitions: shares of {', '.join(str(share[1]) for share in shares)} % exceed 100 %")
        scheduler = PartitionScheduler(self.machine)
        scheduler.add("System", 100)
        partitions = [scheduler.add(*share) for share in shares]
        self.machine.scheduler.partitions = scheduler
        for process in self.machine.processes.values():
            process.partition = self.machine.partitions[0]
            for thread in process.threads.values():
                thread.partition = thread.own_partition = process.partition
        return partitions
