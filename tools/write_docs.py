"""Writes the tables of the docs that come from the code: docs/keys.md. `python tools/write_docs.py [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

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


def main() -> int:
    """Write the page, or with --check tell whether it is current."""
    path = ROOT / "docs" / "keys.md"
    page = keys_page()
    if "--check" in sys.argv:
        return int(not path.exists() or path.read_text(encoding="utf-8") != page)
    path.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
