"""`traceprinter -p fmt`: what is before the arguments, as a `printf()` format. Listing format, section 1.1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import Clock
from satview.events import wire
from satview.events.spec import EventSpec
from satview.export.listing_forms import Form
from satview.export.listing_lines import Head
from satview.formats.kev.slots.batch import Batch

_CLASS_COLUMN = 17  # of the layouts from 7.x on: padded to 15, a blank, a colon
_EVENT_COLUMN = 18
_SPEC = re.compile(r"%([-+ #0]*)(\d{1,4})?(?:\.(-?\d{1,4}))?([A-Za-z%])")
_FIELDS = "cCetZz%"
_NAME = re.compile(r"(?:EVENT|state) \d+|[A-Za-z_]\w*(?:/\d+|:\d+)?")


@dataclass(frozen=True, slots=True)
class _Field:
    """One conversion, or literal text where `letter` is empty."""

    letter: str
    text: str = ""
    flags: str = ""
    width: int = 0
    precision: int | None = None

    @property
    def is_padded(self) -> bool:
        """True if `shown` may change a time: zeros fill no text, so `%014t` is as long as the time."""
        return "0" not in self.flags and (self.width > 0 or self.precision is not None)

    def shown(self, text: str) -> str:
        """Return a text cut and padded; a negative precision cuts leading characters."""
        if self.precision is not None:
            count = abs(self.precision)
            text = text[:count] if self.precision >= 0 else text[max(len(text) - count, 0) :]
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


@dataclass(frozen=True, slots=True)
class EventFormat:
    """A format of `-p`.

    Attributes:
        fields: Literal text and conversions in order.
    """

    fields: tuple[_Field, ...]

    @classmethod
    def parse(cls, text: str) -> EventFormat:
        """Return the format of a text.

        Raises:
            UsageError: It has a conversion that the printer does not know, or control characters.
        """
        if not text.isprintable():
            raise UsageError("-p: the format holds control characters")
        return cls(tuple(_fields(text)))

    def begin(self, form: Form) -> str:
        """Return a `%` template for the events of one kind.

        Args:
            form: The kind, as `arguments_form` returns it.
        """
        return "".join(self._template(field, form) for field in self.fields)

    @staticmethod
    def _template(field: _Field, form: Form) -> str:
        class_name, event_name = form.names
        literal = {"": field.text, "%": "%", "Z": class_name, "z": event_name}.get(field.letter)
        if literal is not None:
            return (field.shown(literal) if field.letter in ("Z", "z") else literal).replace("%", "%%")
        if field.letter == "t":
            return "%s" if field.is_padded else "%d.%03d.%03dus"
        return (_number(field) % form.event).replace("%", "%%") if field.letter == "e" else _number(field)

    def heads(self, batch: Batch, rows: NDArray[np.int64], clock: Clock) -> list[Head]:
        """Return the columns that fill the templates.

        Args:
            batch: Where the events are.
            rows: Which of the batch.
            clock: Counts from the first event.
        """
        columns: list[Head] = []
        for field in self.fields:
            if field.letter == "t":
                us = clock.ns_array(batch.time_cycles[rows]) // 1000
                parts = [us // 1_000_000, us // 1000 % 1000, us % 1000]
                if field.is_padded:
                    texts = map("{}.{:03d}.{:03d}us".format, *(part.tolist() for part in parts))
                    columns.append(Head(np.arange(len(rows)), [field.shown(text) for text in texts]))
                else:
                    columns += map(Head, parts)
            elif field.letter in ("c", "C"):
                columns.append(Head(batch.time_cycles[rows] if field.letter == "c" else batch.cpu[rows]))
        return columns


def arguments_form(form: Form, spec: EventSpec) -> Form:
    """Return a form of the layouts from 7.x on without its class and event columns; interrupts have no name there."""
    text = form.template[_CLASS_COLUMN:]
    found = _NAME.match(text)
    name, rest = (found[0], text[max(_EVENT_COLUMN, found.end()) :]) if found else ("", text)
    if not rest.startswith((" ", "\n")):
        rest = f" {rest}"
    return replace(form, template=rest, names=(spec.class_name, name), event=wire.event_of(spec.code))


def _fields(text: str) -> Iterator[_Field]:
    at = 0
    while at < len(text):
        found = _SPEC.match(text, at) if text[at] == "%" else None
        if found is None:
            if text[at] == "%":
                raise UsageError(f"-p: {text[at : at + 8]!a} is no conversion; there are %c %C %e %t %Z %z %%")
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            yield _Field("", text[at:end])
            at = end
            continue
        if found[4] not in _FIELDS:
            raise UsageError(f"-p: %{found[4]} is no conversion; there are %c %C %e %t %Z %z %%")
        precision = int(found[3]) if found[3] is not None else None
        yield _Field(found[4], "", found[1], int(found[2] or 0), precision)
        at = found.end()


def _number(field: _Field) -> str:
    """Return the template of a count of cycles in hexadecimal, or of a CPU or event in decimal."""
    precision = f".{field.precision}" if field.precision is not None and field.precision >= 0 else ""
    return f"%{field.flags}{field.width or ''}{precision}{'x' if field.letter == 'c' else 'd'}"
