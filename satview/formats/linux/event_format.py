"""The `format` files of tracepoints, which say where the fields of a record are.

Source: Documentation/trace/events.rst of Linux, section 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from satview.events import linux
from satview.events.states import READY

_FIELD: Final = re.compile(
    r"^\s*field:(?P<type>[^;]*?)\s*\b(?P<name>\w+)(?P<array>\[[^\]]*\])?;"
    r"\s*offset:(?P<offset>[0-9]{1,9});\s*size:(?P<size>[0-9]{1,9});(?:\s*signed:(?P<signed>\d);)?",
    re.MULTILINE,
)
_FLAG: Final = re.compile(r"\{\s*(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})\s*,\s*\"(\w)\"\s*\}")
_MOST_BYTES: Final = 1 << 20
_NUMBER_SIZES: Final = (1, 2, 4, 8)
# Of Linux from 4.14 on, where the format itself does not say (include/linux/sched.h).
STATE_FLAGS: Final = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x80, "I"))


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record.

    Attributes:
        name: As Linux spells it.
        offset, size: Bytes from the start of the record.
        is_signed: Of a number.
        is_text: An array of characters.
        is_dynamic: It holds where in the record a text is, in its lower half, and how long, in its upper half.
    """

    name: str
    offset: int
    size: int
    is_signed: bool
    is_text: bool
    is_dynamic: bool

    @property
    def is_number(self) -> bool:
        """Whether it is one number."""
        return not self.is_text and not self.is_dynamic and self.size in _NUMBER_SIZES


@dataclass(frozen=True, slots=True)
class EventFormat:
    """A tracepoint.

    Attributes:
        ident: Its number in records.
        group, name: `sched`, `sched_switch`.
        fields: By name, in the order of the record.
        state_flags: (flag, letter) of `prev_state`.
    """

    ident: int
    group: str
    name: str
    fields: dict[str, RecordField]
    state_flags: tuple[tuple[int, str], ...]

    @property
    def code(self) -> int:
        """Its code in the event table."""
        return linux.point_codes().get(self.name, linux.POINT)


def parse_format(text: str, group: str) -> EventFormat | None:
    """Return what a `format` file says; None if it is none."""
    text = text[:_MOST_BYTES]
    name = re.search(r"^name:\s*(\S+)", text, re.MULTILINE)
    ident = re.search(r"^ID:\s*([0-9]{1,9})\b", text, re.MULTILINE)
    if name is None or ident is None:
        return None
    fields = {
        found["name"]: RecordField(
            found["name"], int(found["offset"]), int(found["size"]), found["signed"] == "1",
            bool(found["array"]) and "char" in found["type"] and "__data_loc" not in found["type"],
            "__data_loc" in found["type"] and "char" in found["type"],
        )
        for found in _FIELD.finditer(text)
    }  # fmt: skip
    named = _FLAG.findall(text) if "prev_state" in fields else []
    flags = tuple((_number_of_c(number), letter) for number, letter in named)
    return EventFormat(int(ident[1]), group, name[1], fields, flags or STATE_FLAGS)


def _number_of_c(text: str) -> int:
    """Return a number as C writes it: `0x02`, `02` (octal) and `2`; digits that are not octal make it decimal."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text, 8 if text.startswith("0") and not set(text) & set("89") else 10)


def lane_value(state: int, flags: tuple[tuple[int, str], ...]) -> int:
    """Return the lane value of a `prev_state`: 0, or only a flag above all named ones, means that it can run."""
    letters = linux.value_of_letter()
    for flag, letter in flags:
        if state & flag and letter in letters:
            return letters[letter]
    return READY
