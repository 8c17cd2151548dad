"""The modes of TraceEvent(): numbers, arguments and first releases.

Source: description of the capture side, section 1.1; headers of 6.4 to 8.0.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

from satview.events import rows
from satview.events.spec import Release

ARGC_SHIFT: Final = 28  # the argument count, mode included, is in the top four bits of the value
NUMBER_MASK: Final = (1 << ARGC_SHIFT) - 1
PREFIX: Final = "_NTO_TRACE_"
NOT_NUMBERS: Final = frozenset({"handler", "data", "pointer", "buffer", "string"})
_FILTER, _RUN, _INSERT = "filter", "run", "insert"
_6, _66, _8 = Release.QNX_6, Release.QNX_6_6, Release.QNX_8


class Mode(IntEnum):
    """A mode of TraceEvent(), named as in the headers without `_NTO_TRACE_`; the value is its number.

    Attributes:
        since: First release that has the mode.
        kind: `filter` (sets which events are logged), `run` (buffers and running) or `insert` (writes an event).
        arguments: Names of the arguments after the mode in a call; those in `NOT_NUMBERS` are pointers.
        is_documented: False if no manual describes the mode: it is accepted without effect.
    """

    since: Release
    kind: str
    arguments: tuple[str, ...]
    is_documented: bool

    def __new__(
        cls, number: int, kind: str, arguments: str = "", since: Release = _6, is_documented: bool = True
    ) -> Self:
        """Create a member from the values of its row below."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.kind, member.since, member.is_documented = kind, since, is_documented
        member.arguments = tuple(arguments.split())
        return member

    ADDALLCLASSES = 1, _FILTER
    DELALLCLASSES = 2, _FILTER
    ADDCLASS = 3, _FILTER, "class"
    DELCLASS = 4, _FILTER, "class"
    ADDEVENT = 5, _FILTER, "class event"
    DELEVENT = 6, _FILTER, "class event"
    ADDEVENTHANDLER = 7, _FILTER, "class event handler data"
    DELEVENTHANDLER = 8, _FILTER, "class event"
    INSERTEVENT = 9, _INSERT, "head stamp data0 data1"
    START = 10, _RUN
    STOP = 11, _RUN
    ALLOCBUFFER = 12, _RUN, "count pointer"
    DEALLOCBUFFER = 13, _RUN
    FLUSHBUFFER = 14, _RUN
    QUERYEVENTS = 15, _RUN
    SETALLCLASSESFAST = 16, _FILTER
    SETALLCLASSESWIDE = 17, _FILTER
    SETCLASSFAST = 18, _FILTER, "class"
    SETCLASSWIDE = 19, _FILTER, "class"
    SETEVENTFAST = 20, _FILTER, "class event"
    SETEVENTWIDE = 21, _FILTER, "class event"
    SETCLASSPID = 22, _FILTER, "class pid"
    SETCLASSTID = 23, _FILTER, "class pid tid"
    SETEVENTPID = 24, _FILTER, "class event pid"
    SETEVENTTID = 25, _FILTER, "class event pid tid"
    CLRCLASSPID = 26, _FILTER, "class"
    CLRCLASSTID = 27, _FILTER, "class"
    CLREVENTPID = 28, _FILTER, "class event"
    CLREVENTTID = 29, _FILTER, "class event"
    INSERTSUSEREVENT = 30, _INSERT, "event data0 data1"
    INSERTCUSEREVENT = 31, _INSERT, "event buffer length"
    INSERTUSRSTREVENT = 32, _INSERT, "event string"
    STARTNOSTATE = 33, _RUN
    SETRINGMODE = 34, _RUN
    SETLINEARMODE = 35, _RUN
    ADDCLASSEVHANDLER = 36, _FILTER, "class handler data"
    DELCLASSEVHANDLER = 37, _FILTER, "class"
    SKIPBUFFER = 38, _RUN
    OVERWRITEBUFFER = 39, _RUN
    QUERYVERSION = 40, _RUN
    QUERYSUPPORT = 41, _RUN
    INSERTSCLASSEVENT = 42, _INSERT, "internal_class event data0 data1"
    INSERTCCLASSEVENT = 43, _INSERT, "internal_class event buffer length"
    SETBUFFER = 44, _RUN, "value0 value1", _66, False
    LOGGER_ATTACH = 45, _RUN, "value0 value1", _8, False
    WAITBUFFER = 46, _RUN, "value0", _8, False
    LOGGER_DETACH = 47, _RUN, "", _8, False
    PMU_CONFIG = 48, _RUN, "pointer", _8, False
    PMU_QUERYEVENTS = 49, _RUN, "", _8, False

    @property
    def argc(self) -> int:
        """Number of arguments of a TraceEvent() call, the mode included."""
        return 1 + len(self.arguments)

    @property
    def word(self) -> int:
        """The first argument that a program passes: the number, with the argument count in the top four bits."""
        return self.argc << ARGC_SHIFT | self

    @property
    def symbol(self) -> str:
        """Name of the mode in the C header, such as `_NTO_TRACE_ADDCLASS`."""
        return PREFIX + self.name

    @property
    def rule_arguments(self) -> tuple[str, ...]:
        """Names of the arguments after the mode in a rule: as in a call, but `data` is part of the handler."""
        return tuple(name for name in self.arguments if name != "data")

    def is_in(self, release: Release) -> bool:
        """Return whether a release has the mode."""
        return rows.RELEASE_ORDER.index(self.since) <= rows.RELEASE_ORDER.index(release)


RULE_MODES: Final = tuple(mode for mode in Mode if mode.kind == _FILTER)
"""The modes that change which events are logged; rules consist of these."""


def mode_of(value: int | str) -> Mode | None:
    """Return the mode with a name, or with a number, whose upper bits are ignored (argument count); None = no mode."""
    if isinstance(value, str):
        return Mode.__members__.get(value.removeprefix(PREFIX))
    return _BY_NUMBER.get(value & NUMBER_MASK)


_BY_NUMBER: Final = {int(mode): mode for mode in Mode}
