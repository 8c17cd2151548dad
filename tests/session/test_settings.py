from __future__ import annotations

import json

import pytest
from PySide6.QtCore import QLockFile

from satview.session import settings as settings_module
from satview.session.settings import SETTINGS, Settings


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.key)
def test_default_of_every_row_fits_it(row):
    assert row.fits(row.default)
    assert row.help.endswith(".")
    assert row.key.count("/") == 1


def test_stored_and_read_again(qapp, tmp_path):
    path = tmp_path / "deep" / "settings.json"
    Settings(path).set("swimlane/lane_height_px", 30)
    assert Settings(path).number("swimlane/lane_height_px") == 30
    assert json.loads(path.read_text()) == {"swimlane/lane_height_px": 30}


def test_number_is_brought_into_its_bounds_and_a_wrong_text_refused(qapp):
    settings = Settings(None)
    settings.set("swimlane/lane_height_px", 10_000)
    assert settings.number("swimlane/lane_height_px") == 64
    with pytest.raises(ValueError, match="does not fit"):
        settings.set("window/theme", "pink")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "[" * 5000,
        '{"swimlane/lane_height_px": "tall"}',
        '{"swimlane/lane_height_px": 9999}',
        '{"swimlane/lane_height_px": true}',
        '{"window/theme": "pink"}',
        '{"gone/setting": 1}',
    ],
)
def test_what_does_not_fit_gives_way_to_the_default(qapp, tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    settings = Settings(path)
    assert settings.number("swimlane/lane_height_px") == 20
    assert settings.text("window/theme") == "system"


def test_change_is_reported_once(qapp, qtbot):
    settings, keys = Settings(None), []
    settings.changed.connect(keys.append)
    settings.set("window/theme", "dark")
    settings.set("window/theme", "dark")
    assert keys == ["window/theme"]


def test_folder_that_cannot_be_written_stops_nothing(qapp, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    settings = Settings(blocker / "settings.json")
    settings.set("window/theme", "dark")
    assert settings.text("window/theme") == "dark"


def test_two_windows_keep_what_each_has_changed(qapp, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"future/setting": 1, "swimlane/lane_height_px": 30}')
    first, second = Settings(path), Settings(path)
    first.set("window/theme", "dark")
    second.set("events/row_height_px", 25)
    first.set("swimlane/lane_height_px", 20)
    assert json.loads(path.read_text()) == {"future/setting": 1, "window/theme": "dark", "events/row_height_px": 25}


def test_nothing_is_written_while_another_program_holds_the_lock(qapp, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(settings_module, "_RETRY_MS", 100)
    monkeypatch.setattr(settings_module, "_PATIENCE_MS", 10)
    settings, other = Settings(tmp_path / "settings.json"), QLockFile(str(tmp_path / ".satview.lock"))
    assert other.tryLock(0)
    settings.set("window/theme", "dark")
    assert settings.file.failure == "settings.json: another program holds .satview.lock in its folder"
    assert not (tmp_path / "settings.json").exists()
    (tmp_path / "settings.json").write_text('{"swimlane/lane_height_px": 30}')
    other.unlock()
    qtbot.waitUntil(lambda: settings.file.is_stored, timeout=10_000)
    stored = json.loads((tmp_path / "settings.json").read_text())
    assert stored == {"swimlane/lane_height_px": 30, "window/theme": "dark"}
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_damaged_settings_are_set_aside(qapp, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"window/theme": "da')
    settings = Settings(path)
    settings.set("window/theme", "light")
    assert (tmp_path / "settings.json.damaged-1").read_text() == '{"window/theme": "da'
    assert "settings.json.damaged-1: line 1" in settings.file.notice
    assert json.loads(path.read_text()) == {"window/theme": "light"}


def test_settings_that_cannot_be_stored_are_stored_later(qapp, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(settings_module, "_RETRY_MS", 200)
    (tmp_path / "folder").write_text("in the way")
    settings = Settings(tmp_path / "folder" / "settings.json")
    settings.set("window/theme", "dark")
    assert settings.file.failure
    (tmp_path / "folder").unlink()
    qtbot.waitUntil(lambda: settings.file.is_stored, timeout=10_000)
    assert Settings(tmp_path / "folder" / "settings.json").text("window/theme") == "dark"
