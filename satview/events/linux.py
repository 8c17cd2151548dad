"""Events of Linux traces: state changes of threads, and tracepoints.

As QNX has one event per state change, a context switch is two events here: one for the thread that leaves the CPU and
one for the thread that gets it. A wake-up is two events as well: the waker's tracepoint and the READY event of the
woken thread. Codes have the layout of QNX codes, so that all tables over codes work: states are in class PR_TH, with
RUNNING under its number in QNX; tracepoints are in a class that no release of QNX has.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import rows, states, wire
from satview.events.naming import CodeName
from satview.events.spec import ClassSpec, EventSpec, Field

POINT_CLASS: Final = 16
POINT: Final = wire.code(POINT_CLASS, 0)  # any tracepoint without a name of its own
WAKING: Final = "sched_waking"
FIRST_TID: Final = 2_000_000_000  # of thread row 0 in exports for Perfetto; no process of QNX has a number that high
GONE: Final = wire.code(wire.WireClass.PR_TH, 51)  # a thread has left its CPU at an unknown time, in an unknown state
_FILE: Final = "linux"
_STATES: Final = "sched"
_POINTS: Final = "tracepoint"
_TAKEN: Final = tuple(wire.event_of(code) for code in (wire.THREAD_CREATE, wire.THREAD_DESTROY))


@cache
def state_codes() -> dict[int, int]:
    """Return the event code that begins each thread state, by the lane value of the state."""
    free = [number for number in range(wire.event_of(GONE)) if number not in _TAKEN]
    running = wire.event_of(wire.THREAD_RUNNING)
    free.remove(running)
    numbers = iter(free)
    return {
        state.value: wire.code(wire.WireClass.PR_TH, running if state.value == states.RUNNING else next(numbers))
        for state in states.STATES
    }


@cache
def point_codes() -> dict[str, int]:
    """Return the codes of the tracepoints with a code of their own, by name."""
    return {row[1]: wire.code(POINT_CLASS, int(row[0])) for row in rows.columns(_FILE, "tracepoints")}


@cache
def value_of_letter() -> dict[str, int]:
    """Return the lane values of thread states, by their letters in /proc: `S`, `D`, ..."""
    return {letter: states.STATE_BY_NAME[name].value for letter, name in rows.columns(_FILE, "states")}


@cache
def classes() -> tuple[ClassSpec, ...]:
    """Return two event classes: thread states, and tracepoints."""
    return (
        ClassSpec(_STATES, "States of threads", None, wire.WireClass.PR_TH),
        ClassSpec(_POINTS, "Tracepoints", None, POINT_CLASS),
    )


@cache
def names() -> dict[int, CodeName]:
    """Return the name of every code in the tables."""
    name_of_code = {
        code: CodeName(
            _STATES, states.STATE_BY_VALUE[value].name, "sched_switch", _FILE, states.STATE_BY_VALUE[value].name
        )
        for value, code in state_codes().items()
    }
    name_of_code[GONE] = CodeName(_STATES, "UNKNOWN", "sched_switch", _FILE, "UNKNOWN")
    name_of_code[wire.THREAD_CREATE] = CodeName(_STATES, "CREATE", "sched_process_fork", _FILE, "CREATE")
    name_of_code[wire.THREAD_DESTROY] = CodeName(_STATES, "DESTROY", "sched_process_exit", _FILE, "DESTROY")
    return name_of_code | {code: CodeName(_POINTS, name, name, _FILE, name) for name, code in point_codes().items()}


def class_indices() -> NDArray[np.uint8]:
    """Return for every code the index of its class in `classes()`, uint8 (32768,)."""
    return np.where(np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.PR_TH, 0, 1).astype(np.uint8)


def state_values() -> NDArray[np.uint8]:
    """Return for every code the lane value of the thread state that it begins, uint8 (32768,)."""
    table = np.full(wire.CODE_COUNT, states.NOT_A_STATE, np.uint8)
    for value, code in state_codes().items():
        table[code] = value
    return table


def unnamed(code: int) -> str:
    """Return the name shown for a code that is in no table."""
    return f"EVENT {wire.event_of(code)}"


def fields_of(code: int) -> tuple[Field, ...]:
    """Return the arguments of an event that are kept in memory; empty if they are only in the file."""
    known = names().get(code)
    table = rows.lists(_FILE, "lists")
    if known is None:
        return ()
    stored = table.get(known.key, table["*"] if known.class_name == _STATES else (None, None))
    return stored[0] or ()


def spec(code: int, class_name: str) -> EventSpec:
    """Return the description of a code."""
    known = names().get(code)
    if known is None:
        return EventSpec(code, class_name, unnamed(code), is_known=False)
    fields = fields_of(code)
    return EventSpec(code, known.class_name, known.name, "", fields, fields, (known.symbol,))
