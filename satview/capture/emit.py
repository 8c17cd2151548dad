"""Emits the trace events of the simulated machine, filters them by the rule set, and writes them to the buffers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from satview.base.time import NS_PER_S
from satview.capture.buffers import Buffer, TraceBuffers
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.target import Target
from satview.events import naming, wire
from satview.events.catalogue import catalogue
from satview.events.layout import logged_list, plan_of
from satview.events.spec import Release
from satview.events.variants import WORD_MASK, Plan, encode, name_bytes, sigevent_words, text_words
from satview.events.wire import WireClass
from satview.filters.external import (
    COMM_NAMES,
    FEATURE_PID,
    FEATURE_TID,
    NOT_TESTED,
    EventContext,
    feature_of,
    has_feature,
)
from satview.filters.rules.handlers import HANDLER_LIMIT, OLD_HANDLER_LIMIT
from satview.filters.rules.rule_set import RuleSet

if TYPE_CHECKING:
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.services import Mapping
    from satview.capture.sim.threads import Partition, PendingCall, Process, Sigevent, Thread


# Filters every event by the kernel's rule set, and writes the events that pass to the buffers.
#
# Order of tests: class and event mask, pid and tid, class handler, event handler, tracing on, buffer available. Source:
# capture side, section 3.5. `filters.rules.RuleSet` evaluates the rules; the gate passes it the kernel's data about an
# event, and caches results that depend only on the event's code and the rules.


ON, WIDE, TESTED = 1, 2, 4
_CACHED = 8


class _KernelContext(EventContext):
    """The kernel's data about the current event, for conditions; most values are computed only when read."""

    __slots__ = ("_gate", "_stamp", "_thread")
    raw = duration_ns = length_ns = None

    def __init__(
        self,
        gate: Gate,
        code: int,
        cpu: int,
        stamp: int,
        words: tuple[int, ...],
        word_count: int,
        thread: Thread | None,
        tested: tuple[int, int] | None,
    ) -> None:
        self.code, self.cpu, self.words, self.word_count, self.tested = code, cpu, words, word_count, tested
        self._gate, self._stamp, self._thread = gate, stamp, thread
        self.pid, self.tid = (thread.process.pid, thread.tid) if thread is not None else (-1, -1)
        self.latency_ns = None

    @property
    def time_ns(self) -> int:  # type: ignore[override]
        return self._gate.time_ns(self.cpu, self._stamp)

    @property
    def process_name(self) -> str:  # type: ignore[override]
        return self._thread.process.name if self._thread is not None else ""

    @property
    def thread_name(self) -> str:  # type: ignore[override]
        return self._thread.name if self._thread is not None else ""

    @property
    def priority(self) -> int | None:  # type: ignore[override]
        return self._thread.priority if self._thread is not None else None

    @property
    def is_little_endian(self) -> bool:  # type: ignore[override]
        return not self._gate.target.big_endian


