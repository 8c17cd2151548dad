"""Emits the trace events for everything that the simulated machine reports; no other module does.

Source of the payloads: kernel event trace format, sections 8.2 to 8.7.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from satview.capture.gate import ON, TESTED, WIDE, Gate
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.parts.target import Target
from satview.events import naming, wire
from satview.events.catalogue import Catalogue, catalogue
from satview.events.layout import logged_list, plan_of
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.events.words import WORD_MASK, Plan, encode, name_bytes, sigevent_words, text_words
from satview.filters.event_context import FEATURE_PID, FEATURE_TID, NOT_TESTED, EventContext, feature_of, has_feature
from satview.filters.external import COMM_NAMES

if TYPE_CHECKING:
    from satview.capture.sim.parts.recorder import Mapping
    from satview.capture.sim.parts.sigevent import Sigevent
    from satview.capture.sim.parts.threads import Partition, PendingCall, Process, Thread


# Codes and argument lists of events, prepared for the encoder.


_UNKNOWN: Plan = (("word 0", 1), ("word 1", 1))  # names of raw words, as in listings
_UNKNOWN_EXIT: Plan = (("ret_val", 1), ("empty", 1))


class CallPayloads:
    """Codes and argument lists of the kernel calls of one release.

    Both depend on the mode (fast, wide) and on the process (32 or 64 bits): from 7.x on, the code of an event whose
    argument list has 64-bit values contains a flag.
    """

    def __init__(self, release: Release) -> None:
        self.catalogue: Catalogue = catalogue(release)
        self.has_flag = release in (Release.QNX_7, Release.QNX_8)
        self._forms: dict[tuple[int, bool, bool], tuple[int, Plan]] = {}
        self._plans: dict[tuple[int, bool], Plan] = {}
        self._numbers: dict[str, int | None] = {}

    def number(self, name: str) -> int | None:
        """Return the number of a kernel call by name; None if the release does not have the call."""
        if name not in self._numbers:
            self._numbers[name] = self.catalogue.kernel_call_number(name)
        return self._numbers[name]

    def system_code(self, name: str) -> int | None:
        """Return the code of a SYSTEM event by name; None if the release does not have the event."""
        return next(iter(self.catalogue.find(f"SYSTEM/{name}")), None)

    def form(self, event: int, wide: bool, is_64bit: bool) -> tuple[int, Plan]:
        """Return code and argument list of a call's entry or exit; `event` is its number, plus 128 for an exit."""
        key = (event, wide, is_64bit)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._find(event, wide, is_64bit)
        return form

    def _find(self, event: int, wide: bool, is_64bit: bool) -> tuple[int, Plan]:
        code = wire.code(WireClass.KER_CALL, event) | (wire.KER_64BIT if is_64bit and self.has_flag else 0)
        logged, fields = logged_list(self.catalogue.release, code, is_wide=wide)
        unknown = _UNKNOWN if event < _EXIT else _UNKNOWN_EXIT
        return logged, plan_of(fields) if fields else unknown

    def plan(self, code: int, wide: bool = False) -> Plan:
        """Return the argument list of an event that is not a kernel call.

        Raises:
            ValueError: The release has no argument list for this code.
        """
        plan = self._plans.get((code, wide))
        if plan is None:
            fields = logged_list(self.catalogue.release, code, is_wide=wide)[1]
            if fields is None:
                raise ValueError(f"{self.catalogue.release} has no list for code 0x{code:x}")
            plan = self._plans[code, wide] = plan_of(fields)
        return plan


@cache
def call_payloads(release: Release) -> CallPayloads:
    """Return the codes and argument lists of kernel calls in a release; the object is cached."""
    return CallPayloads(release)


# Events of interrupts and of the system class: timers, partitions, inter-processor interrupts, path names.


_INT_ENTER, _INT_EXIT, _HANDLER_ENTER, _HANDLER_EXIT = (wire.code(WireClass.INT, i) for i in range(1, 5))
_INT_ENTER_64, _HANDLER_ENTER_64, _DELIVER = (wire.code(WireClass.INT, i) for i in range(5, 8))
_SYS = {
    name: wire.code(WireClass.SYSTEM, number)
    for name, number in (
        ("PATHMGR", 2),
        ("APS_NAME", 3),
        ("APS_BUDGETS", 4),
        ("APS_BNKR", 5),
        ("MMAP", 6),
        ("MUNMAP", 7),
        ("IPI", 16),
        ("TIMER", 18),
        ("IST_ATTACH", 29),
    )
}
_IPI_64 = wire.code(WireClass.SYSTEM, 0x210)
_IPI_RESCHEDULE = 0x1
_HANDLER_AREA = 0x8060000


