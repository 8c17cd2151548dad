"""The subcommands of `satview` that need no window. One module per command."""

from __future__ import annotations

import pkgutil


def command_names() -> dict[str, str]:
    """Return subcommand to module name; a command is a public module of `satview.cli` of one word or several."""
    return {
        info.name.replace("_", "-"): info.name
        for info in pkgutil.iter_modules(__path__)
        if not info.name.startswith("_")
    }
