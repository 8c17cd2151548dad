"""`satview mcp [DIR]`: run a server of the Model Context Protocol over standard input and output, for assistants."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from satview.base.errors import UsageError
from satview.base.process import FINE
from satview.cli.shared.files import InputFile, add_command, add_user_events
from satview.formats.user_event_file import read_user_events
from satview.look import make_server

_EPILOG = """\
Register it in your assistant's settings as a server with the command `satview mcp DIR`. It opens only traces below
these folders, writes nothing, and does not use the network. Tools: traces, look, verdicts, why, late,
tables, sql, picture. Needs the packages mcp, duckdb and pyarrow.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `mcp` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "mcp", "run a read-only MCP server for assistants",
                         "Answer questions about traces over standard input and output until the input ends.",
                         _EPILOG)  # fmt: skip
    parser.add_argument("folders", nargs="*", metavar="DIR", type=InputFile, default=["."],
                        help="folders with traces (default: the current one)")  # fmt: skip
    add_user_events(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Run the server until the input ends.

    Raises:
        UsageError: A folder does not exist, the event descriptions have an error, or the package mcp is missing.
    """
    folders = [Path(name) for name in args.folders]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder")
    described = read_user_events(Path(args.user_events)).events if args.user_events else {}
    make_server([folder.resolve() for folder in folders], described).run("stdio")
    return FINE
