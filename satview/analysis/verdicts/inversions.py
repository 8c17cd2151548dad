"""Priority inversion: by the holder of a mutex directly, or through chains of holders and servers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import CALLS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS, PRIORITIES, STATES
from satview.analysis.verdicts.evidence import Evidence, groups, named
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.analysis.verdicts.words import of_whom, waited_for
from satview.base.safe_text import counted
from satview.linkage.blockers import REPLY, RWLOCKS, SEND, Blockers, blockers
from satview.linkage.mutexes import MUTEX
from satview.store.time_ranges import TimeRanges, overlaps

_MOST_STEPS: Final = 8  # waits in a chain
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Chains:
    """Chains of waits from one thread to another, and the ranges in which they hold; every column has shape (n,).

    Attributes:
        wait: int64, the wait at the beginning.
        thread: int64, the thread at the end.
        begin, end: int64, rows between which the chain holds.
        link: int64, the last wait of the chain: for an object that the last thread holds or serves.
        steps: int64, number of waits in the chain.
    """

    wait: _Ints
    thread: _Ints
    begin: _Ints
    end: _Ints
    link: _Ints
    steps: _Ints


@verdict_rule(
    "priority-inversion",
    meaning="A thread waits for one of lower priority, which a third one of a priority in between keeps from running.",
    question="Does a thread of low priority keep one of high priority waiting?",
    needs=(STATES, PRIORITIES),
    bounds=(CALLS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_us": (1000, "all that threads of a priority in between ran meanwhile, in one wait"),
    },
    proof="Wide events of the class KER_CALL show the owner of a mutex; of one in shared memory they show a part "
    "of the owner's pid only, and the source says which processes share it.",
)
def inversions(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return waits for a thread of lower priority that a thread of a priority in between prevented from running.

    Priorities come from wide events of threads, as each entered its state; without them there are no verdicts.
    Source: formula 6 of the reference.
    """
    blocked_by = blockers(evidence.trace)
    candidates = np.flatnonzero(blocked_by.thread > 0)
    waiting = blocked_by.waits
    least = limits.cycles("least_us")
    candidates = candidates[
        evidence.lengths(waiting.row[candidates], evidence.end_rows(waiting.end_row[candidates])) >= least
    ]
    high = np.zeros(len(blocked_by), np.int32)
    high[candidates] = evidence.derived.priority(waiting.row[candidates])
    candidates = candidates[high[candidates] > 0]
    if not len(candidates):
        return []
    parts = []
    end = evidence.end_rows(waiting.end_row[candidates])
    low, begin = (column[candidates].astype(np.int64) for column in (blocked_by.thread, waiting.row))
    chains = _Chains(candidates, low, begin, end, candidates, np.ones(len(candidates), np.int64))
    for _ in range(_MOST_STEPS):
        parts.append(_runs_in_between(evidence, chains, high, least))
        chains = _longer(chains, blocked_by, candidates, end)
        if not len(chains.wait):
            break
    columns = [np.concatenate([part[i] for part in parts]) for i in range(7)]
    return _verdicts(evidence, blocked_by, columns, least)