class SystemEvents(Gate):
    """Emits interrupt events and SYSTEM events; the base class of `Emitter`."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._payloads = call_payloads(target.release)

    def _words(self, code: int, values: dict[str, int | bytes], wide: bool = False) -> list[int]:
        """Return the payload words of an event; a missing number is 0, a missing text is left out."""
        return encode(self._payloads.plan(code, wide), values, self.byte_order)

    @property
    def _has_newer_system(self) -> bool:
        """Whether the release has the SYSTEM events and argument names of 6.6 and later."""
        return self.target.release != Release.QNX_6

    # Interrupts

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Emit the entry of an interrupt."""
        if self.buffers is not None:
            self.buffers.in_interrupt += 1
        code = _INT_ENTER_64 if address >> 32 else _INT_ENTER
        in_kernel_or_address = 1 if self.target.is_old else address
        words = self._words(code, {"interrupt_number": vector, "ip": in_kernel_or_address})
        self._interrupt(cpu, time, vector, code, words)

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Emit the exit of an interrupt."""
        words = self._words(
            _INT_EXIT, {"interrupt_number": vector, "kernel_flag": kernel_flags, "inkernel": kernel_flags}
        )
        self._interrupt(cpu, time, vector, _INT_EXIT, words)
        if self.buffers is not None and self.buffers.in_interrupt:
            self.buffers.leave_interrupt(time)

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Emit the entry of an interrupt handler, which always takes several slots; from 6.4 on."""
        if self.target.is_old:
            return
        code = _HANDLER_ENTER_64 if address >> 32 else _HANDLER_ENTER
        words = self._words(
            code, {"pid": process.pid, "interrupt_number": vector, "ip": address, "area": _HANDLER_AREA}
        )
        self._interrupt(cpu, time, vector, code, words)

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Emit the exit of an interrupt handler with the sigevent that it returned, or with zeros; from 6.4 on."""
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
        """Emit the delivery of an interrupt to its service thread (8.0)."""
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
        """Emit the expiry of a timer, from 6.6 on."""
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
        """Emit the mapping of memory; the event has a name only if a file is mapped."""
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
        """Emit a SYSTEM event by its name in listings; nothing if the release does not have the event."""
        code = self._payloads.system_code(name)
        if code is not None:
            self._system(cpu, time, code, values)

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Emit the resolution of a path name."""
        name = name_bytes(text)
        self._system(cpu, time, _SYS["PATHMGR"], {**_owner(thread), "path": name, "pathname": name})

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Emit the attachment of a service thread to an interrupt (8.0)."""
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
        area: The program's own data, never changed here.
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


class HandlerHost(Protocol):
    """Runs the event handlers of programs; exceptions raised by a handler do not end the simulation."""

    def call_handler(self, handler: KernelHandler) -> int:
        """Call the handler's function with the data that is already filled in; return the function's result."""


@dataclass(slots=True, eq=False)
class KernelHandler:
    """An event handler attached by a program, in the form of a dynamic rule that the kernel's rule set calls.

    Attributes:
        function: The program's function; a generator function may yield TraceEvent() calls.
        data: The program's data, filled for each event.
        pid: Process that attached the handler; the handler is removed when the process ends.
        release: Determines which events have a pid and a tid.
        host: Calls the function.
    """

    function: EventHandler
    data: EventData
    pid: int
    release: Release
    host: HandlerHost

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
        return self.host.call_handler(self)


def finish(running: Generator[Any, int, Any], call: Callable[[Any], int]) -> int:
    """Run the generator of an event handler to its end and return its result.

    Args:
        running: The generator.
        call: Executes a yielded call; its OSError is raised in the generator at the `yield`.
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
        return None if call.is_silent(self.target) else self._payloads.number(call.name)

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Emit the entry of a kernel call."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number
        flags = self._flags[base] or self.find(base)
        if not flags & ON:
            return
        code, plan = self._payloads.form(number, bool(flags & WIDE), thread.process.bits == 64)
        words = encode(plan, call.arguments(thread), self.byte_order)
        if isinstance(call, TraceEvent) and flags & WIDE and not self._payloads.has_flag:
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
            code, plan = self._payloads.form(number + _EXIT, bool(flags & WIDE), thread.process.bits == 64)
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
        """Emit CREATE or DESTROY of a thread; in 6.x both have two words in fast and wide mode."""
        code = self._states[event]
        self._thread(cpu, time, thread, code, has_wide=len(self._payloads.plan(code, True)) > 2)

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
        """Emit a COMM event by name: a message, pulse or signal."""
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
