"""What the programs of the simulated car share."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.parts.objects import Condvar, Mutex, Semaphore
from satview.capture.workloads.parts import Address


class Car:
    """What the programs of the car share."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.random = kernel.machine.random
        self.slog, self.disk, self.can, self.camera, self.fusion, self.screen, self.net = (Address() for _ in range(7))
        self.map_lock = Mutex("map")
        self.config_lock = Mutex("config", inherit=False)
        self.task_lock, self.task_ready = Mutex("work"), Condvar("work")
        self.tasks: list[int] = []
        self.frame = Semaphore("frame")
        self.blocks = Semaphore("blocks")
        self.finished = Semaphore("disk-done")

    def vary(self, low: int, high: int) -> int:
        """Return a time between the bounds, mostly near the lower one."""
        return low + int((high - low) * self.random.random() ** 2)

    def gaps(self, mean_ns: int, spread: float = 0.4) -> int:
        """Return the time to the next interrupt of a device."""
        return int(mean_ns * (1 + spread * (2 * self.random.random() - 1)))

    def pid_of(self, name: str) -> int:
        """Return the pid of a program by its short name."""
        return next(p.pid for p in self.kernel.machine.processes.values() if p.short_name == name)
