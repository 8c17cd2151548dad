"""Memory that is given back at once: borrowed methods instead of reference cycles, and what the allocator holds."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

_P = ParamSpec("_P")
_R = TypeVar("_R")


def borrowed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that calls a bound method without keeping its object alive.

    For what an object hands to its own parts: a bound method there is a cycle, and large arrays behind it would wait
    for the collector. Calling it after the object has gone raises ReferenceError.
    """
    reference = WeakMethod(method)

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        alive = reference()
        if alive is None:
            raise ReferenceError("the owner of this function is gone")
        answer: _R = alive(*args, **kwargs)
        return answer

    return call


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim = ctypes.CDLL(None).malloc_trim  # of glibc; musl has none, and keeps nothing
    except (OSError, AttributeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


def give_back() -> None:
    """Give the system the memory that freed arrays have left in the allocator's hands.

    glibc keeps freed blocks of up to 32 MB for later: of a followed file of 1.8 M events it held 460 MB, more than
    twice what the trace needed. Takes about a millisecond per 100 MB given back; without glibc it does nothing.
    """
    trim = _trim()
    if trim is not None:
        trim(0)
