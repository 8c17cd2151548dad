"""`python -m satview.threadtrace SCRIPT [ARGS]`: runs a Python program and traces its threads."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import runpy
import sys
import types
from types import TracebackType

from satview.threadtrace import codes
from satview.threadtrace.install import install
from satview.threadtrace.state import RecordOptions

_USAGE = 2
_OWN = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  -- pathlib is not for traced programs
_HELP = """environment:
  THR_TRACE_EVENTS   categories to trace, such as mutex:cond:sema; all without it
  THR_TRACE_DIR      directory for the files; the current one without it
  THR_TRACE_BUF      if set, each record is written at once

Look at the result with `satview DIRECTORY`, or list what threads waited for with `satview locks DIRECTORY`."""


def main(argv: list[str] | None = None) -> int:
    """Run a program with tracing; return its exit code, or 2 for invalid arguments."""
    given = sys.argv[1:] if argv is None else argv
    is_module = given[:1] == ["-m"]  # argparse would take options of the module for ours
    parser = _parser()
    options = parser.parse_args(given[1:] if is_module else given)
    if options.program is None:
        parser.error("name the program: a SCRIPT, or -m and a MODULE")
    program, arguments = options.program, [options.program, *options.arguments]
    if not is_module and not os.path.exists(program):  # noqa: PTH110
        return _refuse(f"{program}: there is no such file; check the name")
    if is_module and not _exists(program):
        return _refuse(f"there is no module {program}; check the name and the current directory")
    settings, strange = RecordOptions.from_environment()
    if strange:
        known = ":".join(codes.CATEGORIES)
        return _refuse(f"THR_TRACE_EVENTS names no category with {', '.join(strange)}; there are {known}")
    try:
        install(settings, program if is_module else os.path.abspath(program))  # noqa: PTH100
    except OSError as error:
        return _refuse(f"{settings.directory}: traces cannot be written: {error.strerror}; set THR_TRACE_DIR")
    return _run_module(program, arguments) if is_module else _run_script(program, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m satview.threadtrace",
        description="Runs a Python program and records what its threads do.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] (SCRIPT | -m MODULE) [ARGS ...]",
    )
    parser.add_argument("program", metavar="SCRIPT", nargs="?", help="the program; -m before it: a module")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _exists(module: str) -> bool:
    _look_first_in(os.getcwd())  # noqa: PTH109
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _look_first_in(folder: str) -> None:
    """Put a folder first in the import path, where Python has it without tracing too; nothing in safe-path mode."""
    if not sys.flags.safe_path:
        sys.path.insert(0, folder)


def _refuse(text: str) -> int:
    print(f"satview.threadtrace: {text}", file=sys.stderr)  # noqa: T201
    return _USAGE


def _run_script(script: str, arguments: list[str]) -> int:
    sys.argv = arguments
    if os.path.isdir(script) or script.endswith((".zip", ".pyz")):  # noqa: PTH112
        return _watched(lambda: runpy.run_path(script, run_name="__main__"))
    _look_first_in(os.path.dirname(os.path.abspath(script)))  # noqa: PTH100, PTH120
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=script, __builtins__=__builtins__)

    def run() -> None:
        with io.open_code(os.path.abspath(script)) as file:  # noqa: PTH100
            code = compile(file.read(), script, "exec", dont_inherit=True)
        # The program's globals must outlive its main thread, so its module replaces ours for good.
        sys.modules["__main__"] = main_module
        exec(code, main_module.__dict__)  # noqa: S102  -- running the program is what this command is for

    return _watched(run)


def _run_module(module: str, arguments: list[str]) -> int:
    sys.argv = arguments
    return _watched(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


def _watched(run: object) -> int:
    """Run the program; print an uncaught exception as Python would, without the frames of this package."""
    assert callable(run)
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  -- Python prints any uncaught exception and exits with 1
        trace = error.__traceback__
        while trace is not None and _is_ours(trace):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _is_ours(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_OWN, "<frozen runpy")) or os.path.basename(file) == "runpy.py"  # noqa: PTH119


if __name__ == "__main__":
    sys.exit(main())
