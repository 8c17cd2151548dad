"""Completion of expressions: the proposals that fit at the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from satview.events import states
from satview.events.catalogue import listed_catalogue
from satview.events.layout import argument_names
from satview.events.spec import Release
from satview.filters.derived_columns import process_names
from satview.filters.expressions.nodes import FUNCTIONS
from satview.filters.expressions.reach import is_wide_only
from satview.filters.expressions.semantics import (
    FIELDS,
    FieldKind,
    KnownWhen,
    class_names,
    error_names,
    event_names,
    value_names,
)
from satview.filters.expressions.syntax import IS_WORDS
from satview.store.arguments import taught
from satview.store.trace import Trace

LIMIT: Final = 200
_LOOK_BACK: Final = 4000  # characters before the cursor that are examined
_WORD: Final = re.compile(r"[A-Za-z_][\w]*$")
_QUOTED: Final = re.compile(r'"[^"]*$')
_ARGUMENT: Final = re.compile(r"\barg\.([\w\[\]>.-]*)$")
_AFTER_FIELD: Final = re.compile(r"(\w+)\s*(==|!=|~|!~|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$")
_AFTER_ARGUMENT: Final = re.compile(
    r'\barg\.(?:([A-Za-z_][\w\[\]>.-]*?)|"([^"]+)")\s*(?:==|!=|~|!~|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$'
)
_OPERAND_ENDS: Final = re.compile(r"([\w\])\"'/])\s*$")
_EVENT: Final = re.compile(r"\bevent\s*==\s*\"?(\w+)")


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that can complete an expression at the cursor.

    Attributes:
        text: Text that replaces the expression from `start` to `end`.
        start, end: Position of the replaced part: the word before the cursor.
        help: Meaning of the text; may be empty.
    """

    text: str
    start: int
    end: int
    help: str = ""


def completions(text: str, position: int, release: Release, trace: Trace | None = None) -> list[Completion]:
    """Return the proposals that fit at the cursor, most likely first, at most 200.

    Args:
        text: The expression, which may be incomplete.
        position: Position of the cursor, 0 to len(text).
        release: Release whose names are proposed.
        trace: Trace whose processes and threads are proposed too; None = without these.
    """
    before = text[max(0, position - _LOOK_BACK) : position]
    if argument := _ARGUMENT.search(before):
        begun, items = argument.group(1), _arguments(before, release, trace)
    elif (quoted := _QUOTED.search(before)) and before.count('"') % 2:
        begun = quoted.group()
        items = list(_values(before[: quoted.start()], release, trace, in_quotes=True))
    else:
        word = _WORD.search(before)
        begun = word.group() if word else ""
        items = list(_completions(before[: len(before) - len(begun)], release, trace))
    requested = begun.strip('"').upper()
    start = position - len(begun)
    bare = [(name.strip('"').upper(), name, note) for name, note in dict(items).items()]
    beginning = [(name, note) for key, name, note in bare if key.startswith(requested)]
    containing = [(name, note) for key, name, note in bare if requested in key and not key.startswith(requested)]
    return [Completion(name, start, position, note) for name, note in (*beginning, *containing) if name != begun][
        :LIMIT
    ]


def _completions(before: str, release: Release, trace: Trace | None) -> Iterator[tuple[str, str]]:
    values = list(_values(before, release, trace))
    if values:
        yield from values
        return
    bare = before.rstrip()
    if follows_is := re.search(r"\bis(\s+not)?$", bare):
        yield from (*IS_WORDS.items(), *(() if follows_is[1] else (("not", "the opposite"),)))
        return
    follows_operator = re.search(r"\b(and|or|not|in)$", bare) is not None
    if _OPERAND_ENDS.search(bare) and not follows_operator:
        yield from _signs(bare)
        return
    yield from ((name, field_help(name)) for name in FIELDS)
    yield from (("arg.", "argument by name"), ("word[", "payload word by number"), ("not", "the opposite"))
    yield from ((f"{name}(", spec.help) for name, spec in FUNCTIONS.items())


