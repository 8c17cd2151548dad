"""The modes of TraceEvent() that set the static filter: switches, widths, pids and tids.

Source of every effect and error: description of the capture side, sections 2 to 3.3 (6.4 kernel). ADDALLCLASSES leaves
SEC off, since tracelogger has an option of its own for it (inferred).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.filters.external import (
    CALL_COUNT,
    COMM_NAMES,
    INT_CLASSES,
    KER_CLASSES,
    MASK_CLASSES,
    SECURITY,
    STATE_COUNT,
    SYSTEM_COUNT,
    USER_COUNT,
    VECTOR_COUNT,
    ExternalClass,
    has_event_masks,
)
from satview.filters.rules.switch_state import ALL_BITS, ENTER, EXIT, INT_BITS, OK, ON, WIDE, C, SwitchState

EINVAL: Final = 22
ENOTSUP: Final = 48  # QNX number
_KER_BITS: Final = {C.KERCALL: ENTER | EXIT, C.KERCALLENTER: ENTER, C.KERCALLEXIT: EXIT}
PID_CLASSES: Final = {
    C.KERCALL: C.KERCALL,
    C.KERCALLENTER: C.KERCALL,
    C.KERCALLEXIT: C.KERCALL,
    C.THREAD: C.THREAD,
    C.VTHREAD: C.VTHREAD,
    C.SYSTEM: C.SYSTEM,
    C.COMM: C.COMM,
}


class Switches(SwitchState):
    """The modes: each is a method that returns 0 or the QNX error number that the kernel would give.

    A refused setting changes nothing.
    """

    # ---- static filter -------------------------------------------------------------------------------------------

    def add_all_classes(self) -> int:
        """Switch all events of all classes on; wide and fast stay as they are."""
        for external in self.known - {SECURITY, C.THREAD}:
            self._switch_class(external, True)
        self.thread |= self.all_states
        return self._changed()

    def del_all_classes(self) -> int:
        """Switch everything off; wide and fast stay as they are."""
        for external in self.known - {C.THREAD}:
            self._switch_class(external, False)
        self.thread &= self._wide_thread_bit
        return self._changed()

    def add_class(self, external: int) -> int:
        """Switch a class on. THREAD becomes wide as well: the kernel sets all bits of the mask."""
        return self._switch_class(external, True)

    def del_class(self, external: int) -> int:
        """Switch a class off. THREAD becomes fast as well."""
        return self._switch_class(external, False)

    def add_event(self, external: int, event: int) -> int:
        """Switch events on: one, or several bits of a mask. INT means enter and exit of the vector."""
        return self._switch_event(external, event, True)

    def del_event(self, external: int, event: int) -> int:
        """Switch events off."""
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
        """Masks of COMM or SYSTEM, and how many events of it the release has."""
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
        """Log a class in short form; classes without two forms are accepted."""
        return self._width_of_class(external, False)

    def set_class_wide(self, external: int) -> int:
        """Log a class in full; classes without two forms are accepted."""
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
        if external in self.known and external not in PID_CLASSES and external != C.USER:
            return OK
        index = self._index(external, event)
        if index is None:
            return ENOTSUP
        test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
        if test.tid[index]:
            return ENOTSUP
        test.pid[index] = 0
        return self._changed()

    def clr_event_tid(self, external: int, event: int) -> int:
        """Drop pid and tid of one event if a tid is stored; succeeds even if not."""
        if external in self.known and external not in PID_CLASSES and external != C.USER:
            return OK
        index = self._index(external, event)
        if index is None:
            return ENOTSUP
        test = self.threads_of[PID_CLASSES[ExternalClass(external)]]
        if test.tid[index]:
            test.pid[index] = test.tid[index] = 0
        return self._changed()

    def _index(self, external: int, event: int) -> int | None:
        """Row of an event in its class's pid table; a mask counts by its highest bit. None: no such row."""
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
