"""The text header of a .kev file, `TRACE_<KEY>::<value>` pairs without separators, and constructs for the system page.

The same constructs are used for reading, for writing and for docs/kev-structs.md. Keys are found by their pattern,
not by position: file names may contain `TRACE_`, attributes of any name may follow, and the order of keys differs
between releases. Source: kernel event trace format, sections 1.1 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import construct
import numpy as np
from construct import Byte, Bytes, Const, Default, IfThenElse, Padding, RepeatUntil, StreamError, Struct, Tell, this

from satview.base.errors import TraceFormatError, UsageError
from satview.store.head import Header

KEY: Final = re.compile(rb"TRACE_((?:(?!TRACE_|::).)+)::", re.DOTALL)
"""A key contains neither `TRACE_` nor `::`, so a path such as /dev/shmem/TRACE_1.kev in a value is not taken for one;
values may contain line feeds."""

_PAIRS_OLD: Final = (
    "system_private", "asinfo", "meminfo", "hwinfo", "cpuinfo", "cacheattr", "qtime", "callout", "callin",
    "typed_strings", "strings", "intrinfo", "smp", "pminfo", "mdriver",
)  # fmt: skip
_TRIPLES_7: Final = ("asinfo", "cpuinfo", "cacheattr", "intrinfo", "mdriver")


def _until(pattern: re.Pattern[bytes]) -> Callable[[Any], int]:
    """Return a function that returns the number of bytes up to a pattern."""

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
    """Return the constructs of the system page in a byte order, by name.

    Offsets are relative to the page or to the section; `entry_7` is the entry of 7.x, which begins with `entry_old`.
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


BEGIN: Final = b"TRACE_HEADER_BEGIN::"
END: Final = b"TRACE_HEADER_END::"
MAX_HEADER_BYTES: Final = 1 << 20  # the vendor's headers have less than 1 KiB

FROM_LISTING: Final = ("SATVIEW", "listing")  # in files made from a listing, whose buffers lack unprinted slots


def parse_header(data: bytes, path: Path | None, file_size: int) -> Header:
    """Read the header at the start of a file.

    Args:
        data: The first `MAX_HEADER_BYTES` of the file or more; the whole file if it is shorter.
        path: For the error text.
        file_size: Bytes of the whole file.

    Raises:
        TraceFormatError: The file does not start with a header, or the header does not end.
    """
    if not data.startswith(BEGIN):
        if BEGIN.startswith(data):
            raise TraceFormatError(
                path,
                len(data),
                "the file ends inside the first key of the header",
                "it was cut short; copy it from the target again",
            )
        raise TraceFormatError(
            path,
            0,
            "this is not a kernel event trace: it does not begin with TRACE_HEADER_BEGIN::",
            "open a .kev file written by tracelogger, or a listing printed by traceprinter",
        )
    try:
        header = HEADER.parse(data)
    except StreamError:
        raise _unended(data, path, file_size) from None
    pairs = [(_decoded(pair.key), _decoded(pair.value)) for pair in header.pairs]
    return Header(plain_pairs([pair for pair in pairs if pair[0] not in ("HEADER_BEGIN", "HEADER_END")]), header.end)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _unended(data: bytes, path: Path | None, file_size: int) -> TraceFormatError:
    if len(data) < file_size:
        return TraceFormatError(
            path,
            len(data),
            f"no end of the header within {len(data)} bytes",
            "the file is damaged or was not written by tracelogger",
        )
    return TraceFormatError(
        path, file_size, "the file ends inside the header", "it was cut short; copy it from the target again"
    )


