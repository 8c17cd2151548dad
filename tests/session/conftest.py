"""An open trace without a window."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

from satview.formats.registry import open_trace
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.timeline.lane_tree import Timeline
from tests.helpers.collector import no_collector
from tests.helpers.scene import scene


@pytest.fixture(scope="package", autouse=True)
def collected_on_this_thread():
    """Collect garbage on this thread alone, as the window does: on another one, Qt objects must not be freed."""
    with no_collector():
        yield
        gc.collect()


@pytest.fixture
def opened(qapp, tmp_path):
    trace = open_trace(scene(tmp_path))
    opened = OpenTrace(trace, Timeline(trace), Settings(None))
    opened.viewport.set_width(1000)
    yield opened
    opened.shut_down()


@pytest.fixture
def ns(opened):
    """Return a function from nanoseconds of the scene to cycles of the trace."""
    return opened.trace.clock.cycles
