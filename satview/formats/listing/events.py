"""Parses a printed event: class, name, arguments, in the layouts of 6.x, 7.1 and 8.0.

Source: listing format, sections 3, 4 and 7. The argument lists to match are those of the catalogue of the release, with
the spellings of the printers of 7.1 and 6.4, in both widths. If no list matches, the arguments of the line become a new
layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

from satview.events import naming, wire
from satview.events.catalogue import ListedCatalogue, catalogue, listed_catalogue
from satview.events.layout import PayloadPart, layout_of, learn_list, one_spelling, plan_of, printed_layout
from satview.events.modes import flag_names
from satview.events.rows import lists
from satview.events.spec import EventSpec, Field, Release, Show
from satview.events.variants import BY_COUNT, MINUS_ONE, encode, sigevent_words, word_bytes
from satview.events.wire import WireClass
from satview.formats.kev.payloads import plain_text, vendor_text
from satview.formats.listing.arguments import (
    BARE_HEX,
    NUMBER,
    OTHER,
    ListPattern,
    Placed,
    Value,
    Words,
    bare_value,
    compile_list,
    is_argument_line,
    is_wide,
    listed_text,
    placed,
    printed_as,
    value_of,
    values_of,
)

# The text of a sigevent structure of 6.x. Source: listing format, section 4.


_SIGEVENT = {
    "SIGNAL": re.compile(NUMBER),
    "SIGNAL_CODE": re.compile(rf"{NUMBER} {NUMBER}:{NUMBER}"),
    "SIGNAL_THREAD": re.compile(rf"{NUMBER} {NUMBER}:{NUMBER}"),
    "PULSE": re.compile(rf"{NUMBER}:{NUMBER} {NUMBER}:{NUMBER}"),
    "THREAD": re.compile(f"{BARE_HEX}:{BARE_HEX}"),
}


def sigevent_of(text: str, byte_order: str) -> Words | None:
    """Return the four words of a sigevent of 6.x from its text; None if the text is not a sigevent."""
    critical = 0x100 if text.endswith(" CRITICAL") else 0
    kind, _, rest = text.removesuffix(" CRITICAL").partition(" ")
    if unknown := re.fullmatch(r"UNKNOWN\((?:0x)?([0-9a-f]{1,8})\)", kind):
        return [int(unknown[1], 16), 0, 0, 0]
    notify = next((value for value, name in flag_names("sigev_notify").items() if name == kind), None)
    if notify is None and kind != "":
        return None
    pattern = _SIGEVENT.get(kind)
    values = pattern.fullmatch(rest) if pattern else None
    if pattern and values is None:
        return None
    number = value = code = priority = 0
    if kind == "PULSE" and values:
        number, priority, code, value = (value_of(text) for text in values.groups())
    elif kind == "THREAD" and values:
        code, value = (bare_value(text) for text in values.groups())
    elif values:
        number = value_of(values[1])
        code, value = (value_of(values[2]), value_of(values[3])) if kind != "SIGNAL" else (0, 0)
    return sigevent_words((notify or 0) | critical, number, value, code, priority, byte_order)


FAILED = re.compile(rf"\s*ret_val\s*:\s*(?:-1|0x(?:f{{8}}){{1,2}}),?\s*errno\s*:\s*{NUMBER}")
_CLASS = re.compile(r"([A-Z][A-Z0-9_]*|CLASS \d{1,2})\s*:\s*")
_LABEL = re.compile(r"(?:EVENT|state) \d{1,4}|[A-Za-z_]\w*\??(?:/\d{1,3})?")
_RAW_WORD = re.compile(rf"\s+word \d+\s*:\s*{NUMBER}")
_RAW_NAME = re.compile(r"word \d+")
_FLAGS = re.compile(r"(\s+flags:(?:0x[0-9a-f]{1,8}|\d{1,10}))(?: [A-Z_]{1,32}){0,32}\s*$")  # limited repetitions
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
_USER_HEAD = re.compile(rf"EVENT[ :]{NUMBER},?")
_VECTOR_HEAD = re.compile(rf"{NUMBER}\s*(?:\((?:{NUMBER[1:-1]})\))?")
_VECTOR_CODES = {"INT_ENTR": (1, 5), "INT_EXIT": (2,), "INT_HANDLER_ENTR": (3, 6), "INT_HANDLER_EXIT": (4,)}
_RESPELLED = {"IP": "ip", "AREA": "area", "PID": "pid"}
_PRINTED_TIME = (Field("msb", 1, Show.HEX), Field("lsb(offset)", 1, Show.HEX))  # spelling of all printers
_NEEDED = {"TIME": ("msb", "lsb(offset)"), "BUFFER": ("sequence", "num_events")}  # arguments that the reader uses
_NO_CLASS = "OTHER"  # class of lines that do not begin with a class
_TEXT_WORD = 2  # first word of arguments that are stored as one text; the words before it are 0, no pid or tid
Event = tuple[int, Words]  # code, payload words
_OLD_CLASSES = ("CONTROL", "PROCESS", "THREAD", "VTHREAD", "SYSTEM", "COMM")


class LineFit(IntEnum):
    """How well the arguments of a line match a row of the catalogue."""

    WHOLE = 0
    PART = 1  # some arguments match
    RAW = 2  # no argument matches, or the event is unknown


@dataclass(frozen=True, slots=True)
class Parsed:
    """A printed event.

    Attributes:
        code: Class and event.
        words: Payload.
        foreign: Number of lines after the first that do not belong to the event.
        fit: How well the line matches a row of the event tables.
        variant: Variant of the payload layout if the layout comes from the line, see `layout.learn_list`; else 0.
        names: Name and notation of each argument, if the line matches no row of the event tables.
    """

    code: int
    words: Words
    foreign: int = 0
    fit: LineFit = LineFit.WHOLE
    variant: int = BY_COUNT
    names: tuple[tuple[str, str], ...] = ()


@cache
def _call_names() -> frozenset[str]:
    """Return all names and labels of kernel calls in any release."""
    names: set[str] = set()
    for release in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8):
        book = catalogue(release)
        for code in book.codes():
            if wire.class_of(code) == WireClass.KER_CALL:
                spec = book.spec(code)
                names |= {spec.name, spec.label}
    return frozenset(names)


class EventParser:
    """Parses printed events of one release and byte order; caches the compiled patterns.

    Attributes:
        notations: (class, event, argument) -> `%` template, for arguments in another notation than that of the
            release's printer.
        proven: (class, event, argument) -> `%` template, for arguments in the printer's notation.
    """

    def __init__(self, release: Release, byte_order: str) -> None:
        self.release = release
        self.byte_order = byte_order
        self._names: ListedCatalogue = listed_catalogue(release)
        self._patterns: dict[tuple[str, str, bool, bool], tuple[ListPattern, ...]] = {}
        self._argument_names: dict[tuple[str, str], frozenset[str]] = {}
        self.notations: dict[tuple[str, str, str], str] = {}
        self.proven: dict[tuple[str, str, str], str] = {}
        self._labels: dict[tuple[str, str], tuple[int, ...]] = {}
        self._rows: dict[tuple[int, bool], tuple[tuple[Field, ...], ...]] = {}
        self._whole: dict[tuple[int, int, int, bool], bool] = {}
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

    def parse(self, text: str, body: Sequence[str] = ()) -> Parsed:
        """Return the event of a line, even if the line matches no row of the catalogue.

        Args:
            text: Text after `CPU:00 ` on the event's line.
            body: The lines from there to the next event: arguments, and messages of a console between them.
        """
        own_lines = self._own_lines(text, body)
        foreign = sum(1 for line in body if line.strip()) - sum(1 for line in own_lines if line.strip())
        if (event := self._parse("\n".join((text, *own_lines)))) is not None:
            return Parsed(*event, foreign)
        if len(own_lines) < len(body) and (event := self._parse("\n".join((text, *body)))) is not None:
            return Parsed(*event)  # an argument is a text that contains line ends
        is_listed = any(is_argument_line(line) for line in own_lines)
        if body and not is_listed and (event := self._parse(text)) is not None:
            return Parsed(*event, sum(1 for line in body if line.strip()))  # foreign lines that look like arguments
        return replace(self._unlisted(text, own_lines), foreign=foreign)

    def fits(self, text: str, body: Sequence[str] = ()) -> bool:
        """Return whether an event, as for `parse`, matches a row; the state of the parser does not change."""
        own_lines = self._own_lines(text, body)
        if self._parse("\n".join((text, *own_lines))) is not None:
            return True
        head = _CLASS.match(text)
        label = _LABEL.match(text, head.end()) if head else None
        codes = self._codes(head[1], label[0]) if head and label else ()
        if not head or not label or not codes:
            return False
        values = values_of("\n".join((text[label.end() :], *own_lines)))
        return self._placed(head[1], codes, values, is_long=bool(own_lines))[0].is_whole

    def names_of(self, code: int) -> tuple[str, str]:
        """Return class and event of a code as listings print them."""
        return self._names.class_name(code), self._names.name(code)

    def _unlisted(self, text: str, body: Sequence[str]) -> Parsed:
        """Return the event of a line that matches no row, with the arguments of the line."""
        head = _CLASS.match(text)
        class_name, rest = (head[1], text[head.end() :]) if head else (_NO_CLASS, text)
        if head:
            codes, values, rest = self._begun(class_name, rest)
            values += values_of("\n".join((rest, *body)))
        else:
            codes = (self._names.learn(class_name, "EVENT") or wire.code(wire.CLASS_MASK, 0),)
            values = [Value(OTHER, text="\n".join((rest, *body)).strip())]
        names = {value.name for value in values}
        if class_name == "CONTROL":
            name = self._names.name(codes[0])
            if not names.issuperset(_NEEDED.get(name, ())):
                codes = (self._names.learn(class_name, f"{name.rstrip('?')}?") or codes[0],)
        best, code = self._placed(class_name, codes, values, is_long=any(line.strip() for line in body))
        words = best.words + [0] * max(0, 2 - len(best.words))
        variant = learn_list(self.release, code, best.parts, len(words))
        if variant is None:
            shown = " ".join("\n".join((rest, *body)).split())
            words = [0] * _TEXT_WORD + listed_text(shown, self.byte_order)
            words += [0] * (len(words) % 2)
            variant = learn_list(self.release, code, (PayloadPart(OTHER, _TEXT_WORD, 0, Show.STRING),), len(words))
        is_known = (class_name, self._names.name(code)) not in self._names.learned
        fit = LineFit.WHOLE if best.is_whole else LineFit.PART if best.matched else LineFit.RAW
        fit = fit if is_known else LineFit.RAW
        return Parsed(code, words, 0, fit, variant or BY_COUNT, tuple((value.name, value.kind) for value in values))

    def _placed(
        self, class_name: str, codes: Sequence[int], values: Sequence[Value], *, is_long: bool
    ) -> tuple[Placed, int]:
        """Return the payload by the argument list that fits best, and its code; `is_long` = more than two words."""
        best, code = Placed((), [], -1), codes[0]
        for candidate in codes:
            if (rows := self._rows.get((candidate, is_long))) is None:
                rows = self._rows[candidate, is_long] = self._rows_of(class_name, candidate, is_long=is_long)
            payload = placed(values, rows, self.byte_order, is_long=is_long)
            if (payload.is_whole, payload.matched) > (best.is_whole, best.matched):
                best, code = payload, candidate
        return best, code

    def _rows_of(self, class_name: str, code: int, *, is_long: bool) -> tuple[tuple[Field, ...], ...]:
        """Return the distinct argument lists that an event may have, most likely first; `is_long` as for `_placed`."""
        spec = self._spec(class_name, "", code)
        known = (*self._lists(spec), naming.seen_lists(spec, self.release))
        rows = [row for pair in known for row in (pair[::-1] if is_long else pair) if row]
        return tuple(dict.fromkeys([_PRINTED_TIME, *rows] if code == wire.CONTROL_TIME else rows))

    def _begun(self, class_name: str, body: str) -> tuple[tuple[int, ...], list[Value], str]:
        """Parse the start of a line; return possible codes, arguments in the start, and the rest of the line."""
        if class_name == "USREVENT" and (user := _USER_HEAD.match(body)):
            number = value_of(user[1])
            if 0 <= number <= wire.EVENT_MASK:
                return (wire.code(WireClass.USER, number),), [], body[user.end() :]
        if (events := _VECTOR_CODES.get(class_name)) and (vector := _VECTOR_HEAD.match(body)):
            interrupt = Value("interrupt_number", value_of(vector[1]), printed_as(vector[1]))
            rest = re.sub(r"\b(?:IP|AREA|PID)(?=[:=])", lambda name: _RESPELLED[name[0]], body[vector.end() :])
            return tuple(wire.code(WireClass.INT, event) for event in events), [interrupt], rest
        if class_name == "INT_CALL" and (call := re.match(r"KER_(\w+)/(\d{1,3})", body)):
            code = self._kernel_code(call[1], call[2], wire.KER_INT_OFFSET)
            if code is not None:
                return (code,), [], body[call.end() :]
        label = _LABEL.match(body)
        printed = label[0] if label and body[label.end() : label.end() + 1] not in (":", "=") else ""
        rest = body[len(printed) :]
        if codes := self._codes(class_name, printed):
            return codes, [], rest
        name, _, number_text = printed.partition("/")
        code = self._names.learn(class_name, name or "EVENT", int(number_text) if number_text else None)
        if code is not None:
            return (code,), [], rest
        other = self._names.learn(_NO_CLASS, "EVENT")  # in case the table of learned events is full
        return (other or wire.code(wire.CLASS_MASK, 0),), [Value("event", text=f"{class_name}:{printed}")], rest

    def _own_lines(self, text: str, body: Sequence[str]) -> Sequence[str]:
        """Return the lines of `body` that begin with an argument of the event in `text`, and blank lines."""
        if not body or (head := _CLASS.match(text)) is None:
            return body
        label = _LABEL.match(text, head.end())
        key = head[1], label[0] if label else ""
        names = self._argument_names.get(key)
        if names is None:
            names = self._argument_names[key] = self._names_of(*key)
        argument_of_line = [_ARGUMENT.match(line) for line in body]
        is_own = [
            argument is not None
            and (argument[1] in names or _RAW_NAME.fullmatch(argument[1]) is not None or is_argument_line(line))
            for argument, line in zip(argument_of_line, body, strict=True)
        ]
        # Blank lines between arguments belong to the event, those after the last do not.
        return [line for line, is_part in zip(body, is_own, strict=True) if is_part or not line.strip()]

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
        names |= {name.replace("_", " ") for name in names}  # the guide spells some with blanks
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
        """Return an event, with a payload made from values by the release's argument list for the code."""
        fields = self._names.spec(code).wide
        if fields is None:  # the release of the listing is not the one that printed it
            fields = catalogue(Release.QNX_7).spec(code).wide or ()
        return code, encode(plan_of(fields), values, self.byte_order)

    def _listed(self, class_name: str, label: str, rest: str) -> Event | None:
        """Return an event whose arguments are `name:value` pairs; None if they match no argument list of the event."""
        name, _, number = label.partition("/")
        if class_name == "KER_EXIT" and (failed := FAILED.fullmatch(rest.rstrip())):
            code = self._kernel_code(name, number, wire.KER_EXIT_OFFSET)
            return None if code is None else (code, [MINUS_ONE, value_of(failed[1]) & MINUS_ONE])
        if (class_name, name) == ("SYSTEM", "PROFILE_64") and (profile := _PROFILE.fullmatch(rest)):
            values = {name: value_of(text) for name, text in zip(("ip", "tid", "pid"), profile.groups(), strict=True)}
            return self._event(wire.code(WireClass.SYSTEM, 20 | wire.KER_64BIT), values)
        if (class_name, name) == ("SYSTEM", "TIMER"):
            rest = _FLAGS.sub(r"\1", rest)
        # First the printer's notation, whose widths distinguish lists; then numbers and blanks of any kind.
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
        short: tuple[ListPattern, Words] | None = None
        for pattern in patterns:
            words = pattern.words(rest, self.byte_order)
            if words is None or not self._shows_all(pattern, rest, len(words), is_long=is_long):
                continue
            if len(words) > 2 or not is_long:
                self._learn(class_name, pattern, rest, is_lenient=is_lenient)
                return pattern.code, words
            short = short or (pattern, words)
        if short is None:
            return None
        pattern, words = short
        self._learn(class_name, pattern, rest, is_lenient=is_lenient)
        return pattern.code, [*words, 0, 0, 0][:4]  # it was printed as a long event, so it had more words than the list

    def _shows_all(self, pattern: ListPattern, rest: str, count: int, *, is_long: bool) -> bool:
        """Return whether a payload of `count` words has exactly the arguments of a line that matches a pattern.

        The printers stop at the end of the payload, so a line with fewer arguments than the list may be complete. If it
        is not, the missing arguments must not be read as 0.
        """
        shown = pattern.shown(rest)
        if len(shown) == len(pattern.spellings):
            return True
        key = id(pattern), len(shown), count, is_long
        if (known := self._whole.get(key)) is None:
            padded = max(4 if is_long else 2, count + count % 2)
            names = [one_spelling(name) for name in shown]
            layouts = (
                layout_of(self.release, pattern.code, padded),
                printed_layout(self.release, pattern.code, padded),
            )
            known = self._whole[key] = any(
                [one_spelling(part.name) for part in layout.parts if part.show is not Show.MSG_MORE] == names
                for layout in layouts
                if layout is not None
            )
        return known

    def _learn(self, class_name: str, pattern: ListPattern, rest: str, *, is_lenient: bool) -> None:
        """Record the notation of an event's numbers; `is_lenient` = it may differ from that of the release's printer.

        An argument printed in several widths has no leading zeros.
        """
        if not is_lenient and id(pattern) in self._proven_by:
            return  # already recorded for an earlier event
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
        """Yield the patterns of all lists of an event, those for whole lines first; `is_lenient` = in any notation."""
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
        """Return the row of a code; a code unknown to the release gets the row of the event with the printed name."""
        spec = self._names.spec(code)
        known = self._names.find(f"{class_name}/{label.partition('/')[0]}")
        return spec if spec.is_known or not known else replace(self._names.spec(known[0]), code=code)

    def _lists(self, spec: EventSpec) -> Iterator[tuple[tuple[Field, ...] | None, tuple[Field, ...] | None]]:
        yield naming.listing_lists(spec, self.release)
        yield spec.fast, spec.wide
        if not spec.is_64bit:
            yield naming.old_lists(spec.name, spec.class_name)
        if spec.class_name in _OLD_CLASSES:  # some spellings of arguments in the guide are not those of any printer
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
        # States of virtual threads are printed with the names of thread states.
        known = f"V{name}" if class_name == "VTHREAD" and not name.startswith("V") else name
        return self._names.find(f"{class_name}/{known}") or self._by_label(class_name, name)

    def _by_label(self, class_name: str, label: str) -> tuple[int, ...]:
        if not self._labels:
            for code in self._names.codes():
                key = self._names.class_name(code), self._names.spec(code).label
                self._labels[key] = (*self._labels.get(key, ()), code)
        return self._labels.get((class_name, label), ()) if label else ()  # learned events have none

    def _kernel_code(self, name: str, number: str, offset: int) -> int | None:
        """Return the code of a call by its number, as some are printed under other names, else by its name, or None."""
        if number and not name.startswith("EVENT") and name not in _call_names():
            return self._names.learned_call(name, offset)
        call = int(number) if number else self._names.kernel_call_number(name)
        return None if call is None or call > 127 else wire.code(WireClass.KER_CALL, call + offset)

    def _raw_words(self, class_name: str, label: str, rest: str) -> Event | None:
        """Return the event of a line with raw words, `word 0:0x0000000a word 1:...`; None for other lines."""
        words = [value_of(word) & MINUS_ONE for word in _RAW_WORD.findall(rest)]
        if not words:
            return None
        codes = (*self._codes(class_name, label), *self._by_label(class_name, label))
        if not codes or _RAW_WORD.sub("", rest).strip():
            return None
        # Printers use this form if no list fits: of several codes with the name, choose one for which no list fits.
        unlisted = (code for code in codes if layout_of(self.release, code, len(words)).form == "raw")
        return next(unlisted, codes[0]), words

    def _control(self, _class_name: str, body: str) -> Event | None:
        label = _LABEL.match(body)
        rest = body[label.end() :] if label else ""
        for name, pattern, code in _CONTROL_FORMS:
            if label and label[0] == name and (match := pattern.fullmatch(rest)):
                read = bare_value if name == "BUFFER_END" else value_of
                return code, [read(match[1]) & MINUS_ONE, read(match[2]) & MINUS_ONE]
        return None

    def _user(self, _class_name: str, body: str) -> Event | None:
        match = _USER.fullmatch(body)
        if match is None or not 0 <= value_of(match[1]) <= wire.EVENT_MASK:
            return None
        code, rest = wire.code(WireClass.USER, value_of(match[1])), match[2]
        if text_and_words := _USER_TEXT_AND_WORDS.fullmatch(rest):
            words = [value_of(word) & MINUS_ONE for word in _USER_WORD.findall(text_and_words[2])]
            # If the text differs from that of the words, both are kept as arguments of a line that matches no row.
            raw = word_bytes(words, self.byte_order)
            return (code, words) if text_and_words[1] in ("", vendor_text(raw), plain_text(raw)) else None
        if text := _USER_TEXT.fullmatch(rest):
            words = listed_text(text[1], self.byte_order)
            return code, words + [0] * (4 - len(words))
        words = [value_of(word) & MINUS_ONE for word in _USER_WORD.findall(rest)]
        return (code, words) if len(words) > 1 and not _USER_WORD.sub("", rest).strip() else None

    def _interrupted_call(self, _class_name: str, body: str) -> Event | None:
        match = _INTERRUPTED.fullmatch(body)
        code = self._kernel_code(match[1], match[2], wire.KER_INT_OFFSET) if match else None
        return None if code is None else (code, [0, 0])

    def _interrupt(self, class_name: str, body: str) -> Event | None:
        match = _INTERRUPT.fullmatch(body)
        if match is None:
            return None
        number, state = value_of(match[1]), value_of(match[2])
        if class_name == "INT_EXIT":
            values = {"interrupt_number": number, "inkernel": state, "kernel_flag": state}
            return self._event(wire.code(WireClass.INT, 2), values)
        code = wire.code(WireClass.INT, 5 if is_wide(match[2]) else 1)
        return self._event(code, {"interrupt_number": number, "ip": state})

    def _handler_enter(self, _class_name: str, body: str) -> Event | None:
        match = _HANDLER_ENTER.fullmatch(body)
        if match is None:
            return None
        code = wire.code(WireClass.INT, 6 if is_wide(match[3]) or is_wide(match[4]) else 3)
        return self._event(
            code,
            {
                "pid": value_of(match[2]),
                "interrupt_number": value_of(match[1]),
                "ip": value_of(match[3]),
                "area": value_of(match[4]),
            },
        )

    def _handler_exit(self, _class_name: str, body: str) -> Event | None:
        match = _HANDLER_EXIT.fullmatch(body)
        if match is None:
            return None
        code, number = wire.code(WireClass.INT, 4), value_of(match[1]) & MINUS_ONE
        if raw := _RAW_STRUCTURE.fullmatch(match[2].strip()):
            return code, [number, *(value_of(word) & MINUS_ONE for word in raw[0].split())]
        structure = sigevent_of(match[2].strip(), self.byte_order)
        return None if structure is None else (code, [number, *structure, 0])

    def _deliver(self, _class_name: str, body: str) -> Event | None:
        match = _DELIVER.fullmatch(body)
        return (wire.code(WireClass.INT, 7), [value_of(match[1]) & MINUS_ONE, 0]) if match else None
