"""Predictions of `satview whatif` against workloads that were really changed: errors of median and 99 % by kind."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from satview.answers.whatif import GOOD, Compared, Direction
from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture
from satview.capture.run import run as capture
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.store.trace import Trace
from satview.whatif.prediction import ActivityFigures, Key, ReplayBasis, basis_of, figures, predict
from satview.whatif.steps import parse_changes
from tests.helpers.changed import CHANGES, RealChange, changed
from tests.helpers.own_streams import with_own_streams

_RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
_LENGTHS_MS = {
    "automotive": 600, "inheritance": 2000, "instrumented": 500, "interrupt-flood": 200, "inversion": 2000,
    "meeting-points": 500, "partitions": 1200, "starvation": 500, "virtual-machine": 500,
}  # fmt: skip
_USUAL_MS = 1000
_KERNEL_SEEDS = (1001, 1002)  # of what kernel calls cost in changed workloads
_LEAD_IN_NS = 10_000_000  # a change is made from the start on: what it does before the record should be little


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded trace, and the kinds of change that are predicted from it."""

    workload: str
    release: Release
    is_wide: bool
    seed: int
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.workload:20} {self.release:4} {'wide' if self.is_wide else 'fast'} {self.seed}"


@dataclass(frozen=True, slots=True)
class Judged:
    """One prediction of one activity.

    Attributes:
        counts: Instances recorded, predicted, and in the changed workload.
        fit_errors: Of the unchanged replay against the record: median, 99 %.
        errors: Of the prediction against the changed workload.
        changes: How much longer median and 99 % became in the changed workload, as shares.
        floors: How far two runs of the changed workload are apart of which kernel calls cost other nanoseconds; nan
            if it ran once.
        directions: What is said of median and 99 %.
        is_wrong_way: It says shorter where that became longer, or the other way round.
    """

    recorded: Recorded
    kind: str
    activity: str
    counts: tuple[int, int, int]
    fit_errors: tuple[float, float]
    errors: tuple[float, float]
    changes: tuple[float, float]
    floors: tuple[float, float]
    directions: tuple[Direction, Direction]
    is_wrong_way: bool

    def __str__(self) -> str:
        shares = " ".join(
            f"{100 * share:7.1f}" for share in (*self.fit_errors, *self.errors, *self.floors, *self.changes)
        )
        counts = " ".join(f"{count:5}" for count in self.counts)
        wrong = " WRONG" if self.is_wrong_way else ""
        says = ", ".join(self.directions)
        return f"{self.kind:12} {self.recorded} {self.activity[:34]:34} {counts} {shares} {says}{wrong}"


def captured(folder: Path, recorded: Recorded, change: RealChange, seed: int) -> Trace:
    """Capture a workload with a change, and open the trace.

    Its programs draw from streams of their own, so that those that are not changed do the same work.

    Args:
        folder: Where to write it.
        recorded: The workload without the change.
        change: What is changed.
        seed: Of what kernel calls cost.
    """
    path = folder / f"captured-{seed}.kev"
    workload = with_own_streams(changed(recorded.workload, change, _LEAD_IN_NS), recorded.seed + change.seed)
    options = LoggerOptions(iterations=0, is_wide=recorded.is_wide)
    length_ns = _LENGTHS_MS.get(recorded.workload, _USUAL_MS) * 1_000_000
    capture(Capture(workload, seed, 0, recorded.release, length_ns, options, keeps_truth=False), path)
    return open_trace(path, None)


def really_changed(
    folder: Path, recorded: Recorded, change: RealChange, length_ns: int
) -> list[dict[Key, ActivityFigures]]:
    """Return the activities of a changed workload; with the first seed of two runs of it, as a floor."""
    out = []
    for seed in _KERNEL_SEEDS[: 2 if recorded.seed == 1 else 1]:
        true = captured(folder, recorded, change, seed)
        begin_cycles = max(true.dump_end_cycles, int(true.events.time_cycles[0]))
        out.append(figures(true, begin_cycles, length_ns))
        true.payloads.close()
    return out


def judge(recorded: Recorded) -> list[Judged]:
    """Record a workload; predict each change, really change it, and compare."""
    out: list[Judged] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        basis = basis_of(captured(folder, recorded, RealChange(()), recorded.seed))
        for kind in recorded.kinds:
            change = CHANGES[kind][recorded.workload]
            try:
                changes = parse_changes(_said(change, basis))
                prediction = predict(basis, changes, folder / "predicted.kev" if changes else None)
            except UsageError as error:  # fast events do not show partitions, 8.0 has no handlers
                print(f"{recorded} {kind}: {error}", file=sys.stderr)
                continue
            truth = really_changed(folder, recorded, change, basis.programs.length_ns)
            for key, compared in zip(basis.fit.activities, prediction.compared, strict=True):
                if not basis.fit.activities[key].recorded.is_own:
                    out += _judged(recorded, kind, compared, [run.get(key) for run in truth], bool(changes))
    return out


def _said(change: RealChange, basis: ReplayBasis) -> list[str]:
    mutex = next((thing for thing in basis.programs.things if thing.kind == "MUTEX"), None)
    return [text.format(mutex=f"{mutex.address:#x}" if mutex is not None else "none") for text in change.said]


