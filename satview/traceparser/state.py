"""The state of a parse: what the C library keeps behind its opaque pointer."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.formats.source import Source
from satview.traceparser.constants import ERROR_TEXTS, Debug, Error, Sort

Callback = Callable[["State", Any, int, int, "NDArray[np.uint32] | None", int], int | None]


@dataclass(slots=True)
class Registration:
    """A callback and the user data it was registered with."""

    function: Callback
    userdata: Any


@dataclass(slots=True)
class State:
    """State of a parse; made by `traceparser_init`.

    Attributes:
        release: Whose external classes and events are meant: 8.0 numbers thread states, others give them as bits.
        is_strict: Refuse what the vendor's library refuses: files below version 1.01, unclear byte order.
        errno: Error number of the C library after a call that failed.
    """

    release: Release = Release.QNX_7
    is_strict: bool = False
    errno: int = 0
    error: Error = Error.UNKNOWN_CLASS
    debug_stream: TextIO | None = None
    debug_flags: int = 0
    sort: Sort = Sort.NOSORT
    registrations: dict[int, Registration] = field(default_factory=dict)
    source: Source | None = None
    now: tuple[int, int] = (0, 0)
    previous: tuple[int, int] = (0, 0)
    previous_return: int = 0
    time_cycles: int = 0
    previous_time_cycles: int = 0
    first_cycles: int = 0
    file: BinaryIO | None = None

    def fail(self, error: Error) -> int:
        """Note an error and return -1."""
        self.error, self.errno = error, errno.EINVAL
        self.say(Debug.ERRORS, f"TRACEPARSER: {ERROR_TEXTS.get(error, error.name)}\n")
        return -1

    def say(self, flag: int, text: str) -> None:
        """Write to the debug stream if all bits of a flag are on."""
        if self.debug_stream is not None and self.debug_flags & flag == flag:
            self.debug_stream.write(text)
