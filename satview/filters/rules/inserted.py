"""Events that programs insert by TraceEvent(): the kernel looks at the switch of their number in USER, nothing else.

A trace before 8.0 does not show who logged an event, and calls that insert one leave no other trace (capture side,
section 6). Some events only libraries of programs log; of others both is possible.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, EVENT_MASK, WireClass, code
from satview.filters.rules.switches import Switches

_BY_LIBRARIES: Final = frozenset(("ADDRESS", "FUNC_ENTER", "FUNC_EXIT"))  # trace_here(), trace_func_enter(), ..._exit()
_BY_EITHER: Final = frozenset(
    ("SLOG", "RUNSTATE", "POWER", "PAGEWAIT", "PROFILE", "PCTRACE", "DEFRAG_START", "DEFRAG_END")
)
_CLASSES_OF_EITHER: Final = frozenset(("QUIP", "SEC", "QVM", "PMU"))


@cache
def inserted_codes(release: Release) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which codes only programs log, and which the kernel may log as well, bool (32768,) each."""
    book = catalogue(release)
    surely, maybe = np.zeros(CODE_COUNT, np.bool_), np.zeros(CODE_COUNT, np.bool_)
    for number in book.codes():
        class_name, name = book.class_name(number), book.name(number).removesuffix("_64")
        surely[number] = class_name == "SYSTEM" and name in _BY_LIBRARIES
        maybe[number] = (class_name == "SYSTEM" and name in _BY_EITHER) or class_name in _CLASSES_OF_EITHER
    return surely, maybe


def passes_inserted(switches: Switches) -> NDArray[np.bool_]:
    """Return for each code whether an event with it passes that a program inserts, bool (32768,)."""
    users = [code(WireClass.USER, number) for number in range(EVENT_MASK + 1)]
    is_on = np.array([switches.is_on(switches.address(user), user) for user in users])
    return np.tile(is_on, CODE_COUNT // len(is_on))
