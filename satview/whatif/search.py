"""Searches for the smallest change that keeps all deadlines, and for the work whose reduction helps most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import cpu_count
from typing import Final

from satview.analysis.activities import activity_named
from satview.answers.whatif import Candidate, Leverage
from satview.base.errors import UsageError
from satview.events.wire import MAX_CPUS
from satview.whatif import steps as steps_of
from satview.whatif.changes import parse_changes, with_changes
from satview.whatif.fit import ActivityFigures, Key, ReplayFit
from satview.whatif.prediction import ReplayBasis, basis_here, predict, processes
from satview.whatif.steps import Programs

MOST_CANDIDATES: Final = 24
_SAVES: Final = 0.1  # share of the work that is saved
_LEAST_SHARE: Final = 0.001  # of the trace: processes that work less cannot save much
_MORE_THREADS: Final = 4  # that a pool gets at most


def candidates(programs: Programs, asked: str) -> list[str]:
    """Return the changes that a search tries, the smallest first.

    Args:
        programs: Programs of the trace.
        asked: `cpus`, `TARGET:priority` or `TARGET:threads`.

    Raises:
        UsageError: `asked` is none of these, or names a target that the trace does not have.
    """
    target, _, key = asked.rpartition(":")
    if key == "cpus" and not target:
        return [f"cpus={count}" for count in range(1, min(programs.cpus, MAX_CPUS) + 1)]
    if key == "priority" and target:
        with_changes(programs, parse_changes([f"{target}:priority=10"]))  # raises an error if the target is unknown
        used = {thread.priority for thread in programs.threads} | {stream.priority for stream in programs.streams}
        levels = sorted({level for own in used if own > 0 for level in (own, own + 1) if level <= 255} | {1})
        step = -(-len(levels) // MOST_CANDIDATES)
        return [f"{target}:priority={level}" for level in levels[::step]]
    if key == "threads" and target:
        changed = with_changes(programs, parse_changes([f"{target}:threads=1000"])).programs
        own = len(programs.threads) - (len(changed.threads) - 1000)
        return [f"{target}:threads={count}" for count in range(1, min(own + _MORE_THREADS, MOST_CANDIDATES) + 1)]
    raise UsageError(f"--search {asked[:60]!r} is not cpus, TARGET:priority or TARGET:threads")


def search(basis: ReplayBasis, asked: str) -> list[Candidate]:
    """Return the candidates, smallest first, with whether all deadlines hold; replays run in parallel processes.

    Raises:
        UsageError: There is nothing to search, or no activity has a deadline.
    """
    texts = candidates(basis.programs, asked)
    if not any(judged.recorded.deadline_ns > 0 for judged in basis.fit.activities.values()):
        raise UsageError(
            "no activity has a deadline: nothing in the trace is regular; give some with --timing FILE.toml"
        )
    judged = zip(texts, _predictions(basis, texts), strict=True)
    return [_judged(basis.fit, text, figures) for text, figures in judged]


def _judged(fit: ReplayFit, text: str, figures: Mapping[Key, ActivityFigures] | str) -> Candidate:
    if isinstance(figures, str):
        return Candidate(text, "failed", 0, figures, 0, (0.0, 0.0))
    # An activity that never ends in the prediction misses its deadline, too.
    bound = [(key, fit_of_activity.recorded) for key, fit_of_activity in fit.activities.items()
             if fit_of_activity.recorded.deadline_ns > 0 and not fit_of_activity.recorded.is_own]  # fmt: skip
    margins = []
    for key, recorded in bound:
        figure = figures.get(key)
        longest = figure.longest_ns if figure is not None else 2 * recorded.deadline_ns
        misses = (
            sum((figure.misses, max(0, recorded.count - figure.count - 1))) if figure is not None else recorded.count
        )
        margins.append(
            ((recorded.deadline_ns - longest) / recorded.deadline_ns, recorded.deadline_ns - longest, misses, key)
        )
    _, margin_ns, _, key = min(margins)
    misses = sum(entry[2] for entry in margins)
    tightest = fit.activities[key]
    return Candidate(text, "missed" if misses else "holds", misses, tightest.recorded.name, margin_ns,
                     (tightest.median_error, tightest.p99_error))  # fmt: skip


def sensitivity(basis: ReplayBasis, activity: str) -> list[Leverage]:
    """Return, for each process with much work, how an activity changes if this process does a tenth less work.

    Raises:
        UsageError: No activity, or several, have the name.
    """
    known = basis.fit.activities
    key = list(known)[activity_named(activity, [(known[key].recorded.name, key[0]) for key in known])]
    saved: dict[str, int] = {}
    for process, work_ns in _work(basis.programs):
        saved[process] = saved.get(process, 0) + int(work_ns * _SAVES)
    least = basis.programs.length_ns * _LEAST_SHARE * _SAVES
    names = sorted((name for name, ns in saved.items() if ns >= least), key=lambda name: -saved[name])[:MOST_CANDIDATES]
    unchanged = basis.fit.activities[key].replayed
    if unchanged is None:
        raise UsageError(f"{activity}: it never comes in the unchanged replay, so that nothing can be said")
    out = []
    for name, figures in zip(
        names, _predictions(basis, [f"{name}:speed={1 / (1 - _SAVES)}" for name in names]), strict=True
    ):
        figure = figures.get(key) if not isinstance(figures, str) else None
        if figure is not None:
            out.append(Leverage(name, saved[name], unchanged.mean_ns - figure.mean_ns,
                                unchanged.p99_ns - figure.p99_ns, figure.count))  # fmt: skip
    return out


def _work(programs: Programs) -> Iterator[tuple[str, int]]:
    """Yield (process, work in ns) for each piece of work in a trace; work for a message belongs to its server."""
    names = {thread.pid: thread.short_process for thread in programs.threads}
    for thread in programs.threads:
        yield thread.short_process, _sum_of(thread.steps)
    for message in programs.messages:
        if message.pid in names:
            yield names[message.pid], _sum_of(message.steps or ())
    for stream in programs.streams:
        if stream.pid in names:
            yield names[stream.pid], sum(map(_sum_of, stream.works))


def _sum_of(steps: Sequence[steps_of.Step]) -> int:
    return sum(step.ns for step in steps if isinstance(step, steps_of.Work))


def _predictions(basis: ReplayBasis, texts: Sequence[str]) -> list[Mapping[Key, ActivityFigures] | str]:
    """Return for each change the predicted figures, or the reason why the change is impossible."""
    jobs = min(len(texts), cpu_count() or 1)
    if jobs <= 1:
        return [_figures_of(basis, text) for text in texts]
    with processes(basis, jobs) as pool:
        return list(pool.map(_predict_here, texts))


def _predict_here(text: str) -> Mapping[Key, ActivityFigures] | str:
    return _figures_of(basis_here(), text)


def _figures_of(basis: ReplayBasis, text: str) -> Mapping[Key, ActivityFigures] | str:
    try:
        return predict(basis, parse_changes([text]), has_doubts=False).figures
    except UsageError as error:
        return str(error)
