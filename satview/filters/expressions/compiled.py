"""Evaluates expressions over a whole trace.

Parts that depend only on class and event become a table of 32,768 results, parts that depend only on the thread a table
by thread. The rest is evaluated only for the events that these tables leave undecided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import parse_moment
from satview.events.layout import USER_TEXT, PayloadPart, text_at
from satview.events.variants import DOUBTFUL, ERRNO_WORD, EXITS, FAILURES, USER_CLASSES, user_text
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, EVENT_MASK, WireClass
from satview.filters.derived_columns import Bools, DerivedColumns, Rows, TableTest
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions import nodes
from satview.filters.expressions.nodes import ARITHMETIC, COMPARISONS, FUNCTIONS, KnownMask, Values, of_columns, wrapped
from satview.filters.expressions.semantics import FIELDS, CodeTest, Domain, FieldKind, code_table
from satview.store.arguments import argument, argument_offsets, codes_in, variants_of
from satview.store.axis import files_of
from satview.store.trace import Trace

# The fields of an expression for many events at once: numbers and texts.


_TEXT_WORDS: Final = 1024  # of a text, at most
_TEXT_BLOCK: Final = 1 << 20  # words gathered at a time

_CODES: Final = np.arange(CODE_COUNT, dtype=np.uint16)
NUMBERS: Final = np.where(  # as `expression.number_of`
    _CODES >> CLASS_SHIFT == WireClass.KER_CALL, _CODES & np.uint16(0x7F), _CODES & np.uint16(EVENT_MASK)
)


def codes_column(name: str) -> Values:
    """Return the field `code` or `number` (event number in the class) for every code, int32 or uint16 (32768,)."""
    return (np.arange(CODE_COUNT, dtype=np.int32) if name == "code" else NUMBERS), True


def threads_column(name: str, trace: Trace) -> Values:
    """Return the field `pid` or `tid` of every thread, int32 (threads,), and which values are known (not negative)."""
    values = trace.threads.pid if name == "pid" else trace.threads.tid
    return values, values >= 0


def thread_texts(name: str, trace: Trace, test: Callable[[str], bool]) -> Bools:
    """Return for each thread whether its field `name` or `thread_name` passes a test, bool (threads,)."""
    if name == "thread_name":
        return np.array([bool(text) and test(text) for text in trace.threads.names], np.bool_)
    passes = np.array(
        [bool(text) and (test(text) or test(text.rsplit("/", 1)[-1])) for text in trace.processes.names], np.bool_
    )
    return passes[trace.threads.process]


class RowColumns:
    """The values of fields and arguments, as columns, for a slice of the event table or ascending rows."""

    def __init__(self, trace: Trace, derived: DerivedColumns, rows: Rows) -> None:
        self.trace, self.derived, self.rows = trace, derived, rows
        self.code = trace.events.code[rows]
        self._index: NDArray[np.integer] | None = None if isinstance(rows, slice) else rows

    @property
    def index(self) -> NDArray[np.integer]:
        """The rows as an array, (events,)."""
        if self._index is None:
            assert isinstance(self.rows, slice)
            self._index = np.arange(self.rows.start, self.rows.stop)
        return self._index

    def number(self, name: str) -> Values:
        """Return the values of a numeric field, integers (events,), in nanoseconds for times; and which are known."""
        events, trace = self.trace.events, self.trace
        if name in ("code", "number"):
            return (self.code if name == "code" else NUMBERS[self.code]), True
        if name in ("pid", "tid"):
            values, known = threads_column(name, trace)
            thread = events.thread[self.rows]
            return values[thread], known[thread]  # type: ignore[index]  # both are arrays here
        if name == "cpu":
            return events.cpu[self.rows], True
        if name == "time":
            return trace.clock.ns_array(events.time_cycles[self.rows]), True
        if name == "words":
            return trace.payloads.word_counts(self.index), True
        if name == "errno":
            return self.errors()
        derived = {
            "priority": self.derived.priority,
            "duration": self.derived.duration_ns,
            "length": self.derived.state_length_ns,
        }
        values = derived[name](self.index)
        return values, values >= 0

    def word(self, number: int) -> Values:
        """Return payload word `number` of each event, uint32 (events,), and whether the payload has that word."""
        known: KnownMask = True if number < 2 else self.trace.payloads.word_counts(self.index) > number
        return self.trace.payloads.column(self.index, number), known

    def errors(self) -> Values:
        """Return the error numbers of failed kernel calls, int64 (events,), and which are known: exits show them."""
        values, known = np.zeros(len(self.code), np.int64), np.zeros(len(self.code), np.bool_)
        exits = np.flatnonzero(EXITS.take(self.code))
        variants = variants_of(self.trace, self.index[exits])
        for variant, word in ERRNO_WORD.items():
            selected = exits[variants == variant]
            values[selected] = self.trace.payloads.column(self.index[selected], word).view(np.int32)
            known[selected] = True
        return values, known

    def failed(self) -> Bools:
        """Return whether each event is the exit of a failed kernel call, bool (events,)."""
        return self._of_variants(lambda variants: np.isin(variants, FAILURES))

    def shows_failure(self) -> Bools:
        """Return whether each event is the exit of a kernel call that shows success or failure, bool (events,)."""
        return self._of_variants(lambda variants: variants != DOUBTFUL)

    def _of_variants(self, test: Callable[[NDArray[np.integer]], Bools]) -> Bools:
        """Return whether each event is a kernel call's exit whose payload variant passes a test, bool (events,)."""
        result = np.zeros(len(self.code), np.bool_)
        exits = np.flatnonzero(EXITS.take(self.code))
        result[exits] = test(variants_of(self.trace, self.index[exits]))
        return result

    def argument(self, name: str) -> Values:
        """Return the values of a numeric argument, integers (events,), and which events have the argument."""
        return argument(self.trace, self.index, name)

    def texts(self, name: str | None, test: Callable[[str], bool]) -> Bools:
        """Return which events have a text argument (None: a text) that passes a test, bool (events,).

        Equal texts are tested once, as a trace repeats few texts many times.
        """
        passes = np.zeros(len(self.code), np.bool_)
        if (axis := files_of(self.trace)) is not None:
            for part, positions, own in axis.split(self.index):
                passes[positions] = RowColumns(part.trace, self.derived, own).texts(name, test)
            return passes
        for positions, place in argument_offsets(self.trace, self.index, name):
            if place is None or place.words:
                continue
            is_user = np.isin(self.code[positions] >> CLASS_SHIFT, USER_CLASSES) & (place.name == USER_TEXT)
            counts = self.trace.payloads.word_counts(self.index[positions])
            for kind in np.unique(counts * 2 + is_user).tolist():
                selected = positions[counts * 2 + is_user == kind]
                passes[selected] = self._text_test(self.index[selected], place, kind // 2, bool(kind & 1), test)
        return passes

    def _text_test(
        self, rows: NDArray[np.integer], position: PayloadPart, count: int, is_user: bool, test: Callable[[str], bool]
    ) -> Bools:
        width = min(count - position.word, _TEXT_WORDS)
        passes = np.zeros(len(rows), np.bool_)
        if width <= 0:
            return passes
        start = replace(position, word=0)
        step = max(1, _TEXT_BLOCK // width)
        results: dict[bytes, bool] = {}
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            words = np.stack([self.trace.payloads.column(part, position.word + i) for i in range(width)], axis=1)
            data = np.ascontiguousarray(words.astype("<u4" if self.trace.byte_order == "little" else ">u4"))
            unique, where = np.unique(data.view(f"V{4 * width}")[:, 0], return_inverse=True)
            unique_passes = np.zeros(len(unique), np.bool_)
            for i, item in enumerate(unique.tolist()):
                if item not in results:
                    text = user_text(item) if is_user else text_at(item, start)
                    results[item] = text is not None and test(text)
                unique_passes[i] = results[item]
            passes[begin : begin + len(part)] = unique_passes[where]
        return passes


# Conditions that may hold, or must hold, where a trace does not show all that a kernel knows.


_OF_PAYLOAD = (nodes.NamedArgument, nodes.Word)


def bounded(node: nodes.Node, missing: NDArray[np.bool_], *, may: bool) -> nodes.Node:
    """Return a condition for a trace that bounds the result of `node` in a kernel.

    Unlike a trace, a kernel knows the priority of every thread and all words of an event: where the trace does not show
    these, the result in the kernel is open.

    Args:
        node: A two-valued condition (`two_valued`).
        missing: bool (32768,), codes of events that lack words which the kernel would have logged.
        may: True = the returned condition holds wherever `node` may hold in a kernel; False = only where it must hold.
    """
    if isinstance(node, nodes.And | nodes.Or):
        return replace(node, parts=tuple(bounded(part, missing, may=may) for part in node.parts))
    if isinstance(node, nodes.Not):
        return replace(node, part=bounded(node.part, missing, may=not may))
    start, end = node.start, node.end
    doubts: list[nodes.Node] = []
    if any(isinstance(part, nodes.EventField) and part.name == "priority" for part in _parts(node)):
        thread = nodes.IsKnown(start, end, nodes.EventField(start, end, "pid"))
        priority = nodes.IsKnown(start, end, nodes.EventField(start, end, "priority"))
        doubts.append(nodes.And(start, end, (thread, nodes.Not(start, end, priority))))
    if missing.any() and any(
        isinstance(part, _OF_PAYLOAD) or (isinstance(part, nodes.EventField) and part.name in ("text", "words"))
        for part in _parts(node)
    ):
        doubts.append(code_table(start, end, missing))
    if not doubts:
        return node
    doubt = nodes.Or(start, end, tuple(doubts))
    return nodes.Or(start, end, (node, doubt)) if may else nodes.And(start, end, (node, nodes.Not(start, end, doubt)))


def _parts(node: nodes.Node) -> list[nodes.Node]:
    return [node, *(inner for part in nodes.children(node) for inner in _parts(part))]


_CHEAP: Final = 2  # cost up to which testing a whole chunk is faster than selecting the undecided rows
_SPARSE: Final = 0.5  # share of undecided rows below which these are selected
_WORD_COST, _ARGUMENT_COST, _LATENCY_COST = 4, 5, 6


class Condition(ABC):
    """A part of a compiled expression; parts with a low relative `cost` of testing one event are tested first."""

    cost = 0

    @abstractmethod
    def of(self, rows: Rows) -> Bools:
        """Return for each event whether the condition holds, bool (len(rows),); the caller may change the array."""

    def constant(self, rows: Rows) -> bool | None:  # noqa: ARG002  -- for those that know
        """Return the result for all rows if it is the same and can be known without testing them, else None."""
        return None


class _TableCondition(Condition):
    """A condition whose result depends only on class and event, or only on the thread, and is looked up in a table."""

    def __init__(self, trace: Trace, domain: Domain, table: Bools) -> None:
        is_of_code = domain is Domain.CODE
        self.domain, self.table, self.cost = domain, table, 0 if is_of_code else 1
        self._column = trace.events.code if is_of_code else trace.events.thread
        self._occurs = trace.code_counts > 0 if is_of_code else None

    @cached_property
    def _test(self) -> TableTest:
        """`table` in the form that is fastest to look up; first used when the tables of an `and` or `or` are merged."""
        return TableTest(self.table, self._occurs)

    def constant(self, rows: Rows) -> bool | None:  # noqa: ARG002  -- the same for all rows
        return True if self._test.is_true else False if self._test.is_false else None

    def of(self, rows: Rows) -> Bools:
        return self._test.of(self._column[rows])


class _TimeRange(Condition):
    """A comparison of the time with a constant: true inside, or outside, a range of rows, as rows are in time order."""

    def __init__(self, start: int, stop: int, is_inside: bool) -> None:
        self._start, self._stop, self._is_inside = start, stop, is_inside

    def constant(self, rows: Rows) -> bool | None:
        if not isinstance(rows, slice):
            return None
        if self._start <= rows.start and rows.stop <= self._stop:
            return self._is_inside
        return not self._is_inside if rows.stop <= self._start or rows.start >= self._stop else None

    def of(self, rows: Rows) -> Bools:
        if not isinstance(rows, slice):
            inside = (rows >= self._start) & (rows < self._stop)
            return inside if self._is_inside else ~inside
        result = np.full(rows.stop - rows.start, not self._is_inside)
        result[max(self._start - rows.start, 0) : max(self._stop - rows.start, 0)] = self._is_inside
        return result


class _RowTest(Condition):
    """A comparison that must be evaluated for each event."""

    def __init__(self, trace: Trace, derived: DerivedColumns, node: nodes.Node, cost: int) -> None:
        self._trace, self._derived, self._node, self.cost = trace, derived, node, cost

    def of(self, rows: Rows) -> Bools:
        columns = RowColumns(self._trace, self._derived, rows)
        return np.asarray(_Test(columns).of(self._node, len(columns.code)))


class _Inverse(Condition):
    """The opposite of a condition."""

    def __init__(self, part: Condition) -> None:
        self._part, self.cost = part, part.cost

    def of(self, rows: Rows) -> Bools:
        result = self._part.of(rows)
        return np.logical_not(result, out=result)


class _CombinedCondition(Condition):
    """Conditions joined by `and` or `or`; costly ones are evaluated only for rows that cheap ones leave undecided."""

    def __init__(self, parts: list[Condition], needs_all: bool) -> None:
        self.parts, self.needs_all = sorted(parts, key=lambda part: part.cost), needs_all
        self.cost = max(part.cost for part in parts)

    def of(self, rows: Rows) -> Bools:
        result: Bools | None = None
        for part in self.parts:
            known = part.constant(rows)
            if known is not None:
                if known is not self.needs_all:
                    return np.full(count_of(rows), known)
                continue
            if result is None:
                result = part.of(rows)
                continue
            if part.cost <= _CHEAP:
                self._merge(result, part.of(rows))
                continue
            open_ = np.flatnonzero(result if self.needs_all else ~result)
            if not len(open_):
                break
            if len(open_) < _SPARSE * len(result):
                picked = open_ + rows.start if isinstance(rows, slice) else rows[open_]
                result[open_] = part.of(picked)
            else:
                self._merge(result, part.of(rows))
        return np.full(count_of(rows), self.needs_all) if result is None else result

    def _merge(self, result: Bools, other: Bools) -> None:
        (np.logical_and if self.needs_all else np.logical_or)(result, other, out=result)


def count_of(rows: Rows) -> int:
    """Return the number of rows."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def compile_expression(node: nodes.Node, trace: Trace, derived: DerivedColumns) -> Condition:
    """Return the condition that evaluates a resolved expression over the events of one trace."""
    for pattern in nodes.patterns_in(node):
        pattern.refill()
    return _Compiler(trace, derived).condition(node)


class _Compiler:
    def __init__(self, trace: Trace, derived: DerivedColumns) -> None:
        self.trace, self.derived = trace, derived

    def condition(self, node: nodes.Node) -> Condition:
        needed = domains(node)
        if needed <= {Domain.CODE}:
            return _TableCondition(self.trace, Domain.CODE, table_of(node))
        if needed == {Domain.THREAD}:
            table = np.asarray(_Test(None, self.trace).of(node, len(self.trace.threads)))
            return _TableCondition(self.trace, Domain.THREAD, table)
        if isinstance(node, nodes.Not):
            return _Inverse(self.condition(node.part))
        if isinstance(node, nodes.And | nodes.Or):
            return self.combined(node)
        if (
            isinstance(node, nodes.Compare)
            and isinstance(node.left, nodes.EventField)
            and node.left.name == "time"
            and isinstance(node.right, nodes.Number)
        ):
            return self.time_range(node.sign, wrapped(node.right.value))
        if isinstance(node, nodes.TimeTest):
            return self.time_test(node)
        test = _RowTest(self.trace, self.derived, node, cost_of(node))
        needed_by = arguments_of(node)
        if not needed_by:
            return test
        # Without the argument the comparison is never true, so that only events that have it are tested.
        tables = [codes_in(self.trace, name) for name in needed_by]
        has_all = _TableCondition(self.trace, Domain.CODE, np.logical_and.reduce(tables))
        return _CombinedCondition([has_all, test], needs_all=True)

    def combined(self, node: nodes.And | nodes.Or) -> Condition:
        """Return the condition for an `and` or `or`; tables over codes are merged into one, and tables over threads."""
        parts: list[Condition] = []
        merge = np.logical_and if isinstance(node, nodes.And) else np.logical_or
        tables: dict[Domain, _TableCondition] = {}
        for part in self.flat(node):
            if isinstance(part, _TableCondition):
                known = tables.setdefault(part.domain, part)
                known.table = merge(known.table, part.table)
                if known is not part:
                    continue
            parts.append(part)
        return parts[0] if len(parts) == 1 else _CombinedCondition(parts, isinstance(node, nodes.And))

    def flat(self, node: nodes.And | nodes.Or) -> Iterator[Condition]:
        """Yield the compiled parts; an `and` in an `and`, or `or` in `or`, yields its parts, so that tables merge."""
        for part in map(self.condition, node.parts):
            if isinstance(part, _CombinedCondition) and part.needs_all is isinstance(node, nodes.And):
                yield from part.parts
            else:
                yield part

    def time_test(self, node: nodes.TimeTest) -> Condition:
        """Return the condition that compares the time with a moment of the trace, exact to the cycle."""
        try:
            cycles = parse_moment(node.moment.text, self.trace.time_axis)
        except UsageError as error:
            raise ExpressionError.of(node.moment, str(error)) from None
        return self.rows_by(node.sign, self.row_from(cycles), self.row_from(cycles + 1))

    def time_range(self, sign: str, value_ns: int) -> Condition:
        return self.rows_by(sign, self.row_at(value_ns), self.row_at(value_ns + 1))

    def rows_by(self, sign: str, start: int, stop: int) -> Condition:
        """Return the condition `time <sign> t`, where the events at time t are the rows from `start` up to `stop`."""
        n = len(self.trace.events)
        bounds = {
            "==": (start, stop), "!=": (start, stop), "<": (0, start), "<=": (0, stop), ">": (stop, n),
            ">=": (start, n),
        }  # fmt: skip
        return _TimeRange(*bounds[sign], is_inside=sign != "!=")

    def row_at(self, time_ns: int) -> int:
        """Return the row of the first event at or after a time in nanoseconds."""
        return self.row_from(self.trace.clock.cycles(time_ns))

    def row_from(self, cycles: int) -> int:
        """Return the row of the first event at or after a time in cycles."""
        limits = np.iinfo(np.int64)
        if cycles > limits.max:
            return len(self.trace.events)
        return int(np.searchsorted(self.trace.events.time_cycles, max(cycles, limits.min)))


def table_of(node: nodes.Node) -> Bools:
    """Return the results, by code, of a condition that depends only on class and event (`domains`), bool (32768,)."""
    return np.asarray(_Test(None).of(node, CODE_COUNT))


def domains(node: nodes.Node) -> set[Domain]:
    """Return the domains on which the value of a part of an expression depends: code (class and event), thread, row."""
    if isinstance(node, CodeTest):
        return {Domain.CODE}
    if isinstance(node, nodes.EventField):
        return {FIELDS[node.name].domain}
    if isinstance(node, nodes.Word | nodes.NamedArgument | nodes.TimeTest | nodes.Latency):
        return {Domain.ROW}
    return {domain for part in nodes.children(node) for domain in domains(part)}


def arguments_of(node: nodes.Node) -> set[str]:
    """Return the arguments that must be known for a comparison to have a result, without those in an `in` list."""
    if isinstance(node, nodes.NamedArgument):
        return {node.name}
    parts = (node.value,) if isinstance(node, nodes.In) else nodes.children(node)
    return {name for part in parts for name in arguments_of(part)}


def cost_of(node: nodes.Node) -> int:
    """Return the relative cost of evaluating a part of an expression for one event."""
    if isinstance(node, nodes.EventField):
        return FIELDS[node.name].cost
    if isinstance(node, nodes.Word):
        return _WORD_COST
    if isinstance(node, nodes.NamedArgument):
        return _ARGUMENT_COST
    if isinstance(node, nodes.Latency):
        return _LATENCY_COST
    return max((cost_of(part) for part in nodes.children(node)), default=0)


class _Test:
    """Evaluates conditions for many items at once.

    The items are the events of `columns`; if that is None, all threads of `trace`; if both are None, all codes.
    """

    def __init__(self, columns: RowColumns | None, trace: Trace | None = None) -> None:
        self.columns, self.trace = columns, trace

    def of(self, node: nodes.Node, count: int) -> Bools:
        """Return the result of a condition for each of `count` items, bool (count,)."""
        if isinstance(node, nodes.And | nodes.Or):
            parts = [self.of(part, count) for part in node.parts]
            return np.asarray((np.logical_and if isinstance(node, nodes.And) else np.logical_or).reduce(parts))
        if isinstance(node, nodes.Not):
            return ~self.of(node.part, count)
        if isinstance(node, CodeTest):
            return node.table
        if isinstance(node, nodes.PatternMatch):
            return self.texts(node.value, node.pattern.matches)
        if isinstance(node, nodes.In) and isinstance(node.items[0], nodes.Text):
            requested = {item.value for item in node.items if isinstance(item, nodes.Text)}
            return self.texts(node.value, requested.__contains__)
        if isinstance(node, nodes.Compare) and isinstance(node.right, nodes.Text):
            return self.texts(node.left, node.right.value.__eq__)
        if isinstance(node, nodes.IsKnown) and node.as_text:
            return self.texts(node.value, lambda _text: True)
        flag = node.value if isinstance(node, nodes.IsKnown) else node
        if isinstance(flag, nodes.EventField) and FIELDS[flag.name].kind is FieldKind.FLAG:
            assert self.columns is not None
            return self.columns.failed() if flag is node else self.columns.shows_failure()
        result = self.number(node.value)[1] if isinstance(node, nodes.IsKnown) else self.numbers(node)
        return result if isinstance(result, np.ndarray) and result.shape == (count,) else np.full(count, result)

    def numbers(self, node: nodes.Node) -> Bools | bool:
        """Return where a comparison of numbers holds, bool (n,) or one for all; False where a number is not known."""
        if isinstance(node, nodes.Compare):
            return self.compared(node.sign, self.number(node.left), self.number(node.right))
        assert isinstance(node, nodes.In)
        value = self.number(node.value)
        result: Bools | bool = False
        for item in node.items:
            result = np.logical_or(result, self.compared("==", value, self.number(item)))
        return result

    @staticmethod
    def compared(sign: str, left: Values, right: Values) -> Bools | bool:
        result = COMPARISONS[sign].columns(left[0], right[0])
        for known in (left[1], right[1]):
            if known is not True:
                result = np.logical_and(result, known)
        return result

    def texts(self, node: nodes.Node, test: Callable[[str], bool]) -> Bools:
        if isinstance(node, nodes.EventField) and FIELDS[node.name].domain is Domain.THREAD:
            trace = self.trace or (self.columns.trace if self.columns else None)
            assert trace is not None
            passes = thread_texts(node.name, trace, test)
            return passes if self.columns is None else passes[trace.events.thread[self.columns.rows]]
        assert self.columns is not None
        return self.columns.texts(node.name if isinstance(node, nodes.NamedArgument) else None, test)

    def number(self, node: nodes.Node) -> Values:
        if isinstance(node, nodes.Number):
            return wrapped(node.value), True
        if isinstance(node, nodes.EventField):
            if self.columns is not None:
                return self.columns.number(node.name)
            return codes_column(node.name) if self.trace is None else threads_column(node.name, self.trace)
        if isinstance(node, nodes.Arithmetic):
            return of_columns(ARITHMETIC[node.sign], self.number(node.left), self.number(node.right))
        if isinstance(node, nodes.Negative):
            return of_columns(ARITHMETIC["-"], (0, True), self.number(node.part))
        if isinstance(node, nodes.FunctionCall):
            return of_columns(FUNCTIONS[node.name], *(self.number(part) for part in node.arguments))
        assert self.columns is not None
        if isinstance(node, nodes.Word):
            return self.columns.word(node.index)
        if isinstance(node, nodes.Latency):
            values = self.columns.derived.latency_ns(self.columns.index)
            return values, values >= 0
        assert isinstance(node, nodes.NamedArgument)
        return self.columns.argument(node.name)
