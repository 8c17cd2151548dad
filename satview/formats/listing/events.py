"""One printed event taken apart: class, name, arguments, in the layouts of 6.x, 7.1 and 8.0.

Source: listing format, sections 3, 4 and 7. A list of arguments is tried as the catalogue has it for the release, as
the printers of 7.1 and 6.4 spell it, and in both widths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from satview.events import arguments, wire
from satview.events.catalogue import Catalogue, catalogue
from satview.events.layout import layout_of, plan_of
from satview.events.rows import lists
from satview.events.spec import EventSpec, Field, Release
from satview.events.wire import WireClass
from satview.events.words import encode
from satview.formats.listing.numbers import BARE_HEX, NUMBER, bare_value, is_wide, value_of
from satview.formats.listing.patterns import ListPattern, Words, compile_list, listed_text
from satview.formats.listing.sigevents import sigevent_of

FAILED = re.compile(rf"\s*ret_val\s*:\s*(?:-1|0x(?:f{{8}}){{1,2}}),?\s*errno\s*:\s*{NUMBER}")
_MINUS_ONE = 0xFFFFFFFF
_CLASS = re.compile(r"([A-Z][A-Z_]*|CLASS \d{1,2})\s*:\s*")
_LABEL = re.compile(r"(?:EVENT|state) \d{1,4}|[A-Za-z_][\w]*(?:/\d{1,3})?")
_RAW_WORD = re.compile(rf"\s+word \d+\s*:\s*{NUMBER}")
_RAW_NAME = re.compile(r"word \d+")
_FLAGS = re.compile(r"(\s+flags:(?:0x[0-9a-f]{1,8}|\d{1,10}))(?: [A-Z_]{1,32}){0,32}\s*$")  # bounded: may be hostile
_TIME = re.compile(rf"\s+msb\s*:\s*{NUMBER},?\s+lsb\(offset\)\s*:\s*{NUMBER}\s*")
_BUFFER = re.compile(rf"\s+sequence\s*[=:]\s*{NUMBER},?\s+num_events\s*[=:]\s*{NUMBER}\s*")
_BUFFER_END = re.compile(rf"\s+cookie1\s*[=:]\s*{BARE_HEX},?\s+cookie2\s*[=:]\s*{BARE_HEX}\s*")
_CONTROL_FORMS = (
    ("TIME", _TIME, wire.CONTROL_TIME),
    ("BUFFER", _BUFFER, wire.CONTROL_BUFFER),
    ("BUFFER_END", _BUFFER_END, wire.CONTROL_BUFFER_END),
)
_USER = re.compile(rf"EVENT:{NUMBER},?\s*(.*)", re.DOTALL)
_USER_WORD = re.compile(rf"(?:, )?\s*d\d+\s*:\s*{NUMBER}")
_USER_TEXT = re.compile(r'STR:"(.*)"\s*', re.DOTALL)
_USER_TEXT_AND_WORDS = re.compile(rf'STR:"(.*)",((?:\s+d\d+\s*:\s*(?:{NUMBER[1:-1]}))+)\s*', re.DOTALL)
_VECTOR = rf"{NUMBER}\s*(?:\((?:{NUMBER[1:-1]})\))?\s+"  # the number of an interrupt, twice
_INTERRUPT = re.compile(rf"{_VECTOR}(?:inkernel[=:]|IP:)\s*{NUMBER}\s*")
_HANDLER_ENTER = re.compile(rf"{_VECTOR}PID:\s*{NUMBER}\s+IP:\s*{NUMBER}\s+AREA:\s*{NUMBER}\s*")
_HANDLER_EXIT = re.compile(rf"{_VECTOR}SIGEVENT:(.*)", re.DOTALL)
_RAW_STRUCTURE = re.compile(rf"(?:{NUMBER[1:-1]})(?:\s+(?:{NUMBER[1:-1]}))*")
_DELIVER = re.compile(rf"INT_DELIVER\s+intr_id:\s*{NUMBER}\s*(?:\((?:{NUMBER[1:-1]})\))?\s*")
_INTERRUPTED = re.compile(r"(?:KER_)(\w+)/(\d{1,3})\s*")
_PROFILE = re.compile(rf"\s+ip\s*[=:]\s*{NUMBER},?\s+tid\s*[=:]\s*{NUMBER},?\s+pid\s*[=:]\s*{NUMBER}\s*")
_ARGUMENT = re.compile(r"\s*([^\s:=](?:[^:=\s]|[ ](?=[^\s:=])){0,60}?)\s*[:=]")  # a line that begins with an argument
Event = tuple[int, Words]  # code, payload words
_OLD_CLASSES = ("CONTROL", "PROCESS", "THREAD", "VTHREAD", "SYSTEM", "COMM")


class EventParser:
    """Takes printed events apart for one release and byte order; remembers the patterns it made.

    Attributes:
        notations: (class, event, argument) -> `%` template, of arguments that are in the listing in another notation
            than the printer of the release would use.
        proven: The same of arguments that are in the listing as the printer writes them.
    """

    def __init__(self, release: Release, byte_order: str) -> None:
        self.release = release
        self.byte_order = byte_order
        self._names: Catalogue = catalogue(release)
        self._patterns: dict[tuple[str, str, bool, bool], tuple[ListPattern, ...]] = {}
        self._argument_names: dict[tuple[str, str], frozenset[str]] = {}
        self.notations: dict[tuple[str, str, str], str] = {}
        self.proven: dict[tuple[str, str, str], str] = {}
        self._proven_by: dict[int, ListPattern] = {}  # by id; patterns live as long as the parser
        self._specials = {
            "CONTROL": self._control,
            "USREVENT": self._user,
            "INT_CALL": self._interrupted_call,
            "INT_ENTR": self._interrupt,
            "INT_EXIT": self._interrupt,
            "INT_HANDLER_ENTR": self._handler_enter,
            "INT_HANDLER_EXIT": self._handler_exit,
            "INTERRUPT": self._deliver,
        }

    def parse(self, text: str, body: Sequence[str] = ()) -> tuple[Event, int] | None:
        """Return an event and how many lines behind its first are not part of it; None if it cannot be read.

        Args:
            text: What is behind `CPU:00 ` on the event's line.
            body: The lines behind it, up to the next event: arguments, or a console's messages between them.
        """
        mine = self._own_lines(text, body)
        event = self._parse("\n".join((text, *mine)))
        if event is not None:
            return event, sum(1 for line in body if line.strip()) - sum(1 for line in mine if line.strip())
        if len(mine) < len(body) and (event := self._parse("\n".join((text, *body)))) is not None:
            return event, 0  # a text with line ends in it
        if body and (event := self._parse(text)) is not None:
            return event, sum(1 for line in body if line.strip())  # foreign lines that look like arguments
        return None

    def _own_lines(self, text: str, body: Sequence[str]) -> Sequence[str]:
        """Return the lines that begin with an argument that this kind of event has."""
        if not body or (head := _CLASS.match(text)) is None:
            return body
        label = _LABEL.match(text, head.end())
        key = head[1], label[0] if label else ""
        names = self._argument_names.get(key)
        if names is None:
            names = self._argument_names[key] = self._names_of(*key)
        found = [_ARGUMENT.match(line) for line in body]
        is_mine = [
            name is not None and (name[1] in names or _RAW_NAME.fullmatch(name[1]) is not None) for name in found
        ]
        # Blank lines between arguments belong to them, those behind the last do not matter.
        return [line for line, is_part in zip(body, is_mine, strict=True) if is_part or not line.strip()]

    def _names_of(self, class_name: str, label: str) -> frozenset[str]:
        if class_name in self._specials and class_name != "CONTROL":
            return frozenset(
                (
                    "IP",
                    "AREA",
                    "PID",
                    "SIGEVENT",
                    "inkernel",
                    "STR",
                    "intr_id",
                    *(f"d{number}" for number in range(128)),
                )
            )
        names = {"errno", "ret_val", "msb", "lsb(offset)", "sequence", "num_events", "cookie1", "cookie2"}
        for code in self._codes(class_name, label):
            for pair in self._lists(self._spec(class_name, label, code)):
                names |= {field.name for fields in pair for field in fields or ()}
        names |= {name.replace("_", " ") for name in names}  # the guide has blanks in some
        return frozenset(names | {name.removesuffix("[0]") for name in names} | {f"{name}[0]" for name in names})

    def _parse(self, text: str) -> Event | None:
        head = _CLASS.match(text)
        if head is None:
            return None
        class_name, body = head[1], text[head.end() :]
        self._is_new = text[15:17] == " :"  # the class column of 7.1 on
        special = self._specials.get(class_name)
        if special is not None and (event := special(class_name, body)) is not None:
            return event
        label = _LABEL.match(body)
        return self._listed(class_name, label[0], body[label.end() :]) if label else None

    def _event(self, code: int, values: dict[str, int]) -> Event:
        """Return an event with the payload of the list that the release has for its code."""
        fields = self._names.spec(code).wide
        if fields is None:  # the release of the listing is not the one that printed it
            fields = catalogue(Release.QNX_7).spec(code).wide or ()
        return code, encode(plan_of(fields), values, self.byte_order)

    def _listed(self, class_name: str, label: str, rest: str) -> Event | None:
        """Read an event whose arguments are `name:value` pairs."""
        name, _, number = label.partition("/")
        if class_name == "KER_EXIT" and (failed := FAILED.fullmatch(rest.rstrip())):
            code = self._kernel_code(name, number, wire.KER_EXIT_OFFSET)
            return None if code is None else (code, [_MINUS_ONE, value_of(failed[1]) & _MINUS_ONE])
        if (class_name, name) == ("SYSTEM", "PROFILE_64") and (found := _PROFILE.fullmatch(rest)):
            values = {name: value_of(text) for name, text in zip(("ip", "tid", "pid"), found.groups(), strict=True)}
            return self._event(wire.code(WireClass.SYSTEM, 20 | wire.KER_64BIT), values)
        if (class_name, name) == ("SYSTEM", "TIMER"):
            rest = _FLAGS.sub(r"\1", rest)
        # As the printer writes it, so that widths distinguish lists; only then with numbers and blanks of any kind.
        return (
            self._by_pattern(class_name, label, rest, is_lenient=False)
            or self._raw_words(class_name, label, rest)
            or self._by_pattern(class_name, label, rest, is_lenient=True)
        )

    def _by_pattern(self, class_name: str, label: str, rest: str, *, is_lenient: bool) -> Event | None:
        key = class_name, label, self._is_new, is_lenient
        patterns = self._patterns.get(key)
        if patterns is None:
            patterns = self._patterns[key] = tuple(self._compile(class_name, label, is_lenient=is_lenient))
        is_long = rest.lstrip(" ").startswith("\n")  # later line ends are part of a text
        second: Event | None = None
        likely: ListPattern | None = None
        for pattern in patterns:
            words = pattern.words(rest, self.byte_order)
            if words is None:
                continue
            if len(words) > 2 if is_long else pattern.is_whole and len(words) <= 2:
                self._learn(class_name, pattern, rest, is_lenient=is_lenient)
                return pattern.code, words
            is_likely = is_long or pattern.is_whole or len(words) > 2 or (pattern.has_text and len(words) == 2)
            if second is None and is_likely:
                second, likely = (pattern.code, words), pattern
        if likely is not None:
            self._learn(class_name, likely, rest, is_lenient=is_lenient)
        if second is not None and is_long and len(second[1]) <= 2:
            return second[0], (second[1] + [0, 0, 0])[:4]  # printed as a long event: it had more words than names
        return second

    def _learn(self, class_name: str, pattern: ListPattern, rest: str, *, is_lenient: bool) -> None:
        """Remember how the numbers of an event are printed; two widths of one argument make it one without zeros."""
        if not is_lenient and id(pattern) in self._proven_by:
            return  # one event of its kind proves the notation
        name = self._names.name(pattern.code)
        if not is_lenient:
            self._proven_by[id(pattern)] = pattern
            self.proven.update(
                {(class_name, name, argument): template for argument, template in pattern.notations(rest)}
            )
            return
        for argument, template in pattern.notations(rest):
            known = self.notations.setdefault((class_name, name, argument), template)
            if known not in (template, "0x%x") and template.startswith("0x"):
                self.notations[class_name, name, argument] = "0x%x"

    def _compile(self, class_name: str, label: str, *, is_lenient: bool) -> Iterator[ListPattern]:
        """Yield the patterns of every list that an event of this name may have, whole lists before others."""
        specs = [self._spec(class_name, label, code) for code in self._codes(class_name, label)]
        seen: set[tuple[int, tuple[Field, ...], bool]] = set()
        for is_whole in (True, False):
            for spec in specs:
                for fast, wide in self._lists(spec):
                    for fields in (fast, wide) if is_whole else (wide,):
                        key = (spec.code, fields or (), is_whole)
                        if fields and fields[0].words and key not in seen:
                            seen.add(key)
                            yield compile_list(
                                fields,
                                spec.code,
                                is_whole=is_whole,
                                has_short_hex=not self._is_new,
                                is_lenient=is_lenient,
                            )

    def _spec(self, class_name: str, label: str, code: int) -> EventSpec:
        """Return the row of a code; a number that the release does not know counts with the lists of the name."""
        spec = self._names.spec(code)
        known = self._names.find(f"{class_name}/{label.partition('/')[0]}")
        return spec if spec.is_known or not known else replace(self._names.spec(known[0]), code=code)

    def _lists(self, spec: EventSpec) -> Iterator[tuple[tuple[Field, ...] | None, tuple[Field, ...] | None]]:
        yield arguments.listing_lists(spec, self.release)
        yield spec.fast, spec.wide
        if not spec.is_64bit:
            yield arguments.old_lists(spec.name, spec.class_name)
        if spec.class_name in _OLD_CLASSES:  # the guide spells some arguments unlike any printer seen
            yield from self._older(spec)

    def _older(self, spec: EventSpec) -> Iterator[tuple[tuple[Field, ...] | None, tuple[Field, ...] | None]]:
        known = catalogue(Release.QNX_6).find(f"{spec.class_name}/{spec.name}")
        if len(known) == 1:
            old = catalogue(Release.QNX_6).spec(known[0])
            yield old.fast, old.wide
        elif spec.class_name == "THREAD":
            yield lists("thread", "lists_6")["*"]

    def _codes(self, class_name: str, label: str) -> tuple[int, ...]:
        name, _, number = label.partition("/")
        offset = {"KER_CALL": 0, "KER_EXIT": wire.KER_EXIT_OFFSET}.get(class_name)
        if offset is not None:
            code = self._kernel_code(name, number, offset)
            return () if code is None else (code, code | wire.KER_64BIT)
        if label.startswith(("EVENT ", "state ")):
            event = int(label.split()[1])
            return (
                tuple(
                    code
                    for code in range(event, wire.CODE_COUNT, wire.EVENT_MASK + 1)
                    if self._names.class_name(code) == class_name
                )[:1]
                if event <= wire.EVENT_MASK
                else ()
            )
        # A virtual thread is printed with the state name of threads.
        known = f"V{name}" if class_name == "VTHREAD" and not name.startswith("V") else name
        return self._names.find(f"{class_name}/{known}") or self._by_label(class_name, name)

    def _by_label(self, class_name: str, label: str) -> tuple[int, ...]:
        return tuple(
            code
            for code in self._names.codes()
            if self._names.class_name(code) == class_name and self._names.spec(code).label == label
        )

    def _kernel_code(self, name: str, number: str, offset: int) -> int | None:
        """Return the code of a kernel call: the number counts, for some are labelled unlike their name."""
        call = int(number) if number else self._names.kernel_call_number(name)
        return None if call is None or call > 127 else wire.code(WireClass.KER_CALL, call + offset)

    def _raw_words(self, class_name: str, label: str, rest: str) -> Event | None:
        """Read the form of events whose list is not known: `word 0:0x0000000a word 1:...`."""
        words = [value_of(word) & _MINUS_ONE for word in _RAW_WORD.findall(rest)]
        codes = (*self._codes(class_name, label), *self._by_label(class_name, label))
        if not words or not codes or _RAW_WORD.sub("", rest).strip():
            return None
        # It was printed so because no list fits: of several codes of that name it is the one of which this is true.
        unlisted = (code for code in codes if layout_of(self.release, code, len(words)).form == "raw")
        return next(unlisted, codes[0]), words

    def _control(self, _class_name: str, body: str) -> Event | None:
        label = _LABEL.match(body)
        rest = body[label.end() :] if label else ""
        for name, pattern, code in _CONTROL_FORMS:
            if label and label[0] == name and (found := pattern.fullmatch(rest)):
                read = bare_value if name == "BUFFER_END" else value_of
                return code, [read(found[1]) & _MINUS_ONE, read(found[2]) & _MINUS_ONE]
        return None

    def _user(self, _class_name: str, body: str) -> Event | None:
        found = _USER.fullmatch(body)
        if found is None or not 0 <= value_of(found[1]) <= wire.EVENT_MASK:
            return None
        code, rest = wire.code(WireClass.USER, value_of(found[1])), found[2]
        if both := _USER_TEXT_AND_WORDS.fullmatch(rest):
            return code, [value_of(word) & _MINUS_ONE for word in _USER_WORD.findall(both[2])]
        if text := _USER_TEXT.fullmatch(rest):
            words = listed_text(text[1], self.byte_order)
            return code, words + [0] * (4 - len(words))
        words = [value_of(word) & _MINUS_ONE for word in _USER_WORD.findall(rest)]
        return (code, words) if words and not _USER_WORD.sub("", rest).strip() else None

    def _interrupted_call(self, _class_name: str, body: str) -> Event | None:
        found = _INTERRUPTED.fullmatch(body)
        code = self._kernel_code(found[1], found[2], wire.KER_INT_OFFSET) if found else None
        return None if code is None else (code, [0, 0])

    def _interrupt(self, class_name: str, body: str) -> Event | None:
        found = _INTERRUPT.fullmatch(body)
        if found is None:
            return None
        number, state = value_of(found[1]), value_of(found[2])
        if class_name == "INT_EXIT":
            values = {"interrupt_number": number, "inkernel": state, "kernel_flag": state}
            return self._event(wire.code(WireClass.INT, 2), values)
        code = wire.code(WireClass.INT, 5 if is_wide(found[2]) else 1)
        return self._event(code, {"interrupt_number": number, "ip": state})

    def _handler_enter(self, _class_name: str, body: str) -> Event | None:
        found = _HANDLER_ENTER.fullmatch(body)
        if found is None:
            return None
        code = wire.code(WireClass.INT, 6 if is_wide(found[3]) or is_wide(found[4]) else 3)
        return self._event(
            code,
            {
                "pid": value_of(found[2]),
                "interrupt_number": value_of(found[1]),
                "ip": value_of(found[3]),
                "area": value_of(found[4]),
            },
        )

    def _handler_exit(self, _class_name: str, body: str) -> Event | None:
        found = _HANDLER_EXIT.fullmatch(body)
        if found is None:
            return None
        code, number = wire.code(WireClass.INT, 4), value_of(found[1]) & _MINUS_ONE
        if raw := _RAW_STRUCTURE.fullmatch(found[2].strip()):
            return code, [number, *(value_of(word) & _MINUS_ONE for word in raw[0].split())]
        structure = sigevent_of(found[2].strip(), self.byte_order)
        return None if structure is None else (code, [number, *structure, 0])

    def _deliver(self, _class_name: str, body: str) -> Event | None:
        found = _DELIVER.fullmatch(body)
        return (wire.code(WireClass.INT, 7), [value_of(found[1]) & _MINUS_ONE, 0]) if found else None
