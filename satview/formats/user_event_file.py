"""Reads descriptions of user events: the XML files of the vendor's System Profiler and of its toolkit.

    <eventdefinitions>
      <eventclass id="6">
        <event id="10" name="queue" sformat="%4u1d depth"/>
        <event id="20" name="frame">
          <field name="number" size="4"/>
          <field name="kind" size="4"><enum value="1" name="key"/><enum value="2" name="delta"/></field>
        </event>
      </eventclass>
    </eventdefinitions>

An older file has a format for each event, `%<bytes><u or s><count><d, x, o, b or c> label`, as often as there are
fields; a count of 0 is a text up to its zero byte. A newer one has elements for fields and for the names of values. The
vendor publishes no schema: elements are known by what they hold, and what is not known is passed over.

The file comes from anybody. No document type is accepted, so there are no entities to unfold, and nothing is fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from xml.parsers import expat

from satview.base.errors import UsageError
from satview.base.small_file import read_small
from satview.events.user_events import SIZES, UserEvent, UserField
from satview.events.wire import WireClass

_BYTES_MAX: Final = 1 << 20
_DEEPEST: Final = 32
_MOST_FIELDS: Final = 256
_MOST_COUNT: Final = 4096
_LAST: Final = 1023
_NUMBER_NAMES: Final = ("id", "event", "code", "number")
_NAME_NAMES: Final = ("name", "label")
_FORMAT: Final = re.compile(r"%([0-9]{1,9})([suSU]?)([0-9]{0,9})([a-zA-Z])[ \t]*([^%]*)")
_TYPE: Final = re.compile(r"(u?)int([0-9]{1,9})(?:_t)?|(string|char)")
_BASES: Final = {"d": "d", "i": "d", "u": "d", "x": "x", "h": "x", "o": "o", "b": "b", "c": "c", "s": "c"}


def read_user_events(path: Path) -> dict[int, UserEvent]:
    """Return the user events that a file describes, by number.

    Raises:
        UsageError: It cannot be read, is no XML, or describes none; a sentence with file and line.
    """
    data = read_small(path, _BYTES_MAX, "larger than 1 MiB, which no description of events is; check the name")
    reader = _Reader(path.name)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UsageError(f"{path.name}: line {error.lineno}: no XML: {expat.ErrorString(error.code)}; "
                         "export the descriptions again") from error  # fmt: skip
    except (LookupError, ValueError) as error:  # an encoding that nobody knows
        raise UsageError(f"{path.name}: {error}; save it as UTF-8") from error
    if not reader.events:
        raise UsageError(f"{path.name}: it describes no user events (class 6); choose the file that the toolkit's "
                         "setting for user events names")  # fmt: skip
    return reader.events


@dataclass(slots=True)
class _Element:
    tag: str
    values: dict[str, str]
    class_number: int
    event: UserEvent | None = None
    fields: list[UserField] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    text: str = ""


class _Reader:
    """Collects events while the parser goes over a file."""

    def __init__(self, name: str) -> None:
        self.events: dict[int, UserEvent] = {}
        self._name = name
        self._open: list[_Element] = []
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def _fault(self, what: str) -> UsageError:
        return UsageError(f"{self._name}: line {self.parser.CurrentLineNumber}: {what}")

    def _refuse(self, *_declaration: object) -> None:
        raise self._fault("it declares a document type, which descriptions of events do not need; take <!DOCTYPE> out")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise self._fault(f"elements are nested more than {_DEEPEST} deep; this is no description of events")
        tag, values = tag.casefold(), {name.casefold(): value for name, value in attributes.items()}
        number = self._open[-1].class_number if self._open else int(WireClass.USER)
        if "class" in tag or "class" in values:
            number = self._class_of(values, number)
        element = _Element(tag, values, number)
        if tag.endswith("event"):
            element.event = self._event(values)
        self._open.append(element)

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text[:200]

    def _end(self, _tag: str) -> None:
        element = self._open.pop()
        above = self._open[-1] if self._open else None
        if element.event is not None:
            fields = (*element.event.fields, *element.fields)
            if len(fields) > _MOST_FIELDS:
                raise self._fault(f"an event of {len(fields)} fields; at most {_MOST_FIELDS} are possible")
            if element.class_number == WireClass.USER:
                self.events[element.event.number] = replace(element.event, fields=fields)
        elif above is not None and self._is_value(element):
            above.names[self._whole(element.values, ("value", "id"))] = (
                _first(element.values, _NAME_NAMES) or element.text.strip()
            )
        elif above is not None and above.event is not None and _first(element.values, ("size", "type", "width")):
            above.fields.append(self._field(element))

    def _class_of(self, values: dict[str, str], number: int) -> int:
        found = _first(values, ("class", "id", "code")).strip()
        try:
            return int(found, 0)
        except ValueError:
            name = (found or _first(values, _NAME_NAMES)).casefold()
            return int(WireClass.USER) if "us" in name[:2] else number if not name else -1

    def _event(self, values: dict[str, str]) -> UserEvent:
        number = self._whole(values, _NUMBER_NAMES)
        if not 0 <= number <= _LAST:
            raise self._fault(f"event {number}: numbers of events are 0 to {_LAST}")
        name = _first(values, _NAME_NAMES)
        return UserEvent(number, name[:200], self._formatted(_first(values, ("sformat", "format"))))

    def _formatted(self, text: str) -> tuple[UserField, ...]:
        """Return the fields of a format such as `%4u1d depth %1u0c name`."""
        fields = []
        for size, sign, count, base, label in _FORMAT.findall(text):
            fields.append(self._checked(label.strip(), int(size), sign in ("s", "S"), count, base))
        if text.strip() and not fields:
            raise self._fault(f"{text!r:.60} is no format; write %4u1d label: bytes, u or s, count, d or x")
        return tuple(fields)

    def _field(self, element: _Element) -> UserField:
        values = element.values
        kind = _TYPE.fullmatch(_first(values, ("type",)).casefold())
        is_text = kind is not None and kind[3] == "string"
        size = int(kind[2]) // 8 if kind is not None and kind[2] else self._whole(values, ("size", "width"), 1)
        is_signed = kind is not None and kind[2] is not None and not kind[1]
        is_signed |= _first(values, ("signed",)).casefold() in ("1", "true", "yes", "s", "signed")
        base = _first(values, ("base", "display", "format"))[:1] or ("c" if kind is not None and kind[3] else "d")
        made = self._checked(
            _first(values, _NAME_NAMES) or element.text.strip(), size, is_signed,
            _first(values, ("count",)) or ("0" if is_text else "1"), base
        )  # fmt: skip
        return replace(made, names=dict(element.names))

    def _checked(self, label: str, size: int, is_signed: bool, count: str, base: str) -> UserField:
        if size not in SIZES:
            raise self._fault(f"a field of {size} bytes; 1, 2, 4 and 8 are possible")
        number = int(count) if count.isdecimal() and len(count) < 6 else 1 if not count else -1
        if not 0 <= number <= _MOST_COUNT:
            raise self._fault(f"a field of {count!r:.20} values; 0 to {_MOST_COUNT} are possible")
        if base.casefold() not in _BASES:
            raise self._fault(f"a field shown as {base!r:.20}; d, x, o, b and c are possible")
        return UserField(label[:200], size, is_signed, number, _BASES[base.casefold()])

    def _is_value(self, element: _Element) -> bool:
        is_value = element.tag.startswith(("enum", "value")) or element.tag.endswith("value")
        return is_value and bool(_first(element.values, ("value", "id")))

    def _whole(self, values: dict[str, str], names: tuple[str, ...], default: int | None = None) -> int:
        found = _first(values, names).strip()
        if not found and default is not None:
            return default
        try:
            return int(found[:20], 0)
        except ValueError:
            raise self._fault(f"{names[0]}={found!r:.30} is no number") from None


def _first(values: dict[str, str], names: tuple[str, ...]) -> str:
    """Return the first of some attributes that is there; empty if none is."""
    return next((values[name] for name in names if values.get(name)), "")
