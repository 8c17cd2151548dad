"""The kernel's trace buffers: rings of buffers, high-water mark, linear and ring mode, and lost buffers.

Source of the rules: capture side, section 4; kernel event trace format, sections 3.2, 5.2 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from satview.capture.sim.target import Target
from satview.events import wire
from satview.events.variants import WORD_MASK

_BEGIN, _CONTINUE, _END = (kind << wire.STRUCT_SHIFT for kind in (1, 2, 3))
EARLY_CYCLES = 0x32C  # in 6.x the clock for a TIME payload is read this many cycles before the slot's stamp


class Buffer:
    """One buffer of 16 KiB.

    Attributes:
        words: Slot words, four per slot, in host byte order.
        is_full: The buffer has been handed over, and the logger has not copied it yet.
        is_busy: The logger is copying the buffer.
        close_number: Position in the order in which the buffers of the ring were closed, from 1; 0 = never closed.
    """

    __slots__ = ("close_number", "index", "is_busy", "is_full", "sequence", "words")

    def __init__(self, index: int) -> None:
        self.index = index
        self.words: list[int] = []
        self.sequence = 0
        self.is_full = False
        self.is_busy = False
        self.close_number = 0

    @property
    def slots(self) -> int:
        """Number of slots in use."""
        return len(self.words) >> 2

    def empty(self) -> None:
        """Discard all slots and clear `is_full`."""
        self.words = []
        self.is_full = False


class BufferRing:
    """A ring of buffers. The kernel has one ring for all CPUs; in 8.0 it has a ring for each CPU.

    Attributes:
        skew_cycles: Offset of the CPU's stamps from the machine's clock.
        current: The buffer being filled; None until the next event acquires a buffer.
        dropped_events: Number of events, whole or cut short, that were dropped for lack of a buffer.
        lost_buffers: Number of full buffers that were discarded before the logger copied them.
    """

    def __init__(
        self, target: Target, count: int, cpu: int, hand_over: Callable[[Buffer], None], skew_cycles: int = 0
    ) -> None:
        self.target = target
        self.cpu = cpu
        self.skew_cycles = skew_cycles
        self.buffers = [Buffer(cpu * count + i) for i in range(count)]
        self.hand_over = hand_over
        self.current: Buffer | None = None
        self.is_ring = False
        self.skips = False
        self.sequence = 0
        self.dropped_events = 0
        self.lost_buffers = 0
        self.closed = 0
        self.must_report_drop = False
        self._position = -1
        self.mark = target.mark_linear

    def set_mode(self, is_ring: bool) -> None:
        """Set ring or linear mode, and empty all buffers."""
        self.is_ring = is_ring
        self.mark = self.target.mark_ring if is_ring else self.target.mark_linear
        for buffer in self.buffers:
            buffer.empty()
            buffer.is_busy = False
        self.current = None
        self._position = -1

    def acquire(self) -> Buffer | None:
        """Make the next buffer the current one and return it; None if no buffer is free, so the event is dropped."""
        count = len(self.buffers)
        position = (self._position + 1) % count
        if not self.is_ring:
            for _ in range(2):
                if not self.buffers[position].is_full or not (self.buffers[position].is_busy or self.skips):
                    break
                position = (position + 1) % count
        buffer = self.buffers[position]
        if buffer.is_busy:
            return None
        if buffer.is_full:
            self.lost_buffers += 1
        self._position = position
        buffer.empty()
        self.sequence = self.sequence + 1 & WORD_MASK
        buffer.sequence = self.sequence
        self.current = buffer
        return buffer

    def close(self, stamp: int, sequence: int | None = None, hand_over: bool = True) -> None:
        """Close the current buffer; with `hand_over`, write its slot count into its first slot and hand it over.

        `stamp` is that of BUFFER_END (8.0); `sequence` replaces the sequence number of the buffer.
        """
        buffer = self.current
        if buffer is None:
            return
        if self.target.has_buffer_end:
            cookie = wire.BUFFER_END_COOKIE
            buffer.words += (wire.CONTROL_BUFFER_END | self.cpu << wire.CPU_SHIFT, stamp & WORD_MASK, cookie, cookie)
        if sequence is not None:
            buffer.words[2] = buffer.sequence = sequence
        self.current = None
        self.closed += 1
        buffer.close_number = self.closed
        if hand_over:
            if not self.target.is_old:
                buffer.words[3] = buffer.slots
            buffer.is_full = True
            self.hand_over(buffer)

    def end(self, stamp: int) -> None:
        """Hand over the current buffer of a stopped ring, or the newest one if an event has just filled it.

        A logger in ring mode waits for this hand-over alone, so there is one without any event too.
        """
        if self.current is not None:
            self.close(stamp)
        else:
            self.hand_over(self.buffers[self._position])

    def flush(self, stamp: int) -> None:
        """Hand over the current buffer; in ring mode after STOP, hand over the newest buffer once more."""
        if self.is_ring and self.current is None:
            if self.buffers[self._position].words:
                self.hand_over(self.buffers[self._position])
        else:
            self.close(stamp)

    def oldest_first(self) -> list[Buffer]:
        """Return the buffers that are not empty, oldest first, which is the order in which a ring is saved."""
        count = len(self.buffers)
        ordered = [self.buffers[(self._position + 1 + i) % count] for i in range(count)]
        return [buffer for buffer in ordered if buffer.words]


class TraceBuffers:
    """Writes events as slots into the kernel's rings of buffers.

    Args:
        target: Specifies buffer sizes and high-water marks.
        count: Number of buffers per ring.
        hand_over: Called with every full buffer.
        time_enabled: Called with CPU, time and payload of a TIME event; returns whether the event passes the filters.
        between_slots: Called between two slots of an event, where interrupts may occur.
        skew_cycles: Offset of each CPU's stamps from the machine's clock.
    """

    def __init__(
        self,
        target: Target,
        count: int,
        hand_over: Callable[[Buffer], None],
        time_enabled: Callable[[int, int, tuple[int, int]], bool],
        between_slots: Callable[[], None],
        skew_cycles: Sequence[int] = (),
    ) -> None:
        rings = target.cpus if target.has_buffer_end else 1
        self.target = target
        skews = skew_cycles or (0,) * target.cpus
        self.rings = [BufferRing(target, count, cpu, hand_over, skews[cpu]) for cpu in range(rings)]
        self._time_enabled = time_enabled
        self._between_slots = between_slots
        self.skew_cycles = skews
        self._per_cpu = target.has_buffer_end
        self._limit = target.slots_per_buffer - (1 if target.has_buffer_end else 0)
        self._last_low = [0] * target.cpus
        self._timed = [-1] * target.cpus  # by CPU: sequence number of the buffer with its last TIME event
        self.in_interrupt = 0

    @property
    def dropped_events(self) -> int:
        """Number of events, whole or cut short, that were dropped for lack of a buffer."""
        return sum(ring.dropped_events for ring in self.rings)

    @property
    def lost_buffers(self) -> int:
        """Number of full buffers that were discarded before the logger copied them."""
        return sum(ring.lost_buffers for ring in self.rings)

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event; return False if the event, or its last slots, had to be dropped."""
        ring = self.rings[cpu if self._per_cpu else 0]
        header = code | cpu << wire.CPU_SHIFT | flags
        time += self.skew_cycles[cpu]
        stamp = time & WORD_MASK
        if not self._open(ring, cpu, time):
            return False
        count = len(words)
        if count <= 2:
            low, high = (words[0], words[1]) if count == 2 else (words[0], 0) if count else (0, 0)
            return self._slot(ring, cpu, (header, stamp, low & WORD_MASK, high & WORD_MASK))
        last = count - 2 + count % 2
        for i in range(0, last + 1, 2):
            kind = _BEGIN if i == 0 else _END if i == last else _CONTINUE
            high = words[i + 1] & WORD_MASK if i + 1 < count else 0
            if not self._slot(ring, cpu, (header | kind, stamp, words[i] & WORD_MASK, high)):
                return False
            if kind != _END:
                self._between_slots()
        return True

    def _open(self, ring: BufferRing, cpu: int, time: int) -> bool:
        """Ensure that the current buffer exists and has a TIME event of the CPU; return False if no buffer is free."""
        low = time & WORD_MASK
        buffer = ring.current
        if buffer is None:
            buffer = self._begin(ring, cpu, low)
            if buffer is None:
                return False
        is_new = self._timed[cpu] != buffer.sequence and not self.target.is_old
        must_report = is_new or low < self._last_low[cpu]
        self._last_low[cpu] = low
        if must_report:
            self._timed[cpu] = buffer.sequence
            self._put_time(ring, cpu, time)
            if ring.current is not buffer:  # TIME filled the buffer
                return self._open(ring, cpu, time)
        return True

    def _begin(self, ring: BufferRing, cpu: int, stamp: int) -> Buffer | None:
        buffer = ring.acquire()
        if buffer is None:
            ring.dropped_events += 1
            ring.must_report_drop = self._per_cpu
            return None
        if self.target.is_old:
            return buffer
        buffer.words += (wire.CONTROL_BUFFER | cpu << wire.CPU_SHIFT, stamp, buffer.sequence, 0)
        if ring.must_report_drop:
            ring.must_report_drop = False  # 8.0 reports dropped events; the payload is unknown
            buffer.words += (wire.CONTROL_DROPPED | cpu << wire.CPU_SHIFT, stamp, 0, 0)
        return buffer

    def time(self, cpu: int, time: int) -> None:
        """Write a TIME event, if it passes the filters."""
        self._put_time(self.rings[cpu if self._per_cpu else 0], cpu, time + self.skew_cycles[cpu])

    def _put_time(self, ring: BufferRing, cpu: int, time: int) -> None:
        early = time - EARLY_CYCLES if self.target.time_read_early else time
        payload = (early >> 32 & WORD_MASK, early & WORD_MASK)
        if self._time_enabled(cpu, time, payload):
            self._slot(ring, cpu, (wire.CONTROL_TIME | cpu << wire.CPU_SHIFT, time & WORD_MASK, *payload))

    def put_slot(self, cpu: int, slot: tuple[int, int, int, int], time: int) -> bool:
        """Write one slot unchanged; return False if it had to be dropped."""
        ring = self.rings[cpu if self._per_cpu else 0]
        return self._open(ring, cpu, time + self.skew_cycles[cpu]) and self._slot(ring, cpu, slot)

    def _slot(self, ring: BufferRing, cpu: int, slot: tuple[int, int, int, int]) -> bool:
        buffer = ring.current
        if buffer is None:
            buffer = self._begin(ring, cpu, slot[1])
            if buffer is None:
                return False
        if len(buffer.words) >> 2 >= self._limit:
            ring.dropped_events += 1
            return False
        buffer.words += slot
        if len(buffer.words) >> 2 >= ring.mark and not self.in_interrupt:
            ring.close(slot[1], hand_over=not ring.is_ring)
        return True

    def leave_interrupt(self, stamp: int) -> None:
        """Leave an interrupt; after the outermost one, close the full buffers whose closing it delayed."""
        self.in_interrupt -= 1
        if not self.in_interrupt:
            for ring in self.rings:
                if ring.current is not None and ring.current.slots >= ring.mark:
                    ring.close(stamp, hand_over=not ring.is_ring)