def _judged(
    recorded: Recorded, kind: str, compared: Compared, runs: Sequence[ActivityFigures | None], is_changed: bool
) -> list[Judged]:
    """Return the judgement on an activity; none where neither knows of one, as predicted."""
    which = 2 if is_changed else 1  # without a change the unchanged replay is the prediction
    times_ns = (compared.medians_ns, compared.p99s_ns)
    predicted_ns = [times[which] for times in times_ns]
    truth, again = runs[0], runs[-1]
    if truth is None:
        if predicted_ns[0] < 0:
            return []
        never = (float("inf"), float("inf"))
        return [Judged(recorded, kind, compared.activity, (compared.counts[0], compared.counts[which], 0),
                       compared.errors, never, never, (0.0, 0.0), (Direction.NONE, Direction.NONE), False)]  # fmt: skip
    errors, changes, is_wrong_way = [], [], False
    true_ns = (truth.median_ns, truth.p99_ns)
    again_ns = (again.median_ns, again.p99_ns) if again is not None else (float("inf"), float("inf"))
    floors = [abs(one / max(other, 1) - 1) for one, other in zip(again_ns, true_ns, strict=True)]
    floors = floors if len(runs) > 1 else [float("nan")] * 2
    directions = compared.directions if is_changed else (Direction.SAME, Direction.SAME)
    for times, fit_error, predicted, true, says in zip(
        times_ns, compared.errors, predicted_ns, true_ns, directions, strict=True
    ):
        change, least = true / times[0] - 1, 2 * max(fit_error, GOOD)
        errors.append(abs(predicted - true) / max(true, 1) if predicted >= 0 else float("inf"))
        changes.append(change)
        is_wrong_way |= says == (Direction.SHORTER if change > least else Direction.LONGER if change < -least else "")
    counts = compared.counts[0], compared.counts[which], truth.count
    pairs = ((pair[0], pair[1]) for pair in (errors, changes, floors))
    return [Judged(recorded, kind, compared.activity, counts, compared.errors, *pairs, directions, is_wrong_way)]


def recordings(words: Sequence[str], seeds: int) -> list[Recorded]:
    """Return what to record and predict; words restrict kinds, workloads, releases, and fast or wide.

    Raises:
        UsageError: A word is none of them.
    """
    axes: tuple[Sequence[str], ...] = (
        tuple(CHANGES), tuple(CHANGES["nothing"]), tuple(map(str, _RELEASES)), ("fast", "wide"),
    )  # fmt: skip
    unknown = [word for word in words if not any(word in axis for axis in axes)]
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: neither a kind of change nor a workload, release, fast or wide")
    kinds, workloads, releases, widths = ([value for value in axis if value in words] or axis for axis in axes)
    out = [
        Recorded(workload, release, width == "wide", seed, own_kinds)
        for workload in workloads
        if (own_kinds := tuple(kind for kind in kinds if workload in CHANGES[kind]))
        for release in _RELEASES
        if str(release) in releases
        for width in widths
        for seed in range(1, seeds + 1)
    ]
    return sorted(out, key=lambda recorded: recorded.workload != "automotive")  # the longest ones first


def run(args: list[str]) -> None:
    """Print the table of docs/whatif.md."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks whatif", description=run.__doc__)
    parser.add_argument("words", nargs="*", help="kinds of change, workloads, releases, fast, wide; default: all")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each workload")
    parser.add_argument("--each", action="store_true", help="print each prediction too")
    options = parser.parse_args(args)
    begin_s = time.perf_counter()
    to_record = recordings(options.words, options.seeds)
    with ProcessPoolExecutor(2) as pool:
        judged = [entry for part in pool.map(judge, to_record) for entry in part]
    if options.each:
        print(*judged, sep="\n")
    by_kind = defaultdict(list)
    for entry in judged:
        by_kind[entry.kind].append(entry)
    columns = ("change", "predictions", "median", "99 %", "where the unchanged replay fits", "median", "99 %",
               "two runs", "99 %", "shorter or longer", "cannot tell", "wrong way")  # fmt: skip
    print("|", " | ".join(columns), "|")
    print("|" + " --- |" * len(columns))
    for kind in CHANGES:
        if not by_kind[kind]:
            continue
        fits = [entry for entry in by_kind[kind] if max(entry.fit_errors) <= GOOD]
        cells = [cell for part in (by_kind[kind], fits)
                 for cell in (f"{len(part):,}", *_medians([entry.errors for entry in part]))]  # fmt: skip
        cells += _medians([entry.floors for entry in fits])
        said = Counter(direction for entry in fits for direction in entry.directions)
        cells += [f"{said[Direction.SHORTER] + said[Direction.LONGER]:,}", f"{said[Direction.CANNOT_TELL]:,}"]
        print("|", kind, "|", " | ".join(cells), "|", sum(entry.is_wrong_way for entry in fits), "|")
    print(f"{len(to_record):,} recorded traces, {sum(len(recorded.kinds) for recorded in to_record):,} changed ones, "
          f"in {time.perf_counter() - begin_s:.0f} s", file=sys.stderr)  # fmt: skip


def _medians(shares: Sequence[tuple[float, float]]) -> tuple[str, str]:
    if not shares:
        return "", ""
    median, p99 = np.nanmedian(shares, axis=0)
    return f"{median:.1%}", f"{p99:.1%}"
