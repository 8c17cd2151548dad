"""Imports what draws plots beside the window: pyqtgraph takes 0.2 s, for which nothing may be held."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from satview.session.tasks import IsCancelled, Report

_MODULES: Final = tuple(f"satview.gui.plots.{name}_plot" for name in ("count", "duration", "load", "result"))


def are_imported() -> bool:
    """Return whether plots can be made at once."""
    return all(name in sys.modules for name in _MODULES)


def import_plots(_is_cancelled: IsCancelled, _report: Report) -> None:
    """Import them; the function of a task."""
    for name in _MODULES:
        import_module(name)
