"""Which events pass the switches, pids and tids of rules: tables once per rule set, then look-ups per chunk."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import CODE_COUNT, VTHREAD_OFFSET, WireClass, class_of, event_of
from satview.filters.external import OTHER_VECTOR
from satview.filters.rows import Bools, Rows, TableTest
from satview.filters.rules.switch_state import INT_BITS, C
from satview.filters.rules.switches import Switches
from satview.store.trace import Trace

_MOST_SETTINGS: Final = 4  # different pids and tids up to which each is looked at by itself
_OFF, _ON, _BY_VECTOR, _BY_OWNER, _BY_PAYLOAD = range(5)


class StaticMask:
    """The switches, pids and tids of a rule set, made ready for one trace.

    Codes that do not occur in the trace are left out of the tables, so that a change of rules costs some hundred
    look-ups and not 32,768.
    """

    def __init__(self, switches: Switches, trace: Trace) -> None:
        self._trace = trace
        self._kind = np.zeros(CODE_COUNT, np.uint8)
        self._setting = np.zeros(CODE_COUNT, np.uint16)
        self._vector_word = np.zeros(CODE_COUNT, np.int8)
        self._by_vector = np.zeros((CODE_COUNT, 0), np.bool_)
        self._settings: list[tuple[int, int]] = [(0, 0)]
        vectors: dict[int, Bools] = {}
        for code in np.flatnonzero(trace.code_counts).tolist():
            self._add(switches, code, vectors)
        self._vectors = vectors
        occurs = trace.code_counts > 0
        self._on = TableTest(self._kind != _OFF, occurs)
        self._is_special = (self._kind == _BY_VECTOR) | (self._kind == _BY_PAYLOAD)
        self._special_test = TableTest(self._is_special, occurs)
        pid, tid = trace.threads.pid, trace.threads.tid
        self._thread_passes = np.array(
            [
                (pid == set_pid) & ((tid == set_tid) | (set_tid == 0)) if set_pid else np.ones(len(pid), np.bool_)
                for set_pid, set_tid in self._settings
            ]
        )
        by_owner = [np.where(self._kind == _BY_OWNER, self._setting == n, False) for n in range(len(self._settings))]
        self._owned = [
            (TableTest(codes, occurs), TableTest(self._thread_passes[n]))
            for n, codes in enumerate(by_owner)
            if codes.any()
        ]

    def _add(self, switches: Switches, code: int, vectors: dict[int, Bools]) -> None:
        address = switches.address(code)
        if address.vector_word >= 0 and address.external is not None:
            masks = switches.interrupts if address.external in (C.INTENTER, C.INTEXIT) else switches.interrupt_handlers
            table = masks & INT_BITS[address.external] != 0
            self._kind[code] = _ON if table.all() else _BY_VECTOR if table.any() else _OFF
            self._vector_word[code] = address.vector_word
            vectors[code] = table
            return
        if not switches.is_on(address, code):
            return
        setting = switches.thread_test(address)
        if not setting[0]:
            self._kind[code] = _ON
            return
        if setting not in self._settings:
            self._settings.append(setting)
        self._setting[code] = self._settings.index(setting)
        self._kind[code] = _BY_PAYLOAD if _names_its_thread(code, address.external is C.VTHREAD) else _BY_OWNER

    @property
    def codes(self) -> Bools:
        """Codes of this trace whose events pass whatever their thread, vector and payload are; bool (32768,)."""
        return np.asarray(self._kind == _ON)

    def of(self, rows: Rows) -> Bools:
        """Return which of some events pass, bool (len(rows),)."""
        events = self._trace.events
        code = events.code[rows]
        passes = self._on.of(code)
        if len(self._owned) <= _MOST_SETTINGS:
            for codes, threads in self._owned:
                concerned = codes.of(code)
                if concerned.any():
                    passes &= np.logical_or(~concerned, threads.of(events.thread[rows]))
        else:
            passes &= self._thread_passes[self._setting.take(code, mode="clip"), events.thread[rows]]
        if not self._special_test.is_false:
            special = np.flatnonzero(self._special_test.of(code))
            if len(special):
                passes[special] = self._special(_absolute(rows, special), code[special])
        return passes

    def _special(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        kind = self._kind[code]
        passes = np.ones(len(rows), np.bool_)
        for selected, test in ((kind == _BY_VECTOR, self._vector_test), (kind == _BY_PAYLOAD, self._payload_test)):
            if selected.any():
                passes[selected] = test(rows[selected], code[selected])
        return passes

    def _vector_test(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        passes = np.zeros(len(rows), np.bool_)
        for value in np.unique(code).tolist():
            selected = code == value
            vector = self._trace.payloads.column(rows[selected], int(self._vector_word[value]))
            passes[selected] = self._vectors[value][np.minimum(vector, OTHER_VECTOR)]
        return passes

    def _payload_test(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        """The vectorised form of `event_context.tested_thread` for events whose payload names the thread."""
        events, payloads, threads = self._trace.events, self._trace.payloads, self._trace.threads
        first, second = (payloads.column(rows, word).view(np.int32) for word in (0, 1))
        owner_pid, owner_tid = threads.pid[events.thread[rows]], threads.tid[events.thread[rows]]
        event = code & 0x3FF
        is_comm = code >> 10 == WireClass.COMM
        pid, tid = first.copy(), second.copy()  # VTHREAD
        answered = is_comm & (event >= 10)
        pid[answered], tid[answered] = second[answered], first[answered]
        target = is_comm & (event < 10)
        pid[target], tid[target] = second[target], -1
        own = is_comm & (event <= 3) & ((second == -1) | (second == owner_pid))
        pid[own], tid[own] = owner_pid[own], owner_tid[own]
        setting = np.array(self._settings, np.int32)[self._setting[code]]
        return np.asarray((pid == setting[:, 0]) & ((setting[:, 1] == 0) | (tid == -1) | (tid == setting[:, 1])))


def _names_its_thread(code: int, is_vthread: bool) -> bool:
    """Return whether the thread that is tested is in the payload, not beside the event."""
    if class_of(code) == WireClass.COMM:
        return event_of(code) in (2, 3, 4, 5, 6, 7, 8, 10, 11)
    return is_vthread and event_of(code) >= VTHREAD_OFFSET


def _absolute(rows: Rows, positions: NDArray[np.intp]) -> NDArray[np.integer]:
    """Return event rows from positions within a slice or an array of rows."""
    return positions + (rows.start or 0) if isinstance(rows, slice) else rows[positions]
