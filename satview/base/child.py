"""Starts satview in a child process that runs no code from the current folder.

`python -m satview` puts the current folder first on the path of modules, so that a `numpy.py` in a folder of traces
would be run instead of numpy. A child gets only Python's own path, and the package from which this satview was loaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from satview.base.errors import Cancelled, UsageError
from satview.base.named_files import VARIABLE as FOLDERS_VARIABLE
from satview.base.named_files import folders

_SAFE: Final = "PYTHONSAFEPATH"
# Environment variables that make Python run other code, or load its library from elsewhere.
_LEADS_TO_CODE: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONBREAKPOINT")


def child_command(function: str, *arguments: str) -> list[str]:
    """Return the command line that calls a function of satview, `satview.__main__:entry`, in a new Python process.

    Raises OSError if the path of the running Python is not known, as in some programs that embed it.
    """
    if not sys.executable:
        raise OSError("the Python that runs satview cannot be started again: its path is not known")
    module, name = function.split(":")
    package = Path(__file__).resolve().parents[1]
    # Load the satview that runs here, whether another one is installed or not, but no other module of its folder.
    code = (
        "import sys; from importlib.util import module_from_spec, spec_from_file_location; "
        f"spec = spec_from_file_location('satview', {str(package / '__init__.py')!r}, "
        f"submodule_search_locations=[{str(package)!r}]); "
        "sys.modules['satview'] = package = module_from_spec(spec); spec.loader.exec_module(package); "
        f"from {module} import {name}; {name}()"
    )
    return [str(Path(sys.executable).absolute()), "-P", "-c", code, *arguments]


@contextmanager
def safe_children() -> Iterator[None]:
    """Keep the current folder off the module path of every Python that is started in a block.

    `multiprocessing` needs this, as its children import their first modules before they receive this process's path.
    """
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before


def absolute_program(name: str) -> str | None:
    """Return the path of a program, found by its name in the absolute folders of PATH; None if there is none."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))  # noqa: PTH117


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of this process for a child, with the variables `more` set.

    Variables by which Python would find or run code of other folders, such as PYTHONPATH, are removed. Limits on the
    folders that may be read (`satview.base.named_files.only_below`) hold for the child too.
    """
    own = {name: value for name, value in os.environ.items() if name not in _LEADS_TO_CODE}
    if (limits := folders()) is not None:
        own[FOLDERS_VARIABLE] = os.pathsep.join(limits)
    return {**own, _SAFE: "1", **more}  # for what the child itself starts


_POLL_S: Final = 0.1


def run_satview(arguments: list[str], patience_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> str:
    """Run a command of satview in a child process; return its standard output.

    Args:
        arguments: Arguments of the command line.
        patience_s: Time limit, after which the process is killed.
        is_cancelled: Called now and then; returns True to kill the process.

    Raises:
        UsageError: The command failed, with its last message, or took too long.
        Cancelled: `is_cancelled()` returned True.
        OSError: The process cannot be started.
    """
    end_s = time.monotonic() + patience_s
    with subprocess.Popen(  # noqa: S603  -- this very Python
        child_command("satview.__main__:entry", *arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        env=child_environment(PYTHONIOENCODING="utf-8"), creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    ) as child:  # fmt: skip
        while True:
            try:
                printed, errors = child.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                if is_cancelled() or time.monotonic() > end_s:
                    child.kill()
                    child.communicate()
                    if is_cancelled():
                        raise Cancelled from None
                    raise UsageError(f"satview did not end within {patience_s:g} s") from None
    if child.returncode not in (0, 1):  # 1: data was lost to problems of the trace
        last = errors.strip().splitlines()
        raise UsageError(last[-1].removeprefix("satview: ") if last else f"satview ended with {child.returncode}")
    return printed


# A picture of the window, taken by a child process: the caller needs neither Qt nor a display.


_PATIENCE_S: Final = 120


def screenshot(trace: Path, path: Path, options: list[str], size: str) -> str:
    """Write a PNG of a trace, taken in a child process; return the reason if that failed, else an empty text.

    `options` are more options of the command line, such as `--range A..B --select N`; `size` is `WxH` of the window.
    """
    arguments = [str(trace.absolute()), "--screenshot", str(path.absolute()), "--size", size, *options]
    try:
        run_satview(arguments, _PATIENCE_S)
    except (OSError, UsageError) as error:
        return str(error)
    return "" if path.exists() else "satview wrote no picture"
