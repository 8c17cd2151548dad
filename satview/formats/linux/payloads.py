"""The arguments of events of Linux: the numbers that are stored of switches and wake-ups, and what the file says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events import linux
from satview.events.spec import Argument, Payload
from satview.formats.linux.schedule import Details
from satview.formats.number_payloads import NumberPayloads
from satview.store.tables import EventTable


@dataclass(frozen=True, slots=True)
class LinuxPayloads(NumberPayloads):
    """Implements `store.payload_source.PayloadSource`.

    Attributes:
        events: The event table.
        record: int64 (n,), number of the record in the file that each event is from.
        details: What the file says of records.
        names: Of threads, by number.
    """

    events: EventTable
    record: NDArray[np.int64]
    details: Details
    names: dict[int, str]

    def raw(self, event: int) -> bytes:
        """Return the bytes of an event as they are in the file; its numbers where it has none."""
        return self.details.raw(int(self.record[event])) or NumberPayloads.raw(self, event)

    def decode(self, event: int, most: int | None = None) -> Payload:  # noqa: ARG002
        """Return the named arguments of one event: what is stored of all, then what the file has besides."""
        code, values = int(self.events.code[event]), self.values(event)
        name, more = self.details.text(int(self.record[event]))
        # Of a wake-up that only repeats another one nothing is stored: its numbers are those of the file.
        said = set() if any(values) else {key for key, _ in more}
        arguments = [
            Argument(field.name, value, str(value), 2 * i, 2, self._note(field.name, value))
            for i, (field, value) in enumerate(zip(linux.fields_of(code), values, strict=False))
            if field.name not in said
        ]
        known = {argument.name for argument in arguments}
        if name and name != _short(linux.unnamed(code), code):
            arguments.insert(0, Argument("tracepoint", name, name, 0, 0))
        arguments += [Argument(key, value, str(value), 0, 0) for key, value in more if key not in known]
        return Payload("same", tuple(arguments), tuple(self.words(event).tolist()), self.raw(event))

    def _note(self, name: str, value: int) -> str:
        return self.names.get(value, "") if name.endswith("pid") else ""


def _short(fallback: str, code: int) -> str:
    known = linux.names().get(code)
    return known.name if known else fallback