def header_bytes(pairs: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of a header: begin, pairs, end; long values are split for the vendor's tools.

    Raises:
        UsageError: A key or value would be read back differently, or a key is too long.
    """
    for key, value in pairs:
        if not is_key(key):
            raise UsageError(
                f"header key {key[:40]!a} is empty, ends with ':' or contains '::' or 'TRACE_'; give another name"
            )
        if holds_key(value):
            raise UsageError(f"value {value[:80]!a} of header key {key} contains a key; leave out 'TRACE_' or '::'")
    parts = (f"TRACE_{key}::{value}".encode("utf-8", "replace") for key, value in windowed_pairs(pairs))
    return b"".join((BEGIN, *parts, END))


def is_key(key: str) -> bool:
    """Return whether a name can be a key of the header."""
    return bool(key) and "::" not in f"{key}:" and "TRACE_" not in key  # a colon at its end would join the `::`


def holds_key(value: str) -> bool:
    """Return whether a value contains text that would be read as a key."""
    return "TRACE_" in value and KEY.search(value.encode("utf-8", "replace")) is not None


def key_byte_order(header: Header) -> str | None:
    """Return `little` or `big` according to the header keys; None if they name neither, both or MIDDLE_ENDIAN."""
    keys = {key for key, _ in header.pairs}
    order_keys = keys & {"LITTLE_ENDIAN", "BIG_ENDIAN", "MIDDLE_ENDIAN"}
    if order_keys == {"LITTLE_ENDIAN"}:
        return "little"
    return "big" if order_keys == {"BIG_ENDIAN"} else None


def slot_byte_order(slots: bytes) -> str:
    """Guess the byte order from the first slots: in the right order, header words have zero bits and known classes."""
    usable = len(slots) // 16 * 16
    scores = {}
    for order, dtype in (("little", "<u4"), ("big", ">u4")):
        # Bits 15 to 23 are zero but for bit 16, which 8.0 uses; classes 1 to 11 are those of any release (sections 3,
        # 7).
        words = np.frombuffer(slots[:usable], dtype).reshape(-1, 4)[:, 0]
        classes = words >> 10 & 0x1F
        scores[order] = int(np.count_nonzero((words & 0x00FE8000 == 0) & (classes >= 1) & (classes <= 11)))
    return "big" if scores["big"] > scores["little"] else "little"


WINDOW_BYTES: Final = 99
PAD: Final = "PAD"
_BEGIN_BYTES = len("TRACE_HEADER_BEGIN::")
_MARK_BYTES = len("TRACE_")
_END_BYTES = len("TRACE_HEADER_END::")
_PART = re.compile(r"(.+)\+(\d{1,4})", re.DOTALL)
Pairs = tuple[tuple[str, str], ...]


def windowed_pairs(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """Split pairs so that they fit the windows of 99 bytes in which the vendor's tools read the header.

    Args:
        pairs: Key without `TRACE_`, value.

    Raises:
        UsageError: A key is too long for a window.
    """
    parts = [part for key, value in pairs for part in _split(key, value)]
    sizes = [_pair_bytes(key, value) for key, value in parts]
    if _end_is_whole(sizes):
        return tuple(parts)
    # 12 start positions of the end mark are bad; a pad of 11 bytes avoids all except one, a pad of 12 bytes avoids it.
    for value in ("", "0"):
        if _end_is_whole([*sizes, _pair_bytes(PAD, value)]):
            return (*parts, (PAD, value))
    raise AssertionError("a pad of 11 or 12 bytes always moves the end out of the bad positions")


def plain_pairs(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """Join pairs that `windowed_pairs` has split; other pairs are unchanged."""
    plain: list[tuple[str, str]] = []
    expected = ("", 0)
    for key, value in pairs:
        part = _PART.fullmatch(key)
        if part and (part[1], int(part[2])) == expected:
            plain[-1] = (part[1], plain[-1][1] + value)
            expected = (part[1], expected[1] + 1)
        else:
            plain.append((key, value))
            expected = (key, 2)
    if plain and plain[-1] in ((PAD, ""), (PAD, "0")):
        del plain[-1]
    unchanged = tuple(pairs)
    if tuple(plain) == unchanged:
        return unchanged
    # Only pairs that this module would write are joined: a real attribute `X+2` is unchanged.
    try:
        return tuple(plain) if windowed_pairs(plain) == unchanged else unchanged
    except UsageError:
        return unchanged


def _split(key: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a pair, or several pairs with parts of its value if it does not fit a window."""
    number, name = 2, key
    while _pair_bytes(name, value) > WINDOW_BYTES:
        head = _head(value, WINDOW_BYTES - _pair_bytes(name, ""))
        if not head:
            raise UsageError(
                f"header attribute {key[:40]!a}...: a name of {len(_encoded(key))} bytes is too long for "
                f"the tools of QNX 6.4, which read {WINDOW_BYTES} bytes at a time; give a shorter one"
            )
        yield name, head
        value = value[len(head) :]
        name, number = f"{key}+{number}", number + 1
    yield name, value


def _head(value: str, size: int) -> str:
    """Return the longest prefix of a text that has at most `size` bytes in UTF-8."""
    return _encoded(value)[: max(size, 0)].decode("utf-8", "ignore")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _pair_bytes(key: str, value: str) -> int:
    """Return the number of bytes of a pair in the header, including its `TRACE_` and `::`."""
    return _MARK_BYTES + len(_encoded(key)) + 2 + len(_encoded(value))


def _end_is_whole(sizes: Sequence[int]) -> bool:
    """Return whether the end mark lies in a single window, given the size of each pair in bytes."""
    start, room = 0, WINDOW_BYTES - _BEGIN_BYTES - _MARK_BYTES
    offset = _BEGIN_BYTES + _MARK_BYTES  # of the key after the last `TRACE_`
    for size in sizes:
        if size > room:  # the first pair that does not fit the window begins the next one
            start, room = offset, WINDOW_BYTES
        room -= size
        offset += size
    end = offset - _MARK_BYTES
    return not end + _MARK_BYTES <= start + WINDOW_BYTES < end + _END_BYTES
