"""Commands are data with ids: menus, toolbar, palette, key overlay, docs and tests read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Menu(StrEnum):
    """The menus of the main window in their order; the value is the title, `&` marks its letter."""

    FILE = "&File"
    EDIT = "&Edit"
    VIEW = "&View"
    GO = "&Go"
    LANES = "&Lanes"
    MARKS = "&Marks"
    CAPTURE = "&Capture"
    PANELS = "&Panels"
    HELP = "&Help"


class Needs(StrEnum):
    """What must be there before a command makes sense."""

    NOTHING = "nothing"
    TRACE = "an open trace"
    EVENT = "a selected event"
    SELECTION = "a selected event or interval"
    LANE = "a selected lane"
    RANGE = "a selected range"
    HITS = "search hits"
    LIVE = "a followed file"
    SECOND = "a second trace"
    CAPTURE = "a running capture"


class Scope(StrEnum):
    """Where the keys of a command work."""

    WINDOW = "anywhere in the window"
    LANES = "in the swimlanes"  # arrows and the like, which lists and trees need for themselves


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the user can do.

    Attributes:
        id: Stable name, `area.verb`; used in tests, docs and settings.
        title: Text of the menu entry; `&` marks its letter, a trailing ellipsis says that a dialog follows.
        menu: Where it is.
        keys: Key sequences in Qt's portable spelling; the first one shows in menus.
        help: One sentence for tooltips, the key overlay and the docs.
        needs: When it is enabled.
        scope: Where its keys work.
        icon: File in `resources/icons` without extension; empty for none. Commands with an icon are in the toolbar.
        is_checkable: The entry shows a check mark.
        starts_group: A separator is before it in its menu.
        submenu: Title of the menu within the menu that it is in; empty for none.
        is_held: Holding the key repeats it faster and faster.
    """

    id: str
    title: str
    menu: Menu
    keys: tuple[str, ...] = ()
    help: str = ""
    needs: Needs = Needs.NOTHING
    scope: Scope = Scope.WINDOW
    icon: str = ""
    is_checkable: bool = False
    starts_group: bool = False
    is_held: bool = False
    submenu: str = ""

    @property
    def plain_title(self) -> str:
        """The title without the marks of menu letters."""
        return self.title.replace("&", "")

    @property
    def whole_title(self) -> str:
        """What it is called outside its menu: `Sort by: Name`, without marks and ellipsis."""
        title = self.plain_title.rstrip("\N{HORIZONTAL ELLIPSIS}")
        return f"{self.submenu.replace('&', '')}: {title}" if self.submenu else title


@dataclass(slots=True)
class Binding:
    """A command with what it does in one window.

    Attributes:
        command: The row.
        run: Carries it out.
        is_checked: For checkable commands: shows whether the check mark shows.
    """

    command: Command
    run: Callable[[], None]
    is_checked: Callable[[], bool] | None = None


class CommandRegistry:
    """The commands of one window, in the order of the table.

    Clashes show at start: a second command with one id, or one key used twice, raises ValueError.
    """

    def __init__(self, commands: tuple[Command, ...]) -> None:
        self._commands = {command.id: command for command in commands}
        if len(self._commands) != len(commands):
            raise ValueError("two commands have one id")
        self._by_key: dict[str, str] = {}
        self._bindings: dict[str, Binding] = {}
        for command in commands:
            for key in command.keys:
                if key in self._by_key:
                    raise ValueError(f"key {key} belongs to {self._by_key[key]} and to {command.id}")
                self._by_key[key] = command.id

    def bind(self, command_id: str, run: Callable[[], None], is_checked: Callable[[], bool] | None = None) -> None:
        """Say what a command does.

        Raises:
            ValueError: It is bound already.
            KeyError: There is no such command.
        """
        command = self._commands[command_id]
        if command_id in self._bindings:
            raise ValueError(f"{command_id} is bound twice")
        self._bindings[command_id] = Binding(command, run, is_checked)

    def unbound(self) -> tuple[str, ...]:
        """Return the ids of commands that nothing was bound to."""
        return tuple(name for name in self._commands if name not in self._bindings)

    def __getitem__(self, command_id: str) -> Binding:
        return self._bindings[command_id]

    def __iter__(self) -> Iterator[Binding]:
        return (self._bindings[name] for name in self._commands if name in self._bindings)

    def clear(self) -> None:
        """Forget what the commands do, so that a closed window can go."""
        self._bindings.clear()
