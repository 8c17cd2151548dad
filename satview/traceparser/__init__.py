"""A Python version of QNX's traceparser library, with the C names of its functions and of the numbers in its headers.

    from satview.traceparser import (
        _NTO_TRACE_COMM, _NTO_TRACE_COMM_SMSG, traceparser, traceparser_cs, traceparser_destroy, traceparser_init)

`_TRACEPARSER_...` are the numbers of <sys/traceparser.h>. `_NTO_TRACE_...` and `__KER_...` are those of <sys/trace.h>
and <sys/kercalls.h> in 7.x, the default release of `traceparser_init()`; for other releases see `header_names`. All
names are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from satview.events import modes as names
from satview.events.spec import Release

if TYPE_CHECKING:
    from satview.traceparser.api import (
        Debug,
        Error,
        Info,
        Sort,
        traceparser,
        traceparser_cs,
        traceparser_cs_range,
        traceparser_debug,
        traceparser_destroy,
        traceparser_get_info,
        traceparser_init,
        traceparser_sort,
    )

__all__ = [
    "Debug", "Error", "Info", "Sort", "traceparser", "traceparser_cs", "traceparser_cs_range", "traceparser_debug",
    "traceparser_destroy", "traceparser_get_info", "traceparser_init", "traceparser_sort",
]  # fmt: skip


def header_names(release: str = "7.x") -> dict[str, int]:
    """Return the names and numbers in the trace headers of a release: `6.x`, `6.6`, `7.x` or `8.0`."""
    return names.header_names(Release(release))


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.api"), name)
    if name.startswith("_TRACEPARSER_"):
        number = import_module(f"{__name__}.api").header_number(name)
    elif "_NTO_TRACE_" in name or "__KER_" in name:
        spec = import_module("satview.events.spec")
        number = import_module("satview.events.modes").number_of(name, spec.Release.QNX_7)
    else:
        number = None
    if number is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return number
