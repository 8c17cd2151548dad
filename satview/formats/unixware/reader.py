"""Opens sets of thread_trace files as one trace: pairs records of calls, merges the files, and numbers threads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import NO_SUCH_FILE, TraceFormatError, UsageError
from satview.base.process import timed
from satview.base.time import NS_PER_S, Clock
from satview.events import rows, wire
from satview.events.catalogue import catalogue
from satview.events.layout import PayloadPart, layout_of
from satview.events.spec import Argument, Payload, Release, Show
from satview.events.states import STATE_BY_NAME
from satview.events.unixware import (
    ARGUMENTS,
    FIRST_CLASS,
    OTHER,
    OWN_CATEGORY,
    WHICH_SHIFT,
    RecordOutcome,
    cpu_time_codes,
    plain,
    record_code,
    state_values,
    waiting_states,
)
from satview.events.unixware import categories as known_categories
from satview.formats.unixware.columns import (
    RecordColumns,
    SetReader,
    concatenated,
    files_of,
    is_member_name,
    names_files,
    parse_line,
    times_files,
)
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, ProcessTable, StateIndex, ThreadTable
from satview.store.trace import Header, NumberPayloads, Trace

# Pairs the records of calls; finds calls in which a thread had to wait, and records that change states.


NOBODY: Final = 2**32 - 1
WAIT_NS: Final = 100_000  # without other evidence, a call of at least this length is assumed to have waited
Rows = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class PairedRecords:
    """Records in time order, with their pairs.

    Attributes:
        time_ns: int64, (n,).
        code: uint16, (n,), without outcome (`events.unixware.plain`).
        thread: (n,), row of the thread table.
        arguments: a1 to a5, (n,) each.
        by_thread: Rows grouped by thread, in time order. Records of processor time are left out, except the last record
            of a thread if it shows that the thread still existed.
        partner: uint32, (n,), row of the other record of the call; `NOBODY` for a record without one.
    """

    time_ns: NDArray[np.int64]
    code: NDArray[np.uint16]
    thread: NDArray[np.unsignedinteger]
    arguments: tuple[NDArray[np.signedinteger], ...]
    by_thread: Rows
    partner: NDArray[np.uint32]

    def first_records(self, interface: str) -> Rows:
        """Return the first records of the calls of an interface (library function), intp (n,), in time order."""
        return np.flatnonzero(self.code == record_code(interface, 1))


def which_of(code: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the field `which` of codes, uint16 (n,): 0 = only record of a call, 1 or 2 = first or second record."""
    return code >> np.uint16(WHICH_SHIFT) & np.uint16(3)


def pair_records(
    time_ns: NDArray[np.int64],
    code: NDArray[np.uint16],
    thread: NDArray[np.unsignedinteger],
    arguments: tuple[NDArray[np.signedinteger], ...],
) -> PairedRecords:
    """Return which records are the first and the second of the same call, with the rows of both.

    A thread's record after the first record of a call must be the second record of the same interface (function of the
    library). Records of processor time are ignored, because a thread may write them about another thread at any time.
    """
    by_thread = _without_samples(code, thread)
    earlier, later = by_thread[:-1], by_thread[1:]
    key = plain(code)
    step = np.uint16(1 << WHICH_SHIFT)
    fits = (which_of(key[earlier]) == 1) & (key[earlier] + step == key[later]) & (thread[earlier] == thread[later])
    fits &= key[earlier] >> wire.CLASS_SHIFT != wire.class_of(OTHER)
    partner = np.full(len(time_ns), NOBODY, np.uint32)
    partner[earlier[fits]] = later[fits]
    partner[later[fits]] = earlier[fits]
    return PairedRecords(time_ns, key, thread, arguments, by_thread, partner)


def _without_samples(code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger]) -> Rows:
    """Return the rows grouped by thread, intp (n,), without most records of processor time.

    A record of processor time is kept only if it is the last record of its thread, and the thread's record before it
    neither begins a call nor ends the thread: it shows that the thread still exists.
    """
    by_thread = np.argsort(thread, kind="stable")
    is_sample = np.isin(code[by_thread], cpu_time_codes())
    if not is_sample.any():
        return by_thread
    whose = thread[by_thread]
    before = np.maximum.accumulate(np.where(is_sample, -1, np.arange(len(by_thread))))  # the last record so far
    row = by_thread[before]
    is_over = (which_of(code[row]) == 1) | (code[row] == record_code("thr_exit"))
    is_last = np.append(whose[1:] != whose[:-1], True)
    lives_on = is_sample & is_last & (before >= 0) & (thread[row] == whose) & ~is_over
    return np.asarray(by_thread[~is_sample | lives_on])


