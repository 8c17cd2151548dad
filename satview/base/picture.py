"""A picture of the window, taken by satview in a process of its own: the caller needs neither Qt nor a display."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 120


def screenshot(trace: Path, path: Path, options: list[str], size: str) -> str:
    """Have satview take a picture of a trace; return why that did not work, or nothing.

    Args:
        trace: The file.
        path: The new PNG.
        options: Such as `--range A..B --select N`.
        size: `WxH` of the window.
    """
    command = [sys.executable, "-m", "satview", str(trace), "--screenshot", str(path), "--size", size, *options]
    try:
        done = subprocess.run(  # noqa: S603  -- this very Python
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode not in (0, 1) or not path.exists():
        last = done.stderr.strip().splitlines()
        return last[-1].removeprefix("satview: ") if last else f"satview ended with {done.returncode}"
    return ""