def _runs_in_between(
    evidence: Evidence, chains: _Chains, high: NDArray[np.int32], least: int,
) -> tuple[_Ints, ...]:  # fmt: skip
    """Return wait, last thread, last link, steps, run of the thread in between, its begin and end, one row per run."""
    ready = evidence.ready_of(chains.thread)
    chain_of, spans = overlaps(chains.thread, chains.begin, chains.end, ready.thread, ready.row, ready.end_row)
    begin, stop = (
        np.maximum(chains.begin[chain_of], ready.row[spans]),
        np.minimum(chains.end[chain_of], ready.end_row[spans]),
    )
    low, top = evidence.derived.priority(ready.row[spans]), high[chains.wait[chain_of]]
    # The threads in between are preempted too, so their runs may be short; only the sum must be long enough.
    keep = np.flatnonzero((evidence.lengths(begin, stop) >= least // 8) & (low > 0))
    chain_of, begin, stop, low, top = chain_of[keep], begin[keep], stop[keep], low[keep], top[keep]
    out: list[tuple[_Ints, ...]] = []
    for on_cpu in evidence.runs_in(begin, stop) if len(chain_of) else ():
        zeros = np.zeros(len(chain_of), np.int64)
        pair, run = overlaps(zeros, begin, stop, np.zeros(len(on_cpu), np.int64), on_cpu.row, on_cpu.end_row)
        middle = evidence.derived.priority(on_cpu.row[run])
        is_between = (middle > low[pair]) & (middle < top[pair])
        pair, run = pair[is_between], run[is_between]
        chain, row = chain_of[pair], on_cpu.row[run].astype(np.int64)
        out.append((chains.wait[chain], chains.thread[chain], chains.link[chain], chains.steps[chain], row,
                    np.maximum(begin[pair], row), np.minimum(stop[pair], on_cpu.end_row[run])))  # fmt: skip
    return tuple(np.concatenate([part[i] for part in out]) if out else np.empty(0, np.int64) for i in range(7))


def _longer(chains: _Chains, blocked_by: Blockers, candidates: NDArray[np.intp], end: _Ints) -> _Chains:
    """Return the chains extended by waits of their last threads."""
    waiting = blocked_by.waits
    rows = waiting.row[candidates].astype(np.int64)
    chain_of, spans = overlaps(chains.thread, chains.begin, chains.end, waiting.thread[candidates], rows, end)
    next_wait = candidates[spans]
    return _Chains(
        chains.wait[chain_of], blocked_by.thread[next_wait].astype(np.int64),
        np.maximum(chains.begin[chain_of], rows[spans]), np.minimum(chains.end[chain_of], end[spans]), next_wait,
        chains.steps[chain_of] + 1,
    )  # fmt: skip


def _verdicts(evidence: Evidence, blocked_by: Blockers, columns: list[_Ints], least: int) -> list[Verdict]:
    """Return one verdict for each pair of threads and object, about the wait in which most time was lost."""
    wait, low, link, steps, run, begin_row, end_row = columns
    begins, ends = evidence.times[begin_row], evidence.times[end_row]
    waiting, trace = blocked_by.waits, evidence.trace
    thread, what = waiting.thread, waiting.object
    verdicts = []
    for (high_row, low_row, _), positions in groups(thread[wait], low, what[link]):
        # Time in which several CPUs run threads in between counts once.
        waits = [positions[parts] for _, parts in groups(wait[positions])]  # in time order, being of one thread
        ranges = [TimeRanges.of(begins[parts], ends[parts]) for parts in waits]
        long = [(total, parts) for spans, parts in zip(ranges, waits, strict=True)
                if (total := int((spans.end - spans.start).sum())) >= least]  # fmt: skip
        if not long:
            continue
        total, parts = max(long, key=lambda kept: kept[0])
        begin = int(wait[parts[0]])
        runs = run[parts]
        middle = trace.events.thread[runs].astype(np.int64)
        between = evidence.most_of(middle, ends[parts] - begins[parts])
        start, stop = int(waiting.row[begin]), int(evidence.end_rows(waiting.end_row[[begin]])[0])
        span = int(evidence.times[start]), int(evidence.times[stop])
        name, object_text = evidence.name, waited_for(evidence, blocked_by, begin)
        ranked = partial(_ranked_by_run, evidence, runs, middle)
        is_one = len(between) == 1
        who = f"{ranked(between[0][0])} keeps" if is_one else f"{evidence.shares(between, ranked)} keep"
        cpus = trace.events.cpu[runs].astype(np.int64)
        taken = evidence.interrupts(begins[parts], ends[parts], cpus, least=total // 100)
        more = int(steps[parts[0]]) - 1
        chain = f" and so, {counted(more, 'step')} on, for {name(low_row)}" if more else ""
        times = [evidence.span_of_wait(waiting, int(wait[of_wait[0]])) for _, of_wait in long]
        again = evidence.again(times, span[0])
        held = _row_before(evidence, low_row, int(begin_row[parts[0]]))
        roles = {
            **dict.fromkeys(runs.tolist(), "preempts"),
            held: "holder, ready",
            start: "waits",
            stop: "goes on",
        }
        verdicts.append(evidence.verdict(
            Severity.ERROR,
            span, [high_row, low_row, *named(between)],
            [object_text],
            [start, held, *runs.tolist(), stop],
            (f"{_ranked(evidence, high_row, start)} waits {evidence.length_from(*span)} for {object_text}"
             f"{of_whom(evidence, blocked_by, begin)}"
             f"{chain}; "
             f"{who} {_ranked(evidence, low_row, held)} from running for {evidence.length(total)} of that"
             f"{f' ({taken} of it)' if taken else ''}{again}.",
             _remedy(evidence, blocked_by, begin, int(link[parts[0]]), _priority(evidence, start))),
            int(blocked_by.certainty[np.array([begin, *link[parts]])].min()), times, roles,
        ))  # fmt: skip
    return verdicts


def _row_before(evidence: Evidence, thread: int, row: int) -> int:
    """Return the last state event of a thread at or before an event, -1 for none."""
    states = evidence.trace.states.of(thread)
    states = states[states <= row]
    return int(states[-1]) if len(states) else -1


def _ranked_by_run(evidence: Evidence, runs: _Ints, threads: _Ints, thread: int) -> str:
    """Return the name of a thread with the priority of the first of its runs."""
    return _ranked(evidence, thread, int(runs[threads == thread][0]))


def _ranked(evidence: Evidence, thread: int, row: int) -> str:
    """Return the name of a thread with the priority that an event of its state shows."""
    return f"{evidence.name(thread)} (priority {_priority(evidence, row)})"


def _remedy(evidence: Evidence, blocked_by: Blockers, start_wait: int, link: int, priority: int) -> str:
    """Return the remedy for an inversion, depending on the object of the last wait of its chain."""
    value, holder = int(blocked_by.waits.value[link]), evidence.name(int(blocked_by.thread[link]))
    what = waited_for(evidence, blocked_by, link)
    if value == MUTEX:
        return (f"Look where {what} is made without priority inheritance (PTHREAD_PRIO_NONE), and give it the protocol "
                f"PTHREAD_PRIO_INHERIT: {holder} then runs at priority {priority} while it holds it. Or give it a "
                "ceiling not below the priority of any thread that locks it.")  # fmt: skip
    if value in RWLOCKS:
        return f"A read/write lock passes no priority on: use a mutex with PTHREAD_PRIO_INHERIT in place of {what}."
    if value in (SEND, REPLY):
        servers = dict.fromkeys(evidence.name(int(blocked_by.thread[wait])) for wait in (start_wait, link))
        return (f"Create the channels of {' and '.join(servers)} without _NTO_CHF_FIXED_PRIORITY, so that each server "
                f"runs at the priority of its client ({priority}) while it serves; a thread that it hands a message "
                "to needs that priority too.")  # fmt: skip
    return f"Let {holder} run at priority {priority} while others wait for it."


def _priority(evidence: Evidence, row: int) -> int:
    """Return the priority that a thread was logged with in an event of its state, -1 if that is not known."""
    return int(evidence.derived.priority(np.array([row]))[0]) if row >= 0 else -1
