"""Writes the tables of the docs that come from the code: docs/keys.md, docs/traceevent.md.

`python tools/write_docs.py [--check]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from satview.events.modes import Mode
from satview.filters.expressions.vocabulary import FIELDS
from satview.session.command_table import COMMANDS, MOUSE_HELP

ROOT = Path(__file__).resolve().parents[1]


def keys_page() -> str:
    """Return docs/keys.md: every command of the viewer with its keys, then the mouse."""
    lines = [
        "# Keys and mouse",
        "",
        "Written from the command table by `python tools/write_docs.py`; press `?` in the viewer for the same list.",
        "",
        "| Menu | Command | Keys | What it does |",
        "| --- | --- | --- | --- |",
    ]
    for command in COMMANDS:
        title = command.title.replace("&", "").replace("\N{HORIZONTAL ELLIPSIS}", "")
        keys = " or ".join(f"`{key}`" for key in command.keys)
        menu = command.menu.value.replace("&", "")
        lines.append(f"| {menu} | {title} | {keys} | {command.help} |".replace("| |", "|  |"))
    lines += ["", "| Mouse | What it does |", "| --- | --- |"]
    lines += [f"| {gesture} | {text} |" for gesture, text in MOUSE_HELP]
    return "\n".join(lines) + "\n"


_KINDS = {"filter": "rules, captures, C", "run": "captures", "insert": "captures, handlers"}


def modes_page() -> str:
    """Return docs/traceevent.md: the modes of TraceEvent(), and when the fields of conditions are known."""
    lines = [
        "# TraceEvent(): modes, and what conditions know",
        "",
        "Written by `python tools/write_docs.py` "
        "from the tables that rules, the simulated kernel and the C export read.",
        "How rules are written: [filters.md](filters.md); how captures are made: [capture.md](capture.md).",
        "",
        "| n | value | `_NTO_TRACE_` | arguments after the mode | since | works in |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for mode in Mode:
        arguments = ", ".join(name.replace("_", " ") for name in mode.arguments)
        where = _KINDS[mode.kind] if mode.is_documented else "accepted; no manual says what it does"
        since = mode.since.value if mode.since.value != "6.x" else ""
        lines.append(f"| {int(mode)} | 0x{mode.word:08x} | {mode.name} | {arguments} | {since} | {where} |")
    lines += ["", "## Fields of conditions", "", "| Field | Means | Known |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {spec.help} | {spec.known} |" for name, spec in FIELDS.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the pages, or with --check tell whether they are current."""
    pages = {ROOT / "docs" / "keys.md": keys_page(), ROOT / "docs" / "traceevent.md": modes_page()}
    if "--check" in sys.argv:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != page for path, page in pages.items()))
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
