"""The subcommands of `satview` that need no window. One module per command; `shared` is what they have in common.

`targets` is in the module of `capture`, whose targets it lists.
"""

from __future__ import annotations

import pkgutil


def command_names() -> dict[str, str]:
    """Return subcommand to module name: each module here is a command, and `shared` is what they have in common."""
    modules = {info.name.replace("_", "-"): info.name for info in pkgutil.iter_modules(__path__) if not info.ispkg}
    return {**modules, "targets": "capture"}
