"""Small programs as ELF files, written byte by byte: functions of a name, an address and a size."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

_EXECUTABLE, _SHARED = 2, 3
X86, ARM, X86_64, AARCH64 = 3, 40, 62, 183  # e_machine
_SYMTAB, _STRTAB = 2, 3


def write_elf(
    path: Path,
    functions: Mapping[str, tuple[int, int]],
    *,
    bits: int = 64,
    order: str = "<",
    base: int = 0x8048000,
    is_movable: bool = False,
    machine: int = 0,
) -> Path:
    """Write a program with a table of symbols and one segment, no code.

    Args:
        path: The file.
        functions: Name to address and size.
        bits: 64 or 32.
        order: `<` little or `>` big endian.
        base: Where its segment begins.
        is_movable: It may lie anywhere in memory.
        machine: The processor; 0 = x86.
    """
    is_64 = bits == 64
    names, symbols = b"\0", b"\0" * (24 if is_64 else 16)
    for name, (address, size) in functions.items():
        at, names = len(names), names + name.encode() + b"\0"
        info = 1 << 4 | 2
        symbols += (
            struct.pack(f"{order}IBBHQQ", at, info, 0, 1, address, size)
            if is_64
            else struct.pack(f"{order}IIIBBH", at, address, size, info, 0, 1)
        )
    headings = b"\0.symtab\0.strtab\0.shstrtab\0"
    head, program, section = (64, 56, 64) if is_64 else (52, 32, 40)
    at_symbols = head + program
    at_names = at_symbols + len(symbols)
    at_headings = at_names + len(names)
    at_sections = at_headings + len(headings)
    word = "Q" if is_64 else "I"
    ident = b"\x7fELF" + bytes((2 if is_64 else 1, 1 if order == "<" else 2, 1)) + b"\0" * 9
    header = ident + struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH", _SHARED if is_movable else _EXECUTABLE,
        machine or (X86_64 if is_64 else X86), 1,
        base, head, at_sections, 0, head, program, 1, section, 4, 3,
    )  # fmt: skip
    load = (1, 5, 0, base, base, 0x2000, 0x2000, 0x1000) if is_64 else (1, 0, base, base, 0x2000, 0x2000, 5, 0x1000)
    segment = struct.pack(f"{order}{'IIQQQQQQ' if is_64 else 'IIIIIIII'}", *load)
    sections = b"".join(
        struct.pack(f"{order}II{word}{word}{word}{word}II{word}{word}", *one)
        for one in (
            (0,) * 10,
            (1, _SYMTAB, 0, 0, at_symbols, len(symbols), 2, 1, 8, 24 if is_64 else 16),
            (9, _STRTAB, 0, 0, at_names, len(names), 0, 0, 1, 0),
            (17, _STRTAB, 0, 0, at_headings, len(headings), 0, 0, 1, 0),
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + segment + symbols + names + headings + sections)
    return path
