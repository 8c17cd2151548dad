"""What TraceEvent() has set of the static filter: switches, widths, pids and tids, and what they say of an event.

Source: description of the capture side, sections 2 to 3.3 (6.4 kernel). Where later releases have more classes (QUIP,
SEC, QVM, PMU) they get a switch per event and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from satview.events.spec import Release
from satview.events.wire import event_of
from satview.filters.external import (
    CALL_COUNT,
    LATER_CLASSES,
    MASK_CLASSES,
    OTHER_VECTOR,
    STATE_COUNT,
    USER_COUNT,
    VECTOR_COUNT,
    ExternalClass,
    ExternalEvent,
    classes_of,
    external_of,
)
from satview.filters.rules.pid_tid_table import PidTidTable

OK: Final = 0
C = ExternalClass
ENTER, EXIT, ENTER_WIDE, EXIT_WIDE = 1, 2, 4, 8
ON, WIDE = 1, 2
COMM_REPLY: Final = 10
COMM_ERROR: Final = 11  # has no switch of its own: REPLY's governs it
ALL_BITS: Final = (1 << 32) - 1
_WIDE_THREAD_BIT: Final = {True: 1 << 31, False: 1 << STATE_COUNT}  # up to 7.x it is bit 31 of the mask itself
INT_BITS: Final = {
    C.INT: ENTER | EXIT,
    C.INTENTER: ENTER,
    C.INTEXIT: EXIT,
    C.INT_HANDLER_ENTER: ENTER,
    C.INT_HANDLER_EXIT: EXIT,
}
_TESTED_CLASSES: Final = {
    C.KERCALLENTER: C.KERCALL,
    C.KERCALLEXIT: C.KERCALL,
    C.KERCALLINT: C.KERCALL,
    C.THREAD: C.THREAD,
    C.VTHREAD: C.VTHREAD,
    C.COMM: C.COMM,
}  # SYSTEM is stored, not tested
_ARRAYS: Final = ("calls", "comm", "system", "user", "interrupts", "interrupt_handlers")


class SwitchState:
    """Classes and events on or off, fast or wide, pid and tid per event; everything off and fast at first.

    Attributes:
        release: Which numbers apply.
        control, process, vthread: Event masks, as TraceEvent() has them.
        thread: Event mask; `thread_is_wide` hides in it up to 7.x.
        calls: uint8 (128,), bits enter 1, exit 2, enter wide 4, exit wide 8.
        comm, system: uint8 (1024,), bits on 1, wide 2.
        user: bool (1024,).
        interrupts, interrupt_handlers: uint8 (257,), bits enter 1, exit 2; the last represents vectors above 255.
        later: on/off per event of QUIP, SEC, QVM, PMU; bool (1024,) each.
        known: Classes that TraceEvent() of the release knows.
        threads_of: pid and tid tests of KERCALL, THREAD, VTHREAD, SYSTEM, COMM.
        version: Grows with every change, for callers that cache what follows from the switches.
        on_change: Called after every change, for a kernel that caches what it looks up for every event.
    """

    def __init__(self, release: Release = Release.QNX_6) -> None:
        self.release = release
        self.control = self.process = self.thread = self.vthread = 0
        self.calls = np.zeros(CALL_COUNT, np.uint8)
        self.comm = np.zeros(USER_COUNT, np.uint8)
        self.system = np.zeros(USER_COUNT, np.uint8)
        self.user = np.zeros(USER_COUNT, np.bool_)
        self.interrupts = np.zeros(VECTOR_COUNT + 1, np.uint8)
        self.interrupt_handlers = np.zeros(VECTOR_COUNT + 1, np.uint8)
        self.known = frozenset(classes_of(release))
        self.later = {c: np.zeros(USER_COUNT, np.bool_) for c in LATER_CLASSES if c in self.known}
        self.threads_of = {
            c: PidTidTable.of_size(size)
            for c, size in (
                (C.KERCALL, CALL_COUNT),
                (C.THREAD, STATE_COUNT),
                (C.VTHREAD, STATE_COUNT),
                (C.SYSTEM, USER_COUNT),
                (C.COMM, USER_COUNT),
            )
        }
        self.version = 0
        self.on_change: Callable[[], None] = _no_listener
        self._wide_thread_bit = _WIDE_THREAD_BIT[release is not Release.QNX_8]
        self._addresses: dict[int, ExternalEvent] = {}

    def set_like(self, other: SwitchState) -> None:
        """Take over every switch, width, pid and tid of another set of the same release."""
        self.control, self.process = other.control, other.process
        self.thread, self.vthread = other.thread, other.vthread
        for name in _ARRAYS:
            getattr(self, name)[:] = getattr(other, name)
        for external, events in other.later.items():
            self.later[external][:] = events
        for external, test in other.threads_of.items():
            self.threads_of[external].pid[:] = test.pid
            self.threads_of[external].tid[:] = test.tid
        self._changed()

    def state(self) -> tuple[object, ...]:
        """Return everything that decides what passes, comparable and hashable."""
        return (
            self.release,
            self.control,
            self.process,
            self.thread,
            self.vthread,
            *(getattr(self, name).tobytes() for name in _ARRAYS),
            *(self.later[c].tobytes() for c in sorted(self.later)),
            *(
                part.tobytes()
                for c in sorted(self.threads_of)
                for part in (self.threads_of[c].pid, self.threads_of[c].tid)
            ),
        )

    @property
    def all_states(self) -> int:
        """Mask of all thread states, without the wide bit."""
        states = (1 << STATE_COUNT) - 1 if self.release is Release.QNX_8 else ALL_BITS
        return states & ~self._wide_thread_bit

    def switches(self) -> tuple[object, ...]:
        """Return what is on and off, without widths, pids and tids; comparable."""
        return (
            self.control,
            self.process,
            self.thread & self.all_states,
            self.vthread,
            *((masks & 3).tobytes() for masks in (self.calls, self.interrupts, self.interrupt_handlers)),
            (self.comm & ON).tobytes(),
            (self.system & ON).tobytes(),
            self.user.tobytes(),
            *(self.later[c].tobytes() for c in sorted(self.later)),
        )

    def address(self, event_code: int) -> ExternalEvent:
        """Return `external_of()` a code for this release, remembered."""
        found = self._addresses.get(event_code)
        if found is None:
            found = self._addresses[event_code] = external_of(event_code, self.release)
        return found

    def is_on(self, address: ExternalEvent, event_code: int, words: tuple[int, ...] = ()) -> bool:
        """Return whether the switch of one event is on.

        Events that no switch governs can only have been inserted by a program, and insertion tests the USER mask.
        """
        external, number = address.external, address.number
        if external is None:
            return bool(self.user[event_of(event_code)])
        if address.vector_word >= 0:
            vector = words[address.vector_word] if address.vector_word < len(words) else 0
            masks = self.interrupts if external in (C.INTENTER, C.INTEXIT) else self.interrupt_handlers
            return bool(masks[min(vector & ALL_BITS, OTHER_VECTOR)] & INT_BITS[external])
        if external is C.CONTROL:
            return bool(self.control & number)
        if external in MASK_CLASSES:
            mask: int = getattr(self, external.name.lower())
            return bool(mask & ~(self._wide_thread_bit if external is C.THREAD else 0) & 1 << number)
        if external in (C.KERCALLENTER, C.KERCALLEXIT, C.KERCALLINT):
            return bool(self.calls[number] & (ENTER if external is C.KERCALLENTER else EXIT))
        if external in (C.COMM, C.SYSTEM):
            return bool((self.comm if external is C.COMM else self.system)[_governed_by(address)] & ON)
        return bool(self.user[number] if external is C.USER else self.later[external][number])

    def is_wide(self, event_code: int) -> bool:
        """Return whether an event is logged in full, for classes that have two forms; False for all others."""
        address = self.address(event_code)
        external, number = address.external, address.number
        if external in (C.KERCALLENTER, C.KERCALLEXIT, C.KERCALLINT):
            return bool(self.calls[number] & (ENTER_WIDE if external is C.KERCALLENTER else EXIT_WIDE))
        if external is C.COMM:
            return bool(self.comm[number] & WIDE)
        if external is C.SYSTEM:
            return bool(self.system[number] & WIDE)
        return external is C.THREAD and self.thread_is_wide

    @property
    def thread_is_wide(self) -> bool:
        """Whether THREAD events are logged in full."""
        return bool(self.thread & self._wide_thread_bit)

    def thread_test(self, address: ExternalEvent) -> tuple[int, int]:
        """Return the (pid, tid) that is compared for an event, 0 = none. SYSTEM settings are never tested."""
        key = _TESTED_CLASSES.get(address.external) if address.external is not None else None
        if key is None:
            return 0, 0
        test = self.threads_of[key]
        number = _governed_by(address)
        return int(test.pid[number]), int(test.tid[number])

    def _changed(self) -> int:
        self.version += 1
        self.on_change()
        return OK


def _no_listener() -> None:
    """Take changes that nobody waits for."""


def _governed_by(address: ExternalEvent) -> int:
    """Index of the switch of an event: its own number, but REPLY's for ERROR."""
    return COMM_REPLY if address.external is C.COMM and address.number == COMM_ERROR else address.number
