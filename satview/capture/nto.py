"""Constants of the trace interface under their C names, for control programs like those in the guide.

`_NTO_TRACE_START`, `_NTO_TRACE_THREAD`, `_NTO_TRACE_THRUNNING`, `__KER_MSG_READV`, ... are attributes of this module
(`from satview.capture import nto`). Their values depend on the release of the target: `_NTO_TRACE_THRUNNING` is a bit
mask up to 7.x and a number in 8.0. A capture sets the release; the default is 7.x.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from satview.events.modes import number_of
from satview.events.spec import Release

_release: Final = ContextVar("satview_nto_release", default=Release.QNX_7)


def set_release(release: Release) -> None:
    """Set the release that determines the values; called when a kernel boots or a control program is loaded."""
    _release.set(release)


def __getattr__(name: str) -> int:
    """Return the value of a C name in the current release."""
    release = _release.get()
    number = number_of(name, release) if "_NTO_" in name or "__KER_" in name else None
    if number is None:
        raise AttributeError(f"the trace interface of {release} has no {name}")
    return number
