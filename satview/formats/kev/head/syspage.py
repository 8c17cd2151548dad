"""The system page: a memory image of the target's own, between header and slots.

Source: kernel event trace format, section 4. Every section is found by an (offset, size) pair of the entry and checked
against the image before use; what does not fit is left out and said so, never guessed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from satview.store.head import Cpu, SystemInfo

PROCESSORS: Final = {
    0: "X86",
    1: "PPC",
    2: "MIPS",
    3: "unknown(3)",
    4: "ARM",
    5: "SH",
    0x100: "X86_64",
    0x101: "AARCH64",
    0x1100: "X86_64",
    0x1101: "AARCH64",
}
VERSIONED: Final = 0x1000  # this bit of the type: the layout of 8.0
_PAIRS_OLD: Final = (
    "system_private",
    "asinfo",
    "meminfo",
    "hwinfo",
    "cpuinfo",
    "cacheattr",
    "qtime",
    "callout",
    "callin",
    "typed_strings",
    "strings",
    "intrinfo",
    "smp",
    "pminfo",
    "mdriver",
)
# Offsets of (offset, size, element_size) in the entry; these sections have a pair as well (section 4.1).
_TRIPLES_7: Final = (("asinfo", 232), ("cpuinfo", 238), ("cacheattr", 244), ("intrinfo", 250), ("mdriver", 256))
_PAIRS_8: Final = (
    ("system_private", 8),
    ("hwinfo", 16),
    ("qtime", 20),
    ("callout", 24),
    ("typed_strings", 28),
    ("strings", 32),
    ("smp", 36),
    ("hypinfo", 224),
)
_TRIPLES_8: Final = (("asinfo", 200), ("cpuinfo", 206), ("cacheattr", 212), ("intrinfo", 218), ("cluster", 228))
STRING_TYPES: Final = {
    1: "PATH",
    2: "HOSTNAME",
    3: "RELEASE",
    4: "VERSION",
    5: "MACHINE",
    6: "ARCHITECTURE",
    7: "HW_SERIAL",
    8: "HW_PROVIDER",
    9: "SRPC_DOMAIN",
    11: "SYSNAME",
    200: "LIBPATH",
    201: "DOMAIN",
    202: "RESOLVE",
    203: "TIMEZONE",
    204: "LOCALE",
}
STRING_SET_BIT: Final = 0x100
_FLAGS_ALL: Final = ((31, "FPU"), (30, "MMU"))
_FLAGS: Final = {
    "X86": ("CPUID", "RDTSC", "INVLPG", "WP", "BSWAP", "MMX", "CMOV", "PSE", "PGE", "MTRR", "SEP", "SIMD", "FXSR"),
    "PPC": ("EAR", "HW_HT", "HW_POW", "FPREGS", "SW_HT", "ALTIVEC"),
}
_CPU_ENTRY_BYTES: Final = 32
GLOBAL_CLOCK: Final = 0x8  # qtime flag: one clock common to all CPUs


class _Layout:
    """A structure of the page. By the standard library: construct takes a tenth of the time of `satview info`.

    Args:
        byte_order: Of the target.
        fields: Each as its name and its letter of `struct`, such as `size:H`; one without a name is padding.

    Attributes:
        size: In bytes.
    """

    def __init__(self, byte_order: str, fields: str) -> None:
        pairs = [field.split(":") for field in fields.split()]
        self._names = [name for name, _ in pairs if name]
        self._struct = struct.Struct((">" if byte_order == "big" else "<") + "".join(kind for _, kind in pairs))
        self.size = self._struct.size

    def parse(self, image: bytes, offset: int = 0) -> dict[str, Any]:
        """Return the values by name; the image must reach to their end."""
        return dict(zip(self._names, self._struct.unpack_from(image, offset), strict=True))

    def build(self, values: dict[str, Any]) -> bytes:
        """Return the bytes of these values; others are passed over."""
        return self._struct.pack(*(values[name] for name in self._names))


@cache
def _entry(byte_order: str) -> _Layout:
    """Return the layout of the first 8 bytes of the entry, common to all releases."""
    return _Layout(byte_order, "size:H total_size:H type:H num_cpu:H")


@cache
def _qtime(byte_order: str, is_8: bool) -> _Layout:
    """Return the layout of the qtime section up to the last field that every file of that layout has."""
    head = "cycles_per_sec:Q nsec_tod_adjust:Q "
    if is_8:
        middle = "nsec_inc:I boot_time:I adjust:8s timer_period:I timer_scale:i "
    else:
        middle = "nsec:Q nsec_inc:I boot_time:I adjust:8s timer_rate:I timer_scale:i timer_load:I "
    return _Layout(byte_order, head + middle + "intr:i epoch:I flags:I rr_interval_mul:I")


@cache
def _cpu(byte_order: str, is_8: bool) -> _Layout:
    """Return the layout of one cpuinfo entry."""
    return _Layout(
        byte_order, f"cpu:I speed:I {'flags:Q :12x' if is_8 else 'flags:I :16x'} name:H ins_cache:B data_cache:B"
    )


def fits(image: bytes, byte_order: str) -> bool:
    """Return whether an image makes sense in a byte order: size <= total_size == its length."""
    if len(image) < 8:
        return False
    entry = _entry(byte_order).parse(image)
    return bool(0 < entry["size"] <= entry["total_size"] == len(image))


@dataclass(slots=True)
class _Page:
    """An image being read: where its sections are, and what did not fit."""

    image: bytes
    byte_order: str
    sections: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # name: offset, size, size of one element
    doubts: list[str] = field(default_factory=list)

    def half(self, offset: int) -> int:
        return int.from_bytes(self.image[offset : offset + 2], self.byte_order)  # type: ignore[arg-type]

    def word(self, offset: int) -> int:
        return int.from_bytes(self.image[offset : offset + 4], self.byte_order)  # type: ignore[arg-type]

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


def _find_sections(page: _Page, entry_size: int, is_8: bool) -> None:
    if is_8:
        for name, offset in _PAIRS_8:
            page.note(name, page.half(offset), page.half(offset + 2))
        for name, offset in _TRIPLES_8:
            page.note(name, page.half(offset), page.half(offset + 2), page.half(offset + 4))
        return
    for i, name in enumerate(_PAIRS_OLD):
        page.note(name, page.half(8 + 4 * i), page.half(10 + 4 * i))
    # The entry of 7.x with triples ends at 262; a shorter one has pairs only.
    if entry_size >= 262:
        for name, offset in _TRIPLES_7:
            if page.half(offset + 4):
                page.note(name, page.half(offset), page.half(offset + 2), page.half(offset + 4))


def _cpus(page: _Page, count: int, processor: str, is_8: bool) -> Iterator[Cpu]:
    start, size, element = page.sections.get("cpuinfo", (0, 0, 0))
    step = element or _CPU_ENTRY_BYTES
    layout = _cpu(page.byte_order, is_8)
    if step < layout.size:
        page.doubts.append(f"entries of section cpuinfo have {step} bytes, expected {layout.size}")
        return
    # Whichever is least: the entry may promise more CPUs than its section holds, and a header word can name 64.
    for number in range(min(count, size // step, 64)):
        entry = layout.parse(page.image, start + number * step)
        flags = entry["flags"]
        names = [name for bit, name in _FLAGS_ALL if flags >> bit & 1]
        names += [name for bit, name in enumerate(_FLAGS.get(processor, ())) if flags >> bit & 1]
        yield Cpu(number, page.text(entry["name"]), entry["speed"], flags, tuple(names))


def _typed_strings(page: _Page) -> Iterator[tuple[str, str]]:
    start, size, _ = page.sections.get("typed_strings", (0, 0, 0))
    offset, end = start, start + size
    while offset + 4 <= end:
        kind = page.word(offset)
        if kind == 0:
            return
        text, zero, _ = page.image[offset + 4 : end].partition(b"\0")
        if not zero:
            page.doubts.append("the last typed string has no end")
            return
        plain = kind & ~STRING_SET_BIT
        yield STRING_TYPES.get(plain, f"type({plain})"), text.decode("utf-8", "replace")
        # Each string ends in NUL and is filled to whole words.
        offset += 4 + (len(text) + 1 + 3) // 4 * 4


def parse_syspage(image: bytes, byte_order: str) -> tuple[SystemInfo | None, list[str]]:
    """Read a system page.

    Returns:
        What it shows (None if there is none, or nothing of it can be read), and sentences about what did not fit.
    """
    if not image:
        return None, []
    if len(image) < 80:
        return None, [f"a system page of {len(image)} bytes is too short for its entry"]
    entry = _entry(byte_order).parse(image)
    is_8 = bool(entry["type"] & VERSIONED)
    page = _Page(image, byte_order)
    if entry["total_size"] != len(image):
        page.doubts.append(f"the page says it has {entry['total_size']} bytes, the header says {len(image)}")
    if is_8 and len(image) < 234:
        return None, [*page.doubts, "the page is too short for its entry"]
    _find_sections(page, min(entry["size"], len(image)), is_8)
    processor = PROCESSORS.get(entry["type"], f"unknown({entry['type']})")
    values = dict(entry)
    for name, (offset, size, element) in page.sections.items():
        values[f"{name}.offset"], values[f"{name}.size"] = offset, size
        if element:
            values[f"{name}.element_size"] = element
    boot_time_s = None
    offset, size, _ = page.sections.get("qtime", (0, 0, 0))
    qtime = _qtime(byte_order, is_8)
    if size >= qtime.size:
        parsed = qtime.parse(image, offset)
        values |= {f"qtime.{k}": v for k, v in parsed.items() if isinstance(v, int)}
        boot_time_s = parsed["boot_time"] or None
    elif size:
        page.doubts.append(f"section qtime has {size} bytes, expected {qtime.size}")
    cpus = tuple(_cpus(page, entry["num_cpu"], processor, is_8))
    strings = tuple(_typed_strings(page))
    return SystemInfo(len(image), processor, cpus, boot_time_s, strings, values, image), page.doubts


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
    """Build a small system page: CPUs, qtime, typed strings. Used by tests, samples and the simulated target.

    Args:
        byte_order: `little` or `big`.
        kind: Type field, such as 0 (x86), 0x100 (x86_64), 0x1101 (AArch64 of 8.0).
        cycles_per_s: Rate of the counter.
        boot_time_s: Seconds since 1970 UTC.
        cpu_names: One name per CPU.
        speed_mhz: Of every CPU.
        strings: (type number, text) of the typed strings.
        flags: qtime flags.
    """
    is_8 = bool(kind & VERSIONED)
    header_size = 248 if is_8 else 264 if kind >= 0x100 else 80  # the entry, and up to the next 8 bytes
    names, name_offsets = bytearray(b"\0"), []
    for name in cpu_names:
        name_offsets.append(len(names))
        names += name.encode() + b"\0"
    cpu = _cpu(byte_order, is_8)
    cpuinfo = b"".join(
        cpu.build({"cpu": i, "speed": speed_mhz, "flags": 0xC0000000, "name": at, "ins_cache": 0, "data_cache": 0})
        for i, at in enumerate(name_offsets)
    )
    fields = {
        "cycles_per_sec": cycles_per_s,
        "nsec_tod_adjust": 0,
        "nsec": 0,
        "nsec_inc": 1_000_000,
        "boot_time": boot_time_s,
        "adjust": bytes(8),
        "timer_rate": 0,
        "timer_scale": 0,
        "timer_load": 0,
        "timer_period": 0,
        "intr": 0,
        "epoch": 1970,
        "flags": flags,
        "rr_interval_mul": 4,
    }
    qtime = _qtime(byte_order, is_8).build(fields)
    qtime = qtime.ljust(96 if kind >= 0x100 else 80, b"\0")
    typed = b"".join(number.to_bytes(4, byte_order) + _padded(text) for number, text in strings) + bytes(4)  # type: ignore[arg-type]
    sections = {"cpuinfo": cpuinfo, "qtime": qtime, "typed_strings": typed, "strings": bytes(names)}
    image, positions = bytearray(header_size), {}
    for name, content in sections.items():
        positions[name] = (len(image), len(content))
        image += content.ljust((len(content) + 7) // 8 * 8, b"\0")
    image[0:8] = _entry(byte_order).build(
        {"size": header_size, "total_size": len(image), "type": kind, "num_cpu": len(cpu_names)}
    )
    pairs = dict(_PAIRS_8) if is_8 else {name: 8 + 4 * i for i, name in enumerate(_PAIRS_OLD)}
    triples = dict(_TRIPLES_8) if is_8 else dict(_TRIPLES_7) if kind >= 0x100 else {}
    for name, (offset, size) in positions.items():
        if name in pairs:
            image[pairs[name] : pairs[name] + 4] = offset.to_bytes(2, byte_order) + size.to_bytes(2, byte_order)  # type: ignore[arg-type]
        if name in triples:
            triple = (offset, size, _CPU_ENTRY_BYTES)
            image[triples[name] : triples[name] + 6] = b"".join(v.to_bytes(2, byte_order) for v in triple)  # type: ignore[arg-type]
    return bytes(image)


def _padded(text: str) -> bytes:
    raw = text.encode() + b"\0"
    return raw.ljust((len(raw) + 3) // 4 * 4, b"\0")
