"""Tables of who had the CPUs and who waited for one: states, runs, CPUs, activations, losses."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.activations import activations
from satview.analysis.times.basis import Basis
from satview.analysis.times.cpu_times import CutRuns, cut_runs, migrations, switches
from satview.analysis.times.scope import Scope
from satview.analysis.times.state_times import state_spans
from satview.analysis.times.whole_intervals import runs_are_cut, states_are_cut
from satview.answers.frames import Made, Texts
from satview.events.states import IDLE, KERNEL_CALL, VALUE_COUNT
from satview.store.losses import EVERY_CPU, losses
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace
from satview.tables.cells import Ints, event_rows, state_names, whole_scope
from satview.timeline.state_lanes import run_slices

_KINDS: Final = ("unknown", "thread", "idle", "kernel call", "interrupt")
_INTERRUPTED: Final = 4


def state(trace: Trace) -> Made:
    """Return the table `state`: one row for each interval of a state of a thread."""
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
    names = state_names()
    return {
        "thread": thread,
        "state": Texts(value, names),
        "state_before": Texts(before, names),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
        "event": event,
        "is_cut": is_cut,
    }


def run(trace: Trace) -> Made:
    """Return the table `run`: one row for each interval in which a CPU ran a thread."""
    scope = whole_scope(trace)
    times = cut_runs(scope)
    runs, at = times.runs, np.flatnonzero(times.runs.thread > 0)
    event = _first_events(trace, times, at)
    priority = np.full(len(at), -1, np.int64)
    logged = np.flatnonzero(event >= 0)
    priority[logged] = scope.basis.derived.priority(event[logged])
    is_migration, from_cpu = _moves(scope, times)
    return {
        "cpu": runs.cpu[at],
        "thread": runs.thread[at],
        "start_cycles": runs.start[at],
        "end_cycles": runs.end[at],
        "length_cycles": (runs.end - runs.start)[at],
        "cpu_cycles": times.net[at],
        "interrupted_cycles": times.interrupted[at],
        "is_idle": scope.basis.is_idle[runs.thread[at]],
        "is_start": times.begins[at],
        "is_switch": (times.begins & switches(runs))[at],
        "is_migration": is_migration[at],
        "from_cpu": from_cpu[at],
        "priority": priority,
        "event": event,
        "is_cut": runs_are_cut(trace, runs.cpu[at], runs.start[at], runs.end[at]),
    }


def _first_events(trace: Trace, times: CutRuns, at: NDArray[np.intp]) -> Ints:
    """Return the events RUNNING that begin runs, -1 for runs that none begins: the opening dump reported them."""
    rows, _ = run_slices(trace)
    order = np.argsort(trace.events.cpu[rows], kind="stable")
    rows = rows[order]
    cpu, time, out = trace.events.cpu[rows], trace.events.time_cycles[rows], np.full(len(at), -1, np.int64)
    for number in range(trace.cpu_count):
        first, last = np.searchsorted(cpu, (number, number + 1))
        mine = np.flatnonzero(times.runs.cpu[at] == number)
        start = times.runs.start[at[mine]]
        position = np.searchsorted(time[first:last], start, side="right") - 1 + first
        fits = position >= first
        fits[fits] = time[position[fits]] == start[fits]
        out[mine[fits]] = rows[position[fits]]
    return out


def _moves(scope: Scope, times: CutRuns) -> tuple[NDArray[np.bool_], Ints]:
    """Return which runs begin on another CPU than the thread's run before, and on which that was; -1 = not sure."""
    runs, moved = times.runs, migrations(scope)
    is_migration, from_cpu = np.zeros(len(runs.cpu), np.bool_), np.full(len(runs.cpu), -1, np.int64)
    for number in range(scope.trace.cpu_count):
        first, last = np.searchsorted(runs.cpu, (number, number + 1))
        mine = np.flatnonzero(moved.to_cpu == number)
        position = np.searchsorted(runs.start[first:last], moved.time_cycles[mine]) + first
        is_migration[position], from_cpu[position] = True, moved.from_cpu[mine]
    return is_migration, from_cpu


def cpu_state(trace: Trace) -> Made:
    """Return the table `cpu_state`: one row for each interval of a CPU: thread, idle, kernel call, interrupt."""
    times = cut_runs(whole_scope(trace))
    basis = Basis(trace)
    parts = [_pieces(times, cpu, handled) for cpu, handled in enumerate(basis.interrupts)]
    cpu, kind, thread, start, end = (np.concatenate([part[i] for part in parts]) for i in range(5))
    return {
        "cpu": cpu,
        "kind": Texts(kind, _KINDS),
        "thread": thread,
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
    }


def _pieces(times: CutRuns, cpu: int, handled: TimeRanges) -> tuple[NDArray[Any], ...]:
    """Return CPU, kind, thread, start and end of the intervals of a CPU: its runs, cut where it handled interrupts."""
    runs = times.runs
    first, last = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    start, bound = runs.start[first:last], int(runs.end[last - 1])
    edges = np.concatenate((start, handled.start, handled.end))
    edges = np.unique(edges[(edges >= start[0]) & (edges < bound)])
    position = np.searchsorted(start, edges, side="right") - 1 + first
    number = np.searchsorted(handled.start, edges, side="right")
    is_handled = edges < np.append(np.iinfo(np.int64).min, handled.end)[number]
    value = runs.value[position]
    kind = np.where(times.is_busy[position], 1, 0).astype(np.uint8)
    kind[value == IDLE], kind[value == KERNEL_CALL] = 2, 3
    kind[is_handled] = _INTERRUPTED
    end = np.append(edges[1:], bound)
    return np.full(len(edges), cpu, np.uint8), kind, runs.thread[position], edges, end


def activation(trace: Trace) -> Made:
    """Return the table `activation`: one row for each activation of a thread."""
    found = activations(whole_scope(trace))
    return {
        "thread": found.thread,
        "start_cycles": found.start,
        "end_cycles": found.end,
        "response_cycles": found.end - found.start,
        "running_cycles": found.running_cycles,
        "period_cycles": found.period_cycles,
        "event": event_rows(found.event),
        "is_cut": found.is_cut,
    }


def loss(trace: Trace) -> Made:
    """Return the table `loss`: one row for each time in which events were lost."""
    lost = losses(trace)
    return {
        "cpu": np.where(lost[:, 2] == EVERY_CPU, -1, lost[:, 2]),
        "start_cycles": lost[:, 0].copy(),
        "end_cycles": lost[:, 1].copy(),
        "length_cycles": lost[:, 1] - lost[:, 0],
    }
