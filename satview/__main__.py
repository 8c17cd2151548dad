"""The command `satview`: opens files in windows, or runs a subcommand of `satview/cli`."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
from itertools import pairwise
from types import ModuleType
from typing import Final, NoReturn

from satview import __version__
from satview.base.errors import SatviewError, UsageError, reading_fault
from satview.base.named_files import name_fault
from satview.base.new_file import keeps_inputs
from satview.base.process import (
    BAD_USE,
    FINE,
    INTERNAL,
    INTERRUPTED,
    Ended,
    OutputError,
    checked_output,
    end_process,
    internal_report,
    say,
    signals_raise,
)
from satview.base.safe_text import visible_line
from satview.cli import command_names
from satview.cli.shared.files import files_read, with_times_attached
from satview.core import CoreError

# How Python ends its message where there is no memory for the stack of a thread, or for an exception of C code.
_NO_MEMORY: Final = (
    "can't start new thread",
    "error return without exception set",
    "returned NULL without setting an exception",
)
_OBJECTS: Final = 20_000  # more than are freed, before cycles are looked for


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments without the program's name; None = the arguments of the process.

    Returns:
        The exit code: 0 = success, 1 = opened, but problems of the trace cost data, 2 = not a trace, or wrong use,
        3 = `check` found something, 70 = an error inside satview, 128 + number = ended by that signal.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        with checked_output():
            return _run(arguments)
    except (SatviewError, CoreError, OutputError, OSError, MemoryError) as error:
        return _failed(error, arguments)
    except SystemExit as stop:  # argparse has said what was wrong
        return stop.code if isinstance(stop.code, int) else FINE if stop.code is None else BAD_USE
    except (RuntimeError, SystemError) as error:
        return _failed(MemoryError(), arguments) if str(error).endswith(_NO_MEMORY) else _internal(error, arguments)
    except (KeyboardInterrupt, Ended) as signal:
        return _ended(signal)
    except Exception as error:  # noqa: BLE001  -- the last resort of commands
        return _internal(error, arguments)


def entry() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    # On import, numpy would start a thread for each processor, to compute with matrices; satview has none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imports alone create two hundred thousand objects, which the garbage collector would scan three hundred times.
    gc.set_threshold(_OBJECTS)
    end_process(main())


def _check(arguments: list[str]) -> None:
    """Refuse empty arguments and values, NUL and invalid characters, and `--` as the value of an option.

    argparse would drop a value `--`, and an empty name would stand for the current folder or for a missing option.

    Raises:
        UsageError: An argument is refused; the message names it.
    """
    for before, argument in pairwise(["", *arguments]):
        if not argument or re.fullmatch(r"--[a-z-]+=", argument):
            name = argument or (f"{before} ''" if before.startswith("-") else "''")
            raise UsageError(f"argument {name} is empty; is a variable of the shell not set?")
        if fault := name_fault(argument):
            raise UsageError(f"argument {ascii(argument)[:60]}: {fault}")
        if argument.startswith("-") and argument.lstrip("-") and (argument.endswith("=--") or argument[2:] == "--"):
            raise UsageError(f"argument {argument[:60]}: -- is not a value")


def _run(arguments: list[str]) -> int:
    _check(arguments)
    if arguments and arguments[0] in command_names():
        with signals_raise():
            return _run_command(arguments)
    from satview.viewer_command import run_viewer  # what commands need none of: a tenth of their start

    return run_viewer(arguments)


def _failed(error: Exception, arguments: list[str]) -> int:
    """Print a sentence about an error, and return the exit code for it."""
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, such as `head`
        return FINE
    if isinstance(error, OutputError):
        say(f"standard output: {error}")
    elif isinstance(error, (SatviewError, CoreError)):
        say(str(error))
    elif isinstance(error, MemoryError):
        say("there is not enough memory for this; cut the trace with `satview filter`, or use a larger machine")
    elif isinstance(error, OSError) and error.filename is not None:
        say(f"{error.filename}: {reading_fault(error)}")
    else:
        return _internal(error, arguments)
    return BAD_USE


def _ended(signal: KeyboardInterrupt | Ended) -> int:
    """Return the exit code for a signal; after Ctrl+C, print that the command was interrupted."""
    if isinstance(signal, Ended):
        return signal.code
    say("interrupted")
    return INTERRUPTED


def _internal(error: Exception, arguments: list[str]) -> int:
    cause: BaseException | None = error
    while cause is not None:  # Python up to 3.11 makes any exception in a class definition the cause of a RuntimeError
        if isinstance(cause, (KeyboardInterrupt, Ended)):
            return _ended(cause)
        cause = cause.__cause__
    say("an error inside satview; your files are untouched. Please report the lines below, nothing was sent.")
    sys.stderr.write(internal_report(error, " ".join(["satview", *arguments]), __version__))
    return INTERNAL


def _run_command(arguments: list[str]) -> int:
    module = importlib.import_module(f"satview.cli.{command_names()[arguments[0]]}")
    if not hasattr(module, "add_parser"):
        raise UsageError(f"{arguments[0]!r} is not a command; `satview --help` lists them")
    parsed = _parsed(module, arguments)
    with keeps_inputs(lambda: files_read(parsed)):
        code = int(module.run(parsed))
    if arguments[0] != "plugins":  # which lists them
        _report_plugins()
    return code


def _parsed(module: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Return the parsed arguments of a command, whose options may come before, between and after its files.

    Args:
        module: Module of the command, in `satview.cli`.
        arguments: Name of the command, then its arguments.
    """
    commands = argparse.ArgumentParser(prog="satview").add_subparsers()
    module.add_parser(commands)
    parser: argparse.ArgumentParser = commands.choices[arguments[0]]
    rest = with_times_attached(arguments[1:])
    if any(isinstance(action, argparse._SubParsersAction) for action in parser._actions):
        return parser.parse_args(rest)  # argparse cannot intermix where an argument decides what follows
    return parser.parse_intermixed_args(rest)


def _report_plugins() -> None:
    """Print which plug-ins were switched off because they failed."""
    module = sys.modules.get("satview.base.plugins")  # not imported for this
    for text in module.newly_switched_off() if module is not None else ():
        say(visible_line(text))


if __name__ == "__main__":
    entry()
