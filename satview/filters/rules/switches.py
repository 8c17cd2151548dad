"""The modes of TraceEvent() that set the static filter: switches, widths, pids and tids.

Source of every effect and error: description of the capture side, sections 2 to 3.3 (6.4 kernel). ADDALLCLASSES leaves
SEC off, since tracelogger has an option of its own for it (inferred).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.events.wire import event_of
from satview.filters.external import (
    CALL_COUNT,
    COMM_NAMES,
    INT_CLASSES,
    KER_CLASSES,
    LATER_CLASSES,
    MASK_CLASSES,
    OTHER_VECTOR,
    SECURITY,
    STATE_COUNT,
    SYSTEM_COUNT,
    USER_COUNT,
    VECTOR_COUNT,
    ExternalClass,
    ExternalEvent,
    classes_of,
    external_of,
    has_event_masks,
)

# The pid and tid that TraceEvent() stores per event of a class.


@dataclass(slots=True)
class PidTidTable:
    """The pid and tid that each event of one class must have to pass, int32 columns; 0 = any."""

    pid: NDArray[np.int32]
    tid: NDArray[np.int32]

    @classmethod
    def of_size(cls, count: int) -> PidTidTable:
        """Return a table for `count` events in which no pid or tid is set."""
        return cls(np.zeros(count, np.int32), np.zeros(count, np.int32))


# The static filter that TraceEvent() sets: switches, widths, pids and tids, and their results for an event.


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
EINVAL: Final = 22
ENOTSUP: Final = 48  # QNX number
_KER_BITS: Final = {C.KERCALL: ENTER | EXIT, C.KERCALLENTER: ENTER, C.KERCALLEXIT: EXIT}
PID_CLASSES: Final = {
    C.KERCALL: C.KERCALL, C.KERCALLENTER: C.KERCALL, C.KERCALLEXIT: C.KERCALL, C.THREAD: C.THREAD, C.VTHREAD: C.VTHREAD,
    C.SYSTEM: C.SYSTEM, C.COMM: C.COMM,
}  # fmt: skip


class Switches:
    """Classes and events on or off, fast or wide, pid and tid per event; everything off and fast at first.

    Each method for a mode of TraceEvent() returns 0, or the QNX error number that the kernel would return.

    Attributes:
        control, process, vthread: Event masks, as TraceEvent() has them.
        thread: Event mask; bit 31 up to 7.x, and bit 64 in 8.0, is `thread_is_wide`.
        calls: uint8 (128,), bits enter 1, exit 2, enter wide 4, exit wide 8.
        comm, system: uint8 (1024,), bits on 1, wide 2.
        user: bool (1024,).
        interrupts, interrupt_handlers: uint8 (257,), bits enter 1, exit 2; the last represents vectors above 255.
        later: on/off per event of QUIP, SEC, QVM, PMU; bool (1024,) each.
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

    def set_like(self, other: Switches) -> None:
        """Copy every switch, width, pid and tid of another set of the same release."""
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
        """Return all settings that decide which events pass, as a tuple that can be compared and hashed."""
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
        """Return all on/off switches, without widths, pids and tids, as a tuple that can be compared."""
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
        """Return `external_of()` of a code for this release, cached."""
        address = self._addresses.get(event_code)
        if address is None:
            address = self._addresses[event_code] = external_of(event_code, self.release)
        return address

    def is_on(self, address: ExternalEvent, event_code: int, words: tuple[int, ...] = ()) -> bool:
        """Return whether the switch of one event is on; `words` of its payload may hold the interrupt vector.

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

    # ---- static filter -------------------------------------------------------------------------------------------

    def add_all_classes(self) -> int:
        """Switch on all events of all classes except SEC; wide and fast stay as they are."""
        for external in self.known - {SECURITY, C.THREAD}:
            self._switch_class(external, True)
        self.user[:] = True  # governs what no class does, so all events of other systems, which have no class USER
        self.thread |= self.all_states
        return self._changed()

    def del_all_classes(self) -> int:
        """Switch everything off; wide and fast stay as they are."""
        for external in self.known - {C.THREAD}:
            self._switch_class(external, False)
        self.user[:] = False
        self.thread &= self._wide_thread_bit
        return self._changed()

    def add_class(self, external: int) -> int:
        """Switch a class on. THREAD becomes wide as well: the kernel sets all bits of the mask."""
        return self._switch_class(external, True)

    def del_class(self, external: int) -> int:
        """Switch a class off. THREAD becomes fast as well."""
        return self._switch_class(external, False)

    def add_event(self, external: int, event: int) -> int:
        """Switch on one event, or all events in a mask. For INT this means entry and exit of an interrupt vector."""
        return self._switch_event(external, event, True)

    def del_event(self, external: int, event: int) -> int:
        """Switch off one event, or all events in a mask."""
        return self._switch_event(external, event, False)

    def _switch_class(self, external: int, on: bool) -> int:
        if external not in self.known:
            return ENOTSUP
        external = ExternalClass(external)
        if external is C.THREAD:
            self.thread = self.all_states | self._wide_thread_bit if on else 0
        elif external in MASK_CLASSES:
            setattr(self, external.name.lower(), ALL_BITS if on else 0)
        elif external in KER_CLASSES:
            _switch(self.calls, _KER_BITS[external], on)
        elif external in INT_CLASSES:
            if external in (C.INT, C.INTENTER, C.INTEXIT):
                _switch(self.interrupts, INT_BITS[external], on)
            if external in (C.INT, C.INT_HANDLER_ENTER, C.INT_HANDLER_EXIT):
                _switch(self.interrupt_handlers, INT_BITS[external], on)
        elif external in (C.COMM, C.SYSTEM):
            _switch(self.comm if external is C.COMM else self.system, ON, on)
        elif external is C.USER:
            self.user[:] = on
        elif external in self.later:
            self.later[external][:] = on
        return self._changed()

    def _switch_event(self, external: int, event: int, on: bool) -> int:
        if external == C.EMPTY:
            return OK
        if external not in self.known or external == C.KERCALLINT:
            return ENOTSUP
        external = ExternalClass(external)
        if external in MASK_CLASSES:
            return self._switch_bits(external, event, on)
        if external in KER_CLASSES:
            return self._switch_one(self.calls, event, CALL_COUNT, _KER_BITS[external], on)
        if external in (C.INT, C.INTENTER, C.INTEXIT):
            return self._switch_one(self.interrupts, event, VECTOR_COUNT, INT_BITS[external], on)
        if external in INT_CLASSES:
            return self._switch_one(self.interrupt_handlers, event, VECTOR_COUNT, INT_BITS[external], on)
        if external is C.USER:
            return self._switch_flag(self.user, event, on, EINVAL)
        if external in self.later:
            return self._switch_flag(self.later[external], event, on, ENOTSUP)
        masks, count = self._masks_of(external)
        return self._switch_one(masks, event, count, ON, on)

    def _masks_of(self, external: int) -> tuple[NDArray[np.uint8], int]:
        """Return the switches of COMM or SYSTEM, uint8 by event number, and the number of its events in the release."""
        return (self.comm, len(COMM_NAMES)) if external == C.COMM else (self.system, SYSTEM_COUNT[self.release])

    def _switch_bits(self, external: ExternalClass, event: int, on: bool) -> int:
        if not has_event_masks(external, self.release):
            if not 0 <= event < STATE_COUNT:
                return ENOTSUP
            event = 1 << event
        elif not 0 <= event <= ALL_BITS:
            return ENOTSUP
        name = external.name.lower()
        mask: int = getattr(self, name)
        setattr(self, name, mask | event if on else mask & ~event)
        return self._changed()

    def _switch_one(self, masks: NDArray[np.uint8], index: int, count: int, bits: int, on: bool) -> int:
        if not 0 <= index < count:
            return ENOTSUP
        masks[index] = masks[index] | bits if on else int(masks[index]) & ~bits
        return self._changed()

    def _switch_flag(self, flags: NDArray[np.bool_], index: int, on: bool, error: int) -> int:
        if not 0 <= index < USER_COUNT:
            return error
        flags[index] = on
        return self._changed()

    # ---- fast and wide -------------------------------------------------------------------------------------------

    def set_all_classes_fast(self) -> int:
        """Log kernel calls, COMM, SYSTEM and THREAD in short form."""
        return self._width_of_all(False)

    def set_all_classes_wide(self) -> int:
        """Log kernel calls, COMM, SYSTEM and THREAD in full."""
        return self._width_of_all(True)

    def set_class_fast(self, external: int) -> int:
        """Log a class in short form; ENOTSUP for USER, while other classes without two forms are accepted."""
        return self._width_of_class(external, False)

    def set_class_wide(self, external: int) -> int:
        """Log a class in full; ENOTSUP for USER, while other classes without two forms are accepted."""
        return self._width_of_class(external, True)

    def set_event_fast(self, external: int, event: int) -> int:
        """Log one event in short form; no effect for THREAD, whose width is one bit for all states."""
        return self._width_of_event(external, event, False)

    def set_event_wide(self, external: int, event: int) -> int:
        """Log one event in full; no effect for THREAD."""
        return self._width_of_event(external, event, True)

    def _width_of_all(self, wide: bool) -> int:
        for external in (C.KERCALL, C.COMM, C.SYSTEM, C.THREAD):
            self._width_of_class(external, wide)
        return OK

    def _width_of_class(self, external: int, wide: bool) -> int:
        if external not in self.known or external == C.USER:
            return ENOTSUP
        if external in KER_CLASSES:
            _switch(self.calls, _KER_BITS[ExternalClass(external)] << 2, wide)
        elif external == C.COMM:
            _switch(self.comm, WIDE, wide)
        elif external == C.SYSTEM:
            _switch(self.system, WIDE, wide)
        elif external == C.THREAD:
            self.thread = self.thread | self._wide_thread_bit if wide else self.thread & ~self._wide_thread_bit
        return self._changed()

    def _width_of_event(self, external: int, event: int, wide: bool) -> int:
        if external not in self.known or external == C.USER:
            return ENOTSUP
        if external in KER_CLASSES:
            return self._switch_one(self.calls, event, CALL_COUNT, _KER_BITS[ExternalClass(external)] << 2, wide)
        if external in (C.COMM, C.SYSTEM):
            masks, count = self._masks_of(external)
            return self._switch_one(masks, event, count, WIDE, wide)
        return OK

    # ---- pid and tid ---------------------------------------------------------------------------------------------

    def set_class_pid(self, external: int, pid: int) -> int:
        """Let only this process pass, for all events of a class; one pid per event, a later one replaces it."""
        return self._set_thread(external, slice(None), pid, 0)

    def set_class_tid(self, external: int, pid: int, tid: int) -> int:
        """Let only this thread pass, for all events of a class; tid counts from 1."""
        return self._set_thread(external, slice(None), pid, tid)

    def set_event_pid(self, external: int, event: int, pid: int) -> int:
        """Let only this process pass, for one event; enter and exit of a kernel call share the setting."""
        return self._set_thread(external, self._index(external, event), pid, 0)

    def set_event_tid(self, external: int, event: int, pid: int, tid: int) -> int:
        """Let only this thread pass, for one event."""
        return self._set_thread(external, self._index(external, event), pid, tid)

    def clr_class_pid(self, external: int) -> int:
        """Drop the pid of every event of a class for which no tid is stored."""
        if external not in self.known or external == C.USER:
            return ENOTSUP
        if external in PID_CLASSES:
            test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
            test.pid[test.tid == 0] = 0
        return self._changed()

    def clr_class_tid(self, external: int) -> int:
        """Drop pid and tid of every event of a class for which a tid is stored.

        For SYSTEM and COMM the 6.x kernel has the test the wrong way round: it clears where *no* tid is stored.
        """
        if external not in self.known or external == C.USER:
            return ENOTSUP
        if external in PID_CLASSES:
            test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
            is_inverted = external in (C.SYSTEM, C.COMM) and self.release is Release.QNX_6
            selected = test.tid == 0 if is_inverted else test.tid != 0
            test.pid[selected] = 0
            test.tid[selected] = 0
        return self._changed()

    def clr_event_pid(self, external: int, event: int) -> int:
        """Drop the pid of one event; ENOTSUP while a tid is stored for it."""
        return self._clear_event(external, event, of_tid=False)

    def clr_event_tid(self, external: int, event: int) -> int:
        """Drop pid and tid of one event if a tid is stored; succeeds also without a stored tid."""
        return self._clear_event(external, event, of_tid=True)

    def _clear_event(self, external: int, event: int, *, of_tid: bool) -> int:
        if external in self.known and external not in PID_CLASSES and external != C.USER:
            return OK
        index = self._index(external, event)
        if index is None:
            return ENOTSUP
        test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
        has_tid = bool(test.tid[index])
        if has_tid and not of_tid:
            return ENOTSUP
        if has_tid is of_tid:
            test.pid[index] = test.tid[index] = 0
        return self._changed()

    def _index(self, external: int, event: int) -> int | None:
        """Return the row of an event in the pid table of its class, or None; a mask of events means its highest bit."""
        if external not in self.known or external not in PID_CLASSES:
            return None
        external = ExternalClass(external)
        if has_event_masks(external, self.release):
            event = event.bit_length() - 1 if 0 < event <= ALL_BITS else -1
        size = {C.COMM: len(COMM_NAMES), C.SYSTEM: SYSTEM_COUNT[self.release]}.get(
            external, len(self.threads_of[PID_CLASSES[external]].pid)
        )
        return event if 0 <= event < size else None

    def _set_thread(self, external: int, index: int | slice | None, pid: int, tid: int) -> int:
        if external not in self.known or external not in PID_CLASSES or index is None:
            return ENOTSUP
        if not (0 <= pid < 1 << 31 and 0 <= tid < 1 << 31):
            return ENOTSUP
        test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
        test.pid[index] = pid
        test.tid[index] = tid
        return self._changed()


def _switch(masks: NDArray[np.uint8], bits: int, on: bool) -> None:
    if on:
        masks |= np.uint8(bits)
    else:
        masks &= np.uint8(~bits & 0xFF)


def _no_listener() -> None:
    """Ignore a change: the default of `on_change`."""


def _governed_by(address: ExternalEvent) -> int:
    """Return the index of the switch of an event: the event's number, except that ERROR has the switch of REPLY."""
    return COMM_REPLY if address.external is C.COMM and address.number == COMM_ERROR else address.number
