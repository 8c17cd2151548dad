"""Make `dense-4cpu.kev`: an assistance system of a car on 4 CPUs, QNX 7.1, about 200,000 events, seeded.

python sample_traces/make_dense.py [OUT.kev]
"""

from __future__ import annotations

import sys
from pathlib import Path

from satview.capture import nto
from satview.capture.buffers import KevFile
from satview.capture.kernel import Kernel, mode
from satview.capture.run import MemorySink
from satview.capture.sim.target import target
from satview.capture.workloads import systems
from satview.events.spec import Release
from satview.filters.external import ExternalClass as Class

SEED = 2026
CPUS = 4
LEAD_IN_MS, TRACED_MS, ALL_WIDE_MS = 400, 7050, 40
SYSTEM_IPI = 16
WIDE_CALLS = (
    "SYNC_MUTEX_LOCK",
    "SYNC_MUTEX_UNLOCK",
    "SYNC_CONDVAR_WAIT",
    "TIMER_SETTIME",
    "TIMER_TIMEOUT",
    "THREAD_CREATE",
    "SCHED_SET",
    "INTERRUPT_ATTACH",
    "CONNECT_ATTACH",
)


def set_filters(kernel: Kernel) -> None:
    """All classes; states wide, so that priorities show; kernel calls fast but for a few; no IPI events."""
    call = kernel.trace_event
    call(mode("ADDALLCLASSES"))
    call(mode("SETALLCLASSESFAST"))
    call(mode("SETCLASSWIDE"), Class.THREAD)
    call(mode("DELEVENT"), Class.SYSTEM, SYSTEM_IPI)
    for name in WIDE_CALLS:
        call(mode("SETEVENTWIDE"), Class.KERCALL, nto.names(Release.QNX_7)[f"__KER_{name}"])


def capture(path: Path) -> int:
    """Write the file; return its number of slots."""
    kernel = Kernel(target(Release.QNX_7, CPUS), SEED)
    systems.setup(kernel)
    machine, call, sink = kernel.machine, kernel.trace_event, MemorySink()
    ms = machine.target.cycles(1_000_000)
    call(mode("ALLOCBUFFER"), 32, [])
    kernel.control.hook = sink
    set_filters(kernel)
    machine.run(machine.now + LEAD_IN_MS * ms)
    started = machine.now
    call(mode("START"))
    machine.run(started + TRACED_MS // 2 * ms)
    call(mode("SETCLASSWIDE"), Class.KERCALL)  # for a moment everything in full
    machine.run(machine.now + ALL_WIDE_MS * ms)
    call(mode("SETCLASSFAST"), Class.KERCALL)
    set_filters(kernel)
    machine.run(started + TRACED_MS * ms)
    call(mode("FLUSHBUFFER"))
    call(mode("STOP"))
    for fault in machine.faults:
        print(fault, file=sys.stderr)
    slots = sink.slots()
    with KevFile(path, machine.target, started, [("TRACELOGGER_ARGS", "tracelogger -d1 -c -f dense-4cpu.kev")]) as file:
        file.write(slots)
    return len(slots)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("dense-4cpu.kev")
    slots = capture(path)
    print(f"{path.name}: {slots} slots, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
