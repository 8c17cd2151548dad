"""Events of interrupts and of the system class: timers, partitions, inter-processor interrupts, path names.

Source of the payloads: kernel event trace format, sections 8.6 and 8.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from satview.capture.gate import ON, TESTED, WIDE, Gate
from satview.capture.payloads import call_payloads
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.events.words import WORD_MASK, encode, name_bytes, sigevent_words

if TYPE_CHECKING:
    from satview.capture.sim.parts.recorder import Mapping
    from satview.capture.sim.parts.sigevent import Sigevent
    from satview.capture.sim.parts.target import Target
    from satview.capture.sim.parts.threads import Partition, Process, Thread

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
    """The part of the emitter for interrupts and the system."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._payloads = call_payloads(target.release)

    def _words(self, code: int, values: dict[str, int | bytes], wide: bool = False) -> list[int]:
        """Return the payload of an event whose arguments have these values; others are 0, texts left out."""
        return encode(self._payloads.plan(code, wide), values, self.byte_order)

    @property
    def _has_newer_system(self) -> bool:
        """True from 6.6 on."""
        return self.target.release != Release.QNX_6

    # Interrupts

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Emit the entry of an interrupt."""
        self._enter_interrupt()
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

    def _enter_interrupt(self) -> None:
        if self.buffers is not None:
            self.buffers.in_interrupt += 1

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Emit the entry of a handler: always combine."""
        if self.target.is_old:
            return
        code = _HANDLER_ENTER_64 if address >> 32 else _HANDLER_ENTER
        words = self._words(
            code, {"pid": process.pid, "interrupt_number": vector, "ip": address, "area": _HANDLER_AREA}
        )
        self._interrupt(cpu, time, vector, code, words)

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Emit the exit of a handler with the event it returned, all zero if none."""
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
        """Emit the expiry of a timer; kernels before 6.6 do not."""
        if self._has_newer_system:
            self._system(cpu, time, _SYS["TIMER"], {**_owner(thread), "timer_id": ident, "flags": flags})

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit an inter-processor interrupt; kernels before 6.6 do not."""
        if self._has_newer_system:
            address = 0x8048000 + thread.tid * 0x150
            code = _IPI_64 if self.target.is_64bit else _SYS["IPI"]
            self._system(cpu, time, code, {"ipicmd": _IPI_RESCHEDULE, "interrupted_ip": address, **_owner(thread)})

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """Emit the bankruptcy of a partition."""
        pid, tid = culprit = (thread.process.pid, thread.tid)
        values: dict[str, int | bytes] = {"pid": pid, "tid": tid, "partition_id": partition.ident}
        if self._has_newer_system:
            values = {"suspect_pid": pid, "suspect_tid": tid, "partition_id": partition.ident}
        self._system(cpu, time, _SYS["APS_BNKR"], values, culprit)

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Emit that memory has been mapped; a mapping without a file has no name."""
        values: dict[str, int | bytes] = {
            "pid": process.pid,
            "vaddr": address,
            "addr": address,
            "len": call.length,
            "flags": call.flags,
            "prot": call.prot,
            "fd": 3 if call.file else WORD_MASK,
        }
        if call.file:
            values["path"] = values["name"] = name_bytes(call.file)
        self._memory(cpu, time, "MMAP", values)

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Emit that memory has been given back."""
        self._memory(cpu, time, "MUNMAP", {"pid": process.pid, "vaddr": address, "addr": address, "len": length})

    def _memory(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        if not self.target.is_old:
            self._system(cpu, time, _SYS[name], values)

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Emit the resolution of a path name."""
        name = name_bytes(text)
        self._system(cpu, time, _SYS["PATHMGR"], {**_owner(thread), "path": name, "pathname": name})

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Emit that a thread has become an interrupt's service thread (8.0)."""
        self._system(
            cpu,
            time,
            _SYS["IST_ATTACH"],
            {**_owner(thread), "intr_id": ident, "intr_cpu": interrupt_cpu, "ist_prio": thread.priority},
        )

    def partition(self, cpu: int, time: Callable[[], int], partition: Partition) -> None:
        """Emit name and budget of a partition, for the state dump."""
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
