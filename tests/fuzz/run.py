"""The parent: starts batches, notices dead and silent children, counts."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz.cases import signature, store
from tests.fuzz.targets import TARGETS, input_of

_BATCH_S: Final = 20.0
_GRACE_S: Final = 15.0  # beyond the alarm of an input: then C code hangs, and the child is killed
_START_S: Final = 60.0
_CASES_PER_FAULT: Final = 2


@dataclass(slots=True)
class Totals:
    """What became of the inputs of one target.

    Attributes:
        inputs, faults, hangs, deaths: How many; a hang or a death is no fault besides.
        worst_s: Longest time of one input.
        worst_unit_s: Longest time per slot or byte.
        worst_bytes: Most memory per byte of input.
        seen: How often each fault occurred, by kind and position, with its first text.
    """

    inputs: int = 0
    faults: int = 0
    hangs: int = 0
    deaths: int = 0
    worst_s: float = 0.0
    worst_unit_s: float = 0.0
    worst_bytes: float = 0.0
    seen: dict[str, tuple[int, str]] = field(default_factory=dict)


def child_command(name: str, seed: int, first: int, seconds: float) -> list[str]:
    """Return the command that runs inputs of a target for some seconds."""
    return [sys.executable, "-m", "tests.fuzz.batch", name, str(seed), str(first), str(seconds)]


def run_batch(name: str, seed: int, first: int, seconds: float, totals: Totals, cases: Path) -> int:
    """Run inputs of a target in a child for some seconds; return the number of the next input."""
    surroundings = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    limit_s = TARGETS[name].limit_s + _GRACE_S
    following, pending, data = first, None, b""
    with subprocess.Popen(
        child_command(name, seed, first, seconds), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=surroundings
    ) as child:
        assert child.stdout is not None
        while True:
            wait_s = limit_s if pending is not None else max(limit_s, _START_S)
            is_heard = bool(select.select([child.stdout], [], [], wait_s)[0])
            part = os.read(child.stdout.fileno(), 1 << 16) if is_heard else b""
            if not part:
                break
            *lines, data = (data + part).split(b"\n")
            for line in lines:
                if line.startswith(b"{"):
                    pending, following = None, following + 1
                    _count(name, seed, json.loads(line), totals, cases)
                else:
                    pending = int(line)
        if not is_heard:
            child.kill()
        code = child.wait()
    if pending is None:
        if code:
            raise RuntimeError(f"the child for {name} ended with {code} before an input")
        return following
    what = "hang: in C code, killed at child" if not is_heard else f"death: {_ended(code)} at child"
    taken_s = limit_s if not is_heard else 0.0
    _count(
        name,
        seed,
        {"index": pending, "fault": what, "taken_s": taken_s, "unit_s": 0.0, "unit_bytes": 0.0},
        totals,
        cases,
    )
    return pending + 1


def _ended(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _count(name: str, seed: int, result: dict[str, float | str], totals: Totals, cases: Path) -> None:
    totals.inputs += 1
    totals.worst_s = max(totals.worst_s, float(result["taken_s"]))
    totals.worst_unit_s = max(totals.worst_unit_s, float(result["unit_s"]))
    totals.worst_bytes = max(totals.worst_bytes, float(result["unit_bytes"]))
    fault = str(result["fault"])
    if not fault:
        return
    totals.hangs += fault.startswith("hang")
    totals.deaths += fault.startswith("death")
    totals.faults += not fault.startswith(("hang", "death"))
    count, first = totals.seen.get(signature(fault), (0, fault))
    totals.seen[signature(fault)] = count + 1, first
    if count < _CASES_PER_FAULT:
        path = store(name, input_of(name, seed, int(result["index"])), cases)
        print(f"{name} {int(result['index'])}: {fault}\n  stored as {path}", flush=True)


def run_all(names: list[str], seed: int, minutes: float, cases: Path) -> dict[str, Totals]:
    """Run targets in turn until time is over."""
    totals = {name: Totals() for name in names}
    following = dict.fromkeys(names, 0)
    end_s = time.monotonic() + 60 * minutes
    batch_s = min(_BATCH_S, 60 * minutes / len(names))
    while time.monotonic() < end_s:
        for name in names:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                break
            following[name] = run_batch(name, seed, following[name], min(batch_s, left_s), totals[name], cases)
    return totals


def table(totals: dict[str, Totals]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| target | inputs | uncaught | hangs | deaths | worst input | worst per slot or byte | memory per byte |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, each in totals.items():
        unit = "slot" if TARGETS[name].unit_bytes == 16 else "byte"
        lines.append(
            f"| `{name}`: {TARGETS[name].title} | {each.inputs:,} | {each.faults:,} | {each.hangs:,} | {each.deaths:,} "
            f"| {1e3 * each.worst_s:,.0f} ms | {1e6 * each.worst_unit_s:,.1f} µs/{unit} | {each.worst_bytes:,.0f} |"
        )
    every = totals.values()
    lines.append(
        f"| all | {sum(t.inputs for t in every):,} | {sum(t.faults for t in every):,} "
        f"| {sum(t.hangs for t in every):,} | {sum(t.deaths for t in every):,} "
        f"| {1e3 * max(t.worst_s for t in every):,.0f} ms | | |"
    )
    return "\n".join(lines)
