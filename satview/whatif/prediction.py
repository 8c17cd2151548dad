"""Predicts the effect of changes: replays a trace unchanged, to see how well that fits, and with the changes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from satview.analysis.timing import Timing
from satview.answers.whatif import Compared
from satview.base.child import safe_children
from satview.base.safe_text import visible_line
from satview.events.spec import Release
from satview.events.user_events import UserEvent
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.store.trace import PREDICTED_CHANGES, PREDICTED_FROM, Trace
from satview.whatif.changes import Changed, ProgramChange, with_changes
from satview.whatif.fit import ActivityFigures, Key, ReplayFit, figures, fit_of, own_activities
from satview.whatif.program import programs_of
from satview.whatif.replay import Replay, replay
from satview.whatif.steps import Await, Programs, Step, TimedWait

_NEVER_NS: Final = 1 << 62
_LONG: Final = 200_000  # events; a shorter replay takes no longer than starting a process


@dataclass(frozen=True, slots=True)
class ReplayBasis:
    """What predictions for a trace start from: its programs, and how well their unchanged replay fits.

    Attributes:
        timing: Result of `read_timing`.
        seed: Seed of the costs of kernel calls.
        findings: Problems of the unchanged replay on the simulated kernel, which predictions do not report again.
    """

    programs: Programs
    fit: ReplayFit
    timing: Mapping[str, Timing] | None
    seed: int
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """Result of a replay with changes.

    Attributes:
        changes: The texts of the changes; empty = the replay is unchanged.
        compared: Recorded, replayed and predicted figures, one entry for each activity.
        findings: Problems on the simulated kernel, such as a deadlock, a sentence each.
        figures: Figures of the predicted activities.
    """

    changes: tuple[str, ...]
    compared: tuple[Compared, ...]
    findings: tuple[str, ...]
    figures: Mapping[Key, ActivityFigures]


def basis_of(trace: Trace, timing: Mapping[str, Timing] | None = None, seed: int = 1) -> ReplayBasis:
    """Replay a trace without changes; return its programs, and how well the replay fits the trace.

    Raises:
        UsageError: The trace cannot be replayed, or the timing does not fit it.
    """
    programs = programs_of(trace)
    with TemporaryDirectory(prefix="satview-") as folder:
        replayed = replay(programs, Path(folder) / "unchanged.kev", seed=seed)
        fit = fit_of((trace, programs.begin_cycles), _times(replayed), programs.length_ns, timing)
        replayed.trace.payloads.close()
    return ReplayBasis(programs, fit, timing, seed, replayed.findings)


def predict(
    basis: ReplayBasis, changes: Sequence[ProgramChange], out: Path | None = None, *, has_doubts: bool = True
) -> Prediction:
    """Return what a replay with changes predicts, replayed once more for each property that the trace leaves open.

    Args:
        basis: Basis of the trace.
        changes: The changes; if there are none, the trace is compared with its unchanged replay.
        out: File for the predicted trace; None = the trace is not kept.
        has_doubts: Replay also the variants that the trace leaves open, to find how much predictions depend on them.

    Raises:
        UsageError: A change does not fit the trace.
        CaptureError: The file cannot be written.
    """
    changed = with_changes(basis.programs, changes)
    if not changes and out is None:
        return Prediction((), _compared(basis.fit, {}, []), (), {})
    programs = list(_doubts(basis.programs)) if has_doubts and changes else []
    with TemporaryDirectory(prefix="satview-") as name, _parallel_doubts(basis, changes, len(programs)) as runs:
        folder = Path(name)
        findings, predicted = _predicted(basis, changed, out or folder / "predicted.kev")
        own = (entry for number, entry in reversed([*enumerate(programs)]) if not runs or runs[number].cancel())
        others = [_in_doubt(basis, changes, entry, folder) for entry in own]  # those with which nobody has begun
        others += [run.result() for run in runs if not run.cancelled()]
    findings = tuple(finding for finding in findings if finding not in basis.findings)
    return Prediction(changed.texts, _compared(basis.fit, predicted, others), findings, predicted)


def _in_doubt(
    basis: ReplayBasis, changes: Sequence[ProgramChange], programs: Programs, folder: Path
) -> dict[Key, ActivityFigures]:
    return _predicted(basis, with_changes(programs, changes), folder / "other.kev")[1]


@contextmanager
def _parallel_doubts(
    basis: ReplayBasis, changes: Sequence[ProgramChange], doubts: int
) -> Iterator[list[Future[dict[Key, ActivityFigures]]]]:
    """Start the replays of all variants in another process; yield their futures, none if that saves no time."""
    trace = basis.programs.trace
    if not doubts or (cpu_count() or 1) < 2 or len(trace.events) < _LONG or not trace.can_be_read_again:
        yield []
        return
    with processes(basis, 1) as pool:
        yield [pool.submit(_in_doubt_here, changes, number) for number in range(doubts)]


def _in_doubt_here(changes: Sequence[ProgramChange], number: int) -> dict[Key, ActivityFigures]:
    basis = basis_here()
    with TemporaryDirectory(prefix="satview-") as folder:
        return _in_doubt(basis, changes, next(islice(_doubts(basis.programs), number, None)), Path(folder))


def _predicted(basis: ReplayBasis, changed: Changed, path: Path) -> tuple[tuple[str, ...], dict[Key, ActivityFigures]]:
    """Write a replay to a file; return the problems of the simulated kernel, and the figures of the activities."""
    replayed = replay(changed.programs, path, changed.cpus, basis.seed, _attributes(basis, changed))
    bounds_ns = {key: known.recorded.deadline_ns for key, known in basis.fit.activities.items()}
    predicted = figures(*_times(replayed), basis.programs.length_ns, own_activities(basis.timing), bounds_ns)
    replayed.trace.payloads.close()
    return replayed.findings, predicted


def _doubts(programs: Programs) -> Iterator[Programs]:
    """Yield programs that fit the trace equally well; each differs in one property that no event shows.

    With fast events this property is the order of priorities. Up to 7.x, where the library builds locks from condition
    variables, it is whether a thread still waits at a condition variable after a change: in one variant all these waits
    last as recorded.
    """
    for which in range(max((len(thread.other_priorities) for thread in programs.threads), default=0)):
        yield replace(programs, threads=[
            replace(thread, priority=thread.other_priorities[which]) for thread in programs.threads
        ])  # fmt: skip
    condvars = {number for number, thing in enumerate(programs.things) if thing.kind == "CONDVAR"}

    def as_recorded(steps: list[Step]) -> list[Step]:
        return [TimedWait("CONDVAR", step.recorded_ns) if isinstance(step, Await) and step.thing in condvars else step
                for step in steps]  # fmt: skip

    if programs.trace.release is not Release.QNX_8 and condvars:
        yield replace(
            programs,
            threads=[replace(thread, steps=as_recorded(thread.steps)) for thread in programs.threads],
            messages=[replace(message, steps=as_recorded(message.steps)) if message.steps else message
                      for message in programs.messages],
            streams=[replace(stream, works=[*map(as_recorded, stream.works)]) for stream in programs.streams],
        )  # fmt: skip


def _times(replayed: Replay) -> tuple[Trace, int]:
    return replayed.trace, replayed.begin_cycles


def _attributes(basis: ReplayBasis, changed: Changed) -> tuple[tuple[str, str], ...]:
    text = "; ".join(changed.texts) or "nothing"
    name = basis.programs.trace.path.name
    return (PREDICTED_FROM, visible_line(name)), (PREDICTED_CHANGES, visible_line(text))


def _compared(
    fit: ReplayFit, predicted: Mapping[Key, ActivityFigures], others: Sequence[Mapping[Key, ActivityFigures]]
) -> tuple[Compared, ...]:
    out = []
    for key, fit_of_activity in fit.activities.items():
        runs = fit_of_activity.recorded, fit_of_activity.replayed, predicted.get(key)
        count, replayed_count, predicted_count = (figure.count if figure else 0 for figure in runs)
        median, replayed_median, predicted_median = (figure.median_ns if figure else -1 for figure in runs)
        p99, replayed_p99, predicted_p99 = (figure.p99_ns if figure else -1 for figure in runs)
        in_doubt = [predicted.get(key), *(other.get(key) for other in others)]
        median_ranges, p99_ranges = (
            (*(getattr(figure, name) for figure in runs[:2] if figure), _whole_range(in_doubt, name))
            for name in ("median_range_ns", "p99_range_ns")
        )
        out.append(Compared(fit_of_activity.recorded.name, (count, replayed_count, predicted_count),
                            (median, replayed_median, predicted_median), (p99, replayed_p99, predicted_p99),
                            median_ranges, p99_ranges))  # fmt: skip
    return tuple(out)


def _whole_range(in_doubt: Sequence[ActivityFigures | None], name: str) -> tuple[int, int]:
    """Return the smallest range that covers the ranges of several predictions; unbounded if one lacks the activity.

    Args:
        in_doubt: Figures of one activity in each prediction; None = the activity does not occur.
        name: Name of the range attribute.
    """
    ranges_ns = [(0, _NEVER_NS) if figure is None else getattr(figure, name) for figure in in_doubt]
    return min(low for low, _ in ranges_ns), max(high for _, high in ranges_ns)


# Processes that predict.


@dataclass(frozen=True, slots=True)
class _Reading:
    """Data from which another process rebuilds a basis: it reads the trace again instead of receiving the programs."""

    path: Path
    fit: ReplayFit
    timing: Mapping[str, Timing] | None
    seed: int
    described: Mapping[int, UserEvent]


_here: list[ReplayBasis] = []  # the basis of a process that predicts, built once for all predictions


@contextmanager
def processes(basis: ReplayBasis, count: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; each reads the trace once, after which `basis_here` returns its replay basis."""
    trace = basis.programs.trace
    reading = _Reading(trace.path, basis.fit, basis.timing, basis.seed, dict(trace.payloads.described))
    context = multiprocessing.get_context("spawn")  # not by fork: Arrow and Qt have threads
    with safe_children(), ProcessPoolExecutor(
        count, mp_context=context, initializer=_prepare, initargs=(reading,)
    ) as pool:  # fmt: skip
        yield pool


def _prepare(reading: _Reading) -> None:
    trace = open_trace(reading.path, None)
    if reading.described:
        describe_events(trace, reading.described)
    _here[:] = [ReplayBasis(programs_of(trace), reading.fit, reading.timing, reading.seed)]


def basis_here() -> ReplayBasis:
    """Return the replay basis of this process, which `processes` has started."""
    return _here[0]
