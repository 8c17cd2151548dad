"""Runs commands in which the n-th allocation or read fails, whoever makes it: Python, numpy, the core.

A library is loaded before all others (`faults.c`); a process that has imported satview forks for every fault.
"""

from __future__ import annotations

import ctypes
import faulthandler
import io
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from tests.helpers.commands import ROOT

KINDS: Final = {"memory": 1, "error": 2, "short": 3, "limit": 4}
LEAST_BYTES: Final = 128 << 10  # smaller allocations fail by the thousand while modules are imported, too
_LIMIT_S: Final = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did.

    Attributes:
        code: Its exit code; below 0 the number of the signal that ended it.
        out, error: What it printed.
        calls: Allocations or reads that were counted.
        files: Names and bytes of the folder it ran in, afterwards.
    """

    code: int
    out: str
    error: str
    calls: int
    files: dict[str, int]


class Faults:
    """A process in which faults can be injected.

    Args:
        folder: Where commands run; a library is built beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = folder.with_name(f"{folder.name}-faults.so")
        source = Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.helpers.faults import serve; serve()", str(library)],
            cwd=folder,
            env={
                **os.environ,
                "LD_PRELOAD": str(library),
                "PYTHONPATH": str(ROOT),
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",  # byte code that a fault cuts off would break all tests that follow
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, arguments: Sequence[object], kind: str, file: Path, number: int, lasts: bool = False) -> Outcome:
        """Run a command.

        Args:
            arguments: Of `satview`; or `open` and a file: what a window does on its thread to open it.
            kind: Of `KINDS`.
            file: Whose reads are counted.
            number: Of the call that fails, from 1; 0 = none. Of kind `limit`: bytes that the process may have besides
                those that it has when the command begins.
            lasts: All later ones fail too.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        command = [str(argument) for argument in arguments]
        request = {"command": command, "kind": KINDS[kind], "file": str(file), "number": number, "lasts": lasts}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        files = {path.name: path.stat().st_size for path in self.folder.iterdir()}
        return Outcome(**answer, files=files)


@contextmanager
def faults_in(folder: Path) -> Iterator[Faults]:
    """Give a process in which faults can be injected."""
    faults = Faults(folder)
    try:
        yield faults
    finally:
        faults.close()


def serve() -> None:
    """Run the requests on standard input, each in a fork."""
    os.environ.pop("LD_PRELOAD")  # what commands start is as it always is
    library = ctypes.CDLL(sys.argv[1])
    import numpy as np  # noqa: F401  -- commands are to find it imported

    from satview.__main__ import main

    answers = os.fdopen(os.dup(1), "w")
    warm: set[str] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if request["command"][0] not in warm:  # what a command imports must not be what fails
            warm.add(request["command"][0])
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                _call(main, [request["command"][0], "--help"])
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _child(request, library, writing, main)
        os.close(writing)
        with os.fdopen(reading) as file:
            text = file.read()
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        crash = {"out": "", "error": _files_of(Path.cwd())[1].read_text(), "calls": 0}  # where it stood
        answer: dict[str, Any] = json.loads(text) if text else crash
        answers.write(json.dumps({**answer, "code": code}) + "\n")
        answers.flush()


def _call(main: Any, command: list[str]) -> int:
    if command[0] != "open":
        return int(main(command))
    from satview.base.errors import SatviewError
    from satview.session.loading.loading_tasks import read_file

    if command[1] == "--help":
        return 0
    try:
        read_file(Path(command[1]), lambda _sample: None, 0, 0, lambda: False, lambda _share: None)
    except (SatviewError, MemoryError) as error:  # what a window shows instead of the trace
        sys.stderr.write(f"satview: {str(error) or 'there is not enough memory'}\n")
        return 2
    return 0


def _files_of(folder: Path) -> tuple[Path, Path]:
    """Return where a command that runs in a folder prints to: its output and its errors."""
    return folder.with_name("faults-out.txt"), folder.with_name("faults-error.txt")


def _child(request: dict[str, Any], library: ctypes.CDLL, answers: int, main: Any) -> NoReturn:
    out, error = _files_of(Path.cwd())
    for descriptor, path in ((1, out), (2, error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)

    faulthandler.enable(2)

    def setting(name: str, number: int) -> None:
        ctypes.c_int64.in_dll(library, name).value = number

    status = Path(request["file"]).stat()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LIMIT_S)
    setting("fault_device", status.st_dev)
    setting("fault_inode", status.st_ino)
    setting("fault_least_bytes", LEAST_BYTES)
    setting("fault_lasts", int(request["lasts"]))
    setting("fault_at", request["number"])
    setting("fault_count", 0)
    setting("fault_kind", request["kind"])
    if request["kind"] == KINDS["limit"]:
        has_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has_bytes + request["number"], resource.RLIM_INFINITY))
    try:
        code = _call(main, request["command"])
    except BaseException:  # noqa: BLE001  -- nothing may leave the fork
        setting("fault_kind", 0)
        traceback.print_exc()
        code = 99
    setting("fault_kind", 0)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    calls = ctypes.c_int64.in_dll(library, "fault_count").value
    with os.fdopen(answers, "w") as file:
        json.dump({"out": out.read_text(), "error": error.read_text(), "calls": calls}, file)
    os._exit(code)
