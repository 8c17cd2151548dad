"""The head of a .kev file as constructs: one declaration for reading, writing and docs/kev-structs.md.

Source: kernel event trace format, sections 1.1 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import construct
from construct import Byte, Bytes, Const, Default, IfThenElse, Padding, RepeatUntil, Struct, Tell, this

KEY: Final = re.compile(rb"TRACE_((?:(?!TRACE_|::).)+)::", re.DOTALL)
"""A key holds neither `TRACE_` nor `::`, so a path such as /dev/shmem/TRACE_1.kev in a value starts none; values may
hold line feeds."""

_PAIRS_OLD: Final = (
    "system_private", "asinfo", "meminfo", "hwinfo", "cpuinfo", "cacheattr", "qtime", "callout", "callin",
    "typed_strings", "strings", "intrinfo", "smp", "pminfo", "mdriver",
)  # fmt: skip
_TRIPLES_7: Final = ("asinfo", "cpuinfo", "cacheattr", "intrinfo", "mdriver")


def _until(pattern: re.Pattern[bytes]) -> Callable[[Any], int]:
    """Return what tells the number of bytes up to a pattern."""

    def length(context: Any) -> int:
        start: int = context._io.tell()
        match = pattern.search(context._io.getbuffer(), start)
        if match is None:
            raise construct.StreamError("there is no next key")
        return match.start() - start

    return length


HEADER: Final = Struct(
    "pairs"
    / RepeatUntil(
        lambda pair, _pairs, _context: pair.key == b"HEADER_END",
        Struct(
            Const(b"TRACE_"),
            "key" / Bytes(_until(re.compile(b"::"))),
            Const(b"::"),
            "value" / IfThenElse(this.key == b"HEADER_END", Bytes(0), Bytes(_until(KEY))),
        ),
    ),
    "end" / Tell,
)
"""The text header, from `TRACE_HEADER_BEGIN::` to the byte where the system page begins."""


@cache
def page_structs(byte_order: str) -> Any:
    """Return the structures of the system page in a byte order, by name.

    Offsets count from the start of the page, or of the section; `entry_7` is the one of 7.x, which begins with
    `entry_old`.
    """
    end = "b" if byte_order == "big" else "l"
    u16, u32, u64 = (getattr(construct, f"Int{bits}u{end}") for bits in (16, 32, 64))
    i32 = getattr(construct, f"Int32s{end}")
    pair = Default(Struct("offset" / u16, "size" / u16), {"offset": 0, "size": 0})
    triple = Default(
        Struct("offset" / u16, "size" / u16, "element_size" / u16), {"offset": 0, "size": 0, "element_size": 0}
    )
    entry = ("size" / u16, "total_size" / u16, "type" / u16, "num_cpu" / u16)
    pairs_old = [name / pair for name in _PAIRS_OLD]
    clock = ("cycles_per_sec" / u64, "nsec_tod_adjust" / u64)
    ticks = ("nsec_inc" / u32, "boot_time" / u32, "adjust" / Bytes(8))
    rest = ("intr" / i32, "epoch" / u32, "flags" / u32, "rr_interval_mul" / u32)
    names = ("name" / u16, "ins_cache" / Byte, "data_cache" / Byte)
    return SimpleNamespace(
        entry=Struct(*entry),
        entry_old=Struct(*entry, *pairs_old),
        entry_7=Struct(*entry, *pairs_old, Padding(164), "triples" / Struct(*(name / triple for name in _TRIPLES_7))),
        entry_8=Struct(
            *entry,
            "system_private" / pair,
            "version" / Default(Struct("major" / u16, "minor" / u16), {"major": 0, "minor": 0}),
            *(name / pair for name in ("hwinfo", "qtime", "callout", "typed_strings", "strings", "smp")),
            Padding(160),
            *(name / triple for name in ("asinfo", "cpuinfo", "cacheattr", "intrinfo")),
            "hypinfo" / pair,
            "cluster" / triple,
        ),
        qtime=Struct(*clock, "nsec" / u64, *ticks, "timer_rate" / u32, "timer_scale" / i32, "timer_load" / u32, *rest),
        qtime_8=Struct(*clock, *ticks, "timer_period" / u32, "timer_scale" / i32, *rest),
        cpu=Struct("cpu" / u32, "speed" / u32, "flags" / u32, Padding(16), *names),
        cpu_8=Struct("cpu" / u32, "speed" / u32, "flags" / u64, Padding(12), *names),
        typed_string=Struct(
            "type" / u32, "text" / construct.If(this.type != 0, construct.NullTerminated(construct.GreedyBytes))
        ),
    )