class Gate:
    """Filters events by the rules set with TraceEvent(), and writes the events that pass.

    Attributes:
        rules: The rules set by TraceEvent(), in the same form as rules for views.
        buffers: Receives the slots; None until ALLOCBUFFER.
        is_tracing: True between START and STOP.
        emitted: Number of events that passed the filters while tracing was on.
        origin: Stamp of the first event after START, which is time 0 in conditions; None before that event.
        watch: Called with each logged event whose code is in `watched`, its stamp, and its time by the machine's clock;
            None = not used.
        watched: Byte for each event code: 1 = `watch` is called.
        running: By CPU, the last thread that the trace shows entering RUNNING there.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.rules = RuleSet(target.release, OLD_HANDLER_LIMIT if target.is_old else HANDLER_LIMIT)
        self.buffers: TraceBuffers | None = None
        self.is_tracing = False
        self.emitted = 0
        self.origin: int | None = None
        self.watch: Callable[[EventContext, int, int], None] | None = None
        self.watched = bytes(wire.CODE_COUNT)
        self.running: list[Thread | None] = [None] * target.cpus
        self.byte_order = "big" if target.big_endian else "little"
        self._machine: Machine | None = None
        self._flags = bytearray(wire.CODE_COUNT)
        self.rules.on_change = self._forget
        self._flags_of_vector: dict[tuple[int, int], int] = {}

    def connect(self, machine: Machine) -> None:
        """Set the machine whose events are recorded; `allocate` requires it."""
        self._machine = machine

    def allocate(self, count: int, hand_over: Callable[[Buffer], None]) -> TraceBuffers:
        """Create and return the kernel buffers; `hand_over` is called with each full buffer."""
        if self._machine is None:
            raise AssertionError("connect() comes first")
        self.buffers = TraceBuffers(
            self.target, count, hand_over, self._time_passes, self._machine.poll_nested, self._machine.truth.skew_cycles
        )
        return self.buffers

    # Cached decisions of the rules

    def flags(self, code: int) -> int:
        """Return the flags of an event code, for events that have no interrupt vector: the sum of ON, WIDE and TESTED.

        ON = the events are logged, WIDE = in wide mode, TESTED = pid or tid settings or handlers decide about each
        event.
        """
        return self._flags[code] or self.find(code)

    def vector_flags(self, code: int, vector: int) -> int:
        """Return the flags of interrupt events with this code and vector, the sum of ON and TESTED.

        ON = the events are logged, TESTED = handlers decide about each event.
        """
        flags = self._flags_of_vector.get((code, vector))
        if flags is None:
            rules = self.rules
            address = rules.address(code)
            words = (*(0,) * address.vector_word, vector)
            flags = (ON if rules.is_on(address, code, words) else 0) | (TESTED if rules.is_tested(code) else 0)
            self._flags_of_vector[code, vector] = flags
        return flags

    def _forget(self) -> None:
        self._flags = bytearray(wire.CODE_COUNT)
        self._flags_of_vector = {}

    def find(self, code: int) -> int:
        """Compute, cache and return the flags of an event code: ON, WIDE and TESTED, as for `flags`."""
        rules = self.rules
        flags = _CACHED | (ON if rules.is_on(rules.address(code), code) else 0)
        flags |= (WIDE if rules.is_wide(code) else 0) | (TESTED if rules.is_tested(code) else 0)
        self._flags[code] = flags
        return flags

    # The way into the buffers

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event that passed all filters; return False if tracing is off, or no buffer is free.

        The arguments are those of `buffers.TraceBuffers.put`.
        """
        if not self.is_tracing or self.buffers is None:
            return False
        self.emitted += 1
        is_written = self.buffers.put(cpu, code, time, words, flags)
        if self.watched[code] and self.watch is not None:
            self.watch(self._logged(cpu, code, time, words), self._stamped(cpu, time), time)
        return is_written

    def _logged(self, cpu: int, code: int, time: int, words: Sequence[int]) -> EventContext:
        """Return what conditions can read about an event; a state belongs to the thread in its payload."""
        thread = self.running[cpu]
        is_of_thread = (
            code >> wire.CLASS_SHIFT == wire.WireClass.PR_TH
            and code & wire.EVENT_MASK < wire.PROC_CREATE & wire.EVENT_MASK
        )
        if is_of_thread and self._machine is not None:
            process = self._machine.processes.get(words[0])
            thread = process.threads.get(words[1]) if process is not None else None
        return _KernelContext(self, code, cpu, time, *_padded(words), thread, None)

    def admit(
        self,
        cpu: int,
        code: int,
        time: int,
        words: Sequence[int],
        thread: Thread | None = None,
        tested: tuple[int, int] | None = None,
    ) -> bool:
        """Return whether an event passes the pid and tid settings and the handlers.

        Args:
            cpu: CPU that logs the event.
            code: Class and event number as in the slot.
            time: Time of the event in cycles, by the machine's clock.
            words: Payload as it will be logged.
            thread: Thread to which the event belongs; None = the thread that runs on the CPU.
            tested: (pid, tid) to compare with the settings; None = the ids of `thread`.
        """
        if thread is not None and tested is None:
            tested = (thread.process.pid, thread.tid)
        rules = self.rules
        if tested is not None:
            passes = rules.passes_thread(code, tested)
            if passes is not None:
                return passes
        context = _KernelContext(self, code, cpu, time, *_padded(words), thread or self.running[cpu], tested)
        return rules.call_handlers(context) if tested is not None else rules.passes_tests(context)

    def begins_at(self, cpu: int, time: int) -> None:
        """Use an event's time as time 0 of conditions if the event is the first after START."""
        if self.origin is None:
            self.origin = self._stamped(cpu, time)

    def time_ns(self, cpu: int, time: int) -> int:
        """Return the nanoseconds from the first event after START to a time; 0 before that event. Rounded down.

        Args:
            cpu: CPU whose counter is used.
            time: Time in cycles, by the machine's clock.
        """
        if self.origin is None:
            return 0
        return (self._stamped(cpu, time) - self.origin) * NS_PER_S // self.target.cycles_per_s

    def _stamped(self, cpu: int, time: int) -> int:
        skews = self.buffers.skew_cycles if self.buffers is not None else ()
        return time + skews[cpu] if skews else time

    def _time_passes(self, cpu: int, time: int, payload: tuple[int, int]) -> bool:
        flags = self.flags(wire.CONTROL_TIME)
        if not flags & ON:
            return False
        skews = self.buffers.skew_cycles if self.buffers is not None else ()
        unskewed = time - skews[cpu] if skews else time
        return not flags & TESTED or self.admit(cpu, wire.CONTROL_TIME, unskewed, payload)


