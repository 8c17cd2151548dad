"""Latencies, from a pulse or interrupt until a thread answers: a table of all, and their distribution by source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import deficits
from satview.analysis.needs import INTERRUPT_CAUSES, KERNEL, PULSES, STATES
from satview.analysis.thread_names import are_named
from satview.analysis.times.basis import percentiles_by
from satview.analysis.times.message_times import Durations
from satview.answers.frames import Texts
from satview.answers.table import (
    CERTAINTIES,
    Column,
    Kind,
    Known,
    Question,
    Table,
    known_by_certainty,
    known_where,
    least_known,
)
from satview.base.errors import UsageError
from satview.base.safe_text import listed
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.calls import TIMER_EVENT, interrupt_numbers
from satview.linkage.latencies import Latencies, deliveries, latencies
from satview.linkage.links import LinkTable, is_whole
from satview.linkage.messages import PULSE_RECEIPT, pulses
from satview.linkage.wake_ups import wake_ups
from satview.store.axis import ends_of_files, last_rows
from satview.store.time_ranges import losses
from satview.store.trace import Trace

_MOST_NUMBERS: Final = 8  # of interrupts that a message names
_Ints = NDArray[np.int64]
_KnownValues = NDArray[np.uint8]
_UNKNOWN, _INTERRUPT, _TIMER, _CALL = range(4)  # sorts of sources
_REASONS: Final = {
    Known.AT_LEAST: "not over when the trace ends, or its cause or its receipt is not known",
    Known.INFERRED: "it follows from the order of events; no event names both ends",
    Known.GUESS: "one of several possibilities that the trace does not distinguish",
    Known.UNKNOWN: "events are missing in between, or those of its end were not captured",
}
_FIGURE_REASONS: Final = {
    Known.AT_LEAST: "some of these times were not over when the trace ended, are not known, or are lost",
    Known.INFERRED: "some of these times follow from the order of events; no event names both ends",
    Known.GUESS: "some of these times are one of several possibilities that the trace does not distinguish",
    Known.ESTIMATE: "some of these times are not known, or are lost",
    Known.UNKNOWN: "none of these times is known",
}


def _leg(name: str, title: str, meaning: str) -> Column:
    return Column(name, Kind.DURATION, meaning, title, is_nullable=True, reasons=_REASONS)


def _moment(name: str, meaning: str) -> Column:
    return Column(name, Kind.EVENT, meaning, is_nullable=True)


_LEG_COLUMNS: Final = (
    _leg("handler_entry", "To handler", "from the cause to the entry of the handler"),
    _leg("handler", "Handler", "from entry to exit of the handler"),
    _leg("delivery", "To pulse", "from there until the pulse is sent"),
    _leg("ready", "To READY", "from there until the thread is ready"),
    _leg("scheduling", "To RUNNING", "from there until it runs"),
    _leg("receipt", "To receipt", "from there until it has received the pulse"),
    _leg("total", "Total", "from what causes it to the last moment that is known"),
)
LEGS: Final = tuple(column.name for column in _LEG_COLUMNS)  # the last is the sum of the others
_SOURCE: Final = Column("source", Kind.TEXT, "the interrupt, the timer, or the thread that sends the pulse", "Source",
                        sql="")  # fmt: skip
_THREAD: Final = Column("thread", Kind.THREAD, "the thread that receives it, or is made ready by it", "Thread",
                        is_nullable=True)  # fmt: skip
QUESTION: Final = Question(
    "latencies",
    "Latencies",
    "Which pulses and interrupts waited longest for the thread that answers?",
    (
        _moment("cause_event", "the event that causes it: interrupt, timer expiry, or kernel call"),
        _moment("handler_event", "the entry of the handler"),
        _moment("handler_exit_event", "its exit"),
        _moment("pulse_event", "the event that sends the pulse"),
        _moment("ready_event", "the event by which the thread becomes ready"),
        _moment("running_event", "the event by which it runs first"),
        _moment("receive_event", "the event `REC_PULSE`"),
        _SOURCE,
        _THREAD,
        Column("vector", Kind.NUMBER, "number of the interrupt", is_nullable=True),
        Column("start", Kind.TIME, "the first known moment of it", "Start"),
        *_LEG_COLUMNS,
        Column("certainty", Kind.TEXT, "how sure the least certain of its links is", "Certainty"),
        Column("event", Kind.EVENT, "the event that begins it", "Event", sql=""),
    ),
    "total",
    "No pulse and no interrupt fits.",
)


def _figure(name: str, title: str, meaning: str) -> Column:
    return Column(name, Kind.DURATION, meaning, title, is_nullable=True, reasons=_FIGURE_REASONS)


FIGURES: Final = Question(
    "latency_figures",
    "Latencies",
    "How are the latencies of each source and thread distributed?",
    (
        _SOURCE,
        _THREAD,
        Column("leg", Kind.TEXT, "part of the way; legs that occur add up to the total", "Leg"),
        Column("count", Kind.COUNT, "how often it occurs", "Count",
               reasons={Known.AT_LEAST: _FIGURE_REASONS[Known.ESTIMATE]}),
        _figure("min", "Shortest", "the shortest of these times"),
        _figure("median", "Median", "half of these times are not longer"),
        _figure("p95", "95 %", "95 % of these times are not longer"),
        _figure("p99", "99 %", "99 % of these times are not longer"),
        _figure("max", "Longest", "the longest of these times"),
        Column("event", Kind.EVENT, "the event that begins the longest one"),
    ),
    "",
    "No pulse and no interrupt fits.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LatencyFilter:
    """Conditions that select latencies; a latency must meet all of them.

    Attributes:
        interrupt: Number of the interrupt, as its entry or delivery shows it; None = any source.
        thread: Part of the label of the answering thread, its pid or `PID:TID`; empty = any.
        window: Range in which latencies begin; None = at any time.
    """

    interrupt: int | None = None
    thread: str = ""
    window: TimeWindow | None = None


def latency_table(trace: Trace, requested: LatencyFilter | None = None) -> Table:
    """Return the latencies that pass a filter, in time order.

    Args:
        trace: The events.
        requested: The filter; None = all.
    """
    links = latencies(trace)
    legs = trace.cached("answers.latency_legs", _legs)
    wake_up = links.first_row
    table = Table(
        QUESTION,
        trace,
        {
            "cause_event": links.cause_row,
            "handler_event": links.handler_row,
            "handler_exit_event": links.handler_exit_row,
            "pulse_event": links.pulse_row,
            "ready_event": links.ready_row,
            "running_event": links.running_row,
            "receive_event": links.received_row,
            "source": lambda: _sources(trace, links),
            "thread": links.thread,
            "vector": links.number,
            "start": lambda: trace.events.time_cycles[wake_up],
            **{name: legs[name][0] for name in LEGS},
            "certainty": Texts(links.certainty, CERTAINTIES),
            "event": wake_up,
        },
        known={name: legs[name][1] for name in LEGS},
        cannot_tell=deficits(trace, KERNEL, PULSES, STATES, INTERRUPT_CAUSES),
    )
    return table if requested is None else table.rows(_matching(trace, links, requested))


def refuse_unknown_interrupt(trace: Trace, number: int) -> None:
    """Raise an error if a trace has interrupts, but none with the given number.

    Raises:
        UsageError: The trace has other interrupts only, which the text names.
    """
    known = np.unique(interrupt_numbers(trace)).tolist()
    if known and number not in known:
        present = listed([f"0x{one:x}" for one in known], _MOST_NUMBERS)
        raise UsageError(f"the trace has no interrupt 0x{number:x}; it has {present}")


def _matching(trace: Trace, links: Latencies, requested: LatencyFilter) -> NDArray[np.bool_]:
    passes = np.ones(len(links), np.bool_)
    if requested.interrupt is not None:
        passes &= links.number == requested.interrupt
    if requested.thread.strip():
        passes &= are_named(trace, requested.thread, links.thread)
    if requested.window is not None:
        part, wake_up = trace.rows_between(requested.window), links.first_row
        passes &= (wake_up >= part.start) & (wake_up < part.stop)
    return passes


def _sources(trace: Trace, links: Latencies) -> Texts:
    """Return the source of each latency as text; order of codes: unknown, interrupts by number, timer, threads."""
    known = np.flatnonzero(links.cause_row >= 0)
    code = trace.events.code[links.cause_row[known]]
    kind, value = np.zeros(len(links), np.int64), np.zeros(len(links), np.int64)
    kind[known] = np.where(code == TIMER_EVENT, _TIMER, _CALL)
    kind[known[code >> wire.CLASS_SHIFT == wire.WireClass.INT]] = _INTERRUPT
    is_interrupt = kind == _INTERRUPT
    value[is_interrupt] = links.number[is_interrupt]
    called = np.flatnonzero(kind == _CALL)
    value[called] = trace.events.thread[links.cause_row[called]]
    keys, code_of_row = np.unique(kind << 33 | value, return_inverse=True)
    names = {_UNKNOWN: lambda _: "unknown", _INTERRUPT: lambda number: f"interrupt 0x{number:x}",
             _TIMER: lambda _: "timer", _CALL: trace.thread_name}  # fmt: skip
    texts = tuple(names[key >> 33](key & (1 << 33) - 1) for key in keys.tolist())
    return Texts(code_of_row.reshape(-1).astype(np.uint32), texts)


def _legs(trace: Trace) -> dict[str, tuple[_Ints, _KnownValues]]:
    """Return by leg (section of a latency) the cycles of all latencies, -1 = none, and their `Known`; (n,) each.

    A leg that is not over when the trace ends is counted up to the end, as a lower bound; it is unknown if events are
    missing until then. A total is a lower bound if one of its legs is not known.
    """
    links = latencies(trace)
    legs = {name: (getattr(links, f"{name}_cycles").copy(), _of_links(trace, links, name)) for name in LEGS}
    for cycles, known in legs.values():
        known[cycles < 0] = Known.EXACT
    is_pulse, is_ready, is_running, is_received = (
        rows >= 0 for rows in (links.pulse_row, links.ready_row, links.running_row, links.received_row)
    )
    has_receipts = bool(trace.code_counts[PULSE_RECEIPT])
    last = links.last_row
    is_clear = np.zeros(len(links), np.bool_)
    candidates = np.flatnonzero((is_pulse & ~is_received) | (is_ready & ~is_running))
    is_clear[candidates] = is_whole(trace, last[candidates], last_rows(trace, last[candidates]))
    rest = ends_of_files(trace, last) - trace.events.time_cycles[last] if len(links) else last
    waits_to_run = is_ready & ~is_running & ~is_received
    waits_to_receive = is_pulse & ~is_received & ~is_ready
    is_open = is_clear & (waits_to_run | (waits_to_receive & has_receipts))
    for name, waits in (("scheduling", waits_to_run), ("receipt", waits_to_receive)):
        cycles, known = legs[name]
        cycles[waits & is_open] = rest[waits & is_open]
        known[waits] = np.where(is_open[waits], Known.AT_LEAST, Known.UNKNOWN)
    legs["receipt"][1][is_pulse & ~is_received & is_running] = Known.UNKNOWN
    is_guess = is_received & ~is_ready & (legs["receipt"][1] == Known.GUESS)
    for name in ("ready", "scheduling"):  # the thread may have waited for the pulse: what it did before is lost
        legs[name][1][is_guess] = Known.UNKNOWN
    legs["delivery"][1][links.cause_row < 0] = Known.UNKNOWN
    total, known = legs["total"]
    total[is_open] = np.maximum(total[is_open], 0) + rest[is_open]
    is_part = np.any([leg[1] == Known.UNKNOWN for name, leg in legs.items() if name != "total"], axis=0) | is_open
    bound = np.where(total >= 0, Known.AT_LEAST, Known.UNKNOWN).astype(np.uint8)
    known[:] = np.where(is_part, least_known(known, bound), known)
    return legs


def _of_links(trace: Trace, links: Latencies, leg: str) -> _KnownValues:
    """Return the `Known` of one leg of each latency: that of the links the leg is computed from, else exact."""
    exact = np.zeros(len(links), np.uint8)
    is_pulse = links.pulse_row >= 0
    by_handler = known_where(links.handler_row >= 0, Known.INFERRED)
    match leg:
        case "handler_entry" | "handler":
            return by_handler
        case "delivery":
            return least_known(by_handler, _of_ends(deliveries(trace), links.pulse_row))
        case "ready":
            wake_up = _of_ends(wake_ups(trace), links.ready_row)
            return np.where(is_pulse, wake_up, least_known(wake_up, by_handler)).astype(np.uint8)
        case "receipt":
            return _of_ends(pulses(trace), links.received_row)
        case "total":
            return known_by_certainty(links.certainty)
    return exact


def _of_ends(table: LinkTable, rows: _Ints) -> _KnownValues:
    """Return the `Known` of the link that ends at each event, uint8 (n,); exact where no link ends."""
    known, ends = np.zeros(len(rows), np.uint8), np.flatnonzero(rows >= 0)
    link = table.ended_by(rows[ends].astype(np.uint32))
    known[ends[link >= 0]] = known_by_certainty(table.certainty[link[link >= 0]])
    return known


def latency_figures(trace: Trace, table: Table) -> Table:
    """Return the distribution of the legs of latencies: one row for each source, thread and leg that occurs there.

    All durations count, exact or not; a figure has the `Known` of its least known duration. If some are not known or
    lost, a figure is a lower bound or an estimate.
    """
    links, rows = latencies(trace), table.positions
    legs = trace.cached("answers.latency_legs", _legs)
    source = _sources(trace, links)
    keys = np.stack((source.code[rows].astype(np.int64), links.thread[rows]))
    groups, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    cycles, known = (np.concatenate([legs[name][part][rows] for name in LEGS]) for part in (0, 1))
    key = np.concatenate([group * len(LEGS) + number for number in range(len(LEGS))])
    wake_up, count = np.tile(links.first_row[rows], len(LEGS)), groups.shape[1] * len(LEGS)
    times = Durations.of(key, cycles, wake_up, count)
    is_time = cycles >= 0
    shares = percentiles_by(key[is_time], cycles[is_time], count, (0.5, 0.95, 0.99))
    worst = np.zeros(count, np.uint8)
    for value in (Known.INFERRED, Known.AT_LEAST, Known.GUESS):  # ascending doubt
        worst[np.unique(key[is_time & (known == value)])] = value
    lacks, is_lossy = np.zeros(count, np.bool_), bool(len(losses(trace)))
    lacks[np.unique(key[known == Known.UNKNOWN])] = True
    seen = np.flatnonzero(times.count + lacks)
    none, is_partial, worst = times.count[seen] == 0, lacks[seen] | is_lossy, worst[seen]

    def known_of(partial: Known) -> _KnownValues:
        return np.where(none, Known.UNKNOWN, least_known(worst, known_where(is_partial, partial))).astype(np.uint8)

    estimate, longest = known_of(Known.ESTIMATE), known_of(Known.AT_LEAST)
    values = {"min": times.least_cycles, "median": shares[0], "p95": shares[1], "p99": shares[2],
              "max": times.most_cycles}  # fmt: skip
    return Table(
        FIGURES,
        trace,
        {
            "source": Texts(groups[0][seen // len(LEGS)].astype(np.uint32), source.texts),
            "thread": groups[1][seen // len(LEGS)],
            "leg": Texts((seen % len(LEGS)).astype(np.uint8), tuple(name.replace("_", "-") for name in LEGS)),
            "count": times.count[seen],
            **{name: np.where(none, -1, value[seen]) for name, value in values.items()},
            "event": times.longest[seen],
        },
        known={name: longest if name == "max" else estimate for name in values}
        | {"count": known_where(is_partial, Known.AT_LEAST)},
        events={"max": times.longest[seen]},
        cannot_tell=table.cannot_tell,
    )
