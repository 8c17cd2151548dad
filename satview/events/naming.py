"""The names of all event codes of a release, in listings and in headers, and the argument lists of events."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from satview.events import rows, wire
from satview.events.rows import Lists
from satview.events.spec import EventSpec, Field, Release, Show
from satview.events.wire import WireClass, plain_classes

# The names of all event codes of a release: in listings and in headers, and the class.
#
# Every start needs this part of the catalogue; argument lists (`arguments.py`) are read on demand.


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
    """Return the printed class of a code that `names` does not contain."""
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
    """Return the name shown for a code that `names` does not contain: `EVENT 37`, `state 43`."""
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


# The argument lists, notes and emission conditions of events; the file of a class is read at its first request.


UNKNOWN_LISTS: Lists = (None, None)
_INTERRUPTED = (Field("empty", 1, Show.HEX), Field("empty", 1, Show.HEX))
_KERNEL = ("ker_call", "ker_exit")
_LISTING_FILES = {"KER_CALL": "ker_call", "KER_EXIT": "ker_exit", "SYSTEM": "system"}


def lists_of(name: CodeName, release: Release) -> Lists:
    """Return the argument lists of an event in fast and in wide mode; None for a list that is not known.

    For 6.x the lists are those of the 6.4 printer, checked against the events of the 6.4 kernel; for later releases
    those of the 7.x guide, with additions for 8.0.
    """
    if name.class_name == "INT_CALL":
        return _INTERRUPTED, _INTERRUPTED
    if name.file == "thread":
        return _thread_lists(name, release)
    if name.file in _KERNEL:
        return _kernel_lists(name, release)
    if not name.file:
        return UNKNOWN_LISTS
    if release == Release.QNX_6:
        return rows.lists(name.file, "lists_6").get(name.key, UNKNOWN_LISTS)
    guide = rows.lists(name.file, "lists").get(name.key, UNKNOWN_LISTS)
    return rows.lists(name.file, "lists_8").get(name.key, guide) if release == Release.QNX_8 else guide


def _thread_lists(name: CodeName, release: Release) -> Lists:
    block = "virtual" if name.class_name == "VTHREAD" else "lists"
    table = rows.lists("thread", f"{block}_6" if release == Release.QNX_6 else block)
    return table.get(name.key) or table["*"]


def _kernel_lists(name: CodeName, release: Release) -> Lists:
    if release == Release.QNX_6:
        return rows.marked_lists(name.file, "lists_6").get(name.key, UNKNOWN_LISTS)
    key = f"{name.key}/64" if name.is_64bit else name.key
    if release == Release.QNX_8 and (lists_8 := rows.lists(name.file, "lists_8").get(key)):
        return lists_8
    guide = rows.lists(name.file, "lists")
    if key in guide:
        return guide[key]
    # Some calls have the same number after 6.x but have lists in the 6.4 table only.
    return UNKNOWN_LISTS if name.is_64bit else old_lists(name.key, name.class_name)


def old_lists(name: str, class_name: str) -> Lists:
    """Return the argument lists of a kernel call in 6.4, fast and wide, for payloads that no later list fits; unsure.

    Some lists of the 7.x guide name one value where the kernel still emits seconds and nanoseconds.
    """
    if class_name not in ("KER_CALL", "KER_EXIT"):
        return UNKNOWN_LISTS
    fast, wide = rows.marked_lists(class_name.lower(), "lists_6").get(name, UNKNOWN_LISTS)
    return _unsure(fast), _unsure(wide)


def listing_lists(spec: EventSpec, release: Release) -> Lists:
    """Return the argument lists, fast and wide, that the `traceprinter` of a release uses to print an event.

    Up to 6.x these are the lists of `lists_of`. The 7.1 printer spells some arguments differently; for events that no
    known listing of the 7.1 printer contains, the lists of the vendor's guide are returned.
    """
    file = _LISTING_FILES.get(spec.class_name)
    if release == Release.QNX_6 or file is None:
        return spec.fast, spec.wide
    key = f"{spec.name}/64" if spec.is_64bit and file != "system" else spec.name
    return rows.lists("listing_7", file).get(key, (spec.fast, spec.wide))


def seen_lists(spec: EventSpec, release: Release) -> Lists:
    """Return the lists of an event as found in listings published by others, which no vendor document confirms."""
    if release is not Release.QNX_8 or spec.class_name not in ("KER_CALL", "KER_EXIT"):
        return UNKNOWN_LISTS
    return rows.lists(spec.class_name.lower(), "seen_8").get(spec.name, UNKNOWN_LISTS)


def _unsure(fields: tuple[Field, ...] | None) -> tuple[Field, ...] | None:
    return fields and tuple(replace(item, is_sure=False) for item in fields)


def label_of(name: CodeName, release: Release) -> str:
    """Return the label of an event in the vendor's printer, if it differs from the event's name; else an empty text."""
    if not name.file:
        return ""
    block = "labels_6" if release == Release.QNX_6 and name.file in _KERNEL else "labels"
    return _texts(name.file, block).get(name.key, ("",))[0]


def notes_of(name: CodeName, release: Release) -> tuple[str, ...]:
    """Return notes that are needed to read the raw numbers of an event."""
    if not name.file:
        return ()
    if release == Release.QNX_6 and name.file in _KERNEL:
        return _texts(name.file, "notes_6").get(name.key, ())
    key = f"{name.key}/64" if name.is_64bit and name.file in _KERNEL else name.key
    notes = _texts(name.file, "notes").get(key, ())
    return (*notes, *(f"corrected: {text}" for text in _texts(name.file, "corrected").get(key, ())))


def when_of(name: CodeName) -> str:
    """Return a text on when the kernel emits an event; may be empty."""
    return _texts(name.file, "when").get(name.key, ("",))[0] if name.file else ""


def calls_of(name: CodeName) -> tuple[str, ...]:
    """Return the public functions that make a kernel call."""
    return _public_calls().get(name.name, ()) if name.symbol.startswith("__KER_") else ()


@cache
def _texts(file: str, block: str) -> dict[str, tuple[str, ...]]:
    return rows.texts(file, block)


@cache
def _public_calls() -> dict[str, tuple[str, ...]]:
    skip = 1 + len(rows.RELEASE_ORDER)
    return {row[0]: tuple(row[skip:]) for row in rows.columns("kernel_calls", "calls")}
