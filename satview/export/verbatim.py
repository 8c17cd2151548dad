"""Writes the slots of a trace as they are: `write(read(f))` gives the same slots, a listing becomes a .kev file."""

from __future__ import annotations

from pathlib import Path

from satview.base.errors import UsageError
from satview.formats.kev.head.header import FROM_LISTING
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.writer import write_kev
from satview.formats.registry import source_files
from satview.store.trace import Trace


def write_verbatim(trace: Trace, path: Path | str) -> int:
    """Write all slots of a trace, broken ones included, in their order; return how many.

    Args:
        trace: One that is made of slots: from a .kev file or a listing.
        path: The new file, or a pipe or device; an old file is replaced once the new one is complete.

    Raises:
        UsageError: The trace has no slots, would replace itself, or the file cannot be written.
    """
    if not isinstance(trace.payloads, SlotPayloads):
        raise UsageError(
            f"{trace.path.name}: a {trace.format} trace is not made of slots and cannot become a .kev file"
        )
    slots = trace.payloads.slots
    page = trace.system.raw if trace.system else b""
    write_kev(path, _pairs(trace, len(page)), page, slots, trace.byte_order, source_files(trace.path))
    return len(slots)


def without_names(trace: Trace) -> str:
    """Return what a .kev file cannot hold of lines that fit no row, as a sentence; empty if nothing."""
    count = 0 if trace.listed is None else len(trace.listed[0])
    if not count:
        return ""
    events = f"{count:,} events" if count != 1 else "1 event"
    return f"{events} of lines that fit no row keep words alone in a .kev file; the names are in the listing only"


def _pairs(trace: Trace, page_length: int) -> tuple[tuple[str, str], ...]:
    """Return the trace's own header, with what a .kev file needs and a listing may lack."""
    order = f"{trace.byte_order.upper()}_ENDIAN"
    pairs = [
        (key, str(page_length) if key == "SYSPAGE_LEN" else value)
        for key, value in trace.header.pairs
        if not key.endswith("_ENDIAN") or key == order
    ]
    if trace.format == "traceprinter":
        pairs = [*(pair for pair in pairs if pair[0] != FROM_LISTING[0]), FROM_LISTING]
    keys = {key for key, _ in pairs}
    missing = {order: "TRUE", "CYCLES_PER_SEC": str(trace.clock.cycles_per_s), "SYSPAGE_LEN": str(page_length)}
    return (*pairs, *((key, value) for key, value in missing.items() if key not in keys))
