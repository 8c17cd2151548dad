"""Files on the command line: an argument says by its type whether it names what is read or what is written.

What a command reads is never what it writes: `main` asks `files_read` for everything that the arguments name and that
belongs to it, and `satview.base.targets` refuses an output that is one of those files under any name.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import visible_line
from satview.cli.shared.progress import working, working_on
from satview.fleet.export import Exported, export_folder
from satview.fleet.layout import DEFAULT_TABLES, SKIPPED
from satview.formats.unixware.reader import open_thread_trace
from satview.formats.unpacked import opened_plain
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.session.axis_files import AxisRequest


class InputFile(str):
    """The name of a file or folder that a command reads: the `type` of such an argument."""

    __slots__ = ()


def add_user_events(add: Any) -> None:
    """Add the option with a file that describes events.

    Args:
        add: `add_argument` of a parser or of a group of one.
    """
    add("--user-events", default="", metavar="FILE", type=InputFile,
        help="XML of the vendor's toolkit: names and fields of user events, and of others")  # fmt: skip


class RuleFile(InputFile):
    """The name of a rule file, which names files of functions that it calls."""

    __slots__ = ()


class OutputFile(str):
    """The name of a file or folder that a command writes: the `type` of such an argument."""

    __slots__ = ()


def files_read(args: argparse.Namespace) -> Iterator[Path]:
    """Yield the files that a parsed command line reads, under the names that it gives; `-` is standard input.

    With a trace these are the files it is made of and its notes, with rules the handlers they call, with a data set
    its tables. A name of something else, such as a workload, is yielded as it is.
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
    from satview.formats.registry import source_files  # on first use, as below: an output is there already

    yield from source_files(path)
    if isinstance(name, RuleFile):
        from satview.filters.rules.text import called_files

        yield from called_files(path)
    if path.is_dir():
        from satview.fleet.layout import Dataset, is_dataset

        if is_dataset(path):
            yield from Dataset(path).files()


# What the commands for thread traces have in common: their files, opening them, and what is said at the end.


_MANY: Final = 20  # problems that are printed


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the files of a command, and which of their categories it reads."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=InputFile,
        help="a thread trace file (its set is found), a directory of them, or several",
    )
    parser.add_argument("--categories", metavar="NAMES", help="read these categories only, such as mutex:cond:sema")


def open_set(files: list[str], categories: str | None) -> Trace:
    """Open thread traces; a single one may be compressed, or `-` for standard input.

    Raises:
        SatviewError: They are none.
        OSError: One cannot be read.
    """
    if len(files) > 1:
        return open_thread_trace([Path(file) for file in files], categories=categories)
    return opened_plain(Path(files[0]), lambda plain: open_thread_trace(plain, categories=categories))


def say_problems(trace: Trace) -> int:
    """Print the first problems of a trace to standard error; return the exit code: 1 if they cost data."""
    for problem in list(trace.problems)[:_MANY]:
        position = f"{problem.file}, " if problem.file else ""
        position += f"line {problem.line}: " if problem.line else ""
        say(f"{position}{problem.detail}")
    return COST_DATA if trace.problems.cost_data else FINE


# Options that say where files are on a time axis, for `satview together` and `satview --together`.


def add_axis_options(add: Any) -> None:
    """Add what says where files are on an axis.

    Args:
        add: `add_argument` of a parser or of a group of one.
    """
    add("--names", default="", metavar="A,B", help="what the files are called (by their names)")
    add("--offset", action="append", default=[], metavar="B=TIME",
        help="file B, by name or number, begins so long after the first one: 12.5ms, -2s; repeatable")  # fmt: skip
    add("--align", default="start", metavar="WHAT",
        help="for files without --offset: start (default), counter (the stamps count from the same moment), or an "
        "expression: the first event that fits is at the same time in all")  # fmt: skip
    add("--number", type=int, default=1, metavar="N", help="with an expression: the N-th event that fits (1)")


def axis_request(args: argparse.Namespace, files: list[Path]) -> AxisRequest:
    """Return what the options say.

    Raises:
        UsageError: An offset is none, or the descriptions of events are faulty.
    """
    from satview.session.axis_files import AxisRequest

    offsets = {}
    for text in args.offset:
        name, sign, time = text.partition("=")
        if not sign or not name:
            raise UsageError(
                f"--offset {text[:40]!r} is no offset; write B=12.5ms, B being the name or number of a file"
            )
        offsets[name] = time
    names = tuple(name.strip() for name in args.names.split(",")) if args.names else ()
    described = read_user_events(Path(args.user_events)).events if args.user_events else {}
    return AxisRequest(tuple(files), names, offsets, args.align, args.number, described)


# The whole command line as one parser: what shell completion and the manual page are written from.


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


# What `satview export` and `satview query` do with many traces at once.


_MOST_FAULTS = 20


def export(args: argparse.Namespace) -> int:
    """Export a folder of traces; return 0, or 1 if one was skipped or its problems cost data.

    Raises:
        UsageError: The arguments do not fit, or there is no trace.
    """
    from satview.tables.schema import SCHEMAS

    if args.range or args.expression or args.by_class or args.format not in (None, "parquet"):
        raise UsageError("of a folder of traces whole tables are written, as Parquet")
    if args.user_events:
        raise UsageError("--user-events is for a single trace; export these one by one")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs} is no number of processes")
    tables = list(SCHEMAS) if "all" in args.table else [*args.table]
    if args.arguments and "argument" not in tables:
        tables = [*(tables or DEFAULT_TABLES), "argument"]
    if args.dask:
        from satview.fleet.export import export_on_cluster

        with working(working_on("exporting", args.file)):
            found = export_on_cluster(args.file, args.output, args.dask, tables, args.pattern)
    else:
        jobs = args.jobs or os.cpu_count() or 1
        with working(working_on("exporting", args.file)) as report:
            found = export_folder(args.file, args.output, tables, jobs, args.pattern,
                                  lambda _done, number, count: report(number / count))  # fmt: skip
    return _report(found, args.output)


def _report(found: Exported, name: str) -> int:
    for each in found.skipped[:_MOST_FAULTS]:
        say(f"{visible_line(each.name)} skipped: {visible_line(each.fault)}")
    if len(found.skipped) > _MOST_FAULTS:
        say(f"and {len(found.skipped) - _MOST_FAULTS:,} more skipped; {SKIPPED} lists all of them")
    events = sum(each.events for each in found.done)
    parts = [f"{len(found.done):,} traces written, {events:,} events"]
    if found.unchanged:
        parts.append(f"{found.unchanged:,} there already")
    if found.skipped:
        parts.append(f"{len(found.skipped):,} skipped")
    print(f"{name}: {', '.join(parts)}")
    return COST_DATA if found.skipped or any(each.costs_data for each in found.done) else FINE
