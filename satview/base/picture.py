"""A picture of the window, taken by satview in a process of its own: the caller needs neither Qt nor a display."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from satview.base.child import child_command, child_environment

_PATIENCE_S: Final = 120


def screenshot(trace: Path, path: Path, options: list[str], size: str) -> str:
    """Have satview take a picture of a trace; return why that did not work, or nothing.

    Args:
        trace: The file.
        path: The new PNG.
        options: Such as `--range A..B --select N`.
        size: `WxH` of the window.
    """
    arguments = [str(trace.absolute()), "--screenshot", str(path.absolute()), "--size", size, *options]
    try:
        done = subprocess.run(  # noqa: S603  -- this very Python
            child_command("satview.__main__:entry", *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            env=child_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode not in (0, 1) or not path.exists():
        last = done.stderr.strip().splitlines()
        return last[-1].removeprefix("satview: ") if last else f"satview ended with {done.returncode}"
    return ""
