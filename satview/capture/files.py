"""The .kev file of a capture: header and system page of the simulated target, then slots as they come.

Dates are simulated too: they follow from a fixed boot time, so that two captures with one seed are equal byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError
from satview.capture.sim.target import Target
from satview.events.spec import Release
from satview.formats.kev.header import header_bytes
from satview.formats.kev.syspage import GLOBAL_CLOCK, syspage_bytes
from satview.formats.kev.writer import slots_as_bytes, standard_header, write_start

EPOCH_S = 1_718_000_000            # boot of every simulated target: June 2024
_KIND = {Release.QNX_6: 0, Release.QNX_6_6: 0, Release.QNX_7: 0x100, Release.QNX_8: 0x1100}
_CPU_NAME = {Release.QNX_6: "Intel 686 F6M8S6", Release.QNX_6_6: "Intel 686 F6M28S10"}
_VERSION = {Release.QNX_6: "2009/05/20-17:35:56EDT", Release.QNX_6_6: "2014/02/22-18:29:37EST",
            Release.QNX_7: "2021/05/07-14:19:56EDT", Release.QNX_8: "2023/11/08-13:05:11EST"}
_HOSTNAME, _RELEASE, _MACHINE, _SYSNAME = 2, 3, 5, 11


class CaptureError(SatviewError):
    """A capture could not be saved as asked; what was written up to there can be read."""


def ctime(seconds: int) -> str:
    """Return a date in the form of the header, in UTC so that it does not depend on where satview runs."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(seconds))


def start_of_file(target: Target, file_name: str, started_cycles: int,
                  attributes: Sequence[tuple[str, str]] = ()) -> tuple[tuple[tuple[str, str], ...], bytes, str]:
    """Return header pairs, system page and byte order of a capture."""
    order = "big" if target.big_endian else "little"
    name = _CPU_NAME.get(target.release, "Intel(R) Core(TM) i7-1185GRE")
    page = syspage_bytes(order, kind=_KIND[target.release], cycles_per_s=target.cycles_per_s, boot_time_s=EPOCH_S,
                         cpu_names=(name,) * target.cpus, speed_mhz=target.cycles_per_s // 1_000_000,
                         flags=GLOBAL_CLOCK if target.has_global_clock else 0,
                         strings=((_HOSTNAME, "simulated"), (_RELEASE, target.sys_release), (_MACHINE, target.machine),
                                  (_SYSNAME, "QNX")))
    pairs = standard_header(
        file_name=file_name, date=ctime(EPOCH_S + started_cycles // target.cycles_per_s), boot_date=ctime(EPOCH_S),
        byte_order=order, cycles_per_s=target.cycles_per_s, cpu_count=target.cpus, release=target.sys_release,
        version=_VERSION[target.release], machine=target.machine, node="simulated", syspage_length=len(page),
        attributes=attributes)
    return pairs, page, order


class KevFile:
    """A .kev file that grows by whole buffers.

    Args:
        path: Where.
        target: Whose header.
        started_cycles: When the capture starts.
        attributes: Extra header pairs, such as TRACELOGGER_ARGS.
        limit_bytes: Maximum size; 0 = none. What does not fit is cut at the byte, as tracelogger does.
        stream: Write here instead (standard output, a FIFO); `path` then only names it.

    Attributes:
        written: Bytes so far, header included.
        is_cut: True once the limit has cut something.
    """

    def __init__(self, path: Path, target: Target, started_cycles: int, attributes: Sequence[tuple[str, str]] = (),
                 limit_bytes: int = 0, stream: BinaryIO | None = None) -> None:
        self.path = path
        self.limit = limit_bytes
        self.is_cut = False
        self.written = 0
        pairs, page, self._order = start_of_file(target, path.name, started_cycles, attributes)
        try:
            self._file = stream if stream is not None else path.open("wb")
            write_start(self._file, pairs, page)
        except OSError as error:
            raise CaptureError(f"{path.name}: cannot be written: {error.strerror or error}") from error
        self._owns = stream is None
        self.written = len(header_bytes(pairs)) + len(page)

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Append slots, shape (n, 4), host order.

        Raises:
            CaptureError: The disk is full, or the file cannot be written for another reason.
        """
        data = slots_as_bytes(slots, self._order)
        if self.limit and self.written + len(data) > self.limit:
            data = data[: max(0, self.limit - self.written)]
            self.is_cut = True
        try:
            self._file.write(data)
            self._file.flush()      # whoever follows the file sees whole buffers
        except OSError as error:
            raise CaptureError(f"{self.path.name}: writing stopped after {self.written} bytes: "
                               f"{error.strerror or error}; what was written can be opened") from error
        self.written += len(data)

    def close(self) -> None:
        """Finish the file."""
        try:
            if self._owns:
                self._file.close()
            else:
                self._file.flush()
        except OSError as error:
            raise CaptureError(f"{self.path.name}: could not be finished: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
