"""The connection to a target: the user's own ssh with its config, keys, agent and jump hosts, never a password.

For a simulated target it is a shell of this machine that has the target's programs: the same scripts run there.

One session stays open as long as the connection: a loop on the target that answers each line with its clock time. If
ssh supports it, the other sessions share its connection, which saves a slow processor a key exchange for each. All of
them end with this process, however it ends: their standard input is then closed, and they wait for nothing else.
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
    *("-o", "BatchMode=yes"),  # ssh never prompts for a password or anything else, so it cannot hang
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),  # a silently broken connection is noticed after 15 s
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
OWN_WORDS: Final = "satview-"  # prefix of messages by satview's scripts on standard error
_PATIENCE_S: Final = 20.0
_CLOCK_S: Final = 1.3  # a little over a second: the clock is polled until its second changes
_CLOCK_GAP_S: Final = 0.015
_CLOCK_ERROR_S: Final = 0.05  # small enough to stop polling
_SOCKET_BYTES_MAX: Final = 80  # systems allow about a hundred; ssh appends a suffix while it creates the socket
_CHUNK: Final = 1 << 16
_STDERR_MAX: Final = 1 << 20
_LAST_WORDS_S: Final = 1.0
_LOOK_S: Final = 0.1  # interval of checks whether the caller gave up
_CHUNKS: Final = 64  # queued while the disk is slower than the connection; then the connection waits


_Answer = TypeVar("_Answer", bytes, int)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Offset of a target's clock from this machine's.

    Attributes:
        seconds: Negative if it is behind.
        error_s: Maximum error of the offset, plus or minus.
    """

    seconds: float
    error_s: float

    def __str__(self) -> str:
        """Return the text for the trace header."""
        return f"{self.seconds:+.3f} s, right to {self.error_s:.3f} s"


class LineSession:
    """A command that runs on a target.

    Background threads collect its output, which is queued for `read`, and its standard error.
    """

    def __init__(self, words: list[str], environment: Mapping[str, str] | None = None) -> None:
        # A separate process session: Ctrl+C reaches only satview, which then ends the logger cleanly.
        self.process = subprocess.Popen(  # noqa: S603  -- ssh, and words that were checked
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=environment, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip
        self._stderr = bytearray()
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
            if len(self._stderr) < _STDERR_MAX:
                self._stderr += data

    def read(self, timeout_s: float) -> bytes | None:
        """Return the next output; None if nothing was received in time, empty at the end and from then on."""
        if self._is_over:
            return b""
        try:
            data = self._chunks.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._is_over = not data
        return data

    def write(self, text: str) -> None:
        """Send text to the command; ignored if it has ended."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(text.encode())

    def send(self, data: bytes) -> None:
        """Send bytes to the command, then end of file; data for a broken connection is lost."""
        with contextlib.suppress(OSError, ValueError):
            left = memoryview(data)
            while left:
                left = left[self._input.write(left) :]
            self._input.close()

    def exit_code(self, timeout_s: float) -> int | None:
        """Return the exit code of the command; None if it does not end in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout_s)
        return None

    @property
    def _input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stderr_so_far(self) -> str:
        """Standard error output received so far."""
        return self._stderr.decode("utf-8", "replace")

    def stderr(self) -> str:
        """Return the standard error output; all of it once the process has ended."""
        if self._is_over or self.process.poll() is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_LAST_WORDS_S)
            self._threads[1].join(_LAST_WORDS_S)
        return self.stderr_so_far

    def kill(self) -> None:
        """Kill the command and its children, such as ssh to a jump host or programs started by a shell."""
        with contextlib.suppress(OSError):
            if os.name == "nt":
                self.process.kill()
            elif self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)  # it has its own process group, see above

    def close(self, patience_s: float = 2.0) -> None:
        """End the command by closing its input, or kill it if that does not suffice."""
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
            if stream is not None and not thread.is_alive():  # else the shared connection keeps the other end open
                stream.close()


class TargetLine:
    """The connection to a target, open in a `with` block.

    Args:
        profile: Where the target is.
        is_given_up: Called ten times a second while an answer is awaited; True ends all sessions at once.

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
        """Return the command of a shell on the simulated target, whose programs come first in its PATH."""
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
        """End all remaining sessions."""
        if self._clock is not None:
            self._clock.close()
            self._clock = None
        for session in self._sessions:  # again, as the shared connection may have kept their streams open
            session.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_open(self) -> bool:
        """Whether the connection still exists, as far as known here."""
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
            timeout_s: Time limit, counted from when it has its input.
            data: Its standard input, followed by end of file; empty = none.

        Raises:
            TargetError: The connection broke, the command did not end in time, or the caller gave up.
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
        """Return the result of a function that is polled with a timeout and returns None while there is no result.

        Raises:
            TargetError: No result in time, or the caller gave up.
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
        """Return a sentence on why a session could not start or continue."""
        messages = session.stderr()
        if self._clock is not None and not self.is_open:  # the session that owns the shared connection
            messages = self._clock.stderr() + messages
        for mark, text in _FAULTS:
            if mark in messages:
                return f"{self.profile.title} {text.format(host=self.profile.host)}"
        lines = [line for line in messages.splitlines() if line.strip() and not line.startswith(OWN_WORDS)]
        why = f" (ssh: {visible_line(lines[-1])[:200]})" if lines else ""
        return f"the line to {self.profile.title} broke{why}; look at the cable and at the board, and try again"

    def clock_offset(self) -> ClockOffset | None:
        """Return how far the target's clock is ahead; None if it is not available, or was set meanwhile.

        The target reports whole seconds only. Each answer narrows the offset to a second plus the duration of the
        query; the answers before and after a change of the second narrow it to the time between them.
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
        """Query the target's time; return it in seconds since 1970, None if it is not available.

        Raises:
            TargetError: The connection is broken, or there was no answer in time.
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