def last_of_thread(calls: PairedRecords) -> Bools:
    """Return for every record whether it is the last of its thread, bool (records,)."""
    by_thread, is_last = calls.by_thread, np.zeros(len(calls.code), np.bool_)
    thread = calls.thread[by_thread]
    is_last[by_thread[np.append(thread[1:] != thread[:-1], True)[: len(by_thread)]]] = True
    return is_last


def waits(calls: PairedRecords, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]) -> Bools:
    """Return for every record whether it is the first of a call in which the thread had to wait, bool (records,).

    A call whose end was not recorded counts as a wait if it is the last record of its thread. `thread_of_id` has rows
    of the thread table by (process row, tid).
    """
    out = np.zeros(len(calls.code), np.bool_)
    is_last = last_of_thread(calls)
    for interface in waiting_states():
        rows = calls.first_records(interface)
        open_rows = rows[calls.partner[rows] == NOBODY]
        out[open_rows] = is_last[open_rows]
        rows = rows[calls.partner[rows] != NOBODY]
        if len(rows):
            out[rows] = _RULES[interface](calls, rows, thread_of_id, process)
    return out


def _seconds(calls: PairedRecords, rows: Rows) -> Rows:
    return calls.partner[rows].astype(np.intp)


def _lasted(calls: PairedRecords, rows: Rows) -> Bools:
    return np.asarray(calls.time_ns[_seconds(calls, rows)] - calls.time_ns[rows] >= WAIT_NS)


