"""The request for a capture: as tracelogger options, in the header, and as a filter of the result."""

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
_MEMORY_SHARE: Final = 4  # of the free memory, a quarter is for the file of a target that cannot stream
_MEMORY_BYTES: Final = 16 << 20  # if the free memory is unknown
_DISPENSABLE: Final = {  # options that a capture can do without, and the consequence
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
_RULES_MAX: Final = 2000  # characters of rules in a header
FLUSH_S: Final = 1
"""How often a target that is watched hands over buffers that are not full (`-D`), so that its events come soon."""


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A request for a capture.

    Attributes:
        profile: The target.
        path: The file here.
        filters: Options of tracelogger that select events: `-w`, `-F`, `-a`.
        rules: Text of rules, instead of `filters`; empty = none.
        rules_name: Name of the rule file.
        functions_of: Returns, for a release, the loader of Python functions in rules; None = they are not allowed.
        seconds: Duration; 0 = until the caller ends it.
        is_ring: Keep the newest events in the target's buffers, and fetch them at the end.
        bounds: Limits for the files of a flight recorder; None = one file, of as many buffers as `-k`.
        source: The rules as a C program that sets them on the target; empty = as options, or filtered here.
        built: The rules once the release is known, if they have triggers: ring and triggers are then on this side.
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
        """Whether the ring is on the target."""
        return self.is_ring and self.built is None

    @property
    def is_timed_there(self) -> bool:
        """Whether tracelogger itself limits the time: it supports whole seconds, and a ring ends at a signal."""
        if self.source:  # its time begins when the program has started the trace
            return False
        return self.seconds > 0 and self.seconds == math.ceil(self.seconds) and not self.keeps_ring_there


def with_rules(request: TargetRequest, board: Board) -> tuple[TargetRequest, tuple[str, ...]]:
    """Return a request with rules as tracelogger options, and the parts that no option expresses, a sentence each.

    The options pass all events of the rules; if they pass more, the data go to another file, which is filtered
    afterwards.

    Raises:
        RuleError: Faults in the rules.
        UsageError: They call a function that is not allowed.
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
    """Reject triggers that cannot be watched from here.

    Raises:
        TargetError, UsageError: A sentence with the remedy.
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
        board: Determines the available options.
        file: Output file on the target; `-` for the connection.
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
    """Yield the words of the options that the target's tracelogger has, as far as its usage message is known.

    Raises:
        TargetError: It lacks an option that the request cannot do without.
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
    """Reject a disk here without room even for the target's buffers.

    Raises:
        TargetError: There is not enough room.
    """
    free, needed = shutil.disk_usage(request.path.absolute().parent).free, memory_needed(request.profile)
    if free < needed:
        raise TargetError(f"the disk for {request.path.name} has {free >> 20} MB free, and the buffers alone have "
                          f"{needed >> 20} MB; make room, or name a file on another disk with -o")  # fmt: skip


def attributes(request: TargetRequest, board: Board, command: str, offset: ClockOffset | None) -> list[tuple[str, str]]:
    """Return the keys and values to add to a header: never a user's name, a key or another secret."""
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
        captured: File with the received data.
        request: Its rules and its path are used.
        progress: Called with 0 to 1.
        cancelled: Polled during the work; True stops it, and no file is left behind.
        tell: Called with the report, and with the reason if no event passed, else an empty text.

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
