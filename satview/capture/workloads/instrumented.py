"""A workload whose programs log functions, counters and phases, a guest, power modes, page faults and log lines.

Events that the kernel or a library logs on a real target are inserted here by the programs with
TraceEvent(), which such libraries call too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, Mmap, Munmap, Sleep, TraceEvent
from satview.capture.sim.parts.threads import Program
from satview.capture.workloads.parts import MS, US, inserted, order_of
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.wire import KER_64BIT, WireClass
from satview.events.words import split64, text_words

QUEUE, REQUEST_BEGIN, REQUEST_END, NOTE = 10, 41, 42, 50  # user events
PLAN, SEARCH, CHECK, STORE = 0x8049000, 0x8049100, 0x8049240, 0x8049380  # functions
_FUNC_ENTER, _FUNC_EXIT, _SLOG, _POWER, _PAGEWAIT = 10, 11, 12, 15, 17
_GUEST_ENTER, _GUEST_EXIT, _RAISE = 0, 1, 3
_ABLE, _PATH_ATTACH = 0, 2
_IDLE, _BEGINS = 0x10000, 0x20000
Calls = Sequence[tuple[int, int, Sequence[Any]]]  # address and duration in us of functions, and the calls they make
_CHECKS: Calls = ((CHECK, 80, ()), (CHECK, 60, ()))
GUEST_IP = 0xFFFFFF8008081000


def setup_instrumented(kernel: Kernel) -> None:
    """Start a planner and a file reader; in 7.x and 8.0 also a power manager and a hypervisor."""
    is_wide = kernel.target.release in (Release.QNX_7, Release.QNX_8)
    kernel.spawn("usr/bin/planner", _planner, is_wide, priority=12, thread_name="plan")
    kernel.spawn("usr/bin/reader", _reader, kernel, priority=11, thread_name="read")
    if is_wide:
        kernel.spawn("sbin/power-mgr", _power, kernel, priority=20, thread_name="power")
        kernel.spawn("sbin/qvm", _guest, kernel, priority=10, thread_name="vcpu0")


def _planner(is_wide: bool) -> Program:
    """Log the depth of a queue, each request as a phase, and nested functions, about every 10 ms."""
    yield Sleep(6 * MS)
    yield TraceEvent(Mode.INSERTUSRSTREVENT, NOTE, "planner is up")
    for i in range(1, 100):
        for depth in range(i % 4 + 1):
            yield TraceEvent(Mode.INSERTSUSEREVENT, QUEUE, depth + 1, 0)
            yield Compute(50 * US)
        for depth in range(i % 4, -1, -1):
            yield TraceEvent(Mode.INSERTSUSEREVENT, REQUEST_BEGIN, i * 10 + depth, 0)
            yield from _function(is_wide, PLAN, 100, ((SEARCH, 300, _CHECKS), (STORE, 120, ())))
            yield TraceEvent(Mode.INSERTSUSEREVENT, REQUEST_END, i * 10 + depth, 0)
            yield TraceEvent(Mode.INSERTSUSEREVENT, QUEUE, depth, 0)
        yield Sleep(8 * MS)


def _function(is_wide: bool, address: int, length_us: int, calls: Calls) -> Program:
    """Run a function that logs its entry and exit; after half of its time it makes the given calls."""
    words, flag = ([address, 0, address - 8, 0], KER_64BIT) if is_wide else ([address, address - 8], 0)
    yield _system(_FUNC_ENTER | flag, words)
    yield Compute(length_us * US // 2)
    for called in calls:
        yield from _function(is_wide, *called)
    yield Compute(length_us * US // 2)
    yield _system(_FUNC_EXIT | flag, words)


def _reader(kernel: Kernel) -> Program:
    """Program of a thread that maps memory or a file, accesses the mapped pages, and writes log lines."""
    pid = next(process.pid for process in kernel.machine.processes.values() if process.name.endswith("reader"))
    for i in range(50):
        address = yield Mmap(0x10000, "/data/map.bin" if i % 2 else "")
        for page in range(3):
            if kernel.target.release != Release.QNX_6:
                fault = [pid, 1, 0x8048100, address + page * 0x1000 & 0xFFFFFFFF]
                yield _system(_PAGEWAIT, fault)
            yield Compute(200 * US)
        yield _system(_SLOG, [i, 5, *text_words(b"map.bin: page %d read late" % i, order_of(kernel))])
        if kernel.target.release in (Release.QNX_7, Release.QNX_8):
            path = text_words(b"/dev/map%d" % i, order_of(kernel))
            yield inserted(WireClass["SEC"], _PATH_ATTACH, [pid, 1, 2, i % 2, *path])
        yield Munmap(address, 0x10000)
        yield Sleep(7 * MS)


def _power(kernel: Kernel) -> Program:
    """Log changes of the power mode and sleep phases of CPUs."""
    cpus = kernel.target.cpus
    for cpu in range(cpus):
        yield _system(_POWER, [cpu, 3])
    for i in range(100):
        yield Sleep(6 * MS)
        cpu, mode = i % cpus, (1, 2, 3)[i % 3]
        yield _system(_POWER, [cpu | _BEGINS, mode])
        yield Compute(30 * US)
        yield _system(_POWER, [cpu, mode])
        yield _system(_POWER, [cpu | _IDLE | _BEGINS, 1])
        yield Sleep(2 * MS)
        yield _system(_POWER, [cpu | _IDLE, 1])


def _guest(kernel: Kernel) -> Program:
    """Log entries and exits of a guest, and interrupts raised for it."""
    address = split64(GUEST_IP, order_of(kernel))
    for i in range(100):
        yield inserted(WireClass["QVM"], _GUEST_ENTER, address)
        yield Compute(900 * US)
        yield inserted(WireClass["QVM"], _GUEST_EXIT, [0, i % 3, 0, 0, *address, 0, 0])
        yield TraceEvent(Mode.INSERTSCLASSEVENT, WireClass["QVM"], _RAISE, 0, 32 + i % 4)
        yield Sleep(3 * MS)


def _system(event: int, words: list[int]) -> TraceEvent:
    return inserted(WireClass.SYSTEM, event, words)
