"""A window keeps what it has decoded, and opens it again without decoding."""

from __future__ import annotations

import pytest

from satview.formats import registry
from satview.gui.windows import document_views, screenshot
from satview.session.loading import loading_tasks
from satview.session.session import Stage
from satview.session.trace_link import TraceLink
from tests.benchmarks.made_traces import make_file
from tests.gui.conftest import settle


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(loading_tasks, "CACHED_BYTES", 1)
    monkeypatch.setattr(document_views, "_CACHE_AFTER_MS", 10)
    monkeypatch.setenv("SATVIEW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def window(folder, empty_window):
    return empty_window


@pytest.fixture
def path(tmp_path):
    return make_file(tmp_path / "large.kev", 20_000, cpus=2, threads=30)


def cached(folder):
    return [file.name for file in folder.glob("*.cache")] if folder.exists() else []


def keep(window, load, path, folder, qtbot):
    """Open a trace and wait until it is kept; return where."""
    load(window, path)
    qtbot.waitUntil(lambda: len(cached(folder)) == 1, timeout=10_000)
    return folder / cached(folder)[0]


def undecoded(monkeypatch):
    def refuse(*_arguments):
        raise AssertionError("decoded again")

    monkeypatch.setattr(registry, "open_trace", refuse)


def test_the_second_time_nothing_is_decoded_and_the_picture_is_the_same(window, load, folder, path, qtbot, monkeypatch):
    load(window, path)
    first = window.workspace.area.grab().toImage()
    qtbot.waitUntil(lambda: len(cached(folder)) == 1, timeout=10_000)
    undecoded(monkeypatch)
    load(window, path)
    assert window.workspace.area.grab().toImage() == first
    assert not window.session.needs_caching
    assert window.workspace.panels["events"].model.rowCount() == len(window.session.opened.trace.events)


@pytest.fixture
def slow(folder, monkeypatch):
    monkeypatch.setattr(document_views, "_CACHE_AFTER_MS", 1000)  # the test looks before


@pytest.mark.thorough
def test_a_closed_trace_is_not_kept(slow, window, folder, path, qtbot, load):
    load(window, path)
    assert window.session.needs_caching
    window.session.close()
    qtbot.wait(1200)
    assert cached(folder) == []


@pytest.mark.thorough
def test_the_setting_switches_it_off(window, load, folder, path, qtbot):
    window.settings.set("files/cache_mb", 0)
    load(window, path)
    qtbot.wait(100)
    assert cached(folder) == []
    window.settings.set("files/cache_mb", 1)  # the columns of the file fit
    keep(window, load, path, folder, qtbot)


@pytest.mark.thorough
def test_a_followed_file_is_not_served_from_it(window, load, folder, path, qtbot):
    file = keep(window, load, path, folder, qtbot)
    used = file.stat().st_mtime_ns
    window.session.open(path, is_followed=True)
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
    settle(qtbot, window)
    qtbot.wait(100)
    assert (cached(folder), file.stat().st_mtime_ns) == ([file.name], used)


@pytest.mark.thorough
def test_a_screenshot_uses_it_and_adds_nothing(window, load, folder, path, qtbot, tmp_path, monkeypatch):
    def picture(name):
        request = screenshot.ScreenshotRequest(TraceLink(path), tmp_path / name, 900, 600)
        assert screenshot.take(request) == 0
        return (tmp_path / name).read_bytes()

    before = picture("before.png")
    assert cached(folder) == []
    keep(window, load, path, folder, qtbot)
    undecoded(monkeypatch)
    assert picture("after.png") == before
