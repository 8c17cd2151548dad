"""How an event would have been logged in the other mode, fast or wide, as far as the trace has the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Field, Release, Show
from satview.events.wire import KER_64BIT, THREAD_CREATE, THREAD_DESTROY, WireClass, class_of, event_of
from satview.filters.external import external_of
from satview.filters.forms import error_of, fields_for, is_exit
from satview.filters.switches import C
from satview.store.trace import Trace


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
    """Tell whether fast and wide differ for the class of a code: kernel calls, THREAD, COMM, SYSTEM.

    Up to 6.5 creation and end of a thread are two words in either mode (trace format, section 8.4).
    """
    if release is Release.QNX_6 and code in (THREAD_CREATE, THREAD_DESTROY):
        return False
    external = external_of(code, release).external
    return external in (C.KERCALLENTER, C.KERCALLEXIT, C.THREAD, C.COMM, C.SYSTEM)


def as_logged(spec: EventSpec, words: Sequence[int], release: Release, *, wide: bool) -> LoggedForm:
    """Return an event as it would have been logged with its switch on fast or on wide.

    Args:
        spec: Row of the catalogue.
        words: Payload words as they are in the trace, padding included.
        release: Of the trace.
        wide: The wanted form.
    """
    as_is = tuple(words)
    if is_exit(spec.code) and error_of(words, bool(event_of(spec.code) & KER_64BIT)) is not None:
        return LoggedForm("failed", (), as_is)
    wanted = spec.wide if wide else _fast_list(spec, release)
    actual = fields_for(spec, len(words))
    if wanted is None or not actual:
        return LoggedForm("raw", actual, as_is)
    if spec.fast == spec.wide or not has_two_forms(spec.code, release):
        return LoggedForm("same", actual, as_is)
    if actual == wanted or (wide and actual != spec.fast):
        return LoggedForm("wide" if wide else "fast", actual, as_is)
    return _converted("wide" if wide else "fast", wanted, _by_name(actual, as_is))


def _by_name(fields: Sequence[Field], words: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    at = 0
    for item in fields:
        size = item.words or len(words) - at
        if at + size <= len(words):
            found.setdefault(item.name, words[at : at + size])
        at += size
    return found


def _converted(form: str, wanted: tuple[Field, ...], known: dict[str, tuple[int, ...]]) -> LoggedForm:
    words: list[int | None] = []
    missing = []
    for item in wanted:
        value = known.get(item.name)
        if item.name == "empty":
            words.append(0)
        elif value is not None and (len(value) == item.words or item.show in (Show.STRING, Show.STRUCT)):
            words += value
        else:
            words += [None] * max(item.words, 1)
            missing.append(item.name)
    return LoggedForm(form, wanted, tuple(words), tuple(missing))


def logged_form(trace: Trace, event: int, *, wide: bool) -> LoggedForm:
    """Return one event of a trace as it would have been logged with its switch on fast or on wide."""
    return as_logged(trace.spec(event), trace.payloads.words(event).tolist(), trace.release, wide=wide)


def _fast_list(spec: EventSpec, release: Release) -> tuple[Field, ...] | None:
    """Return the fast list of an event; a call of 64 bits that has none is logged as that of 32 bits."""
    if spec.fast is None and _has_flag(release) and spec.code & KER_64BIT:
        is_call = class_of(spec.code) == WireClass.KER_CALL
        return catalogue(release).spec(spec.code & ~KER_64BIT).fast if is_call else spec.wide
    return spec.fast


def _has_flag(release: Release) -> bool:
    return release in (Release.QNX_7, Release.QNX_8)
