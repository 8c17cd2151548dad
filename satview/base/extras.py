"""Imports optional packages on first use; the error for a missing one gives the command that installs it."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from satview.base.errors import UsageError


def required(name: str) -> Any:
    """Import and return an optional package, or one of its modules.

    Args:
        name: `pyarrow`, `pyarrow.parquet`, `duckdb`, ...

    Raises:
        UsageError: The package is not installed; the text gives the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UsageError(
            f"this needs the package {package}, which is not here: pip install '{_with_versions(package)}'"
        ) from error


def _with_versions(package: str) -> str:
    """Return a package with the versions that this satview needs, as a requirement for pip."""
    from importlib.metadata import PackageNotFoundError, requires  # as in `base.plugins`

    try:
        lines = requires("satview") or []
    except PackageNotFoundError:  # satview runs from a folder of sources
        lines = []
    needs = [line.partition(";")[0].strip() for line in lines]
    return next((need for need in needs if re.split(r"[^\w-]", need)[0] == package), package)


def refuse_missing(name: str) -> None:
    """Check that an optional package is installed, without importing it; for a package that a child process needs.

    Raises:
        UsageError: The package is not installed; the text is that of `required`.
    """
    try:
        is_there = find_spec(name) is not None
    except ValueError:  # an entry of `sys.modules` without a spec
        is_there = False
    if not is_there:
        required(name)
