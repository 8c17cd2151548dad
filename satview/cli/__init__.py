"""The subcommands of `satview` that need no window: a folder for each purpose, a module for each command.

The command `targets` is in the module `capture`. `shared` contains code that several commands use. `run(args)` of a
command returns the exit code, and raises UsageError for options, files and names that it cannot work with.
"""

from __future__ import annotations

import pkgutil
from typing import Final

PURPOSES: Final = ("look", "ask", "measure", "convert", "capture", "automate")


def command_names() -> dict[str, str]:
    """Return by subcommand the module below `satview.cli` that contains it, such as `ask.why` for `why`."""
    modules = {
        info.name.replace("_", "-"): f"{purpose}.{info.name}"
        for purpose in PURPOSES
        for info in pkgutil.iter_modules([f"{__path__[0]}/{purpose}"])
    }
    return {**modules, "targets": modules["capture"]}
