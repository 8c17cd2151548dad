"""The request for a capture on a target, its properties, and whether a capture can begin there."""

from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.capture.flight_recorder import BUFFER_BYTES, Bounds
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.export.c_program import c_program
from satview.export.kev import SubsetReport, write_subset
from satview.filters.derived_columns import TraceDerivedColumns, pids_by_name, process_names
from satview.filters.diagnostics import RuleError
from satview.filters.rules.building import BuiltRules, FunctionLoader, build, tracelogger_command
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import parse_rules
from satview.filters.would_capture import why_nothing
from satview.formats.registry import open_trace
from satview.store.arguments import taught
from satview.store.trace import SSH_PID
from satview.target.line import ClockOffset, Profile, TargetError, TargetLine

# Queries the properties of a target before a capture, and checks whether a capture can begin there.
#
# One script of few, portable commands queries all properties. Each answer is optional: a property without an answer is
# unknown, and only a known problem prevents a capture.


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
    """Return the properties of a target; TargetError if the connection is broken."""
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
    """Check that a capture on a target can work, before anything is started; else TargetError with the remedy."""
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


# The request for a capture on a target, and its conversion to tracelogger options, header keys and a filter.


_RING_AND_SIZE, _CONTINUOUS, _ALL_OPTIONS = 3, 4, 6  # 6.3 brought `-r` and `-S`, 6.4 `-c`
_MEMORY_SHARE: Final = 4  # a quarter of the free memory is the size limit for the file of a target that cannot stream
_MEMORY_BYTES: Final = 16 << 20  # that size limit if the free memory is unknown
_DISPENSABLE: Final = {  # options that may be left out, and the consequence for a message
    "-D": "triggers are noticed only when a buffer is full",
    "-b": "it decides how many buffers of its own there are",
    "-k": "it decides how many kernel buffers there are",
}
_ASKED_BY: Final = {
    "-d": "qcc in targets.toml",
    "-r": "--ring",
    "-s": "--for, or write a part of a second, which is counted here",
}
_NO_TRIGGER: Final = "--every needs rules with a trigger (-r): WHEN ... THEN STOP"
_RULES_MAX: Final = 2000  # maximum number of characters of rules in a header
FLUSH_S: Final = 1
"""Interval at which a target flushes buffers that are not full (`-D`) while its events are checked for triggers."""


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A request for a capture on a target.

    Attributes:
        path: The file to write on this machine.
        filters: Options of tracelogger that select events: `-w`, `-F`, `-a`.
        rules: Text of rules, which replace `filters`; empty = no rules.
        functions_of: Returns the loader of Python functions in rules for a release; None = functions are not allowed.
        seconds: Duration; 0 = until the caller ends the capture.
        is_ring: Capture the newest events only, from a ring of buffers.
        bounds: Limits for the files of a flight recorder; None = one file, of as many buffers as `-k`.
        source: C program that sets the rules on the target; empty = options set them, or this machine filters.
        built: The rules built for the target's release if they have triggers, else None. The ring is then on this
            machine, which checks the triggers.
    """

    profile: Profile
    path: Path
    filters: tuple[str, ...] = ()
    rules: str = ""
    rules_name: str = ""
    functions_of: Callable[[Release], FunctionLoader] | None = None
    seconds: float = 0.0
    is_ring: bool = False
    bounds: Bounds | None = None
    built: BuiltRules | None = None
    source: str = ""

    @property
    def keeps_ring_there(self) -> bool:
        """Whether the ring consists of the target's kernel buffers."""
        return self.is_ring and self.built is None

    @property
    def is_timed_there(self) -> bool:
        """Whether tracelogger itself limits the time: only whole seconds, and not for a ring, which a signal ends."""
        if self.source:  # the time begins later, when the program starts tracing
            return False
        return self.seconds > 0 and self.seconds == math.ceil(self.seconds) and not self.keeps_ring_there


