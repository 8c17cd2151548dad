"""Writes the .kev file of a capture: header and system page of the simulated target, then slots as they arrive.

Dates are computed from the target's boot time, which is fixed for most targets, so that two captures with the same seed
are equal byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError, UsageError, WriteError
from satview.base.new_file import NewFile
from satview.capture.sim.parts.target import Target
from satview.events.spec import Release
from satview.formats.kev.header import header_bytes
from satview.formats.kev.syspage import GLOBAL_CLOCK, syspage_bytes
from satview.formats.kev.writer import slots_as_bytes, standard_header

_KIND = {Release.QNX_6: 0, Release.QNX_6_6: 0, Release.QNX_7: 0x100, Release.QNX_8: 0x1100}
_CPU_NAME = {Release.QNX_6: "Intel 686 F6M8S6", Release.QNX_6_6: "Intel 686 F6M28S10"}
VERSIONS = {
    Release.QNX_6: "2009/05/20-17:35:56EDT",
    Release.QNX_6_6: "2014/02/22-18:29:37EST",
    Release.QNX_7: "2021/05/07-14:19:56EDT",
    Release.QNX_8: "2023/11/08-13:05:11EST",
}
_HOSTNAME, _RELEASE, _MACHINE, _SYSNAME = 2, 3, 5, 11


class CaptureError(SatviewError):
    """A capture could not be saved completely; the part already written can be read."""


def ctime(seconds: int) -> str:
    """Return a time in seconds since 1970 as a date in the header's format, in UTC on every host."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(seconds))


def start_of_file(
    target: Target, file_name: str, started_cycles: int, attributes: Sequence[tuple[str, str]] = ()
) -> tuple[tuple[tuple[str, str], ...], bytes, str]:
    """Return header pairs, system page and byte order of a capture."""
    order = "big" if target.big_endian else "little"
    name = _CPU_NAME.get(target.release, "Intel(R) Core(TM) i7-1185GRE")
    page = syspage_bytes(
        order,
        kind=_KIND[target.release],
        cycles_per_s=target.cycles_per_s,
        boot_time_s=target.boot_s,
        cpu_names=(name,) * target.cpus,
        speed_mhz=target.cycles_per_s // 1_000_000,
        flags=GLOBAL_CLOCK if target.has_global_clock else 0,
        strings=(
            (_HOSTNAME, "simulated"),
            (_RELEASE, target.sys_release),
            (_MACHINE, target.machine),
            (_SYSNAME, "QNX"),
        ),
    )
    pairs = standard_header(
        file_name=file_name,
        date=ctime(target.boot_s + started_cycles // target.cycles_per_s),
        boot_date=ctime(target.boot_s),
        byte_order=order,
        cycles_per_s=target.cycles_per_s,
        cpu_count=target.cpus,
        release=target.sys_release,
        version=VERSIONS[target.release],
        machine=target.machine,
        node="simulated",
        syspage_length=len(page),
        attributes=attributes,
    )
    return pairs, page, order


class KevFile:
    """A .kev file that grows by whole buffers.

    Args:
        path: The file.
        target: Target for the header.
        started_cycles: Start of the capture.
        attributes: Extra header keys and values, such as TRACELOGGER_ARGS.
        limit_bytes: Maximum size; 0 = no limit. The file is cut at that byte, as tracelogger does.
        stream: Write to this stream instead (standard output, a FIFO); `path` is then only its name.
        is_growing: The file gets its name as soon as its header is complete, so that it can be followed while it grows.
            Otherwise it gets its name when it is complete; an incomplete file gets the name only if no older file has
            it.

    Raises:
        UsageError: The limit is smaller than the header.
        CaptureError: The file cannot be written, or the path is a folder or a disk.

    Attributes:
        written: Bytes written so far, including the header.
        is_cut: True once data was cut off at the limit.
        is_waiting: True during a write, which takes long if the reader of a pipe is slow.
    """

    def __init__(
        self,
        path: Path,
        target: Target,
        started_cycles: int,
        attributes: Sequence[tuple[str, str]] = (),
        limit_bytes: int = 0,
        stream: BinaryIO | None = None,
        *,
        is_growing: bool = False,
    ) -> None:
        self.path = path
        self.limit = limit_bytes
        self.is_cut = self.is_waiting = False
        self.written = 0
        pairs, page, self._order = start_of_file(target, path.name, started_cycles, attributes)
        start = header_bytes(pairs) + page
        self._start_bytes = len(start)
        if 0 < limit_bytes < len(start):
            raise UsageError(f"{path.name}: {limit_bytes} bytes are too few, its header alone takes {len(start)}")
        self._new: NewFile | None = None
        if stream is None:
            try:
                # Not buffered: write errors show at once, and a reader that follows the file sees whole buffers.
                self._new = NewFile(path, streams=True, keeps_part=True, is_buffered=False)
            except WriteError as error:
                raise CaptureError(f"{path.name}: cannot be written: {error.what}") from error
            stream = self._new.stream
        self._file = stream
        self._put(start)
        if self._new is not None and is_growing:
            self._new.publish()

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Append slots, shape (n, 4), in host byte order.

        Raises:
            CaptureError: The disk is full, or the file cannot be written for another reason.
        """
        data = slots_as_bytes(slots, self._order)
        if self.limit and self.written + len(data) > self.limit:
            data = data[: max(0, self.limit - self.written)]
            self.is_cut = True
        self._put(data)

    def is_behind(self) -> bool:
        """Return False, because a file never makes the logger wait."""
        return False

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        self.is_waiting = True
        try:
            while left:
                count = self._file.write(left)
                self.written += count
                left = left[count:]
            self._file.flush()
        except OSError as error:
            raise CaptureError(
                f"{self.path.name}: writing stopped after {self.written} bytes: "
                f"{error.strerror or error}{self._give_up(error)}"
            ) from error
        finally:
            self.is_waiting = False

    def _give_up(self, error: BaseException) -> str:
        """Close the file; return the end of an error message, which says what is left of the file."""
        new, self._new = self._new, None
        if new is None:
            return ""
        new.discard(error if self.written >= self._start_bytes else None)
        if new.is_stream:
            return ""
        return "; what was written can be opened" if new.has_name else "; the older file is as it was"

    def close(self, error: BaseException | None = None) -> None:
        """Complete the file, or after an error close it as it is.

        Raises:
            CaptureError: The file cannot be finished.
        """
        if self._new is None:
            return
        if error is not None:
            self._give_up(error)
            return
        new, self._new = self._new, None
        try:
            new.commit()
        except WriteError as fault:
            raise CaptureError(f"{self.path.name}: could not be finished: {fault.what}") from fault

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)
