"""Translates conditions to C expressions over an `event_data_t`, with the constant tables that the expressions use.

A C expression has the same result as the condition in a view, also for unknown values. Parts of a condition that need
values unknown to event handlers are listed in `CCondition.unwritten`, and the program then does not compile.

Patterns become patterns for the target's fnmatch() and regcomp(), if these can match the same texts as RE2 in views.
These functions compare bytes: the program passes texts in which every character beyond ASCII is replaced by DEL
(`plain` in handlers.c), and no pattern written here contains DEL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import variants
from satview.events.layout import USER_TEXT, PayloadPart, argument_part, codes_of_argument, described_part, text_offset
from satview.events.spec import Release
from satview.events.variants import is_user
from satview.filters.expressions import nodes
from satview.filters.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    SET,
    Pattern,
    compile_source,
    glob_parts,
    wrapped,
)
from satview.filters.expressions.reach import has_argument
from satview.filters.expressions.semantics import FIELDS, CodeTest, Domain, FieldKind
from satview.filters.rules.switches import C

_DEL: Final = 0x7F
_LETTERS_BEYOND_ASCII: Final = (0x17F, 0x212A)  # long s, Kelvin sign: s and k where case is ignored, as in RE2
_MOST_REPEATS: Final = 255  # RE_DUP_MAX of POSIX
_MOST_STARS: Final = 3  # in a handler, which runs in the kernel: fnmatch() may try all lengths for each star

_PART: Final = re.compile(
    rf"(?P<one>{SET}|\\[dDwWsSafnrtv]|\\[^\w]|[^\\()|+*?{{^$]|{{(?!\d+(?:,\d*)?}}))"
    r"|(?P<repeat>[+*?]|{\d+(?:,\d*)?})|(?P<anchor>[\^$]|\\[Az])|(?P<open>\((?:\?:|(?!\?)))|(?P<bar>\|)|(?P<close>\))"
    r"|(?P<other>\(\?.{1,2}|\\.)",
    re.DOTALL,
)
_IN_POSIX: Final = {"(?:": "(", "\\A": "^", "\\z": "$"}


class NotInPosixError(Exception):
    """fnmatch() and regcomp() cannot match the same texts as a pattern does in a view; the message gives the reason."""


def posix_pattern(pattern: Pattern, is_in_handler: bool) -> str:
    """Return a pattern in POSIX syntax: a glob for fnmatch(), a regular expression for regcomp().

    fnmatch() is called with FNM_NOESCAPE, regcomp() with REG_EXTENDED, and with REG_ICASE if case is ignored. An event
    handler is limited to globs: it runs like an interrupt handler, and regexec() allocates memory. Raises
    NotInPosixError if no such pattern matches the same texts.
    """
    if not pattern.is_glob:
        if is_in_handler:
            raise NotInPosixError("an event handler must not call regexec(), only a glob can be tested there")
        return _extended_regex(pattern)
    parts = [part if part in "*?" else _one_of(part, False, "!") for part in glob_parts(pattern.text)]
    if is_in_handler and parts.count("*") > _MOST_STARS:
        raise NotInPosixError(f"a glob with more than {_MOST_STARS} * may take too long in an event handler")
    return "".join(parts)


def _extended_regex(pattern: Pattern) -> str:
    parts: list[str] = []
    before = "open"
    for part in _PART.finditer(pattern.text):
        kind, text = str(part.lastgroup), part.group()
        if kind == "other":
            raise NotInPosixError(f"POSIX has no {text}")
        if kind == "repeat":
            if before in ("repeat", "anchor"):
                raise NotInPosixError(f"POSIX has no {text} after a repetition or an anchor")
            if any(int(number) > _MOST_REPEATS for number in re.findall(r"\d+", text)):
                raise NotInPosixError(f"POSIX repeats {_MOST_REPEATS} times at most")
        if kind in ("bar", "close"):
            _require_branch(before)
        parts.append(_one_of(text, pattern.ignores_case, "^") if kind == "one" else _IN_POSIX.get(text, text))
        before = kind
    _require_branch(before)
    return "".join(parts)


def _require_branch(before: str) -> None:
    if before in ("open", "bar"):
        raise NotInPosixError("POSIX has no empty alternative")


def _one_of(source: str, ignores_case: bool, negation: str) -> str:
    """Translate `source`, an RE2 pattern for one character, to POSIX syntax; `negation` begins a negated set."""
    characters, has_others = _fitting(source, ignores_case)
    if has_others:
        characters = "".join(char for char in map(chr, range(1, _DEL)) if char not in characters)
    if ignores_case:
        characters = "".join(char for char in characters if not char.isupper())
    if len(characters) == 1 and not has_others:
        is_plain = characters not in ("*?[" if negation == "!" else r"\.[](){}|^$+*?")
        return characters if is_plain else f"[{characters}]" if characters != "^" else r"\^"
    if not characters:
        if not has_others:
            raise NotInPosixError(f"no character fits {source}")
        return "?" if negation == "!" else "."
    body = "".join(sorted(characters, key=lambda char: (char != "]", "[!^-".find(char), char)))
    body = re.sub("0123456789|ABCDEFGHIJKLMNOPQRSTUVWXYZ|abcdefghijklmnopqrstuvwxyz", _as_range, body)
    negating = {"^", negation}  # glibc's fnmatch() takes both
    if not has_others and body[0] in negating:
        body = body[::-1]  # of two or three such signs; a minus sign may begin
        if body[0] in negating:
            raise NotInPosixError("POSIX has no set of ! and ^ alone")
    return f"[{negation if has_others else ''}{body}]"


def _as_range(run: re.Match[str]) -> str:
    return f"{run.group()[0]}-{run.group()[-1]}"


@cache
def _fitting(source: str, ignores_case: bool) -> tuple[str, bool]:
    """Return which characters of 1 to 0x7e an RE2 pattern for one character matches, and whether all others match."""
    if (len(source) == 1 and source != ".") or (len(source) == 2 and source[0] == "\\" and not source[1].isalnum()):
        if not 0 < ord(source[-1]) < _DEL:
            raise NotInPosixError(f"the target compares bytes, and U+{ord(source[-1]):04X} is none of ASCII")
        return "".join({source[-1].lower(), source[-1].upper()} if ignores_case else source[-1]), False
    fits = compile_source(source, ignores_case)
    has_others = fits.search(_other_characters()) is not None
    if has_others and compile_source(f"(?:{source})*", ignores_case).fullmatch(_other_characters()) is None:
        raise NotInPosixError(f"the target compares bytes, and {source} fits some characters beyond ASCII")
    return "".join(char for char in map(chr, range(1, _DEL)) if fits.fullmatch(char) is not None), has_others


@cache
def _other_characters() -> bytes:
    numbers = np.arange(_DEL, 0x110000, dtype="<u4")
    is_half = (numbers >= 0xD800) & (numbers < 0xE000)
    return numbers[~is_half & ~np.isin(numbers, _LETTERS_BEYOND_ASCII)].tobytes().decode("utf-32-le").encode()


# Text from users and traces in C source: as a comment or as a string literal.


_LINE: Final = 100
_COMMENT_LIMIT: Final = 4000
_MARKS: Final = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
_PLAIN_TEXT: Final = re.compile(r"[ !#->@-\[\]-~]")  # printable ASCII without quotation mark, question mark, backslash


def comment(text: str, indent: str = "") -> list[str]:
    """Return text as lines of C, each a complete comment; long text is cut, and what is no ASCII is in hexadecimal."""
    shown = "".join(char if " " <= char <= "~" else f"<{ord(char):x}>" for char in text[:_COMMENT_LIMIT])
    shown += " ..." if len(text) > _COMMENT_LIMIT else ""
    shown = _MARKS.sub(lambda mark: mark.group() + " ", shown)
    # Cutting makes no new marks: every piece has a blank on both sides.
    return [f"{indent}/* {shown[i : i + _LINE]} */" for i in range(0, len(shown), _LINE)]


def literal(text: str) -> str:
    """Return text as a C string literal of its UTF-8 bytes, quotation marks included.

    Bytes that are not plain ASCII are escapes of three octal digits, the maximum, as a digit may follow.
    """
    data = text.encode("utf-8", "replace").decode("latin-1")
    shown = (char if _PLAIN_TEXT.fullmatch(char) else f"\\{ord(char):03o}" for char in data)
    return f'"{"".join(shown)}"'


def byte_count(text: str) -> int:
    """Return the size of the string that `literal()` makes of a text, in bytes, without the closing NUL."""
    return len(text.encode("utf-8", "replace"))


def constants(declaration: str, values: Sequence[str]) -> list[str]:
    """Return the definition of a constant table; the values are numbers and lists of numbers."""
    lines = [""]
    for value in values:
        if len(lines[-1]) + len(value) > _LINE and lines[-1]:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{value},"
    if len(lines) == 1 and len(declaration) + len(lines[0]) < _LINE:
        return [f"static const {declaration} = {{{lines[0].removesuffix(',')}}};"]
    return [f"static const {declaration} = {{", *(f"    {line}" for line in lines), "};"]


# C tables of the positions of arguments in payloads, from `satview.events`, for every size and variant.


_MOST_WORDS: Final = 64  # longer payloads end with a text, and have their arguments at the same positions
_ENDLESS: Final = 0xFFFF

Find = Callable[[int, int, int], PayloadPart | None]


def offset_rows(release: Release, codes: Iterable[int], find: Find) -> list[str]:
    """Return the rows of a `struct position` table for event codes, ascending; `find` as in `CCondition`."""
    alike: list[tuple[int, int, list[str]]] = []  # first and last code, positions
    for code in codes:
        rows = [*_rows_of(release, code, find)]
        if alike and alike[-1][1] == code - 1 and alike[-1][2] == rows:
            alike[-1] = (alike[-1][0], code, rows)
        elif rows:
            alike.append((code, code, rows))
    return [f"{{0x{low:x}, 0x{high:x}, {row}}}" for low, high, rows in alike for row in rows]


def _rows_of(release: Release, code: int, find: Find) -> Iterator[str]:
    """Yield C rows for one code: a variant, a range of payload lengths in words, and the argument's position there."""
    for variant in _variants_of(release, code):
        least, before = 2, _position(find(code, 2, variant))
        for count in (*range(4, _MOST_WORDS + 2, 2), 0):
            position = _position(find(code, count, variant)) if count else ""
            if position == before and count:
                continue
            if before:
                yield f"{variant}, {least}, {count - 2 if count else _ENDLESS}, {before}"
            least, before = count, position


