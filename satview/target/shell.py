"""Folders and sockets of simulated targets on this machine, and the programs of their shells.

A target has a folder with a socket; only its user can enter the folder. A request is one line of JSON; the answer is a
sequence of frames: a letter for the kind, the length in four bytes, and the content. The programs of a target's shell
run this module alone, without the rest of satview, so that they start as quickly as on a board.
"""

import json
import os
import re
import signal
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DEFAULT_NAME: Final = "target"
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,39}")
OUTPUT, ERROR, SAID, DATA, REPORT, EXIT = b"o", b"e", b"s", b"d", b"r", b"x"
LINE_BYTES_MAX: Final = 1 << 16
FRAME: Final = struct.Struct(">cI")
_FRAME_BYTES_MAX: Final = 1 << 24
_CHUNK: Final = 1 << 16
_PATIENCE_S: Final = 10.0
GONE: Final = 1


class NoTargetError(Exception):
    """A simulated target does not run, or its folder is not private; the text states the problem and the remedy."""


def folder_of(name: str) -> Path:
    """Return the path of a simulated target's folder, which may not exist.

    Raises NoTargetError if this system has no sockets that only one user can reach.
    """
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "getuid"):
        raise NoTargetError("a simulated target that stays needs Unix sockets, which Python does not have on this "
                            "system; use `satview tracelogger`, or the Windows Subsystem for Linux")  # fmt: skip
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(runtime) / "satview" if runtime else Path(tempfile.gettempdir()) / f"satview-{os.getuid()}"
    return base / name


def make_private(folder: Path) -> None:
    """Create a folder that only this user can enter, or check that an existing one is private (NoTargetError)."""
    for level in (folder.parent, folder):
        try:
            level.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise NoTargetError(f"{level}: {error.strerror or error}") from error
        _check_private(level)


def _check_private(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise NoTargetError(f"{folder} must be a folder of yours that nobody else can enter; remove it, or "
                            "`chmod 700` it")  # fmt: skip


def connect(folder: Path) -> socket.socket:
    """Return a connection to the simulated target that has this folder.

    Raises NoTargetError if the target does not run, or other users have access to its folder.
    """
    try:
        _check_private(folder.parent)
        _check_private(folder)
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(folder / "socket"))
        except OSError:
            line.close()
            raise
    except OSError:
        raise NoTargetError(f"no simulated target called {folder.name} runs here; start it with "
                            f"`satview target{named(folder.name)}`") from None  # fmt: skip
    return line


def named(name: str) -> str:
    """Return the command-line option for a target's name, with a leading space; empty for the default name."""
    return "" if name == DEFAULT_NAME else f" --name {name}"


def address(name: str) -> str:
    """Return the address of a simulated target: `sim://` or `sim://NAME`."""
    return "sim://" if name == DEFAULT_NAME else f"sim://{name}"


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables for a shell of a target that differ from those of this process."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {"PATH": f"{folder / 'bin'}:{path}", "SATVIEW_TARGET": str(folder), "PS1": "# "}


def ask(line: socket.socket, request: dict[str, Any]) -> None:
    """Send a request to a target, as one line of JSON."""
    line.sendall(json.dumps(request).encode() + b"\n")


def frames(line: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each frame that the target sends, until the connection ends."""
    while head := _exactly(line, FRAME.size):
        kind, length = FRAME.unpack(head)
        content = _exactly(line, length) if length <= _FRAME_BYTES_MAX else b""
        if len(content) < length:
            return
        yield kind, content


def _exactly(line: socket.socket, count: int) -> bytes:
    """Receive and return exactly `count` bytes; return no bytes if the connection ends earlier."""
    parts = []
    while count:
        try:
            part = line.recv(min(count, _CHUNK))
        except ConnectionError:
            part = b""
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def answer(folder: Path, words: list[str]) -> tuple[int, str, str]:
    """Run a program of a target's shell; return its exit code, standard output and standard error.

    Raises NoTargetError if the target does not run, or does not answer.
    """
    texts, code = {OUTPUT: b"", ERROR: b""}, GONE
    with connect(folder) as line:
        line.settimeout(_PATIENCE_S)
        try:
            ask(line, {"do": "command", "words": words, "folder": str(Path.cwd())})
            for kind, content in frames(line):
                if kind == EXIT:
                    code = content[0]
                else:
                    texts[kind] = texts.get(kind, b"") + content
        except OSError as error:
            raise NoTargetError(f"the simulated target {folder.name} does not answer ({error})") from error
    return code, texts[OUTPUT].decode("utf-8", "replace"), texts[ERROR].decode("utf-8", "replace")


def main(folder: Path, words: list[str]) -> int:
    """Run a program of a target's shell, print its output, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # when this process ends, the target ends the job
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with connect(folder) as line:
            ask(line, {"do": "command", "words": words, "folder": str(Path.cwd())})
            for kind, content in frames(line):
                if kind == EXIT:
                    return content[0]
                stream = sys.stdout if kind == OUTPUT else sys.stderr
                stream.buffer.write(content)
                stream.flush()
    except (NoTargetError, OSError) as error:
        sys.stderr.write(f"{words[0]}: {error}\n")
        return GONE
    sys.stderr.write(f"{words[0]}: the target has ended\n")
    return GONE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
