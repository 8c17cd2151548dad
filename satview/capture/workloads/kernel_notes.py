"""Workloads whose programs insert events that the kernel, libraries, a hypervisor or instrumented programs log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, Dlopen, Mmap, Munmap, Sleep, ThreadCreate, TraceEvent
from satview.capture.sim.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, inserted, order_of, periodic
from satview.events.catalogue import catalogue
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.variants import split64, text_words
from satview.events.wire import EVENT_MASK, KER_64BIT, WireClass

# Workloads whose programs insert events that the kernel, libraries or a hypervisor log on a real target.
#
# Payload words without a documented meaning are 0.


GUEST_IP = 0xFFFFFF8008081000
PROGRAM_IP = 0x3D50001240
VCPUS = 2
_ABLE, _UNREGISTERED = 14, 1  # number of a process manager ability; result "refused"


class Notes:
    """Inserts events by name; skips events that the kernel's release does not have."""

    def __init__(self, kernel: Kernel) -> None:
        self._book = catalogue(kernel.target.release)
        self._order = order_of(kernel)
        self.is_wide = kernel.target.is_64bit

    def wide(self, *values: int) -> list[int]:
        """Return 64-bit values as payload words."""
        return [word for value in values for word in split64(value, self._order)]

    def text(self, text: str) -> list[int]:
        """Return payload words that contain a text."""
        return text_words(text.encode(), self._order)

    def insert(self, name: str, words: Sequence[int] = (0, 0)) -> Program:
        """Insert an event by `class/name`; skip it if the release does not have the event."""
        codes = self._book.find(name)
        if codes:
            yield inserted(WireClass[name.partition("/")[0]], codes[0] & EVENT_MASK, words)


def setup_kernel_notes(kernel: Kernel) -> None:
    """Start programs that log CPU speeds and run states, defragmentation, profiler samples and security checks."""
    notes = Notes(kernel)
    kernel.spawn("sbin/cpu-manager", _cpus, notes, priority=20, thread_name="cpus")
    kernel.spawn("usr/bin/profiled", _profiled, notes, priority=10, thread_name="work")
    kernel.spawn("sbin/secpol", _security, notes, priority=11, thread_name="policy")
    if kernel.target.release is Release.QNX_7:
        kernel.spawn("usr/bin/old-tool", _old_tool, notes, priority=9, bits=32)


def _cpus(notes: Notes) -> Program:
    """Log changes of speed and run state of the second CPU, and defragmentations of memory."""
    for i in range(8):
        yield Sleep(5 * MS)
        yield from notes.insert("SYSTEM/POWER", (0x20001, 1 + i % 2))
        yield Compute(30 * US)
        yield from notes.insert("SYSTEM/POWER", (1, 1 + i % 2))
        yield from notes.insert("SYSTEM/RUNSTATE", (0x2 | i % 2, 0))
        yield from notes.insert("SYSTEM/SEND_IPI_64" if i % 2 else "SYSTEM/SEND_IPI")
        yield from notes.insert("SYSTEM/COMPACTION")
        yield from notes.insert("SYSTEM/DEFRAG_START")
        yield Compute(200 * US)
        yield from notes.insert("SYSTEM/DEFRAG_END", (0, 0x4000000, 0x1000000))
        yield from notes.insert("SYSTEM/SLOG", [i, 5, *notes.text("memory is in pieces again")])


def _profiled(notes: Notes) -> Program:
    """Load a library, and log profiler samples and traced addresses while computing."""
    yield Dlopen(file="libtrace.so.1")
    for i in range(20):
        yield Compute(MS)
        yield from _samples(notes, notes.is_wide, PROGRAM_IP + 0x40 * (i % 4))
        yield from notes.insert("SYSTEM/PCTRACE")
        yield from notes.insert("PMU/EVENT_TYPE")
        yield from notes.insert("PMU/EVENT_COUNTER")
        yield Sleep(MS)


def _samples(notes: Notes, is_wide: bool, address: int) -> Program:
    """Log a profiler sample, a traced address and a function call as 64-bit or 32-bit events."""
    if is_wide:
        yield from notes.insert("SYSTEM/PROFILE_64", [*notes.wide(address), 1, 2])
        yield from notes.insert("SYSTEM/ADDRESS_64", notes.wide(address))
        yield from notes.insert("SYSTEM/FUNC_ENTER_64", notes.wide(address, address - 8))
        yield from notes.insert("SYSTEM/FUNC_EXIT_64", notes.wide(address, address - 8))
        return
    yield from notes.insert("SYSTEM/PROFILE", (address & 0xFFFFFFFF, 1, 2))
    yield from notes.insert("SYSTEM/ADDRESS", (address & 0xFFFFFFFF, 0))
    yield from notes.insert("SYSTEM/FUNC_ENTER", (address & 0xFFFFFFFF, 0x8048000))
    yield from notes.insert("SYSTEM/FUNC_EXIT", (address & 0xFFFFFFFF, 0x8048000))


