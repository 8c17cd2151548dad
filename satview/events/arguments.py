"""The argument lists, notes and emission conditions of events; the file of a class is read at its first request."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from satview.events import rows
from satview.events.naming import CodeName
from satview.events.rows import Lists
from satview.events.spec import EventSpec, Field, Release, Show

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


def read_ahead() -> None:
    """Load the argument lists that nearly all traces need, before the first request; this takes 20 ms."""
    for file in (*_KERNEL, "thread"):
        rows.lists(file, "lists")


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
    """Return the fast and wide lists of a kernel call in 6.4, marked unsure, for payloads that no later list fits.

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
