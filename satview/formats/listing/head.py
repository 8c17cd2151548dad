"""Writes the head of a listing: banner, header keys, and with -v the system page. Source: listing format, 2 and 5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.syspage import CPU_ENTRY_BYTES
from satview.store.head import Header, SystemInfo

_SECTIONS: tuple[tuple[str, ...], ...] = (
    ("asinfo", "meminfo", "hwinfo"),
    ("cpuinfo", "cacheattr", "qtime"),
    ("callout", "callin", "intrinfo"),
    ("typed_strings", "strings"),
)
_ABSENT = 65_535  # printed as the offset of a missing section


BANNER = "TRACEPRINTER version 1.02\n"
LIBRARY_BANNER = "TRACEPARSER LIBRARY version 1.02\n"
HEADER_TITLE = " -- HEADER FILE INFORMATION -- \n"
SYSPAGE_TITLE = " -- SYSPAGE INFORMATION -- \n"
EVENTS_TITLE = " -- KERNEL EVENTS -- \n"


def head_lines(
    header: Header, system: SystemInfo | None, byte_order: str, *, is_vendor: bool, is_verbose: bool
) -> Iterator[str]:
    """Yield the text before the first event, line ends included.

    Args:
        header: The header of the file.
        system: The system page; None if there is none.
        byte_order: Byte order of the target.
        is_vendor: Leave out unprintable characters of values, like traceprinter; else they are escaped.
        is_verbose: Add lengths of values and the system page (`-v`).
    """
    yield BANNER + LIBRARY_BANNER + HEADER_TITLE
    yield from header_lines(header, is_vendor=is_vendor, is_verbose=is_verbose)
    if is_verbose:
        yield SYSPAGE_TITLE
        if system is not None:
            yield from syspage_lines(system, byte_order)
        yield "TRACEPRINTER: header file and syspage have been processed\n"
    yield EVENTS_TITLE


def header_lines(header: Header, *, is_vendor: bool, is_verbose: bool) -> Iterator[str]:
    """Yield a line for each header key; verbose lines also have the length of the value."""
    for key, value in header.pairs:
        text = _printable(value) if is_vendor else _escaped(value)
        if is_verbose:
            text = f'(len={len(value.encode("utf-8", "surrogateescape"))}) -> "{text}" '
        yield f"{key_column(key)}:: {text}\n"


def _printable(value: str) -> str:
    return "".join(c for c in value if " " <= c <= "~")


def _escaped(value: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value)


def key_column(key: str) -> str:
    """Return `TRACE_` and the key; keys up to 16 characters end in column 22."""
    width = 22 - len(key)  # as in C's "%*s", where a negative width pads on the other side
    return f"{'TRACE_':>{width}}{key}" if width >= 0 else f"{'TRACE_':<{-width}}{key}"


def syspage_lines(system: SystemInfo, byte_order: str) -> Iterator[str]:
    """Yield the dump of the system page."""
    values = system.values
    step = values.get("cpuinfo.element_size", CPU_ENTRY_BYTES)

    def section(name: str) -> str:
        return f"{name}:off/size={values.get(f'{name}.offset', _ABSENT)},{values.get(f'{name}.size', 0)}"

    yield f" size={values['size']} total_size={values['total_size']} {section('system_private')}\n"
    for sections in _SECTIONS:
        yield f" {' '.join(section(name) for name in sections)}\n"
    yield f" processor={system.processor} num_cpus={values['num_cpu']}\n"
    for number, cpu in enumerate(system.cpus, 1):
        offset = values["cpuinfo.offset"] + (number - 1) * step
        model = int.from_bytes(system.raw[offset : offset + 4], "little" if byte_order == "little" else "big")
        yield f"  cpu {number} cpu={model} name={cpu.name} speed={cpu.speed_mhz}\n"
        names = "".join(f" {name}" for name in cpu.flag_names)
        yield f"  flags={f'0x{cpu.flags:06x}' if cpu.flags else '00000000'}{names}\n"
    yield from _clock_lines(values)
    if system.strings:
        yield "".join(f'   {name}="{text}"' for name, text in system.strings) + "\n"


def _clock_lines(values: dict[str, int]) -> Iterator[str]:
    def value(name: str) -> int:
        return values.get(f"qtime.{name}", 0)

    if "qtime.cycles_per_sec" not in values:
        return
    yield (
        f" cyc/sec={value('cycles_per_sec')} tod_adj={value('nsec_tod_adjust')} nsec={value('nsec')}  "
        f"inc={value('nsec_inc')}\n"
    )
    yield f" boot={value('boot_time')} epoch={value('epoch')} intr={value('intr')}\n"
    yield f" rate={value('timer_rate')} scale={value('timer_scale')} load={value('timer_load')}\n"


def slot_lines(slots: NDArray[np.uint32], byte_order: str) -> list[str]:
    """Return the verbose line of every slot; payload words are printed as a little-endian host reads them.

    Args:
        slots: (n, 4), host order.
        byte_order: Byte order of the target.
    """
    payload = slots[:, 2:4].byteswap() if byte_order == "big" else slots[:, 2:4]
    values = np.column_stack((slots[:, :2], payload)).ravel().tolist()
    template = "event => h:0x%08x d0:0x%08x d1:0x%08x d2:0x%08x\n\0" * len(slots)
    return (template % tuple(values)).split("\0")[:-1]


def stray_line(header: int) -> str:
    """Return the library's message about a continuation slot without an open event."""
    kind = "end" if header >> wire.STRUCT_SHIFT == wire.Struct.COMBINE_END else "continuation"
    return f"TRACEPARSER: unbalanced {kind} of combine event ignored\n"
