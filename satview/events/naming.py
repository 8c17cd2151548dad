"""The names of all event codes of a release: in listings and in headers, and the class.

Every start needs this part of the catalogue; argument lists (`arguments.py`) are read on demand.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from satview.events import rows, wire
from satview.events.class_table import plain_classes
from satview.events.spec import Release
from satview.events.wire import WireClass

KER_CLASSES = (("KER_CALL", 0), ("KER_EXIT", wire.KER_EXIT_OFFSET), ("INT_CALL", wire.KER_INT_OFFSET))
INT_CLASSES = {
    1: "INT_ENTR", 2: "INT_EXIT", 3: "INT_HANDLER_ENTR", 4: "INT_HANDLER_EXIT", 5: "INT_ENTR", 6: "INT_HANDLER_ENTR",
    7: "INTERRUPT",
}  # fmt: skip
_TABLES = (  # file, wire class, printed class; empty = by event number
    ("control", WireClass.CONTROL, "CONTROL"),
    ("interrupt", WireClass.INT, ""),
    ("process", WireClass.PR_TH, "PROCESS"),
    ("system", WireClass.SYSTEM, "SYSTEM"),
    ("comm", WireClass.COMM, "COMM"),
    *((plain.file, plain.internal, plain.name) for plain in plain_classes() if plain.file),
)
# The 6.4 C library put the external class number of SYSTEM into the header word of these three.
STRAY_SYSTEM_CLASS = 13
STRAY_SYSTEM_EVENTS = (9, 10, 11)


class CodeName(NamedTuple):  # 2,000 are made at each start; a dataclass would take three times as long
    """The names of one event code.

    Attributes:
        class_name: Printed class.
        name: Name in listings.
        symbol: Constant in the headers, for TraceEvent(): `_NTO_TRACE_COMM_SMSG`, `__KER_MSG_SENDV`.
        file: File under `resources/events` with its arguments; empty = there is none.
        key: Name of the event's rows in that file, without `/64`.
        is_64bit: Whether the code is for the form with 64-bit values, of an event that has two forms.
    """

    class_name: str
    name: str
    symbol: str
    file: str
    key: str
    is_64bit: bool = False


def _kernel_calls(release: Release) -> dict[int, CodeName]:
    names: dict[int, CodeName] = {}
    column = 1 + rows.RELEASE_ORDER.index(release)
    widths = (0, wire.KER_64BIT) if release in (Release.QNX_7, Release.QNX_8) else (0,)
    for row in rows.columns("kernel_calls", "calls"):
        if row[column] == "-":
            continue
        for class_name, offset in KER_CLASSES:
            for flag in widths:
                code = wire.code(WireClass.KER_CALL, int(row[column]) + offset | flag)
                file = "" if class_name == "INT_CALL" else class_name.lower()
                names[code] = CodeName(class_name, row[0], f"__KER_{row[0]}", file, row[0], bool(flag))
    return names


def _threads(release: Release) -> dict[int, CodeName]:
    names: dict[int, CodeName] = {}
    for state, number in state_numbers(release).items():
        code = wire.code(WireClass.PR_TH, number)
        names[code] = CodeName("THREAD", thread_name(state), f"_NTO_TRACE_{thread_name(state)}", "thread", state)
        if release != Release.QNX_8:
            virtual = f"V{thread_name(state)}"
            names[code + wire.VTHREAD_OFFSET] = CodeName("VTHREAD", virtual, f"_NTO_TRACE_{virtual}", "thread", state)
    return names


def thread_name(state: str) -> str:
    """Return the name that a thread state has in headers and listings, such as `THRUNNING`."""
    return "THREADY" if state == "READY" else f"TH{state}"  # one H less than the rule would give


def _tables(release: Release) -> dict[int, CodeName]:
    names: dict[int, CodeName] = {}
    for file, wire_class, printed in _TABLES:
        for number, name, symbol, releases in rows.columns(file, "names"):
            if rows.admits(releases, release):
                event = int(number)
                class_name = printed or INT_CLASSES[event]
                names[wire.code(wire_class, event)] = CodeName(
                    class_name, name, symbol, file, name, name.endswith("_64")
                )
    return names


@cache
def state_numbers(release: Release) -> dict[str, int]:
    """Return the thread states of a release and their numbers, CREATE and DESTROY included."""
    column = 1 + rows.RELEASE_ORDER.index(release)
    return {row[0]: int(row[column]) for row in rows.columns("thread_states", "states") if row[column] != "-"}


@cache
def names(release: Release) -> dict[int, CodeName]:
    """Return the names of all codes in the tables of a release; user events are included as `EVENT 37`."""
    name_of_code = _kernel_calls(release) | _threads(release) | _tables(release)
    for event in range(wire.EVENT_MASK + 1):
        name_of_code[wire.code(WireClass.USER, event)] = CodeName("USREVENT", f"EVENT {event}", "", "user", "EVENT")
    name_of_code[wire.code(WireClass.EMPTY, 0)] = CodeName("EMPTY", "EMPTY", "_NTO_TRACE_EMPTY", "", "")
    if release == Release.QNX_6:
        for event in STRAY_SYSTEM_EVENTS:
            name_of_code[wire.code(STRAY_SYSTEM_CLASS, event)] = name_of_code[wire.code(WireClass.SYSTEM, event)]
    return name_of_code


def class_of_unnamed(code: int, release: Release) -> str:
    """Return the printed class of a code that `names` does not hold."""
    number, event = wire.class_of(code), wire.event_of(code)
    if number == WireClass.KER_CALL:
        return ("KER_CALL", "KER_EXIT", "INT_CALL", "KER_CALL")[event >> 7 & 3]
    if number == WireClass.PR_TH:
        if event >= 64:
            return "PROCESS"
        is_virtual = release != Release.QNX_8 and wire.VTHREAD_OFFSET <= event < 2 * wire.VTHREAD_OFFSET
        return "VTHREAD" if is_virtual else "THREAD"
    return _ONLY_CLASS.get(number, f"CLASS {number}")


def class_starts(number: int) -> range | tuple[int]:
    """Return the event numbers of an internal class from which on `class_of_unnamed` may return another class."""
    if number == WireClass.KER_CALL:
        return range(0, wire.EVENT_MASK + 1, wire.KER_EXIT_OFFSET)
    return range(65) if number == WireClass.PR_TH else (0,)


def unnamed(code: int, release: Release) -> str:
    """Return the name shown for a code that `names` does not hold: `EVENT 37`, `state 43`."""
    event = wire.event_of(code)
    if wire.class_of(code) == WireClass.PR_TH and event < 64:
        is_virtual = release != Release.QNX_8 and wire.VTHREAD_OFFSET <= event < 2 * wire.VTHREAD_OFFSET
        return f"state {event - wire.VTHREAD_OFFSET if is_virtual else event}"
    return f"EVENT {event}"


_ONLY_CLASS: dict[int, str] = {
    WireClass.EMPTY: "EMPTY",
    WireClass.CONTROL: "CONTROL",
    WireClass.INT: "INTERRUPT",
    WireClass.SYSTEM: "SYSTEM",
    WireClass.USER: "USREVENT",
    WireClass.COMM: "COMM",
} | {plain.internal: plain.name for plain in plain_classes()}
