"""Starts satview again in a process of its own that runs no code of the folder it is started in.

`python -m satview` puts the current folder first on the path of modules: a `numpy.py` beside somebody's traces would
be run instead of numpy. A child gets Python's own path and the package that this satview was loaded from, nothing else.
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
# Variables by which an environment adds code to a Python, or takes its library from elsewhere.
_LEADS_TO_CODE: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONBREAKPOINT")


def child_command(function: str, *arguments: str) -> list[str]:
    """Return the command that calls a function of satview in a new Python.

    Args:
        function: Module and name, as in `satview.__main__:entry`; it takes no arguments.
        arguments: What it finds in `sys.argv` behind the program's name.

    Raises:
        OSError: The program that runs here does not know where its Python is (some that embed it do not).
    """
    if not sys.executable:
        raise OSError("the Python that runs satview cannot be started again: its path is not known")
    module, name = function.split(":")
    package = Path(__file__).resolve().parents[1]
    # The very satview that runs here, be another one installed or not; what else is in its folder stays out of reach.
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

    Children of `multiprocessing` import their first modules before they get the path of this process.
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
    """Return the program of a name; None if there is none, or only in folders that are relative to the current one."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(folder for folder in folders if os.path.isabs(folder)))  # noqa: PTH117


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: this one's, without variables that lead to code, and `more`.

    Where only some folders are open (`satview.base.named_files.only_below`), the child is held to them too.
    """
    own = {name: value for name, value in os.environ.items() if name not in _LEADS_TO_CODE}
    if (limits := folders()) is not None:
        own[FOLDERS_VARIABLE] = os.pathsep.join(limits)
    return {**own, _SAFE: "1", **more}  # for what the child itself starts


_POLL_S: Final = 0.1


def run_satview(arguments: list[str], patience_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> str:
    """Run a command of satview to its end in a process of its own; return what it printed.

    Args:
        arguments: Of the command line.
        patience_s: It is ended after that long.
        is_cancelled: Called now and then; True ends it.

    Raises:
        UsageError: It failed, with what it said last, or took too long.
        Cancelled: It was cancelled.
        OSError: It cannot be started.
    """
    end_s = time.monotonic() + patience_s
    with subprocess.Popen(  # noqa: S603  -- this very Python
        child_command("satview.__main__:entry", *arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        env=child_environment(PYTHONIOENCODING="utf-8"), creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    ) as child:  # fmt: skip
        while True:
            try:
                printed, said = child.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                if is_cancelled() or time.monotonic() > end_s:
                    child.kill()
                    child.communicate()
                    if is_cancelled():
                        raise Cancelled from None
                    raise UsageError(f"satview did not end within {patience_s:g} s") from None
    if child.returncode not in (0, 1):  # 1: data was lost to problems of the trace
        last = said.strip().splitlines()
        raise UsageError(last[-1].removeprefix("satview: ") if last else f"satview ended with {child.returncode}")
    return printed


# A picture of the window, taken by satview in a process of its own: the caller needs neither Qt nor a display.


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
        run_satview(arguments, _PATIENCE_S)
    except (OSError, UsageError) as error:
        return str(error)
    return "" if path.exists() else "satview wrote no picture"
