"""Arguments of events as the other mode, fast or wide, would have logged them, where the trace has the words."""

from __future__ import annotations

from satview.events.spec import Argument
from satview.filters.fastwide import LoggedForm, logged_form
from satview.store.trace import Trace

_UNKNOWN = "not in the trace"


def form_of(trace: Trace, event: int, *, is_wide: bool) -> LoggedForm:
    """Return the form an event would have been logged in."""
    return logged_form(trace, event, wide=is_wide)


def arguments_as(trace: Trace, event: int, *, is_wide: bool) -> tuple[Argument, ...]:
    """Return the arguments of an event in one of its forms; those that the trace does not have say so."""
    known = {argument.name: argument for argument in trace.payloads.decode(event).arguments}
    form = form_of(trace, event, is_wide=is_wide)
    if form.form in ("same", "failed", "raw"):
        return tuple(known.values())
    found = []
    at = 0
    for item in form.fields:
        if item.name in known:
            found.append(known[item.name])
        elif item.name != "empty":
            found.append(Argument(item.name, "", _UNKNOWN, at, item.words))
        at += item.words
    return tuple(found)