def _as_logged(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return for each call, by its first record, whether the field `block?` of its second record is set."""
    return np.asarray(calls.arguments[1][_seconds(calls, rows)] != 0)


def _always(_calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    return np.ones(len(rows), np.bool_)


def _by_count(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return for each call, by its first record, whether the semaphore's count was 0 or less, or the call took long."""
    return np.asarray(calls.arguments[1][rows] <= 0) | _lasted(calls, rows)


def _unless_last(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return for each call whether it waits at a barrier: all do but the last of each round, which ends it."""
    out = np.ones(len(rows), np.bool_)
    order = np.lexsort((rows, calls.arguments[0][rows]))
    barrier, arrived, left = calls.arguments[0][rows][order], rows[order], _seconds(calls, rows)[order]
    edges = np.flatnonzero(np.concatenate(([True], barrier[1:] != barrier[:-1], [True])))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        # A thread that arrives after another has left belongs to the next round.
        first_to_leave = np.minimum.accumulate(left[start:end][::-1])[::-1]
        next_round = np.searchsorted(arrived[start:end], first_to_leave).tolist()
        arrivals = 0
        while arrivals < end - start:
            arrivals = max(arrivals + 1, next_round[arrivals])
            out[order[start + arrivals - 1]] = False
    return out


def _joins_thread(
    calls: PairedRecords, rows: Rows, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]
) -> Bools:
    """Return for each call whether the joined thread ended during the call; if unknown, whether the call took long."""
    out = _lasted(calls, rows)
    ends = np.flatnonzero(calls.code == record_code("thr_exit"))
    end_of = dict(zip(calls.thread[ends].tolist(), ends.tolist(), strict=True))
    for i, row in enumerate(rows.tolist()):
        target = thread_of_id.get((int(process[calls.thread[row]]), int(calls.arguments[0][row])))
        if target in end_of:
            out[i] = row < end_of[target] < int(calls.partner[row])
    return out


def _itself(
    calls: PairedRecords, rows: Rows, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]
) -> Bools:
    """Return for each call whether the thread suspended itself, so that it waited until it was continued."""
    is_itself = [
        thread_of_id.get((int(process[calls.thread[row]]), int(calls.arguments[0][row]))) == int(calls.thread[row])
        for row in rows.tolist()
    ]
    return np.array(is_itself, np.bool_)


_RULES: Final[dict[str, Callable[..., Bools]]] = {
    "mutex_lock": _as_logged,
    "rmutex_lock": _as_logged,
    "rw_rdlock": _as_logged,
    "rw_wrlock": _as_logged,
    "cond_wait": _always,
    "cond_timedwait": _always,
    "sema_wait": _by_count,
    "barrier_wait": _unless_last,
    "thr_join": _joins_thread,
    "thr_suspend": _itself,
    **dict.fromkeys(("sleep", "read", "write", "connect", "accept", "poll", "wait_process", "sync"), _always),
}


@dataclass(frozen=True, slots=True)
class Effects:
    """Records that change the state of another thread, in time order.

    Attributes:
        event: intp (n,), rows of the records.
        thread: intp (n,), row of the thread that each record changes.
    """

    event: Rows
    thread: Rows


def effects(
    calls: PairedRecords, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32], needed: Bools
) -> Effects:
    """Return the records that create, suspend or continue another thread.

    Args:
        calls: The records.
        thread_of_id: Row in the thread table by (process row, tid).
        process: Process row of every thread.
        needed: Which records already show a change of their own thread; they are left out.
    """
    events, threads = [], []
    a1, a2 = calls.arguments[0], calls.arguments[1]
    created = np.flatnonzero((calls.code == record_code("thr_create", 2)) & (a1 == 0))
    suspended = np.flatnonzero((calls.code == record_code("thr_suspend", 2)) & (a1 == 0) & (calls.partner != NOBODY))
    continued = np.flatnonzero((calls.code == record_code("thr_continue")) & (a2 == 0))
    parts = ((created, a2[created]), (suspended, a1[_seconds(calls, suspended)]), (continued, a1[continued]))
    for call_rows, targets in parts:
        for row, tid in zip(call_rows.tolist(), targets.tolist(), strict=True):
            own = int(calls.thread[row])
            target = thread_of_id.get((int(process[own]), tid))
            if target is not None and target != own and not needed[row]:
                events.append(row)
                threads.append(target)
    order = np.argsort(np.array(events, np.intp), kind="stable")
    return Effects(np.array(events, np.intp)[order], np.array(threads, np.intp)[order])


def with_outcomes(calls: PairedRecords, waiting: Bools, other: Effects) -> NDArray[np.uint16]:
    """Return the codes with their outcome (`RecordOutcome`); creations and ends of threads get the codes of QNX.

    Args:
        calls: The records.
        waiting: bool (n,), which records begin a wait.
        other: Records that change the state of another thread.

    Returns:
        uint16 (n,).
    """
    is_last = last_of_thread(calls)
    outcome = np.zeros(len(calls.code), np.uint16)
    outcome[is_last] = RecordOutcome.ENDS
    outcome[waiting] = RecordOutcome.BLOCKS
    outcome[other.event] = RecordOutcome.OTHER
    code = calls.code | outcome << np.uint16(7)
    code[calls.code == record_code("thr_exit")] = wire.THREAD_DESTROY
    created = other.event[calls.code[other.event] == record_code("thr_create", 2)]
    code[created] = wire.THREAD_CREATE
    return code


# Builds a `Trace` from columns: merges the files by time, numbers threads and LWPs, derives states.
#
# Arguments of records have notes with names of objects and threads, and with the meaning of numbers.


_WORDS: Final = 2 * ARGUMENTS
_THREAD_ARGUMENTS: Final = frozenset(("wait_for", "departed", "new_tid", "target"))


@cache
def error_names() -> dict[int, str]:
    """Return the names of the System V Release 4 errors that the threads library returns, by number."""
    return rows.numbers("unixware", "errors")


@dataclass(frozen=True, slots=True)
class OddRecords:
    """Numbers of the records whose kind does not fit an event code.

    Attributes:
        event: int64, (k,), rows of the event table, ascending.
        numbers: int64, (k, 3): event1, event2 and which.
    """

    event: NDArray[np.int64]
    numbers: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordPayloads(NumberPayloads):
    """Implements `store.trace.PayloadSource` for records of five numbers, a1 to a5.

    Attributes:
        events: The event table.
        threads: The thread table.
        partner: uint32, (n,), row of the other record of a call; 2**32 - 1 = none.
        odd: Numbers of records of unknown kind.
        object_names: Names of objects by (pid, address); empty for traces of UnixWare.
    """

    events: EventTable
    threads: ThreadTable
    partner: NDArray[np.uint32]
    odd: OddRecords
    object_names: dict[tuple[int, int], str] = field(default_factory=dict)

    def decode(self, event: int, most: int | None = None) -> Payload:  # noqa: ARG002
        """Return the named arguments of one event; `most` is not used.

        A second record gets the object of its call from the first record; unnamed arguments are shown if not zero.
        """
        code, values = int(self.events.code[event]), self.values(event)
        spec = catalogue(Release.UNIXWARE).spec(code)
        layout = layout_of(Release.UNIXWARE, code, _WORDS)
        shown = [self._argument(event, part, values[part.word // 2]) for part in layout.parts]
        shown += [_unnamed(i, values[i]) for i in range(layout.end // 2, ARGUMENTS) if values[i] or not spec.is_known]
        if code & ~0x3FF == OTHER:
            shown = [*self._kind(event), *shown]
        other = int(self.partner[event])
        if other < event:  # excludes `NOBODY`, which is greater than any row
            shown += self._from_first(other)
        words = tuple(self.words(event).tolist())
        return Payload("same" if spec.is_known else "raw", tuple(shown), words, self.raw(event))

    def object_text(self, event: int, address: int) -> str:
        """Return the name of the object at an address in the process of an event; empty if unknown."""
        pid = int(self.threads.pid[int(self.events.thread[event])])
        return self.object_names.get((pid, address), "")

    def _argument(self, event: int, part: PayloadPart, value: int) -> Argument:
        note = self._note(event, part.name, value)
        return Argument(part.name, value, _text(part.show, value), part.word, part.words, note)

    def _note(self, event: int, name: str, value: int) -> str:
        if name == "rval" and value:
            return error_names().get(value, "")
        if name == "blocked":
            return "had to wait" if value else "got it at once"
        if name in _THREAD_ARGUMENTS and value > 0:
            pid = int(self.threads.pid[int(self.events.thread[event])])
            row = self.threads.row(pid, value)
            return self.threads.names[row] if row else ""
        return self.object_text(event, value) if value else ""

    def _kind(self, event: int) -> list[Argument]:
        row = int(np.searchsorted(self.odd.event, event))
        numbers = self.odd.numbers[row].tolist()
        return [Argument(name, n, str(n), 0, 0) for name, n in zip(("event1", "event2", "which"), numbers, strict=True)]

    def _from_first(self, first_record: int) -> list[Argument]:
        parts = layout_of(Release.UNIXWARE, int(self.events.code[first_record]), _WORDS).parts
        if not parts or parts[0].show != Show.POINTER or parts[0].name == "stack_base":
            return []
        value = int(self.arguments[0][first_record])
        note = self.object_text(first_record, value) or "from the first record"
        return [Argument(parts[0].name, value, _text(parts[0].show, value), 0, 0, note)]


def address_text(value: int) -> str:
    """Return an address in hexadecimal; negative 32-bit numbers are taken as unsigned."""
    return f"0x{value & (0xFFFFFFFF if -(1 << 31) <= value < 0 else (1 << 64) - 1):x}"


def _text(show: Show, value: int) -> str:
    return str(value) if show == Show.DEC else address_text(value)


def _unnamed(index: int, value: int) -> Argument:
    text = str(value) if -4096 < value < 4096 else f"{value} ({address_text(value)})"
    return Argument(f"a{index + 1}", value, text, 2 * index, 2)


# The state index: records that change the state of each thread.


def needed_for_own_state(calls: PairedRecords, waiting: Bools, lwp: NDArray[np.uint8]) -> Bools:
    """Return which records show a change of their own thread, bool (records,).

    These are the first record of a thread, the record after a wait, and the first record on another LWP.

    Args:
        calls: The records.
        waiting: bool (records,), which records begin a wait.
        lwp: uint8 (records,), lane of the LWP of each record.
    """
    by_thread = calls.by_thread
    needed = np.zeros(len(calls.code), np.bool_)
    row_before, row = by_thread[:-1], by_thread[1:]
    is_new = calls.thread[row_before] != calls.thread[row]
    needed[row] = is_new | waiting[row_before] | (lwp[row_before] != lwp[row])
    needed[by_thread[:1]] = True
    return needed


def state_index(
    calls: PairedRecords, code: NDArray[np.uint16], lwp: NDArray[np.uint8], other: Effects, thread_count: int
) -> StateIndex:
    """Return the records at which the state of a thread changes, grouped by thread.

    Every record shows that its thread runs, so only records with a change are returned: another state, another LWP, or
    the thread has its LWP back from another thread.

    Args:
        calls: The records, in time order.
        code: uint16 (records,), codes from `with_outcomes`.
        lwp: Lane of the LWP of every record.
        other: Records that change another thread's state.
        thread_count: Number of rows of the thread table.
    """
    values = state_values()
    own = np.ones(len(code), np.bool_)
    own[other.event] = False
    rows = calls.by_thread[own[calls.by_thread]]
    other = _valid(other, rows, calls, values[code])
    event = np.concatenate((rows, other.event))
    thread = np.concatenate((calls.thread[rows].astype(np.int64), other.thread))
    order = np.lexsort((event, thread))
    event, thread = event[order], thread[order]
    value = values[code[event]]
    is_own = calls.thread[event] == thread
    back = _has_lwp_back(calls, lwp)
    keep = np.ones(len(event), np.bool_)
    same_thread = thread[1:] == thread[:-1]
    moved = is_own[1:] & ((lwp[event[1:]] != lwp[event[:-1]]) | back[event[1:]])
    keep[1:] = ~same_thread | (value[1:] != value[:-1]) | moved
    event, thread = event[keep], thread[keep]
    start = np.searchsorted(thread, np.arange(thread_count + 1)).astype(np.int64)
    return StateIndex(event.astype(np.uint32), start)


def _has_lwp_back(calls: PairedRecords, lwp: NDArray[np.uint8]) -> Bools:
    """Return for every record whether the record before it on the same LWP is from another thread, bool (records,)."""
    by_lwp = np.argsort(lwp, kind="stable")
    back = np.zeros(len(lwp), np.bool_)
    row_before, row = by_lwp[:-1], by_lwp[1:]
    back[row] = (lwp[row_before] == lwp[row]) & (calls.thread[row_before] != calls.thread[row])
    return back


def _valid(other: Effects, own_rows: NDArray[np.intp], calls: PairedRecords, value: NDArray[np.uint8]) -> Effects:
    """Remove creations of threads that have earlier records, and continuations of threads that are not stopped.

    The new thread may begin to run before its creator writes the second record of the creation. `own_rows` are the
    records that change their own thread, and `value` the state that each record begins.
    """
    if not len(other.event):
        return other
    own_thread = calls.thread[own_rows].astype(np.int64)
    key = (own_thread << 32) | own_rows
    last_row = np.searchsorted(key, other.thread.astype(np.int64) << 32 | other.event) - 1
    has_run = (last_row >= 0) & (own_thread[np.maximum(last_row, 0)] == other.thread)
    last_own = np.where(has_run, own_rows[np.maximum(last_row, 0)], -1)
    is_still = np.zeros(len(other.event), np.bool_)
    order = np.lexsort((other.event, other.thread))
    row, row_before = order[1:], order[:-1]
    is_still[row] = (other.thread[row] == other.thread[row_before]) & (other.event[row_before] > last_own[row])
    suspends = value[other.event] == STATE_BY_NAME["SUSPENDED"].value
    keep = suspends | ~has_run | is_still
    return Effects(other.event[keep], other.thread[keep])


# Reads the file of names that `python -m satview.threadtrace` writes beside its traces.


_LINE = re.compile(r"(process|thread|object):([0-9]{1,18}):(.*)", re.DOTALL)
_LONGEST: Final = 4096
_NAME_LENGTH: Final = 300


@dataclass(slots=True)
class Names:
    """Names of one set, by process id and number.

    Attributes:
        processes: Path of the program, by pid.
        threads: Last name of each thread, by (pid, tid).
        objects: Name of each object, by (pid, address).
    """

    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    objects: dict[tuple[int, int], str] = field(default_factory=dict)


def read_names(path: Path, names: Names) -> None:
    """Add the names in a file to `names`; an unreadable file adds none."""
    try:
        with path.open("rb") as file:
            pid = -1
            while line := file.readline(_LONGEST):
                match = _LINE.fullmatch(line.decode("utf-8", "replace").rstrip("\r\n"))
                if match:
                    pid = _add(names, pid, match[1], int(match[2]), _clean(match[3]))
    except OSError:
        return


def _add(names: Names, pid: int, kind: str, number: int, text: str) -> int:
    """Add the name of a process, a thread or else an object; return the pid to which the following lines belong."""
    if kind == "process":
        names.processes[number] = text
        return number
    table = names.threads if kind == "thread" else names.objects
    table[pid, number] = text
    return pid


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:_NAME_LENGTH])


_MOST_LANES: Final = 256  # the event table has eight bits for a CPU
_MANY: Final = 200
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Numbering:
    """The thread and process tables, and the thread of every record.

    Attributes:
        threads, processes: The tables.
        thread: (records,), row in the thread table.
        row_of: Row in the thread table by (process row, tid).
    """

    threads: ThreadTable
    processes: ProcessTable
    thread: NDArray[np.unsignedinteger]
    row_of: dict[tuple[int, int], int]


def trace_from_columns(
    path: Path, files: Sequence[Path], columns: RecordColumns, names: Names, problems: Problems
) -> Trace:
    """Build a trace from the records of a set.

    The lists of `columns` are emptied, so that the records are not in memory twice.
    """
    time_ns = np.concatenate(columns.time_ns) if columns.time_ns else np.empty(0, np.int64)
    columns.time_ns.clear()
    order = np.argsort(time_ns, kind="stable")
    time_ns = time_ns[order]
    lwp_id, pid, tid = (concatenated(part)[order].astype(np.int64) for part in columns.ids)
    is_own = concatenated(columns.is_own)[order].astype(np.bool_)
    code, odd = _codes([concatenated(part)[order].astype(np.int64) for part in columns.kind], is_own, time_ns, problems)
    arguments = tuple(concatenated(part)[order] for part in columns.arguments)
    line_counts = _numbering(pid, tid, code, arguments, names)
    lane, titles = _lanes(pid, lwp_id, problems)
    del pid, tid, lwp_id, order, is_own  # frees a third of the memory
    calls = pair_records(time_ns, code, line_counts.thread, arguments)
    _report_unfinished(calls, problems)
    process = line_counts.threads.process
    waiting = waits(calls, line_counts.row_of, process)
    other = effects(calls, line_counts.row_of, process, needed_for_own_state(calls, waiting, lane))
    code = with_outcomes(calls, waiting, other)
    states = state_index(calls, code, lane, other, len(line_counts.threads))
    n = len(time_ns)
    events = EventTable(time_ns, code, lane, line_counts.thread, np.arange(n, dtype=np.uint32), np.ones(n, np.uint16))
    payloads = RecordPayloads(arguments, copy(events), line_counts.threads, calls.partner, odd, names.objects)
    start = int(time_ns[0]) if n else 0
    return Trace(
        path,
        "thread_trace",
        _header(files),
        None,
        Release.UNIXWARE,
        "little",
        Clock(NS_PER_S, start, 0),
        max(1, len(titles)),
        n,
        events,
        line_counts.threads,
        line_counts.processes,
        states,
        BufferTable.none(),
        payloads,
        problems,
        catalogue(Release.UNIXWARE),
        start - 1,
        pairs=calls.partner,
        cpu_titles=titles,
    )


def _header(files: Sequence[Path]) -> Header:
    directory = files[0].parent.as_posix() if files else ""
    return Header((("FILE_COUNT", str(len(files))), ("DIRECTORY", directory)))


def _codes(
    kind: list[Ints], is_own: NDArray[np.bool_], time_ns: Ints, problems: Problems
) -> tuple[NDArray[np.uint16], OddRecords]:
    """Return the code of every record, uint16 (n,), and the numbers of the records that no code can represent.

    `kind` are the fields event1, event2 and which, and `is_own` tells whether a record is from a file of times.
    """
    category, interface, which = kind
    fits = np.where(is_own, category == OWN_CATEGORY, (category >= 1) & (category < OWN_CATEGORY))
    fits &= (interface >= 0) & (interface < 32)
    fits &= (which >= 0) & (which <= 2)
    code = np.full(len(category), OTHER, np.uint16)
    possible_code = (FIRST_CLASS + category) << wire.CLASS_SHIFT | interface | which << WHICH_SHIFT
    code[fits] = possible_code[fits].astype(np.uint16)
    known = np.zeros(wire.CODE_COUNT, np.bool_)
    known[list(catalogue(Release.UNIXWARE).codes())] = True
    known[record_code("thr_exit")] = True
    unknown = np.flatnonzero(~known[code])
    if len(unknown):
        numbers = np.stack([column[unknown] for column in kind], axis=1)
        kinds, first_rows, counts = np.unique(numbers, axis=0, return_index=True, return_counts=True)
        listed = zip(kinds[:_MANY].tolist(), first_rows.tolist(), counts.tolist(), strict=False)
        for (event1, event2, which_number), row, count in listed:
            problems.add(
                "unknown-events",
                f"event1 {event1}, event2 {event2}, which {which_number} is in no table",
                None,
                count,
                int(time_ns[unknown[row]]),
            )
        if len(kinds) > _MANY:
            problems.add("unknown-events", "and more of the same", None, int(counts[_MANY:].sum()))
    odd = np.flatnonzero(~fits)
    return code, OddRecords(odd, np.stack([column[odd] for column in kind], axis=1))


def _numbering(
    pid: Ints, tid: Ints, code: NDArray[np.uint16], arguments: tuple[NDArray[np.signedinteger], ...], names: Names
) -> _Numbering:
    """Number the threads that wrote records or were created, and their processes; row 0 is the unknown thread."""
    key = pid << 32 | tid
    created = np.flatnonzero(
        (code == record_code("thr_create", 2)) & (arguments[0] == 0) & (arguments[1] > 0) & (arguments[1] < 1 << 31)
    )
    new = pid[created] << 32 | arguments[1][created].astype(np.int64)
    keys = np.unique(np.concatenate((key, new)))
    pids, process = np.unique(keys >> 32, return_inverse=True)
    thread = np.searchsorted(keys, key) + 1
    thread_pid = np.concatenate(([-1], keys >> 32)).astype(np.int32)
    thread_tid = np.concatenate(([-1], keys & 0xFFFFFFFF)).astype(np.int32)
    process_row = np.concatenate(([0], process + 1)).astype(np.int32)
    pairs = zip(thread_pid.tolist(), thread_tid.tolist(), strict=True)
    thread_names = tuple(names.threads.get(pair, "") for pair in pairs)
    nothing = np.full(len(pids) + 1, -1, np.int64)
    processes = ProcessTable(
        np.concatenate(([-1], pids)).astype(np.int32),
        nothing.astype(np.int32),
        ("", *(names.processes.get(number, "") for number in pids.tolist())),
        nothing,
        nothing.copy(),
    )
    row_of = {pair: row for row, pair in enumerate(zip(process_row.tolist(), thread_tid.tolist(), strict=True)) if row}
    small = np.uint16 if len(keys) < 1 << 16 else np.uint32
    threads = ThreadTable(thread_pid, thread_tid, process_row, thread_names)
    return _Numbering(threads, processes, thread.astype(small), row_of)


def _lanes(pid: Ints, lwp_id: Ints, problems: Problems) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return the lane of every record's LWP, uint8, and titles; LWPs beyond the last lane share it, as reported."""
    keys, lane = np.unique(pid << 32 | lwp_id, return_inverse=True)
    several = len(np.unique(keys >> 32)) > 1
    titles = [f"LWP {k & 0xFFFFFFFF}" + (f" of {k >> 32}" if several else "") for k in keys[:_MOST_LANES].tolist()]
    if len(keys) > _MOST_LANES:
        problems.add(
            "lwp-lanes",
            f"{len(keys)} LWPs; those from number {_MOST_LANES} on share one lane",
            count=len(keys) - _MOST_LANES + 1,
        )
        titles[-1] = "other LWPs"
    return np.minimum(lane, _MOST_LANES - 1).astype(np.uint8), tuple(titles)


def _report_unfinished(calls: PairedRecords, problems: Problems) -> None:
    """Report calls with only one of two records; a call that still waits at the end is not a problem."""
    which = which_of(calls.code)
    alone = (which != 0) & (calls.partner == NOBODY) & (calls.code >> wire.CLASS_SHIFT != FIRST_CLASS)
    alone &= ~((which == 1) & last_of_thread(calls))
    rows = np.flatnonzero(alone)
    for row in rows[:_MANY].tolist():
        name = catalogue(Release.UNIXWARE).name(int(calls.code[row]))
        problems.add("unfinished-calls", f"{name} has no counterpart", None, 1, int(calls.time_ns[row]))
    if len(rows) > _MANY:
        problems.add("unfinished-calls", "and more of the same", None, len(rows) - _MANY)


# Opens sets of thread_trace files as one trace.


_LINES_LOOKED_AT = 5


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is a thread trace, by its first lines and its name; 0 to 95."""
    lines = first_bytes.splitlines(keepends=True)[:_LINES_LOOKED_AT]
    whole = [line.rstrip() for line in lines if line.endswith(b"\n") and line.strip()]
    good = sum(isinstance(parse_line(line), tuple) for line in whole)
    named = is_member_name(path.name)
    if good:
        return 95 if named else 80
    return 65 if named and b"\0" not in first_bytes and first_bytes[:1].isdigit() else 0


def selected_categories(text: str | Iterable[str] | None) -> list[int] | None:
    """Return the numbers of categories given in the form of THR_TRACE_EVENTS, `mutex:cond:sema`; None = all.

    Raises:
        UsageError: A name is not a category; the message has the nearest name.
    """
    if text is None:
        return None
    words = text.split(":") if isinstance(text, str) else list(text)
    known, numbers = known_categories(), []
    for word in (word.strip() for word in words):
        if word in known:
            numbers.append(known[word])
        elif word:
            near = difflib.get_close_matches(word, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{word!r} is not a category of thread traces ({':'.join(known)}){hint}")
    return numbers


def open_thread_trace(
    path: Path | str | Iterable[Path | str],
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    *,
    categories: str | Iterable[str] | None = None,
) -> Trace:
    """Open a set of thread_trace files as one trace.

    Args:
        path: A file (the other files of its process in the same directory belong to the set), a directory (all files in
            the directory), or several paths, which are exactly the files of the set.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between blocks; True stops.
        categories: Categories to keep, as for THR_TRACE_EVENTS: `mutex:cond:sema`; None = all.

    Returns:
        The trace. Its clock counts nanoseconds since 1970, like the files. CPU lanes are LWPs. `Trace.pairs` connects
        the two records of a call.

    Raises:
        TraceFormatError: No file can be read or, without `categories`, none contains a record.
        UsageError: A category does not exist.
        Cancelled: `cancelled()` returned True.
    """
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(part) for part in path]
    if not paths:
        raise UsageError("no thread trace was named")
    requested = selected_categories(categories)
    files = files_of(paths)
    times = times_files(files)
    total = max(1, sum(file.stat().st_size for file in (*files, *times) if file.is_file()))
    report_progress = None if progress is None else lambda done: progress(min(0.9, 0.9 * done / total))
    problems = Problems()
    reader = SetReader(requested, problems, report_progress, cancelled)
    with timed("read thread traces"):
        readable = [file for file in files if reader.read(file)]
        for file in times:
            reader.read(file, is_own=True)
    if not readable:
        fault = ("cannot be read", "check the permissions") if paths[0].exists() else NO_SUCH_FILE
        raise TraceFormatError(paths[0], None, *fault)
    if not any(len(part) for part in reader.columns.time_ns) and requested is None:
        raise TraceFormatError(
            paths[0],
            0,
            "no line of it is a record of thread_trace(4)",
            "open a file tr.xxxxxxx.yyy, or the directory that holds such files",
        )
    names = Names()
    for beside in names_files(readable):
        read_names(beside, names)
    with timed("assemble thread trace"):
        return trace_from_columns(paths[0], readable, reader.columns, names, problems)
