"""Frees memory early: methods that keep no reference to their object, and trimming of the allocator's heap."""

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

    Meant for callbacks that an object gives to its own parts: a bound method would form a reference cycle, so that
    large arrays would stay until the garbage collector runs. If the object has been freed, a call raises
    ReferenceError.
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
        function = getattr(ctypes.CDLL(None), name)  # musl has neither function, and needs none
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int
    return cast("Callable[..., int]", function)


@cache
def use_one_arena() -> None:
    """Make threads that begin after this call use the allocator's heap of the main thread.

    glibc gives each thread its own heap, which `give_back` cannot shrink: after six loads of 2.5 M events were closed,
    85 MB stayed in the heap of a worker. Sharing costs no more waiting than the interpreter lock.
    """
    set_option = _glibc("mallopt", ctypes.c_int, ctypes.c_int)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Return freed memory from the allocator to the system.

    glibc keeps freed blocks of up to 32 MB: after following a file of 1.8 M events it kept 460 MB, more than twice what
    the trace needed. Takes about 1 ms per 100 MB; does nothing without glibc.
    """
    trim = _glibc("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
