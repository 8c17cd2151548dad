"""Writes CSV files that appear only once they are complete and hold nothing that a spreadsheet would carry out."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from satview.base.errors import UsageError

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


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


def harmless(text: str) -> str:
    """Return a text on one line that a spreadsheet does not take for a formula, whatever a program is called."""
    text = _BREAKS.sub(" ", text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
