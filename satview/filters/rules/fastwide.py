"""How an event would have been logged in the other mode, fast or wide, as far as the trace has the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from satview.events.layout import Layout, canonical, layout_of, logged_list
from satview.events.spec import EventSpec, Field, Release
from satview.events.variants import FAILURES, variant_of
from satview.events.wire import WireClass, class_of
from satview.store.trace import Trace

# Arguments that a wide event has at least: without partitions states have four, and a call as many as it is given.
_LEAST: Final = {"THREAD": 4, "TRACE_EVENT": 1}


@dataclass(frozen=True, slots=True)
class LoggedForm:
    """An event in one of its two forms.

    Attributes:
        form: `fast`, `wide`, `same` (the event has one form), `failed` (errno, the same in both), `raw` (list unknown).
        fields: The list that describes the words.
        words: Payload words without padding; None where the trace does not have the word.
        missing: Names of the arguments that the trace does not have.
    """

    form: str
    fields: tuple[Field, ...]
    words: tuple[int | None, ...]
    missing: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """Slots it takes in a buffer: two words each, at least one."""
        return max(1, (len(self.words) + 1) // 2)


def has_two_forms(code: int, release: Release) -> bool:
    """Return whether a kernel logs an event differently in fast and in wide mode.

    Only kernel calls, THREAD, COMM and SYSTEM events have two forms (section 8.1); where the list of a kernel call or
    a SYSTEM event is not known, it may have two.
    """
    fast, wide = (logged_list(release, code, is_wide=mode) for mode in (False, True))
    if fast[1] is None or wide[1] is None:
        return class_of(code) in (WireClass.KER_CALL, WireClass.SYSTEM)
    return fast != wide


def as_logged(
    spec: EventSpec, words: Sequence[int], release: Release, *, wide: bool, byte_order: str = "little"
) -> LoggedForm:
    """Return an event as it would have been logged with its switch on fast or on wide.

    Args:
        spec: Row of the catalogue.
        words: Payload words as they are in the trace, padding included.
        release: Of the trace.
        wide: The requested form.
        byte_order: Of the target: a value of 64 bits whose fast form has one word is logged as its low half.
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
    found: dict[str, tuple[int, ...]] = {}
    for part in layout.parts:
        end = part.word + part.words if part.words else len(words)
        found.setdefault(canonical(part.name), words[part.word : end])
    return found


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
