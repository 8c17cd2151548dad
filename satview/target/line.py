"""Addresses and settings of targets, and the connection to a target, which is the ssh of the user."""

from __future__ import annotations

import calendar
import contextlib
import os
import queue
import re
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
from typing import IO, Annotated, Final, Self, TypeVar

import msgspec
from platformdirs import user_config_path

from satview.base.child import absolute_program
from satview.base.errors import SatviewError, UsageError
from satview.base.named_files import parsed_toml
from satview.base.safe_text import visible_line
from satview.base.shared_file import DamagedFileError, as_declared, read_shared, tables_as_declared
from satview.target import shell

# Addresses and settings of targets, given as an address such as `ssh://root@board:2222` or a name in the user's file.
#
# `sim://` is the simulated target that `satview target` runs on this machine, `sim://NAME` the simulated target NAME.


_CORRECT_IT: Final = "correct it there, or remove the file"
_FILE_BYTES_MAX: Final = 1 << 20
MOST_BUFFERS: Final = 4096
# A host never begins with `-`, which ssh would take for an option; names in ssh's config have the same characters.
_ADDRESS: Final = re.compile(
    r"ssh://(?:(?P<user>[\w][\w.\\-]*)@)?(?P<host>[\w][\w.-]*|\[[0-9a-fA-F:]+(?:%\w+)?\])(?::(?P<port>[0-9]{1,5}))?/?",
    re.ASCII,
)
_SIMULATED: Final = re.compile(rf"sim://(?P<name>{shell.NAME.pattern})?/?", re.ASCII)
_FOLDER: Final = "^(/[A-Za-z0-9_.-]+)+$"  # inserted into a script for the target's shell
Buffers = Annotated[int, msgspec.Meta(ge=1, le=MOST_BUFFERS)]


class TargetError(SatviewError):
    """A target, or the connection to it, cannot be used for a capture; the text states the problem and the remedy."""


class GivenUpError(TargetError):
    """The caller gave up before anything was captured."""

    def __init__(self, text: str = "stopped before the capture began; nothing was started") -> None:
        super().__init__(text)


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target, and default settings for its captures.

    Attributes:
        address: `ssh://[user@]host[:port]`, where the host may be a name in the user's ssh config; or `sim://[name]`.
        ssh_options: Additional options for ssh, such as `["-F", "board.config"]`.
        rules: File with rules; empty = all events.
        is_wide: Log wide events, unless the rules specify the form.
        kernel_buffers: `-k` of tracelogger.
        own_buffers: `-b` of tracelogger.
        memory_folder: Folder for the trace file on a target before 6.6, whose tracelogger cannot stream.
        qcc: Command of the C compiler for the target; it builds a program from rules that tracelogger's options cannot
            express. Empty = no compiler, such rules filter the trace on this machine.
        name: Name in files and messages; empty = the host name.
    """

    address: str
    ssh_options: tuple[str, ...] = ()
    rules: str = ""
    is_wide: bool = msgspec.field(default=False, name="wide")
    kernel_buffers: Buffers = 32
    own_buffers: Buffers = 64
    memory_folder: Annotated[str, msgspec.Meta(pattern=_FOLDER)] = "/dev/shmem"  # noqa: S108  -- on the target
    qcc: str = ""
    name: str = ""

    @property
    def simulated(self) -> str:
        """Name of the simulated target on this machine; empty for a target reached by ssh."""
        match = _SIMULATED.fullmatch(self.address)
        return (match["name"] or shell.DEFAULT_NAME) if match is not None else ""

    @property
    def host(self) -> str:
        """The host in the form that ssh accepts, or the name of a simulated target."""
        return self.simulated or self._parts()["host"].strip("[]")

    @property
    def title(self) -> str:
        """Name of the target in messages."""
        return self.name or self.host

    def ssh_words(self) -> list[str]:
        """Return the ssh arguments for user, port and host; UsageError if the address is invalid."""
        if self.simulated:
            return []
        parts = self._parts()
        user = ["-l", parts["user"]] if parts["user"] else []
        port = ["-p", parts["port"]] if parts["port"] else []
        return [*user, *port, "--", self.host]

    def _parts(self) -> dict[str, str]:
        match = _ADDRESS.fullmatch(self.address)
        if match is None or not 0 < int(match["port"] or 22) < 1 << 16:
            raise UsageError(f"{self.address[:80]!a} is not the address of a target; write ssh://user@host:port, for "
                             "example ssh://root@192.168.1.20, or sim:// for the target that `satview target` runs"
                             )  # fmt: skip
        return match.groupdict()


def check_profile(profile: Profile) -> Profile:
    """Return the profile unchanged if all of its values are valid, else raise UsageError."""
    try:
        as_declared(msgspec.to_builtins(profile), Profile)
    except DamagedFileError as error:
        raise UsageError(f"{profile.title}: {error}") from error
    return profile


def targets_file() -> Path:
    """Return the path of the user's file of targets; the file may not exist."""
    return user_config_path("satview", appauthor=False) / "targets.toml"


