"""Events of interrupts and of the system class: timers, partitions, inter-processor interrupts, path names.

Source of the payloads: kernel event trace format, sections 8.6 and 8.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from satview.capture.gate import ON, TESTED, WIDE, Gate
from satview.capture.payloads import text_words
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import WireClass

if TYPE_CHECKING:
    from satview.capture.sim.calls import Mmap, Sigevent
    from satview.capture.sim.threads import Partition, Process, Thread

_LOW = 0xFFFFFFFF
_INT_ENTER, _INT_EXIT, _HANDLER_ENTER, _HANDLER_EXIT = (wire.code(WireClass.INT, i) for i in range(1, 5))
_INT_ENTER_64, _HANDLER_ENTER_64, _DELIVER = (wire.code(WireClass.INT, i) for i in range(5, 8))
_SYS = {name: wire.code(WireClass.SYSTEM, number) for name, number in (
    ("PATHMGR", 2), ("APS_NAME", 3), ("APS_BUDGETS", 4), ("APS_BNKR", 5), ("MMAP", 6), ("MUNMAP", 7), ("IPI", 16),
    ("TIMER", 18), ("IST_ATTACH", 29))}
_IPI_64 = wire.code(WireClass.SYSTEM, 0x210)
_IPI_RESCHEDULE = 0x1


class SystemEvents(Gate):
    """The part of the emitter for interrupts and the system."""

    @property
    def _has_newer_system(self) -> bool:
        """True from 6.6 on."""
        return self.target.release != Release.QNX_6

    # Interrupts

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Emit the entry of an interrupt."""
        self._enter_interrupt()
        if address >> 32:
            code, words = _INT_ENTER_64, [vector, 0, *self._double(address)]
        else:
            code, words = _INT_ENTER, [vector, 1 if self.target.is_old else address]
        self._interrupt(cpu, time, vector, code, words)

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Emit the exit of an interrupt."""
        self._interrupt(cpu, time, vector, _INT_EXIT, [vector, kernel_flags])
        if self.buffers is not None and self.buffers.in_interrupt:
            self.buffers.leave_interrupt(time)

    def _enter_interrupt(self) -> None:
        if self.buffers is not None:
            self.buffers.in_interrupt += 1

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Emit the entry of a handler: always combine."""
        if self.target.is_old:
            return
        area = 0x8060000
        if address >> 32:
            words = [process.pid, vector, *self._double(address), *self._double(area)]
            self._interrupt(cpu, time, vector, _HANDLER_ENTER_64, words)
        else:
            self._interrupt(cpu, time, vector, _HANDLER_ENTER, [process.pid, vector, address, area])

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Emit the exit of a handler with the event it returned, all zero if none."""
        if self.target.is_old:
            return
        words = [vector, 0, 0, 0, 0]
        if event is not None:
            words[1:] = [event.notify, event.coid or event.signo, event.value,
                         (event.priority & 0xFFFF) << 16 | event.code & 0xFFFF]
        self._interrupt(cpu, time, vector, _HANDLER_EXIT, words)

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """Emit the delivery of an interrupt to its service thread (8.0)."""
        self._interrupt(cpu, time, ident, _DELIVER, (ident, 0))

    def _interrupt(self, cpu: int, time: int, vector: int, code: int, words: Sequence[int]) -> None:
        flags = self.vector_flags(code, vector)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, words)):
            self.put(cpu, code, time, words)

    def _double(self, value: int) -> tuple[int, int]:
        halves = (value & _LOW, value >> 32 & _LOW)
        return halves[::-1] if self.target.big_endian else halves

    # System

    def _system(self, cpu: int, time: int, name: str, words: Sequence[int], tested: tuple[int, int] | None = None,
                code: int = 0) -> None:
        code = code or _SYS[name]
        flags = self.flags(code)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, words, None, tested)):
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
        culprit = (thread.process.pid, thread.tid)
        self._system(cpu, time, "APS_BNKR", (*culprit, partition.ident), culprit)

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mmap) -> None:
        """Emit that memory has been mapped; a mapping without a file has no name."""
        words = [process.pid, *self._double(address), *self._double(call.length), call.flags]
        if self.flags(_SYS["MMAP"]) & WIDE:
            descriptor = 3 if call.file else _LOW
            words += [call.prot, descriptor, *self._double(0), *self._double(0)]
            words += text_words(call.file, self.byte_order) if call.file else []
        self._memory(cpu, time, "MMAP", words)

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Emit that memory has been given back."""
        self._memory(cpu, time, "MUNMAP", [process.pid, *self._double(address), *self._double(length)])

    def _memory(self, cpu: int, time: int, name: str, words: Sequence[int]) -> None:
        if not self.target.is_old:
            self._system(cpu, time, name, words)

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
