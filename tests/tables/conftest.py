"""Captures on which tables and views are held against statistics: workloads, releases, and with losses."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.opened import OpenedTrace, with_answers
from satview.opened import open_trace as open_any
from tests.capture import mishaps
from tests.capture.made import FAST, WIDE, damaged, traced
from tests.helpers.extent import fewer

ROOT = Path(__file__).resolve().parents[2]


def _captured(name, ms, release, modes, cpus):
    return lambda folder: traced(registry.find(name).setup, ms, folder, release, cpus, 5, modes).trace


def _lossy(name, ms, release, cpus, *, ring):
    return lambda folder: damaged(registry.find(name).setup, ms, folder, release, cpus, ring=ring, wide=True).trace


CASES = {
    "automotive-7": _captured("automotive", 40, Release.QNX_7, WIDE, 4),
    "mishaps-6": lambda folder: traced(mishaps.setup, mishaps.DURATION_MS, folder, Release.QNX_6, 1, 5, WIDE).trace,
    "servers-66": _captured("nested-servers", 60, Release.QNX_6_6, FAST, 2),
    "convoy-8": _captured("convoy", 60, Release.QNX_8, WIDE, 2),
    "lossy-7": _lossy("automotive", 30, Release.QNX_7, 4, ring=False),
    "lossy-8": _lossy("automotive", 30, Release.QNX_8, 4, ring=False),
    "ring-6": _lossy("client-server", 40, Release.QNX_6, 1, ring=True),
    "threads": lambda _: open_any(ROOT / "sample_traces" / "threads"),
    "vendor-6": lambda _: open_any(ROOT / "sample_traces" / "vendor-all_classes.kev"),
    "dense": lambda _: open_any(ROOT / "sample_traces" / "dense-4cpu.kev"),
}


# Those that views are tested on, and those that files for other viewers are: there are many queries.
QUERIED = ("automotive-7", "mishaps-6", "servers-66", "lossy-8")
DRAWN = ("automotive-7", "lossy-8")


@pytest.fixture(scope="package", params=fewer(tuple(CASES), len(CASES) - 1))
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OpenedTrace:
    return with_answers(CASES[request.param](tmp_path_factory.mktemp("tables")))
