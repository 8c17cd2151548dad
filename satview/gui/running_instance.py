"""A single GUI process per user: a second `satview FILE` passes its files to the running instance.

The processes communicate through a local socket that only the user can access. Messages are JSON with files and
positions, never code. `SATVIEW_INSTANCE=off` disables this, as do displays without a user, such as offscreen ones.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from platformdirs import user_state_path
from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from satview.base.named_files import name_fault
from satview.base.safe_text import visible_line
from satview.base.shared_file import DamagedFileError, as_declared, parsed_json
from satview.session.trace_link import TraceLink

SWITCH: Final = "SATVIEW_INSTANCE"
_FINE: Final = b"ok\n"
_BYTES_MAX: Final = 1 << 20
_CONNECT_MS: Final = 300
_ANSWER_MS: Final = 3000
_LINKS_MAX: Final = 100
_PATH_MAX: Final = 100  # limit of a socket path, in bytes
Open = Callable[[list[TraceLink], bool], None]


def instance_name() -> str | None:
    """Return the socket path (on Windows, the pipe name) of the running instance; None if the feature is disabled."""
    switch = os.environ.get(SWITCH, "")
    if switch.lower() in ("off", "0", "no"):
        return None
    if not switch and os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] in ("offscreen", "minimal", "vnc"):
        return None
    display = f"{switch} {os.environ.get('DISPLAY', '')} {os.environ.get('WAYLAND_DISPLAY', '')}"
    sign = hashlib.sha256(display.encode()).hexdigest()[:12]
    if sys.platform.startswith("win"):
        return f"satview-{getpass.getuser()}-{sign}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "satview" if runtime else user_state_path("satview", appauthor=False)
    path = str(folder / f"{sign}.socket")
    return path if len(os.fsencode(path)) <= _PATH_MAX else None


def hand_over(links: list[TraceLink], is_followed: bool) -> bool:
    """Let the running `satview` open, and perhaps follow, files; return False if none runs, or if it refused."""
    name = instance_name()
    if name is None or (not sys.platform.startswith("win") and not Path(name).exists()):
        return False
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_CONNECT_MS):
        return False
    rows = [asdict(link) | {"path": str(link.path.absolute())} for link in links]
    socket.write(json.dumps({"open": rows, "follow": is_followed}).encode() + b"\n")
    answer = b""
    while b"\n" not in answer and socket.waitForReadyRead(_ANSWER_MS):
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return answer == _FINE


class InstanceServer(QObject):
    """Receives the files that other `satview` processes of the user pass on, and opens them here."""

    def __init__(self, open_links: Open, parent: QObject) -> None:
        """Start to listen, unless another instance does; `open_links` opens files in new windows."""
        super().__init__(parent)
        self._open = open_links
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        self._heard: dict[QLocalSocket, bytes] = {}
        name = instance_name()
        if name is not None and _create_folder(name) and not _answers(name):
            QLocalServer.removeServer(name)  # left behind by a killed process
            self._server.listen(name)

    @property
    def is_listening(self) -> bool:
        """True if other `satview` processes can reach this one."""
        return self._server.isListening()

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    @Slot()
    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            self._heard[socket] = b""
            socket.readyRead.connect(self._on_read)
            socket.disconnected.connect(self._on_gone)
            patience = QTimer(socket)
            patience.timeout.connect(self._on_patience)
            patience.start(_ANSWER_MS)
            self._read(socket)

    @Slot()
    def _on_read(self) -> None:
        socket = self.sender()
        if isinstance(socket, QLocalSocket):
            self._read(socket)

    @Slot()
    def _on_patience(self) -> None:
        """Disconnect a client that has not sent a complete request in time."""
        timer = self.sender()
        for socket in list(self._heard):
            if timer is not None and timer.parent() is socket:
                socket.abort()

    @Slot()
    def _on_gone(self) -> None:
        socket = self.sender()
        if isinstance(socket, QLocalSocket):
            self._heard.pop(socket, None)
            socket.deleteLater()

    def _read(self, socket: QLocalSocket) -> None:
        heard = self._heard.get(socket, b"") + bytes(socket.readAll().data())
        self._heard[socket] = heard
        if len(heard) > _BYTES_MAX:
            socket.abort()
        elif heard.endswith(b"\n"):
            self._heard[socket] = b""
            self._answer(socket, heard)
            socket.disconnectFromServer()

    def _answer(self, socket: QLocalSocket, heard: bytes) -> None:
        """Accept a request and open its files, or reply with one line on why the request is malformed."""
        try:
            links, is_followed = _request(parsed_json(heard))
        except DamagedFileError as error:
            socket.write(f"{visible_line(str(error))}\n".encode())
            socket.flush()
            return
        socket.write(_FINE)
        socket.flush()
        self._open(links, is_followed)


@dataclass(frozen=True, slots=True)
class _Request:
    open: tuple[TraceLink, ...] = ()
    follow: bool = False


def _request(content: Any) -> tuple[list[TraceLink], bool]:
    """Return the files of a request, and whether to follow them; raise `DamagedFileError` if it is malformed."""
    request = as_declared(content, _Request)
    links = list(request.open)
    for name in (text for link in links for text in (str(link.path), link.session, link.beside)):
        if fault := name_fault(name):
            raise DamagedFileError(f"request: {ascii(name)[:80]}: {fault}")
    if not links or len(links) > _LINKS_MAX or not all(link.path.is_absolute() for link in links):
        raise DamagedFileError("request: no files, or too many, or not by their whole paths")
    return links, request.follow


def _answers(name: str) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(name)
    is_connected = socket.waitForConnected(_CONNECT_MS)
    socket.abort()
    return is_connected


def _create_folder(name: str) -> bool:
    if not sys.platform.startswith("win"):
        try:
            Path(name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return False
    return True
