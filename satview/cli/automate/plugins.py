"""`satview plugins`: list the installed plug-ins and whether they are switched off."""

from __future__ import annotations

import argparse
import json
from typing import Any

from satview.base.plugins import all_plugins, are_disabled
from satview.base.process import FINE
from satview.base.safe_text import visible_line


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `plugins` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser(
        "plugins",
        help="list the plug-ins that other packages provide",
        description="List the installed plug-ins: readers, analyses, lanes, verdicts and exports.",
        epilog="SATVIEW_PLUGINS=off disables them. docs/plugins.md explains how to write one.",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Import all plug-ins and list them."""
    installed = all_plugins()
    for plugin in installed:
        plugin.value()  # imports the plug-in; sets `fault` if that fails
    if args.format == "json":
        print(json.dumps([{"kind": plugin.kind.word, "name": plugin.name, "package": plugin.package,
                           "switched_off": plugin.fault or None} for plugin in installed], indent=1))  # fmt: skip
    elif not installed:
        print("plug-ins are disabled by SATVIEW_PLUGINS=off" if are_disabled() else "no plug-ins are installed")
    for plugin in installed if args.format == "table" else ():
        state = f"switched off: {plugin.fault}" if plugin.fault else "on"
        print(visible_line(f"{plugin.kind.word:<9} {plugin.name:<20} {plugin.package:<32} {state}"))
    return FINE
