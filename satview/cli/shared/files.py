"""Files on the command line: an argument says by its type whether it names what is read or what is written.

What a command reads is never what it writes: `main` asks `files_read` for everything that the arguments name and that
belongs to it, and `satview.base.targets` refuses an output that is one of those files under any name.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any


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
