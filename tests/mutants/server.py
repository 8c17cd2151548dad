"""Runs in a scratch tree: one fork for each request, from a process that has imported all but satview and its tests."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

PASSED, FAILED, LATE, NOT_OF_THE_TREE = 0, 1, 2, 3
_MEMORY_BYTES = 6 << 30
_FILE_BYTES = 1 << 30
_LIMIT_S, _LIMIT_TIMES = 10.0, 10.0  # of one test: what it took without a change, and more on a machine that is busy


class _Plugin:
    """Ends a test that takes too long; with a `coverage.Coverage`, notes what each reaches."""

    def __init__(self, taken_s: dict[str, float], coverage: Any = None) -> None:
        self.usual_s, self.coverage = taken_s, coverage
        self.taken_s: dict[str, float] = {}
        self.failed = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.coverage is not None:
            self.coverage.switch_context(nodeid)
        self.begin_s = time.monotonic()
        if nodeid in self.usual_s:
            signal.signal(signal.SIGALRM, _too_long)
            signal.setitimer(signal.ITIMER_REAL, _LIMIT_S + _LIMIT_TIMES * self.usual_s[nodeid])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.taken_s[nodeid] = time.monotonic() - self.begin_s
        if self.coverage is not None:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def _too_long(_signal: int, _frame: FrameType | None) -> NoReturn:
    os._exit(LATE)


def serve() -> None:
    """Answer requests, one JSON object a line on standard input, until it is closed."""
    import coverage  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    from PySide6 import QtTest, QtWidgets  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        print(json.dumps(_in_fork(json.loads(line))), file=answers, flush=True)


def _in_fork(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    begin_s = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.setpgid(0, 0)
        code = FAILED
        try:
            code = _run(request, writing)
        except BaseException:  # noqa: BLE001  -- a fork must not go on as its parent
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:  # until the child ends; the alarm of each test sees to it
        text = file.read()
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the tests have started and left
    answer = json.loads(text) if text else {}
    return {**answer, "code": os.waitstatus_to_exitcode(status), "taken_s": time.monotonic() - begin_s}


def _run(request: dict[str, Any], answers: int) -> int:
    """Run tests; return a code of this module."""
    os.set_inheritable(answers, False)
    os.dup2(os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
    for limit, most in ((resource.RLIMIT_AS, _MEMORY_BYTES), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))  # tests set limits of their own
    import pytest

    measured = None
    if request["map"]:
        import coverage

        measured = coverage.Coverage(data_file=None, config_file=False, include=request["map"])
        measured.start()
    else:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    plugin = _Plugin(request["taken_s"], measured)
    options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=short"]
    code = pytest.main([*options, *request["tests"]], plugins=[plugin])
    signal.setitimer(signal.ITIMER_REAL, 0)
    tree = str(Path.cwd())
    elsewhere = [
        file
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("satview", "tests") and (file := getattr(module, "__file__", None))
        if not file.startswith(tree + os.sep)
    ]
    answer: dict[str, Any] = {"failed": plugin.failed, "test_s": plugin.taken_s, "elsewhere": elsewhere}
    if measured is not None:
        measured.stop()
        data = measured.get_data()
        answer["lines"] = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
    with os.fdopen(answers, "w") as file:
        json.dump(answer, file)
    if elsewhere:
        return NOT_OF_THE_TREE
    return PASSED if code == 0 else FAILED
