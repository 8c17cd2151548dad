"""Verdicts against what really happened: pairs of programs by kind, and programs drawn at random."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

from satview.analysis.doctor import may_be_more
from satview.analysis.verdicts.evidence import Severity
from satview.analysis.verdicts.find import find_verdicts
from satview.answers.verdicts import undecided_table
from satview.capture.kernel import Kernel
from satview.events.spec import Release
from satview.store.time_ranges import losses
from tests.analysis.pairs import PAIRS, Pair, is_about, is_then
from tests.analysis.random_programs import judged
from tests.capture.made import FAST, WIDE, damaged, traced

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
CPUS = (1, 2, 4, 8)


def run(arguments: list[str]) -> None:
    """Print the table of kinds, and what random programs show."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks verdicts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="runs of each pair, release and form (default 2)")
    parser.add_argument("--programs", type=int, default=100, help="programs drawn at random (default 100)")
    parser.add_argument("--healthy", type=int, default=0, help="only so many seeds of the healthy twins (default: no)")
    parser.add_argument("--losses", action="store_true", help="a slow logger loses most buffers")
    options = parser.parse_args(arguments)
    if options.healthy:
        _print_healthy(options.healthy)
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in PAIRS:
        for seed in range(1, options.seeds + 1):
            for release in RELEASES:
                for wide in (True, False):
                    _judge(pair, release, wide, seed, counts[" or ".join(pair.kinds)], with_losses=options.losses)
    names = (
        "faults",
        "found",
        "undecided",
        "missed",
        "wrong thread",
        "wrong span",
        "healthy twins",
        *map(str, Severity),
    )
    print("| verdict |", " | ".join(names), "|")
    print("| --- |", " | ".join(["---:"] * len(names)), "|")
    for kind, count in sorted(counts.items()):
        print(f"| {kind} | " + " | ".join(str(count[name]) for name in names) + " |")
    if options.losses:
        runs = sum(count["faults"] + count["healthy twins"] for count in counts.values())
        print(
            f"\nevents are missing for {sum(count['lost'] for count in counts.values()) / runs / 10:.0f} % of the time"
        )
        return
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
    pair: Pair, release: Release, wide: bool, seed: int, count: Counter[str], which: tuple[bool, ...] = (True, False),
    *, with_losses: bool = False,
) -> None:  # fmt: skip
    for is_faulty in which:
        setup = partial(_set_up, pair, is_faulty)
        # Some programs need two CPUs; the others run on one, where it is known who can run.
        with tempfile.TemporaryDirectory() as folder:
            if with_losses:
                made = damaged(
                    setup, pair.ms, Path(folder), release, pair.cpus, ring=False, wide=wide, slots=100 + seed
                )
            else:
                made = traced(setup, pair.ms, Path(folder), release, pair.cpus, seed, WIDE if wide else FAST)
            found = [verdict for verdict in find_verdicts(made.trace) if verdict.kind != "data-loss"]
            kinds = {*undecided_table(made.trace)["kind"].tolist()}
            is_undecided = bool({*pair.kinds} & kinds or may_be_more(made.trace))
            lost = losses(made.trace)
            count["lost"] += int((lost[:, 1] - lost[:, 0]).sum() * 1000 // made.trace.window.length) if len(lost) else 0
        if not is_faulty:
            count.update(("healthy twins", *{str(verdict.severity) for verdict in found}))
            continue
        own = [verdict for verdict in found if verdict.kind in pair.kinds]
        count.update(("faults", "found" if own else "undecided" if is_undecided else "missed"))
        if own:
            count["wrong thread"] += not any(is_about(pair, made, verdict) for verdict in own)
            count["wrong span"] += not any(is_then(pair, made, verdict) for verdict in own)


def _set_up(pair: Pair, is_faulty: bool, kernel: Kernel) -> None:
    pair.setup(kernel, is_faulty)
