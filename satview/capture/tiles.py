"""Writes very long traces in bounded memory: simulates one rollover period of the stamp, and writes it repeatedly.

A repetition, called a tile, is exactly 2^32 cycles long, so that stamps are the same in all tiles. Only the upper half
of the time in TIME events and the sequence numbers of buffers differ; they are computed as columns. At the end of a
tile, state events restore every thread's state at the start of the tile, so that the states of a thread are consistent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, UsageError
from satview.base.time import NS_PER_S
from satview.capture import control
from satview.capture.buffers import Buffer
from satview.capture.files import KevFile
from satview.capture.kernel import Kernel
from satview.capture.run import findings
from satview.capture.sim.parts.target import Target, target
from satview.capture.sim.parts.threads import Thread
from satview.capture.trace_event import mode
from satview.capture.workloads.registry import find
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.writer import slot_array

# Receives full kernel buffers in memory, without a simulated logger.


class MemorySink:
    """Collects the slots of full buffers in memory without taking simulated time; call it with each buffer."""

    def __init__(self) -> None:
        self._words = array("I") if array("I").itemsize == 4 else array("L")
        self.buffers = 0

    def __call__(self, buffer: Buffer) -> None:
        """Copy the slots of a full buffer, and empty the buffer."""
        self._words.extend(buffer.words)
        self.buffers += 1
        buffer.empty()

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots so far, shape (n, 4), uint32 in host order."""
        return slot_array(self._words)


ROLLOVER_CYCLES = 1 << 32
MAX_EVENTS = 2_000_000_000
_MARGIN_NS = 400_000  # reserved at the end of a tile for unfinished events and the closing state events

_MAX_TILE_NS = 6_000_000_000


@dataclass(frozen=True, slots=True)
class Tile:
    """The repeated part of a trace, and the part before it.

    Attributes:
        target: The simulated target.
        head: Slots of the state dump at the start of the trace, shape (h, 4), uint32.
        slots: Slots of one rollover period, shape (n, 4), uint32.
        events, head_events: Number of events in `slots` and in `head`.
        buffers: Number of buffers in `slots`, by CPU; up to 7.x, where all CPUs share the buffers, the total for each.
        started_cycles: Start of the capture.
        findings: Problems of the workload, one sentence each.
    """

    target: Target
    head: NDArray[np.uint32]
    slots: NDArray[np.uint32]
    events: int
    head_events: int
    buffers: NDArray[np.int64]
    started_cycles: int
    findings: Sequence[str] = ()


def count_events(slots: NDArray[np.uint32]) -> int:
    """Return the number of events in slots: all slots except continuations."""
    return int(np.count_nonzero(slots[:, 0] >> wire.STRUCT_SHIFT < wire.Struct.COMBINE_CONTINUE))


def make_tile(
    workload: str = "automotive",
    seed: int = 1,
    cpus: int = 0,
    release: Release = Release.QNX_7,
    is_wide: bool = False,
    cancelled: Callable[[], bool] | None = None,
) -> Tile:
    """Simulate a workload for one rollover period of the stamp and return the result as a tile.

    Raises:
        Cancelled: `cancelled()` returned True.
        UsageError: There is no such workload, or the clock is so slow that simulating a period takes too long.
        CaptureError: The simulation made no progress.
    """
    selected = find(workload)
    kernel = Kernel(target(release, cpus or selected.cpus), seed)
    machine, call, sink = kernel.machine, kernel.trace_event, MemorySink()
    if ROLLOVER_CYCLES * NS_PER_S // machine.target.cycles_per_s > _MAX_TILE_NS:
        raise UsageError("the clock of this target is too slow for tiles")
    selected.setup(kernel)
    call(mode("ALLOCBUFFER"), 64, [])
    kernel.control.hook = sink
    call(mode("ADDALLCLASSES"))
    call(mode("SETALLCLASSESWIDE" if is_wide else "SETALLCLASSESFAST"))
    with control.advancing(machine, selected.name):
        machine.run(machine.now + machine.target.cycles(selected.lead_in_ns), cancelled)
        started = machine.now
        call(mode("START"))
        call(mode("FLUSHBUFFER"))
        head = len(sink.slots())
        before = _states(kernel)
        machine.run(machine.now + ROLLOVER_CYCLES - machine.target.cycles(_MARGIN_NS), cancelled)
    if cancelled is not None and cancelled():
        raise Cancelled("stopped before there was anything to write")
    faults = findings(machine)
    _seam(kernel, before)
    call(mode("FLUSHBUFFER"))
    slots = sink.slots()
    return Tile(
        machine.target,
        slots[:head],
        slots[head:],
        count_events(slots[head:]),
        count_events(slots[:head]),
        _buffers_by_cpu(slots[head:], machine.target),
        started,
        faults,
    )


