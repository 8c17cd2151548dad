"""The line to a target: the user's own ssh with its config, keys, agent and jump hosts, never a password.

To a simulated target it is a shell of this machine that has the target's programs: the same scripts run there.

One session stays open as long as the line: a loop on the target that answers each line with the time of its clock.
Where ssh can, the other sessions share its connection, which saves a slow processor a key exchange for each. All of
them end with this process, however that ends: their standard input is then closed, and they wait for nothing else.
"""

from __future__ import annotations

import calendar
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self, TypeVar

from satview.base.child import absolute_program
from satview.base.safe_text import visible_line
from satview.target import shell
from satview.target.profiles import GivenUpError, Profile, TargetError

_OPTIONS: Final = (
    "-T",
    *("-o", "BatchMode=yes"),  # no question can hang it, and no password is ever asked for
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),  # a line that died without a word is noticed after 15 s
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ClearAllForwardings=yes"),
)
_FAULTS: Final = (
    ("IDENTIFICATION HAS CHANGED", "has another host key than before; if the board was set up anew, remove the old key "
                                   "with `ssh-keygen -R {host}`"),
    ("Host key verification failed", "has a host key that you have not confirmed yet; connect once by hand with "
                                     "`ssh {host}`, compare the key, and try again"),
    ("Permission denied", "accepts none of your keys; add one there with `ssh-copy-id {host}`, or name the right one "
                          "in your ssh config"),
    ("Too many authentication failures", "was offered too many keys; name the right one in your ssh config, with "
                                         "IdentitiesOnly yes"),
    ("Could not resolve hostname", "is not known under this name; correct the name, or write its IP address"),
    ("Connection refused", "has no ssh server on this port; start sshd there, or give the port, as in "
                           "ssh://{host}:2222"),
    ("No route to host", "cannot be reached from here; look at its cable and its IP address"),
    ("unreachable", "cannot be reached from here; look at the network of this machine and at its IP address"),
    ("timed out", "does not answer; look whether it is on, and at its IP address"),
)  # fmt: skip
_CLOCK: Final = "while read question; do date -u '+%Y %m %d %H %M %S' || echo; done 2>/dev/null"
OWN_WORDS: Final = "satview-"  # what scripts of satview say on standard error begins so
_PATIENCE_S: Final = 20.0
_CLOCK_S: Final = 1.3  # a second and a bit: the clock is looked at until its second changes
_CLOCK_GAP_S: Final = 0.015
_CLOCK_ERROR_S: Final = 0.05  # that is small enough
_SOCKET_BYTES_MAX: Final = 80  # systems take about a hundred; ssh adds some to the name while it makes it
_CHUNK: Final = 1 << 16
_SAID_MAX: Final = 1 << 20
_LAST_WORDS_S: Final = 1.0
_LOOK_S: Final = 0.1  # between looks at whether anybody still waits
_CHUNKS: Final = 64  # held when the disk is slower than the line; then the line waits


