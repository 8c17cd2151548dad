"""Reads a .kev file repeatedly while it is being written.

Each time only new slots are read and decoded. The file is not held in memory; a few samples of old bytes show whether
another capture has replaced the content.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from satview.base.errors import TraceFormatError
from satview.events.catalogue import Catalogue
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.decode import Decoder
from satview.formats.kev.header import BEGIN, MAX_HEADER_BYTES, parse_header
from satview.formats.kev.reader import SAMPLE_SLOTS, byte_order_of, report_header
from satview.formats.kev.slots.slot_source import FileSlots, SlotSource, SourceFile
from satview.store.head import Header
from satview.store.problems import Problems
from satview.store.trace import Trace

_HEAD_BYTES: Final = 8192  # enough for header and system page of all real files; more is read if needed
_SAMPLE_SLOTS: Final = 256


class GrowingFile:
    """A .kev file that grows; `read` returns a trace of its current content.

    Slots are only appended, so an older trace stays valid. If the file is shorter than before, or old bytes have
    changed, it is read from the start again.

    Attributes:
        path: The file.
        restart: Sentence on why the last `read` began from the start again; else empty.
    """

    _count: int

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.restart = ""
        self._restarted = ""
        self._last_status = (-1, -1)
        self._file: SourceFile | None = None
        self._forget()

    @property
    def has_changed(self) -> bool:
        """Whether size or modification time have changed since the last `read`.

        Raises:
            OSError: The file does not exist or cannot be queried.
        """
        status = self.path.stat()
        return (status.st_size, status.st_mtime_ns) != self._last_status

    def read(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Trace:
        """Read new slots and return a trace of all slots.

        An incomplete last slot is ignored, because the rest is not written yet.

        Args:
            progress: Called with the share that is done, 0 to 1.
            cancelled: Polled during the work; True stops the work.

        Raises:
            TraceFormatError: The file is no .kev, or its header is not complete (yet).
            SourceChangedError: The file was truncated while it was read.
            OSError: The file cannot be read.
            Cancelled: `cancelled()` returned True.
        """
        status = self.path.stat()
        file = self._file
        # A replaced file has the same name but another inode number.
        if file is None or file.identity != (status.st_dev, status.st_ino):
            file = SourceFile(self.path, 0)
        size = file.size_now
        self._last_status = (size, status.st_mtime_ns)
        # Checked before reading, as one decoder must not get slots of two files.
        self._check_old(file, size)
        self._file = file
        if self._header is None:
            self._read_start(file, size)
        self._count = max(self._count, (size - self._offset) // SLOT_BYTES)
        file.size = self._offset + self._count * SLOT_BYTES
        self._take_samples(file)
        trace = self._trace(progress, cancelled)
        # Only after a trace was built, as reads between a truncation and the next header fail.
        self.restart, self._restarted = self._restarted, ""
        return trace

    def _forget(self) -> None:
        self._header: Header | None = None
        self._order = ""
        self._count = 0
        self._decoder: Decoder | None = None
        self._samples: dict[int, bytes] = {}

    def _check_old(self, file: SourceFile, size: int) -> None:
        """Forget the old content if the file is shorter or old bytes have changed."""
        if self._header is None:
            return
        reason = ""
        known = self._offset + self._count * SLOT_BYTES
        if size < known:
            reason = f"{self.path.name} shrank from {known:,} to {size:,} bytes"
        else:
            offset = self._first_difference(file)
            if offset >= 0:
                reason = f"{self.path.name} was written over from byte 0x{offset:x} on"
        if reason:
            self._restarted = reason + ": it was cut short, or a new capture began; shown from its start"
            self._forget()

    def _first_difference(self, file: SourceFile) -> int:
        """Return the offset of the first changed byte in the samples; -1 = no change."""
        for offset, old in self._samples.items():
            new = file.bytes_at(len(old), offset)
            if new != old:
                byte = next(i for i in range(len(old)) if old[i] != new[i])
                # Rounded down to the slot, as the byte within a slot means nothing to the user.
                return offset + byte - (byte % SLOT_BYTES if offset else byte)
        return -1

    def _take_samples(self, file: SourceFile) -> None:
        self._samples = {0: self._start}
        for first_slot in (0, self._count // 2, max(0, self._count - _SAMPLE_SLOTS)):
            offset = self._offset + first_slot * SLOT_BYTES
            self._samples[offset] = file.bytes_at(min(_SAMPLE_SLOTS, self._count - first_slot) * SLOT_BYTES, offset)

    def _read_start(self, file: SourceFile, size: int) -> None:
        data = file.bytes_at(min(size, _HEAD_BYTES), 0)
        if not data:
            raise TraceFormatError(self.path, None, "it is empty so far", "start the capture")
        if not BEGIN.startswith(data[: len(BEGIN)]):
            raise TraceFormatError(self.path, 0, "this is no .kev file", "only .kev files can be followed")
        if size > _HEAD_BYTES:
            data = file.bytes_at(min(size, _HEAD_BYTES + MAX_HEADER_BYTES), 0)
        header = parse_header(data, self.path, size)
        length = header.number("SYSPAGE_LEN") or 0
        offset = header.length + length
        if offset > size:
            raise TraceFormatError(
                self.path, header.length, f"{size - header.length} of {length} bytes of its system page are there",
                "wait for the rest, or start the capture again",
            )  # fmt: skip
        start = file.bytes_at(offset, 0)
        self._header, self._start, self._page, self._offset = header, start, start[header.length :], offset

    def _trace(self, progress: Callable[[float], None] | None, cancelled: Callable[[], bool] | None) -> Trace:
        assert self._header is not None
        problems = Problems()
        assert self._file is not None
        sample = self._file.bytes_at(min(self._count, SAMPLE_SLOTS) * SLOT_BYTES, self._offset)
        order = byte_order_of(self._header, self._page, sample, problems)
        if order != self._order:  # a guess from the first few slots may have been wrong
            self._order, self._decoder = order, None
        slots = FileSlots(self._file, self._offset, self._count, order)
        report_header(self._header, problems)
        return trace_from_slots(
            self.path, "kev", self._header, self._page, slots, self._order, problems, offset=self._offset,
            progress=progress, cancelled=cancelled, decoder_of=self._decoder_of,
        )  # fmt: skip

    def _decoder_of(self, slots: SlotSource, catalogue: Catalogue) -> Decoder:
        if self._decoder is None:
            self._decoder = Decoder(slots, catalogue, goes_on=True)
        else:
            self._decoder.extend(slots)
        return self._decoder
