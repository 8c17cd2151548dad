"""`satview guide`: print a guide to investigating a trace in a terminal, for people and assistants."""

from __future__ import annotations

import argparse
from typing import Any

from satview.base.named_files import resource_path
from satview.base.process import FINE


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `guide` to `subparsers`, argparse's group of commands."""
    subparsers.add_parser(
        "guide",
        help="how to investigate a trace in the terminal",
        description="Print a guide to investigating a trace with text output only.",
    )


def run(_args: argparse.Namespace) -> int:
    """Print the guide."""
    print(guide())
    return FINE


def guide() -> str:
    """Return the guide to investigating a trace that `satview guide` prints, as Markdown."""
    return resource_path("look/guide.md").read_text(encoding="utf-8").rstrip()
