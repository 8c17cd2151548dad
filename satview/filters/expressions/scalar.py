"""Expressions for one event at a time: what capture uses, and what tests hold against the vectorised form."""

from __future__ import annotations

from satview.events.catalogue import catalogue
from satview.events.layout import Part, argument_part, described_part, text_at, text_offset
from satview.events.spec import Release
from satview.events.variants import (
    BY_COUNT,
    DOUBTFUL,
    FAILURES,
    TEXT,
    error_of,
    is_exit,
    is_user,
    user_text,
    variant_of,
)
from satview.events.wire import WireClass, class_of, event_of
from satview.events.words import join64
from satview.filters.event_context import EventContext, signed_word
from satview.filters.expressions import nodes
from satview.filters.expressions.operators import ARITHMETIC, COMPARISONS, FUNCTIONS, of_numbers, wrapped
from satview.filters.expressions.semantics import CodeTest
from satview.filters.expressions.vocabulary import FIELDS, FieldKind, class_codes, state_value


def evaluate(node: nodes.Node, context: EventContext, release: Release) -> bool:
    """Return whether a two-valued condition (`three_valued`) holds for one event."""
    return _Event(context, release).is_true(node)


class _Event:
    def __init__(self, context: EventContext, release: Release) -> None:
        self.context, self.release = context, release

    def is_true(self, node: nodes.Node) -> bool:
        if isinstance(node, nodes.And):
            return all(self.is_true(part) for part in node.parts)
        if isinstance(node, nodes.Or):
            return any(self.is_true(part) for part in node.parts)
        if isinstance(node, nodes.Not):
            return not self.is_true(node.part)
        if isinstance(node, CodeTest):
            return self.code_test(node)
        if isinstance(node, nodes.Compare):
            return self.compare(node)
        if isinstance(node, nodes.In):
            return self.membership(node)
        if isinstance(node, nodes.PatternMatch):
            node.pattern.refill()
            return any(node.pattern.matches(text) for text in self.texts(node.value))
        if isinstance(node, nodes.TimeTest):
            return False  # one event does not show which trace it will be part of
        if isinstance(node, nodes.Known):
            return self.is_known(node)
        assert isinstance(node, nodes.Field)
        # The only flag is `failed`.
        return self.variant() in FAILURES

    def is_known(self, node: nodes.Known) -> bool:
        if node.as_text:
            return bool(self.texts(node.value))
        if isinstance(node.value, nodes.Field) and FIELDS[node.value.name].kind is FieldKind.FLAG:
            return is_exit(self.context.code) and self.variant() != DOUBTFUL
        return self.number(node.value) is not None

    def variant(self) -> int:
        return variant_of(self.release, self.context.code, self.context.words)

    def code_test(self, node: CodeTest) -> bool:
        code, book = self.context.code, catalogue(self.release)
        if node.pattern is not None:
            node.pattern.refill()
            names = {FieldKind.CLASS: book.class_name(code), FieldKind.EVENT: book.name(code)}
            if node.kind is FieldKind.STATE:
                return bool(node.table[code])
            is_listed = node.kind is FieldKind.CLASS or code in book.codes()
            return is_listed and node.pattern.matches(names[node.kind])
        if not node.names:
            return bool(node.table[code])
        if node.kind is FieldKind.STATE:
            return int(book.state_value_of_code[code]) in [state_value(name) for name in node.names]
        if node.kind is FieldKind.EVENT:
            return any(code in book.find_shown(name) for name in node.names)
        printed = book.class_name(code).upper()
        tables = [class_codes(name, self.release) for name in node.names if name.strip().upper() != printed]
        return len(tables) < len(node.names) or any(table is not None and bool(table[code]) for table in tables)

    def compare(self, node: nodes.Compare) -> bool:
        if isinstance(node.right, nodes.Text):
            return node.right.value in self.texts(node.left)
        left, right = self.number(node.left), self.number(node.right)
        return left is not None and right is not None and COMPARISONS[node.sign].scalar(left, right)

    def membership(self, node: nodes.In) -> bool:
        if isinstance(node.items[0], nodes.Text):
            own = self.texts(node.value)
            return any(isinstance(item, nodes.Text) and item.value in own for item in node.items)
        value = self.number(node.value)
        return value is not None and value in [self.number(item) for item in node.items]

    def texts(self, node: nodes.Node) -> tuple[str, ...]:
        """The text of a field; a process is known by its path and by its name alone. Empty = not known."""
        context = self.context
        if isinstance(node, nodes.Argument):
            position = self.part_named(node.name)
            found = text_at(context.payload, position) if position is not None and not position.words else None
            return () if found is None else (found,)
        assert isinstance(node, nodes.Field)
        if node.name == "name":
            full = context.process_name
            return (full, full.rsplit("/", 1)[-1]) if full else ()
        if node.name == "thread_name":
            return (context.thread_name,) if context.thread_name else ()
        position = text_offset(self.release, context.code, len(context.words))
        if position is None:
            return ()
        found = user_text(context.payload) if is_user(context.code) else text_at(context.payload, position)
        return () if found is None else (found,)

    def part_named(self, name: str) -> Part | None:
        context = self.context
        if is_user(context.code):
            variant = BY_COUNT if user_text(context.payload) is None else TEXT
        else:
            variant = self.variant()
        count = len(context.words)
        part = argument_part(self.release, context.code, count, name, variant)
        return part or described_part(self.release, context.code, count, name)

    def number(self, node: nodes.Node) -> int | None:
        if isinstance(node, nodes.Number):
            return wrapped(node.value)
        if isinstance(node, nodes.Word):
            return self.context.word(node.index) if node.index < len(self.context.words) else None
        if isinstance(node, nodes.Field):
            return self.field(node.name)
        if isinstance(node, nodes.Argument):
            return self.argument(node.name)
        if isinstance(node, nodes.Negative):
            return of_numbers(ARITHMETIC["-"], 0, self.number(node.part))
        if isinstance(node, nodes.Arithmetic):
            return of_numbers(ARITHMETIC[node.sign], self.number(node.left), self.number(node.right))
        assert isinstance(node, nodes.FunctionCall)
        return of_numbers(FUNCTIONS[node.name], *(self.number(part) for part in node.arguments))

    def field(self, name: str) -> int | None:
        context = self.context
        plain = {
            "code": context.code,
            "number": number_of(context.code),
            "time": context.time_ns,
            "cpu": context.cpu,
            "words": len(context.words),
        }
        if name in plain:
            return plain[name]
        if name == "errno":
            return error_of(self.release, context.code, context.words)
        if name in ("pid", "tid"):
            value = context.pid if name == "pid" else context.tid
            return value if value >= 0 else None
        return {"priority": context.priority, "duration": context.duration_ns, "length": context.length_ns}[name]

    def argument(self, name: str) -> int | None:
        context, position = self.context, self.part_named(name)
        if position is None or not position.words:
            return None
        word, order = context.word(position.word), "little" if context.is_little_endian else "big"
        if position.size:
            return position.from_bytes(context.payload, order)
        if position.words == 2:
            return wrapped(join64(word, context.word(position.word + 1), order))
        return signed_word(word) if position.is_signed else word


def number_of(code: int) -> int:
    """Return the event number that people know: of a kernel call its own number, whatever the half and the width."""
    event = event_of(code)
    return event & 0x7F if class_of(code) == WireClass.KER_CALL else event
