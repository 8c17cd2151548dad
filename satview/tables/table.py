"""The tables of a trace by name, as `Table`s, and arguments of many events as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from satview.analysis import needs as need
from satview.analysis.activities import Timing
from satview.analysis.doctor import ANALYSES, diagnosis, may_be_more
from satview.analysis.statistics import client_server
from satview.analysis.times.basis import Basis, Scope, scope_of
from satview.analysis.times.cpu_times import CutRuns, cut_runs, migrations, switches
from satview.analysis.times.message_times import interrupts, kernel_calls
from satview.analysis.times.state_times import activations, runs_are_cut, state_spans, states_are_cut
from satview.answers.frames import ColumnsByName, Frames, Partial, Texts, Values, arrow_array, html_rows
from satview.answers.table import CERTAINTIES, Table, names_in_sql
from satview.base.errors import UsageError
from satview.base.plugins import required
from satview.base.safe_text import visible_line
from satview.base.time import Cycles, TimeWindow
from satview.events.catalogue import Catalogue
from satview.events.layout import PayloadPart, arguments_of, one_spelling, text_name
from satview.events.spec import Show
from satview.events.states import IDLE, KERNEL_CALL, NAMES_BY_VALUE, VALUE_COUNT
from satview.events.wire import CODE_COUNT
from satview.linkage.blockers import blockers
from satview.linkage.links import OPEN, comm_words, rows_of_codes
from satview.linkage.messages import SENDS, pulses
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import EVENTS_AT_ONCE, Arguments, Piece, Rows, all_arguments, argument_pieces, taught
from satview.store.axis import ends_of_files, file_window, files_of
from satview.store.mark_file import stored_marks
from satview.store.time_ranges import EVERY_CPU, TimeRanges, idle_threads, losses
from satview.store.trace import Trace
from satview.tables.schema import SAFE_FROM_LOSSES, SCHEMAS, unknown_table, views
from satview.timeline.state_lanes import run_slices

if TYPE_CHECKING:
    import pyarrow as pa


# Arguments of many events as columns by name, for all releases, modes and widths.


_SHOWN_ROWS: Final = 10
_OWN: Final = ("event", "time_cycles", "time_ns", "cpu", "thread")
_CLASSES: Final = {"KER_CALL": "call", "KER_EXIT": "exit", "USREVENT": "user"}  # shorter names in names of tables


def kinds(trace: Trace) -> dict[str, tuple[int, ...]]:
    """Return the codes of the events in each argument table of a trace, by the table's name; cached with the trace.

    There is a table for each kind of event that the release of the trace defines or that the trace contains. The
    table's name is class and name of the event in lower case, such as `thread_thready`; `call_msg_sendv` and
    `exit_msg_sendv` for kernel calls, `user_100` for user events. The 64-bit form of an event has the same table.
    """
    return trace.cached("tables.kinds", _kinds)


def _kinds(trace: Trace) -> dict[str, tuple[int, ...]]:
    return kinds_of(trace.catalogue, np.flatnonzero(trace.code_counts).tolist())


def kinds_of(book: Catalogue, more: Iterable[int] = ()) -> dict[str, tuple[int, ...]]:
    """Return the codes in each argument table, as `kinds` does, for all events of a catalogue, and more codes."""
    known, name_of = dict[str, list[int]](), dict[tuple[str, str], str]()
    for code in sorted({*book.codes(), *more}):
        spec = book.spec(code)
        event = (spec.class_name, spec.name.removesuffix("_64") if spec.is_64bit else spec.name)
        if event not in name_of:
            name = plain = _kind_name(*event)
            while name in known or name in SCHEMAS or name in views():
                name = f"{plain}_{len(known)}"
            name_of[event] = name
        known.setdefault(name_of[event], []).append(code)
    return {name: tuple(codes) for name, codes in known.items()}


def _kind_name(class_name: str, name: str) -> str:
    shown_class = _CLASSES.get(class_name, class_name)
    name = name.removeprefix("EVENT ") if shown_class == "user" else name
    plain = re.sub(r"[^a-z0-9]+", "_", f"{shown_class}_{name}".lower()).strip("_")
    return plain if plain[:1].isalpha() else f"event_{plain}"


def kind_rows(trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the word `table` and a description for each argument table that has rows, for `show tables`."""
    for name, codes in kinds(trace).items():
        if count := int(trace.code_counts[list(codes)].sum()):
            spec = trace.catalogue.spec(codes[0])
            yield name, "table", f"{count:,} events {spec.class_name} {spec.name}, arguments as columns"


