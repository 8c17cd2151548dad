"""Reads and writes the text header and the system page of a .kev file, and writes whole files."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import SEEK_CUR, BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final

import construct
import numpy as np
from construct import Byte, Bytes, Const, Default, IfThenElse, Padding, RepeatUntil, StreamError, Struct, Tell, this
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError, UsageError
from satview.base.new_file import NewFile, Sources
from satview.events import wire
from satview.events.variants import text_words
from satview.events.wire import CPU_MASK, CPU_SHIFT, STRUCT_SHIFT
from satview.store.trace import CpuInfo, Header, SystemInfo

# The text header of a .kev file, `TRACE_<KEY>::<value>` pairs without separators, and constructs for the system page.
#
# The same constructs are used for reading, for writing and for docs/kev-structs.md. Keys are found by their pattern,
# not by position: file names may contain `TRACE_`, attributes of any name may follow, and the order of keys differs
# between releases. Source: kernel event trace format, sections 1.1 and 4.


KEY: Final = re.compile(rb"TRACE_((?:(?!TRACE_|::).)+)::", re.DOTALL)
"""A key contains neither `TRACE_` nor `::`, so a path such as /dev/shmem/TRACE_1.kev in a value is not taken for one;
values may contain line feeds."""

_PAIRS_OLD: Final = (
    "system_private", "asinfo", "meminfo", "hwinfo", "cpuinfo", "cacheattr", "qtime", "callout", "callin",
    "typed_strings", "strings", "intrinfo", "smp", "pminfo", "mdriver",
)  # fmt: skip
_TRIPLES_7: Final = ("asinfo", "cpuinfo", "cacheattr", "intrinfo", "mdriver")


def _until(pattern: re.Pattern[bytes]) -> Callable[[Any], int]:
    """Return a function that returns the number of bytes from a stream's position to the next match of a pattern."""

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
    """Return the `construct` structures of the system page by name, for a byte order.

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
    """Return the text header at the start of a .kev file.

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
    """Return the bytes of a header: start mark, pairs, end mark; long values are split for the vendor's tools.

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
    """Return `little` or `big` according to the header keys; None if they name neither or both, or MIDDLE_ENDIAN."""
    keys = {key for key, _ in header.pairs}
    order_keys = keys & {"LITTLE_ENDIAN", "BIG_ENDIAN", "MIDDLE_ENDIAN"}
    if order_keys == {"LITTLE_ENDIAN"}:
        return "little"
    return "big" if order_keys == {"BIG_ENDIAN"} else None


def slot_byte_order(slots: bytes) -> str:
    """Return `little` or `big`, guessed from the first slots.

    In the right byte order, most header words have zeros in the unused bits, and a known class.
    """
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

    A pair that only pads may be added at the end, so that a window does not split the end mark. Raises UsageError if a
    key is too long for a window.
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
    """Join pairs that `windowed_pairs` has split, and remove its pad; other pairs are unchanged."""
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
    """Return whether the end mark lies in a single window (`windowed_pairs`), given the size of each pair in bytes."""
    start, room = 0, WINDOW_BYTES - _BEGIN_BYTES - _MARK_BYTES
    offset = _BEGIN_BYTES + _MARK_BYTES  # of the key after the last `TRACE_`
    for size in sizes:
        if size > room:  # the first pair that does not fit the window begins the next one
            start, room = offset, WINDOW_BYTES
        room -= size
        offset += size
    end = offset - _MARK_BYTES
    return not end + _MARK_BYTES <= start + WINDOW_BYTES < end + _END_BYTES


# Reads and builds the system page: an image of the target's system page, between header and slots.
#
# Source: kernel event trace format, section 4. The entry has offset and size of every section, which are checked before
# use; sections beyond the end of the image are left out and reported.


PROCESSORS: Final = {
    0: "X86", 1: "PPC", 2: "MIPS", 3: "unknown(3)", 4: "ARM", 5: "SH", 0x100: "X86_64", 0x101: "AARCH64",
    0x1100: "X86_64", 0x1101: "AARCH64",
}  # fmt: skip
VERSIONED: Final = 0x1000  # bit of the type that is set for the layout of 8.0
STRING_TYPES: Final = {
    1: "PATH", 2: "HOSTNAME", 3: "RELEASE", 4: "VERSION", 5: "MACHINE", 6: "ARCHITECTURE", 7: "HW_SERIAL",
    8: "HW_PROVIDER", 9: "SRPC_DOMAIN", 11: "SYSNAME", 200: "LIBPATH", 201: "DOMAIN", 202: "RESOLVE", 203: "TIMEZONE",
    204: "LOCALE",
}  # fmt: skip
STRING_SET_BIT: Final = 0x100
_FLAGS_ALL: Final = ((31, "FPU"), (30, "MMU"))
_FLAGS: Final = {
    "X86": ("CPUID", "RDTSC", "INVLPG", "WP", "BSWAP", "MMX", "CMOV", "PSE", "PGE", "MTRR", "SEP", "SIMD", "FXSR"),
    "PPC": ("EAR", "HW_HT", "HW_POW", "FPREGS", "SW_HT", "ALTIVEC"),
}
CPU_ENTRY_BYTES: Final = 32
GLOBAL_CLOCK: Final = 0x8  # qtime flag: one clock common to all CPUs


def fits(image: bytes, byte_order: str) -> bool:
    """Return whether an image is valid in a byte order: size <= total_size == length of the image."""
    if len(image) < 8:
        return False
    entry = page_structs(byte_order).entry.parse(image)
    return bool(0 < entry["size"] <= entry["total_size"] == len(image))


@dataclass(slots=True)
class _Page:
    """An image of the system page while it is read: its sections, and messages about invalid parts."""

    image: bytes
    byte_order: str
    sections: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # name: offset, size, size of one element
    doubts: list[str] = field(default_factory=list)

    def note(self, name: str, offset: int, size: int, element: int = 0) -> None:
        if size and offset + size > len(self.image):
            self.doubts.append(
                f"section {name} at {offset}, {size} bytes, is beyond the page of {len(self.image)} bytes"
            )
            return
        self.sections[name] = (offset, size, element)

    def text(self, offset: int) -> str:
        start, size, _ = self.sections.get("strings", (0, 0, 0))
        if not 0 <= offset < size:
            return ""
        return self.image[start + offset : start + size].split(b"\0", 1)[0].decode("utf-8", "replace")


def _places(values: Any) -> list[tuple[str, Any]]:
    return [(name, place) for name, place in values.items() if isinstance(place, dict) and "offset" in place]


def _find_sections(page: _Page, kind: int, entry_size: int) -> None:
    structs = page_structs(page.byte_order)
    # The entry of 7.x with triples ends at 262; a shorter one has pairs only.
    old = structs.entry_7 if entry_size >= structs.entry_7.sizeof() else structs.entry_old
    entry = (structs.entry_8 if kind & VERSIONED else old).parse(page.image)
    places = sorted(_places(entry), key=lambda place: "element_size" in place[1])  # pairs first; 8.0 mixes them
    places += [(name, place) for name, place in _places(entry.get("triples", {})) if place.element_size]
    for name, place in places:
        page.note(name, place.offset, place.size, place.get("element_size", 0))


def _cpus(page: _Page, count: int, processor: str, is_8: bool) -> Iterator[CpuInfo]:
    start, size, element = page.sections.get("cpuinfo", (0, 0, 0))
    step = element or CPU_ENTRY_BYTES
    struct = page_structs(page.byte_order).cpu_8 if is_8 else page_structs(page.byte_order).cpu
    if step < struct.sizeof():
        page.doubts.append(f"entries of section cpuinfo have {step} bytes, expected {struct.sizeof()}")
        return
    # The entry may announce more CPUs than the section has, and a header word can have only 64 CPU numbers.
    for number in range(min(count, size // step, 64)):
        entry = struct.parse(page.image[start + number * step :][:step])
        flags = entry.flags
        names = [name for bit, name in _FLAGS_ALL if flags >> bit & 1]
        names += [name for bit, name in enumerate(_FLAGS.get(processor, ())) if flags >> bit & 1]
        yield CpuInfo(number, page.text(entry.name), entry.speed, flags, tuple(names))


def _typed_strings(page: _Page) -> Iterator[tuple[str, str]]:
    start, size, _ = page.sections.get("typed_strings", (0, 0, 0))
    stream = BytesIO(page.image[start : start + size])
    while stream.tell() + 4 <= size:
        try:
            entry = page_structs(page.byte_order).typed_string.parse_stream(stream)
        except StreamError:
            page.doubts.append("the last typed string has no end")
            return
        if entry.type == 0:
            return
        plain = entry.type & ~STRING_SET_BIT
        yield STRING_TYPES.get(plain, f"type({plain})"), entry.text.decode("utf-8", "replace")
        stream.seek(-stream.tell() % 4, SEEK_CUR)  # each string ends with NUL and is padded to whole words


def parse_syspage(image: bytes, byte_order: str) -> tuple[SystemInfo | None, list[str]]:
    """Return the content of a system page, None = nothing can be read, and sentences about invalid parts."""
    if not image:
        return None, []
    if len(image) < 80:
        return None, [f"a system page of {len(image)} bytes is too short for its entry"]
    structs = page_structs(byte_order)
    entry = structs.entry.parse(image)
    is_8 = bool(entry.type & VERSIONED)
    page = _Page(image, byte_order)
    if entry.total_size != len(image):
        page.doubts.append(f"the page says it has {entry.total_size} bytes, the header says {len(image)}")
    if is_8 and len(image) < structs.entry_8.sizeof():
        return None, [*page.doubts, "the page is too short for its entry"]
    _find_sections(page, entry.type, min(entry.size, len(image)))
    processor = PROCESSORS.get(entry.type, f"unknown({entry.type})")
    values = _numbers(entry)
    for name, (offset, size, element) in page.sections.items():
        values[f"{name}.offset"], values[f"{name}.size"] = offset, size
        if element:
            values[f"{name}.element_size"] = element
    boot_time_s = None
    offset, size, _ = page.sections.get("qtime", (0, 0, 0))
    qtime = structs.qtime_8 if is_8 else structs.qtime
    if size >= qtime.sizeof():
        clock = qtime.parse(image[offset : offset + size])
        values |= {f"qtime.{name}": number for name, number in _numbers(clock).items()}
        boot_time_s = clock.boot_time or None
    elif size:
        page.doubts.append(f"section qtime has {size} bytes, expected {qtime.sizeof()}")
    cpus = tuple(_cpus(page, entry.num_cpu, processor, is_8))
    strings = tuple(_typed_strings(page))
    return SystemInfo(len(image), processor, cpus, boot_time_s, strings, values, image), page.doubts


def _numbers(values: Any) -> dict[str, int]:
    return {name: value for name, value in values.items() if isinstance(value, int)}


def syspage_bytes(
    byte_order: str,
    *,
    kind: int = 0,
    cycles_per_s: int,
    boot_time_s: int,
    cpu_names: tuple[str, ...],
    speed_mhz: int,
    strings: tuple[tuple[int, str], ...] = (),
    flags: int = GLOBAL_CLOCK,
) -> bytes:
    """Build a small system page with CPUs, qtime and typed strings, for tests, samples and the simulated target.

    `kind` is the type field, such as 0 (x86), 0x100 (x86_64), 0x1101 (AArch64 of 8.0), and `strings` have type numbers.
    """
    structs = page_structs(byte_order)
    is_8 = bool(kind & VERSIONED)
    entry = structs.entry_8 if is_8 else structs.entry_7 if kind >= 0x100 else structs.entry_old
    header_size = 248 if is_8 else 264 if kind >= 0x100 else 80  # the entry, rounded up to 8 bytes
    names, name_offsets = bytearray(b"\0"), []
    for name in cpu_names:
        name_offsets.append(len(names))
        names += name.encode() + b"\0"
    cpu = structs.cpu_8 if is_8 else structs.cpu
    clock = {
        "cycles_per_sec": cycles_per_s, "nsec_tod_adjust": 0, "nsec": 0, "nsec_inc": 1_000_000,
        "boot_time": boot_time_s, "adjust": bytes(8), "timer_rate": 0, "timer_scale": 0, "timer_load": 0,
        "timer_period": 0, "intr": 0, "epoch": 1970, "flags": flags, "rr_interval_mul": 4,
    }  # fmt: skip
    qtime = (structs.qtime_8 if is_8 else structs.qtime).build(clock)
    typed = [structs.typed_string.build({"type": number, "text": text.encode()}) for number, text in strings]
    sections = {
        "cpuinfo": b"".join(
            cpu.build(
                {"cpu": i, "speed": speed_mhz, "flags": 0xC0000000, "name": name, "ins_cache": 0, "data_cache": 0}
            )
            for i, name in enumerate(name_offsets)
        ),
        "qtime": qtime.ljust(96 if kind >= 0x100 else 80, b"\0"),
        "typed_strings": b"".join(map(_whole_words, typed)) + bytes(4),
        "strings": bytes(names),
    }
    content, places = b"", {}
    for name, data in sections.items():
        places[name] = {"offset": header_size + len(content), "size": len(data), "element_size": cpu.sizeof()}
        content += data.ljust((len(data) + 7) // 8 * 8, b"\0")
    size, total = header_size, header_size + len(content)
    head = {"size": size, "total_size": total, "type": kind, "num_cpu": len(cpu_names), "triples": places, **places}
    return bytes(entry.build(head).ljust(header_size, b"\0") + content)


def _whole_words(data: bytes) -> bytes:
    return data.ljust((len(data) + 3) // 4 * 4, b"\0")


# Writes .kev files: header, system page, slots, in either byte order. The counterpart of `reader`.


class SlotWriter:
    """Builds slots one event at a time, as the kernel does.

    Args:
        byte_order: `little` or `big`: determines the order of text and 64-bit values in words.
    """

    def __init__(self, byte_order: str = "little") -> None:
        if byte_order not in ("little", "big"):
            raise ValueError(f"byte order {byte_order!r} is neither 'little' nor 'big'")
        self.byte_order = byte_order
        self._words = array("I")  # 32 bits wherever CPython runs

    def __len__(self) -> int:
        """Return the number of slots so far."""
        return len(self._words) // 4

    def event(self, code: int, cpu: int, stamp: int, words: Sequence[int], flags: int = 0) -> None:
        """Append one event: a simple slot for up to two words, else adjacent combine slots, padded with 0.

        Numbers are taken modulo their width, such as 32 bits for `stamp`. `flags` are further header bits, such as
        `wire.PROCESS_INJECTED`.
        """
        for slot in self.slots_of(code, cpu, stamp, words, flags):
            self._words.extend(slot)

    @staticmethod
    def slots_of(
        code: int, cpu: int, stamp: int, words: Sequence[int], flags: int = 0
    ) -> list[tuple[int, int, int, int]]:
        """Return the slots of an event without appending them, for callers that interleave the slots of events."""
        header = code & 0x7FFF | (cpu & CPU_MASK) << CPU_SHIFT | flags
        stamp &= 0xFFFFFFFF
        payload = [word & 0xFFFFFFFF for word in words]
        # A slot has two words: an odd number is padded with 0, an event without data has two zeros (sections 3.1, 3.2).
        payload += [0] * (len(payload) % 2 or (0 if payload else 2))
        last = len(payload) // 2 - 1
        if last == 0:
            return [(header, stamp, payload[0], payload[1])]
        # All slots of the event carry its header and its stamp; only the structure bits differ (section 3.2).
        kinds = [wire.Struct.COMBINE_BEGIN, *[wire.Struct.COMBINE_CONTINUE] * (last - 1), wire.Struct.COMBINE_END]
        return [
            (header | kind << STRUCT_SHIFT, stamp, payload[2 * i], payload[2 * i + 1]) for i, kind in enumerate(kinds)
        ]

    def append(self, slot: tuple[int, int, int, int]) -> None:
        """Append one slot unchanged."""
        self._words.extend(slot)

    def text_event(self, code: int, cpu: int, stamp: int, words: Sequence[int], text: bytes, flags: int = 0) -> None:
        """Append an event with some words followed by a NUL-terminated text; other arguments are as for `event`."""
        self.event(code, cpu, stamp, [*words, *text_words(text, self.byte_order)], flags)

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots so far, shape (n, 4), uint32 in host order."""
        return slot_array(self._words)

    def clear(self) -> None:
        """Remove all slots, so that a long trace can be built and written in pieces."""
        del self._words[:]


