"""The trace settings a kernel keeps: which events are on, fast or wide, for whom, and which handlers judge them.

One byte per event code; external classes of TraceEvent() are turned into codes here and nowhere else.
Source: capture side, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from satview.capture.classes import (
    CALLS,
    INTERRUPTS,
    WITH_PID,
    WITH_WIDE,
    Class,
    Codes,
    unsupported,
)
from satview.capture.sim.errors import Errno, QnxError
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.external import LATER_CLASSES

ON, WIDE = 1, 2
_VECTORS = 256
_MAX_ID = 0x7FFFFFFF
MAX_HANDLERS, OLD_HANDLERS = 128, 64     # of the whole kernel; the older before 6.4
_THREAD_WIDE = 1 << 31                    # in the mask of THREAD


@dataclass(slots=True)
class EventData:
    """What an event handler gets, the counterpart of `event_data_t`.

    Attributes:
        header: Header word of the event, struct bits 0.
        data_array: The user's list; filled with the payload words.
        el_num: Words filled.
        area: The user's, untouched.
        feature_mask: Bits 0 and 1: `feature` holds pid and tid.
        feature: (pid, tid).
    """

    data_array: list[int] = field(default_factory=list)
    area: Any = None
    header: int = 0
    el_num: int = 0
    feature_mask: int = 0
    feature: list[int] = field(default_factory=lambda: [0, 0])


EventHandler = Callable[[EventData], int]
Place = tuple[int, int]                     # external class and event
_WHOLE_CLASS = -1                           # in place of an event


@dataclass(slots=True)
class Hook:
    """An attached handler."""

    function: EventHandler
    data: EventData
    pid: int = 0


class Settings(Codes):
    """Masks and handlers of one kernel.

    Attributes:
        max_handlers: Places for handlers.
        on: One byte per code (64-bit flag left out): bit 0 on, bit 1 wide.
        watched: One byte per code: not 0 if a pid is stored or a handler attached.
        interrupts: One byte array per interrupt class: 256 vectors, and all those above together, which have no switch
            of their own and follow the class.
        thread_wide: Bit 31 of the thread mask: THREAD events are wide.
    """

    def __init__(self, release: Release, max_handlers: int = MAX_HANDLERS) -> None:
        super().__init__(release)
        self.max_handlers = max_handlers
        self.on = bytearray(wire.CODE_COUNT)
        self.watched = bytearray(wire.CODE_COUNT)
        self.interrupts = {cls: bytearray(_VECTORS + 1) for cls in INTERRUPTS}
        self.thread_wide = False
        self.owners: dict[int, Place] = {}          # code to (pid, tid); tid 0 = any
        self.hooks: dict[Place, Hook] = {}
        self.hooked: set[int] = set()               # interrupt classes with a handler

    # On and off

    def switch(self, codes: Iterable[int], on: bool) -> None:
        """Turn codes on or off; their wide bits stay."""
        for code in codes:
            self.on[code] = self.on[code] | ON if on else self.on[code] & ~ON

    def switch_all(self, on: bool) -> None:
        """Turn everything on or off; wide bits stay."""
        for cls in Class:
            if cls not in (Class.KERCALL, Class.INT):
                self.switch(self.codes_of_class(cls), on)
        for table in self.interrupts.values():
            table[:] = bytes([on]) * (_VECTORS + 1)

    def switch_class(self, cls: int, on: bool) -> None:
        """ADDCLASS and DELCLASS."""
        self._check_class(cls)
        self.switch(self.codes_of_class(cls), on)
        for member in INTERRUPTS if cls == Class.INT else (cls,):
            if member in self.interrupts:
                self.interrupts[Class(member)][:] = bytes([on]) * (_VECTORS + 1)
        if cls == Class.THREAD:
            self.thread_wide = on   # all bits of the mask, so the one for "wide" too

    def switch_event(self, cls: int, event: int, on: bool) -> None:
        """ADDEVENT and DELEVENT."""
        if cls == Class.EMPTY:
            return
        if cls == Class.KERCALLINT:
            raise unsupported("interrupted calls follow their exits")
        self._check_class(cls)
        if cls == Class.USER and not 0 <= event <= wire.EVENT_MASK:
            raise QnxError(Errno.EINVAL, f"user event {event} is not 0 to 1023")
        if cls in INTERRUPTS or cls == Class.INT:
            if not 0 <= event < _VECTORS:
                raise unsupported(f"interrupt {event}")
            members = (Class.INTENTER, Class.INTEXIT) if cls == Class.INT else (Class(cls),)
            for member in members:
                self.interrupts[member][event] = on
            return
        if cls in LATER_CLASSES:
            if not 0 <= event <= wire.EVENT_MASK:
                raise unsupported(f"class {cls} has no event {event}")
            return              # nothing here emits any
        self.switch(self.codes_of_event(cls, event), on)
        if cls == Class.THREAD and event & _THREAD_WIDE:
            self.thread_wide = on

    def _check_class(self, cls: int, but_user: bool = False) -> None:
        if cls not in self.known or (but_user and cls == Class.USER):
            raise unsupported(f"class {cls}")

    def logs_interrupt(self, cls: Class, vector: int) -> bool:
        """Tell whether the interrupt events of a class are on for a vector."""
        return bool(self.interrupts[cls][vector if 0 <= vector < _VECTORS else _VECTORS])

    # Fast and wide

    def widen(self, codes: Iterable[int], wide: bool) -> None:
        """Set or clear the wide bit of codes."""
        for code in codes:
            self.on[code] = self.on[code] | WIDE if wide else self.on[code] & ~WIDE

    def widen_class(self, cls: int, wide: bool) -> None:
        """SETCLASSFAST and SETCLASSWIDE."""
        self._check_class(cls, but_user=True)
        if cls in WITH_WIDE:
            self.widen(self.codes_of_class(cls), wide)
        elif cls == Class.THREAD:
            self.thread_wide = wide

    def widen_all(self, wide: bool) -> None:
        """SETALLCLASSESFAST and SETALLCLASSESWIDE."""
        for cls in (Class.KERCALL, Class.COMM, Class.SYSTEM, Class.THREAD):
            self.widen_class(cls, wide)

    def widen_event(self, cls: int, event: int, wide: bool) -> None:
        """SETEVENTFAST and SETEVENTWIDE; classes without the choice are accepted without effect."""
        self._check_class(cls, but_user=True)
        if cls in WITH_WIDE:
            self.widen(self.codes_of_event(cls, event), wide)

    # Process and thread

    def _shared(self, codes: Iterable[int]) -> set[int]:
        """Return the codes that share one setting: entry and exit of a kernel call have a common one, at the entry."""
        return {code & ~CALLS if wire.class_of(code) == WireClass.KER_CALL else code for code in codes}

    def own(self, cls: int, event: int | None, pid: int, tid: int) -> None:
        """SETCLASSPID, SETEVENTPID (tid 0), SETCLASSTID, SETEVENTTID; event None = the whole class, 0 = nobody."""
        if cls not in self.known or cls not in WITH_PID:
            raise unsupported(f"class {cls} has no pid setting")
        if not (0 <= pid <= _MAX_ID and 0 <= tid <= _MAX_ID):
            raise unsupported(f"pid {pid}, tid {tid}")
        codes = self.codes_of_class(cls) if event is None else self.codes_of_event(cls, event, highest_only=True)
        for code in self._shared(codes):
            self.owners[code] = (pid, tid)
        self.refresh()

    def disown(self, cls: int, event: int | None, with_tid: bool) -> None:
        """CLRCLASSPID, CLREVENTPID (with_tid False), CLRCLASSTID, CLREVENTTID; event None = the whole class."""
        self._check_class(cls, but_user=True)
        if cls not in WITH_PID:
            return
        codes = self._shared(self.codes_of_class(cls) if event is None else
                             self.codes_of_event(cls, event, highest_only=True))
        # SYSTEM and COMM test the opposite of what they should in 6.4: they clear where no tid is stored.
        is_inverted = event is None and with_tid and cls in (Class.SYSTEM, Class.COMM) and self.release == Release.QNX_6
        for code in codes:
            has_tid = bool(self.owners.get(code, (0, 0))[1])
            if event is not None and not with_tid and has_tid:
                raise unsupported("a thread is stored for this event; clear that first")
            if has_tid == (with_tid and not is_inverted):
                self.owners.pop(code, None)
        self.refresh()

    # Handlers

    def places(self, cls: int, event: int | None) -> tuple[Place, ...]:
        """Return where a handler for a class (event None) or an event goes.

        Raises:
            QnxError: ENOTSUP: the class or event takes no handler.
        """
        if cls == Class.EMPTY:
            return ()
        both = {Class.KERCALL: (Class.KERCALLENTER, Class.KERCALLEXIT), Class.INT: (Class.INTENTER, Class.INTEXIT)}
        allowed = (Class.CONTROL, Class.KERCALLENTER, Class.KERCALLEXIT, Class.INTENTER, Class.INTEXIT, Class.PROCESS,
                   Class.THREAD, Class.VTHREAD, Class.SYSTEM, Class.COMM)
        if event is None and cls in both:
            return tuple((int(member), _WHOLE_CLASS) for member in both[Class(cls)])
        if cls not in allowed:
            raise unsupported(f"class {cls} takes no handler")
        if event is None:
            return ((cls, _WHOLE_CLASS),)
        if cls in (Class.INTENTER, Class.INTEXIT):
            if not 0 <= event < _VECTORS:
                raise unsupported(f"interrupt {event}")
            return ((cls, event),)
        codes = self.codes_of_event(cls, event, highest_only=True)
        if not codes or (cls == Class.CONTROL and codes[0] != wire.CONTROL_TIME):
            raise unsupported(f"class {cls} takes no handler for event {event:#x}")
        return ((cls, codes[0]),)

    def hook(self, cls: int, event: int | None, hook: Hook) -> None:
        """ADDEVENTHANDLER and ADDCLASSEVHANDLER."""
        places = self.places(cls, event)
        if len(self.hooks.keys() | set(places)) > self.max_handlers:
            raise unsupported(f"{self.max_handlers} handlers are attached already")
        for place in places:
            self.hooks[place] = hook
        self.refresh()

    def unhook(self, cls: int, event: int | None) -> None:
        """DELEVENTHANDLER and DELCLASSEVHANDLER; removing what is not there succeeds."""
        for place in self.places(cls, event):
            self.hooks.pop(place, None)
        self.refresh()

    def unhook_process(self, pid: int) -> None:
        """Remove the handlers of a process that has died."""
        self.hooks = {place: hook for place, hook in self.hooks.items() if hook.pid != pid}
        self.refresh()

    def refresh(self) -> None:
        """Recompute `watched` after a change of owners or handlers."""
        self.watched = bytearray(wire.CODE_COUNT)
        self.hooked = set()
        for code in self.owners:
            self.watched[code] = 1
            if wire.class_of(code) == WireClass.KER_CALL:
                self.watched[code | CALLS] = 1
        for cls, code in self.hooks:
            if cls in (Class.INTENTER, Class.INTEXIT):
                self.hooked.add(cls)
                continue
            for each in self.codes_of_class(cls) if code < 0 else (code,):
                self.watched[each] = 1

    def owner_passes(self, code: int, pid: int, tid: int) -> bool:
        """Tell whether a pid and tid are those stored for a code; tid 0 asks for the pid only."""
        stored = self.owners.get(code & ~CALLS if wire.class_of(code) == WireClass.KER_CALL else code)
        return stored is None or not stored[0] or (stored[0] == pid and (not stored[1] or not tid or stored[1] == tid))
