"""Control programs: Python files that call TraceEvent() on the simulated target, as the guide's C programs do."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from satview.base.errors import UsageError
from satview.capture.sim.threads import Body


def load(path: str | Path) -> Body:
    """Return the `main` of a control program; it yields `TraceEvent(...)`, `Sleep(...)` and other calls.

    Raises:
        UsageError: The file cannot be read or run, or defines no main().
    """
    path = Path(path)
    try:
        values: dict[str, Any] = runpy.run_path(str(path), run_name="satview_control")
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror or error}") from error
    except SyntaxError as error:
        raise UsageError(f"{path.name}, line {error.lineno}: {error.msg}") from error
    except Exception as error:
        raise UsageError(f"{path.name}, line {line_in(error, path)}: {type(error).__name__}: {error}") from error
    main = values.get("main")
    if not callable(main):
        raise UsageError(f"{path.name}: defines no main()")
    body: Body = main
    return body


def line_in(error: BaseException, path: Path) -> int:
    """Return the innermost line of a file that an exception passed through, 0 if none."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
