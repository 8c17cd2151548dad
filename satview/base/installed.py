"""What is installed beside the code: files of the program, and packages that only some parts need."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from satview.base.errors import UsageError

# Packages that only some uses need: imported on first use, and named with what to type when they are not there.


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
            f"this needs the package {package}, which is not here: pip install '{_with_versions(package)}'"
        ) from error


def _with_versions(package: str) -> str:
    """Return a package with the versions that fit this satview, as pip takes it."""
    try:
        lines = requires("satview") or []
    except PackageNotFoundError:  # satview runs from a folder of sources
        lines = []
    needs = [line.partition(";")[0].strip() for line in lines]
    return next((need for need in needs if re.split(r"[^\w-]", need)[0] == package), package)


def refuse_missing(name: str) -> None:
    """Refuse to go on without a package that another process is going to import; here it is not imported.

    Raises:
        UsageError: As of `required`.
    """
    try:
        is_there = find_spec(name) is not None
    except ValueError:  # an entry of `sys.modules` that stands for nothing
        is_there = False
    if not is_there:
        required(name)


# Finds the files that ship with satview.


_PACKAGE = Path(__file__).resolve().parent.parent
_SAMPLE = "dense-4cpu.kev"


@cache
def _root() -> Path:
    # Inside a wheel the folder is satview/_resources; in a checkout it is beside the package.
    shipped = _PACKAGE / "_resources"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "resources"


def resource_path(name: str) -> Path:
    """Return the path of a shipped file, such as `events/thread.toml`.

    Raises:
        FileNotFoundError: No such file is shipped; names the file, not the machine's folders.
    """
    path = _root() / name
    if not path.exists():
        raise FileNotFoundError(f"satview ships no file {name!r}")
    return path


def sample_trace() -> Path:
    """Return the path of the trace that comes with satview, whether or not it is still there."""
    shipped = _root() / "samples" / _SAMPLE
    return shipped if shipped.exists() else _PACKAGE.parent / "sample_traces" / _SAMPLE
