"""Verdicts against what really happened: pairs of programs by kind, and programs drawn at random."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.verdict import Severity
from satview.capture.kernel import Kernel
from satview.events.spec import Release
from tests.analysis.pairs import PAIRS, Pair
from tests.analysis.random_programs import judged
from tests.capture.made import FAST, WIDE, traced

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
CPUS = (1, 2, 4, 8)


def run(arguments: list[str]) -> None:
    """Print the table of kinds, and what random programs show."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks verdicts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="runs of each pair, release and form (default 2)")
    parser.add_argument("--programs", type=int, default=100, help="programs drawn at random (default 100)")
    parser.add_argument("--healthy", type=int, default=0, help="only so many seeds of the healthy twins (default: no)")
    options = parser.parse_args(arguments)
    if options.healthy:
        _print_healthy(options.healthy)
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in PAIRS:
        for seed in range(1, options.seeds + 1):
            for release in RELEASES:
                for wide in (True, False):
                    _judge(pair, release, wide, seed, counts[" or ".join(pair.kinds)])
    print("| verdict | faults | found | missed | healthy twins | errors | warnings | notices |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, count in sorted(counts.items()):
        names = ("faults", "found", "missed", "twins", Severity.ERROR, Severity.WARNING, Severity.INFO)
        print(f"| {kind} | " + " | ".join(str(count[name]) for name in names) + " |")
    stuck = missed = false = 0
    for seed in range(options.programs):
        with tempfile.TemporaryDirectory() as folder:
            found = judged(seed, RELEASES[seed % 4], CPUS[seed // 8 % 4], seed % 8 < 4, Path(folder))
        stuck += bool(found.stuck)
        missed += found.is_missed
        false += bool(found.false)
    print(f"\n{options.programs} programs drawn at random: in {stuck} threads never go on, {missed} of these missed; "
          f"in {false} that is said of a thread that goes on")  # fmt: skip


def _print_healthy(seeds: int) -> None:
    """Print how often something is reported of healthy twins, each with every release, form and seed."""
    count, runs = Counter[str](), [
        (pair, release, wide, seed)
        for seed in range(1, seeds + 1) for pair in PAIRS for release in RELEASES for wide in (True, False)
    ]  # fmt: skip
    for pair, release, wide, seed in runs:
        _judge(pair, release, wide, seed, count, (False,))
    named = ", ".join(f"{count[severity]} with {severity}" for severity in Severity)
    print(f"{len(runs):,} healthy runs: {named}")


def _judge(
    pair: Pair, release: Release, wide: bool, seed: int, count: Counter[str], which: tuple[bool, ...] = (True, False)
) -> None:
    for is_faulty in which:
        # Some programs need two CPUs; the others run on one, where it is known who can run.
        with tempfile.TemporaryDirectory() as folder:
            made = traced(partial(_set_up, pair, is_faulty), pair.ms, Path(folder), release, pair.cpus, seed,
                          WIDE if wide else FAST)  # fmt: skip
            found = find_verdicts(made.trace)
        if is_faulty:
            is_found = any(verdict.kind in pair.kinds for verdict in found)
            count.update(("faults", "found" if is_found else "missed"))
        else:
            count.update(("twins", *{verdict.severity for verdict in found}))


def _set_up(pair: Pair, is_faulty: bool, kernel: Kernel) -> None:
    pair.setup(kernel, is_faulty)
