"""External classes and events of TraceEvent(), and the event codes behind them, for one release.

Source: kernel event trace format, section 7.1; capture side, section 1.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from satview.capture.sim.errors import Errno, QnxError
from satview.events import naming, wire
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.external import STATE_COUNT, SYSTEM_COUNT, ExternalClass, classes_of, has_event_masks

CALLS = 128          # kernel calls a class has room for; an exit is that far from its entry

Class = ExternalClass   # the numbers that programs name are those that rules name
INTERRUPTS = (Class.INTENTER, Class.INTEXIT, Class.INT_HANDLER_ENTER, Class.INT_HANDLER_EXIT)
WITH_PID = (Class.KERCALL, Class.KERCALLENTER, Class.KERCALLEXIT, Class.THREAD, Class.VTHREAD, Class.SYSTEM, Class.COMM)
WITH_WIDE = (Class.KERCALL, Class.KERCALLENTER, Class.KERCALLEXIT, Class.COMM, Class.SYSTEM)
_CONTROL_EVENTS = (1, 2, 4, 8)
_COMM_EVENTS = 12
ALL_BITS = 0xFFFFFFFF
_MAX_PROCESS_BIT = 4


def unsupported(what: str) -> QnxError:
    """Return the error for a class or event that a mode does not take."""
    return QnxError(Errno.ENOTSUP, what)


class Codes:
    """Turns classes and events of one release into event codes.

    Attributes:
        known: Classes that TraceEvent() of the release knows.
    """

    def __init__(self, release: Release) -> None:
        self.release = release
        self.known = frozenset(classes_of(release))
        self._states = tuple(naming.state_numbers(release).values())

    def codes_of_class(self, cls: int) -> tuple[int, ...]:
        """Return the codes of a class; those of interrupts are kept by vector, so they have none here."""
        if cls == Class.KERCALL:
            return (*self.codes_of_class(Class.KERCALLENTER), *self.codes_of_class(Class.KERCALLEXIT))
        numbers: dict[int, tuple[WireClass, Iterable[int]]] = {
            Class.CONTROL: (WireClass.CONTROL, _CONTROL_EVENTS),
            Class.KERCALLENTER: (WireClass.KER_CALL, range(CALLS)),
            Class.KERCALLEXIT: (WireClass.KER_CALL, range(CALLS, 2 * CALLS)),
            Class.PROCESS: (WireClass.PR_TH, (bit + 1 << 6 for bit in range(_MAX_PROCESS_BIT + 1))),
            Class.THREAD: (WireClass.PR_TH, self._states),
            Class.VTHREAD: (WireClass.PR_TH, () if self.release == Release.QNX_8 else
                            (state + wire.VTHREAD_OFFSET for state in self._states)),
            Class.USER: (WireClass.USER, range(1024)),
            Class.SYSTEM: (WireClass.SYSTEM, range(SYSTEM_COUNT[self.release])),
            Class.COMM: (WireClass.COMM, range(_COMM_EVENTS)),
        }
        if cls not in numbers:
            return ()
        wire_class, events = numbers[cls]
        return tuple(wire.code(wire_class, event) for event in events)

    def codes_of_event(self, cls: int, event: int, highest_only: bool = False) -> tuple[int, ...]:
        """Return the codes behind an event argument: a bit mask for some classes, a number for others.

        Bits and states without a meaning have no code, but the kernel takes them.

        Raises:
            QnxError: ENOTSUP: no such event in the class.
        """
        if has_event_masks(Class(cls), self.release):
            if not highest_only <= event <= ALL_BITS:
                raise unsupported(f"class {cls} has no events {event:#x}")
            return self._codes_of_bits(cls, event, highest_only)
        if cls == Class.THREAD and 0 <= event < STATE_COUNT:
            return (wire.code(WireClass.PR_TH, event),) if event in self._states else ()
        codes: tuple[int, ...]
        if cls == Class.KERCALL:
            enter, leave = wire.code(WireClass.KER_CALL, event), wire.code(WireClass.KER_CALL, event + CALLS)
            codes = (enter, leave) if 0 <= event < CALLS else ()
        elif 0 <= event < len(all_codes := self.codes_of_class(cls)):
            codes = (all_codes[event],)
        else:
            codes = ()
        if not codes:
            raise unsupported(f"class {cls} has no event {event}")
        return codes

    def _codes_of_bits(self, cls: int, mask: int, highest_only: bool) -> tuple[int, ...]:
        bits = [bit for bit in range(32) if mask >> bit & 1]
        if highest_only:
            bits = bits[-1:]
        known = set(self.codes_of_class(cls))
        if cls == Class.CONTROL:
            codes = [wire.code(WireClass.CONTROL, 1 << bit) for bit in bits]
        elif cls == Class.PROCESS:
            codes = [wire.code(WireClass.PR_TH, bit + 1 << 6) for bit in bits]
        else:
            offset = wire.VTHREAD_OFFSET if cls == Class.VTHREAD else 0
            codes = [wire.code(WireClass.PR_TH, bit + offset) for bit in bits]
        return tuple(code for code in codes if code in known)