def _padded(words: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the payload words and their number, at least 2; a 0 is appended to the words if their number is odd."""
    count = len(words)
    if count == 2:
        return (words[0] & WORD_MASK, words[1] & WORD_MASK), count
    count = max(2, count)
    return (*[word & WORD_MASK for word in words], *(0,) * (count + count % 2 - len(words))), count


# Emits the trace events for everything that the simulated machine reports; no other module does.
#
# Source of the payloads: kernel event trace format, sections 8.2 to 8.7.


# Codes and argument lists of events, prepared for the encoder.


_UNKNOWN: Plan = (("word 0", 1), ("word 1", 1))  # names of raw words, as in listings
_UNKNOWN_EXIT: Plan = (("ret_val", 1), ("empty", 1))


_WITH_FLAG = (Release.QNX_7, Release.QNX_8)  # the code of an event whose argument list has 64-bit values has a flag


@cache
def _call_number(release: Release, name: str) -> int | None:
    """Return the number of a kernel call by name; None if the release does not have the call."""
    return catalogue(release).kernel_call_number(name)


@cache
def call_form(release: Release, event: int, wide: bool, is_64bit: bool) -> tuple[int, Plan]:
    """Return code and argument list of the event for the entry or exit (number of the call plus 128) of a kernel call.

    Both depend on the mode (fast, wide) and on the calling process (32 or 64 bits).
    """
    code = wire.code(WireClass.KER_CALL, event) | (wire.KER_64BIT if is_64bit and release in _WITH_FLAG else 0)
    logged, fields = logged_list(release, code, is_wide=wide)
    unknown = _UNKNOWN if event < _EXIT else _UNKNOWN_EXIT
    return logged, plan_of(fields) if fields else unknown


@cache
def _plan(release: Release, code: int, wide: bool = False) -> Plan:
    """Return the argument list of an event that is not a kernel call; ValueError if the release has none."""
    fields = logged_list(release, code, is_wide=wide)[1]
    if fields is None:
        raise ValueError(f"{release} has no list for code 0x{code:x}")
    return plan_of(fields)


# Events of interrupts and of the system class: timers, partitions, inter-processor interrupts, path names.


_INT_ENTER, _INT_EXIT, _HANDLER_ENTER, _HANDLER_EXIT = (wire.code(WireClass.INT, i) for i in range(1, 5))
_INT_ENTER_64, _HANDLER_ENTER_64, _DELIVER = (wire.code(WireClass.INT, i) for i in range(5, 8))
_SYSTEM_NUMBERS = {
    "PATHMGR": 2, "APS_NAME": 3, "APS_BUDGETS": 4, "APS_BNKR": 5, "MMAP": 6, "MUNMAP": 7, "IPI": 16, "TIMER": 18,
    "IST_ATTACH": 29,
}  # fmt: skip
_SYS = {name: wire.code(WireClass.SYSTEM, number) for name, number in _SYSTEM_NUMBERS.items()}
_IPI_64 = wire.code(WireClass.SYSTEM, 0x210)
_IPI_RESCHEDULE = 0x1
_HANDLER_AREA = 0x8060000


class SystemEvents(Gate):
    """Emits interrupt events and SYSTEM events; the base class of `Emitter`."""

    def _words(self, code: int, values: dict[str, int | bytes], wide: bool = False) -> list[int]:
        """Return the payload words of an event by its argument list; missing numbers are 0, missing texts left out."""
        return encode(_plan(self.target.release, code, wide), values, self.byte_order)

    @property
    def _has_newer_system(self) -> bool:
        """Whether the release has the SYSTEM events and argument names of 6.6 and later."""
        return self.target.release != Release.QNX_6

    # Interrupts

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Emit the entry of an interrupt; `address` is the code address that the CPU was executing."""
        if self.buffers is not None:
            self.buffers.in_interrupt += 1
        code = _INT_ENTER_64 if address >> 32 else _INT_ENTER
        in_kernel_or_address = 1 if self.target.is_old else address
        words = self._words(code, {"interrupt_number": vector, "ip": in_kernel_or_address})
        self._interrupt(cpu, time, vector, code, words)

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Emit the exit of an interrupt; `kernel_flags` is the kernel state in the event's payload."""
        words = self._words(
            _INT_EXIT, {"interrupt_number": vector, "kernel_flag": kernel_flags, "inkernel": kernel_flags}
        )
        self._interrupt(cpu, time, vector, _INT_EXIT, words)
        if self.buffers is not None and self.buffers.in_interrupt:
            self.buffers.leave_interrupt(time)

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Emit the entry of a handler whose code is at `address`, which takes several slots; nothing before 6.4."""
        if self.target.is_old:
            return
        code = _HANDLER_ENTER_64 if address >> 32 else _HANDLER_ENTER
        words = self._words(
            code, {"pid": process.pid, "interrupt_number": vector, "ip": address, "area": _HANDLER_AREA}
        )
        self._interrupt(cpu, time, vector, code, words)

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Emit the exit of an interrupt handler with the sigevent it returned, or zeros; does nothing before 6.4."""
        if self.target.is_old:
            return
        structure = [0, 0, 0, 0]
        if event is not None:
            structure = sigevent_words(
                event.notify, event.coid or event.signo, event.value, event.code, event.priority, self.byte_order
            )
        words = [*self._words(_HANDLER_EXIT, {"interrupt_number": vector}), *structure]
        self._interrupt(cpu, time, vector, _HANDLER_EXIT, words)

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """Emit the delivery of an interrupt to its service thread (8.0); `ident` is the id of the attachment."""
        self._interrupt(cpu, time, ident, _DELIVER, [*self._words(_DELIVER, {"intr_id": ident}), 0])

    def _interrupt(self, cpu: int, time: int, vector: int, code: int, words: Sequence[int]) -> None:
        flags = self.vector_flags(code, vector)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, words)):
            self.put(cpu, code, time, words)

    # System

    def _system(
        self, cpu: int, time: int, code: int, values: dict[str, int | bytes], tested: tuple[int, int] | None = None
    ) -> None:
        flags = self._flags[code] or self.find(code)
        if not flags & ON:
            return
        words = self._words(code, values, bool(flags & WIDE))
        if not flags & TESTED or self.admit(cpu, code, time, words, None, tested):
            self.put(cpu, code, time, words)

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """Emit the expiry of a timer, from 6.6 on.

        Args:
            cpu: CPU that logs the event.
            time: Time of the event in cycles, by the machine's clock.
            thread: Thread that is the owner in the payload.
            ident: Id of the timer in the payload.
            flags: Flags in the payload.
        """
        if self._has_newer_system:
            self._system(cpu, time, _SYS["TIMER"], {**_owner(thread), "timer_id": ident, "flags": flags})

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit an inter-processor interrupt, from 6.6 on."""
        if self._has_newer_system:
            address = 0x8048000 + thread.tid * 0x150
            code = _IPI_64 if self.target.is_64bit else _SYS["IPI"]
            self._system(cpu, time, code, {"ipicmd": _IPI_RESCHEDULE, "interrupted_ip": address, **_owner(thread)})

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """Emit the bankruptcy of a partition, with the thread that caused it."""
        pid, tid = culprit = (thread.process.pid, thread.tid)
        values: dict[str, int | bytes] = {"pid": pid, "tid": tid, "partition_id": partition.ident}
        if self._has_newer_system:
            values = {"suspect_pid": pid, "suspect_tid": tid, "partition_id": partition.ident}
        self._system(cpu, time, _SYS["APS_BNKR"], values, culprit)

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Emit the mapping of memory at `address`, as `call` requested; only the mapping of a file has a name."""
        values: dict[str, int | bytes] = {
            "pid": process.pid, "vaddr": address, "addr": address, "len": call.length, "flags": call.flags,
            "prot": call.prot, "fd": 3 if call.file else WORD_MASK,
        }  # fmt: skip
        if call.file:
            values["path"] = values["name"] = name_bytes(call.file)
        self._memory(cpu, time, "MMAP", values)

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Emit the unmapping of memory."""
        self._memory(cpu, time, "MUNMAP", {"pid": process.pid, "vaddr": address, "addr": address, "len": length})

    def _memory(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        if not self.target.is_old:
            self._system(cpu, time, _SYS[name], values)

    def system(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        """Emit a SYSTEM event by its name in listings; does nothing if the release does not have the event."""
        code = next(iter(catalogue(self.target.release).find(f"SYSTEM/{name}")), None)
        if code is not None:
            self._system(cpu, time, code, values)

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Emit the resolution of a path name."""
        name = name_bytes(text)
        self._system(cpu, time, _SYS["PATHMGR"], {**_owner(thread), "path": name, "pathname": name})

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Emit that `thread` becomes the service thread of an interrupt (8.0).

        Args:
            cpu: CPU that logs the event.
            time: Time of the event in cycles, by the machine's clock.
            thread: The service thread.
            ident: Id of its attachment to the interrupt.
            interrupt_cpu: CPU of the interrupt, as in the payload.
        """
        self._system(
            cpu,
            time,
            _SYS["IST_ATTACH"],
            {**_owner(thread), "intr_id": ident, "intr_cpu": interrupt_cpu, "ist_prio": thread.priority},
        )

    def partition(self, cpu: int, time: Callable[[], int], partition: Partition) -> None:
        """Emit the name and the budget of a partition as two events; `time()` returns the stamp of each."""
        ident, name = partition.ident, name_bytes(partition.name)
        percent, critical_ms = partition.budget_percent, partition.critical_ms
        names: dict[str, int | bytes] = {"partition_id": ident, "name": name}
        budgets: dict[str, int | bytes] = {
            "partition_id": ident,
            "percentage_budget": percent,
            "critical_budget": critical_ms,
        }
        if self._has_newer_system:
            names = {"partition_id": ident, "partition_name": name}
            budgets = {
                "partition_id": ident,
                "percentage_cpu_budget": percent,
                "critical_budget_ms": critical_ms,
                "maximum_cpu_budget": 100,
                "budget_percent_scale": 100,
            }
        self._system(cpu, time(), _SYS["APS_NAME"], names)
        self._system(cpu, time(), _SYS["APS_BUDGETS"], budgets)


def _owner(thread: Thread) -> dict[str, int | bytes]:
    return {"pid": thread.process.pid, "tid": thread.tid}


# Event handlers of programs: their data, and how the kernel calls them. Source: capture side, section 3.4.


@dataclass(slots=True)
class EventData:
    """The data passed to an event handler, the counterpart of `event_data_t`.

    Attributes:
        header: Header word of the event, with structure bits 0.
        data_array: The program's list, filled with the payload words.
        el_num: Number of payload words.
        area: The program's own data, which the simulated kernel never changes.
        feature_mask: Bits 0 and 1 are set if `feature` contains the pid and the tid.
        feature: (pid, tid).
    """

    data_array: list[int] = field(default_factory=list)
    area: Any = None
    header: int = 0
    el_num: int = 0
    feature_mask: int = 0
    feature: list[int] = field(default_factory=lambda: [0, 0])


EventHandler = Callable[[EventData], Any]
RULE_DATA = object()
"""Passed in place of a handler's data if the function is a dynamic rule from tracelogger's rules."""


@dataclass(slots=True, eq=False)
class KernelHandler:
    """An event handler attached by a program, in the form of a dynamic rule that the kernel's rule set calls.

    Attributes:
        function: The program's function; a generator function may yield TraceEvent() calls.
        data: The program's data, filled for each event.
        pid: Process that attached the handler; the handler is removed when the process ends.
        release: Determines which events have a pid and a tid.
        call: Calls the function with the data that is filled in, and returns its result.
    """

    function: EventHandler
    data: EventData
    pid: int
    release: Release
    call: Callable[[KernelHandler], int]

    def __call__(self, context: EventContext, /) -> int:
        """Fill in the program's data and return the result of its function; 0 suppresses the event."""
        data, count = self.data, context.word_count or context.el_num
        data.header = context.header
        words = context.words
        data.data_array[:count] = words if len(words) == count else words[:count]
        data.el_num = count
        tested = context.tested
        if tested is not None and tested[1] >= 0 and has_feature(context.code):  # as `feature_of`, at less cost
            data.feature_mask, data.feature[:] = FEATURE_PID | FEATURE_TID, tested
        else:
            data.feature_mask, feature = feature_of(context, self.release)
            if data.feature_mask:
                data.feature[:] = feature
        return self.call(self)