def argument_table(trace: Trace, name: str, selected: Rows | None = None) -> ArgumentTable:
    """Return a table of the events with the given name, which has their arguments as columns.

    Args:
        trace: The trace.
        name: Name as for `Trace.iter_events`: `MSG_SENDV`, `KER_EXIT/MSG_SENDV`, `SND_MESSAGE`; the name of a kernel
            call alone means its entries, in both widths. Or the name of an argument table, such as `call_msg_sendv`.
        selected: (n,), ascending rows of the event table to which the result is restricted; None = all.

    Raises:
        UsageError: No event of the release has that name.
    """
    book = trace.catalogue
    codes = book.find(name)
    if codes:
        entries = tuple(code for code in codes if book.class_name(code) == "KER_CALL")
        return ArgumentTable(trace, name, entries or codes, selected)
    if name.lower() in kinds(trace):
        return ArgumentTable(trace, name, kinds(trace)[name.lower()], selected)
    near = ", ".join(book.suggest(name))
    raise UsageError(f"{name[:40]!r} is not an event of {book.release}{f'; there are {near}' if near else ''}")


def _listed_arguments(trace: Trace, codes: Sequence[int]) -> Iterator[PayloadPart]:
    """Yield the arguments that events with these codes can have; with several files, by the release of each file."""
    axis = files_of(trace)
    files = [(trace, codes)] if axis is None else [
        (file.trace, np.flatnonzero(np.isin(file.codes, codes)).tolist()) for file in axis.parts
    ]  # fmt: skip
    for own, own_codes in files:
        for code in own_codes:
            parts = arguments_of(own.release, code, taught(own))
            for part in parts:
                yield part
                if part.texts:
                    yield replace(part, name=text_name(part, parts), words=0, show=Show.STRING, texts=())


def _as_columns(arguments: Arguments) -> Arguments:
    """Return the arguments under column names that are unique even if case is ignored, as in SQL."""
    named: Arguments = {}
    taken = {*_OWN}
    for argument, values in arguments.items():
        name = plain = f"arg_{argument}" if argument.lower() in _OWN else argument
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        named[name] = values
    return named


