"""Descriptions of event payloads, and users' rules for lanes of user events. Imports no numpy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, cast

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.events.wire import WireClass, code

SIZES: Final = (1, 2, 4, 8)
_LAST: Final = 1023  # largest number of a user event
_MOST_RULES: Final = 1000
_MOST_VALUES: Final = 16  # values of an array that are written
_RULE: Final = re.compile(r"(\d{1,9})(?::(\d{1,9}|[^\W\d]\w{0,79}))?(?:\.\.(\d{1,9}))?\s+(\w+)\s*(.*)")


class UserRuleKind(StrEnum):
    """The form in which a lane shows user events."""

    MOMENT = "moment"
    COUNTER = "counter"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class UserRule:
    """A user's rule for the lane of a user event.

    Attributes:
        number: Number of the event; for an interval, number of the event that begins the interval.
        end_number: Number of the event that ends an interval.
        field: Index of the payload field that a counter shows, or of the word if the event has no description.
        name: Name of the lane; empty = the name of the event.
        label: Label of the field that a counter shows, instead of its index.
    """

    number: int
    kind: UserRuleKind
    end_number: int = -1
    field: int = 0
    name: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ValueText:
    """A text for the values of a field that are equal to `value` in the bits of `mask`; -1 = all.

    `when` is label, mask and value of another field that must match too; None = no condition.
    """

    value: int
    text: str
    mask: int = -1
    when: tuple[str, int, int] | None = None

    def fits(self, value: int, numbers: Mapping[str, int]) -> bool:
        """Return whether this text describes a value of the field; `numbers` are the event's numbers by label."""
        if self.when is not None:
            label, mask, wanted = self.when
            if label not in numbers or (numbers[label] ^ wanted) & mask:
                return False
        return not (value ^ self.value) & self.mask


@dataclass(frozen=True, slots=True)
class UserField:
    """A described field of a payload.

    Attributes:
        size: Bytes of one value: 1, 2, 4 or 8.
        count: Number of values; 0 = a text that ends with a zero byte.
        base: Notation: `d`, `x`, `o`, `b`, or `c` for characters.
        names: Names of values, shown instead of the values.
        texts: Texts of values, shown beside the values.
        shows_number: False if the value itself is not shown where it has texts.
        offsets: Offset of the first byte in a payload, and in the payload of a wide event of any class but USER; None
            = directly behind the previous field.
    """

    label: str
    size: int
    is_signed: bool = False
    count: int = 1
    base: str = "d"
    names: dict[int, str] = field(default_factory=dict, hash=False)
    texts: tuple[ValueText, ...] = ()
    shows_number: bool = True
    offsets: tuple[int, int] | None = None

    @property
    def is_counter(self) -> bool:
        """True if the field can be plotted: it is a single decimal number without names or texts."""
        return self.is_number and self.base == "d" and not self.names and not self.texts

    @property
    def value_texts(self) -> tuple[ValueText, ...]:
        """All texts for values of the field, made from `names` and `texts`."""
        return (*(ValueText(value, name) for value, name in self.names.items()), *self.texts)

    @property
    def is_number(self) -> bool:
        """True if the field is a single number, not an array or text."""
        return self.count == 1 and self.base != "c"

    def number(self, raw: bytes, byte_order: str) -> int:
        """Return the value of this field, a single number, from its bytes."""
        return int.from_bytes(raw, cast(Literal["little", "big"], byte_order), signed=self.is_signed)

    def text(self, raw: bytes, byte_order: str, numbers: Mapping[str, int] | None = None) -> str:
        """Return the values of this field as text, from its bytes; `numbers` as in `ValueText.fits`."""
        if self.count == 0 or self.base == "c":
            return visible_line(raw.split(b"\0")[0].decode("utf-8", "replace"))
        values = (
            raw[start : start + self.size] for start in range(0, min(len(raw), _MOST_VALUES * self.size), self.size)
        )
        more = "" if self.count <= _MOST_VALUES else f" and {self.count - _MOST_VALUES} more"
        return ",".join(self._one(self.number(value, byte_order), numbers or {}) for value in values) + more

    def _one(self, value: int, numbers: Mapping[str, int]) -> str:
        if value in self.names:
            return visible_line(self.names[value])
        shown = f"{value:#{self.base}}" if self.base in ("x", "o", "b") else f"{value}"
        texts = [visible_line(value_text.text) for value_text in self.texts if value_text.fits(value, numbers)]
        return " ".join(([shown] if self.shows_number or not texts else []) + texts)