def _old_tool(notes: Notes) -> Program:
    """Load a library, and log samples like `_profiled` does, from a 32-bit program on a 64-bit kernel."""
    yield Dlopen(file="libold.so.1")
    for _ in range(10):
        yield Compute(300 * US)
        yield from _samples(notes, False, 0x8049000)
        yield Sleep(3 * MS)


def _security(notes: Notes) -> Program:
    """Log checks of abilities, paths and permissions, some of them refused (7.x, 8.0)."""
    for i in range(8):
        yield Sleep(4 * MS)
        yield from notes.insert("SEC/ABLE", [2, _ABLE, i % 2, 7, *notes.wide(0, 0xFFFF)])
        yield from notes.insert("SEC/ABLE_LOOKUP", [_ABLE, *notes.text("drivers/start")])
        yield from notes.insert("SEC/PATH_ATTACH", [2, 1, 2, i % 2, *notes.text("/dev/note")])
        yield from notes.insert("SEC/QNET_CONNECT", (2, 2, 7, 9, i % 3))
        yield from notes.insert("SEC/PERM_LOOKUP", [2, 0, 3, i, *notes.text("file"), *notes.text("read")])
        yield from notes.insert("SEC/PERM_TEST", (2, 7, 9, 3, i, i % 2))
        yield from notes.insert("SEC/UNREG_EVENT", [2, 2, 1, _UNREGISTERED, *notes.text("cpu-manager")])
        yield from notes.insert("SEC/OPEN_EVENT")
        yield Compute(100 * US)


def setup_virtual_machine(kernel: Kernel) -> None:
    """Start a hypervisor that runs a guest with a timer on two virtual CPUs, and another program."""
    kernel.spawn("sbin/qvm", _hypervisor, Notes(kernel), priority=12, thread_name="qvm")
    kernel.spawn("usr/bin/host", _host, priority=10, thread_name="host")


def _hypervisor(notes: Notes) -> Program:
    yield Sleep(6 * MS)
    for vcpu in range(VCPUS):
        yield from notes.insert("QVM/CREATE_VCPU_THREAD", (vcpu, 0))
        yield ThreadCreate(_vcpu, (notes, vcpu), 11, Policy.RR, f"vcpu{vcpu}")
    yield from notes.insert("QVM/TIMER_CREATE", (0x1A, 0))
    yield from periodic(4 * MS, _timer, notes, priority=12)


def _timer(notes: Notes, count: int) -> Program:
    """Log an expiry of the guest's timer: its interrupt is raised, and lowered 50 us later."""
    vcpu = count % VCPUS
    yield from notes.insert("QVM/TIMER_FIRE", (0x1A, 0))
    yield from notes.insert("QVM/RAISE_INTR", (vcpu, 27))
    yield Compute(50 * US)
    yield from notes.insert("QVM/LOWER_INTR", (vcpu, 27))


def _vcpu(notes: Notes, vcpu: int) -> Program:
    """Run the guest on a virtual CPU, and log each entry and exit; after every third exit it is idle."""
    for i in range(60):
        yield from notes.insert("QVM/GUEST_ENTER", notes.wide(GUEST_IP + 0x100 * vcpu))
        yield Compute((400 + 300 * vcpu) * US)
        words = [0, i % 3, *notes.wide(0, GUEST_IP + 0x100 * vcpu, 0)]
        yield from notes.insert("QVM/GUEST_EXIT", words)
        if i % 8 == 7:
            yield from notes.insert("QVM/CYCLES", notes.wide(i * 1_000_000, (i + 1) * 1_000_000))
        if i % 3 == 2:
            yield Sleep(2 * MS)  # the guest is idle


def _host() -> Program:
    while True:
        yield Compute(500 * US)
        yield Sleep(3 * MS)


# A workload whose programs log functions, counters and phases, a guest, power modes, page faults and log lines.
#
# Events that the kernel or a library logs on a real target are inserted here by the programs with TraceEvent(), which
# such libraries call too.


QUEUE, REQUEST_BEGIN, REQUEST_END, NOTE = 10, 41, 42, 50  # user events
PLAN, SEARCH, CHECK, STORE = 0x8049000, 0x8049100, 0x8049240, 0x8049380  # functions
_FUNC_ENTER, _FUNC_EXIT, _SLOG, _POWER, _PAGEWAIT = 10, 11, 12, 15, 17
_GUEST_ENTER, _GUEST_EXIT, _RAISE = 0, 1, 3
_ATTACH_ABLE, _PATH_ATTACH = 0, 2
_IDLE, _BEGINS = 0x10000, 0x20000
Calls = Sequence[tuple[int, int, Sequence[Any]]]  # address and duration in us of functions, and the calls they make
_CHECKS: Calls = ((CHECK, 80, ()), (CHECK, 60, ()))


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
    """Run a function that logs its entry and exit; after half of its time it calls the functions in `calls`.

    Args:
        is_wide: Whether the events contain 64-bit addresses.
        address: Address of the function.
        length_us: Time of the function itself, without the functions that it calls.
        calls: Address, time and calls of each function that this one calls.
    """
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