def _buffers_by_cpu(slots: NDArray[np.uint32], kind: Target) -> NDArray[np.int64]:
    """Return for each CPU by how much its buffers' sequence numbers increase within the slots: int64, shape (CPUs,)."""
    begins = slots[slots[:, 0] & wire.CODE_MASK == wire.CONTROL_BUFFER, 0]
    counts = np.bincount(begins >> wire.CPU_SHIFT & wire.CPU_MASK, minlength=kind.cpus)
    return counts if kind.has_buffer_end else np.full(len(counts), counts.sum())


def _states(kernel: Kernel) -> dict[Thread, tuple[str, int]]:
    return {
        thread: (thread.state, thread.cpu)
        for process in kernel.machine.processes.values()
        for thread in process.threads.values()
    }


def _seam(kernel: Kernel, before: dict[Thread, tuple[str, int]]) -> None:
    """Emit the thread states from the start of the tile; RUNNING comes last, when the CPUs are free."""
    changed = [(thread, *state) for thread, state in before.items() if (thread.state, thread.cpu) != state]
    for thread, state, cpu in sorted(changed, key=lambda entry: entry[1] == "RUNNING"):
        thread.state = state
        kernel.emitter.thread_state(max(cpu, 0), kernel.machine.stamp(), thread)


def write_tiles(
    path: Path | str,
    events: int,
    tile: Tile,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    attributes: Sequence[tuple[str, str]] = (),
) -> int:
    """Write a trace of at least `events` events that ends with a whole buffer; return the actual number of events.

    Memory use does not depend on the number of events: only the tile and one copy of it are in memory.

    Raises:
        UsageError: `events` is not 1 to 2 * 10^9.
        CaptureError: The file cannot be written.
        Cancelled: `cancelled()` returned True; the file so far can be opened.
    """
    if not 1 <= events <= MAX_EVENTS:
        raise UsageError(f"{events} events: 1 to {MAX_EVENTS}")
    kinds = tile.slots[:, 0] & wire.CODE_MASK
    times, begins = np.flatnonzero(kinds == wire.CONTROL_TIME), np.flatnonzero(kinds == wire.CONTROL_BUFFER)
    step = tile.buffers[tile.slots[begins, 0] >> wire.CPU_SHIFT & wire.CPU_MASK]
    scratch = tile.slots.copy()
    needed = max(0, events - tile.head_events)
    tiles = -(-needed // tile.events)
    written = tile.head_events
    is_stopped = False
    with KevFile(Path(path), tile.target, tile.started_cycles, attributes) as file:
        file.write(tile.head)
        for number in range(tiles):
            is_stopped = cancelled is not None and cancelled()
            if is_stopped:
                break
            scratch[times, 2] = tile.slots[times, 2] + np.uint32(number)
            scratch[begins, 2] = (tile.slots[begins, 2] + number * step & 0xFFFFFFFF).astype(np.uint32)
            left = needed - number * tile.events
            part = scratch if left >= tile.events else scratch[: _end_of_buffer(tile.slots, begins, left)]
            file.write(part)
            written += tile.events if part is scratch else count_events(part)
            if progress is not None:
                progress((number + 1) / tiles)
    if is_stopped:
        raise Cancelled(f"stopped after {written} of {events} events; what is written can be opened")
    return written


def _end_of_buffer(slots: NDArray[np.uint32], begins: NDArray[np.intp], events: int) -> int:
    """Return the number of slots up to the end of the buffer that contains the event with number `events`.

    A buffer end at which an event continues in its CPU's next buffer does not count; the next suitable one is used.
    """
    starts = np.flatnonzero(slots[:, 0] >> wire.STRUCT_SHIFT < wire.Struct.COMBINE_CONTINUE)
    slot = int(starts[events - 1])
    struct = slots[:, 0] >> wire.STRUCT_SHIFT
    # Begins minus ends of combine events: 0 where none is open.
    open_events = np.cumsum((struct == wire.Struct.COMBINE_BEGIN).astype(np.int8) - (struct == wire.Struct.COMBINE_END))
    after = begins[np.searchsorted(begins, slot, side="right") :]
    after = after[open_events[after - 1] == 0]
    return int(after[0]) if len(after) else len(slots)
