"""Writes .kev files: header, system page, slots, in either byte order. The counterpart of `reader`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from satview.base.new_file import NewFile, Sources
from satview.events.variants import text_words
from satview.events.wire import CPU_MASK, CPU_SHIFT, STRUCT_SHIFT, Struct
from satview.formats.kev.header import header_bytes


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

        Args:
            code: Internal class and event number, 15 bits.
            cpu: 0 to 63.
            stamp: Low 32 bits of the clock; higher bits are ignored.
            words: Payload, each word taken modulo 2^32.
            flags: Further header bits, such as `wire.PROCESS_INJECTED`.
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
        kinds = [Struct.COMBINE_BEGIN, *[Struct.COMBINE_CONTINUE] * (last - 1), Struct.COMBINE_END]
        return [
            (header | kind << STRUCT_SHIFT, stamp, payload[2 * i], payload[2 * i + 1]) for i, kind in enumerate(kinds)
        ]

    def append(self, slot: tuple[int, int, int, int]) -> None:
        """Append one slot unchanged."""
        self._words.extend(slot)

    def text_event(self, code: int, cpu: int, stamp: int, words: Sequence[int], text: bytes, flags: int = 0) -> None:
        """Append an event with some words followed by a NUL-terminated text."""
        self.event(code, cpu, stamp, [*words, *text_words(text, self.byte_order)], flags)

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots so far, shape (n, 4), uint32 in host order."""
        return slot_array(self._words)

    def clear(self) -> None:
        """Remove all slots, for streaming in pieces."""
        del self._words[:]


def slot_array(words: Sequence[int]) -> NDArray[np.uint32]:
    """Return the words of consecutive slots as slots, shape (n, 4), uint32 in host order."""
    return np.array(words, dtype=np.uint32).reshape(-1, 4)


def slots_as_bytes(slots: NDArray[np.uint32], byte_order: str) -> bytes:
    """Return the bytes of slots in a file of a byte order."""
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
        system_page: Image, may be empty.
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