_Answer = TypeVar("_Answer", bytes, int)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Offset of a target's clock from this machine's.

    Attributes:
        seconds: Negative where it is behind.
        error_s: The offset is right to plus or minus this.
    """

    seconds: float
    error_s: float

    def __str__(self) -> str:
        """Return it as the header has it."""
        return f"{self.seconds:+.3f} s, right to {self.error_s:.3f} s"


class LineSession:
    """A command that runs on a target.

    Threads of its own read what it prints, which waits here for `read`, and what it says on standard error.
    """

    def __init__(self, words: list[str], environment: Mapping[str, str] | None = None) -> None:
        # A session of its own: Ctrl+C is for satview, which then ends the logger in an orderly way.
        self.process = subprocess.Popen(  # noqa: S603  -- ssh, and words that were checked
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=environment, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip
        self._said = bytearray()
        self._chunks: queue.Queue[bytes] = queue.Queue(_CHUNKS)
        self._is_over = False
        self._is_closed = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._read, self._listen)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        output = self.process.stdout
        assert output is not None
        while not self._is_closed.is_set():
            data = os.read(output.fileno(), _CHUNK)
            while not self._is_closed.is_set():
                with contextlib.suppress(queue.Full):
                    self._chunks.put(data, timeout=0.2)
                    break
            if not data:
                return

    def _listen(self) -> None:
        errors = self.process.stderr
        assert errors is not None
        while data := os.read(errors.fileno(), _CHUNK):
            if len(self._said) < _SAID_MAX:
                self._said += data

    def read(self, timeout_s: float) -> bytes | None:
        """Return the next output; None if nothing came in time, empty at the end and from then on."""
        if self._is_over:
            return b""
        try:
            data = self._chunks.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._is_over = not data
        return data

    def write(self, text: str) -> None:
        """Send text to the command; nothing happens if it is gone."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(text.encode())

    def send(self, data: bytes) -> None:
        """Send bytes to the command, and the end of its input; what a broken line does not take is lost."""
        with contextlib.suppress(OSError, ValueError):
            left = memoryview(data)
            while left:
                left = left[self._input.write(left) :]
            self._input.close()

    def exit_code(self, timeout_s: float) -> int | None:
        """Return the exit code of the command; None if it has not ended in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout_s)
        return None

    @property
    def _input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def said_so_far(self) -> str:
        """Standard error output received so far."""
        return self._said.decode("utf-8", "replace")

    def said(self) -> str:
        """Return the standard error output; all of it once the process has ended."""
        if self._is_over or self.process.poll() is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_LAST_WORDS_S)
            self._threads[1].join(_LAST_WORDS_S)
        return self.said_so_far

    def kill(self) -> None:
        """End it for good, and what it has started: a jump of ssh, programs of a shell."""
        with contextlib.suppress(OSError):
            if os.name == "nt":
                self.process.kill()
            elif self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)  # the group is its own, see above

    def close(self, patience_s: float = 2.0) -> None:
        """End it: by closing its input, or else for good."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        self._is_closed.set()
        for thread, stream in zip(self._threads, (self.process.stdout, self.process.stderr), strict=True):
            thread.join(_LAST_WORDS_S)
            if stream is not None and not thread.is_alive():  # else the shared connection holds the other end open
                stream.close()


