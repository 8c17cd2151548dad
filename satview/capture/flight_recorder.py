"""A flight recorder: keeps the newest buffers in memory, and writes them to a file when a trigger hits.

The buffers come from a simulated kernel or over a connection; tracing never stops for the recorder. A trigger with STOP
ends the incident after as many further buffers as its KEEP specifies; further hits until then become marks in the same
file. Writing the file empties the ring, and with `every` the next incident begins: each buffer and each mark is in at
most one file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events import wire
from satview.filters.rules.triggers import Trigger
from satview.formats.kev.writer import SlotWriter

BUFFER_BYTES: Final = 16 << 10
_MAX_EXTRA_BUFFERS: Final = 4  # that a file may contain so that its last events are complete
_HEADER_BYTES: Final = 64 << 10  # upper limit for header, system page and names
_NAMES_PAUSE_S: Final = 2.5  # as in ring captures of 7.x: names after such a pause do not extend the trace
_MAX_NAMES: Final = 4096  # names of processes and threads in a file
_SIZE: Final = re.compile(r"(\d{1,12})\s*([kKmMgG]?)B?")
Slots = NDArray[np.uint32]


def disk_bytes(text: str, option: str) -> int:
    """Return a size such as `2GB` or `500M` in bytes, by powers of 1024.

    Raises:
        UsageError: The text is not a size.
    """
    size = _SIZE.fullmatch(text.strip())
    if size is None or not int(size[1]):
        raise UsageError(f"{option} {text[:40]}: must be a size, for example 500M or 2GB")
    return int(size[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[size[2].lower()]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a trigger.

    Attributes:
        trigger: The trigger.
        cycles: Time of the event that hit, by the target's clock.
    """

    trigger: Trigger
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a flight recorder.

    Attributes:
        buffers: Size of the ring: number of buffers before and after a trigger together.
        is_repeated: After writing a file, continue with the next incident.
        files: Maximum number of files to keep; the oldest are removed. 0 = no limit.
        disk_bytes: Total size of the files to keep; 0 = no limit.
    """

    buffers: int
    is_repeated: bool = False
    files: int = 0
    disk_bytes: int = 0

    def check(self, triggers: Sequence[Trigger]) -> None:
        """Check that the limits fit each other and the triggers.

        Raises:
            UsageError: They do not; the text includes the remedy.
        """
        keep = max((trigger.action.keep for trigger in triggers if trigger.action.stops), default=-1)
        if keep < 0:
            raise UsageError("the recorder needs a rule that ends an incident, as in WHEN ... THEN STOP")
        if keep >= self.buffers:
            raise UsageError(f"KEEP {keep} buffers: the ring has {self.buffers}, and the one with the trigger has to "
                             f"stay too; -k {keep + 1} or more")  # fmt: skip
        if (self.files or self.disk_bytes) and not self.is_repeated:
            raise UsageError("a number of files and a limit of the disk are for --every; without it there is one file")
        if 0 < self.disk_bytes < (size := (self.buffers + _MAX_EXTRA_BUFFERS) * BUFFER_BYTES + _HEADER_BYTES):
            raise UsageError(f"the limit of the disk is {self.disk_bytes:,} bytes, and one file of {self.buffers} "
                             f"buffers may take {size:,}")  # fmt: skip


class FlightRecorder:
    """A ring of buffers that is written to a file after each incident.

    Args:
        path: The file. With `bounds.is_repeated` each file gets a number: `incident-0001.kev` for `incident.kev`.
        bounds: Limits.
        write: Writes slots, shape (n, 4), and the hits in them to a file; raises SatviewError on failure.
        tell: Called with a sentence for each file.

    Attributes:
        files: Existing files, oldest first; files of earlier runs are neither counted nor removed.
        incidents: Number of files written.
        marks: Number of hits in the files written.
        is_done: Only one incident was requested, and its file is written.
    """

    def __init__(
        self, path: Path, bounds: Bounds, write: Callable[[Path, Slots, Sequence[Hit]], None],
        tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.files: list[Path] = []
        self.incidents = self.marks = 0
        self.is_done = False
        self._path, self._bounds, self._write, self._tell = path, bounds, write, tell
        self._ring: deque[tuple[Slots, Sequence[Hit]]] = deque()
        self._extra_buffers = 0  # buffers added so that the last events are complete
        self._awaited_buffers = -1  # buffers to add before the file is written; -1 = no trigger has hit
        self._number = _last_number(path) if bounds.is_repeated else 0

    def take(self, slots: Slots, hits: Sequence[Hit] = ()) -> bool:
        """Add a buffer and the trigger hits in it; return whether a file was written."""
        if self.is_done:
            return False
        self._ring.append((slots, hits))
        if len(self._ring) > self._bounds.buffers and self._awaited_buffers:
            self._ring.popleft()
        stops = [hit.trigger.action.keep for hit in hits if hit.trigger.action.stops]
        if self._awaited_buffers >= 0:
            self._awaited_buffers = max(0, self._awaited_buffers - 1)
        elif stops:
            self._awaited_buffers = stops[0]
        if self._awaited_buffers:
            return False
        if self._extra_buffers < _MAX_EXTRA_BUFFERS and unfinished(slots):  # an event continues in the next buffer
            self._extra_buffers += 1
            return False
        self.hand_over()
        return True

    @property
    def is_ending(self) -> bool:
        """Whether a trigger with STOP has hit, and the file of its incident is not written yet."""
        return self._awaited_buffers >= 0

    def hand_over(self) -> None:
        """Write the buffers of the ring to a file, and empty the ring."""
        if not self._ring:
            return
        path = self._path
        if self._bounds.is_repeated:
            self._number += 1
            path = path.with_name(f"{path.stem}-{self._number:04}{path.suffix}")
        hits = [hit for _, of_buffer in self._ring for hit in of_buffer]
        slots = np.concatenate([slots for slots, _ in self._ring])
        self._make_room(slots.nbytes + _HEADER_BYTES)
        self._write(path, slots, hits)
        marks, buffers = len(hits), len(self._ring)
        self._ring.clear()
        self._awaited_buffers, self._extra_buffers = -1, 0
        self.incidents += 1
        self.marks += marks
        self.files.append(path)
        self.is_done = not self._bounds.is_repeated
        self._tell(f"{path.name}: {buffers} buffers, {marks} mark{'s' * (marks != 1)}")

    def save_untriggered(self) -> bool:
        """Write the ring of a recorder for a single incident though no trigger hit; return whether a file exists."""
        if not self._bounds.is_repeated:
            self.hand_over()
        return bool(self.files)

    def _make_room(self, size: int) -> None:
        """Remove the oldest files until a further file of `size` bytes is within the limits."""
        sizes = [path.stat().st_size if path.exists() else 0 for path in self.files]
        bounds = self._bounds
        while self.files and (
            0 < bounds.files <= len(self.files) or 0 < bounds.disk_bytes < sum(sizes) + size
        ):  # fmt: skip
            self.files.pop(0).unlink(missing_ok=True)
            sizes.pop(0)


def unfinished(slots: Slots) -> list[int]:
    """Return the row of the first slot of each incomplete event; only the last event of a CPU can be incomplete."""
    kind, cpu_of = slots[:, 0] >> wire.STRUCT_SHIFT, slots[:, 0] >> wire.CPU_SHIFT & wire.CPU_MASK
    rows = []
    for cpu in np.unique(cpu_of[kind == wire.Struct.COMBINE_BEGIN]).tolist():
        begins = np.flatnonzero((cpu_of == cpu) & (kind == wire.Struct.COMBINE_BEGIN))
        ends = np.flatnonzero((cpu_of == cpu) & (kind == wire.Struct.COMBINE_END))
        if not len(ends) or begins[-1] > ends[-1]:
            rows.append(int(begins[-1]))
    return rows


def _last_number(path: Path) -> int:
    """Return the highest number of the existing numbered files of a recorder; 0 = there are none."""
    name = re.compile(re.escape(path.stem) + r"-(\d{4,9})" + re.escape(path.suffix))
    matches = (name.fullmatch(other.name) for other in path.absolute().parent.glob(f"*{path.suffix}"))
    return max((int(match[1]) for match in matches if match), default=0)


@dataclass(frozen=True, slots=True)
class TargetName:
    """Name of a process or thread.

    Attributes:
        pid: Pid of the process.
        tid: Tid of the thread; 0 = this is the name of the process.
        parent: Pid of the parent process, for the name of a process.
        text: The name.
    """

    pid: int
    tid: int
    text: str
    parent: int = 0


def names_tail(
    names: Iterable[TargetName], now_cycles: int, cycles_per_s: int, sequence: int | None, byte_order: str
) -> Slots:
    """Return slots, shape (n, 4), with names of processes and threads, as a 7.x kernel appends them to a ring.

    The events with these names at the start of the recording are no longer in the ring.

    Args:
        names: The names, each process before its threads.
        now_cycles: Time of the last event in the ring, by the target's clock.
        cycles_per_s: Rate of that clock.
        sequence: Sequence number of the last buffer; None = the release has no such numbers.
        byte_order: Byte order of the target.
    """
    writer = SlotWriter(byte_order)
    time = now_cycles + int(_NAMES_PAUSE_S * cycles_per_s)
    if sequence is not None:
        writer.event(wire.CONTROL_BUFFER, 0, time, (sequence + 1, 0))  # no slots: it was never handed over
    writer.event(wire.CONTROL_TIME, 0, time, (time >> 32, time))
    for count, name in enumerate(names):
        if count >= _MAX_NAMES:
            break
        time += max(1, cycles_per_s // 1_000_000)
        words = (name.pid, name.tid) if name.tid else (name.parent, name.pid)
        code = wire.PROC_THREAD_NAME if name.tid else wire.PROC_CREATE_NAME
        writer.text_event(code, 0, time, words, name.text.encode(errors="replace")[:512])
    return writer.slots()
