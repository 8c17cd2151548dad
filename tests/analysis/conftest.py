"""Captures of workloads that several modules ask questions about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from satview.events.spec import Release
from tests.capture.made import Traced, made_of_lesson

MadeOf = Callable[[str, Release, bool, bool], Traced]


@pytest.fixture(scope="session")
def made_of(tmp_path_factory: pytest.TempPathFactory) -> MadeOf:
    """Return a function that captures a lesson on a release, wide or not, with losses or not; each is made once."""

    @cache
    def capture(name: str, release: Release, wide: bool, loss: bool) -> Traced:
        return made_of_lesson(name, release, wide, loss, tmp_path_factory.mktemp("made"))

    return capture
