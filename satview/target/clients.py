"""Clients of a simulated target: their connections, which never block the target, and their jobs."""

from __future__ import annotations

import select
import socket
import time
from typing import Final

from satview.target import shell

_OUTGOING_MAX: Final = 1 << 22  # backlog limit of a client that does not read; loggers pause far below it


class ClientJob:
    """A job of the target for a client, which waits for its end."""

    def is_over(self) -> bool:
        """Return whether the job has ended; the result has then been sent to the client."""
        raise NotImplementedError

    def take(self, line: bytes) -> None:
        """Process a line that the client sends during the job; ignored by default."""

    def abandon(self) -> None:
        """End the job, because its client has disconnected."""
        raise NotImplementedError


class Client:
    """The connection to a client: a program outside the simulation.

    Attributes:
        has_asked: The client has sent its request.
        job: The job that the target runs for the client; None = none.
        came_s: `time.monotonic()` when the client connected.
        is_ending: The result is queued or sent; the connection is closed when the client has received it.
        is_closed: The connection is closed.
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
        """Number of queued bytes that the client has not received yet."""
        return len(self._outgoing)

    def receive(self) -> list[bytes]:
        """Return the complete lines received; end of file or a line that is too long closes the connection."""
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
        """Wait until data is received, at most `seconds`."""
        if not self.is_closed:
            select.select([self.line], [], [], seconds)

    def frame(self, kind: bytes, content: bytes) -> None:
        """Send a frame."""
        self.send(shell.FRAME.pack(kind, len(content)) + content)

    def say(self, text: str, kind: bytes = shell.OUTPUT) -> None:
        """Send text, followed by the end of a line."""
        self.frame(kind, text.encode("utf-8", "replace") + b"\n")

    def end(self, code: int, why: str = "") -> None:
        """Send an error message, if any, and the exit code; close the connection once the client has received both."""
        if why:
            self.say(why, shell.ERROR)
        self.frame(shell.EXIT, bytes((code,)))
        self.is_ending = True

    def send(self, data: bytes) -> None:
        """Queue bytes and send as many as the client accepts; disconnect a client whose backlog is too large."""
        if self.is_closed:
            return
        self._outgoing += data
        self.flush()
        if len(self._outgoing) > _OUTGOING_MAX:
            self.is_closed = True

    def flush(self) -> None:
        """Send as many queued bytes as the client accepts."""
        try:
            while self._outgoing:
                del self._outgoing[: self.line.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True
        self.is_closed |= self.is_ending