class ArgumentTable(Frames):
    """Events of one kind and their arguments; every column has shape (n,).

        sent = trace.arguments("MSG_SENDV")
        sent.columns                       # event, time_cycles, time_ns, cpu, thread, coid, ...
        sent["coid"], sent.known("coid")   # int64 (n,), and bool (n,): the event has it

    Attributes:
        columns: Row of the event table, times, CPU and thread as in the table `event`; then the arguments. An argument
            with one of the first names gets the prefix `arg_`.
    """

    def __init__(self, trace: Trace, name: str, codes: Sequence[int], selected: Rows | None = None) -> None:
        self._trace, self.name, self._codes = trace, name, codes
        rows: Rows = rows_of_codes(trace, *codes)
        self._rows = rows if selected is None else np.intersect1d(rows, selected, assume_unique=True)
        arguments = all_arguments(trace, self._rows)
        spelt = {one_spelling(argument) for argument in arguments}
        for part in _listed_arguments(trace, codes):
            if one_spelling(part.name) not in spelt:
                empty = np.zeros(len(self._rows), np.int64)
                arguments[part.name] = (
                    (empty.astype(np.uint32), ("",)) if part.is_text else empty, np.zeros(len(self._rows), np.bool_)
                )  # fmt: skip
        self._arguments = _as_columns(arguments)
        self._columns: tuple[str, ...] = (*_OWN, *self._arguments)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<ArgumentTable {visible_line(self.name)}: {len(self):,} events, {', '.join(self._arguments)}>"

    def _repr_html_(self) -> str:
        """Return the first rows as HTML for notebooks."""
        shown = ArgumentTable(self._trace, self.name, self._codes, self._rows[:_SHOWN_ROWS])
        parts = [shown._or_none(name) for name in shown.columns]
        return html_rows(shown.columns, zip(*parts, strict=True), f"{len(self):,} events")

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column as a numpy array, (n,).

        Arguments are int64, or objects for texts; the other columns have integer types, as in the event table.
        Decimal arguments are signed, others unsigned; 64-bit values from 2^63 on are negative, with the same bits.
        Arguments that an event does not have are 0 or empty text; `known` tells which.

        Raises:
            UsageError: There is no such column.
        """
        values = self._values(name)
        return values if isinstance(values, np.ndarray) else values.numpy()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return self._columns

    def known(self, name: str) -> NDArray[np.bool_]:
        """Return for each event whether it has an argument, bool (n,); UsageError if there is no such argument."""
        if name in _OWN:
            return np.ones(len(self), np.bool_)
        self._values(name)
        return self._arguments[name][1]

    def arrow(self) -> pa.Table:
        """Return the columns as an Arrow table; arguments that an event does not have are null.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        arrays = {
            name: arrow_array(self._values(name), is_nullable=name not in _OWN, known=self.known(name))
            for name in self.columns
        }
        return required("pyarrow").table(arrays)

    def _or_none(self, name: str) -> list[Any]:
        """Return the values of a column, None where the event does not have the argument."""
        pairs = zip(self[name].tolist(), self.known(name).tolist(), strict=True)
        return [value if is_known else None for value, is_known in pairs]

    def _values(self, name: str) -> Values:
        events, rows = self._trace.events, self._rows
        if name in self._arguments:
            values = self._arguments[name][0]
            return Texts(*values) if isinstance(values, tuple) else values
        if name not in _OWN:
            raise UsageError(f"{self.name} has no argument {name[:40]!r}; it has {', '.join(self._arguments)}")
        if name == "event":
            return rows
        if name == "time_ns":
            return self._trace.clock.ns_array(events.time_cycles[rows])
        column: NDArray[Any] = getattr(events, name)[rows]
        return column


# ---- the table `argument`, with one argument per row -----------------------------------------------------------------


def argument_chunks(trace: Trace, rows: Rows | None = None) -> Iterator[ColumnsByName]:
    """Yield the columns of the table `argument`, except those in nanoseconds, for one chunk of events after another.

    Args:
        trace: The trace.
        rows: (n,), rows of the events, ascending; None = all.
    """
    book = kinds(trace)
    kind_of_code = np.zeros(CODE_COUNT, np.uint16)
    for number, codes in enumerate(book.values()):
        kind_of_code[list(codes)] = number
    number_of: dict[str, int] = {}
    count = len(trace.events) if rows is None else len(rows)
    for start in range(0, max(count, 1), EVENTS_AT_ONCE):
        stop = min(start + EVENTS_AT_ONCE, count)
        part = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        columns = _one_a_row(list(chain.from_iterable(argument_pieces(trace, part))), len(part), number_of)
        event = np.repeat(part.astype(np.uint32), columns.pop("counts"))
        yield {
            "event": event,
            "time_cycles": trace.events.time_cycles[event],
            "kind": Texts(kind_of_code.take(trace.events.code[event]), tuple(book)),
            **columns,
        }  # fmt: skip


def _one_a_row(pieces: list[Piece], events: int, number_of: dict[str, int]) -> dict[str, Any]:
    """Return columns with one argument per row, in order of events, and `counts`, the number of rows of each event."""
    counts = np.zeros(events, np.int64)
    for piece in pieces:
        counts[piece.at] += 1
    row_of_event = np.cumsum(counts) - counts
    size = int(counts.sum())
    name, number = np.zeros(size, np.uint32), np.zeros(size, np.int64)
    is_text, text, text_number = np.zeros(size, np.bool_), np.zeros(size, np.uint32), {"": 0}  # numbers have no text
    for piece in pieces:
        rows = row_of_event[piece.at]
        row_of_event[piece.at] += 1
        name[rows] = number_of.setdefault(piece.name, len(number_of))
        if piece.texts is None:
            number[rows] = piece.values
        else:
            numbers = [text_number.setdefault(word, len(text_number)) for word in piece.texts]
            text[rows], is_text[rows] = np.array(numbers, np.uint32)[piece.values], True
    return {
        "counts": counts,
        "argument": Texts(name, tuple(number_of)),
        "number": Partial(number, ~is_text),
        "text": Partial(Texts(text, tuple(text_number)), is_text),
    }


