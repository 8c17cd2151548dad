"""Converts an event to the form of the other mode, fast or wide, as far as the trace has the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.layout import Layout, canonical, layout_of, logged_list
from satview.events.spec import EventSpec, Field, Release
from satview.events.variants import FAILURES, variant_of
from satview.events.wire import CODE_COUNT, EVENT_MASK, PROCESS_INJECTED, WireClass, class_of, code
from satview.filters.derived_columns import DerivedColumns
from satview.filters.expressions.expression import Expression
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import Switches
from satview.store.trace import Trace

# Events that programs insert by TraceEvent(): the kernel tests only the switch of their number in USER.


Bools = NDArray[np.bool_]
_BY_LIBRARIES: Final = frozenset(("ADDRESS", "FUNC_ENTER", "FUNC_EXIT"))  # trace_here(), trace_func_enter(), ..._exit()
_BY_EITHER: Final = frozenset(
    ("SLOG", "RUNSTATE", "POWER", "PAGEWAIT", "PROFILE", "PCTRACE", "DEFRAG_START", "DEFRAG_END")
)
_CLASSES_OF_EITHER: Final = frozenset(("QUIP", "SEC", "QVM", "PMU"))


class Inserted(NamedTuple):
    """The events or codes that programs insert, as masks.

    Attributes:
        surely: Certainly inserted by programs.
        maybe: May be inserted by programs or logged by the kernel: the trace does not show which.
    """

    surely: Bools
    maybe: Bools


@cache
def inserted_codes(release: Release) -> Inserted:
    """Return the codes that only programs log, and those that the kernel may log as well, bool (32768,) each."""
    book = catalogue(release)
    surely, maybe = np.zeros(CODE_COUNT, np.bool_), np.zeros(CODE_COUNT, np.bool_)
    for number in book.codes():
        class_name, name = book.class_name(number), book.name(number).removesuffix("_64")
        surely[number] = class_name == "SYSTEM" and name in _BY_LIBRARIES
        maybe[number] = (class_name == "SYSTEM" and name in _BY_EITHER) or class_name in _CLASSES_OF_EITHER
    return Inserted(surely, maybe)


def inserted_events(trace: Trace) -> Inserted:
    """Return the events of a trace that programs have inserted, bool (events,) each; cached, not to be changed."""
    return trace.cached("rules.inserted", _inserted_events)


def _inserted_events(trace: Trace) -> Inserted:
    surely, maybe = (table[trace.events.code] for table in inserted_codes(trace.release))
    headers = trace.payloads.headers() if trace.release is Release.QNX_8 else None
    if headers is not None:
        by_process = headers & PROCESS_INJECTED != 0
        if by_process.any():  # otherwise the slots may come from a listing, which does not have this bit
            return Inserted(surely | by_process, np.zeros(len(surely), np.bool_))
    return Inserted(surely, maybe)


def inserted_by_code(trace: Trace) -> Bools:
    """Return the codes of events that only programs log, or that programs inserted in this trace; bool (32768,)."""
    logged = np.bincount(trace.events.code[inserted_events(trace).surely], minlength=CODE_COUNT)
    return inserted_codes(trace.release).surely | (logged > 0)


def passes_inserted(switches: Switches) -> Bools:
    """Return for each code whether events that programs insert with this code pass, bool (32768,)."""
    users = [code(WireClass.USER, number) for number in range(EVENT_MASK + 1)]
    is_on = np.array([switches.is_on(switches.address(user), user) for user in users])
    return np.tile(is_on, CODE_COUNT // len(is_on))


def passing_in_view(state: RuleSet, trace: Trace, derived: DerivedColumns | None = None) -> Bools:
    """Return which events of a trace pass the switches, pids and handlers of a rule set, bool (events,).

    For events that programs have inserted, only the switch of USER is tested. If a trace does not show whether the
    kernel or a program logged an event, the switch of its class is tested.
    """
    passes = state.mask(trace, None, derived)
    surely = inserted_events(trace).surely
    passes[surely] = passes_inserted(state)[trace.events.code[surely]]
    return passes


def doubt_of_view(state: RuleSet, trace: Trace, conditions: Sequence[Expression], derived: DerivedColumns) -> str:
    """Return a sentence on the number of events that a capture may or may not have; empty if there are none."""
    rows = np.flatnonzero(inserted_events(trace).maybe)
    rows = rows[passes_inserted(state)[trace.events.code[rows]] != state.mask(trace, rows, derived)]
    for condition in conditions:
        rows = rows[condition.mask(trace, rows, derived)]
    if not len(rows):
        return ""
    return (
        f"Cannot tell whether a capture would have {len(rows):,} events as shown: programs insert such events, for "
        "which the kernel looks at the switch of USER, and the trace does not show who logged them"
    )


# Least number of arguments of a wide event: states have four without partitions, a call as many as it is given.
_LEAST: Final = {"THREAD": 4, "TRACE_EVENT": 1}


@dataclass(frozen=True, slots=True)
class LoggedForm:
    """An event in the form, fast or wide, in which a kernel logs it.

    Attributes:
        form: `fast`, `wide`, `same` (the event has one form), `failed` (errno, the same in both), `raw` (argument
            list unknown).
        fields: The argument list that describes the words.
        words: Payload words without padding; None for a word that the trace does not have.
        missing: Names of the arguments that the trace does not have.
    """

    form: str
    fields: tuple[Field, ...]
    words: tuple[int | None, ...]
    missing: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """Number of slots that the event takes in a buffer: one for every two words, at least one."""
        return max(1, (len(self.words) + 1) // 2)


def has_two_forms(code: int, release: Release) -> bool:
    """Return whether a kernel logs an event differently in fast and in wide mode.

    Only kernel calls, THREAD, COMM and SYSTEM events have two forms (section 8.1). The result is True for a kernel call
    or SYSTEM event whose argument list is not known.
    """
    fast, wide = (logged_list(release, code, is_wide=mode) for mode in (False, True))
    if fast[1] is None or wide[1] is None:
        return class_of(code) in (WireClass.KER_CALL, WireClass.SYSTEM)
    return fast != wide


def as_logged(
    spec: EventSpec, words: Sequence[int], release: Release, *, wide: bool, byte_order: str = "little"
) -> LoggedForm:
    """Return an event, its words with padding, as it would have been logged with its switch on fast or on wide.

    In a fast form with one word, the low half of a 64-bit value is logged, in the target's `byte_order`.
    """
    as_is = tuple(words)
    variant = variant_of(release, spec.code, words)
    if variant in FAILURES:
        return LoggedForm("failed", (), as_is)
    requested = logged_list(release, spec.code, is_wide=wide)[1]
    actual = layout_of(release, spec.code, len(words), variant)
    if requested is None or actual.form == "raw":
        return LoggedForm("raw", (), as_is)
    if not has_two_forms(spec.code, release):
        return LoggedForm("same", requested, as_is)
    form = "wide" if wide else "fast"
    if wide and actual.form == "fast":
        requested = requested[: _LEAST.get(spec.name if spec.class_name == "KER_CALL" else spec.class_name)]
    if actual.form == form:
        return LoggedForm(form, requested, as_is)
    return _converted(form, requested, _by_name(actual, as_is), low_half=0 if byte_order == "little" else 1)


def _by_name(layout: Layout, words: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    words_of_name: dict[str, tuple[int, ...]] = {}
    for part in layout.parts:
        end = part.word + part.words if part.words else len(words)
        words_of_name.setdefault(canonical(part.name), words[part.word : end])
    return words_of_name


def _converted(form: str, requested: tuple[Field, ...], known: dict[str, tuple[int, ...]], low_half: int) -> LoggedForm:
    words: list[int | None] = []
    missing = []
    for item in requested:
        value = known.get(canonical(item.name))
        if item.name == "empty":
            words.append(0)
        elif value is not None and (len(value) == item.words or not item.words):
            words += value
        elif value is not None and (len(value), item.words) == (2, 1):
            words.append(value[low_half])
        else:
            words += [None] * item.words
            missing.append(item.name)
    return LoggedForm(form, requested, tuple(words), tuple(missing))


def logged_form(trace: Trace, event: int, *, wide: bool) -> LoggedForm:
    """Return one event of a trace as it would have been logged with its switch on fast or on wide."""
    words = trace.payloads.words(event).tolist()
    return as_logged(trace.spec(event), words, trace.release, wide=wide, byte_order=trace.byte_order)