def slot_array(words: Sequence[int]) -> NDArray[np.uint32]:
    """Return an array of slots, shape (n, 4), uint32 in host order, from the words of all slots in one sequence."""
    return np.array(words, dtype=np.uint32).reshape(-1, 4)


def slots_as_bytes(slots: NDArray[np.uint32], byte_order: str) -> bytes:
    """Return slots as bytes for a file with the given byte order."""
    return slots.astype("<u4" if byte_order == "little" else ">u4", copy=False).tobytes()


def write_start(file: BinaryIO, pairs: Sequence[tuple[str, str]], system_page: bytes) -> None:
    """Write header and system page; slots may then be appended with `slots_as_bytes`."""
    file.write(header_bytes(pairs))
    file.write(system_page)


def write_kev(
    path: Path | str,
    pairs: Sequence[tuple[str, str]],
    system_page: bytes,
    slots: NDArray[np.uint32],
    byte_order: str,
    reading: Sources = (),
) -> None:
    """Write a whole .kev file.

    Args:
        path: The file, which is replaced once the new one is complete; or a pipe or device.
        pairs: Header keys without `TRACE_`, in order; SYSPAGE_LEN and the byte order key must be among them.
        system_page: Image of the system page; may be empty.
        slots: Shape (n, 4), host order.
        byte_order: `little` or `big`.
        reading: Files that must not be replaced, as for `NewFile`.

    Raises:
        ValueError: SYSPAGE_LEN is not the length of the page, or the byte order key does not match.
        WriteError: The file cannot be written.
    """
    keys = dict(pairs)
    if int(keys.get("SYSPAGE_LEN", "0")) != len(system_page):
        raise ValueError(f"SYSPAGE_LEN is {keys.get('SYSPAGE_LEN')}, the page has {len(system_page)} bytes")
    if f"{byte_order.upper()}_ENDIAN" not in keys:
        raise ValueError(f"the header does not say that the file is {byte_order}-endian")
    with NewFile(path, reading=reading, streams=True) as file:
        write_start(file.stream, pairs, system_page)
        blocks = (slots[i : i + (1 << 16)] for i in range(0, len(slots), 1 << 16))
        file.stream.writelines(slots_as_bytes(block, byte_order) for block in blocks)


def standard_header(
    *,
    file_name: str,
    date: str,
    boot_date: str,
    byte_order: str,
    cycles_per_s: int,
    cpu_count: int,
    release: str,
    version: str,
    machine: str,
    node: str,
    syspage_length: int,
    attributes: Sequence[tuple[str, str]] = (),
) -> tuple[tuple[str, str], ...]:
    """Return the header pairs in the order in which tracelogger writes them, extra attributes last.

    `boot_date` and `date` are local times in the form of `ctime()`; `release` is the full release, such as `7.1.0`.
    """
    return (
        ("FILE_NAME", file_name),
        ("DATE", date),
        ("VER_MAJOR", "1"),
        ("VER_MINOR", "01"),
        (f"{byte_order.upper()}_ENDIAN", "TRUE"),
        ("ENCODING", "16 byte events"),
        ("BOOT_DATE", boot_date),
        ("CYCLES_PER_SEC", str(cycles_per_s)),
        ("CPU_NUM", str(cpu_count)),
        ("SYSNAME", "QNX"),
        ("NODENAME", node),
        ("SYS_RELEASE", release),
        ("SYS_VERSION", version),
        ("MACHINE", machine),
        ("SYSPAGE_LEN", str(syspage_length)),
        *attributes,
    )
