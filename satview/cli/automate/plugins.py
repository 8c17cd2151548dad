"""`satview plugins`: what other packages add to satview here, and what of it is switched off."""

from __future__ import annotations

import argparse
import json
from typing import Any

from satview.base.plugins import all_plugins
from satview.base.process import FINE
from satview.base.safe_text import visible_line


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "plugins",
        help="list the plug-ins that other packages provide",
        description="List the installed plug-ins: readers, analyses, lanes, verdicts and exports.",
        epilog="SATVIEW_PLUGINS=off disables them. docs/plugins.md explains how to write one.",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Import all plug-ins and list them."""
    found = all_plugins()
    for each in found:
        each.value()  # says whether it can be imported
    if args.format == "json":
        print(json.dumps([{"kind": each.kind.word, "name": each.name, "package": each.package,
                           "switched_off": each.fault or None} for each in found], indent=1))  # fmt: skip
    elif not found:
        print("no plug-ins are installed")
    for each in found if args.format == "table" else ():
        state = f"switched off: {each.fault}" if each.fault else "on"
        print(visible_line(f"{each.kind.word:<9} {each.name:<20} {each.package:<32} {state}"))
    return FINE
