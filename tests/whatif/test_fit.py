"""How well unchanged replays fit, and predictions against workloads that were really changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.capture.logger_options import LoggerOptions
from satview.capture.run import Capture, run
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.store.trace import Trace
from satview.whatif.prediction import basis_of
from tests.helpers.extent import WIDTH, points

# Error of the median, and share of the wake-ups in the same order, that each workload's replay keeps.
FITS = {"client-server": (0.02, 0.9), "nested-servers": (0.01, 0.6), "periodic": (0.05, 0.6)}


def captured(
    folder: Path, workload: str, *, wide: bool = True, release: Release = Release.QNX_7, cpus: int = 0
) -> Trace:
    """Return a capture of a workload, opened."""
    path = folder / f"{workload}.kev"
    options = LoggerOptions(iterations=0, is_wide=wide)
    run(Capture(workload, release=release, cpus=cpus, keeps_truth=False, options=options), path)
    return open_trace(path, None)


@points(workload=tuple(FITS), wide=WIDTH)
def test_an_unchanged_replay_fits(tmp_path: Path, workload: str, wide: bool) -> None:
    fit = basis_of(captured(tmp_path, workload, wide=wide)).fit
    most, least = FITS[workload]
    if workload == "periodic" and not wide:
        pytest.skip("fast events do not show the budget of its sporadic thread")
    assert fit.median_error < most
    assert fit.same_order > least
