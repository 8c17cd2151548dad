"""The extent of a run, and how many examples hypothesis tries in it."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from tests.helpers import extent

pytest_plugins = ["pytester", "tests.helpers.plugin_fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--complete", action="store_true", help="every point of every matrix, and many more random inputs")


def pytest_configure(config: pytest.Config) -> None:
    is_complete = config.getoption("--complete")
    extent.set_complete(is_complete)
    config.addinivalue_line("markers", "complete: runs in the complete run only, as it takes long for what it adds")
    settings.register_profile("usual", max_examples=50, deadline=None)
    settings.register_profile("complete", max_examples=500, deadline=None)
    settings.load_profile("complete" if is_complete else "usual")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--complete"):
        left_out = [item for item in items if item.get_closest_marker("complete")]
        items[:] = [item for item in items if not item.get_closest_marker("complete")]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of every later garbage collection: windows ask for many of them."""
    gc.collect()
    gc.freeze()
