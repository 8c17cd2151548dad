"""Reads files that a person writes, which are never large."""

from __future__ import annotations

from pathlib import Path

from satview.base.errors import UsageError
from satview.base.named_files import name_fault


def read_small(path: Path, limit_bytes: int, too_large: str) -> bytes:
    """Return the bytes of a file; never reads more than the limit, whatever the file is.

    Args:
        path: The file.
        limit_bytes: How many it may have.
        too_large: What to say if it has more.

    Raises:
        UsageError: It cannot be read, or has more bytes; names the file.
    """
    if fault := name_fault(str(path)):
        raise UsageError(f"{path.name}: {fault}")
    try:
        with path.open("rb") as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror or error}") from error
    if len(data) > limit_bytes:
        raise UsageError(f"{path.name}: {too_large}")
    return data
