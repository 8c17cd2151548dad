"""Options that say where files are on a time axis, for `satview together` and `satview --together`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satview.base.errors import UsageError

if TYPE_CHECKING:
    from satview.session.axis_files import AxisRequest


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
    from satview.formats.user_event_file import read_user_events  # these bring numpy; --help needs none
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
