"""Predictions of `satview whatif` against workloads that were really changed: errors of median and 99 % by kind."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from satview.answers.whatif import GOOD, Compared
from satview.base.errors import UsageError
from satview.capture.logger_options import LoggerOptions
from satview.capture.run import Capture
from satview.capture.run import run as capture
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.whatif.changes import parse_changes
from satview.whatif.fit import Figures, Key, figures
from satview.whatif.prediction import Basis, basis_of, predict
from tests.helpers.changed import CHANGES, RealChange, changed

NS_PER_S = 1_000_000_000
_LENGTH_NS = {"automotive": 4 * NS_PER_S}
_USUAL_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Point:
    """One prediction to be held against the truth."""

    kind: str
    workload: str
    seed: int
    release: Release
    is_wide: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """Errors of one activity: prediction against the changed workload, and unchanged replay against the record."""

    point: Point
    activity: str
    count: int
    fit_errors: tuple[float, float]
    errors: tuple[float, float]
    is_wrong_way: bool


def captured(folder: Path, point: Point, change: RealChange, name: str) -> Path:
    """Capture a workload with a change."""
    path = folder / f"{name}.kev"
    workload = changed(point.workload, change)
    options = LoggerOptions(iterations=0, is_wide=point.is_wide)
    length_ns = _LENGTH_NS.get(point.workload, _USUAL_NS)
    capture(Capture(workload, point.seed + change.seed, 0, point.release, length_ns, options, keeps_truth=False), path)
    return path


def judge(point: Point) -> list[Judged]:
    """Predict, really change, and compare."""
    change = CHANGES[point.kind][point.workload]
    with TemporaryDirectory() as folder:
        trace = open_trace(captured(Path(folder), point, RealChange(()), "recorded"), None)
        basis = basis_of(trace)
        try:
            prediction = predict(basis, parse_changes(_said(change, basis)), Path(folder) / "predicted.kev")
        except UsageError as error:  # fast events do not show partitions
            print(f"{point}: {error}", file=sys.stderr)
            return []
        true = open_trace(captured(Path(folder), point, change, "changed"), None)
        begin = max(true.dump_end_cycles, int(true.events.time_cycles[0]))
        truth = figures(true, begin, basis.programs.length_ns)
    out = []
    for key, compared in zip(basis.fit.activities, prediction.compared, strict=True):
        if key in truth and not truth[key].is_own:
            out.append(_judged(point, key, compared, truth[key]))
    return out


def _said(change: RealChange, basis: Basis) -> list[str]:
    mutex = next((thing for thing in basis.programs.things if thing.kind == "MUTEX"), None)
    return [text.format(mutex=f"{mutex.address:#x}" if mutex is not None else "none") for text in change.said]


def _judged(point: Point, key: Key, compared: Compared, truth: Figures) -> Judged:
    pairs = ((compared.medians_ns, truth.median_ns), (compared.p99s_ns, truth.p99_ns))
    errors = tuple(abs(times[2] - true) / max(true, 1) if times[2] >= 0 else float("inf") for times, true in pairs)
    (recorded, _, predicted), true = pairs[0]
    fit = max(compared.errors[0], 0.02)
    is_wrong = abs(true / recorded - 1) > 2 * fit and abs(predicted / recorded - 1) > 2 * fit
    is_wrong &= (true > recorded) != (predicted > recorded)
    return Judged(point, compared.activity, truth.count, compared.errors, (errors[0], errors[1]), is_wrong)


def points(names: list[str]) -> list[Point]:
    """Return what to judge: everything with one seed, or the kinds, workloads, releases and widths that are named."""
    seeds = range(1, 6) if "full" in names else (1,)
    words = [name for name in names if name not in ("full", "each")]
    return [
        Point(kind, workload, seed, release, is_wide)
        for kind, workloads in CHANGES.items()
        for workload in workloads
        for release in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
        for is_wide in (True, False)
        for seed in seeds
        if set(words) <= {kind, workload, str(release), "wide" if is_wide else "fast"}
    ]


def run(args: list[str]) -> None:
    """Print the table of docs/whatif.md; `full` has five seeds, other words restrict, `each` lists activities."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        found = [judged for part in pool.map(judge, points(args)) for judged in part]
    if "each" in args:
        for entry in found:
            shares = " ".join(f"{100 * error:7.1f}" for error in (*entry.fit_errors, *entry.errors))
            point = entry.point
            print(
                f"{point.kind:9} {point.workload:15} {point.release:4} {'wide' if point.is_wide else 'fast'} "
                f"{entry.activity[:34]:34} {entry.count:5} {shares} {'WRONG' if entry.is_wrong_way else ''}"
            )
    print("| change | predictions | median | 99 % | where the unchanged replay fits | median | 99 % | wrong way |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kinds = defaultdict(list)
    for entry in found:
        kinds[entry.point.kind].append(entry)
    for kind, entries in kinds.items():
        good = [entry for entry in entries if max(entry.fit_errors) <= GOOD]
        cells = [cell for part in (entries, good) for cell in (f"{len(part):,}", *_errors(part))]
        print("|", kind, "|", " | ".join(cells), "|", sum(entry.is_wrong_way for entry in good), "|")
    print(f"{len(points(args)):,} traces in {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def _errors(entries: list[Judged]) -> tuple[str, str]:
    if not entries:
        return "", ""
    median, p99 = np.median([entry.errors for entry in entries], axis=0)
    return f"{median:.1%}", f"{p99:.1%}"
