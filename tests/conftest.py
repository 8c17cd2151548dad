"""The extent of a run, and how many examples hypothesis tries in it."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from tests.helpers import extent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--complete", action="store_true", help="every point of every matrix, and many more random inputs")


def pytest_configure(config: pytest.Config) -> None:
    is_complete = config.getoption("--complete")
    extent.set_complete(is_complete)
    settings.register_profile("usual", max_examples=40, deadline=None)
    settings.register_profile("complete", max_examples=400, deadline=None)
    settings.load_profile("complete" if is_complete else "usual")


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of every later garbage collection: windows ask for many of them."""
    gc.collect()
    gc.freeze()
