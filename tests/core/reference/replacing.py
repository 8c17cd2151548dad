"""Lets satview run on the reference instead of the compiled core."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from types import FunctionType
from typing import Any
from unittest import mock

from satview.export.listing import printer
from tests.core.reference import printing

_SUBJECTS = ("links", "loading", "pictures", "statistics")


@cache
def replacements() -> dict[Any, Any]:
    """Return what stands for each function and class of the core that the reference has."""
    found: dict[Any, Any] = {printer.CoreLines: printing.PlainLines}
    for subject in _SUBJECTS:
        module = importlib.import_module(f"tests.core.reference.{subject}")
        replaced = importlib.import_module(f"satview.core.{subject}")
        for name, value in vars(module).items():
            if (
                getattr(value, "__module__", "") == module.__name__
                and not name.startswith("_")
                and hasattr(replaced, name)
            ):
                found[getattr(replaced, name)] = value
    return found


@contextmanager
def numpy_passes() -> Iterator[None]:
    """Let the reference run wherever satview calls the core."""
    replaced = replacements()
    with ExitStack() as stack:
        for module in [module for name, module in sys.modules.items() if name.startswith("satview.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, (FunctionType, type)) and value in replaced:
                    stack.enter_context(mock.patch.object(module, name, replaced[value]))
        yield
