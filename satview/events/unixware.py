"""Events of UnixWare thread_trace files: the codes made from the three numbers of a record, and their meaning.

Codes have the layout of QNX codes, class and event in 15 bits, so that all tables over codes work. The class is 16 +
category; the event is made of interface, `which`, and a `RecordOutcome` that the reader adds, as the numbers of a
record do not show its effect on the thread (a lock may or may not have blocked). Two records have the codes of the QNX
events with the same meaning, so that views need not know the format: a successful thr_create is the creation of a
thread, thr_exit its end.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import rows, states, wire
from satview.events.naming import CodeName
from satview.events.spec import ClassSpec, EventSpec, Field

FIRST_CLASS: Final = 16  # category 0 does not exist: class 16 holds records of unknown kind
INTERFACE_MASK: Final = 0x1F
WHICH_SHIFT: Final = 5
OUTCOME_SHIFT: Final = 7
ARGUMENTS: Final = 5
OTHER: Final = wire.code(FIRST_CLASS, 0)
OWN_CATEGORY: Final = 10  # of records of processor times, which thread_trace(4) does not define
_FILE: Final = "unixware"


class RecordOutcome(IntEnum):
    """The effect of a record on a thread's state."""

    RUNS = 0  # its thread runs, before and after
    BLOCKS = 1  # first record of a call in which its thread waits
    ENDS = 2  # the last record of its thread
    OTHER = 3  # it changes the state of the thread that it names, not of its own thread


_OUTCOME_STATE: Final = {"thr_suspend 2": "SUSPENDED", "thr_continue 0": "READY"}


@cache
def categories() -> dict[str, int]:
    """Return the numbers of the categories (event1), by their names in THR_TRACE_EVENTS."""
    return {row[1]: int(row[0]) for row in rows.columns(_FILE, "categories")}


def cpu_time_codes() -> tuple[int, ...]:
    """Return the codes of records with the processor time of a thread: during its life, and at its end."""
    return record_code("cpu_time"), record_code("cpu_time", 0, RecordOutcome.ENDS)


@cache
def interfaces() -> dict[str, tuple[int, int]]:
    """Return the category and number of every interface by name: `mutex_lock` is (2, 2)."""
    return {name: (int(category), int(number)) for category, number, name in rows.columns(_FILE, "interfaces")}


@cache
def argument_lists() -> dict[str, tuple[Field, ...]]:
    """Return the arguments of every record, by interface and `which`: `mutex_lock 2`."""
    return {key: fast_and_wide[0] or () for key, fast_and_wide in rows.lists(_FILE, "lists").items()}


@cache
def waiting_states() -> dict[str, int]:
    """Return for each interface (library function) the lane value of the state in which a caller waits."""
    return {name: states.STATE_BY_NAME[state].value for name, state in rows.columns(_FILE, "states")}


def record_code(interface: str, which: int = 0, outcome: int = RecordOutcome.RUNS) -> int:
    """Return the code of a record: `record_code("mutex_lock", 1, RecordOutcome.BLOCKS)`.

    `which` is 1 or 2 for the first or second record of a call, 0 for the record of functions that log only one.
    """
    category, number = interfaces()[interface]
    return wire.code(FIRST_CLASS + category, number | which << WHICH_SHIFT | outcome << OUTCOME_SHIFT)


