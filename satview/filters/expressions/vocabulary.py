"""What expressions can talk about: fields, and the names of events, classes, states and errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import states
from satview.events.catalogue import listed_catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT
from satview.filters.external import ExternalClass, external_of

WORD_LIMIT: Final = 8192


class FieldKind(StrEnum):
    """What a field holds, and so what it can be compared with."""

    NUMBER = "number"
    TIME = "time"  # nanoseconds; compared like a number
    TEXT = "text"
    FLAG = "flag"
    CLASS = "class"
    EVENT = "event"
    STATE = "state"
    ERROR = "error"  # a number that may be given by name


class Domain(StrEnum):
    """What decides the value of a field, so that it is worked out once per class and event, or once per thread."""

    CODE = "code"
    THREAD = "thread"
    ROW = "row"


class Known(StrEnum):
    """When the value of a field is known to a kernel that logs events."""

    EVENT = "at the event"
    EXIT = "at the exit of a kernel call"
    LATER = "only later"  # no event handler can know it; views and searches can


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field.

    Attributes:
        kind: What it holds.
        domain: What decides its value.
        cost: Of working it out for one event, in rough steps.
        help: Shown by completion and in the docs.
        known: When a kernel that logs the event knows it.
    """

    kind: FieldKind
    domain: Domain
    cost: int
    help: str
    known: Known = Known.EVENT


_K, _D = FieldKind, Domain
FIELDS: Final = {
    "class": FieldSpec(_K.CLASS, _D.CODE, 0, "class as listings print it, or as TraceEvent() names it"),
    "event": FieldSpec(_K.EVENT, _D.CODE, 0, "event by name: MSG_SENDV, THRUNNING, SND_MESSAGE"),
    "state": FieldSpec(_K.STATE, _D.CODE, 0, "state that the thread enters; no value for other events"),
    "number": FieldSpec(_K.NUMBER, _D.CODE, 0, "event number in its class: kernel call, user event, interrupt event"),
    "code": FieldSpec(_K.NUMBER, _D.CODE, 0, "internal class and event, 15 bits"),
    "pid": FieldSpec(_K.NUMBER, _D.THREAD, 1, "process the event belongs to"),
    "tid": FieldSpec(_K.NUMBER, _D.THREAD, 1, "thread the event belongs to, from 1"),
    "name": FieldSpec(_K.TEXT, _D.THREAD, 1, "name of the process, with or without its folders"),
    "thread_name": FieldSpec(_K.TEXT, _D.THREAD, 1, "name of the thread"),
    "time": FieldSpec(_K.TIME, _D.ROW, 2, "time since the start of the trace"),
    "cpu": FieldSpec(_K.NUMBER, _D.ROW, 2, "CPU that logged the event, from 0"),
    "words": FieldSpec(_K.NUMBER, _D.ROW, 3, "payload words, padding included"),
    "failed": FieldSpec(_K.FLAG, _D.ROW, 5, "the kernel call returned an error", Known.EXIT),
    "errno": FieldSpec(_K.ERROR, _D.ROW, 5, "error of a failed kernel call, by QNX number or name", Known.EXIT),
    "priority": FieldSpec(_K.NUMBER, _D.ROW, 6, "priority of the thread as last logged (wide THREAD events)"),
    "duration": FieldSpec(_K.TIME, _D.ROW, 6, "length of the kernel call or interrupt entered or left", Known.LATER),
    "length": FieldSpec(_K.TIME, _D.ROW, 6, "how long the thread stays in the state it enters", Known.LATER),
    "text": FieldSpec(_K.TEXT, _D.ROW, 7, "text in the payload: names, paths, user texts"),
}


def class_codes(name: str, release: Release) -> NDArray[np.bool_] | None:
    """Return the codes of a class given by its printed or TraceEvent() name, bool (32768,); None = no such class."""
    book = listed_catalogue(release)
    requested = name.strip().upper()
    printed = [i for i, spec in enumerate(book.classes) if spec.name.upper() == requested]
    if printed:
        return np.isin(book.class_index_of_code, printed)
    external = requested.removeprefix("_NTO_TRACE_")
    return _external_codes(release).get(external)


@cache
def _external_codes(release: Release) -> dict[str, NDArray[np.bool_]]:
    """Codes of every class of TraceEvent(), unions included."""
    owner = np.full(CODE_COUNT, -1, np.int16)
    for code in range(CODE_COUNT):
        external = external_of(code, release).external
        owner[code] = -1 if external is None else external
    tables = {c.name: owner == c for c in ExternalClass}
    tables["EMPTY"] = np.arange(CODE_COUNT) < 1024
    tables["KERCALL"] = tables["KERCALLENTER"] | tables["KERCALLEXIT"] | tables["KERCALLINT"]
    tables["INT"] = tables["INTENTER"] | tables["INTEXIT"] | tables["INT_HANDLER_ENTER"] | tables["INT_HANDLER_EXIT"]
    return {name: table for name, table in tables.items() if table.any()}


def class_names(release: Release) -> tuple[str, ...]:
    """Return the printed classes of a release, then the names TraceEvent() has for others."""
    printed = [spec.name for spec in listed_catalogue(release).classes if not spec.name.startswith("CLASS ")]
    return (*printed, *(name for name in _external_codes(release) if name not in printed))


def state_value(name: str) -> int | None:
    """Return the lane value of a state given as REPLY, STATE_REPLY or THREPLY; None = no such state."""
    bare = name.strip().upper().removeprefix("_NTO_TRACE_").removeprefix("STATE_")
    for spelling in (bare, bare.removeprefix("TH"), "READY" if bare == "THREADY" else bare):
        if spelling in states.STATE_BY_NAME:
            return states.STATE_BY_NAME[spelling].value
    return None


def error_number(name: str, release: Release) -> int | None:
    """Return the QNX number of an error name, None if there is none."""
    return _errors(release).get(name.strip().upper())


@cache
def _errors(release: Release) -> dict[str, int]:
    book = listed_catalogue(release)
    named = ((number, book.errno_name(number)) for number in range(1024))
    return {name: number for number, name in named if name is not None}


def error_names(release: Release) -> tuple[str, ...]:
    """Return all error names, by number."""
    return tuple(_errors(release))


def event_names(release: Release) -> tuple[str, ...]:
    """Return the names of all events of a release, each once; user events, which are numbers, are left out."""
    book = listed_catalogue(release)
    return tuple(dict.fromkeys(book.name(code) for code in book.codes() if book.class_name(code) != "USREVENT"))
