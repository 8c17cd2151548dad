"""Reads and builds the system page: an image of the target's system page, between header and slots.

Source: kernel event trace format, section 4. The entry has offset and size of every section, which are checked before
use; sections beyond the end of the image are left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import SEEK_CUR, BytesIO
from typing import Any, Final

from construct import StreamError

from satview.formats.kev.header import page_structs
from satview.store.head import CpuInfo, SystemInfo

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
    """An image while it is read: its sections, and messages about invalid parts."""

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
    """Read a system page.

    Returns:
        The content (None if there is none, or nothing can be read), and sentences about invalid parts.
    """
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

    Args:
        byte_order: `little` or `big`.
        kind: Type field, such as 0 (x86), 0x100 (x86_64), 0x1101 (AArch64 of 8.0).
        cycles_per_s: Rate of the counter.
        boot_time_s: Seconds since 1970 UTC.
        cpu_names: One name per CPU.
        speed_mhz: Speed of every CPU.
        strings: (type number, text) of the typed strings.
        flags: qtime flags.
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
