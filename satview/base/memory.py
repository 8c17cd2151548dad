"""Returns memory at once: borrowed methods instead of reference cycles, and trimming the allocator's heap."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Final, ParamSpec, TypeVar, cast
from weakref import WeakMethod

_P = ParamSpec("_P")
_R = TypeVar("_R")
_M_ARENA_MAX: Final = -8  # malloc.h of glibc


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
def _glibc(name: str, *arguments: type) -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function = getattr(ctypes.CDLL(None), name)  # musl has none of them, and keeps nothing
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int
    return cast("Callable[..., int]", function)


@cache
def use_one_arena() -> None:
    """Let threads that begin after this call share the allocator's heap of the main thread.

    glibc gives each thread a heap of its own, and `give_back` cannot shrink those: after six loads of 2.5 M events
    and closing, 85 MB stayed in that of the worker. Threads wait for each other no longer than for the interpreter.
    """
    set_option = _glibc("mallopt", ctypes.c_int, ctypes.c_int)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Give the system the memory that freed arrays have left in the allocator's hands.

    glibc keeps freed blocks of up to 32 MB for later: of a followed file of 1.8 M events it held 460 MB, more than
    twice what the trace needed. Takes about a millisecond per 100 MB given back; without glibc it does nothing.
    """
    trim = _glibc("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
