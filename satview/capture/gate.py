"""Filters every event by the kernel's rule set, and writes the events that pass to the buffers.

Order of tests: class and event mask, pid and tid, class handler, event handler, tracing on, buffer available. Source:
capture side, section 3.5. `filters.rules.RuleSet` evaluates the rules; the gate passes it the kernel's data about an
event, and caches results that depend only on the event's code and the rules.
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
        """Return the flags ON, WIDE and TESTED (pids, tids or handlers must be checked) of a code without vector."""
        return self._flags[code] or self.find(code)

    def vector_flags(self, code: int, vector: int) -> int:
        """Return the flags ON and TESTED of an interrupt event with this vector."""
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
        """Compute, cache and return the flags of a code."""
        rules = self.rules
        flags = _CACHED | (ON if rules.is_on(rules.address(code), code) else 0)
        flags |= (WIDE if rules.is_wide(code) else 0) | (TESTED if rules.is_tested(code) else 0)
        self._flags[code] = flags
        return flags

    # The way into the buffers

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event that passed all filters; return False if tracing is off, or no buffer is free."""
        if not self.is_tracing or self.buffers is None:
            return False
        self.emitted += 1
        is_written = self.buffers.put(cpu, code, time, words, flags)
        if self.watched[code] and self.watch is not None:
            self.watch(self._logged(cpu, code, time, words), self._stamped(cpu, time), time)
        return is_written

    def _logged(self, cpu: int, code: int, time: int, words: Sequence[int]) -> EventContext:
        """Return the context of a logged event; a thread state event belongs to the thread named in its payload."""
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
    """Return the payload words padded to an even number, and their number before padding but at least 2."""
    count = len(words)
    if count == 2:
        return (words[0] & WORD_MASK, words[1] & WORD_MASK), count
    count = max(2, count)
    return (*[word & WORD_MASK for word in words], *(0,) * (count + count % 2 - len(words))), count
