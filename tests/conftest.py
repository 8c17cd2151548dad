"""The extent of a run, and how many examples hypothesis tries in it."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from tests.helpers import extent
from tests.helpers.extent import Extent

pytest_plugins = ["pytester", "tests.helpers.plugin_fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="every pair of values of every matrix, and slow tests")
    parser.addoption("--complete", action="store_true", help="every point of every matrix, and many more random inputs")


def pytest_configure(config: pytest.Config) -> None:
    of_run = _extent(config)
    extent.set_extent(of_run)
    config.addinivalue_line("markers", "thorough: not in the usual run, as it takes long for what it adds there")
    config.addinivalue_line("markers", "complete: runs in the complete run only, as it takes long for what it adds")
    for name, examples in zip(Extent, (15, 50, 500), strict=True):
        settings.register_profile(name.name, max_examples=examples, deadline=None)
    settings.load_profile(of_run.name)


def _extent(config: pytest.Config) -> Extent:
    if config.getoption("--complete"):
        return Extent.COMPLETE
    return Extent.THOROUGH if config.getoption("--thorough") else Extent.USUAL


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    not_now = [extent.name.lower() for extent in Extent if extent > _extent(config)]
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in not_now)]
    if left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of every later garbage collection: windows cause many of them."""
    gc.collect()
    gc.freeze()
