"""Packages that only some uses need: imported on first use, and named with what to type when they are not there."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from satview.base.errors import UsageError

_INSTALL: Final = {
    "pyarrow": "satview[tables]",
    "duckdb": "satview[tables]",
    "pandas": "pandas",
    "polars": "polars",
    "dask": "satview[dask]",
    "distributed": "satview[dask]",
    "mcp": "satview[mcp]",
}


def required(name: str) -> Any:
    """Return a package, or one of its modules.

    Args:
        name: `pyarrow`, `pyarrow.parquet`, `duckdb`, ...

    Raises:
        UsageError: It is not installed; says how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UsageError(
            f"this needs the package {package}, which is not here: pip install '{_INSTALL[package]}'"
        ) from error