def read_profiles(path: Path) -> dict[str, Profile]:
    """Return the targets in a file by name; an empty dict if the file does not exist.

    Raises UsageError if the file cannot be read, or has invalid content; the text states where.
    """
    try:
        _, content = parsed_toml(path, read_shared(path, _FILE_BYTES_MAX) or b"", _CORRECT_IT)
        profiles = tables_as_declared(content, Profile)
    except DamagedFileError as error:
        raise UsageError(f"{path.name}: {error}; {_CORRECT_IT}") from error
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror or error}") from error
    named = {name: msgspec.structs.replace(profile, name=name) for name, profile in profiles.items()}
    for name, profile in named.items():
        try:
            profile.ssh_words()
        except UsageError as error:
            raise UsageError(f"{path.name}: target {name!a}: {error}") from None
    return named


def find_profile(text: str, path: Path) -> Profile:
    """Return the target that `text` specifies: by an address, or by a name in a file of targets.

    Raises UsageError if the address is invalid, or the file has no such name; the text lists the names in the file.
    """
    if "://" in text:
        profile = Profile(text)
        profile.ssh_words()
        return _on_this_machine(profile) if profile.simulated else profile
    profiles = read_profiles(path)
    if text not in profiles:
        known = ", ".join(sorted(profiles)) or "none yet"
        raise UsageError(f"there is no target {text[:60]!a} in {path.name} (there are: {known}); write its address as "
                         "ssh://user@host, or add it to that file")  # fmt: skip
    return _on_this_machine(profiles[text]) if profiles[text].simulated else profiles[text]


def _on_this_machine(profile: Profile) -> Profile:
    """Return the profile of a simulated target with `memory_folder` set to a folder on this machine."""
    try:
        folder = shell.folder_of(profile.simulated)
    except shell.NoTargetError as error:
        raise UsageError(str(error)) from error
    return msgspec.structs.replace(profile, memory_folder=str(folder / "shmem"))


# The connection to a target: the user's own ssh with its config, keys, agent and jump hosts, never a password.
#
# The connection to a simulated target is a shell on this machine with the target's programs, which runs the same
# scripts.
#
# One session stays open as long as the connection: a loop on the target that answers each line with the time of its
# clock. If ssh supports it, the other sessions share this session's connection, which saves a slow processor the key
# exchanges. All sessions end with this process, however it ends, because their standard input is then closed.