def finish(running: Generator[Any, int, Any], call: Callable[[Any], int]) -> int:
    """Run the generator of an event handler to its end and return its result.

    `call` executes a yielded call; its OSError is raised in the generator at the `yield`.
    """
    try:
        item = next(running)
        while True:
            try:
                value = call(item)
            except OSError as error:
                item = running.throw(error)
            else:
                item = running.send(value)
    except StopIteration as end:
        return int(end.value or 0)


_EXIT, _INTERRUPTED = wire.KER_EXIT_OFFSET, wire.KER_INT_OFFSET
_KER = wire.code(WireClass.KER_CALL, 0)
_COMM = {name: wire.code(WireClass.COMM, i) for i, name in enumerate(COMM_NAMES)}
_KERNEL_PULSES = frozenset(code for name, code in _COMM.items() if name.startswith("SPULSE_"))
_PROCESS = {
    "CREATE": wire.PROC_CREATE,
    "CREATE_NAME": wire.PROC_CREATE_NAME,
    "DESTROY": wire.PROC_DESTROY,
    "DESTROY_NAME": wire.PROC_DESTROY_NAME,
}


class Emitter(SystemEvents):
    """Emits kernel calls, thread and process events and messages; the recorder of a simulated machine."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._states = {
            name: wire.code(WireClass.PR_TH, number) for name, number in naming.state_numbers(target.release).items()
        }

    # Kernel calls

    def _number(self, call: PendingCall) -> int | None:
        """Return the number of a call; None if the kernel does not log it."""
        return None if call.is_silent(self.target) else _call_number(self.target.release, call.name)

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Emit the entry of a kernel call."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number
        flags = self._flags[base] or self.find(base)
        if not flags & ON:
            return
        code, plan = call_form(self.target.release, number, bool(flags & WIDE), thread.process.bits == 64)
        words = encode(plan, call.arguments(thread), self.byte_order)
        if isinstance(call, TraceEvent) and flags & WIDE and self.target.release not in _WITH_FLAG:
            words = [call.mode, *words[1 : max(1, call.mode >> 28)]]
        if not flags & TESTED or self.admit(cpu, code, time, words, thread):
            self.put(cpu, code, time, words)

    def kernel_exit(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Emit the exit of a kernel call; the payload of a failed call is -1 and the error number."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number + _EXIT
        flags = self._flags[base] or self.find(base)
        if not flags & ON:
            return
        if thread.exit_error:
            code, words = base, [WORD_MASK, thread.exit_error]
        else:
            code, plan = call_form(self.target.release, number + _EXIT, bool(flags & WIDE), thread.process.bits == 64)
            words = encode(plan, thread.exit_values, self.byte_order)
        if not flags & TESTED or self.admit(cpu, code, time, words, thread):
            self.put(cpu, code, time, words)

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Emit the event that replaces the exit of an interrupted call; filters treat it like the exit."""
        number = self._number(call)
        if number is None:
            return
        code = _KER | number + _INTERRUPTED
        flags = self._flags[code] or self.find(code)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, (0, 0), thread)):
            self.put(cpu, code, time, (0, 0))

    # Threads and processes

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit the state that a thread enters."""
        if thread.state == "RUNNING":
            self.running[cpu] = thread
        code = self._states.get(thread.state)
        if code is not None:
            self._thread(cpu, time, thread, code)

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """Emit CREATE or DESTROY of a thread; in 6.x these events have two payload words in fast and in wide mode."""
        code = self._states[event]
        self._thread(cpu, time, thread, code, has_wide=len(_plan(self.target.release, code, True)) > 2)

    def _thread(self, cpu: int, time: int, thread: Thread, code: int, has_wide: bool = True) -> None:
        flags = self._flags[code] or self.find(code)
        if not flags & ON:
            return
        words: tuple[int, ...] = (thread.process.pid, thread.tid)
        if flags & WIDE and has_wide and not self.target.is_old:  # the wide listings of 6.1 have two words
            words = (*words, thread.priority, thread.policy)
            if thread.partition is not None:
                words = (*words, thread.partition.ident, 1 if thread.is_critical else 0)
        if not flags & TESTED or self.admit(cpu, code, time, words, thread):
            self.put(cpu, code, time, words)

    def virtual_thread(self, cpu: int, time: int, thread: Thread, state: str) -> None:
        """Emit the state that a virtual thread enters; 8.0 has no virtual threads."""
        if self.target.release is Release.QNX_8:
            return
        code = self._states[state] + wire.VTHREAD_OFFSET
        flags = self._flags[code] or self.find(code)
        actor = (thread.process.pid, thread.vtid)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, actor, None, actor)):
            self.put(cpu, code, time, actor)

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit a thread's name."""
        self._process(cpu, time, wire.PROC_THREAD_NAME, (thread.process.pid, thread.tid), thread.name)

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """Emit the creation or end of a process; an `event` that ends in NAME contains the process name."""
        name = process.name if event.endswith("NAME") else None
        self._process(cpu, time, _PROCESS[event], (process.parent, process.pid), name)

    def _process(self, cpu: int, time: int, code: int, words: tuple[int, int], text: str | None) -> None:
        flags = self._flags[code] or self.find(code)
        if not flags & ON:
            return
        payload = [*words, *text_words(name_bytes(text), self.byte_order)] if text is not None else list(words)
        if not flags & TESTED or self.admit(cpu, code, time, payload):
            self.put(cpu, code, time, payload)

    # Messages

    def comm(self, cpu: int, time: int, event: str, words: tuple[int, ...], pid: int, tid: int) -> None:
        """Emit a message, pulse or signal: the COMM event with the name `event` and the payload `words`.

        Filters compare `pid` and `tid` with their settings; for pulses of the kernel, only the pid.
        """
        code = _COMM[event]
        flags = self._flags[code] or self.find(code)
        if not flags & ON:
            return
        if event == "SIGNAL":
            wide_count = 10 if self.target.release == Release.QNX_6 else 9
            words = (*words, 0)[:wide_count] if flags & WIDE else words[:2]
        actor = (pid, NOT_TESTED if code in _KERNEL_PULSES else tid)
        if not flags & TESTED or self.admit(cpu, code, time, words, None, actor):
            self.put(cpu, code, time, words)