@dataclass(frozen=True, slots=True)
class UserEvent:
    """The description of an event, of class USER or any other: its number there, 0 to 1023, and a name or none."""

    number: int
    name: str
    fields: tuple[UserField, ...] = ()
    class_number: int = WireClass.USER

    @property
    def code(self) -> int:
        """Event code, made from class and number."""
        return code(self.class_number, self.number)

    def placed(self, *, is_wide: bool = False) -> list[tuple[UserField, int]]:
        """Return every field with its offset in the payload, bytes; -1 for fields behind a text, whose length varies.

        `is_wide` is for payloads of wide events of a class other than USER.
        """
        fields, byte = list[tuple[UserField, int]](), 0
        for user_field in self.fields:
            byte = user_field.offsets[is_wide] if user_field.offsets is not None else byte
            fields.append((user_field, byte))
            byte = -1 if byte < 0 or user_field.count == 0 else byte + user_field.size * user_field.count
        return fields

    def number_at(self, index: int) -> tuple[int, UserField] | None:
        """Return the offset of a field in a payload, and the field; None if it is no number or its offset varies."""
        placed = self.placed()
        if index >= len(placed) or placed[index][1] < 0 or not placed[index][0].is_number:
            return None
        return placed[index][1], placed[index][0]

    def texts(self, raw: bytes, byte_order: str) -> list[str]:
        """Return `label=value` of every field that a payload is long enough to hold."""
        return [f"{label}={text}" if label else text for label, text in self.values(raw, byte_order)]

    def values(self, raw: bytes, byte_order: str) -> list[tuple[str, str]]:
        """Return label and value of every field that a payload is long enough to hold."""
        return [(user_field.label, text) for user_field, _, _, text in self.shown(raw, byte_order)]

    def shown(self, raw: bytes, byte_order: str, *, is_wide: bool = False) -> list[tuple[UserField, int, bytes, str]]:
        """Return the field, offset, bytes and text of every field that a payload is long enough to hold."""
        present, end_of_last = list[tuple[UserField, int, bytes]](), 0
        for user_field, start in self.placed(is_wide=is_wide):
            byte = start if start >= 0 else end_of_last
            length = user_field.size * user_field.count
            if user_field.count == 0:
                end = raw.find(b"\0", byte)
                length = (len(raw) if end < 0 else end + 1) - byte
            end_of_last = byte + max(length, 0)
            if byte < len(raw) and 0 < length <= len(raw) - byte:  # else the event is shorter than its description
                present.append((user_field, byte, raw[byte : byte + length]))
        numbers = {
            user_field.label: user_field.number(data, byte_order)
            for user_field, _, data in present
            if user_field.is_number
        }
        return [
            (user_field, byte, data, user_field.text(data, byte_order, numbers)) for user_field, byte, data in present
        ]


@dataclass(frozen=True, slots=True)
class Descriptions:
    """The event descriptions of a file by code, and a sentence for each part that was not understood and skipped."""

    events: Mapping[int, UserEvent] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def user(self) -> dict[int, UserEvent]:
        """The descriptions of class USER, by number."""
        return {event.number: event for event in self.events.values() if event.class_number == WireClass.USER}


def parse_rules(text: str) -> tuple[UserRule, ...]:
    """Return the rules in a text such as `7 counter queue; 8:1 counter; 41..42 interval request; 9 moment`.

    Raises UsageError, which names the part that is no rule.
    """
    parts = [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]
    if len(parts) > _MOST_RULES:
        raise UsageError(f"{len(parts)} rules for user events: at most {_MOST_RULES} are possible")
    return tuple(_rule(part) for part in parts)


def _rule(text: str) -> UserRule:
    parts = _RULE.fullmatch(text)
    kind = next((kind for kind in UserRuleKind if parts is not None and kind == parts[4]), None)
    if parts is None or kind is None:
        raise UsageError(f"{text!r:.60} is not a rule for user events; write 7 counter queue, 41..42 interval request, "
                         "or 9 moment")  # fmt: skip
    label = parts[2] if parts[2] and not parts[2].isdecimal() else ""
    number, field_number, end = (int(group or -1) for group in (parts[1], parts[2] if not label else "", parts[3]))
    if max(number, end) > _LAST:
        raise UsageError(f"{text!r:.60}: numbers of user events are 0 to {_LAST}")
    if (kind is UserRuleKind.INTERVAL) != (end >= 0):
        raise UsageError(f"{text!r:.60}: an interval has two events, 41..42; other rules have one")
    if field_number > _LAST:
        raise UsageError(f"{text!r:.60}: there is no word {field_number} in a payload")
    return UserRule(number, kind, end, max(field_number, 0), parts[5].strip(), label)
