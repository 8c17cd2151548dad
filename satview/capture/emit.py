"""The one emit point: everything a machine reports becomes an event here, or is filtered out.

Order of tests: class and event mask, pid and tid, class handler, event handler, tracing on, buffer available.
Source: capture side, section 3.5; payloads: kernel event trace format, section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from satview.capture.buffers import Buffer, TraceBuffers
from satview.capture.classes import Class
from satview.capture.payloads import call_payloads, encode, text_words
from satview.capture.settings import ON, WIDE, Settings
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.target import Target
from satview.events import naming, wire
from satview.events.spec import Release
from satview.events.wire import WireClass

if TYPE_CHECKING:
    from satview.capture.sim.calls import Call, Sigevent
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Partition, Process, Thread

_LOW = 0xFFFFFFFF
_EXIT, _INTERRUPTED = wire.KER_EXIT_OFFSET, wire.KER_INT_OFFSET
_KER = wire.code(WireClass.KER_CALL, 0)
COMM_EVENTS = ("SMSG", "SPULSE", "RMSG", "RPULSE", "SPULSE_EXE", "SPULSE_DIS", "SPULSE_DEA", "SPULSE_UN", "SPULSE_QUN",
               "SIGNAL", "REPLY", "ERROR")
_COMM = {name: wire.code(WireClass.COMM, i) for i, name in enumerate(COMM_EVENTS)}
_KERNEL_PULSES = frozenset(code for name, code in _COMM.items() if name.startswith("SPULSE_"))
_PROCESS = {"CREATE": wire.PROC_CREATE, "CREATE_NAME": wire.PROC_CREATE_NAME, "DESTROY": wire.PROC_DESTROY,
            "DESTROY_NAME": wire.PROC_DESTROY_NAME}
_INT_ENTER, _INT_EXIT, _HANDLER_ENTER, _HANDLER_EXIT = (wire.code(WireClass.INT, i) for i in range(1, 5))
_INT_ENTER_64, _HANDLER_ENTER_64, _DELIVER = (wire.code(WireClass.INT, i) for i in range(5, 8))
_SYS = {name: wire.code(WireClass.SYSTEM, number) for name, number in (
    ("PATHMGR", 2), ("APS_NAME", 3), ("APS_BUDGETS", 4), ("APS_BNKR", 5), ("IPI", 16), ("TIMER", 18),
    ("IST_ATTACH", 29))}
_IPI_64 = wire.code(WireClass.SYSTEM, 0x210)
# What the library calls instead where the kernel of a release has no such call.
_OLDER = {"SYNC_BARRIER_WAIT": "SYNC_CONDVAR_WAIT", "SYNC_RWLOCK": "SYNC_CONDVAR_WAIT", "SCHED_CTL": "SCHED_CTL"}
_INSERTS = frozenset((9, 30, 31, 32, 42, 43))   # modes that leave no kernel call behind, 6.4 on
_IPI_RESCHEDULE = 0x1


class Emitter:
    """Turns what happens in a machine into slots.

    Attributes:
        settings: What is on and for whom.
        buffers: Where slots go; None until ALLOCBUFFER.
        is_tracing: Between START and STOP.
        considered, emitted: Events that came by, and that were written.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.settings = Settings(target.release)
        self.buffers: TraceBuffers | None = None
        self.is_tracing = False
        self.emitted = 0
        self.byte_order = "big" if target.big_endian else "little"
        self._payloads = call_payloads(target.release)
        self._states = {name: wire.code(WireClass.PR_TH, number)
                        for name, number in naming.state_numbers(target.release).items()}
        self._has_newer_system = target.release != Release.QNX_6
        self._machine: Machine | None = None

    def connect(self, machine: Machine) -> None:
        """Tell the emitter which machine it records; needed for interrupts between slots."""
        self._machine = machine

    def allocate(self, count: int, hand_over: Callable[[Buffer], None]) -> None:
        """Make the kernel buffers."""
        if self._machine is None:
            raise AssertionError("connect() comes first")
        self.buffers = TraceBuffers(self.target, count, hand_over, self._time_passes, self._machine.poll_nested)

    # The way into the buffers

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event that has passed all filters, if tracing is on and there is a buffer."""
        if not self.is_tracing or self.buffers is None:
            return False
        self.emitted += 1
        return self.buffers.put(cpu, code, time, words, flags)

    def _admit(self, cpu: int, code: int, base: int, place: tuple[int, int, int], words: Sequence[int],
               feature_mask: int = 3) -> bool:
        """Ask pid and tid settings and handlers; `place` is (external class, pid, tid)."""
        cls, pid, tid = place
        if cls != Class.SYSTEM and not self.settings.owner_passes(base, pid, tid):
            return False
        return self._ask(cpu, code, (cls, base), words, (pid, tid), feature_mask)

    def _ask(self, cpu: int, code: int, place: tuple[int, int], words: Sequence[int], feature: tuple[int, int],
             feature_mask: int) -> bool:
        """Ask the class handler, then the event handler; both must let the event pass."""
        cls, event = place
        for key in ((cls, -1), (cls, event)):
            hook = self.settings.hooks.get(key)
            if hook is None:
                continue
            data = hook.data
            padded = list(words) + [0] * (2 - len(words))
            data.header = code | cpu << wire.CPU_SHIFT
            data.data_array[: len(padded)] = [word & _LOW for word in padded]
            data.el_num = len(padded)
            data.feature_mask = feature_mask
            if feature_mask:
                data.feature[:] = feature
            if not hook.function(data):
                return False
        return True

    def _time_passes(self, cpu: int, time: int, payload: tuple[int, int]) -> bool:  # noqa: ARG002
        code = wire.CONTROL_TIME
        if not self.settings.on[code] & ON:
            return False
        return not self.settings.watched[code] or self._ask(cpu, code, (Class.CONTROL, code), payload, (0, 0), 0)

    # Kernel calls

    def _number(self, call: Call) -> int | None:
        number = self._payloads.number(call.name)
        return number if number is not None else self._payloads.number(_OLDER.get(call.name, ""))

    def _is_silent(self, call: Call) -> bool:
        return isinstance(call, TraceEvent) and call.mode & 0x0FFFFFFF in _INSERTS and not self.target.is_old

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: Call) -> None:
        """Emit the entry of a kernel call."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number
        flags = self.settings.on[base]
        if not flags & ON or self._is_silent(call):
            return
        code, plan = self._payloads.form(number, bool(flags & WIDE), thread.process.bits == 64)
        words = encode(plan, call.values(thread), self.target.big_endian)
        if isinstance(call, TraceEvent) and flags & WIDE and not self._payloads.has_flag:
            words = [call.mode, *words[1 : max(1, call.mode >> 28)]]
        if self.settings.watched[base]:
            passes = self._admit(cpu, code, base, (Class.KERCALLENTER, thread.process.pid, thread.tid), words)
            if not passes:
                return
        self.put(cpu, code, time, words)

    def kernel_exit(self, cpu: int, time: int, thread: Thread, call: Call) -> None:
        """Emit the exit of a kernel call; a failed one has -1 and the error number."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number + _EXIT
        flags = self.settings.on[base]
        if not flags & ON or self._is_silent(call):
            return
        if thread.exit_error:
            code, words = base, [_LOW, thread.exit_error]
        else:
            code, plan = self._payloads.form(number + _EXIT, bool(flags & WIDE), thread.process.bits == 64)
            words = encode(plan, thread.exit_values, self.target.big_endian)
        if self.settings.watched[base]:
            passes = self._admit(cpu, code, base, (Class.KERCALLEXIT, thread.process.pid, thread.tid), words)
            if not passes:
                return
        self.put(cpu, code, time, words)

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: Call) -> None:
        """Emit what stands in place of an exit when the call's arguments are gone; the exit's mask decides."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number + _EXIT
        if self.settings.on[base] & ON and self.settings.owner_passes(base, thread.process.pid, thread.tid):
            self.put(cpu, _KER | number + _INTERRUPTED, time, (0, 0))

    # Threads and processes

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit the state a thread enters."""
        code = self._states.get(thread.state)
        if code is not None:
            self._thread(cpu, time, thread, code, self.settings.thread_wide)

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """Emit CREATE or DESTROY; in 6.x they have two words in either mode."""
        wide = self.settings.thread_wide and self.target.release != Release.QNX_6
        self._thread(cpu, time, thread, self._states[event], wide)

    def _thread(self, cpu: int, time: int, thread: Thread, code: int, wide: bool) -> None:
        if not self.settings.on[code] & ON:
            return
        pid, tid = thread.process.pid, thread.tid
        words: tuple[int, ...] = (pid, tid)
        if wide:
            words = (pid, tid, thread.priority, thread.policy)
            if thread.partition is not None:
                words = (*words, thread.partition.ident, 1 if thread.is_critical else 0)
        if self.settings.watched[code] and not self._admit(cpu, code, code, (Class.THREAD, pid, tid), words):
            return
        self.put(cpu, code, time, words)

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit a thread's name."""
        self._process(cpu, time, wire.PROC_THREAD_NAME, (thread.process.pid, thread.tid), thread.name)

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """Emit the creation or end of a process, with or without its name."""
        name = process.name if event.endswith("NAME") else None
        self._process(cpu, time, _PROCESS[event], (process.parent, process.pid), name)

    def _process(self, cpu: int, time: int, code: int, words: tuple[int, int], text: str | None) -> None:
        if not self.settings.on[code] & ON:
            return
        payload = [*words, *text_words(text, self.byte_order)] if text is not None else list(words)
        if self.settings.watched[code] and not self._ask(cpu, code, (Class.PROCESS, code), payload, (0, 0), 0):
            return
        self.put(cpu, code, time, payload)

    # Messages

    def comm(self, cpu: int, time: int, event: str, words: tuple[int, ...], pid: int, tid: int) -> None:
        """Emit a message, pulse or signal."""
        code = _COMM[event]
        mask = self.settings.on[_COMM["REPLY"] if event == "ERROR" else code]
        if not mask & ON:
            return
        if event == "SIGNAL":
            wide_count = 10 if self.target.release == Release.QNX_6 else 9
            words = (*words, 0)[:wide_count] if mask & WIDE else words[:2]
        if self.settings.watched[code]:
            is_kernels = code in _KERNEL_PULSES
            place = (int(Class.COMM), pid, 0 if is_kernels else tid)
            if not self._admit(cpu, code, code, place, words, 0 if is_kernels else 3):
                return
        self.put(cpu, code, time, words)

    # Interrupts

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Emit the entry of an interrupt."""
        self._enter_interrupt()
        if self.settings.interrupts[Class.INTENTER][vector & 0xFF]:
            if address >> 32:
                code, words = _INT_ENTER_64, [vector, 0, *self._double(address)]
            else:
                code, words = _INT_ENTER, [vector, 1 if self.target.is_old else address]
            self._interrupt(cpu, time, Class.INTENTER, vector, code, words)

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Emit the exit of an interrupt."""
        if self.settings.interrupts[Class.INTEXIT][vector & 0xFF]:
            self._interrupt(cpu, time, Class.INTEXIT, vector, _INT_EXIT, [vector, kernel_flags])
        if self.buffers is not None and self.buffers.in_interrupt:
            self.buffers.leave_interrupt(time)

    def _enter_interrupt(self) -> None:
        if self.buffers is not None:
            self.buffers.in_interrupt += 1

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Emit the entry of a handler: always combine."""
        if self.target.is_old or not self.settings.interrupts[Class.INT_HANDLER_ENTER][vector & 0xFF]:
            return
        area = 0x8060000
        if address >> 32:
            self.put(cpu, _HANDLER_ENTER_64, time, [process.pid, vector, *self._double(address), *self._double(area)])
        else:
            self.put(cpu, _HANDLER_ENTER, time, [process.pid, vector, address, area])

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Emit the exit of a handler with the event it returned, all zero if none."""
        if self.target.is_old or not self.settings.interrupts[Class.INT_HANDLER_EXIT][vector & 0xFF]:
            return
        words = [vector, 0, 0, 0, 0]
        if event is not None:
            words[1:] = [event.notify, event.coid or event.signo, event.value,
                         (event.priority & 0xFFFF) << 16 | event.code & 0xFFFF]
        self.put(cpu, _HANDLER_EXIT, time, words)

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """Emit the delivery of an interrupt to its service thread (8.0)."""
        if self.settings.interrupts[Class.INTENTER][ident & 0xFF]:
            self.put(cpu, _DELIVER, time, (ident, 0))

    def _interrupt(self, cpu: int, time: int, cls: Class, vector: int, code: int, words: list[int]) -> None:
        if cls not in self.settings.hooked or self._ask(cpu, code, (cls, vector), words, (0, 0), 0):
            self.put(cpu, code, time, words)

    def _double(self, value: int) -> tuple[int, int]:
        halves = (value & _LOW, value >> 32 & _LOW)
        return halves[::-1] if self.target.big_endian else halves

    # System

    def _system(self, cpu: int, time: int, name: str, words: Sequence[int], thread: Thread | None = None,
                feature_mask: int = 0, code: int = 0) -> None:
        base = _SYS[name]
        if not self.settings.on[base] & ON:
            return
        pid, tid = (thread.process.pid, thread.tid) if thread is not None else (0, 0)
        code = code or base
        place = (int(Class.SYSTEM), pid, tid)
        if self.settings.watched[base] and not self._admit(cpu, code, base, place, words, feature_mask):
            return
        self.put(cpu, code, time, words)

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """Emit the expiry of a timer; kernels before 6.6 do not."""
        if self._has_newer_system:
            self._system(cpu, time, "TIMER", (thread.process.pid, thread.tid, ident, flags))

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit an inter-processor interrupt; kernels before 6.6 do not."""
        if not self._has_newer_system:
            return
        address = 0x8048000 + thread.tid * 0x150
        if self.target.is_64bit:
            words = (_IPI_RESCHEDULE, 0, *self._double(address), thread.tid, thread.process.pid)
            self._system(cpu, time, "IPI", words, code=_IPI_64)
        else:
            self._system(cpu, time, "IPI", (_IPI_RESCHEDULE, address, thread.tid, thread.process.pid))

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """Emit the bankruptcy of a partition."""
        self._system(cpu, time, "APS_BNKR", (thread.process.pid, thread.tid, partition.ident), thread, 3)

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Emit the resolution of a path name."""
        self._system(cpu, time, "PATHMGR", [thread.process.pid, thread.tid, *text_words(text, self.byte_order)])

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Emit that a thread has become an interrupt's service thread (8.0)."""
        words = (thread.process.pid, thread.tid, ident, interrupt_cpu, 0, thread.priority)
        self._system(cpu, time, "IST_ATTACH", words)

    def partition(self, cpu: int, time: Callable[[], int], partition: Partition) -> None:
        """Emit name and budget of a partition, for the state dump."""
        self._system(cpu, time(), "APS_NAME", [partition.ident, *text_words(partition.name, self.byte_order)])
        words = [partition.ident, partition.budget_percent, partition.critical_ms]
        if self._has_newer_system:
            words += [100, 0, 100]
        self._system(cpu, time(), "APS_BUDGETS", words)
