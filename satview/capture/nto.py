"""Names of the trace interface as C programs spell them, for control programs that read like the guide's.

`_NTO_TRACE_START`, `_NTO_TRACE_THREAD`, `_NTO_TRACE_THRUNNING`, `__KER_MSG_READV`, ... are attributes of this module
(`from satview.capture import nto`), computed on use from the tables of release 7.x; `names(release)` gives them for
another.
"""

from __future__ import annotations

from functools import cache

from satview.capture.emit import COMM_EVENTS
from satview.events import constants, naming
from satview.events.catalogue import catalogue
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.external import ExternalClass as Class

_PROCESS = ("PROCCREATE", "PROCDESTROY", "PROCCREATE_NAME", "PROCDESTROY_NAME", "PROCTHREAD_NAME")
_ALIASES = {"KERNEL": Class.KERCALL, "KERNELENTER": Class.KERCALLENTER, "KERNELEXIT": Class.KERCALLEXIT,
            "KERCALEXIT": Class.KERCALLEXIT}
INT_FIRST = 0


@cache
def names(release: Release = Release.QNX_7) -> dict[str, int]:
    """Return every name of a release and its number."""
    found = {mode.symbol: mode.word for mode in Mode}
    found |= {f"_NTO_TRACE_{name}": number for name, number in constants.external_classes(release).items()}
    found |= {f"_NTO_TRACE_{name}": int(number) for name, number in _ALIASES.items()}
    for name, number in naming.state_numbers(release).items():
        found[f"_NTO_TRACE_TH{name}"] = number if release == Release.QNX_8 else 1 << number
        found[f"_NTO_TRACE_VTH{name}"] = 1 << number
    found |= {f"_NTO_TRACE_{name}": 1 << bit for bit, name in enumerate(_PROCESS)}
    found |= {"_NTO_TRACE_CONTROLTIME": 1, "_NTO_TRACE_CONTROLBUFFER": 2, "_NTO_TRACE_INTFIRST": INT_FIRST}
    known = catalogue(release)
    for code in known.codes():
        name, event = known.name(code), code & 0x3FF
        if code >> 10 == 2 and event < 0x80:
            found[f"__KER_{name}"] = event
    found |= {f"_NTO_TRACE_COMM_{name}": i for i, name in enumerate(COMM_EVENTS)}
    return found


def __getattr__(name: str) -> int:
    """Return the number behind a name of release 7.x."""
    if name.startswith(("_NTO_", "__KER_")) and name in names():
        return names()[name]
    raise AttributeError(f"the trace interface has no {name}")