def plain(codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return codes, uint16 (n,), without their `RecordOutcome`, and those shared with QNX as those of their records."""
    out = codes & np.uint16(wire.CODE_MASK ^ 3 << OUTCOME_SHIFT)
    out[codes == wire.THREAD_CREATE] = record_code("thr_create", 2)
    out[codes == wire.THREAD_DESTROY] = record_code("thr_exit", 0)
    return out


@cache
def classes() -> tuple[ClassSpec, ...]:
    """Return the categories as classes, and `other` for records of unknown kind."""
    known = []
    for line in rows.lines(_FILE, "categories"):
        number, name, title = line.split(None, 2)
        known.append(ClassSpec(name, title, None, FIRST_CLASS + int(number)))
    return (*known, ClassSpec("other", "Records of unknown kind", None, FIRST_CLASS))


@cache
def names() -> dict[int, CodeName]:
    """Return the name of every code in the tables."""
    of_category = {number: word for word, number in categories().items()}
    name_of_code = {}
    for key in argument_lists():
        interface, _, which = key.rpartition(" ")
        category = of_category[interfaces()[interface][0]]
        shown = interface if which == "0" else key
        name = CodeName(category, shown, interface, _FILE, key)
        for code in _codes(interface, int(which)):
            name_of_code[code] = name
    return name_of_code


def _codes(interface: str, which: int) -> list[int]:
    if (interface, which) == ("thr_exit", 0):
        return [wire.THREAD_DESTROY]
    outcomes = [RecordOutcome.RUNS, RecordOutcome.ENDS]
    if which == 1 and interface in waiting_states():
        outcomes.append(RecordOutcome.BLOCKS)
    if f"{interface} {which}" in _OUTCOME_STATE:
        outcomes.append(RecordOutcome.OTHER)
    codes = [record_code(interface, which, outcome) for outcome in outcomes]
    return [*codes, wire.THREAD_CREATE] if (interface, which) == ("thr_create", 2) else codes


def class_indices() -> NDArray[np.uint8]:
    """Return for every code the index of its class in `classes()`, uint8 (32768,)."""
    last = len(classes()) - 1
    table = np.full(wire.CODE_COUNT, last, np.uint8)
    for row, spec in enumerate(classes()[:last]):
        table[wire.code(spec.internal, 0) : wire.code(spec.internal, wire.EVENT_MASK) + 1] = row
    table[[wire.THREAD_CREATE, wire.THREAD_DESTROY]] = 0
    return table


def state_values() -> NDArray[np.uint8]:
    """Return for every code the lane value of the state that it begins, uint8 (32768,); mostly RUNNING."""
    codes = np.arange(wire.CODE_COUNT)
    table = np.full(wire.CODE_COUNT, states.NOT_A_STATE, np.uint8)
    is_record = codes >= OTHER
    table[is_record] = states.RUNNING
    table[is_record & (codes >> OUTCOME_SHIFT & 3 == RecordOutcome.ENDS)] = states.ABSENT
    for interface, value in waiting_states().items():
        table[record_code(interface, 1, RecordOutcome.BLOCKS)] = value
    for key, state in _OUTCOME_STATE.items():
        interface, which = key.split()
        table[record_code(interface, int(which), RecordOutcome.OTHER)] = states.STATE_BY_NAME[state].value
    table[cpu_time_codes()[0]] = states.NOT_A_STATE
    table[wire.THREAD_CREATE] = states.READY
    table[wire.THREAD_DESTROY] = states.ABSENT
    return table


def unnamed(code: int) -> str:
    """Return the name shown for a code without a table row: `EVENT 25`; `mutex_lock (0)` if the function is known."""
    event = wire.event_of(code)
    number, which = event & INTERFACE_MASK, event >> WHICH_SHIFT & 3
    position = (wire.class_of(code) - FIRST_CLASS, number)
    for interface, known in interfaces().items():
        if known == position:
            return f"{interface} ({which})"
    return f"EVENT {number}"


def spec(code: int, class_name: str) -> EventSpec:
    """Return the description of a code."""
    known = names().get(code)
    if known is None:
        return EventSpec(code, class_name, unnamed(code), is_known=False)
    fields = argument_lists()[known.key]
    which = known.key.rpartition(" ")[2]
    when = {"0": "", "1": "First of two records: the call begins", "2": "Second of two records: the call ends"}[which]
    is_shared = code in (wire.THREAD_CREATE, wire.THREAD_DESTROY)
    outcome = RecordOutcome.RUNS if is_shared else RecordOutcome(wire.event_of(code) >> OUTCOME_SHIFT & 3)
    notes = {
        RecordOutcome.BLOCKS: ("The caller has to wait.",),
        RecordOutcome.ENDS: ("The last record of its thread.",),
    }.get(outcome, ())
    return EventSpec(code, known.class_name, known.name, "", fields, fields, (known.symbol,), when, notes=notes)
