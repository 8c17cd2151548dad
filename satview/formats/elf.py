"""Reads functions and source lines from an ELF file. Sizes are checked here, because pyelftools checks little."""

from __future__ import annotations

import os
import weakref
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from satview.base.errors import UsageError

_MOST_SECTION_BYTES: Final = 1 << 28
_MOST_UNITS: Final = 20_000  # compilation units that are searched for an address
_MOST_DEBUG_BYTES: Final = 1 << 31
_MOST_LINE_BYTES: Final = 1 << 22  # line program of one unit: takes some seconds
_MOST_SECTIONS: Final = 10_000
_PAGE: Final = 0x1000
_FUNCTION: Final = 2  # STT_FUNC
_SYMBOL_64: Final = [
    ("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8"),
]  # fmt: skip
_SYMBOL_32: Final = [
    ("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"),
]  # fmt: skip
# Exceptions that pyelftools raises for a faulty file.
_FAULTS: Final = (ELFError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError,
                  AssertionError, MemoryError, RecursionError, UnicodeDecodeError, zlib.error)  # fmt: skip


class Binary:
    """The functions and source lines of an ELF file; lines are read when first needed.

    Args:
        path: The file.

    Raises:
        UsageError: The file is not an ELF file, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, path.open("rb")
        weakref.finalize(self, self._file.close)  # the file stays open: lines are read from it later
        self._lines: dict[int, tuple[NDArray[np.uint64], list[tuple[str, int]]]] = {}
        self._size = os.fstat(self._file.fileno()).st_size
        try:
            self._elf = ELFFile(self._file)
            self._check_names()
            loads = [segment.header for segment in self._elf.iter_segments("PT_LOAD")]
            self.is_movable = bool(self._elf.header.e_type == "ET_DYN")
            self.first_address = min((int(load.p_vaddr) for load in loads), default=0) // _PAGE * _PAGE
            self.end_address = max((int(load.p_vaddr + load.p_memsz) for load in loads), default=0)
            self.offsets = {int(load.p_offset) // _PAGE * _PAGE: int(load.p_vaddr) // _PAGE * _PAGE for load in loads}
            self._names, self._start, self._end, self._name_at = self._functions()
        except _FAULTS as error:
            what = str(error)[:80] or type(error).__name__
            raise UsageError(f"{path}: this is not a complete ELF file ({what})") from error

    def _check_names(self) -> None:
        """Refuse unterminated section names, for which pyelftools would search the whole file."""
        header = self._elf.header
        if header.e_shnum > _MOST_SECTIONS:
            raise ValueError(f"{header.e_shnum:,} sections")
        if not header.e_shnum:
            return
        sections = [struct_parse(self._elf.structs.Elf_Shdr, self._file, header.e_shoff + number * header.e_shentsize)
                    for number in range(header.e_shnum)]  # fmt: skip
        names = sections[header.e_shstrndx]
        last_byte = names.sh_offset + names.sh_size - 1
        if not 0 <= last_byte < self._size or any(section.sh_name >= names.sh_size for section in sections):
            raise ValueError("names of sections lie outside of it")
        self._file.seek(last_byte)
        if self._file.read(1) != b"\0":
            raise ValueError("names of sections do not end")

    def _functions(self) -> tuple[bytes, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the name table, and start, end and offset of the name in this table of each function, (n,) each."""
        layout = np.dtype(_SYMBOL_64 if self._elf.elfclass == 64 else _SYMBOL_32)
        layout = layout.newbyteorder("<" if self._elf.little_endian else ">")
        for section_name in (".symtab", ".dynsym"):
            section = self._elf.get_section_by_name(section_name)
            if section is None or not section.header.sh_size:
                continue
            texts = self._elf.get_section(section.header.sh_link)
            for part in (section, texts):
                if max(part.header.sh_size, part.data_size) > _MOST_SECTION_BYTES:
                    raise ValueError(f"section {part.name[:40]} has {part.data_size:,} bytes")
            data = section.data()
            table = np.frombuffer(data[: len(data) // layout.itemsize * layout.itemsize], layout)
            table = table[((table["info"] & 15) == _FUNCTION) & (table["section"] != 0) & (table["value"] != 0)]
            table = table[np.argsort(table["value"], kind="stable")]
            start = table["value"].astype(np.uint64)
            if self._elf.header.e_machine == "EM_ARM":
                start &= ~np.uint64(1)  # the lowest bit tells the instruction set (Thumb)
            # Assembly functions often have no size: they extend to the next function.
            size = table["size"].astype(np.uint64)
            following = np.append(start[1:], np.uint64(self.end_address))[: len(start)]
            end = np.where(size > 0, start + size, np.maximum(following, start))
            if len(start):
                return texts.data(), start, end, table["name"].astype(np.uint32)
        return b"", np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint32)

    @property
    def machine(self) -> str:
        """The processor for which the program is: `X86_64`, `AARCH64`, `ARM`, or a number that ELF does not define."""
        return str(self._elf.header.e_machine).removeprefix("EM_")

    @property
    def function_count(self) -> int:
        """Number of functions in the file."""
        return len(self._start)

    def place(self, address: int) -> tuple[str, int, str, int] | None:
        """Return function, offset in the function, source file and line of an address; None outside functions."""
        row = int(np.searchsorted(self._start, np.uint64(address), side="right")) - 1 if 0 <= address < 1 << 64 else -1
        if row < 0 or address >= int(self._end[row]):
            return None
        begin = int(self._name_at[row])
        end = self._names.find(b"\0", begin)
        name = self._names[begin : end if end >= 0 else None].decode("utf-8", "replace")
        try:
            file, line = self._line(address)
        except _FAULTS:  # the table of lines is damaged, but the function is known
            file, line = "", 0
        return name, address - int(self._start[row]), file, line

    def _line(self, address: int) -> tuple[str, int]:
        unit = self._unit_of(address)
        if unit is None:
            return "", 0
        if unit.cu_offset not in self._lines:
            self._lines[unit.cu_offset] = self._lines_of(unit)
        starts, lines = self._lines[unit.cu_offset]
        row = int(np.searchsorted(starts, np.uint64(address), side="right")) - 1
        return lines[row] if row >= 0 else ("", 0)

    @cached_property
    def _dwarf(self) -> Any:
        """DWARF debug information; None if it is missing, too large, or in the old compression format."""
        parts = [section for section in self._elf.iter_sections() if section.name.startswith((".debug_", ".zdebug_"))]
        has_room = sum(max(section.header.sh_size, section.data_size) for section in parts) <= _MOST_DEBUG_BYTES
        # The old compression format does not give the uncompressed size.
        is_old = any(section.name.startswith(".z") for section in parts)
        return self._elf.get_dwarf_info() if has_room and not is_old and self._elf.has_dwarf_info() else None

    @cached_property
    def _units(self) -> list[tuple[int, int, Any]]:
        """Start address, end address and object of each compilation unit, sorted by address."""
        units = []
        for number, unit in enumerate(self._dwarf.iter_CUs()):
            if number >= _MOST_UNITS:
                break
            low, high = (unit.get_top_DIE().attributes.get(name) for name in ("DW_AT_low_pc", "DW_AT_high_pc"))
            if low is not None and high is not None:
                is_address = high.form == "DW_FORM_addr"
                units.append((int(low.value), int(high.value) + (0 if is_address else int(low.value)), unit))
        return sorted(units, key=lambda unit: unit[:2])

    def _unit_of(self, address: int) -> Any:
        if self._dwarf is None:
            return None
        ranges = self._dwarf.get_aranges()
        offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
        if offset is not None:
            return self._dwarf.get_CU_at(offset)
        return next((unit for low, high, unit in self._units if low <= address < high), None)

    def _lines_of(self, unit: Any) -> tuple[NDArray[np.uint64], list[tuple[str, int]]]:
        program = self._dwarf.line_program_for_CU(unit)
        rows: list[tuple[int, tuple[str, int]]] = []
        if program is None or program.header.unit_length > _MOST_LINE_BYTES:
            return np.empty(0, np.uint64), []
        files, shift = program.header.file_entry, 0 if program.header.version >= 5 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            number = state.file - shift
            name = files[number].name.decode("utf-8", "replace") if 0 <= number < len(files) else ""
            rows.append((int(state.address), ("", 0) if state.end_sequence else (name, int(state.line))))
        rows.sort(key=lambda row: row[0])
        return np.array([row[0] for row in rows], np.uint64), [row[1] for row in rows]
