"""Captures over a real ssh on this machine: how soon they begin, and what becomes of them when something goes wrong."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from satview.formats.registry import open_trace
from tests.helpers.board import ROOT, Board

START = [sys.executable, "-P", "-c", "import sys; from satview.__main__ import main; sys.exit(main())"]
THROTTLE = """\
import os, socket, sys, threading, time
line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
def out():
    while data := line.recv(5000):
        os.write(1, data); time.sleep(len(data) / 100_000)
    os._exit(0)
threading.Thread(target=out).start()
while data := os.read(0, 65536):
    line.sendall(data)
line.shutdown(socket.SHUT_WR)
"""
BIG_MB = 200
PATIENCE_S = 5


class Case:
    """One capture on a board of its own.

    Args:
        title: What happens to it.
        words: Options of the command.
        prepare: Changes the board before.
        act: Done when 60 kB have come; gets the board and the command.
        limit: Bytes that a file may have; 0 = as many as it likes.
    """

    def __init__(
        self,
        title: str,
        words: str = "",
        prepare: Callable[[Board], Any] = lambda _board: None,
        act: Callable[[Board, subprocess.Popen[bytes]], Any] | None = None,
        limit: int = 0,
    ) -> None:
        self.title, self.words, self.prepare, self.act, self.limit = title, words.split(), prepare, act, limit

    def measure(self) -> str:
        """Return a row: what happened, what was said, seconds until the end, until the board was clean, the file."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            board = Board(folder / "board")
            try:
                self.prepare(board)
                return self._row(folder, board)
            finally:
                board.close()

    def _row(self, folder: Path, board: Board) -> str:
        path = folder / "run.kev"
        (folder / "targets.toml").write_text(
            f'[board]\naddress = "{board.profile.address}"\nssh_options = ["-F", "{board.client}"]\n'
            f'memory_folder = "{board.memory}"\n'
        )

        def limit() -> None:
            if self.limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))

        command = [*START, "capture", "board", "--targets", folder / "targets.toml", "-o", path, *self.words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        before = {file.name for file in (board.folder / "running").iterdir()}
        begin_s = event_s = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=limit)  # noqa: PLW1509  # fmt: skip
        header_s = 0.0
        while process.poll() is None and self.act is not None:
            header_s = header_s or (time.monotonic() if path.exists() else 0.0)
            if path.exists() and path.stat().st_size > 60_000:
                event_s = time.monotonic()
                self.act(board, process)
                break
            time.sleep(0.01)
        out, error = process.communicate()
        end_s = time.monotonic()
        while [pid for pid in board.loggers() if str(pid) not in before] or list(board.memory.iterdir()):
            if time.monotonic() - end_s > PATIENCE_S:
                break
            time.sleep(0.01)
        clean_s = max(0.0, time.monotonic() - event_s)
        said = (
            error.decode().strip().replace("satview: ", "").replace("\n", " / ")
            or out.decode().partition("\n")[0].partition(": ")[2]
        )
        trace = open_trace(path) if path.exists() else None
        held = (f"{len(trace.events):,} events, {trace.duration_ns / 1e9:.2f} s, "
                f"{', '.join(problem.kind.slug for problem in trace.problems) or 'no problem'}"
                if trace is not None else "none")  # fmt: skip
        header = f", header after {header_s - begin_s:.1f} s" if header_s else ""
        cells = (self.title, process.returncode, f"{end_s - event_s:.1f} s{header}", f"{clean_s:.1f} s", held, said)
        return f"| {' | '.join(map(str, cells))} |"


def wrong_key(board: Board) -> None:
    """Let the client offer a key that the board does not know."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", board.folder / "other_key"], check=True)
    board.client.write_text(board.client.read_text().replace("user_key", "other_key"))


def start_logger(board: Board) -> None:
    """Start a logger on the board that is somebody else's."""
    environment = {**os.environ, "PATH": f"{board.folder}/bin:/usr/bin:/bin", "BOARD": str(board.folder)}
    subprocess.Popen([board.folder / "bin" / "tracelogger", "-c", "-f", board.folder / "own.kev"], env=environment,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    while not board.loggers():
        time.sleep(0.01)


def throttle(board: Board) -> None:
    """Let ssh connect through a program that passes 100 kB/s on."""
    program = board.folder / "throttle.py"
    program.write_text(THROTTLE)
    with board.client.open("a") as config:
        config.write(f"ProxyCommand {sys.executable} {program} %p\n")


def send_much(board: Board) -> None:
    """Let the logger send a large trace as fast as the line takes it."""
    trace = board.folder / "big.kev"
    subprocess.run([*START, "tracelogger", "--events", str(BIG_MB * 62_500), "-f", trace], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    board.add_program("tracelogger", f"exec cat {trace}")


def hold(board: Board, _process: subprocess.Popen[bytes]) -> None:
    """Stop what serves the connections, as when the cable is drawn and neither side is told."""
    for pid in board.servers():
        os.kill(pid, signal.SIGSTOP)


CASES = (
    Case("nothing", "--for 5s"),
    Case(f"nothing, {BIG_MB} MB as fast as it goes", prepare=send_much),
    Case("nothing, 6.4 by memory", "--for 5s", lambda board: board.runs("6.4.1", "6.x")),
    Case("Ctrl+C", act=lambda _board, process: process.send_signal(signal.SIGINT)),
    Case("satview is killed", act=lambda _board, process: process.kill()),
    Case("the line is cut", act=lambda board, _process: board.cut()),
    Case("the line is cut, and nobody reaches the board", act=lambda board, _process: board.lose()),
    Case("the line is silent", act=hold),
    Case("a line of 0.1 MB/s", "--for 5s", throttle),
    Case("the disk is full after 150 kB", limit=150_001),
    Case("a key that the board does not know", prepare=wrong_key),
    Case("a wrong release", prepare=lambda board: board.runs("4.25", "7.x")),
    Case("a logger runs already", prepare=start_logger),
    Case("the clock is set by an hour", "--for 3s", act=lambda board, _process: board.says(ahead="3600")),
)


def run(arguments: list[str]) -> None:
    """Print the table of all cases, or of those whose titles hold a word."""
    print("| what happens | exit | ends within | board clean within | file | said |")
    print("|" + " --- |" * 6)
    for case in CASES:
        if not arguments or any(word in case.title for word in arguments):
            print(case.measure(), flush=True)
