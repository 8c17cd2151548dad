"""Paths of the files that ship with satview."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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
        FileNotFoundError: No such file is shipped; the text has no folders of the machine.
    """
    path = _root() / name
    if not path.exists():
        raise FileNotFoundError(f"satview ships no file {name!r}")
    return path


def sample_trace() -> Path:
    """Return the path of the trace that comes with satview; the file may have been removed."""
    shipped = _root() / "samples" / _SAMPLE
    return shipped if shipped.exists() else _PACKAGE.parent / "sample_traces" / _SAMPLE
