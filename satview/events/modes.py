"""The modes of TraceEvent() and the constants of the C headers of the trace interface."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Final, Self

from satview.events import naming, rows, wire
from satview.events.spec import Release
from satview.events.wire import external_classes

# The modes of TraceEvent(): numbers, arguments and first releases.
#
# Source: description of the capture side, section 1.1; headers of 6.4 to 8.0.


ARGC_SHIFT: Final = 28  # the argument count, mode included, is in the top four bits of the value
NUMBER_MASK: Final = (1 << ARGC_SHIFT) - 1
PREFIX: Final = "_NTO_TRACE_"
NOT_NUMBERS: Final = frozenset({"handler", "data", "pointer", "buffer", "string"})
_FILTER, _RUN, _INSERT = "filter", "run", "insert"
_6, _66, _8 = Release.QNX_6, Release.QNX_6_6, Release.QNX_8


class Mode(IntEnum):
    """A mode of TraceEvent(), named as in the headers without `_NTO_TRACE_`; the value is its number.

    Attributes:
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
    """Return the mode with the given name or number; None = no such mode.

    The upper bits of a number, which are the argument count, are ignored.
    """
    if isinstance(value, str):
        return Mode.__members__.get(value.removeprefix(PREFIX))
    return _BY_NUMBER.get(value & NUMBER_MASK)


_BY_NUMBER: Final = {int(mode): mode for mode in Mode}


# The constants of the C headers of the trace interface, with their values, for one release.
#
# These are what programs pass to TraceEvent() and to the traceparser library: modes, classes, events, bits, and the
# indices of an event handler's features (`_NTO_TRACE_FI_NUM`).


# Names of bits and values inside payloads.


@cache
def flag_names(table: str) -> dict[int, str]:
    """Return the names of bits or values in a table of `flags.toml`, such as `power`, `runstate`, `able` or `timer`."""
    return rows.numbers("flags", table)


_PROCESS: Final = ("PROCCREATE", "PROCDESTROY", "PROCCREATE_NAME", "PROCDESTROY_NAME", "PROCTHREAD_NAME")
# Spellings of the guide, and the class they mean.
_ALIASES: Final = {
    "KERNEL": "KERCALL",
    "KERNELENTER": "KERCALLENTER",
    "KERNELEXIT": "KERCALLEXIT",
    "KERCALEXIT": "KERCALLEXIT",
    "USEREVENT": "USER",
}
_BOUNDS: Final = {"INTFIRST": 0, "INTLAST": 0xFFFFFFFF, "USERFIRST": 0, "USERLAST": wire.EVENT_MASK}
# Indices of `feature[]`, how many there are, and their bits in `feature_mask`.
_FEATURES: Final = {"FIPID": 0, "FITID": 1, "FI_NUM": 2, "FMPID": 1, "FMTID": 2}
_POWER_MASK: Final = 0xFFFF
_FLAG_TABLES: Final = ("power", "power_idle", "power_frequency")
# Of <sys/neutrino.h>: flags of handlers, commands of ThreadCtl().
_NEUTRINO: Final = {
    "_NTO_INTR_FLAGS_END": 0x1,
    "_NTO_INTR_FLAGS_PROCESS": 0x4,
    "_NTO_INTR_FLAGS_TRK_MSK": 0x8,
    "_NTO_TCTL_IO": 1,
}
_BIT_CLASSES: Final = ("PROCESS", "THREAD", "VTHREAD")


@cache
def header_names(release: Release) -> dict[str, int]:
    """Return all constants of a release by name; `_NTO_TRACE_THRUNNING` is a bit up to 7.x, a number in 8.0."""
    known = naming.names(release)
    numbers = {
        name.symbol: wire.event_of(code)
        for code, name in known.items()
        if name.symbol.startswith(PREFIX) and name.class_name not in _BIT_CLASSES
    }
    numbers |= {
        name.symbol: wire.event_of(code)
        for code, name in known.items()
        if name.class_name == "KER_CALL" and not name.is_64bit
    }
    for state, number in naming.state_numbers(release).items():
        numbers[f"{PREFIX}{naming.thread_name(state)}"] = number if release == Release.QNX_8 else 1 << number
        if release != Release.QNX_8:
            numbers[f"{PREFIX}V{naming.thread_name(state)}"] = 1 << number
    numbers |= {f"{PREFIX}{name}": 1 << bit for bit, name in enumerate(_PROCESS)}
    classes = external_classes(release)
    numbers |= {f"{PREFIX}{name}": number for name, number in classes.items()}
    numbers |= {f"{PREFIX}{name}": classes[meant] for name, meant in _ALIASES.items() if meant in classes}
    numbers |= {f"{PREFIX}{name}": number for name, number in (*_BOUNDS.items(), *_FEATURES.items())}
    numbers |= {f"{PREFIX}POWER_{name}": bit for table in _FLAG_TABLES for bit, name in flag_names(table).items()}
    numbers[f"{PREFIX}POWER_CPUMASK"] = _POWER_MASK
    numbers |= {mode.symbol: mode.word for mode in Mode}
    return numbers | _NEUTRINO


def number_of(name: str, release: Release) -> int | None:
    """Return the value of a constant, None if the release has no such name.

    Python's name mangling is undone: within a class `Watch`, `__KER_MSG_READV` arrives as `_Watch__KER_MSG_READV`.
    """
    names = header_names(release)
    if name not in names and "__KER_" in name:
        name = name[name.index("__KER_") :]
    return names.get(name)
