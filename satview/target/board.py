"""Queries the properties of a target before a capture, and checks whether a capture can begin there.

One script of few, portable commands queries all properties. Each answer is optional: a property without an answer is
unknown, and only a known problem prevents a capture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from satview.base.safe_text import visible_line
from satview.capture.flight_recorder import BUFFER_BYTES
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.target.line import TargetLine
from satview.target.profiles import Profile, TargetError

# The PATH of a login without a terminal often lacks the system folders.
PATHS: Final = "PATH=$PATH:/proc/boot:/bin:/usr/bin:/sbin:/usr/sbin; export PATH"
_MARK: Final = "== satview: "
_QUESTIONS: Final = {
    "system": "uname -a",
    "user": "id -u",
    "logger": "command -v tracelogger || which tracelogger || echo none",
    "processes": "pidin -F '%a %n'",
    "memory": "pidin info",
    "parent": "echo $PPID",
    "usage": "use tracelogger",
    "disk": "df -P -k {folder} || df -k {folder}",
}
_MEMORY: Final = re.compile(r"FreeMem:\s*(\d{1,12})(?!\d)\s*([KMG]?)", re.IGNORECASE)
_PROCESS: Final = re.compile(r"\s*(\d{1,10})\s+(\S.*?)\s*")
# The line of a file system in `df -k`: size, used and free.
_DISK: Final = re.compile(r"\s(\d{1,15})\s+\d{1,15}\s+(\d{1,15})\s+\d{1,3}%")
_OPTION: Final = re.compile(r"(?:^|(?<=[\s\[|,]))-\[?([A-Za-z]+)")
_IN_ALL_RELEASES: Final = frozenset({"-f", "-n"})  # a text without them is not tracelogger's usage message
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LOGGER: Final = "tracelogger"


@dataclass(frozen=True, slots=True)
class Board:
    """Properties that a target reports.

    Attributes:
        system: Name of the operating system, such as `QNX`; empty = unknown.
        node: Host name; empty = unknown.
        sys_release: Exact release, such as `7.1.0`; empty = unknown.
        machine: Name of the processor type, such as `aarch64le`; empty = unknown.
        user: User id of the ssh login; None = unknown.
        logger: Path of tracelogger; empty = not installed, None = unknown.
        processes: Names of processes by pid; empty = unknown.
        free_bytes: Free memory; None = unknown.
        ssh_pid: Pid of the sshd process that serves this connection; None = unknown.
        options: Options in tracelogger's usage message, such as `-f`; empty = unknown.
        disk_bytes: Free space in the folder where a tracelogger that cannot stream writes its file; None = unknown.
    """

    system: str = ""
    node: str = ""
    sys_release: str = ""
    machine: str = ""
    user: int | None = None
    logger: str | None = None
    processes: dict[int, str] = field(default_factory=dict)
    free_bytes: int | None = None
    ssh_pid: int | None = None
    options: frozenset[str] = frozenset()
    disk_bytes: int | None = None

    @property
    def release(self) -> Release | None:
        """The release family; None = unknown."""
        return release_of(self.sys_release)

    @property
    def can_stream(self) -> bool:
        """Whether tracelogger can write to standard output: from 6.6 on."""
        return self.release is not Release.QNX_6

    @property
    def has_instrumented_kernel(self) -> bool | None:
        """Whether the kernel can log events, as the name of process 1 shows; always in 8.0. None = unknown."""
        kernel = self.processes.get(1, "")
        if self.release is Release.QNX_8 or "-instr" in kernel:
            return True
        return False if kernel.startswith("procnto") else None

    @property
    def loggers(self) -> tuple[int, ...]:
        """Pids of running tracelogger processes."""
        return tuple(pid for pid, name in self.processes.items() if name.rsplit("/", 1)[-1] == LOGGER)

    def unknown(self) -> Iterator[str]:
        """Yield a phrase for each property that is unknown, for a message."""
        if not self.sys_release:
            yield "its release"
        if self.has_instrumented_kernel is None:
            yield "whether its kernel is instrumented"
        if self.logger is None:
            yield "whether it has tracelogger"
        if not self.processes:
            yield "whether a logger runs"
        if self.user is None:
            yield "the rights of the login"
        if self.free_bytes is None:
            yield "its free memory"
        if not self.can_stream and self.disk_bytes is None:
            yield "the free room for its file"


def ask_board(line: TargetLine) -> Board:
    """Return the properties of a target.

    Raises:
        TargetError: The connection is broken.
    """
    script = "; ".join(f"echo '{_MARK}{name}'; {{ {command}; }} 2>/dev/null" for name, command in _QUESTIONS.items())
    answer = line.ask(f"{PATHS}; {script.replace('{folder}', line.profile.memory_folder)}; true")
    return board_of({
        name.strip(): text.strip() for name, _, text in (part.partition("\n") for part in answer.split(_MARK)[1:])
    })  # fmt: skip


def board_of(answers: dict[str, str]) -> Board:
    """Return the properties from the answers to `_QUESTIONS`, any of which may be missing or unusable."""
    # QNX board 7.1.0 2021/05/07-14:19:56EDT x86pc x86_64
    words = visible_line(answers.get("system", "")).split()
    logger = answers.get("logger", "").splitlines()
    memory, disk = _MEMORY.search(answers.get("memory", "")), _DISK.search(answers.get("disk", ""))
    options = frozenset(f"-{letter}" for letters in _OPTION.findall(answers.get("usage", "")) for letter in letters)
    user, parent = answers.get("user", ""), answers.get("parent", "")
    processes = dict(_processes(answers.get("processes", "")))
    # Only if the parent process is sshd: another parent, such as a shell, does not serve the connection.
    is_sshd = parent.isdecimal() and processes.get(int(parent[:10]), "").rsplit("/", 1)[-1].startswith("sshd")
    return Board(
        system=words[0] if words else "",
        node=words[1] if len(words) > 1 else "",
        sys_release=words[2] if len(words) > 2 else "",
        machine=words[-1] if len(words) > 3 else "",
        user=int(user) if user.isascii() and user.isdigit() and len(user) < 10 else None,
        logger=("" if logger[-1] == "none" else visible_line(logger[-1])) if logger else None,
        processes=processes,
        free_bytes=int(memory[1]) * _UNITS[memory[2].upper()] if memory else None,
        ssh_pid=int(parent) if is_sshd else None,
        options=options if options >= _IN_ALL_RELEASES else frozenset(),
        disk_bytes=int(disk[2]) << 10 if disk and int(disk[1]) else None,  # size 0: the file system reports no space
    )


def _processes(text: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines():
        if row := _PROCESS.fullmatch(line):
            yield int(row[1]), visible_line(row[2])


def memory_needed(profile: Profile) -> int:
    """Return the size in bytes of all buffers of a capture on the target."""
    return (profile.kernel_buffers + profile.own_buffers) * BUFFER_BYTES


def check_board(board: Board, profile: Profile) -> None:
    """Check that a capture on a target can work, before anything is started.

    Raises:
        TargetError: The capture cannot work; the text states the problem and the remedy.
    """
    name = profile.title
    if board.system and board.system != "QNX":
        raise TargetError(f"{name} runs {board.system[:40]}, which has no tracelogger; give the address of a target "
                          "that runs QNX Neutrino")  # fmt: skip
    if board.sys_release and board.release is None:
        raise TargetError(f"{name} runs QNX {board.sys_release[:40]}, whose traces are not known here; satview reads "
                          "those of 6.0 to 8.0")  # fmt: skip
    if board.has_instrumented_kernel is False:
        raise TargetError(f"the kernel of {name}, {board.processes[1]}, logs no events; boot an image with "
                          f"{board.processes[1]}-instr")  # fmt: skip
    if board.logger == "":
        raise TargetError(f"there is no tracelogger on {name}; add it to its image or copy it into a folder of its "
                          f"PATH, from the {board.sys_release or 'same'} release of the toolkit")  # fmt: skip
    if board.loggers:
        kill = "slay" if profile.simulated else "kill"  # `kill` in its shell acts on processes of this machine
        raise TargetError(f"tracelogger runs on {name} already (pid {board.loggers[0]}), and a second one would take "
                          f"its buffers; wait for it, or stop it with `{kill} {board.loggers[0]}` there")  # fmt: skip
    if board.user and board.release in (Release.QNX_6, Release.QNX_6_6):
        raise TargetError(f"tracelogger of {board.sys_release} needs root, and ssh logs in as user {board.user}; write "
                          f"ssh://root@{profile.host}")  # fmt: skip
    needed = memory_needed(profile)
    if board.free_bytes is not None and board.free_bytes < needed:
        raise TargetError(f"{name} has {board.free_bytes >> 20} MB of memory free, and the buffers take "
                          f"{max(1, needed >> 20)} MB; ask for fewer with -k and -b")  # fmt: skip
    if not board.can_stream and board.disk_bytes is not None and board.disk_bytes < needed:
        raise TargetError(f"{profile.memory_folder} on {name} has {board.disk_bytes >> 20} MB free, and the buffers "
                          f"alone have {max(1, needed >> 20)} MB; make room there, or name another memory_folder in "
                          "targets.toml")  # fmt: skip
