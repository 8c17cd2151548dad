"""Conditions as C expressions over an `event_data_t`, with the tables that they look into.

An expression in C means what it means in a view, unknown values included: both write the tree of
`filters.expressions.three_valued`. What an event handler cannot know is not
guessed: it is listed in `Condition.unwritten`, and the program does not compile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from satview.events.layout import USER_TEXT, Part, argument_part, codes_of_argument, described_part, text_offset
from satview.events.variants import is_user
from satview.export.c_offsets import Find, code_ranges, offset_rows
from satview.export.c_tables import Tables
from satview.export.c_text import byte_count, literal
from satview.filters.expressions import nodes
from satview.filters.expressions.operators import ARITHMETIC, COMPARISONS, FUNCTIONS, wrapped
from satview.filters.expressions.reach import has_argument
from satview.filters.expressions.semantics import CodeTest
from satview.filters.expressions.vocabulary import FIELDS, Domain, FieldKind
from satview.filters.rules.switch_state import C

NAMES_THREAD: Final = frozenset({C.KERCALLENTER, C.KERCALLEXIT, C.THREAD})
"""Classes whose events the kernel gives to a handler with the thread that they belong to."""

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
    """Whom a handler is attached to.

    Attributes:
        names_thread: Whether the kernel names the thread that the events belong to.
        codes: The events, ascending.
        on: Those of them that are switched on.
        is_wide: Shows the form of a code.
    """

    names_thread: bool
    codes: tuple[int, ...]
    on: tuple[int, ...]
    is_wide: Callable[[int], bool]


class Condition:
    """A condition in C.

    Attributes:
        unwritten: Parts that a handler cannot know: the node, why, and what to do instead.
        thread_node: Whether it needs `note_running()` for THRUNNING events.
    """

    def __init__(self, tables: Tables, requested: HandledCodes) -> None:
        self._tables, self._requested = tables, requested
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
            name = self._tables.pattern(node.pattern)
            return self._texts(node.value, lambda text: self._tables.use("fits", text, f"&{name}"), node.pattern.text)
        if isinstance(node, nodes.TimeTest):
            self.unwritten.append((node, *_UNTOLD["time"]))
            return "0"
        if isinstance(node, nodes.Known):
            return self._is_known(node)
        return self._tables.use("has_failed", "event")  # the only flag is `failed`

    def _is_known(self, node: nodes.Known) -> str:
        if node.as_text:
            return self._texts(node.value, lambda text: self._tables.use("has_text", text), "any")
        if isinstance(node.value, nodes.Field) and FIELDS[node.value.name].kind is FieldKind.FLAG:
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
        """Return a test of a text; names of processes are looked up when the program starts."""
        if isinstance(node, nodes.Field) and node.name == "name":
            self._tables.parts.update(("as_text", "remember"))
            name = self._tables.processes(f"{test('full')} || {test('own')}", f"name: {shown}")
            return self._tables.use("is_named", self._thread(node, "pid"), f"&{name}")
        if isinstance(node, nodes.Field) and node.name == "text":
            release = self._tables.release
            positions = self._positions(
                "text", self._requested.codes, lambda code, count, _: text_offset(release, code, count)
            )
        elif isinstance(node, nodes.Argument):
            positions = self._argument_offsets(node)
        else:
            assert isinstance(node, nodes.Field)
            self._cannot(node)
            return "0"
        return test(self._tables.use("event_text", "event", positions, f"COUNT({positions})")) if positions else "0"

    # ---- numbers -------------------------------------------------------------------------------------------------

    def _number(self, node: nodes.Node) -> str:
        use = self._tables.use
        if isinstance(node, nodes.Number):
            return use("known", _constant(wrapped(node.value)))
        if isinstance(node, nodes.Word):
            return use("word", "event", str(node.index))
        if isinstance(node, nodes.Field):
            return self._field(node)
        if isinstance(node, nodes.Argument):
            return self._argument(node)
        if isinstance(node, nodes.Negative):
            return use("negative", self._number(node.part))
        if isinstance(node, nodes.Arithmetic):
            return use(ARITHMETIC[node.sign].c_name, self._number(node.left), self._number(node.right))
        assert isinstance(node, nodes.FunctionCall)
        return use(FUNCTIONS[node.name].c_name, *(self._number(part) for part in node.arguments))

    def _field(self, node: nodes.Field) -> str:
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

    def _argument(self, node: nodes.Argument | nodes.Field) -> str:
        positions = self._argument_offsets(node)
        use = self._tables.use
        return use("argument", "event", positions, f"COUNT({positions})") if positions else use("unknown")

    def _argument_offsets(self, node: nodes.Argument | nodes.Field) -> str:
        release, name = self._tables.release, node.name
        having = set(codes_of_argument(release, name))
        codes = [code for code in self._requested.codes if code in having]

        def find(code: int, count: int, variant: int) -> Part | None:
            if is_user(code) and name == USER_TEXT:  # whether it is a text the program finds out
                return text_offset(release, code, count)
            part = argument_part(release, code, count, name, variant) or described_part(release, code, count, name)
            if part is not None and part.byte | part.size and (node, *_PART_OF_WORD) not in self.unwritten:
                self.unwritten.append((node, *_PART_OF_WORD))
            return part

        return self._positions(f"arg.{name}", codes, find)

    def _positions(self, shown: str, codes: Sequence[int], find: Find) -> str:
        """Return the name of a table of positions; empty if no event has such a thing."""
        rows = offset_rows(self._tables.release, codes, find)
        if not rows:
            return ""
        self._tables.parts.add("position")
        return self._tables.table("positions", "struct position {}[]", rows, shown)

    def _cannot(self, node: nodes.Field) -> None:
        if node.name == "priority":
            self.unwritten.append((node, *self._no_priority()))
        else:
            self.unwritten.append((node, *_UNTOLD[node.name]))

    def _no_priority(self) -> tuple[str, str]:
        return "only wide THREAD events show a priority, and this handler is evaluated for others", (
            "attach the condition to states of THREAD, and make THREAD wide"
        )


def needs_thread(node: nodes.Node) -> bool:
    """Return whether a condition needs to know whose an event is."""
    if isinstance(node, nodes.Field):
        return FIELDS[node.name].domain is Domain.THREAD
    return any(needs_thread(part) for part in nodes.children(node))


def _constant(number: int) -> str:
    """Return a 64-bit number in C; the smallest one has no notation of its own."""
    return "-0x7fffffffffffffffLL - 1" if number == -(1 << 63) else f"{number}LL"
