"""What an event of a trace of Perfetto holds beyond the numbers that are stored of all.

The arguments of ftrace events are named by the package `perfetto`, which has all its protocols; without it they show
by their numbers, with the line that installs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.formats.linux.schedule import Ints
from satview.formats.linux.wire_format import TextColumn, fields_of

_INSTALL: Final = "pip install perfetto"
FREQUENCY: Final = -118  # in place of a field in FtraceEvent: GenericKernelCpuFrequencyEvent
_OF_KERNELS: Final = {FREQUENCY: ("cpu_frequency", {1: "cpu", 2: "freq_hz"})}


@dataclass(frozen=True, slots=True)
class RecordSpans(ColumnTable):
    """Where events have their arguments, int64 (n,) each: record, field in FtraceEvent, first byte, end."""

    record: Ints
    number: Ints
    begin: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class Slices:
    """What slices are called: int64 (n,), ascending, their records, and their names."""

    record: Ints
    names: TextColumn


@dataclass(frozen=True, slots=True)
class PerfettoDetails:
    """Implements `schedule.Details`."""

    data: NDArray[np.uint8]
    records: RecordSpans
    slices: Slices

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return name and arguments of an event: of a slice its name, of an ftrace event its fields."""
        at = _find(self.slices.record, record)
        if at >= 0:
            return "", (("name", self.slices.names.texts[int(self.slices.names.code[at])]),)
        at = _find(self.records.record, record)
        return ("", ()) if at < 0 else self._ftrace(at)

    def raw(self, record: int) -> bytes:
        """Return the bytes of an ftrace event's arguments."""
        at = _find(self.records.record, record)
        return self.data[int(self.records.begin[at]) : int(self.records.end[at])].tobytes() if at >= 0 else b""

    def _ftrace(self, at: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        number = int(self.records.number[at])
        begin, end = (np.array([column[at]], np.int64) for column in (self.records.begin, self.records.end))
        found = fields_of(self.data, begin, end)
        known = _OF_KERNELS.get(number) or _protocol().get(number)
        names = known[1] if known else {}
        values: list[tuple[str, int | str]] = []
        for row in range(len(found.number)):
            field = int(found.number[row])
            is_bytes = int(found.length[row]) >= 0
            values.append(
                (names.get(field, f"field {field}"), found.text_at(row) if is_bytes else int(found.value[row]))
            )
        if known is None:
            values.append(("names", f"{_INSTALL} shows them"))
        return known[0] if known else f"ftrace event {number}", tuple(values)


def _find(records: Ints, record: int) -> int:
    at = int(np.searchsorted(records, record))
    return at if at < len(records) and int(records[at]) == record else -1


@cache
def _protocol() -> dict[int, tuple[str, dict[int, str]]]:
    """Return name and fields of every ftrace event by its number; none without the package."""
    try:  # large, and an extra
        protocol = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    except ImportError:
        return {}
    event: Any = protocol.FtraceEvent.DESCRIPTOR
    return {
        each.number: (each.name, {inner.number: inner.name for inner in each.message_type.fields})
        for each in event.fields
        if each.message_type is not None
    }
