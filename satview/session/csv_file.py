"""Writes a CSV file that appears only once it is complete."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

from satview.base.errors import UsageError


def write_whole(path: Path, write: Callable[[io.TextIOBase], None]) -> None:
    """Write a file beside its place and move it there when it is complete.

    Args:
        path: The file.
        write: Writes the text; whatever it raises leaves no file behind.

    Raises:
        UsageError: The file cannot be written.
    """
    part = path.with_name(path.name + ".part")
    try:
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                write(file)
            os.replace(part, path)  # noqa: PTH105  -- says what it does; Path.replace reads like text
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror or error}") from error
