"""Reads descriptions of events: the XML files of the vendor's System Profiler and of its toolkit.

    <eventdefinitions>
      <eventclass name="User Events">
        <event id="10" name="queue" sformat="%4u1d depth"/>
        <event id="20" name="frame">
          <field name="number" size="4"/>
          <field name="kind" size="4"><enum value="1" name="key"/><enum value="2" name="delta"/></field>
        </event>
      </eventclass>
      <datakey format="%4ux kind %4ud left" offset="8" wide_offset="16">
        <event class="6" id="30"/>
        <enum name="kind" value="5" string="five"/>
        <condition name="kind" value="5"><bitmask name="left" value="0x1" string="low"/></condition>
      </datakey>
    </eventdefinitions>

Before 8.0 a file has a format for each event, `%<bytes><u or s><count><d, x, o, b or c> label`, once per field; a count
of 0 is a text up to its zero byte. Since 8.0 a `datakey` gives the offset of a format, and the events to which it
applies. Other elements are recognized by their content; unknown parts of a `datakey` are reported.

The file is not trusted: it must not declare a document type, so no entities are expanded and nothing is fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from xml.parsers import expat

from satview.base.errors import UsageError
from satview.base.named_files import read_small
from satview.events.user_events import SIZES, Descriptions, UserEvent, UserField, ValueText
from satview.events.wire import CLASS_MASK, WireClass

_BYTES_MAX: Final = 1 << 20
_DEEPEST: Final = 32
_MOST_FIELDS: Final = 256
_MOST_COUNT: Final = 4096
_LAST: Final = 1023
_MOST_OFFSET: Final = 1 << 17  # upper limit for the length of a payload
_NUMBER_NAMES: Final = ("id", "event", "code", "number")
_NAME_NAMES: Final = ("name", "label")
_MOST_PARTS: Final = 4096  # maximum number of values of all fields of an event
_MOST_VALUES: Final = 1 << 17  # maximum number of values of all fields of all events
_MOST_TEXTS: Final = 4096  # maximum number of texts of the fields of an event
_MOST_NOTES: Final = 20
_FORMAT: Final = re.compile(r"%([0-9]{0,9})([suSU]?)([0-9]{0,9})((?:[a-zA-Z])|(?=\s|$))[ \t]*([^%]*)")
_DATAKEY: Final = frozenset({"format", "sformat", "offset", "wide_offset", "show_masked_value", "name"})
_OF_TEXTS: Final = frozenset({"name", "value", "string", "mask"})
_TYPE: Final = re.compile(r"(u?)int([0-9]{1,9})(?:_t)?|(string|char)")
_BASES: Final = {"d": "d", "i": "d", "u": "d", "x": "x", "h": "x", "o": "o", "b": "b", "c": "c", "s": "c"}


def read_user_events(path: Path) -> Descriptions:
    """Return the events that a file describes.

    Raises:
        UsageError: The file cannot be read, is not XML, or describes no event; the text has file and line.
    """
    data = read_small(path, _BYTES_MAX, "larger than 1 MiB, which no description of events is; check the name")
    reader = _Reader(path.name)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UsageError(f"{path.name}: line {error.lineno}: no XML: {expat.ErrorString(error.code)}; "
                         "export the descriptions again") from error  # fmt: skip
    except (LookupError, ValueError) as error:  # an unknown encoding
        raise UsageError(f"{path.name}: {error}; save it as UTF-8") from error
    if not reader.events:
        raise UsageError(f"{path.name}: it describes no events; choose the file that the toolkit's setting for user "
                         "events names")  # fmt: skip
    return Descriptions(reader.events, tuple(reader.notes))


@dataclass(slots=True)
class _Element:
    tag: str
    values: dict[str, str]
    class_number: int
    event: UserEvent | None = None
    fields: list[UserField] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    text: str = ""
    codes: list[int] = field(default_factory=list)
    texts: list[tuple[str, ValueText]] = field(default_factory=list)


class _Reader:
    """Collects events while the XML parser runs."""

    def __init__(self, name: str) -> None:
        self.events: dict[int, UserEvent] = {}
        self.notes: list[str] = []
        self._name = name
        self._values = 0
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
            raise self._fault(f"elements are nested more than {_DEEPEST} deep; this is not a description of events")
        tag, values = tag.casefold(), {name.casefold(): value for name, value in attributes.items()}
        number = self._open[-1].class_number if self._open else int(WireClass.USER)
        if "class" in tag or "class" in values:
            number = self._class_of(values, number)
        element = _Element(tag, values, number)
        if tag.endswith("event"):
            element.event = self._event(values, number)
        elif tag == "datakey":
            element.fields = self._placed(values)
            self._note(values, _DATAKEY, tag)
        elif tag in ("enum", "bitmask", "condition") and self._is_in_datakey():
            self._note(values, _OF_TEXTS, tag)
        elif self._is_in_datakey():
            self._note({tag: ""}, frozenset(), "datakey")
        self._open.append(element)

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text[:200]

    def _is_in_datakey(self) -> bool:
        return any(element.tag == "datakey" for element in self._open)

    def _end(self, _tag: str) -> None:
        element = self._open.pop()
        above = self._open[-1] if self._open else None
        if element.event is not None:
            self._add(element.event, tuple(element.fields))
            if above is not None and element.class_number >= 0:
                above.codes.append(element.event.code)
        elif element.tag == "datakey":
            fields = tuple(self._with_texts(user_field, element.texts) for user_field in element.fields)
            self._refuse_unused(element)
            for code in dict.fromkeys(element.codes):
                self._add(self.events[code], fields)
        elif above is not None and self._is_in_datakey():
            self._take_texts(element, above)
        elif above is not None and self._is_value(element):
            above.names[self._number(element.values, ("value", "id"))] = (
                _first(element.values, _NAME_NAMES) or element.text.strip()
            )
        elif above is not None and above.event is not None and _first(element.values, ("size", "type", "width")):
            above.fields.append(self._field(element))
        if above is not None and element.tag in ("eventclass", "datakeys"):
            above.codes += element.codes

    def _add(self, event: UserEvent, fields: tuple[UserField, ...]) -> None:
        """Add an event, or add further fields to an event."""
        if event.class_number < 0:
            return
        fields = (*event.fields, *fields)
        if len(fields) > _MOST_FIELDS:
            raise self._fault(f"an event of {len(fields)} fields; at most {_MOST_FIELDS} are possible")
        if sum(user_field.count for user_field in fields) > _MOST_PARTS:
            raise self._fault(f"an event of more than {_MOST_PARTS} values")
        self._values += sum(
            user_field.count for user_field in fields[len(event.fields) if event.code in self.events else 0 :]
        )
        if self._values > _MOST_VALUES:
            raise self._fault(f"the events have more than {_MOST_VALUES:,} values, more than any trace has use for")
        self.events[event.code] = replace(event, fields=fields)

    # ---- since 8.0 -----------------------------------------------------------------------------------------------

    def _placed(self, values: dict[str, str]) -> list[UserField]:
        """Return the fields of a datakey, given its attributes; the first field gets the offsets of the datakey."""
        fields = list(self._formatted(_first(values, ("format", "sformat"))))
        if not fields:
            raise self._fault('a datakey without a format; write format="%4ux label"')
        offsets = tuple(self._number(values, (name,), 0) for name in ("offset", "wide_offset"))
        if not all(0 <= offset <= _MOST_OFFSET for offset in offsets):
            raise self._fault(f"an offset of {max(offsets, key=abs)} bytes; 0 to {_MOST_OFFSET} are possible")
        fields[0] = replace(fields[0], offsets=(offsets[0], offsets[1]))
        shows = _first(values, ("show_masked_value",)).casefold() not in ("false", "0", "no")
        return [replace(user_field, shows_number=shows) for user_field in fields]

    def _take_texts(self, element: _Element, above: _Element) -> None:
        """Add the texts for values that `element` and its children define to `above`, the parent of `element`."""
        values, tag = element.values, element.tag
        if tag == "condition":
            when = self._condition(values)
            above.texts += [(label, replace(text, when=when)) for label, text in element.texts]
            if element.texts or not values.get("string"):
                return
        elif tag not in ("enum", "bitmask"):
            return
        mask = self._number(values, ("mask",), -1)
        value = self._number(values, ("value",), mask if tag == "bitmask" and mask >= 0 else None)
        if tag == "bitmask" and mask < 0:
            mask = value
        above.texts.append((values.get("name", ""), ValueText(value, values.get("string", "")[:200], mask)))
        if len(above.texts) > _MOST_TEXTS:
            raise self._fault(f"more than {_MOST_TEXTS:,} texts of values")

    def _condition(self, values: dict[str, str]) -> tuple[str, int, int]:
        return values.get("name", ""), self._number(values, ("mask",), -1), self._number(values, ("value",))

    def _with_texts(self, own: UserField, texts: list[tuple[str, ValueText]]) -> UserField:
        return replace(own, texts=tuple(text for label, text in texts if label == own.label))

    def _refuse_unused(self, element: _Element) -> None:
        """Report texts of fields that the format does not have, and a datakey without events."""
        labels = {user_field.label for user_field in element.fields}
        for label in dict.fromkeys(label for label, _ in element.texts if label not in labels):
            self._say(f"there is no field {label[:40]!r} in the format, so that its texts are not used")
        if not element.codes:
            self._say("a datakey without an event applies to none")

    def _note(self, values: dict[str, str], known: frozenset[str], tag: str) -> None:
        for name in values:
            if name not in known:
                self._say(f"{name[:40]!r} in {tag} is not understood and was passed over")

    def _say(self, what: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(f"{self._name}: line {self.parser.CurrentLineNumber}: {what}")

    # ---- before 8.0 ----------------------------------------------------------------------------------------------

    def _class_of(self, values: dict[str, str], number: int) -> int:
        text = _first(values, ("class", "id", "code")).strip()
        try:
            own = int(text[:20], 0)
            return own if 0 <= own <= CLASS_MASK else -1
        except ValueError:
            name = (text or _first(values, _NAME_NAMES)).casefold()
            return int(WireClass.USER) if "us" in name[:2] else number if not name else -1

    def _event(self, values: dict[str, str], class_number: int) -> UserEvent:
        number = self._number(values, _NUMBER_NAMES)
        if not 0 <= number <= _LAST:
            raise self._fault(f"event {number}: numbers of events are 0 to {_LAST}")
        name, fields = _first(values, _NAME_NAMES), self._formatted(_first(values, ("sformat", "format")))
        event = UserEvent(number, name[:200], fields, class_number)
        if class_number >= 0 and self._is_in_datakey() and (before := self.events.get(event.code)) is not None:
            event = replace(before, name=event.name or before.name, fields=(*before.fields, *fields))
        return event

    def _formatted(self, text: str) -> tuple[UserField, ...]:
        """Return the fields of a format such as `%4u1d depth %1u0c name`."""
        fields = []
        for size, sign, count, base, label in _FORMAT.findall(text):
            is_text = (size in ("", "1") and not base and count == "0") or (not size and sign == "s" and not base)
            is_signed = sign in ("s", "S") or (not size and base in ("d", "i"))  # `%d` alone, as in C
            fields.append(
                self._checked(
                    label.strip(), int(size or (1 if is_text else 4)), is_signed,
                    "0" if is_text else count, base or ("c" if is_text else "d"),
                )
            )  # fmt: skip
        if text.strip() and not fields:
            raise self._fault(f"{text!r:.60} is not a format; write %4u1d label: bytes, u or s, count, d or x")
        return tuple(fields)

    def _field(self, element: _Element) -> UserField:
        values = element.values
        kind = _TYPE.fullmatch(_first(values, ("type",)).casefold())
        is_text = kind is not None and kind[3] == "string"
        size = int(kind[2]) // 8 if kind is not None and kind[2] else self._number(values, ("size", "width"), 1)
        is_signed = kind is not None and kind[2] is not None and not kind[1]
        is_signed |= _first(values, ("signed",)).casefold() in ("1", "true", "yes", "s", "signed")
        base = _first(values, ("base", "display", "format"))[:1] or ("c" if kind is not None and kind[3] else "d")
        user_field = self._checked(
            _first(values, _NAME_NAMES) or element.text.strip(), size, is_signed,
            _first(values, ("count",)) or ("0" if is_text else "1"), base
        )  # fmt: skip
        return replace(user_field, names=dict(element.names))

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

    def _number(self, values: dict[str, str], names: tuple[str, ...], default: int | None = None) -> int:
        text = _first(values, names).strip()
        if not text and default is not None:
            return default
        try:
            return int(text[:20], 0)
        except ValueError:
            raise self._fault(f"{names[0]}={text!r:.30} is not a number") from None


def _first(values: dict[str, str], names: tuple[str, ...]) -> str:
    """Return the value of the first attribute in `names` that is not empty; "" if there is none."""
    return next((values[name] for name in names if values.get(name)), "")
