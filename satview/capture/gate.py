"""The gate that every event passes: the kernel's rule set, then the buffers.

Order of tests: class and event mask, pid and tid, class handler, event handler, tracing on, buffer available. Source:
capture side, section 3.5. Rules are decided by `filters.rules.RuleSet` alone; the gate supplies what the kernel knows
of an event, and caches per code what only a change of the rules can change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from satview.base.time import NS_PER_S
from satview.capture.buffers import Buffer, TraceBuffers
from satview.capture.sim.parts.target import Target
from satview.events import wire
from satview.events.words import WORD_MASK
from satview.filters.event_context import EventContext
from satview.filters.rules.handlers import HANDLER_LIMIT, OLD_HANDLER_LIMIT
from satview.filters.rules.rule_set import RuleSet

if TYPE_CHECKING:
    from satview.capture.sim.machine.machine import Machine
    from satview.capture.sim.parts.threads import Thread

ON, WIDE, TESTED = 1, 2, 4
_FOUND = 8


class _KernelContext(EventContext):
    """What the kernel knows of an event at this moment; most values are computed only if a condition reads them."""

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
    """Decides for every event whether it is recorded, and writes it.

    Attributes:
        rules: The rules set by TraceEvent(), in the same form as rules for views.
        buffers: Receives the slots; None until ALLOCBUFFER.
        is_tracing: Between START and STOP.
        emitted: Number of events written.
        origin: Stamp that is time 0 in conditions: of the first event after START; None before it.
        watch: Called with each logged event whose code is `watched`, its stamp, and its time by the machine's clock;
            None = not used.
        watched: For each code whether `watch` is called.
        running: Thread that runs according to the trace, by CPU: the last one that entered RUNNING there.
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
        """Set the machine to record; needed for interrupts between slots."""
        self._machine = machine

    def allocate(self, count: int, hand_over: Callable[[Buffer], None]) -> TraceBuffers:
        """Create the kernel buffers and return them."""
        if self._machine is None:
            raise AssertionError("connect() comes first")
        self.buffers = TraceBuffers(
            self.target, count, hand_over, self._time_passes, self._machine.poll_nested, self._machine.truth.skew_cycles
        )
        return self.buffers

    # Cached decisions of the rules

    def flags(self, code: int) -> int:
        """Return ON, WIDE and TESTED (a pid or tid is checked or a handler called) of a code; not for interrupts."""
        return self._flags[code] or self.find(code)

    def vector_flags(self, code: int, vector: int) -> int:
        """Return ON and TESTED of an interrupt event for a vector."""
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
        """Compute and cache `flags` of a code."""
        rules = self.rules
        flags = _FOUND | (ON if rules.is_on(rules.address(code), code) else 0)
        flags |= (WIDE if rules.is_wide(code) else 0) | (TESTED if rules.is_tested(code) else 0)
        self._flags[code] = flags
        return flags

    # The way into the buffers

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event that passed all filters; return False if tracing is off or there is no buffer."""
        if not self.is_tracing or self.buffers is None:
            return False
        self.emitted += 1
        is_written = self.buffers.put(cpu, code, time, words, flags)
        if self.watched[code] and self.watch is not None:
            self.watch(self._logged(cpu, code, time, words), self._stamped(cpu, time), time)
        return is_written

    def _logged(self, cpu: int, code: int, time: int, words: Sequence[int]) -> EventContext:
        """Return the context of a logged event; a thread state event belongs to the thread in it."""
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
            cpu: CPU that logs it.
            code: Class and event as they will be in the slot.
            time: Its stamp in cycles, by the machine's clock.
            words: Payload in the form that will be logged.
            thread: The thread it belongs to; None = the thread that runs on the CPU.
            tested: (pid, tid) to compare with the settings; None = those of the thread.
        """
        if thread is not None and tested is None:
            tested = (thread.process.pid, thread.tid)
        rules = self.rules
        if tested is not None:
            known = rules.passes_thread(code, tested)
            if known is not None:
                return known
        whose = thread or self.running[cpu]
        context = _KernelContext(self, code, cpu, time, *_padded(words), whose, tested)
        return rules.call_handlers(context) if tested is not None else rules.passes_tests(context)

    def begins_at(self, cpu: int, time: int) -> None:
        """Take the stamp of an event as time 0 if it is the first one after START."""
        if self.origin is None:
            self.origin = self._stamped(cpu, time)

    def time_ns(self, cpu: int, time: int) -> int:
        """Return the nanoseconds from START to a stamp, rounded down; 0 before START."""
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
    """Return payload words with padding, and their number without it, at least 2."""
    count = len(words)
    if count == 2:
        return (words[0] & WORD_MASK, words[1] & WORD_MASK), count
    count = max(2, count)
    return (*[word & WORD_MASK for word in words], *(0,) * (count + count % 2 - len(words))), count
