"""The one emit point: everything a machine reports becomes an event here, or is filtered out.

Source of the payloads: kernel event trace format, sections 8.2 to 8.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.emit_system import SystemEvents
from satview.capture.gate import ON, TESTED, WIDE
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.parts.target import Target
from satview.events import naming, wire
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.events.words import encode, name_bytes, text_words
from satview.filters.event_context import NOT_TESTED
from satview.filters.external import COMM_NAMES

if TYPE_CHECKING:
    from satview.capture.sim.parts.threads import PendingCall, Process, Thread

_LOW = 0xFFFFFFFF
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
    """Writes what happens in a machine as slots."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._states = {
            name: wire.code(WireClass.PR_TH, number) for name, number in naming.state_numbers(target.release).items()
        }

    # Kernel calls

    def _number(self, call: PendingCall) -> int | None:
        """Return the number of a call, None if the kernel logs nothing of it."""
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
        """Emit the exit of a kernel call; a failed one has -1 and the error number."""
        number = self._number(call)
        if number is None:
            return
        base = _KER | number + _EXIT
        flags = self._flags[base] or self.find(base)
        if not flags & ON:
            return
        if thread.exit_error:
            code, words = base, [_LOW, thread.exit_error]
        else:
            code, plan = self._payloads.form(number + _EXIT, bool(flags & WIDE), thread.process.bits == 64)
            words = encode(plan, thread.exit_values, self.byte_order)
        if not flags & TESTED or self.admit(cpu, code, time, words, thread):
            self.put(cpu, code, time, words)

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Emit what replaces an exit when the call's arguments are gone; the exit's mask decides."""
        number = self._number(call)
        if number is None:
            return
        code = _KER | number + _INTERRUPTED
        flags = self._flags[code] or self.find(code)
        if flags & ON and (not flags & TESTED or self.admit(cpu, code, time, (0, 0), thread)):
            self.put(cpu, code, time, (0, 0))

    # Threads and processes

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit the state a thread enters."""
        if thread.state == "RUNNING":
            self.running[cpu] = thread
        code = self._states.get(thread.state)
        if code is not None:
            self._thread(cpu, time, thread, code)

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """Emit CREATE or DESTROY; in 6.x they have two words in either mode."""
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

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """Emit a thread's name."""
        self._process(cpu, time, wire.PROC_THREAD_NAME, (thread.process.pid, thread.tid), thread.name)

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """Emit the creation or end of a process, with or without its name."""
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
        """Emit a message, pulse or signal."""
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