class TargetLine:
    """The connection to a target, open in a `with` block.

    Args:
        profile: Where the target is.
        is_given_up: Asked ten times a second while an answer is awaited; True ends all sessions at once.

    Attributes:
        is_given_up: The same; can be replaced.
    """

    def __init__(self, profile: Profile, is_given_up: Callable[[], bool] = lambda: False) -> None:
        self.profile, self.is_given_up = profile, is_given_up
        self._environment: dict[str, str] | None = None
        self._words = self._simulated_words() if profile.simulated else self._ssh_words()
        self._folder = Path(tempfile.mkdtemp(prefix="satview-"))
        socket = str(self._folder / "line")
        is_short = len(os.fsencode(socket)) <= _SOCKET_BYTES_MAX
        self._shares = os.name != "nt" and not profile.simulated and is_short
        self._path_words = ["-o", f"ControlPath={socket}"] if self._shares else []
        self._clock: LineSession | None = None
        self._sessions: list[LineSession] = []

    def _ssh_words(self) -> list[str]:
        program = absolute_program("ssh")
        if program is None:
            raise TargetError("there is no ssh program here; install OpenSSH's client")
        return [program, *self.profile.ssh_options, *_OPTIONS]

    def _simulated_words(self) -> list[str]:
        """Return the command of a shell on the simulated target, whose programs come before those of this machine."""
        try:
            folder = shell.folder_of(self.profile.simulated)
            shell.connect(folder).close()
        except shell.NoTargetError as error:
            raise TargetError(str(error)) from error
        self._environment = {**os.environ, **shell.variables(folder)}
        return ["/bin/sh", "-c"]

    def __enter__(self) -> Self:
        try:
            master = ["-o", "ControlMaster=yes", "-o", "ControlPersist=no"] if self._shares else []
            self._clock = self._session(_CLOCK, master)
            self._tick()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the sessions that are left."""
        if self._clock is not None:
            self._clock.close()
            self._clock = None
        for session in self._sessions:  # again those that the connection kept
            session.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_open(self) -> bool:
        """Whether the connection holds, as far as is known here."""
        return self._clock is not None and self._clock.process.poll() is None

    def start(self, script: str) -> LineSession:
        """Start a command on the target."""
        return self._session(script, ["-o", "ControlMaster=no"] if self._shares else [])

    def _session(self, script: str, more: list[str]) -> LineSession:
        words = [*self._words, *more, *self._path_words, *self.profile.ssh_words(), script]
        session = LineSession(words, self._environment)
        self._sessions.append(session)
        return session

    def ask(self, script: str, timeout_s: float = _PATIENCE_S, data: bytes = b"") -> str:
        """Return the output of a command.

        Args:
            script: The command.
            timeout_s: For its end, once it has the data.
            data: Its standard input; its end comes after it where there is any.

        Raises:
            TargetError: The line broke, nothing came to an end in time, or nobody waits any more.
        """
        session, parts = self.start(script), []
        try:
            if data:
                session.send(data)
            deadline_s = time.monotonic() + timeout_s
            while answer := self._awaited(session.read, deadline_s, timeout_s):
                parts.append(answer)
            if self._awaited(session.exit_code, deadline_s, timeout_s) == 255:  # ssh's own
                raise TargetError(self.fault(session))
        finally:
            session.close()
        return b"".join(parts).decode("utf-8", "replace")

    def _awaited(self, look: Callable[[float], _Answer | None], deadline_s: float, timeout_s: float) -> _Answer:
        """Return what a function comes to that waits for so many seconds and returns None if nothing came.

        Raises:
            TargetError: Nothing came in time, or nobody waits any more.
        """
        while (left_s := deadline_s - time.monotonic()) > 0:
            if self.is_given_up():
                for session in self._sessions:
                    session.kill()
                raise GivenUpError
            if (answer := look(min(left_s, _LOOK_S))) is not None:
                return answer
        raise TargetError(f"{self.profile.title} did not answer within {timeout_s:.0f} s; look whether it is busy, and "
                          "try again")  # fmt: skip

    def fault(self, session: LineSession) -> str:
        """Return why a session could not begin or go on, as a sentence."""
        said = session.said()
        if self._clock is not None and not self.is_open:  # whose connection it was
            said = self._clock.said() + said
        for mark, text in _FAULTS:
            if mark in said:
                return f"{self.profile.title} {text.format(host=self.profile.host)}"
        lines = [line for line in said.splitlines() if line.strip() and not line.startswith(OWN_WORDS)]
        why = f" (ssh: {visible_line(lines[-1])[:200]})" if lines else ""
        return f"the line to {self.profile.title} broke{why}; look at the cable and at the board, and try again"

    def clock_offset(self) -> ClockOffset | None:
        """Return how far the target's clock is ahead; None if it does not say, or was set meanwhile.

        The target says whole seconds only. Each answer narrows the offset to a second and the time that the question
        took; the answers before and after a change of the second narrow it to the time between them.
        """
        least, most = float("-inf"), float("inf")
        deadline_s = time.monotonic() + _CLOCK_S
        while time.monotonic() < deadline_s:
            before = time.time()
            second = self._tick()
            after = time.time()
            if second is None:
                return None
            least, most = max(least, second - after), min(most, second + 1 - before)
            if most - least < _CLOCK_ERROR_S:
                break
            time.sleep(_CLOCK_GAP_S)
        return ClockOffset((least + most) / 2, (most - least) / 2) if least <= most else None

    def _tick(self) -> int | None:
        """Ask for the target's time; return it in seconds since 1970, None if it does not say.

        Raises:
            TargetError: The line is broken, or there was no answer in time.
        """
        if self._clock is None:
            return None
        self._clock.write("?\n")
        deadline_s, text = time.monotonic() + _PATIENCE_S, b""
        while not text.endswith(b"\n"):
            data = self._awaited(self._clock.read, deadline_s, _PATIENCE_S)
            if not data:
                raise TargetError(self.fault(self._clock))
            text += data
        try:
            year, month, day, hour, minute, second = map(int, text.split())
            return calendar.timegm((year, month, day, hour, minute, second))
        except ValueError:
            return None
