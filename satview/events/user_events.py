"""Events that programs insert: how their payloads are described, and what a user says of their lanes. No numpy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, cast

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line

SIZES: Final = (1, 2, 4, 8)
_LAST: Final = 1023  # number of a user event
_MOST_RULES: Final = 1000
_MOST_VALUES: Final = 16  # of an array that a text names
_RULE: Final = re.compile(r"(\d{1,9})(?::(\d{1,9}))?(?:\.\.(\d{1,9}))?\s+(\w+)\s*(.*)")


class UserRuleKind(StrEnum):
    """What a lane makes of its events."""

    MOMENT = "moment"
    COUNTER = "counter"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class UserRule:
    """What a user says of the lane of an event.

    Attributes:
        number: Of the event; of an interval, of the one that begins it.
        kind: What the lane makes of it.
        end_number: Of the event that ends an interval.
        field: Which number of the payload a counter shows: of the description, else the word.
        name: Of the lane; empty = as the event is called.
    """

    number: int
    kind: UserRuleKind
    end_number: int = -1
    field: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class UserField:
    """A part of a payload.

    Attributes:
        label: Its name.
        size: Bytes of one value: 1, 2, 4 or 8.
        is_signed: Values may be negative.
        count: How many there are; 0 = a text that ends with a zero byte.
        base: How it is written: `d`, `x`, `o`, `b`, or `c` for characters.
        names: Names of values.
    """

    label: str
    size: int
    is_signed: bool = False
    count: int = 1
    base: str = "d"
    names: dict[int, str] = field(default_factory=dict)

    @property
    def is_counter(self) -> bool:
        """True if its value may be drawn as a height: one number that is neither an address nor a name."""
        return self.count == 1 and self.base == "d" and not self.names

    def text(self, raw: bytes, byte_order: str) -> str:
        """Return the values in the bytes of this field as text."""
        if self.count == 0 or self.base == "c":
            return visible_line(raw.split(b"\0")[0].decode("utf-8", "replace"))
        order = cast(Literal["little", "big"], byte_order)
        values = (raw[at : at + self.size] for at in range(0, min(len(raw), _MOST_VALUES * self.size), self.size))
        return ",".join(self._one(int.from_bytes(each, order, signed=self.is_signed)) for each in values)

    def _one(self, value: int) -> str:
        if value in self.names:
            return visible_line(self.names[value])
        return f"{value:#{self.base}}" if self.base in ("x", "o", "b") else f"{value}"


@dataclass(frozen=True, slots=True)
class UserEvent:
    """The description of a user event.

    Attributes:
        number: 0 to 1023.
        name: What it is called; may be empty.
        fields: The parts of its payload, one behind the other.
    """

    number: int
    name: str
    fields: tuple[UserField, ...] = ()

    def number_at(self, index: int) -> tuple[int, UserField] | None:
        """Return at which byte a field begins, and the field; None if it is no single number within one word or two."""
        byte = 0
        for at, each in enumerate(self.fields):
            if at == index:
                fits = byte % 4 + each.size <= 4 if each.size < 8 else byte % 4 == 0
                return (byte, each) if fits and each.count == 1 and each.base != "c" else None
            if each.count == 0:
                return None  # where a text ends another event may have another field
            byte += each.size * each.count
        return None

    def texts(self, raw: bytes, byte_order: str) -> list[str]:
        """Return `label=value` of every field of a payload, as far as it goes."""
        return [f"{label}={text}" if label else text for label, text in self.values(raw, byte_order)]

    def values(self, raw: bytes, byte_order: str) -> list[tuple[str, str]]:
        """Return label and value of every field of a payload, as far as it goes."""
        found, byte = list[tuple[str, str]](), 0
        for each in self.fields:
            if byte >= len(raw):
                break
            length = each.size * each.count
            if each.count == 0:
                end = raw.find(b"\0", byte)
                length = (len(raw) if end < 0 else end + 1) - byte
            if length > len(raw) - byte:
                break  # the event is shorter than its description
            found.append((each.label, each.text(raw[byte : byte + length], byte_order)))
            byte += length
        return found


def parse_rules(text: str) -> tuple[UserRule, ...]:
    """Return rules such as `7 counter queue; 8:1 counter; 41..42 interval request; 9 moment`.

    Raises:
        UsageError: One of them is no rule; names it.
    """
    parts = [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]
    if len(parts) > _MOST_RULES:
        raise UsageError(f"{len(parts)} rules for user events: at most {_MOST_RULES} are possible")
    return tuple(_rule(part) for part in parts)


def _rule(text: str) -> UserRule:
    found = _RULE.fullmatch(text)
    kind = next((kind for kind in UserRuleKind if found is not None and kind == found[4]), None)
    if found is None or kind is None:
        raise UsageError(f"{text!r:.60} is no rule for user events; write 7 counter queue, 41..42 interval request, "
                         "or 9 moment")  # fmt: skip
    number, field_number, end = (int(found[group] or -1) for group in (1, 2, 3))
    if max(number, end) > _LAST:
        raise UsageError(f"{text!r:.60}: numbers of user events are 0 to {_LAST}")
    if (kind is UserRuleKind.INTERVAL) != (end >= 0):
        raise UsageError(f"{text!r:.60}: an interval has two events, 41..42; what is no interval has one")
    if field_number > _LAST:
        raise UsageError(f"{text!r:.60}: there is no word {field_number} in a payload")
    return UserRule(number, kind, end, max(field_number, 0), found[5].strip())