def field_help(name: str) -> str:
    """Return the help text of a field, with a note if a capture does not know the value at the event but later."""
    spec = FIELDS[name]
    return spec.help if spec.known is KnownWhen.EVENT else f"{spec.help} (known {spec.known})"


def _signs(before: str) -> Iterator[tuple[str, str]]:
    field = _WORD.search(before)
    kind = FIELDS[field.group()].kind if field and field.group() in FIELDS else None
    if kind is FieldKind.FLAG:
        signs: Iterable[str] = ()
    elif kind in (FieldKind.CLASS, FieldKind.EVENT, FieldKind.STATE, FieldKind.TEXT):
        signs = ("==", "!=", "in", "~", "!~")
    else:
        signs = ("==", "!=", "<", "<=", ">", ">=", "in", "~")
    yield from ((sign, "") for sign in signs)
    yield from ((f"is {word}", help_) for word, help_ in IS_WORDS.items())
    yield from (("and", "both hold"), ("or", "at least one holds"))


def _values(before: str, release: Release, trace: Trace | None, in_quotes: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the values that can be compared with the field before the cursor, each with a note, which may be empty."""
    if argument := _AFTER_ARGUMENT.search(before):
        taught_by_trace = None if trace is None else taught(trace)
        texts = value_names(release, argument[1] or argument[2], taught_by_trace)
        yield from ((f'"{text}"', note) for text, note in texts.items() if '"' not in text)
        return
    comparison = _AFTER_FIELD.search(before)
    name = comparison.group(1) if comparison else ""
    if comparison is None or name not in FIELDS:
        return
    kind, is_pattern = FIELDS[name].kind, "~" in comparison.group(2)
    names: Iterable[tuple[str, str]] = ()
    if kind is FieldKind.CLASS:
        names = ((item, "") for item in class_names(release))
    elif kind is FieldKind.EVENT:
        names = ((item, "") for item in event_names(release))
    elif kind is FieldKind.STATE:
        names = ((state.name, state.meaning) for state in states.STATES)
    elif kind is FieldKind.ERROR:
        names = ((item, "") for item in error_names(release))
    elif trace is not None:
        names = _of_trace(name, trace)
    quotes = is_pattern or in_quotes
    yield from ((f'"{item}"' if quotes and not item.startswith('"') else item, note) for item, note in names)


def _of_trace(field: str, trace: Trace) -> Iterator[tuple[str, str]]:
    if field == "pid":
        for pid, name in zip(trace.processes.pid.tolist(), trace.processes.names, strict=True):
            if pid >= 0:
                yield str(pid), name
    elif field == "name":
        for name, pids in process_names(trace).items():
            if "/" not in name and '"' not in name:
                yield f'"{name}"', f"pid {', '.join(map(str, pids[:5]))}"
    elif field == "thread_name":
        yield from ((f'"{name}"', "") for name in sorted({*trace.threads.names} - {""}) if '"' not in name)
    elif field == "cpu":
        yield from ((str(cpu), "") for cpu in range(trace.cpu_count))


def _arguments(before: str, release: Release, trace: Trace | None) -> list[tuple[str, str]]:
    """Return argument names with notes: of events that the expression names, else of all; unusual ones in quotes."""
    named = _EVENT.findall(before)
    known = argument_names(release, None if trace is None else taught(trace))
    if named:
        codes = {code for name in named for code in listed_catalogue(release).find(name)}
        of_event = [name for name, owners in known.items() if codes.intersection(owners)]
    names = of_event if named and of_event else list(known)
    return [
        (
            name if re.fullmatch(r"[A-Za-z_]\w*(?:\[\d+\]|->\w+|\.\w+)*", name) else f'"{name}"',
            "wide form only" if is_wide_only(name, release) else "",
        )
        for name in names
        if '"' not in name and name != "empty"
    ]
