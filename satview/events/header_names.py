"""The constants of the C headers of the trace interface, with their values, for one release.

These are what programs pass to TraceEvent() and to the traceparser library: modes, classes, events, bits, and the
indices of an event handler's features (`_NTO_TRACE_FI_NUM`).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from satview.events import naming, rows, wire
from satview.events.class_table import external_classes
from satview.events.modes import PREFIX, Mode
from satview.events.spec import Release

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