def _variants_of(release: Release, code: int) -> tuple[int, ...]:
    if variants.is_exit(code):
        return (variants.BY_COUNT, *variants.FAILURES)
    counted, most = variants.counted_call(release)
    return tuple(range(most + 1)) if code == counted else (variants.BY_COUNT,)


def _position(part: PayloadPart | None) -> str:
    return "" if part is None else f"{part.word}, {part.words}, {int(part.is_signed)}"


def code_ranges(table: NDArray[np.bool_]) -> list[str]:
    """Return a C row `{first, last}` for every range of codes that are True in `table`, bool (codes,)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], table.view(np.int8), [0]))))
    pairs = zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True)
    return [f"{{0x{low:x}, 0x{high:x}}}" for low, high in pairs]


def variant_tables(release: Release) -> list[str]:
    """Return the C tables of a release that `variant_of()` in handlers.c uses."""
    exits_64, values_64 = variants.wide_exits(release)
    counted, most = variants.counted_call(release)
    names = ("BY_COUNT", "FAILED", "FAILED_64", "FAILED_UNKNOWN", "DOUBTFUL", "LAST_ERRNO")
    known = {name: getattr(variants, name) for name in names} | {"COUNTED_CALL": counted, "COUNTED_MOST": most}
    nothing = ["{1, 0}"]  # C has no empty tables
    return [
        f"enum {{ {', '.join(f'{name} = {value}' for name, value in known.items())} }};",
        "/* Exits of calls with 64-bit values, and those whose first value is one. */",
        *constants("uint16_t exits_64[][2]", code_ranges(exits_64) or nothing),
        *constants("uint16_t values_64[][2]", code_ranges(values_64) or nothing),
        "",
    ]


# C functions and constant tables that the handlers of an exported program share.


@dataclass(slots=True)
class Tables:
    """C tables and functions that the conditions of a program share; equal tables are defined once.

    Attributes:
        parts: Names of the C functions that are called.
        named: C lists of processes: for the name of each list the C expression that selects its processes, which tests
            the texts `full` (path) and `own` (name without folders) of a process.
    """

    release: Release
    parts: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    _known: dict[object, str] = field(default_factory=dict)

    def use(self, part: str, *arguments: str) -> str:
        """Return a call of the C function `part`, and note that the program needs this function."""
        self.parts.add(part)
        return f"{part}({', '.join(arguments)})"

    def table(self, kind: str, declaration: str, rows: Sequence[str], shown: str = "") -> str:
        """Return the name of a constant C table with the given rows; the table is defined if it is new.

        `kind` begins the name, `declaration` has `{}` in its place, `shown` is the comment, empty = none.
        """
        key = (kind, tuple(rows))
        name = self._known.get(key)
        if name is None:
            name = self._name(key, kind)
            self.lines += [*comment(shown), *constants(declaration.format(name), rows)]
        return name

    def processes(self, test: str, shown: str) -> str:
        """Return the name of the C list of processes that a test on `full` and `own` selects; new ones are defined."""
        name = self._known.get(test)
        if name is None:
            name = self._name(test, "named")
            self.named[name] = test
            self.lines += [*comment(shown), f"static struct named {name};"]
        return name

    def _name(self, key: object, kind: str) -> str:
        number = 1 + sum(known.startswith(f"{kind}_") for known in self._known.values())
        self._known[key] = f"{kind}_{number}"
        return self._known[key]


NAMES_THREAD: Final = frozenset({C.KERCALLENTER, C.KERCALLEXIT, C.THREAD})
"""Classes for which the kernel passes the thread of an event to the handler."""

_HALF: Final = re.compile("[\ud800-\udfff]")
_PLAIN: Final = {"code": "code_of", "number": "event_number", "cpu": "cpu_of", "words": "word_count"}
_UNTOLD: Final = {
    "time": ("an event handler is not given when the event was", "filter the trace afterwards"),
    "thread_name": ("an event handler is not given names of threads", "compare tid, or filter the trace afterwards"),
    "duration": ("duration is known only later, when the event has long been logged", "filter the trace afterwards"),
    "length": ("length is known only later, when the event has long been logged", "filter the trace afterwards"),
}
_PART_OF_WORD: Final = (
    "it is a part of a word in some of these events, and the program looks at whole words",
    "compare that part, as in word[0] & 0xff == 3",
)


@dataclass(frozen=True, slots=True)
class HandledCodes:
    """The events that a handler is attached to.

    Attributes:
        names_thread: Whether the kernel passes the thread of an event to the handler.
        on: The codes that are switched on.
    """

    names_thread: bool
    codes: tuple[int, ...]
    on: tuple[int, ...]
    is_wide: Callable[[int], bool]


class CCondition:
    """Translates a condition to C.

    Args:
        spans: Name of the C table with the open spans of the condition's latency.

    Attributes:
        unwritten: Parts that a handler cannot evaluate: the node, the reason, and a remedy.
        thread_node: First node that needs the thread from THRUNNING events (`note_running()`); None = none does.
    """

    def __init__(self, tables: Tables, requested: HandledCodes, spans: str = "") -> None:
        self._tables, self._requested, self._spans = tables, requested, spans
        self.unwritten: list[tuple[nodes.Node, str, str]] = []
        self.thread_node: nodes.Node | None = None

    def text(self, node: nodes.Node) -> str:
        """Return a checked condition as a C expression of type int."""
        if isinstance(node, nodes.And | nodes.Or):
            sign = " && " if isinstance(node, nodes.And) else " || "
            return f"({sign.join(self.text(part) for part in node.parts)})"
        if isinstance(node, nodes.Not):
            return f"!{self.text(node.part)}"
        if isinstance(node, CodeTest):
            return self._code_test(node)
        if isinstance(node, nodes.Compare):
            return self._compare(node)
        if isinstance(node, nodes.In):
            return self._membership(node)
        if isinstance(node, nodes.PatternMatch):
            return self._match(node)
        if isinstance(node, nodes.TimeTest):
            self.unwritten.append((node, *_UNTOLD["time"]))
            return "0"
        if isinstance(node, nodes.IsKnown):
            return self._is_known(node)
        return self._tables.use("has_failed", "event")  # the only flag is `failed`

    def _is_known(self, node: nodes.IsKnown) -> str:
        if node.as_text:
            return self._texts(node.value, lambda text: self._tables.use("has_text", text), "any")
        if isinstance(node.value, nodes.EventField) and FIELDS[node.value.name].kind is FieldKind.FLAG:
            return self._tables.use("shows_failure", "event")
        return self._tables.use("is_known", self._number(node.value))

    def _code_test(self, node: CodeTest) -> str:
        ranges = code_ranges(node.table)
        if not ranges:
            return "0"
        shown = node.pattern.text if node.pattern is not None else ", ".join(node.names)
        name = self._tables.table("codes", "uint16_t {}[][2]", ranges, f"{node.kind}: {shown}")
        return self._tables.use("is_code", "event", name, f"COUNT({name})")

    def _compare(self, node: nodes.Compare) -> str:
        if isinstance(node.right, nodes.Text):
            return self._is_one_of(node.left, [node.right.value])
        comparison = COMPARISONS[node.sign]
        left, right = self._number(node.left), self._number(node.right)
        sides = (right, left) if comparison.is_swapped_in_c else (left, right)
        return self._tables.use(comparison.c_name, *sides)

    def _membership(self, node: nodes.In) -> str:
        if isinstance(node.items[0], nodes.Text):
            return self._is_one_of(node.value, [item.value for item in node.items if isinstance(item, nodes.Text)])
        value = self._number(node.value)
        constants = sorted({wrapped(item.value) for item in node.items if isinstance(item, nodes.Number)})
        tests = [
            self._tables.use("is_equal", value, self._number(item))
            for item in node.items
            if not isinstance(item, nodes.Number)
        ]
        if constants:
            name = self._tables.table("numbers", "int64_t {}[]", [_constant(number) for number in constants])
            tests.insert(0, self._tables.use("is_among", value, name, f"COUNT({name})"))
        return f"({' || '.join(tests)})"

    # ---- texts ---------------------------------------------------------------------------------------------------

    def _is_one_of(self, node: nodes.Node, words: Sequence[str]) -> str:
        # No bytes represent half a character, so no text is equal to it.
        known = [word for word in dict.fromkeys(words) if word.isascii() or not _HALF.search(word)]

        def test(text: str) -> str:
            return f"({' || '.join(self._same(text, word) for word in known)})"

        return self._texts(node, test, ", ".join(known)) if known else "0"

    def _same(self, text: str, word: str) -> str:
        constant = self._tables.use("as_text", literal(word), str(byte_count(word)))
        return self._tables.use("same_text", text, constant)

    def _texts(self, node: nodes.Node, test: Callable[[str], str], shown: str) -> str:
        """Return a C expression that tests the text of a field or argument; process names are tested at the start."""
        if isinstance(node, nodes.EventField) and node.name == "name":
            self._tables.parts.update(("as_text", "remember"))
            name = self._tables.processes(f"{test('full')} || {test('own')}", f"name: {shown}")
            return self._tables.use("is_named", self._thread(node, "pid"), f"&{name}")
        if isinstance(node, nodes.EventField) and node.name == "text":
            release = self._tables.release
            positions = self._positions(
                "text", self._requested.codes, lambda code, count, _: text_offset(release, code, count)
            )
        elif isinstance(node, nodes.NamedArgument):
            positions = self._argument_offsets(node)
        else:
            assert isinstance(node, nodes.EventField)
            self._cannot(node)
            return "0"
        return test(self._tables.use("event_text", "event", positions, f"COUNT({positions})")) if positions else "0"

    def _match(self, node: nodes.PatternMatch) -> str:
        pattern, use = node.pattern, self._tables.use
        is_name = (
            isinstance(node.value, nodes.EventField) and node.value.name == "name"
        )  # looked up when the program starts
        try:
            source = literal(posix_pattern(pattern, is_in_handler=not is_name))
        except NotInPosixError as refusal:
            shown = f'"{pattern.text}"' if pattern.is_glob else f"/{pattern.text}/"
            self.unwritten.append((node, f"{shown}: {refusal}", "filter the trace afterwards"))
            return "0"
        if not pattern.is_glob:
            flag = str(int(pattern.ignores_case))
            return self._texts(node.value, lambda text: use("fits_regex", text, source, flag), pattern.text)
        self._tables.parts.add("name_room" if is_name else "ROOM")
        room = "name_room" if is_name else "ROOM(event)"
        return self._texts(node.value, lambda text: use("fits_glob", text, source, room), pattern.text)

    # ---- numbers -------------------------------------------------------------------------------------------------

    def _number(self, node: nodes.Node) -> str:
        use = self._tables.use
        if isinstance(node, nodes.Number):
            return use("known", _constant(wrapped(node.value)))
        if isinstance(node, nodes.Word):
            return use("word", "event", str(node.index))
        if isinstance(node, nodes.EventField):
            return self._field(node)
        if isinstance(node, nodes.NamedArgument):
            return self._argument(node)
        if isinstance(node, nodes.Latency):
            return use("latency", self._spans, *self.thread(node))
        if isinstance(node, nodes.Negative):
            return use("negative", self._number(node.part))
        if isinstance(node, nodes.Arithmetic):
            return use(ARITHMETIC[node.sign].c_name, self._number(node.left), self._number(node.right))
        assert isinstance(node, nodes.FunctionCall)
        return use(FUNCTIONS[node.name].c_name, *(self._number(part) for part in node.arguments))

    def _field(self, node: nodes.EventField) -> str:
        use = self._tables.use
        if node.name in _PLAIN:
            return use("known", use(_PLAIN[node.name], "event"))
        if node.name == "errno":
            return use("error_of", "event")
        if node.name in ("pid", "tid"):
            return self._thread(node, node.name)
        if node.name == "priority" and all(
            has_argument(self._tables.release, code, node.name, self._requested.is_wide(code))
            for code in self._requested.on
        ):
            return self._argument(node)
        self._cannot(node)
        return use("unknown")

    def _thread(self, node: nodes.Node, name: str) -> str:
        if self._requested.names_thread:
            return self._tables.use(f"{name}_of", "event")
        self.thread_node = self.thread_node or node
        return self._tables.use(f"running_{name}", "event")

    def thread(self, node: nodes.Node) -> tuple[str, str]:
        """Return C expressions for the pid and the tid of the thread of an event."""
        return self._thread(node, "pid"), self._thread(node, "tid")

    def _argument(self, node: nodes.NamedArgument | nodes.EventField) -> str:
        positions = self._argument_offsets(node)
        use = self._tables.use
        return use("argument", "event", positions, f"COUNT({positions})") if positions else use("unknown")

    def _argument_offsets(self, node: nodes.NamedArgument | nodes.EventField) -> str:
        release, name = self._tables.release, node.name
        having = set(codes_of_argument(release, name))
        codes = [code for code in self._requested.codes if code in having]

        def find(code: int, count: int, variant: int) -> PayloadPart | None:
            if is_user(code) and name == USER_TEXT:  # the program decides for each event whether it is a text
                return text_offset(release, code, count)
            part = argument_part(release, code, count, name, variant) or described_part(release, code, count, name)
            if part is not None and part.byte | part.size and (node, *_PART_OF_WORD) not in self.unwritten:
                self.unwritten.append((node, *_PART_OF_WORD))
            return part

        return self._positions(f"arg.{name}", codes, find)

    def _positions(self, shown: str, codes: Sequence[int], find: Find) -> str:
        """Return the name of a C table with the positions of an argument; empty if no event has the argument."""
        rows = offset_rows(self._tables.release, codes, find)
        if not rows:
            return ""
        self._tables.parts.add("position")
        return self._tables.table("positions", "struct position {}[]", rows, shown)

    def _cannot(self, node: nodes.EventField) -> None:
        if node.name == "priority":
            self.unwritten.append((node, *self._no_priority()))
        else:
            self.unwritten.append((node, *_UNTOLD[node.name]))

    def _no_priority(self) -> tuple[str, str]:
        return "only wide THREAD events show a priority, and this handler is evaluated for others", (
            "attach the condition to states of THREAD, and make THREAD wide"
        )


def needs_thread(node: nodes.Node) -> bool:
    """Return whether a condition needs the thread of an event."""
    if isinstance(node, nodes.EventField):
        return FIELDS[node.name].domain is Domain.THREAD
    if isinstance(node, nodes.Latency):
        return True
    return any(needs_thread(part) for part in nodes.children(node))


def _constant(number: int) -> str:
    """Return a 64-bit number as a C constant; C has no literal for the smallest number."""
    return "-0x7fffffffffffffffLL - 1" if number == -(1 << 63) else f"{number}LL"
