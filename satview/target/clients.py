"""Clients of a simulated target: their connections, which never block it, and their jobs."""

from __future__ import annotations

import select
import socket
import time
from typing import Final

from satview.target import shell

_OUTGOING_MAX: Final = 1 << 22  # backlog limit of a client that does not read; loggers pause far below it


class ClientJob:
    """A job whose end a client awaits."""

    def is_over(self) -> bool:
        """Return whether the job has ended; if so, the client has been told."""
        raise NotImplementedError

    def take(self, line: bytes) -> None:
        """Accept another line of the client; most jobs expect none."""

    def abandon(self) -> None:
        """End the job because its client has disconnected."""
        raise NotImplementedError


class Client:
    """The connection to a program outside the simulation.

    Attributes:
        has_asked: It has sent its request.
        job: The job that it awaits.
        is_ending: The result has been sent.
        is_closed: Nothing more is sent to it.
    """

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        line.setblocking(False)
        self.job: ClientJob | None = None
        self.came_s = time.monotonic()
        self.has_asked = self.is_ending = self.is_closed = False
        self._incoming = bytearray()
        self._outgoing = bytearray()

    @property
    def backlog(self) -> int:
        """Bytes that it has not read yet."""
        return len(self._outgoing)

    def receive(self) -> list[bytes]:
        """Return the complete lines received; a line that is too long closes the connection, as does end of file."""
        try:
            while not self.is_closed and (data := self.line.recv(shell.LINE_BYTES_MAX)):
                self._incoming += data
                if len(self._incoming) > shell.LINE_BYTES_MAX and b"\n" not in self._incoming:
                    break
            self.is_closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.is_closed = True
        *lines, rest = self._incoming.split(b"\n")
        self._incoming = bytearray(rest)
        return [bytes(line) for line in lines]

    def wait(self, seconds: float) -> None:
        """Wait for data, at most `seconds`."""
        if not self.is_closed:
            select.select([self.line], [], [], seconds)

    def frame(self, kind: bytes, content: bytes) -> None:
        """Send a frame."""
        self.send(shell.FRAME.pack(kind, len(content)) + content)

    def say(self, text: str, kind: bytes = shell.OUTPUT) -> None:
        """Send lines of text."""
        self.frame(kind, text.encode("utf-8", "replace") + b"\n")

    def end(self, code: int, why: str = "") -> None:
        """Send the exit code, and close the connection once the client has read it."""
        if why:
            self.say(why, shell.ERROR)
        self.frame(shell.EXIT, bytes((code,)))
        self.is_ending = True

    def send(self, data: bytes) -> None:
        """Send bytes, now or when the client reads; a client with too large a backlog is disconnected."""
        if self.is_closed:
            return
        self._outgoing += data
        self.flush()
        if len(self._outgoing) > _OUTGOING_MAX:
            self.is_closed = True

    def flush(self) -> None:
        """Send queued bytes, as far as the client accepts them."""
        try:
            while self._outgoing:
                del self._outgoing[: self.line.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True
        self.is_closed |= self.is_ending
