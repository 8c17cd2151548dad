"""Keys can be given to other commands: in the dialog, in all windows, and in the file that keeps them."""

from __future__ import annotations

import json

import pytest

from satview.gui.dialogs import KeysDialog
from satview.session.commands import COMMANDS, KeyBindings
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, take_keyboard

BY_ID = {command.id: command for command in COMMANDS}


@pytest.fixture
def dialog(window, view, qtbot):
    qtbot.keyClick(view, K.Key_K, CONTROL_SHIFT)
    return window.findChild(KeysDialog)


def choose(dialog, qtbot, words):
    dialog.search.clear()
    qtbot.keyClicks(dialog.search, words)
    rows = [dialog.tree.topLevelItem(index) for index in range(dialog.tree.topLevelItemCount())]
    assert len(rows) < 4
    dialog.tree.setCurrentItem(next(row for row in rows if row.text(0).casefold().endswith(words)))


def press(dialog, qtbot, key):
    qtbot.keyClick(dialog.edit, key)


def click(qtbot, button):
    qtbot.mouseClick(button, LEFT)


@pytest.mark.thorough
def test_another_key_runs_the_command_and_the_old_one_no_longer(dialog, window, view, opened, qtbot):
    choose(dialog, qtbot, "hide lane")
    press(dialog, qtbot, K.Key_F8)
    click(qtbot, dialog.set_button)
    dialog.close()
    take_keyboard(window, qtbot)
    opened.select_at(2, opened.trace.clock.cycles(5_000))
    qtbot.keyClick(view, K.Key_H)
    assert opened.lanes.hidden_count == 0
    qtbot.keyClick(view, K.Key_F8)
    assert opened.lanes.hidden_count == 1
    assert "(F8)" in window.actions_by_id.by_id["lanes.hide"].toolTip()


@pytest.mark.thorough
def test_a_key_that_runs_something_is_announced_and_taken_from_it(dialog, window, application, qtbot):
    other = application.new_window()
    choose(dialog, qtbot, "hide lane")
    press(dialog, qtbot, K.Key_P)
    assert dialog.message.text() == "P runs Pin lane now, and would not any more."
    click(qtbot, dialog.add_button)
    for each in (window, other):  # at once, in all windows
        by_id = each.actions_by_id.by_id
        assert [key.toString() for key in by_id["lanes.hide"].shortcuts()] == ["H", "P"]
        assert by_id["lanes.pin"].shortcuts() == []


@pytest.mark.thorough
def test_usual_keys_come_back_one_by_one_and_all(dialog, application, qtbot):
    keys = application.shared.keys
    choose(dialog, qtbot, "hide lane")
    press(dialog, qtbot, K.Key_P)
    click(qtbot, dialog.set_button)
    click(qtbot, dialog.usual_button)
    assert keys.keys_of(BY_ID["lanes.hide"]) == ("H",)
    choose(dialog, qtbot, "pin lane")
    click(qtbot, dialog.usual_button)
    assert keys.keys_of(BY_ID["lanes.pin"]) == ("P",)
    click(qtbot, dialog.none_button)
    assert keys.keys_of(BY_ID["lanes.pin"]) == ()
    keys.use_table()
    assert not any(keys.is_changed(command) for command in COMMANDS)


def test_keys_are_kept_and_those_of_newer_versions_stay(qapp, tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"satview_keys": 1, "keys": {"lanes.new": ["F9"]}}))
    keys = KeyBindings(path)
    keys.set_keys(BY_ID["lanes.hide"], ("F8",))
    assert KeyBindings(path).keys_of(BY_ID["lanes.hide"]) == ("F8",)
    assert json.loads(path.read_text())["keys"] == {"lanes.new": ["F9"], "lanes.hide": ["F8"]}


def test_one_key_never_runs_two_commands_whatever_the_file_says(qapp, tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"satview_keys": 1, "keys": {"lanes.hide": ["P", "P"], "lanes.taller": ["P", "0"]}}))
    keys = KeyBindings(path)
    assert keys.keys_of(BY_ID["lanes.hide"]) == ("P",)
    assert keys.keys_of(BY_ID["lanes.taller"]) == ("0",)
    assert keys.keys_of(BY_ID["lanes.pin"]) == ()
    assert keys.keys_of(BY_ID["view.zoom_all"]) == ("Shift+Z",)
    used = [key for command in COMMANDS for key in keys.keys_of(command)]
    assert len(used) == len(set(used))


@pytest.mark.parametrize(
    "content", ["", "[]", '{"satview_keys": 1, "keys": 7}', '{"satview_keys": 1, "keys": {"a": "H"}}']
)
def test_a_damaged_file_is_named_set_aside_and_costs_nothing_else(qapp, tmp_path, content):
    path = tmp_path / "keys.json"
    path.write_text(content)
    keys = KeyBindings(path)
    assert "keys.json is damaged" in keys.file.notice
    assert keys.keys_of(BY_ID["lanes.hide"]) == ("H",)
    keys.set_keys(BY_ID["lanes.hide"], ("F8",))
    assert (tmp_path / "keys.json.damaged-1").read_text() == content
    assert keys.keys_of(BY_ID["panels.events"]) == ("E",)
