"""Events that programs insert by TraceEvent(): the kernel looks at the switch of their number in USER, nothing else.

The events of 8.0 have a bit that says so. Before it a trace does not show who logged an event, and calls that insert
one leave no other trace (capture side, section 6): some events only libraries of programs log; of others both is
possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, EVENT_MASK, PROCESS_INJECTED, WireClass, code
from satview.filters.derived_columns import DerivedColumns
from satview.filters.expressions.expression import Expression
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import Switches
from satview.store.trace import Trace

Bools = NDArray[np.bool_]
_BY_LIBRARIES: Final = frozenset(("ADDRESS", "FUNC_ENTER", "FUNC_EXIT"))  # trace_here(), trace_func_enter(), ..._exit()
_BY_EITHER: Final = frozenset(
    ("SLOG", "RUNSTATE", "POWER", "PAGEWAIT", "PROFILE", "PCTRACE", "DEFRAG_START", "DEFRAG_END")
)
_CLASSES_OF_EITHER: Final = frozenset(("QUIP", "SEC", "QVM", "PMU"))


class Inserted(NamedTuple):
    """Which events of a trace programs have inserted, bool (events,) each.

    Attributes:
        surely: These.
        maybe: Of these the trace does not show it.
    """

    surely: Bools
    maybe: Bools


@cache
def inserted_codes(release: Release) -> Inserted:
    """Return which codes only programs log, and which the kernel may log as well, bool (32768,) each."""
    book = catalogue(release)
    surely, maybe = np.zeros(CODE_COUNT, np.bool_), np.zeros(CODE_COUNT, np.bool_)
    for number in book.codes():
        class_name, name = book.class_name(number), book.name(number).removesuffix("_64")
        surely[number] = class_name == "SYSTEM" and name in _BY_LIBRARIES
        maybe[number] = (class_name == "SYSTEM" and name in _BY_EITHER) or class_name in _CLASSES_OF_EITHER
    return Inserted(surely, maybe)


def inserted_events(trace: Trace) -> Inserted:
    """Return which events of a trace programs have inserted; cached with the trace, not to be changed."""
    return trace.cached("rules.inserted", _inserted_events)


def _inserted_events(trace: Trace) -> Inserted:
    surely, maybe = (table[trace.events.code] for table in inserted_codes(trace.release))
    headers = trace.payloads.headers() if trace.release is Release.QNX_8 else None
    if headers is not None:
        by_process = headers & PROCESS_INJECTED != 0
        if by_process.any():  # else its slots may be made of a listing, which does not show it
            return Inserted(surely | by_process, np.zeros(len(surely), np.bool_))
    return Inserted(surely, maybe)


def inserted_by_code(trace: Trace) -> Bools:
    """Return of which codes the events of a trace are inserted by programs, bool (32768,)."""
    logged = np.bincount(trace.events.code[inserted_events(trace).surely], minlength=CODE_COUNT)
    return inserted_codes(trace.release).surely | (logged > 0)


def passes_inserted(switches: Switches) -> Bools:
    """Return for each code whether an event with it passes that a program inserts, bool (32768,)."""
    users = [code(WireClass.USER, number) for number in range(EVENT_MASK + 1)]
    is_on = np.array([switches.is_on(switches.address(user), user) for user in users])
    return np.tile(is_on, CODE_COUNT // len(is_on))


def passing_in_view(state: RuleSet, trace: Trace, derived: DerivedColumns | None = None) -> Bools:
    """Return which events of a trace pass the switches, pids and handlers of a rule set, bool (events,).

    For events that programs have inserted that is the switch of USER alone. Where a trace does not show who logged an
    event the switch of its class counts.
    """
    passes = state.mask(trace, None, derived)
    surely = inserted_events(trace).surely
    passes[surely] = passes_inserted(state)[trace.events.code[surely]]
    return passes


def doubt_of_view(state: RuleSet, trace: Trace, conditions: Sequence[Expression], derived: DerivedColumns) -> str:
    """Return of how many events a view cannot tell whether a capture has them, as a sentence; empty = of none.

    Args:
        state: The rules.
        trace: What is viewed.
        conditions: What must hold besides.
        derived: Where durations and priorities come from.
    """
    rows = np.flatnonzero(inserted_events(trace).maybe)
    rows = rows[passes_inserted(state)[trace.events.code[rows]] != state.mask(trace, rows, derived)]
    for condition in conditions:
        rows = rows[condition.mask(trace, rows, derived)]
    if not len(rows):
        return ""
    return (
        f"Cannot tell whether a capture would have {len(rows):,} events as shown: programs insert such events, for "
        "which the kernel looks at the switch of USER, and the trace does not show who logged them"
    )
