from __future__ import annotations

import pytest

from satview.base.named_files import resource_path
from satview.session.commands import COMMANDS, Command, CommandRegistry, Menu


def test_ids_and_keys_are_unique():
    ids = [command.id for command in COMMANDS]
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(set(ids)) == len(ids)
    assert len(set(keys)) == len(keys)


def test_every_row_can_be_shown():
    for command in COMMANDS:
        assert command.plain_title
        assert command.help.endswith("."), command.id
        assert command.title.count("&") <= 1
        if command.icon:
            assert resource_path(f"icons/{command.icon}.svg").is_file()


def test_menu_letters_are_unique_within_a_menu():
    for menu, submenu in {(command.menu, command.submenu) for command in COMMANDS}:
        mine = [command for command in COMMANDS if command.menu is menu]
        titles = [command.title for command in mine if command.submenu == submenu and "&" in command.title]
        titles += {command.submenu for command in mine if command.submenu and not submenu}
        letters = [title[title.index("&") + 1].lower() for title in titles]
        assert sorted(set(letters)) == sorted(letters), (menu, titles)


def test_one_id_twice_is_refused():
    twice = Command("a.b", "A", Menu.FILE)
    with pytest.raises(ValueError, match="one id"):
        CommandRegistry((twice, twice))


def test_one_key_twice_is_refused():
    with pytest.raises(ValueError, match=r"key W belongs to a\.b and to a\.c"):
        CommandRegistry((Command("a.b", "A", Menu.FILE, ("W",)), Command("a.c", "A", Menu.FILE, ("W",))))


def test_binding_twice_is_refused():
    registry = CommandRegistry((Command("a.b", "A", Menu.FILE), Command("a.c", "A", Menu.FILE)))
    registry.bind("a.b", print)
    with pytest.raises(ValueError, match="bound twice"):
        registry.bind("a.b", print)
