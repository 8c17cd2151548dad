"""The processes of a workload, so that rules can name them before anything runs."""

from __future__ import annotations

from functools import lru_cache

from satview.capture.kernel import Kernel
from satview.capture.sim.parts.target import target
from satview.capture.workloads.registry import find
from satview.events.spec import Release


@lru_cache(64)
def process_names(workload: str, release: Release) -> dict[str, tuple[int, ...]]:
    """Return process name, with and without its folder, to pids: those that are there when the logger starts."""
    found = find(workload)
    kernel = Kernel(target(release, found.cpus, ""), 1)
    try:
        found.setup(kernel)
        names: dict[str, tuple[int, ...]] = {}
        for process in kernel.machine.processes.values():
            for name in {process.name, process.short_name}:
                names[name] = (*names.get(name, ()), process.pid)
        return names
    finally:
        kernel.machine.close()
