"""The request for a capture on a target, and its conversion to tracelogger options, header keys and a filter."""

from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.capture.flight_recorder import Bounds
from satview.events.spec import Release
from satview.export.c_program.program import c_program
from satview.export.kev import SubsetReport, write_subset
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.diagnostics import RuleError
from satview.filters.rows import pids_by_name, process_names
from satview.filters.rules.building import BuiltRules, FunctionLoader, build
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import parse_rules
from satview.filters.rules.writing import tracelogger_command
from satview.filters.views.would_capture import why_nothing
from satview.formats.registry import open_trace
from satview.store.arguments import taught
from satview.store.trace import SSH_PID
from satview.target.board import LOGGER, Board, memory_needed
from satview.target.line import ClockOffset
from satview.target.profiles import Profile, TargetError

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
        profile: The target.
        path: The file to write on this machine.
        filters: Options of tracelogger that select events: `-w`, `-F`, `-a`.
        rules: Text of rules, which replace `filters`; empty = no rules.
        rules_name: Name of the rule file.
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
    filtered afterwards. Each note is one sentence.

    Raises:
        RuleError: The rules have faults.
        UsageError: The rules call a function that is not allowed, or triggers and options contradict each other.
        TargetError: The triggers cannot be checked, because the target sends nothing during the capture.
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
    """Check that this machine can check the triggers of the rules during the capture.

    Raises:
        TargetError, UsageError: It cannot; the text includes the remedy.
    """
    title = request.profile.title
    if not board.can_stream:
        raise TargetError(
            f"tracelogger of {board.sys_release} on {title} sends nothing while it runs, so that no trigger can be "
            "watched from here; leave WHEN out, or export the rules as a C program"
        )
    if not request.is_ring:
        raise UsageError("rules with WHEN need --ring: the newest buffers are kept here until a trigger ends them")
    (request.bounds or Bounds(request.profile.kernel_buffers)).check(built.triggers)


def logger_command(
    request: TargetRequest, board: Board, file: str, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Return the command line of tracelogger on a target.

    Args:
        request: The requested capture.
        board: Properties of the target, which include the available options.
        file: Output file on the target; `-` = the connection.
        say: Called with a sentence about each option that is omitted because the target's tracelogger lacks it.

    Raises:
        TargetError: The target's tracelogger lacks an option that the request needs.
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
    """Yield the words of a command line, except options that the usage message of the target's tracelogger lacks.

    Raises:
        TargetError: A missing option cannot be left out.
    """
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
    """Check that the disk of this machine has enough free space for the content of the target's buffers.

    Raises:
        TargetError: There is not enough free space.
    """
    free, needed = shutil.disk_usage(request.path.absolute().parent).free, memory_needed(request.profile)
    if free < needed:
        raise TargetError(f"the disk for {request.path.name} has {free >> 20} MB free, and the buffers alone have "
                          f"{needed >> 20} MB; make room, or name a file on another disk with -o")  # fmt: skip


def attributes(request: TargetRequest, board: Board, command: str, offset: ClockOffset | None) -> list[tuple[str, str]]:
    """Return the keys and values to add to the header of a trace; they contain no user names, ssh keys or secrets."""
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

    Args:
        captured: File with the received trace.
        request: The request, which specifies the rules and the file to write.
        progress: Called with the fraction done, 0 to 1.
        cancelled: Polled; True stops the filtering, and no file is left behind.
        tell: Called with the report, and with the reason if no event passed, otherwise with an empty text.

    Raises:
        SatviewError: The trace or the rules cannot be read, or the file cannot be written.
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
