"""Opens .kev files. Slots are read when requested: no copy of the event region is held in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from satview.base.errors import TraceFormatError
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.head.header import BEGIN, MAX_HEADER_BYTES, key_byte_order, parse_header, slot_byte_order
from satview.formats.kev.head.syspage import fits
from satview.formats.kev.slots.shifted import slots_of
from satview.formats.kev.slots.slot_source import FileSlots, ScatteredSlots, SourceFile
from satview.store.head import Header
from satview.store.problems import Problems
from satview.store.trace import Trace

SAMPLE_SLOTS: Final = 4096


def score(first_bytes: bytes, path: Path) -> int:
    """Return how sure we are that a file is a .kev: 100, 0, or a little for an empty one of that name."""
    if first_bytes.startswith(BEGIN) or (len(first_bytes) >= 5 and BEGIN.startswith(first_bytes)):
        return 100
    return 5 if path.suffix.lower() == ".kev" else 0


def open_kev(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a .kev file.

    Args:
        path: The file; it stays open as long as the trace lives.
        progress: Called with 0 to 1.
        cancelled: Called now and then; True stops the load.

    Raises:
        TraceFormatError: The file has no usable header, or ends before its events.
        SourceChangedError: Somebody writes it over meanwhile.
        OSError: It cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    start = read_start(path)
    source, slots, problems = start.source, start.slots, start.problems

    def stops() -> bool:
        source.check()
        return cancelled is not None and cancelled()

    # `tracelogger -S`, a full disk or an interrupted copy cuts within a slot (section 1.3).
    end = slots.byte(len(slots))
    if rest := source.size - end:
        problems.add("partial-slot", f"{rest} of {SLOT_BYTES} bytes of the last slot", end)
    return trace_from_slots(
        path,
        "kev",
        start.header,
        start.page,
        slots,
        start.byte_order,
        problems,
        byte_of_slot=slots.byte,
        progress=progress,
        cancelled=stops,
    )


@dataclass(frozen=True, slots=True)
class Start:
    """What is in front of the slots of a file, and the slots themselves.

    Attributes:
        header: The text header.
        page: Image of the system page.
        byte_order: `little` or `big`.
        problems: What is wrong with header and byte order.
        source: The open file.
        slots: Where its slots are read.
        offset: Byte offset of the first slot.
    """

    header: Header
    page: bytes
    byte_order: str
    problems: Problems
    source: SourceFile
    slots: FileSlots | ScatteredSlots
    offset: int


def read_start(path: Path | str) -> Start:
    """Read what is in front of the slots of a .kev file; the file stays open as long as its slots are used.

    Raises:
        TraceFormatError: The file has no usable header, or ends before its events.
        OSError: It cannot be read.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        header = parse_header(file.read(min(size, MAX_HEADER_BYTES)), path, size)
        page_length = header.number("SYSPAGE_LEN") or 0
        # Checked before anything is allocated: the number comes from the file (section 11).
        offset = header.length + page_length
        if offset > size:
            raise TraceFormatError(
                path,
                header.length,
                f"the header announces a system page of {page_length} bytes, but only "
                f"{size - header.length} bytes follow",
                "the file was cut short; copy it from the target again",
            )
        file.seek(header.length)
        page = file.read(page_length)
        sample = file.read(SAMPLE_SLOTS * SLOT_BYTES)
    problems = Problems()
    byte_order = byte_order_of(header, page, sample, problems)
    report_header(header, problems)
    source = SourceFile(path, size)
    slots = slots_of(source, offset, byte_order, problems)
    return Start(header, page, byte_order, problems, source, slots, offset)


def byte_order_of(header: Header, page: bytes, sample: bytes, problems: Problems) -> str:
    """Return the byte order of a file: as its header says, else as system page and slots read best, with a problem."""
    order = key_byte_order(header)
    if order is not None:
        return order
    keys = [key for key, _ in header.pairs if key.endswith("_ENDIAN")]
    # `size <= total_size == SYSPAGE_LEN` holds in one order only (section 2).
    usable = [name for name in ("little", "big") if fits(page, name)]
    byte_order = usable[0] if len(usable) == 1 else slot_byte_order(sample)
    said = " and ".join(f"TRACE_{key}" for key in keys) or "neither byte order"
    problems.add("byte-order", f"the header says {said}; the data reads as {byte_order}-endian", 0)
    return byte_order


def report_header(header: Header, problems: Problems) -> None:
    """List keys of the header that are missing or make no sense."""
    missing = [key for key in ("CYCLES_PER_SEC", "SYS_RELEASE", "SYSPAGE_LEN") if header.get(key) == ""]
    if missing:
        problems.add("header", f"no TRACE_{', no TRACE_'.join(missing)}", 0, len(missing))
    elif header.number("SYSPAGE_LEN") is None:
        problems.add("header", f"TRACE_SYSPAGE_LEN is {header.get('SYSPAGE_LEN')!r}, no number: taken as 0", 0)
