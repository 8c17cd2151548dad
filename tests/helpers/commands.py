"""Runs `satview` as a process of its own, without a start of Python for each: a server that has it imported forks.

What a start costs is 0.4 s of a processor, and hundreds of tests run a command. A fork has the descriptors,
environment, folder and signals of a fresh process. What it does not do is import, and take modules apart at its end.
Tests of starting itself (imports, closed descriptors) use `subprocess`.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_traces" / "vendor-all_classes.kev"
_SERVER = "from tests.helpers.commands import serve; serve()"
_state = SimpleNamespace(connection=None)


def satview(
    *arguments: object,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 240,  # a busy machine is many times slower
) -> subprocess.CompletedProcess[bytes]:
    """Run a command and wait for its end; as `subprocess.run`, with bytes.

    Raises:
        subprocess.TimeoutExpired: It was killed then.
    """
    command = [str(argument) for argument in arguments]
    environment = dict(os.environ if env is None else env)
    if not hasattr(os, "fork"):
        code = "import sys; from satview.__main__ import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", code, *command], stdin=stdin, stdout=stdout, stderr=stderr, env=environment,
            cwd=cwd, timeout=timeout, check=False,
        )  # fmt: skip
    ends = [_End.of(stdin, reads=True), _End.of(stdout), _End.of(stderr)]
    request = json.dumps([command, environment, str(cwd or Path.cwd())]).encode()
    connection = _connection()
    _send(connection, request, [end.theirs for end in ends])
    for end in ends:
        end.hand_over()
    pid = int.from_bytes(_exactly(connection, 8), "big")
    timer = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
    timer.start()
    readers = [end.start() for end in ends[1:]]
    for reader in readers:
        reader.join()
    code = int.from_bytes(_exactly(connection, 8), "big", signed=True)
    is_late = not timer.is_alive()
    timer.cancel()
    if is_late and code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(command, timeout, ends[1].data, ends[2].data)
    return subprocess.CompletedProcess(command, code, ends[1].data, ends[2].data)


class _End:
    """The descriptor that a command gets, and what is read from the other side of it."""

    def __init__(self, theirs: int, ours: int | None, is_made: bool) -> None:
        self.theirs, self._ours, self._is_made = theirs, ours, is_made
        self.data: bytes | None = None

    @classmethod
    def of(cls, given: IO[bytes] | int, reads: bool = False) -> _End:
        """Return the end for what `subprocess.run` takes: PIPE, DEVNULL, a descriptor or a file."""
        if given == subprocess.PIPE:
            ours, theirs = os.pipe()
            return cls(theirs, ours, True)
        if given == subprocess.DEVNULL:
            return cls(os.open(os.devnull, os.O_RDONLY if reads else os.O_WRONLY), None, True)
        return cls(given if isinstance(given, int) else given.fileno(), None, False)

    def hand_over(self) -> None:
        if self._is_made:
            os.close(self.theirs)

    def start(self) -> threading.Thread:
        """Read all of it in a thread."""
        thread = threading.Thread(target=self._read)
        thread.start()
        return thread

    def _read(self) -> None:
        if self._ours is not None:
            with open(self._ours, "rb") as file:  # noqa: PTH123  -- a descriptor
                self.data = file.read()


def _connection() -> socket.socket:
    if _state.connection is None:
        ours, theirs = socket.socketpair()
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

        def stop() -> None:
            ours.close()
            server.wait(10)

        atexit.register(stop)
        _state.connection = ours
    return _state.connection


def _send(connection: socket.socket, request: bytes, descriptors: list[int]) -> None:
    rights = array.array("i", descriptors)
    connection.sendmsg([len(request).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    connection.sendall(request)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def serve() -> None:
    """Fork for every request on the socket whose descriptor is the argument, until that is closed."""
    from satview.__main__ import main

    connection = socket.socket(fileno=int(sys.argv[1]))
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123
        for command in ("info", "stats", "filter", "traceprinter"):  # what they import when they need it, too
            main([command, str(SAMPLE)])
        main(["tracelogger", "--workload", "polite", "-f", os.devnull])
    gc.collect()
    gc.freeze()  # a fork that collects would copy all of it
    while True:
        try:
            header, rights, *_ = connection.recvmsg(8, socket.CMSG_SPACE(3 * 4))
            request = _exactly(connection, int.from_bytes(header, "big")) if header else None
        except EOFError:
            request = None
        if request is None:
            return
        descriptors = array.array("i")
        descriptors.frombytes(rights[0][2])
        pid = os.fork()
        if not pid:
            connection.close()
            _end(_become(descriptors.tolist(), *json.loads(request)))
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(pid.to_bytes(8, "big"))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(code.to_bytes(8, "big", signed=True))


def _become(descriptors: list[int], command: list[str], environment: dict[str, str], folder: str) -> Any:
    """Replace a fresh process, and run the command."""
    from satview.__main__ import main

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, max(descriptors) + 1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = ["satview", *command]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  -- as Python does at its start
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    return main()


def _end(code: int) -> NoReturn:
    """End as Python does, without taking all modules apart, which costs more than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = 120
    os._exit(code)
