"""Writes a trace to a file while a target sends it, and adds satview's keys to its header.

The file gets its name once its header is complete, so that it can be followed, and always ends with a whole slot. Gaps
in the sequence numbers of BUFFER events, and the DROPPED events of 8.0, show losses (format description, 6.2).
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from satview.base.errors import TraceFormatError, WriteError
from satview.base.new_file import NewFile
from satview.base.safe_text import byte_text
from satview.events import wire
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.header import BEGIN, END, MAX_HEADER_BYTES, header_bytes, key_byte_order, parse_header
from satview.target.profiles import TargetError

_SHARED: Final = -1  # in place of a CPU before 8.0: all CPUs fill the same buffers
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class CutError(TargetError):
    """Writing the file failed; the part already written can be opened."""


class Arrival:
    """A `.kev` file that grows while its bytes are received.

    Args:
        path: The file; an existing file of that name is replaced once a header has been received.
        attributes: Keys and values to add to the header.

    Attributes:
        received: Number of bytes received, including the header.
        buffers: Number of BUFFER events received.
        lost: Number of buffers missing between the received ones, by their sequence numbers.
        drops: Number of DROPPED events received, by which the 8.0 kernel reports that it dropped events.
        began_s: `time.monotonic()` when the header was complete; 0 before.
        first_buffer_s: `time.monotonic()` when the first BUFFER event was received; 0 before.

    Raises:
        WriteError: The file cannot be created.
    """

    def __init__(self, path: Path, attributes: Sequence[tuple[str, str]]) -> None:
        self.path, self._attributes = path, list(attributes)
        self.received = self.buffers = self.lost = self.drops = 0
        self.began_s = self.first_buffer_s = 0.0
        self._create()
        self._sum = Checksum()
        self._rest = b""
        self._start_bytes = self._written = 0  # size of header and system page; of the file so far
        self._page_left = 0
        self._order = "<u4"
        self._last: dict[int, int] = {}
        self._is_per_cpu = self._is_cut = False

    @property
    def is_done(self) -> bool:
        """Whether the capture can end because no more data is needed."""
        return False

    @property
    def found_so_far(self) -> str:
        """Status text about results other than the amount of data; empty = none."""
        return ""

    @property
    def checksum(self) -> int:
        """Checksum of all received bytes, as `cksum` prints it."""
        return self._sum.value()

    def take(self, data: bytes) -> None:
        """Append received bytes.

        Raises:
            TargetError: The bytes are not a trace.
            CutError: The file cannot be written.
        """
        self.received += len(data)
        self._sum.add(data)
        data = self._rest + data
        if not self.began_s:
            data = self._without_header(data)
        page, data = data[: self._page_left], data[self._page_left :]
        self._page_left -= len(page)
        self._take_page(page)
        whole = len(data) // SLOT_BYTES * SLOT_BYTES if self.began_s else 0
        self._rest = data[whole:]
        self._count(data[:whole])
        self._take_slots(data[:whole])

    def wait(self) -> None:
        """Do work that is due while no data is received; nothing by default."""

    def _create(self) -> None:
        """Create the file."""
        self._new = NewFile(self.path, keeps_part=True, is_buffered=False)

    def _take_header(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Write the header, and give the file its name."""
        start = header_bytes(pairs)
        self._start_bytes = len(start) + self._page_left
        self._write(start)
        self._new.publish()

    def _take_page(self, data: bytes) -> None:
        """Write a part of the system page."""
        self._write(data)

    def _take_slots(self, data: bytes) -> None:
        """Write whole slots."""
        self._write(data)

    def _without_header(self, data: bytes) -> bytes:
        """Write the header with the added keys once it is complete; return the bytes that have not been written."""
        if not data.startswith(BEGIN[: len(data)]):
            raise TargetError(f"what came is no trace, it begins with {byte_text(data[:40])}; "
                              "look at tracelogger there")  # fmt: skip
        if END not in data:
            if len(data) > MAX_HEADER_BYTES:
                raise TargetError("what came is no trace, its header has no end; look at tracelogger there")
            return data
        try:
            header = parse_header(data, self.path, len(data))
        except TraceFormatError as error:
            raise TargetError(str(error)) from error
        self._order = ">u4" if key_byte_order(header) == "big" else "<u4"
        self._is_per_cpu = release_of(header.get("SYS_RELEASE")) is Release.QNX_8
        self._page_left = header.number("SYSPAGE_LEN") or 0
        self._take_header((*header.pairs, *self._attributes))
        self.began_s = time.monotonic()
        return data[header.length :]

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                count = self._new.stream.write(left)
                self._written += count
                left = left[count:]
        except OSError as error:
            is_trace = self._written >= self._start_bytes > 0
            whole = self._start_bytes + (self._written - self._start_bytes) // SLOT_BYTES * SLOT_BYTES
            with contextlib.suppress(OSError):
                os.ftruncate(self._new.stream.fileno(), whole if is_trace else 0)
            self._is_cut = True
            self._new.discard(error if is_trace else None)
            kept = "what was written can be opened; " if is_trace else ""
            raise CutError(f"{self.path.name}: writing stopped after {self._written} bytes: {error.strerror or error}; "
                           f"{kept}make room, or name another file with -o") from error  # fmt: skip

    def _count(self, data: bytes) -> None:
        slots = np.frombuffer(data, self._order).reshape(-1, 4)
        codes = slots[:, 0] & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)
        self.drops += int(np.count_nonzero(codes == wire.CONTROL_DROPPED))
        for head, _, sequence, _ in slots[codes == wire.CONTROL_BUFFER].tolist():
            cpu = head >> wire.CPU_SHIFT & wire.CPU_MASK if self._is_per_cpu else _SHARED
            last = self._last.get(cpu)
            if last is not None and sequence > last:  # a number that is not larger starts a new count
                self.lost += sequence - last - 1
            self._last[cpu] = sequence
            self.buffers += 1
            self.first_buffer_s = self.first_buffer_s or time.monotonic()

    def finish(self) -> None:
        """Complete the file with the received bytes; no file remains if there was no header.

        Raises:
            CutError: The file cannot be written.
        """
        if self._is_cut:
            return
        if not self.began_s:
            self._new.discard()
            return
        try:
            self._new.commit()
        except WriteError as error:
            raise CutError(f"{self.path.name}: could not be finished: {error.what}; make room, and check the file with "
                           "`satview info`") from error  # fmt: skip


class Checksum:
    """The checksum of the POSIX command `cksum`, computed incrementally.

    It is zlib's CRC-32 of the bytes followed by their length, with the bits of every byte and of the result reversed.
    """

    def __init__(self) -> None:
        self._crc, self._length = 0xFFFFFFFF, 0

    def add(self, data: bytes) -> None:
        """Add the next bytes to the checksum."""
        self._crc = zlib.crc32(data.translate(_REVERSED), self._crc)
        self._length += len(data)

    def value(self) -> int:
        """Return the checksum of the bytes so far."""
        length = self._length.to_bytes((self._length.bit_length() + 7) // 8, "little")
        return int(f"{zlib.crc32(length.translate(_REVERSED), self._crc):032b}"[::-1], 2)
