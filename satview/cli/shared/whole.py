"""The whole command line as one parser: what shell completion and the manual page are written from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from satview.cli.shared.files import InputFile, OutputFile

SHELLS: Final = ("bash", "zsh", "tcsh")


def with_commands(parser: argparse.ArgumentParser, modules: dict[str, str]) -> argparse.ArgumentParser:
    """Return the parser of the viewer with all commands added to it.

    It describes the command line; it does not read one: the viewer takes files where a command may be.

    Args:
        parser: The viewer's own parser; changed.
        modules: Command to module of `satview.cli`.
    """
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name in sorted(modules):
        module = import_module(f"satview.cli.{modules[name]}")
        if hasattr(module, "add_parser"):
            module.add_parser(commands)
    # Commands come before the viewer's files: completion takes the first positional argument for the first word.
    parser._actions.sort(key=lambda action: action.dest == "files")
    return parser


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every option and argument of a parser and of its commands."""
    for action in parser._actions:  # argparse has no public list; shtab reads the same one
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a shell.

    Args:
        parser: The whole command line.
        shell: One of `SHELLS`.
    """
    import shtab  # on first use: only this needs it

    for action in actions(parser):
        if isinstance(action.type, type) and issubclass(action.type, (InputFile, OutputFile, Path)):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # the attribute that shtab reads
    script = str(shtab.complete(parser, shell))
    # The first word may be a command or a file, which shtab cannot say.
    script = script.replace("-F _shtab_satview satview", "-o default -F _shtab_satview satview")  # bash
    return script.replace("_describe 'satview commands' _commands", "_describe 'satview commands' _commands; _files")
