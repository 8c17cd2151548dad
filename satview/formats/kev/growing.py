"""Reads a .kev file again and again while somebody still writes it. Copies bytes, never maps them.

A mapped file that shrinks ends the process with a bus error at the next look, so a followed file is read into memory.
Only what is new is read and decoded each time; a few samples of the old bytes tell whether the file was begun anew
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.events.catalogue import Catalogue
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.decode import Decoder
from satview.formats.kev.header import BEGIN, MAX_HEADER_BYTES, parse_header
from satview.formats.kev.reader import SAMPLE_SLOTS, byte_order_of, report_header
from satview.store.problems import Problems
from satview.store.trace import Header, Trace

_HEAD_BYTES: Final = 8192  # header and system page of all real files; larger ones are read when they occur
_SAMPLE_SLOTS: Final = 256
_FIRST_SLOTS: Final = 1 << 14
_SLOTS_PER_READ: Final = 1 << 17


class GrowingFile:
    """A .kev file that grows; `read` gives a trace of what it holds by now.

    Traces share one buffer, to which slots are appended only, so an older trace stays right. When the file turns out
    to be another one (shorter, or with other bytes where old ones were), reading begins anew in a new buffer.

    Attributes:
        path: The file.
        restart: What happened to the file when the last `read` had to begin anew, as a sentence; else empty.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.restart = ""
        self._begun_anew = ""
        self._seen = (-1, -1)
        self._forget()

    @property
    def has_changed(self) -> bool:
        """True if size or time of the file are not those of the last `read`.

        Raises:
            OSError: The file is gone or cannot be asked.
        """
        status = self.path.stat()
        return (status.st_size, status.st_mtime_ns) != self._seen

    def read(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Trace:
        """Read what is new and return a trace of everything.

        An incomplete last slot is not yet written, and no problem.

        Args:
            progress: Called with 0 to 1.
            cancelled: Asked now and then; True stops the load.

        Raises:
            TraceFormatError: The file is no .kev, or its header is not complete (yet).
            OSError: It cannot be read.
            Cancelled: `cancelled()` returned True.
        """
        with self.path.open("rb") as file:
            status = self.path.stat()
            size = file.seek(0, 2)
            self._seen = (size, status.st_mtime_ns)
            self._check_old(file, size)
            if self._header is None:
                self._read_start(file, size)
            self._append(file, size)
        trace = self._trace(progress, cancelled)
        # Only now: between a cut and the next header there may be reads that give no trace.
        self.restart, self._begun_anew = self._begun_anew, ""
        return trace

    def _forget(self) -> None:
        self._header: Header | None = None
        self._start = b""
        self._page = b""
        self._offset = 0
        self._order = "little"
        self._count = 0
        self._decoder: Decoder | None = None
        self._slots: NDArray[np.uint32] = np.empty((0, 4), np.uint32)

    def _check_old(self, file: BinaryIO, size: int) -> None:
        """Notice a file that was begun anew, and forget what was read of the old one."""
        if self._header is None:
            return
        reason = ""
        known = self._offset + self._count * SLOT_BYTES
        if size < known:
            reason = f"{self.path.name} shrank from {known:,} to {size:,} bytes"
        else:
            at = self._first_difference(file)
            if at >= 0:
                reason = f"{self.path.name} was written over from byte 0x{at:x} on"
        if reason:
            self._begun_anew = reason + ": it was cut short, or a new capture began; shown from its start"
            self._forget()

    def _first_difference(self, file: BinaryIO) -> int:
        """Return the first byte that is not as it was read, among samples of start, middle and end; -1 for none."""
        file.seek(0)
        if file.read(len(self._start)) != self._start:
            return 0
        for first in (0, self._count // 2, max(0, self._count - _SAMPLE_SLOTS)):
            old = self._slots[first : min(first + _SAMPLE_SLOTS, self._count)]
            file.seek(self._offset + first * SLOT_BYTES)
            new = np.frombuffer(file.read(old.nbytes), old.dtype)
            differs = np.flatnonzero(new != old.ravel()[: len(new)])
            if len(differs) or len(new) < old.size:
                word = int(differs[0]) if len(differs) else len(new)
                return self._offset + first * SLOT_BYTES + word // 4 * SLOT_BYTES
        return -1

    def _read_start(self, file: BinaryIO, size: int) -> None:
        file.seek(0)
        data = file.read(_HEAD_BYTES)
        if not data:
            raise TraceFormatError(self.path, None, "it is empty so far", "start the capture")
        if not BEGIN.startswith(data[: len(BEGIN)]):
            raise TraceFormatError(self.path, 0, "this is no .kev file", "only .kev files can be followed")
        if size > _HEAD_BYTES:
            data += file.read(MAX_HEADER_BYTES)
        header = parse_header(data, self.path, size)
        length = header.number("SYSPAGE_LEN") or 0
        offset = header.length + length
        if offset > size:
            raise TraceFormatError(
                self.path, header.length, f"{size - header.length} of {length} bytes of its system page are there",
                "wait for the rest, or start the capture again",
            )  # fmt: skip
        file.seek(0)
        start = file.read(offset)
        self._header, self._start, self._page, self._offset = header, start, start[header.length :], offset
        self._slots = np.empty((_FIRST_SLOTS, 4), "<u4")

    def _append(self, file: BinaryIO, size: int) -> None:
        count = (size - self._offset) // SLOT_BYTES
        if count <= self._count:
            return
        if count > len(self._slots):
            larger = np.empty((max(count, len(self._slots) * 3 // 2), 4), self._slots.dtype)
            larger[: self._count] = self._slots[: self._count]
            self._slots = larger
        file.seek(self._offset + self._count * SLOT_BYTES)
        while self._count < count:
            step = min(count - self._count, _SLOTS_PER_READ)
            new = np.frombuffer(file.read(step * SLOT_BYTES), self._slots.dtype)
            whole = len(new) // 4
            self._slots[self._count : self._count + whole] = new[: whole * 4].reshape(-1, 4)
            self._count += whole
            if whole < step:
                break  # it shrank while we read; the next look will tell

    def _trace(self, progress: Callable[[float], None] | None, cancelled: Callable[[], bool] | None) -> Trace:
        assert self._header is not None
        problems = Problems()
        sample = self._slots[: min(self._count, SAMPLE_SLOTS)].tobytes()
        order = byte_order_of(self._header, self._page, sample, problems)
        if order != self._order:  # where only the slots tell it, the first few may have told nothing
            self._order, self._decoder = order, None
            self._slots = self._slots.view("<u4" if order == "little" else ">u4")
        slots = self._slots[: self._count]
        slots.setflags(write=False)
        report_header(self._header, problems)
        return trace_from_slots(
            self.path, "kev", self._header, self._page, slots, self._order, problems, offset=self._offset,
            progress=progress, cancelled=cancelled, decoder_of=self._decoder_of,
        )  # fmt: skip

    def _decoder_of(self, slots: NDArray[np.uint32], catalogue: Catalogue) -> Decoder:
        if self._decoder is None:
            self._decoder = Decoder(slots, catalogue, goes_on=True)
        else:
            self._decoder.extend(slots)
        return self._decoder
