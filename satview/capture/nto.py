"""Names of the trace interface as in C, for control programs like those in the guide.

`_NTO_TRACE_START`, `_NTO_TRACE_THREAD`, `_NTO_TRACE_THRUNNING`, `__KER_MSG_READV`, ... are attributes of this module
(`from satview.capture import nto`). Their numbers are those of the release that the program runs on:
`_NTO_TRACE_THRUNNING` is a bit up to 7.x and a number in 8.0. A capture sets the release; otherwise it is 7.x.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from satview.events.header_names import number_of
from satview.events.spec import Release

_release: Final = ContextVar("satview_nto_release", default=Release.QNX_7)


def set_release(release: Release) -> None:
    """Set the release whose numbers names have; called when a kernel boots or a control program is loaded."""
    _release.set(release)


def __getattr__(name: str) -> int:
    """Return the number of a name in the current release."""
    release = _release.get()
    number = number_of(name, release) if "_NTO_" in name or "__KER_" in name else None
    if number is None:
        raise AttributeError(f"the trace interface of {release} has no {name}")
    return number
