"""Arguments of events as the other mode, fast or wide, would have logged them, where the trace has the words."""

from __future__ import annotations

from satview.events.layout import canonical
from satview.events.spec import Argument
from satview.filters.rules.fastwide import LoggedForm, logged_form
from satview.store.trace import Trace

_UNKNOWN = "not in the trace"


def form_of(trace: Trace, event: int, *, is_wide: bool) -> LoggedForm:
    """Return the form an event would have been logged in."""
    return logged_form(trace, event, wide=is_wide)


def arguments_as(trace: Trace, event: int, *, is_wide: bool, most: int | None = None) -> tuple[Argument, ...]:
    """Return the arguments of an event in one of its forms; those that the trace does not have say so."""
    payload, form = trace.payloads.decode(event, most), form_of(trace, event, is_wide=is_wide)
    if form.form in ("same", "failed", "raw", payload.form):
        return payload.arguments
    known = {canonical(argument.name): argument for argument in payload.arguments}
    found = []
    at = 0
    for item in form.fields:
        if argument := known.get(canonical(item.name)):
            found.append(argument)
        elif item.name != "empty":
            found.append(Argument(item.name, "", _UNKNOWN, at, item.words))
        at += item.words
    return tuple(found)
