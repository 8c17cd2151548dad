"""Captures of workloads that several modules ask questions about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from satview.capture.workloads import registry
from satview.events.spec import Release
from tests.capture.made import FAST, WIDE, Traced, damaged, traced

MadeOf = Callable[[str, Release, bool, bool], Traced]


@pytest.fixture(scope="session")
def made_of(tmp_path_factory: pytest.TempPathFactory) -> MadeOf:
    """Return a function that captures a lesson on a release, wide or not, with losses or not; each is made once."""

    @cache
    def capture(name: str, release: Release, wide: bool, loss: bool) -> Traced:
        lesson, folder = registry.find(name), tmp_path_factory.mktemp("made")
        ms = 20 if name == "automotive" else min(lesson.duration_ns / 1e6, 100)
        if loss:
            return damaged(
                lesson.setup, min(ms, 50), folder, release, lesson.cpus, ring=False, wide=wide, slots=60, skew_ns=0
            )
        return traced(lesson.setup, ms, folder, release, lesson.cpus, 5, WIDE if wide else FAST, skew_ns=0)

    return capture