def with_rules(request: TargetRequest, board: Board) -> tuple[TargetRequest, tuple[str, ...]]:
    """Return a request whose rules are converted to options of tracelogger, and notes on what options cannot express.

    The options pass all events that the rules select. If they pass more, the trace goes to another file, which is
    filtered afterwards. Each note is one sentence. Raises RuleError if the rules have faults; UsageError if they call a
    function that is not allowed, or triggers and options contradict each other; and TargetError if the triggers cannot
    be checked, because the target sends nothing during the capture.
    """
    if not request.rules.strip():
        if request.bounds is not None:
            raise UsageError(_NO_TRIGGER)
        return request, ()
    release = board.release or Release.QNX_7
    rules = parse_rules(request.rules, release, pids_by_name(board.processes.items()))
    load_function = request.functions_of(release) if request.functions_of is not None else None
    built = build(rules, release, load_function)
    if request.bounds is not None and not built.triggers:
        raise UsageError(_NO_TRIGGER)
    if built.triggers:
        for fault in for_capture(built).faults:
            raise RuleError([fault])
        _check_recording(request, board, built)
        rules = tuple(rule for rule in rules if rule.action is None)
    command = tracelogger_command(build(rules, release, load_function), "-")
    filters = tuple(shlex.split(command.text)[1:-2])
    if built.triggers:
        return replace(request, filters=filters, built=built), command.reasons
    if command.is_exact:
        return replace(request, filters=filters), command.reasons
    path, reasons = request.path.with_suffix(".unfiltered.kev"), command.reasons
    if request.profile.qcc:
        program = c_program(build(rules, release, load_function), request.rules_name)
        if not program.faults:
            return replace(request, filters=("-d1",), source=program.source), program.notes
        reasons = (*reasons, f"no program in C says these rules: {program.faults[0]}")
    return replace(request, filters=filters, path=path), reasons


def _check_recording(request: TargetRequest, board: Board, built: BuiltRules) -> None:
    """Check that this machine can check the triggers of the rules during the capture."""
    title = request.profile.title
    if not board.can_stream:
        raise TargetError(
            f"tracelogger of {board.sys_release} on {title} sends nothing while it runs, so that no trigger can be "
            "watched from here; leave WHEN out, or export the rules as a C program"
        )
    if not request.is_ring:
        raise UsageError("rules with WHEN need a ring (--ring; in the window, under Ends): the newest buffers are kept "
                         "here until a trigger ends them")  # fmt: skip
    (request.bounds or Bounds(request.profile.kernel_buffers)).check(built.triggers)