_OPTIONS: Final = (
    "-T",
    *("-o", "BatchMode=yes"),  # ssh never prompts for a password or anything else, so it cannot hang
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),  # a silently broken connection is noticed after 15 s
    *("-o", "ServerAliveCountMax=3"),
    *("-o", "ClearAllForwardings=yes"),
)
_FAULTS: Final = (
    ("IDENTIFICATION HAS CHANGED", "has another host key than before; if the board was set up again, remove the old "
                                   "key with `ssh-keygen -R {host}`"),
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
OWN_WORDS: Final = "satview-"  # prefix of the messages that satview's scripts write to standard error
_PATIENCE_S: Final = 20.0
_CLOCK_S: Final = 1.3  # a little over a second: the clock is polled until its second changes
_CLOCK_GAP_S: Final = 0.015
_CLOCK_ERROR_S: Final = 0.05  # small enough to stop polling
_SOCKET_BYTES_MAX: Final = 80  # systems allow about a hundred; ssh appends a suffix while it creates the socket
_CHUNK: Final = 1 << 16
_STDERR_MAX: Final = 1 << 20
_LAST_WORDS_S: Final = 1.0  # time limit for the output of a command that has ended
_LOOK_S: Final = 0.1  # interval of checks whether the caller gave up
_MAX_CHUNKS: Final = 64  # queued while the disk is slower than the connection; then the connection waits


_Answer = TypeVar("_Answer", bytes, int)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Offset of a target's clock from the clock of this machine, negative if it is behind, and its maximum error."""

    seconds: float
    error_s: float

    def __str__(self) -> str:
        """Return the text for the trace header."""
        return f"{self.seconds:+.3f} s, right to {self.error_s:.3f} s"


class LineSession:
    """A command that runs on a target.

    Background threads collect the command's output, which is queued for `read`, and its standard error.
    """

    def __init__(self, words: list[str], environment: Mapping[str, str] | None = None) -> None:
        # A separate process session: Ctrl+C reaches only satview, which then ends the logger cleanly.
        self.process = subprocess.Popen(  # noqa: S603  -- ssh, and words that were checked
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=environment, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip
        self._stderr = bytearray()
        self._chunks: queue.Queue[bytes] = queue.Queue(_MAX_CHUNKS)
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
        """Return the next output of the command; None if nothing was received in time, empty after its end."""
        if self._is_over:
            return b""
        try:
            data = self._chunks.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._is_over = not data
        return data

    def write(self, text: str) -> None:
        """Send text to the command's standard input; ignored if the command has ended."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(text.encode())

    def send(self, data: bytes) -> None:
        """Send bytes to the command's standard input, then end of file; ignored if the connection is broken."""
        with contextlib.suppress(OSError, ValueError):
            left = memoryview(data)
            while left:
                left = left[self._input.write(left) :]
            self._input.close()

    def exit_code(self, timeout_s: float) -> int | None:
        """Return the exit code of the command; None if the command does not end in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout_s)
        return None

    @property
    def _input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stderr_so_far(self) -> str:
        """Output on standard error received so far."""
        return self._stderr.decode("utf-8", "replace")

    def stderr(self) -> str:
        """Return the output on standard error; wait for all of it if the command has ended."""
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
                os.killpg(self.process.pid, signal.SIGKILL)  # `start_new_session` created a process group

    def close(self, patience_s: float = 2.0) -> None:
        """End the command by closing its standard input; kill it if it does not end in time."""
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
        is_given_up: Called ten times a second while an answer is awaited; True ends all sessions at once.

    Attributes:
        is_given_up: The function passed as argument; can be replaced.
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
        """Return the command for a shell whose PATH begins with the programs of the simulated target."""
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
        """Whether the connection still exists, as far as known on this machine."""
        return self._clock is not None and self._clock.process.poll() is None

    def start(self, script: str) -> LineSession:
        """Start a shell script on the target and return its session."""
        return self._session(script, ["-o", "ControlMaster=no"] if self._shares else [])

    def _session(self, script: str, more: list[str]) -> LineSession:
        words = [*self._words, *more, *self._path_words, *self.profile.ssh_words(), script]
        session = LineSession(words, self._environment)
        self._sessions.append(session)
        return session

    def ask(self, script: str, timeout_s: float = _PATIENCE_S, data: bytes = b"") -> str:
        """Run a shell script on the target, with `data` and end of file as its input, and return its output.

        The time limit counts from when all of `data` is sent. Raises TargetError if the connection broke, the script
        did not end in time, or the caller gave up.
        """
        session, parts = self.start(script), []
        try:
            if data:
                session.send(data)
            deadline_s = time.monotonic() + timeout_s
            while answer := self._awaited(session.read, deadline_s, timeout_s):
                parts.append(answer)
            if self._awaited(session.exit_code, deadline_s, timeout_s) == 255:  # an error of ssh itself
                raise TargetError(self.fault(session))
        finally:
            session.close()
        return b"".join(parts).decode("utf-8", "replace")

    def _awaited(self, look: Callable[[float], _Answer | None], deadline_s: float, timeout_s: float) -> _Answer:
        """Call a function, which takes the seconds it may wait, until its result is not None, and return that."""
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
        """Return a sentence on why a session could not start or continue, with a remedy."""
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
        """Return the offset of the target's clock; None if the clock cannot be read, or was set meanwhile.

        The target reports whole seconds. Each answer limits the offset to a range of one second plus the duration of
        the query; the answers before and after a change of the second limit it to the time between these queries.
        """
        minimum, maximum = float("-inf"), float("inf")
        deadline_s = time.monotonic() + _CLOCK_S
        while time.monotonic() < deadline_s:
            before = time.time()
            second = self._tick()
            after = time.time()
            if second is None:
                return None
            minimum, maximum = max(minimum, second - after), min(maximum, second + 1 - before)
            if maximum - minimum < _CLOCK_ERROR_S:
                break
            time.sleep(_CLOCK_GAP_S)
        return ClockOffset((minimum + maximum) / 2, (maximum - minimum) / 2) if minimum <= maximum else None

    def _tick(self) -> int | None:
        """Return the time of the target's clock in seconds since 1970; None if the clock cannot be read."""
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