def argument_columns(trace: Trace, rows: Rows | None = None) -> ColumnsByName:
    """Return all columns of the table `argument` at once, except those in nanoseconds; see `argument_chunks`."""
    chunks = [*argument_chunks(trace, rows)]
    return {name: _joined([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _joined(parts: Sequence[Values]) -> Values:
    """Return the parts of a column joined into one column, in order."""
    partial = [part for part in parts if isinstance(part, Partial)]
    if partial:
        return Partial(
            cast("NDArray[Any] | Texts", _joined([part.values for part in partial])),
            np.concatenate([part.known for part in partial]),
        )
    texts = [part for part in parts if isinstance(part, Texts)]
    if not texts:
        return np.concatenate([cast("NDArray[Any]", part) for part in parts])
    number_of: dict[str, int] = {}
    numbers = [
        np.array([number_of.setdefault(text, len(number_of)) for text in part.texts], np.uint32)[part.code]
        for part in texts
    ]
    return Texts(np.concatenate(numbers), tuple(number_of))


# Shared by the functions that build tables: names of events, times of event rows.


Ints = NDArray[np.int64]


def whole_scope(trace: Trace) -> Scope:
    """Return the scope for analyses of the whole trace."""
    return scope_of(trace, None, None, Basis(trace), None)


def event_names(trace: Trace) -> tuple[str, ...]:
    """Return the event names of all 32,768 codes, empty for codes not in the trace; cached with the trace."""
    return trace.cached("tables.event_names", _event_names)


def _event_names(trace: Trace) -> tuple[str, ...]:
    names = [""] * CODE_COUNT
    for code in np.flatnonzero(trace.code_counts).tolist():
        names[code] = trace.catalogue.name(code)
    return tuple(names)


def event_rows(rows: NDArray[np.unsignedinteger[Any]]) -> Ints:
    """Return rows of the event table as int64 (n,), with -1 for `NO_EVENT` and `OPEN`."""
    return np.where(rows >= OPEN, -1, rows.astype(np.int64))


def times_of(trace: Trace, rows: Ints) -> Cycles:
    """Return the times of event rows, in cycles, int64 (n,); -1 where the row is -1."""
    out = np.full(len(rows), -1, np.int64)
    known = rows >= 0
    out[known] = trace.events.time_cycles[rows[known]]
    return out


def column(values: Sequence[int]) -> Ints:
    """Return numbers as an array, int64 (n,)."""
    return np.array(values, np.int64)


# Tables of calls, pulses, interrupts, wake-ups and waits.


def call(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `call`, which has one row for each kernel call."""
    calls, events = kernel_calls(whole_scope(trace)), trace.events
    return {
        "event": calls.row,
        "exit_event": calls.exit_row,
        "cpu": events.cpu[calls.row],
        "thread": events.thread[calls.row].astype(np.int64),
        "name": Texts(events.code[calls.row], event_names(trace)),
        "start_cycles": events.time_cycles[calls.row],
        "end_cycles": times_of(trace, calls.exit_row),
        "length_cycles": calls.cycles,
        "running_cycles": calls.running_cycles,
        "is_interrupted": calls.is_interrupted,
        "is_failed": calls.is_failed,
        "errno": np.where(calls.is_failed, calls.error, -1),
    }


def pulse(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `pulse`, which has one row for each pulse that was sent."""
    events = trace.events
    rows = rows_of_codes(trace, *SENDS) if trace.pairs is None else np.empty(0, np.uint32)
    table = pulses(trace)
    link = table.begun_by(rows)
    received, certainty = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.uint8)
    known = link >= 0
    received[known], certainty[known] = table.to_row[link[known]], table.certainty[link[known]]
    queued, receiver = times_of(trace, received), np.full(len(rows), -1, np.int64)
    queued[known] -= events.time_cycles[rows[known]]
    receiver[known] = events.thread[received[known]]
    scoid, pid = comm_words(trace, rows) if len(rows) else (rows, rows)
    return {
        "event": rows.astype(np.int64),
        "name": Texts(events.code[rows], event_names(trace)),
        "cpu": events.cpu[rows],
        "thread": events.thread[rows].astype(np.int64),
        "scoid": scoid.astype(np.int64),
        "server_pid": pid.view(np.int32).astype(np.int64),
        "time_cycles": events.time_cycles[rows],
        "receive_event": received,
        "receiver": np.where(receiver > 0, receiver, -1),
        "queued_cycles": queued,
        "certainty": Texts(certainty, CERTAINTIES),
    }


def interrupt(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `interrupt`, which has one row for each interrupt."""
    handled, events = interrupts(whole_scope(trace)), trace.events
    return {
        "event": handled.row,
        "exit_event": handled.exit_row,
        "handler_event": handled.handler_row,
        "cpu": events.cpu[handled.row],
        "thread": events.thread[handled.row].astype(np.int64),
        "vector": handled.vector,
        "start_cycles": events.time_cycles[handled.row],
        "end_cycles": times_of(trace, handled.exit_row),
        "length_cycles": handled.cycles,
        "handler_entry_cycles": handled.latency_cycles,
    }


def wake_up(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `wake_up`, which has one row for each wake-up of a thread."""
    table, events = wake_ups(trace), trace.events
    return {
        "cause_event": table.from_row.astype(np.int64),
        "event": table.to_row.astype(np.int64),
        "waker": events.thread[table.from_row].astype(np.int64),
        "thread": events.thread[table.to_row].astype(np.int64),
        "cpu": events.cpu[table.from_row],
        "cause_cycles": events.time_cycles[table.from_row],
        "time_cycles": events.time_cycles[table.to_row],
        "certainty": Texts(table.certainty, CERTAINTIES),
    }


def wait(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `wait`, which has one row for each wait of a thread."""
    all_blockers = blockers(trace)
    waits = all_blockers.waits
    start, end_row = trace.events.time_cycles[waits.row], event_rows(waits.end_row)
    end = times_of(trace, end_row)
    return {
        "thread": waits.thread.astype(np.int64),
        "state": Texts(waits.value, NAMES_BY_VALUE),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": np.where(end_row >= 0, end, ends_of_files(trace, waits.row)) - start,
        "event": waits.row.astype(np.int64),
        "end_event": end_row,
        "call_event": event_rows(waits.call_row),
        "object": np.where(waits.has_object, waits.object, -1),
        "blocker": all_blockers.thread.astype(np.int64),
        "blocker_pid": all_blockers.pid.astype(np.int64),
        "certainty": Texts(all_blockers.certainty, CERTAINTIES),
    }


# Tables of states, runs, CPUs, activations and losses.


_KINDS: Final = ("unknown", "thread", "idle", "kernel call", "interrupt")
_INTERRUPTED: Final = 4


def state(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `state`, which has one row for each interval of a state of a thread."""
    parts: list[tuple[NDArray[Any], ...]] = []
    for spans in state_spans(whole_scope(trace)):
        before = np.append(np.uint8(VALUE_COUNT - 1), spans.value[:-1])
        before[np.append(True, spans.thread[1:] != spans.thread[:-1])] = VALUE_COUNT - 1  # has no name
        parts.append((spans.thread.astype(np.int64), spans.value, before, spans.start, spans.end,
                      event_rows(spans.event), states_are_cut(trace, spans)))  # fmt: skip
    types = (np.int64, np.uint8, np.uint8, np.int64, np.int64, np.int64, np.bool_)
    thread, value, before, start, end, event, is_cut = (
        np.concatenate([np.empty(0, kind), *(part[i] for part in parts)]) for i, kind in enumerate(types)
    )
    return {
        "thread": thread,
        "state": Texts(value, NAMES_BY_VALUE),
        "state_before": Texts(before, NAMES_BY_VALUE),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
        "event": event,
        "is_cut": is_cut,
    }


def run(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `run`, which has one row for each interval in which a CPU ran a thread."""
    scope = whole_scope(trace)
    times = cut_runs(scope)
    runs, known_runs = times.runs, np.flatnonzero(times.runs.thread > 0)
    event = _first_events(trace, times, known_runs)
    priority = np.full(len(known_runs), -1, np.int64)
    logged = np.flatnonzero(event >= 0)
    priority[logged] = scope.basis.derived.priority(event[logged])
    is_migration, from_cpu = _moves(scope, times)
    return {
        "cpu": runs.cpu[known_runs],
        "thread": runs.thread[known_runs],
        "start_cycles": runs.start[known_runs],
        "end_cycles": runs.end[known_runs],
        "length_cycles": (runs.end - runs.start)[known_runs],
        "cpu_cycles": times.net[known_runs],
        "interrupted_cycles": times.interrupted[known_runs],
        "is_idle": scope.basis.is_idle[runs.thread[known_runs]],
        "is_start": times.begins[known_runs],
        "is_switch": (times.begins & switches(runs))[known_runs],
        "is_migration": is_migration[known_runs],
        "from_cpu": from_cpu[known_runs],
        "priority": priority,
        "event": event,
        "is_cut": runs_are_cut(trace, runs.cpu[known_runs], runs.start[known_runs], runs.end[known_runs]),
    }


def _first_events(trace: Trace, times: CutRuns, run_positions: NDArray[np.intp]) -> Ints:
    """Return the RUNNING event that begins each of some runs, int64 (n,); -1 = only the opening dump has it."""
    rows, _ = run_slices(trace)
    order = np.argsort(trace.events.cpu[rows], kind="stable")
    rows = rows[order]
    cpu, time, out = trace.events.cpu[rows], trace.events.time_cycles[rows], np.full(len(run_positions), -1, np.int64)
    for number in range(trace.cpu_count):
        low, high = np.searchsorted(cpu, (number, number + 1))
        of_cpu = np.flatnonzero(times.runs.cpu[run_positions] == number)
        start = times.runs.start[run_positions[of_cpu]]
        position = np.searchsorted(time[low:high], start, side="right") - 1 + low
        fits = position >= low
        fits[fits] = time[position[fits]] == start[fits]
        out[of_cpu[fits]] = rows[position[fits]]
    return out


def _moves(scope: Scope, times: CutRuns) -> tuple[NDArray[np.bool_], Ints]:
    """Return which runs began on another CPU than the thread's run before, and the CPU of that run (-1 = not known)."""
    runs, moved = times.runs, migrations(scope)
    is_migration, from_cpu = np.zeros(len(runs.cpu), np.bool_), np.full(len(runs.cpu), -1, np.int64)
    for number in range(scope.trace.cpu_count):
        low, high = np.searchsorted(runs.cpu, (number, number + 1))
        of_cpu = np.flatnonzero(moved.to_cpu == number)
        position = np.searchsorted(runs.start[low:high], moved.time_cycles[of_cpu]) + low
        is_migration[position], from_cpu[position] = True, moved.from_cpu[of_cpu]
    return is_migration, from_cpu


def cpu_state(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `cpu_state`: one row per interval of a CPU's runs, calls and interrupts."""
    times = cut_runs(whole_scope(trace))
    basis = Basis(trace)
    parts = [_pieces(times, cpu, handled, file_window(trace, cpu, 0)) for cpu, handled in enumerate(basis.interrupts)]
    cpu, kind, thread, start, end = (np.concatenate([part[i] for part in parts]) for i in range(5))
    return {
        "cpu": cpu,
        "kind": Texts(kind, _KINDS),
        "thread": thread,
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
    }


def _pieces(times: CutRuns, cpu: int, handled: TimeRanges, window: TimeWindow) -> tuple[NDArray[Any], ...]:
    """Return a CPU's runs, split at interrupts and cut at `window`: CPU, kind, thread, start, end, (n,) each."""
    runs = times.runs
    low, high = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    start, bound = runs.start[low:high], int(runs.end[high - 1])
    edges = np.concatenate((start, handled.start, handled.end))
    edges = np.unique(edges[(edges >= start[0]) & (edges < bound)])
    position = np.searchsorted(start, edges, side="right") - 1 + low
    number = np.searchsorted(handled.start, edges, side="right")
    is_handled = edges < np.append(np.iinfo(np.int64).min, handled.end)[number]
    value = runs.value[position]
    kind = np.where(times.is_busy[position], 1, 0).astype(np.uint8)
    kind[value == IDLE], kind[value == KERNEL_CALL] = 2, 3
    kind[is_handled] = _INTERRUPTED
    begin, end = np.maximum(edges, window.start), np.minimum(np.append(edges[1:], bound), window.end)
    inside = np.flatnonzero(begin < end)
    thread = runs.thread[position]
    return np.full(len(inside), cpu, np.uint8), kind[inside], thread[inside], begin[inside], end[inside]


def activation(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `activation`, which has one row for each activation of a thread."""
    table = activations(whole_scope(trace))
    return {
        "thread": table.thread,
        "start_cycles": table.start,
        "end_cycles": table.end,
        "response_cycles": table.end - table.start,
        "running_cycles": table.running_cycles,
        "period_cycles": table.period_cycles,
        "event": event_rows(table.event),
        "is_cut": table.is_cut,
    }


def loss(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `loss`, which has one row for each range of time in which events were lost."""
    lost = losses(trace)
    return {
        "cpu": np.where(lost[:, 2] == EVERY_CPU, -1, lost[:, 2]),
        "start_cycles": lost[:, 0].copy(),
        "end_cycles": lost[:, 1].copy(),
        "length_cycles": lost[:, 1] - lost[:, 0],
    }


Builder = Callable[[Trace], ColumnsByName]


def _event(trace: Trace) -> ColumnsByName:
    events, book = trace.events, trace.catalogue
    return {
        "event": np.arange(len(events), dtype=np.uint32),
        "time_cycles": events.time_cycles,
        "cpu": events.cpu,
        "thread": events.thread,
        "code": events.code,
        "class": Texts(book.class_index_of_code.take(events.code), tuple(kind.name for kind in book.classes)),
        "name": Texts(events.code, event_names(trace)),
    }


def _thread(trace: Trace) -> ColumnsByName:
    threads = trace.threads
    rows = np.arange(len(threads), dtype=np.int64)
    return {
        "thread": rows,
        "pid": threads.pid,
        "tid": threads.tid,
        "process": threads.process,
        "name": Texts.of(threads.names),
        "label": Texts.of([trace.thread_name(row) for row in rows.tolist()]),
        "is_idle": idle_threads(trace),
    }


def _process(trace: Trace) -> ColumnsByName:
    processes = trace.processes
    rows = np.arange(len(processes), dtype=np.int64)
    return {
        "process": rows,
        "pid": processes.pid,
        "parent_pid": processes.parent_pid,
        "name": Texts.of(processes.names),
        "label": Texts.of([trace.process_name(row) for row in rows.tolist()]),
        "created_cycles": processes.created_cycles,
        "destroyed_cycles": processes.destroyed_cycles,
    }


def _cpu(trace: Trace) -> ColumnsByName:
    numbers = range(trace.cpu_count)
    known = {cpu.number: cpu for cpu in trace.system.cpus} if trace.system else {}
    return {
        "cpu": np.arange(trace.cpu_count, dtype=np.uint8),
        "label": Texts.of([trace.cpu_title(number) for number in numbers]),
        "model": Texts.of([known[number].name if number in known else "" for number in numbers]),
        "speed_mhz": np.array([known[n].speed_mhz if n in known else 0 for n in numbers], np.int64),
    }


def _mark(trace: Trace) -> ColumnsByName:
    marks = stored_marks(trace.path, trace.window)
    return {
        "start_cycles": column([mark.start_cycles for mark in marks]),
        "end_cycles": column([mark.end_cycles for mark in marks]),
        "text": Texts.of([mark.text for mark in marks]),
    }


def _client_time(trace: Trace) -> ColumnsByName:
    times = client_server(whole_scope(trace))
    return {
        "thread": np.arange(len(trace.threads), dtype=np.int64),
        "self_cycles": times.self_cycles,
        "imposed_cycles": times.imposed_cycles,
        "own_cycles": times.own_cycles,
        "caused_cycles": times.caused_cycles,
    }


def _server_time(trace: Trace) -> ColumnsByName:
    imposed = client_server(whole_scope(trace)).imposed
    return {"client": imposed.client, "server": imposed.server, "imposed_cycles": imposed.cycles}


def _trace(trace: Trace) -> ColumnsByName:
    window = trace.window
    return {
        "file": Texts.of([trace.path.name]),
        "format": Texts.of([trace.format]),
        "release": Texts.of([str(trace.release)]),
        "start_cycles": column([window.start]),
        "end_cycles": column([window.end]),
        "length_cycles": column([window.length]),
        "cycles_per_s": column([trace.clock.cycles_per_s]),
        "cpus": column([trace.cpu_count]),
        "events": column([len(trace.events)]),
    }


BUILDERS: Final[dict[str, Builder]] = {
    "event": _event,
    "argument": argument_columns,
    "state": state,
    "run": run,
    "cpu_state": cpu_state,
    "call": call,
    "pulse": pulse,
    "interrupt": interrupt,
    "wake_up": wake_up,
    "wait": wait,
    "activation": activation,
    "thread": _thread,
    "process": _process,
    "cpu": _cpu,
    "loss": loss,
    "mark": _mark,
    "client_time": _client_time,
    "server_time": _server_time,
    "trace": _trace,
}
# By table, the keys of the analyses whose ratings say how far its rows can be trusted.
_ANALYSES_OF: Final = {
    "call": ("calls",), "pulse": ("pulses",), "interrupt": ("interrupts",), "wake_up": ("wake-ups",),
    "wait": ("states",), "state": ("states",), "run": ("cpu",), "cpu_state": ("cpu",), "activation": ("states",),
    **dict.fromkeys(("client_time", "server_time"), ("messages", "states")),
}  # fmt: skip
NOT_CACHED: Final = frozenset({"mark", "argument"})  # marks may change any time; arguments are larger than the trace


def table(trace: Trace, name: str, timing: Mapping[str, Timing] | None = None) -> Table:
    """Return a table of `SCHEMAS` by name, as docs/tables.md describes it; its columns are made when first requested.

    They are cached with the trace. `timing` is from `analysis.activities.read_timing`, for the tables about activities.
    Raises UsageError if there is no such table, or the timing does not fit the trace.
    """
    if name.lower() in kinds(trace):
        raise UsageError(f"{name[:40]} has the events of one kind: trace.arguments({name[:40]!r}) returns it")
    if name not in SCHEMAS:
        raise UsageError(unknown_table(name, kinds(trace)))
    if (timed := SCHEMAS[name].timed) is not None:
        return timed(trace, timing or {})
    if (answer := SCHEMAS[name].answer) is not None:
        return answer(trace)
    build = BUILDERS[name]
    return table_of(
        trace,
        name,
        build(trace) if name in NOT_CACHED else trace.cached(f"tables.{name}", partial(_frozen, build=build)),
    )


def why_empty(trace: Trace, name: str, timing: Mapping[str, Timing] | None = None) -> tuple[str, ...]:
    """Return why the trace cannot show rows of an empty table, `state: the trace has no states of threads; ...`."""
    if name in SCHEMAS:
        return tuple(f"{name}: {why}" for why in table(trace, name, timing).missing)
    missing = need.missing_class(trace, np.array(kinds(trace).get(name, ()), np.int64))
    return (f"{name}: {missing}; capture them",) if missing else ()


def why_not_all(trace: Trace, names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence if rows of some tables may be missing, as events were lost or damaged; else nothing."""
    why = "" if SAFE_FROM_LOSSES.issuperset(names) else may_be_more(trace)
    return (why,) if why else ()


def table_of(trace: Trace, name: str, columns: ColumnsByName) -> Table:
    """Return the table `name` made of its columns by SQL name (except those in nanoseconds), with `cannot_tell` set."""
    question = SCHEMAS[name].question
    values = {column.name: columns[names_in_sql(column)[0]] for column in question.columns}
    rows = Table(question, trace, values, place="event" if "event" in values else "")
    keys = _ANALYSES_OF.get(name, ())
    if len(rows):
        ratings = (diagnosis(trace, key, is_quick=True) for key in keys)
        # What makes an answer a bound has remedies of several lines, which the doctor lists.
        lacks = (rating.trust.reason if rating.trust.mark.is_answer else rating.advice for rating in ratings)
    else:  # what only makes an answer a bound does not explain that there is none
        lacks = (needed.advice(trace) for key in keys for needed in ANALYSES[key].needs)
    rows.cannot_tell = next(filter(None, lacks), "")
    return rows


def _frozen(trace: Trace, build: Builder) -> ColumnsByName:
    columns = build(trace)
    for values in columns.values():
        assert not isinstance(values, Partial)  # such tables are too large to be cached
        (values.code if isinstance(values, Texts) else values).setflags(write=False)
    return columns
