"""Options and files of commands; the type of an argument says whether its file is read or written.

A command never overwrites its input: `files_read` yields every named file and all files that belong to it, and
`satview.base.new_file` refuses an output that is the same file as one of these, under any name.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import shtab

from satview.base.errors import UsageError
from satview.base.new_file import refuse_ending

RANGES: Final = "1.2s..1.5s, -5s.. (the end), 25%%..50%%, #1200..#1300 (events), 06:19:01..06:19:02, 0x1f00c.. (cycles)"
_OPTIONS: Final = frozenset({"--range", "--at", "--from", "--to"})
_FROM_THE_END: Final = re.compile(r"-\s*[0-9.]")


class InputFile(str):
    """The name of a file or folder that a command reads: the `type` of such an argument."""

    __slots__ = ()


def add_command(subparsers: Any, name: str, summary: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Add a command with a `summary` for the list and return its parser; help keeps line breaks."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter, description=description, epilog=epilog
    )
    return parser


def add_user_events(add: Any) -> None:
    """Add the option `--user-events` to a parser or a group of options, by its `add_argument`."""
    add("--user-events", default="", metavar="FILE", type=InputFile,
        help="XML file from the vendor's toolkit with names and fields of user events and others")  # fmt: skip


def add_pidin(add: Any) -> None:
    """Add the option `--pidin`."""
    add("--pidin", default="", metavar="FILE", type=InputFile,
        help="what `pidin` printed on the target: names of processes and threads without one in the trace")  # fmt: skip


def add_symbols(add: Any) -> None:
    """Add the option `--symbols`."""
    add("--symbols", default="", metavar="FOLDER", type=ProgramFolder,
        help="folder with the target's programs (ELF files): addresses become functions, files and lines")  # fmt: skip


def add_names(add: Any, *, symbols: bool = False) -> None:
    """Add the options for files with names of events, of processes and threads, and of functions (`symbols`)."""
    add_user_events(add)
    add_pidin(add)
    if symbols:
        add_symbols(add)


def add_range(add: Any, what: str) -> None:
    """Add the option `--range`, with a help text on the effect, such as "only events in this range"."""
    add("--range", default="", metavar="A..B", help=f"{what}: {RANGES}")


def number(text: str) -> int:
    """Parse a decimal number, or a hexadecimal number with 0x; else raise ArgumentTypeError."""
    try:
        return int(text, 16) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number like 256 or 0x100") from None


def refuse_below(least: int, option: str, value: int | None) -> None:
    """Raise a UsageError if the value of an option is less than `least`; None = the option is not given."""
    if value is not None and value < least:
        raise UsageError(f"{option} must be at least {least}, not {value}")


def add_output(add: Any, help_text: str, metavar: str = "OUT") -> None:
    """Add the output of a command that reads one file: `-o OUT`, or OUT after the file; see `take_output`."""
    add("out", metavar=metavar, nargs="?", type=OutputFile, help=f"the same as -o {metavar}")
    add("-o", "--output", metavar=metavar, type=OutputFile, help=help_text)


def take_output(args: argparse.Namespace, missing: str = "", *endings: str) -> None:
    """Set `args.output` to the output that the command line names as OUT or with -o.

    Raises UsageError if two outputs are given, if none is given and `missing` is not empty, with that text, or if the
    ending of the output is not among `endings` (none = any).
    """
    if args.out is not None and args.output is not None:
        raise UsageError(f"two outputs are given, {args.out} and {args.output}; only one can be written")
    args.output = args.out if args.output is None else args.output
    if args.output is None and missing:
        raise UsageError(missing)
    if args.output is not None and endings:
        refuse_ending(args.output, *endings)


class RuleFile(InputFile):
    """Path of a rule file on the command line; its rules may call functions of Python files, which are inputs too."""

    __slots__ = ()


class ProgramFolder(InputFile):
    """Path of a folder of programs on the command line; those in folders below it are inputs too."""

    __slots__ = ()


class OutputFile(str):
    """The name of a file or folder that a command writes: the `type` of such an argument."""

    __slots__ = ()


def files_read(args: argparse.Namespace) -> Iterator[Path]:
    """Yield the files that a parsed command line reads, under the names that it gives; `-` is standard input.

    A trace includes the files that it consists of and its notes, a rule file the Python files that it calls, a data
    set its tables. A name that is not a file, such as that of a workload, is yielded too.
    """
    for value in vars(args).values():
        for name in value if isinstance(value, list | tuple) else (value,):
            if isinstance(name, InputFile) and name:
                yield from _files_of(name)


def _files_of(name: InputFile) -> Iterator[Path]:
    path = Path(name)
    if name == "-":
        yield path
        return
    from satview.formats.registry import source_files  # only needed if the output exists already

    yield from source_files(path)
    if isinstance(name, RuleFile):
        from satview.filters.rules.text import called_files

        yield from called_files(path)
    if isinstance(name, ProgramFolder):
        yield from (Path(parent, file) for parent, _, files in os.walk(path) for file in files)
    if path.is_dir():
        from satview.fleet.query import Dataset, is_dataset

        if is_dataset(path):
            yield from Dataset(path).files()


# Options for the positions of files on a time axis, for `satview together` and `satview --together`.


def add_axis_options(add: Any) -> None:
    """Add the options that set the positions of files on a common time axis."""
    add("--names", default="", metavar="A,B", help="names for the files (default: their file names)")
    add("--offset", action="append", default=[], metavar="B=TIME",
        help="start file B (name or number) this long after the first file: 12.5ms, -2s; repeatable")  # fmt: skip
    add("--align", default="start", metavar="WHAT",
        help="how to place files without --offset: start (default), counter (their time stamps share one "
        "counter), or an expression: its first match is at the same time in all files")  # fmt: skip
    add("--number", type=int, default=1, metavar="N", help="with an expression: use the N-th match (1)")


# The whole command line as one parser, for shell completion and the manual page.


SHELLS: Final = ("bash", "zsh", "tcsh")


def with_commands(parser: argparse.ArgumentParser, modules: dict[str, str]) -> argparse.ArgumentParser:
    """Add all commands, by their modules below `satview.cli`, to the parser of the viewer, and return it.

    The result only describes the command line; it cannot parse one, as the viewer takes files in the place of commands.
    """
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name in sorted(set(modules.values()), key=lambda name: name.partition(".")[2]):
        module = import_module(f"satview.cli.{name}")
        if hasattr(module, "add_parser"):
            module.add_parser(commands)
    # Commands come before the viewer's files: completion takes the first positional argument for the first word.
    parser._actions.sort(key=lambda action: action.dest == "files")
    return parser


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every option and argument of a parser and of its commands."""
    for action in parser._actions:  # argparse has no public list; shtab reads this one too
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a shell, one of `SHELLS`."""
    for action in actions(parser):
        if isinstance(action.type, type) and issubclass(action.type, (InputFile, OutputFile, Path)):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # the attribute that shtab reads
    script = str(shtab.complete(parser, shell))
    # The first word may be a command or a file, which shtab cannot express.
    script = script.replace("-F _shtab_satview satview", "-o default -F _shtab_satview satview")  # bash
    return script.replace("_describe 'satview commands' _commands", "_describe 'satview commands' _commands; _files")


def with_times_attached(arguments: Sequence[str]) -> list[str]:
    """Replace `--range -5s..` by `--range=-5s..` in arguments, because argparse takes `-5s..` for an option."""
    attached: list[str] = []
    for argument in arguments:
        if attached and attached[-1] in _OPTIONS and _FROM_THE_END.match(argument):
            attached[-1] += f"={argument}"
        else:
            attached.append(argument)
    return attached