def logger_command(
    request: TargetRequest, board: Board, file: str, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Return the command line of tracelogger on a target; a `file` of `-` is the connection.

    `say` gets a sentence about each option that is omitted because the target's tracelogger lacks it. Raises
    TargetError if it lacks one that the request needs.
    """
    profile = request.profile
    version = re.match(r"6\.([0-5])(?![0-9])", board.sys_release)
    minor = int(version[1]) if version else _ALL_OPTIONS
    if request.keeps_ring_there and minor < _RING_AND_SIZE and not board.options:
        raise TargetError(f"tracelogger of {board.sys_release} on {profile.title} has no ring, which came with 6.3; "
                          "leave out --ring")  # fmt: skip
    has_size = "-S" in board.options if board.options else minor >= _RING_AND_SIZE
    is_continuous = "-c" in board.options if board.options else minor >= _CONTINUOUS
    words = list(request.filters)
    words += ["-r"] if request.keeps_ring_there else ["-s", f"{request.seconds:.0f}"] if request.is_timed_there else []
    words += [] if request.keeps_ring_there else ["-c"] if is_continuous else ["-n", "0"]
    words += ["-D", str(FLUSH_S)] if request.built is not None else []
    words += ["-k", str(profile.kernel_buffers), "-b", str(profile.own_buffers)]
    if file != "-" and has_size:
        room = [size for size in (board.free_bytes, board.disk_bytes) if size is not None]
        words += ["-S", f"{max(1, (min(room) // _MEMORY_SHARE if room else _MEMORY_BYTES) >> 20)}M"]
    elif file != "-" and board.options:
        say(f"tracelogger on {profile.title} has no option -S, so nothing limits the size of its file; keep it short")
    return [LOGGER, *_without_missing(words, board, profile.title, say), "-f", file]


def _without_missing(words: Sequence[str], board: Board, name: str, say: Callable[[str], None]) -> Iterator[str]:
    """Yield the words of a command line, except options that the usage message of the target's tracelogger lacks."""
    keeps = True
    for word in words:
        if option := re.match("-[A-Za-z]", word):
            keeps = not board.options or option[0] in board.options
            if not keeps and option[0] not in _DISPENSABLE:
                raise TargetError(f"tracelogger on {name} has no option {option[0]}, as `use tracelogger` there says; "
                                  f"leave out {_ASKED_BY.get(option[0], option[0])}")  # fmt: skip
            if not keeps:
                say(f"tracelogger on {name} has no option {option[0]}; {_DISPENSABLE[option[0]]}")
        if keeps:
            yield word


def check_disk(request: TargetRequest) -> None:
    """Check that the disk of this machine has room for the content of the target's buffers (TargetError)."""
    free, needed = shutil.disk_usage(request.path.absolute().parent).free, memory_needed(request.profile)
    if free < needed:
        raise TargetError(f"the disk for {request.path.name} has {free >> 20} MB free, and the buffers alone have "
                          f"{needed >> 20} MB; make room, or name a file on another disk with -o")  # fmt: skip


def attributes(request: TargetRequest, board: Board, command: str, offset: ClockOffset | None) -> list[tuple[str, str]]:
    """Return the keys and values to add to the header of a trace; they contain no user names, ssh keys or secrets.

    Args:
        request: The request of the capture.
        board: Properties of the target.
        command: Command line of tracelogger.
        offset: Offset of the target's clock; None = unknown.
    """
    pairs = [
        ("CAPTURE_HOST", request.profile.host),
        ("CAPTURE_NODE", board.node),
        ("CAPTURE_COMMAND", command),
        (SSH_PID, str(board.ssh_pid or "")),
        ("CAPTURE_RULES", "; ".join(line for line in map(str.strip, request.rules.splitlines()) if line)[:_RULES_MAX]),
        ("CAPTURE_BEGAN", datetime.now(UTC).isoformat(timespec="milliseconds")),
        ("CAPTURE_CLOCK_OFFSET", str(offset) if offset is not None else ""),
    ]
    return [(key, visible_line(value).replace("TRACE_", "TRACE-").replace("::", ":")) for key, value in pairs if value]


def filter_capture(
    captured: Path, request: TargetRequest, progress: Callable[[float], None],
    cancelled: Callable[[], bool] = lambda: False, tell: Callable[[SubsetReport, str], None] = lambda *_: None,
) -> bool:  # fmt: skip
    """Write the events that pass the rules of a request to its file; return whether any event passed.

    `progress` gets the fraction done; if `cancelled` returns True no file is left behind. `tell` is called with the
    report, and with the reason if no event passed, otherwise with an empty text. Raises SatviewError if the trace or
    the rules cannot be read, or the file cannot be written.
    """
    trace = open_trace(captured)
    rules = parse_rules(request.rules, trace.release, process_names(trace))
    load_function = request.functions_of(trace.release) if request.functions_of is not None else None
    built = build(rules, trace.release, load_function, taught=taught(trace))
    derived = TraceDerivedColumns(trace)
    selected = built.mask(trace, derived)
    written = write_subset(trace, request.path, selected, progress=progress, cancelled=cancelled)
    passes = bool(np.any(selected))
    tell(written, "" if passes else why_nothing(built, [], trace, slice(0, len(trace.events)), derived))
    return passes
