"""Clients of a simulated target: their connections, which never block it, and what they wait for."""

from __future__ import annotations

import select
import socket
import time
from typing import Final

from satview.target import shell

_OUTGOING_MAX: Final = 1 << 22  # for a client that does not read; a logger waits long before that


class ClientJob:
    """A job whose end a client awaits."""

    def is_over(self) -> bool:
        """Return whether it has come to its end, after telling the client."""
        raise NotImplementedError

    def take(self, line: bytes) -> None:
        """Take a further line of the client; most jobs expect none."""

    def abandon(self) -> None:
        """End the job, because its client has disconnected."""
        raise NotImplementedError


class Client:
    """The connection to a program outside of the simulation.

    Attributes:
        has_asked: It has sent its request.
        job: The job that it awaits.
        is_ending: It has been sent the result.
        is_closed: Nothing is sent to it any more.
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
        """Bytes that it has not taken yet."""
        return len(self._outgoing)

    def receive(self) -> list[bytes]:
        """Return the whole lines that came; one that is too long closes the connection, and so does its end."""
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
        """Wait until something comes, for so long at most."""
        if not self.is_closed:
            select.select([self.line], [], [], seconds)

    def frame(self, kind: bytes, content: bytes) -> None:
        """Send a frame."""
        self.send(shell.FRAME.pack(kind, len(content)) + content)

    def say(self, text: str, kind: bytes = shell.OUTPUT) -> None:
        """Send lines of text."""
        self.frame(kind, text.encode("utf-8", "replace") + b"\n")

    def end(self, code: int, why: str = "") -> None:
        """Tell how it ended, and close the connection once that is taken."""
        if why:
            self.say(why, shell.ERROR)
        self.frame(shell.EXIT, bytes((code,)))
        self.is_ending = True

    def send(self, data: bytes) -> None:
        """Send bytes, now or as soon as they are taken; a client that takes nothing for long is given up."""
        if self.is_closed:
            return
        self._outgoing += data
        self.flush()
        if len(self._outgoing) > _OUTGOING_MAX:
            self.is_closed = True

    def flush(self) -> None:
        """Send what waits, as far as it is taken."""
        try:
            while self._outgoing:
                del self._outgoing[: self.line.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True
        self.is_closed |= self.is_ending
