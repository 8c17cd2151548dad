"""Reads a .kev file again and again while somebody still writes it.

Only what is new is read and decoded each time, and none of the file's bytes are held in memory; a few samples of the
old bytes show whether the file was begun again meanwhile.
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

_HEAD_BYTES: Final = 8192  # header and system page of all real files; larger ones are read when they occur
_SAMPLE_SLOTS: Final = 256


class GrowingFile:
    """A .kev file that grows; `read` gives a trace of what it holds by now.

    Slots are appended only, so an older trace stays right. When the file proves to be another one (shorter, or with
    other bytes where old ones were), reading begins again.

    Attributes:
        path: The file.
        restart: What happened to the file when the last `read` had to begin again, as a sentence; else empty.
    """

    _count: int

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.restart = ""
        self._restarted = ""
        self._seen = (-1, -1)
        self._file: SourceFile | None = None
        self._forget()

    @property
    def has_changed(self) -> bool:
        """True if size or time of the file are not those of the last `read`.

        Raises:
            OSError: The file is gone or cannot be queried.
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
            cancelled: Called now and then; True stops the load.

        Raises:
            TraceFormatError: The file is no .kev, or its header is not complete (yet).
            SourceChangedError: It was cut meanwhile.
            OSError: It cannot be read.
            Cancelled: `cancelled()` returned True.
        """
        status = self.path.stat()
        file = self._file
        # A file that was replaced has the same name and another number; the old one is read to its end and closed.
        if file is None or file.identity != (status.st_dev, status.st_ino):
            file = SourceFile(self.path, 0)
        size = file.size_now
        self._seen = (size, status.st_mtime_ns)
        # Before anything is read: slots of the old file and the new one must not meet in one decoder.
        self._check_old(file, size)
        self._file = file
        if self._header is None:
            self._read_start(file, size)
        self._count = max(self._count, (size - self._offset) // SLOT_BYTES)
        file.size = self._offset + self._count * SLOT_BYTES
        self._take_samples(file)
        trace = self._trace(progress, cancelled)
        # Only now: between a cut and the next header there may be reads that give no trace.
        self.restart, self._restarted = self._restarted, ""
        return trace

    def _forget(self) -> None:
        self._header: Header | None = None
        self._order = ""
        self._count = 0
        self._decoder: Decoder | None = None
        self._samples: dict[int, bytes] = {}

    def _check_old(self, file: SourceFile, size: int) -> None:
        """Notice a file that was begun again, and forget what was read of the old one."""
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
        """Return the first byte that is not as it was read, among samples of start, middle and end; -1 for none."""
        for offset, old in self._samples.items():
            new = file.bytes_at(len(old), offset)
            if new != old:
                byte = next(i for i in range(len(old)) if old[i] != new[i])
                # The sentence names the slot, and byte 0 where the header differs: the byte within means nothing to the
                # reader.
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
        if order != self._order:  # where only the slots show it, the first few may have reported nothing
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
