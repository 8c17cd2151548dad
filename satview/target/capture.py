"""Captures on one target or on several at once: runs tracelogger there by a script, and receives its data.

A script on the target starts tracelogger and waits for a line on its standard input. A line ends the capture, and so
does end of file, when the connection breaks or satview is killed. The script then sends SIGTERM to tracelogger, which
stops the kernel's tracing as at the user's request, and removes leftover files. The target thus cleans up by itself,
even if it cannot be reached any more.

From 6.6 on, tracelogger writes the trace to the connection. Before 6.6 it writes a file into the target's memory; the
script then sends the file with its checksum, and removes it.

Rules that tracelogger's options cannot express can run as a program on the target: the user's compiler builds it here,
it is copied to the target, and the script starts it beside tracelogger. The compiler's command is `qcc` in the file of
targets, for example "/opt/qnx710/host/linux/x86_64/usr/bin/qcc -Vgcc_ntoaarch64le". The script ends the program and
removes its file, however the capture ends.
"""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from satview.base.child import absolute_program
from satview.base.errors import SatviewError, UsageError, WriteError
from satview.base.new_file import write_file
from satview.base.safe_text import counted, visible_line
from satview.capture.flight_recorder import Bounds
from satview.store.axis import AxisEntry, write_axis
from satview.target.line import OWN_WORDS, ClockOffset, GivenUpError, LineSession, Profile, TargetError, TargetLine
from satview.target.request import (
    PATHS,
    Board,
    TargetRequest,
    ask_board,
    attributes,
    check_board,
    check_disk,
    logger_command,
    with_rules,
)
from satview.target.watching import Arrival, Checksum, CutError, Recording

_BUILD_S: Final = 120.0
_PROGRAM_BYTES_MAX: Final = 64 << 20
_ERROR: Final = re.compile(r"\berror\b|undefined reference", re.IGNORECASE)
PROGRAM, ENDED = f"{OWN_WORDS}program", f"{OWN_WORDS}program-ended"  # followed by the program's pid; by its status
# After `sleep 2` tracelogger usually has its buffers; a program that comes earlier tries to start tracing until it has.
# If the program ends by itself, this script ends the logger.
START: Final = f"""( trap exit TERM; sleep 2; {{program}} & child=$!; is_over=; trap 'is_over=1; kill -TERM $child' TERM
echo {PROGRAM} $child >&2; wait $child; code=$?; wait $child
[ $is_over ] || {{{{ echo {ENDED} $code >&2; kill -TERM $logger; }}}} ) </dev/null 3<&- >&2 &
program=$!"""
END: Final = """kill -TERM $program 2>/dev/null
wait $program
rm -f {program}"""


def built_program(source: str, profile: Profile, say: Callable[[str], None]) -> bytes:
    """Compile a C program for the target by the profile's `qcc`, shown by `say`, and return the executable.

    Raises TargetError, with the compiler's first error, if there is no such compiler or it fails.
    """
    try:
        words = shlex.split(profile.qcc)
    except ValueError as error:
        raise TargetError(f"qcc of {profile.title} is not a command: {error}; correct it in targets.toml") from error
    compiler = absolute_program(words[0]) if words else None
    if compiler is None:
        raise TargetError(f"there is no compiler {profile.qcc[:80]!a} here; correct qcc of {profile.title} in "
                          "targets.toml")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="satview-") as folder:
        write_file(Path(folder, "rules.c"), source)
        command = [compiler, *words[1:], "-o", "rules", "rules.c"]
        say(visible_line(f"the rules run on {profile.title} as a program in C: {shlex.join(command)}"))
        try:
            done = subprocess.run(  # noqa: S603  -- the command that the user's own file names, just shown
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_BUILD_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"the compiler of {profile.title} did not build the rules: {error}") from error
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
        program = Path(folder, "rules")
        if done.returncode or not program.is_file():
            fault = next(filter(_ERROR.search, lines), next(iter(lines), f"exit status {done.returncode}"))
            raise TargetError(f"the compiler of {profile.title} did not build the rules: {visible_line(fault)[:300]}; "
                              "correct qcc in targets.toml, or remove it there to filter here")  # fmt: skip
        if program.stat().st_size > _PROGRAM_BYTES_MAX:
            raise TargetError(f"the program of the rules has more than {_PROGRAM_BYTES_MAX >> 20} MB")
        return program.read_bytes()


def copy_program(program: bytes, file: str, line: TargetLine) -> None:
    """Copy a program to a file on the target that only the login's user can read and run.

    Raises TargetError if it was not copied completely; its file is removed.
    """
    checksum = Checksum()
    checksum.add(program)
    reply = line.ask(f"umask 077; trap 'rm -f {file}' HUP INT TERM; cat > {file} && chmod 700 {file} && cksum < {file}",
                    data=program)  # fmt: skip
    if reply.split()[:2] != [str(checksum.value()), str(len(program))]:
        line.ask(f"rm -f {file}; true")
        raise TargetError(f"the program of the rules could not be copied to {file} on {line.profile.title}; make room "
                          "there, or name another memory_folder in targets.toml")  # fmt: skip


_STARTED, _SUM, _ENDED = (f"{OWN_WORDS}{name}" for name in ("logger", "sum", "end"))
# SIGPIPE is ignored, by the logger too: to the logger a broken connection is a write error, and it lives until SIGTERM.
# In a shell without job control, background processes ignore SIGINT; SIGTERM ends tracelogger cleanly.
_SCRIPT: Final = f"""{PATHS}
trap '' PIPE
exec 3<&0
{{command}} </dev/null 3<&- {{output}} &
logger=$!
trap 'kill -TERM $logger' HUP INT TERM
echo {_STARTED} $logger >&2
{{begin}}
( read order <&3; kill -TERM $logger ) </dev/null >/dev/null 2>&1 &
watcher=$!
wait $logger; code=$?
while kill -0 $logger 2>/dev/null; do wait $logger; code=$?; done
kill $watcher 2>/dev/null
{{end}}
{{send}}
echo {_ENDED} $code >&2
"""
_SEND: Final = f"""echo {_SUM} $(cksum < {{file}}) >&2
cat {{file}}
rm -f {{file}}"""
_WARNING: Final = re.compile("keeping up|dropped|lost", re.IGNORECASE)  # printed by a logger that is too slow
_LOOK_S: Final = 0.1
_STOP_SILENT_S: Final = 30.0  # time limit without a byte after the stop
_STOP_S: Final = 120.0  # time limit after the stop for a logger that still sends its buffers over a slow connection
_GONE_S: Final = 10.0  # time limit for a logger that is ended over a second connection
_LATE_S: Final = 10.0  # time limit after the moment when a logger should have ended by itself
_HEADER_S: Final = 30.0  # time limit for the header
_STEP_S: Final = 0.5  # minimum step of a clock that is reported, beyond the errors of both measurements


@dataclass(slots=True)
class Captured:
    """Result of a capture on a target.

    Attributes:
        path: The file; not the requested file if rules must still filter its events.
        offset: Offset of the target's clock; None = unknown.
        began_s: `time.monotonic()` when the header was received.
        seconds: Time from the header, or from the start of the program of the rules, to the end of the capture.
        first_buffer_s: Time from the start of the logger until the first buffer was received; 0 = none was received.
        received: Number of bytes received.
        buffers, lost, drops: As in `Arrival`.
        files: Existing files of a flight recorder; empty = `path` is the only file.
        faults: Deviations of the trace from the request, one sentence each.
        notes: Other remarks, one sentence each.
    """

    path: Path
    board: Board
    command: str
    offset: ClockOffset | None
    began_s: float = 0.0
    seconds: float = 0.0
    first_buffer_s: float = 0.0
    received: int = 0
    buffers: int = 0
    lost: int = 0
    drops: int = 0
    files: tuple[Path, ...] = ()
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def capture(
    request: TargetRequest, asks_to_stop: Callable[[], bool], tell: Callable[[str], None], say: Callable[[str], None],
    grows: Callable[[Path], None] = lambda _path: None,
) -> Captured:  # fmt: skip
    """Capture on a target until the requested time is over, the caller stops it, or the connection breaks.

    `asks_to_stop` is called ten times a second; True stops the capture. `tell` gets status texts during the capture,
    `say` notes before it, one sentence each, and `grows` the file once it has a header and can be followed, unless the
    target sends it at the end. Raises TargetError if nothing can be captured and nothing was changed on the target,
    RuleError and UsageError as `with_rules`, and WriteError if the file cannot be created.
    """
    with TargetLine(request.profile, asks_to_stop) as line:
        board = ask_board(line)
        check_board(board, request.profile)
        if unknown := ", ".join(board.unknown()):
            say(f"{request.profile.title} does not say {unknown}; the capture begins without knowing that")
        request, reasons = with_rules(request, board)
        more = "; the files hold more" if request.built else "; the rest is filtered here after the capture"
        for reason in reasons:
            say(reason if request.source else reason + more)
        check_disk(request)
        offset = line.clock_offset()
        file = "-" if board.can_stream else f"{request.profile.memory_folder}/satview-{secrets.token_hex(4)}.kev"
        program = f"{request.profile.memory_folder}/satview-{secrets.token_hex(4)}" if request.source else ""
        code = built_program(request.source, request.profile, say) if program else b""
        command = shlex.join(logger_command(request, board, file, say))
        if asks_to_stop():
            raise GivenUpError
        line.is_given_up = lambda: False  # from here on the target is always cleaned up
        captured = Captured(request.path, board, command, offset)
        pairs = attributes(request, board, command, offset)
        arrival = Arrival(request.path, pairs) if request.built is None else Recording(
            request.path, pairs, request.built, request.bounds or Bounds(request.profile.kernel_buffers), say
        )  # fmt: skip
        try:
            if program:
                copy_program(code, program, line)
            run = _ScriptRun(request, line, captured, arrival, file, program)
            try:
                run.receive(asks_to_stop, tell, grows)
            finally:
                run.leave_clean()
        finally:
            arrival.finish()
        if not arrival.began_s:
            raise run.why_nothing()
        if request.keeps_ring_there:
            _keep_names(line, captured)
        if isinstance(arrival, Recording):
            _report(arrival, captured)
        _check_clock(line, request.profile.title, captured)
    return captured


def _report(recording: Recording, captured: Captured) -> None:
    """Add the files, hits and losses of a flight recorder to the result of a capture."""
    captured.files = tuple(recording.recorder.files)
    if not recording.hits:
        captured.faults.append("no trigger has hit" + "; the file has the newest buffers" * bool(captured.files))
        return
    captured.notes.append(f"{counted(recording.hits, 'hit')} of triggers, noticed here {recording.delay_s:.1f} s after "
                          "their events at most")  # fmt: skip
    if forgotten := recording.forgotten:
        captured.faults.append(f"spans of {counted(forgotten, 'thread')} were given up, because there were too many")


def _keep_names(line: TargetLine, captured: Captured) -> None:
    """Save pidin's list of processes next to the trace of a ring, as that trace may lack process names."""
    text = ""
    with suppress(TargetError):  # the connection may be gone; the names are optional
        text = line.ask(f"{PATHS}; pidin -F '%a %b %n %h'") if line.is_open else ""
    if not {"pid", "name"} <= set(text.partition("\n")[0].split()):
        captured.notes.append(f"{line.profile.title} has no pidin, so processes may have no names in a ring")
        return
    path = captured.path.with_suffix(".pidin.txt")
    try:
        write_file(path, text)
    except WriteError as error:
        captured.notes.append(f"{error}; a ring may lack names of processes")
        return
    captured.notes.append(f"names of processes and threads are in {path.name}, if the ring lacks some: open it with "
                          f"--pidin {path.name}, or in the window by Lanes > Names from a pidin text")  # fmt: skip


def _check_clock(line: TargetLine, name: str, captured: Captured) -> None:
    """Add a note to the result of a capture if the target's clock was set meanwhile."""
    before, after = captured.offset, None
    with suppress(TargetError):  # the connection may be gone; the note is optional
        after = line.clock_offset() if before is not None and line.is_open else None
    if before is None or after is None:
        return
    step_s = after.seconds - before.seconds
    if abs(step_s) > before.error_s + after.error_s + _STEP_S:
        captured.notes.append(f"the clock of {name} was set by {step_s:+.1f} s during the capture; events are stamped "
                              "with cycles and are right, the header has the offset from before")  # fmt: skip


class _ScriptRun:
    """One run of the script that captures on a target.

    Args:
        captured: The result of the capture, which is filled in.
        file: Tracelogger's output file on the target; `-` = the connection.
        program: File on the target of a program that sets the rules, removed at the end; empty = none.
    """

    def __init__(
        self,
        request: TargetRequest,
        line: TargetLine,
        captured: Captured,
        arrival: Arrival,
        file: str,
        program: str = "",
    ) -> None:
        self._request, self._line, self._captured, self._arrival = request, line, captured, arrival
        self._name, self._file, self._program = request.profile.title, file, program
        # If the trace goes into a file, the logger's messages must not precede it in the output.
        output, send = ("", "") if file == "-" else (">&2", _SEND.format(file=file))
        self._began_s = time.monotonic()
        begin, end = (part.format(program=program) if program else "" for part in (START, END))
        self._session: LineSession = line.start(
            _SCRIPT.format(command=captured.command, output=output, begin=begin, end=end, send=send)
        )
        self._stderr = ""
        self._is_given_up = False
        self._program_began_s = 0.0  # by `time.monotonic()`; 0 = not yet

    def receive(
        self, asks_to_stop: Callable[[], bool], tell: Callable[[str], None], grows: Callable[[Path], None]
    ) -> None:
        """Receive data until the target has sent everything, or no more can be expected; arguments as for `capture`."""
        captured, arrival, session = self._captured, self._arrival, self._session
        is_awaited = self._file == "-" and not self._request.keeps_ring_there
        told_s, told_bytes, heard_s, stopped_s, rate = self._began_s, 0, self._began_s, 0.0, 0.0
        while (data := session.read(_LOOK_S)) != b"":
            now_s = time.monotonic()
            if data:
                heard_s = now_s
                try:
                    arrival.take(data)
                except CutError as error:
                    captured.faults.append(str(error))
                    break
                if is_awaited and arrival.began_s:
                    is_awaited = False
                    if self._request.built is None:
                        grows(captured.path)
            else:
                arrival.wait()
            if not stopped_s and (arrival.is_done or asks_to_stop() or self._is_over(now_s)):
                session.write("stop\n")
                stopped_s, self._is_given_up = now_s, asks_to_stop()
            if why := self._why_hopeless(now_s, heard_s, stopped_s):
                captured.faults.append(why)
                break
            if now_s - told_s >= 1:
                rate, told_s, told_bytes = (arrival.received - told_bytes) / (now_s - told_s), now_s, arrival.received
                tell(self._progress(now_s, rate, is_stopping=stopped_s > 0))
        captured.seconds = time.monotonic() - (self._begin_s() or time.monotonic())
        captured.received, captured.buffers = arrival.received, arrival.buffers
        captured.lost, captured.drops, captured.began_s = arrival.lost, arrival.drops, arrival.began_s
        captured.first_buffer_s = arrival.first_buffer_s - self._began_s if arrival.first_buffer_s else 0.0
        if advice := self._advice():
            captured.faults.append(advice)

    def _is_over(self, now_s: float) -> bool:
        """Return whether the requested time is over, `_LATE_S` later if the logger limits it and should end first."""
        begin_s = self._begin_s()
        late_s = _LATE_S if self._request.is_timed_there else 0.0
        return 0 < self._request.seconds <= now_s - begin_s - late_s if begin_s else False

    def _begin_s(self) -> float:
        """Return when the capture, or the program of the rules, began, by `time.monotonic()`; 0 = not known."""
        if self._program and not self._program_began_s:
            if PROGRAM not in self._session.stderr_so_far:
                return 0.0
            self._program_began_s = time.monotonic()
        if self._file == "-" and not self._request.keeps_ring_there:
            return self._arrival.began_s and max(self._arrival.began_s, self._program_began_s)
        return self._began_s if _STARTED in self._session.stderr_so_far else 0.0

    def _why_hopeless(self, now_s: float, heard_s: float, stopped_s: float) -> str:
        """Return why no more data can be expected, or nothing; times by `time.monotonic()`, `stopped_s` 0 = not yet."""
        ending_s, silent_s = now_s - stopped_s, now_s - max(heard_s, stopped_s)
        if stopped_s and (silent_s > _STOP_SILENT_S or (self._file == "-" and ending_s > _STOP_S)):
            return (f"tracelogger on {self._name} did not end within {ending_s:.0f} s; what it had not sent is not in "
                    "the file")  # fmt: skip
        is_awaited = self._file == "-" and not self._request.keeps_ring_there and not self._arrival.began_s
        if is_awaited and now_s - self._began_s > _HEADER_S:
            return (f"tracelogger on {self._name} sent nothing within {_HEADER_S:.0f} s; start it there by hand to see "
                    "what it says")  # fmt: skip
        return ""

    def _progress(self, now_s: float, rate: float, *, is_stopping: bool) -> str:
        """Return the status text during the capture; `rate` is bytes per second, lately."""
        arrival = self._arrival
        if not arrival.received:
            doing = "stopping" if is_stopping else "capturing into its memory" if self._file != "-" else "waiting"
            return f"{now_s - self._began_s:.0f} s, {doing}"
        parts = [f"{_megabytes(arrival.received)} MB", f"{_megabytes(rate)} MB/s", counted(arrival.buffers, "buffer")]
        parts.append(f"{arrival.lost} LOST: {self._too_much(now_s)}" if arrival.lost else "none lost")
        parts += [arrival.found_so_far] * bool(arrival.found_so_far)
        parts += [f"events dropped {arrival.drops} times"] * (arrival.drops > 0) + ["stopping"] * is_stopping
        return ", ".join(parts)

    def _too_much(self, now_s: float) -> str:
        """Return a phrase that compares the estimated data rate of the trace with the rate of the connection."""
        arrival = self._arrival
        rate = arrival.received / max(_LOOK_S, now_s - (self._begin_s() or self._began_s))
        needed = rate * (arrival.lost + arrival.buffers) / max(1, arrival.buffers)
        what = "wide" if "-w" in self._request.filters else "this"
        return f"{what} is too much for this line: {_megabytes(needed)} of {_megabytes(rate)} MB/s"

    def _advice(self) -> str:
        """Return a sentence on lost data and its remedy; empty = nothing was lost."""
        arrival = self._arrival
        if not arrival.lost and not arrival.drops:
            return ""
        fast = "capture fast events, " if "-w" in self._request.filters else ""
        dropped = f", and events were dropped {arrival.drops} times" if arrival.drops else ""
        return (f"{self._too_much(time.monotonic())}, {counted(arrival.lost, 'buffer')} lost{dropped}; {fast}leave out "
                "classes with -F or -r, or give the logger more buffers with -b and -k")  # fmt: skip

    def leave_clean(self) -> None:
        """End the logger, remove its files and check the file sent; add faults and notes to the result."""
        session = self._session
        session.write("stop\n")
        deadline_s = time.monotonic() + _GONE_S
        while (data := session.read(_LOOK_S)) != b"" and time.monotonic() < deadline_s:
            del data  # received after the file was full or proved to be no trace
        session.close()
        self._stderr = session.stderr()
        self._check_sum()
        if early := re.search(rf"^{ENDED} (\d+)", self._stderr, re.MULTILINE):
            lines = self._words()
            why = next((line for line in lines if self._program in line), "".join(lines[:1]))
            self._captured.faults.append(f"the program of the rules ended on {self._name} with status {early[1]}, and "
                                         f"the capture with it: {why}; look at qcc in targets.toml")  # fmt: skip
        if end := re.search(rf"^{_ENDED} (\d+)", self._stderr, re.MULTILINE):
            lines = self._words()
            warnings = [line for line in lines if _WARNING.search(line)]
            if end[1] not in ("0", "143") and self._arrival.began_s:  # 143: killed by SIGTERM
                failure = f"tracelogger on {self._name} ended with status {end[1]}"
                self._captured.faults.append(": ".join([failure, *lines[-1:]]))
            elif warnings:
                self._captured.notes.append(f"tracelogger on {self._name} said: {warnings[-1]}")
            return
        self._captured.faults.append(self._line.fault(session))
        self._captured.notes.append(self._clean_up_again())

    def _check_sum(self) -> None:
        """Compare the received file with the checksum that the target computed, if it sent a file."""
        if self._file == "-" or not self._arrival.received:
            return
        sent = re.search(rf"^{_SUM} (\d+) (\d+)", self._stderr, re.MULTILINE)
        if sent is None:
            self._captured.notes.append(f"{self._name} has no cksum, so the copy could not be compared")
        elif (int(sent[1]), int(sent[2])) != (self._arrival.checksum, self._arrival.received):
            self._captured.faults.append(f"{self._captured.path.name} is not what {self._name} had: {sent[2]} bytes "
                                         f"there, {self._arrival.received} came; capture again")  # fmt: skip

    def _clean_up_again(self) -> str:
        """Clean up over a new connection, because the first one broke; return a sentence on the result."""
        started = re.search(rf"^{_STARTED} (\d+)", self._stderr, re.MULTILINE)
        pid = int(started[1]) if started else 0
        files = "" if self._file == "-" else f"rm -f {self._file}; "
        if self._program:
            files += f"rm -f {self._program}; "
            if match := re.search(rf"^{PROGRAM} (\d+)", self._stderr, re.MULTILINE):
                files += f"kill -TERM {match[1]} 2>/dev/null; "
        look = f"{PATHS}; {files}kill -0 {pid} 2>/dev/null && echo runs; true" if pid else f"{files}true"
        deadline_s = time.monotonic() + _GONE_S
        try:
            with TargetLine(self._request.profile) as line:
                while "runs" in line.ask(look):
                    loggers = (board := ask_board(line)).loggers
                    if board.processes and pid not in loggers:  # the pid now belongs to another process
                        break
                    if time.monotonic() > deadline_s:
                        return (f"tracelogger still runs on {self._name} (pid {pid}); end it there with "
                                f"`kill {pid}`")  # fmt: skip
                    line.ask(f"kill -TERM {pid}; sleep 1; true")
        except SatviewError:
            return (f"{self._name} cannot be reached to look after its logger, which ends as soon as the board notices "
                    f"that the line is gone; if it does not, `kill {pid}` there")  # fmt: skip
        return f"{self._name} was left clean: no logger of this capture runs there"

    def _words(self) -> list[str]:
        """Return the lines that the logger wrote to standard error."""
        lines = (visible_line(line)[:200] for line in self._stderr.splitlines() if not line.startswith(OWN_WORDS))
        return [line for line in lines if line.strip()]

    def why_nothing(self) -> TargetError:
        """Return an error that says why no header was received."""
        if self._captured.faults:
            return TargetError(" ".join(self._captured.faults))
        if self._is_given_up:
            return GivenUpError(f"stopped before tracelogger on {self._name} had sent anything; there is no file")
        words = self._words()
        message = f" and said: {words[-1]}" if words else ""
        return TargetError(f"tracelogger on {self._name} wrote no trace{message}; start it there by hand: "
                           f"{self._captured.command}")  # fmt: skip


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.{1 if not 0 < size < 1e5 else 3}f}"


# Several targets at once, whose files are put on one time axis.


def check_names(requests: Sequence[TargetRequest]) -> None:
    """Check that all targets have different names in messages and files (UsageError)."""
    names = [request.profile.title for request in requests]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two targets are called {twice[0]}; give them names of their own in targets.toml")


def capture_all(
    requests: Sequence[TargetRequest], asks_to_stop: Callable[[], bool], tell: Callable[[str], None],
    say: Callable[[str], None]
) -> list[Captured | SatviewError]:  # fmt: skip
    """Capture on several targets at once; each capture ends on its own, and all end when `asks_to_stop` returns True.

    Several threads call `asks_to_stop` and `say`, as for `capture`; `tell` gets one status about all targets. For each
    request the result of its capture is returned, or the error that prevented it.
    """
    status_of: dict[str, str] = {}

    def capture_one(request: TargetRequest) -> Captured | SatviewError:
        name = request.profile.title

        def tell_status(text: str) -> None:
            status_of[name] = text
            tell("; ".join(f"{key}: {value}" for key, value in sorted(status_of.copy().items())))

        try:
            return capture(request, asks_to_stop, tell_status, say)
        except SatviewError as error:
            return error

    if len(requests) == 1:  # in this thread, so that a second Ctrl+C interrupts it
        return [capture_one(requests[0])]
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(capture_one, requests))


def write_captures_axis(path: Path, captures: Sequence[tuple[str, Path, Captured]]) -> None:
    """Write an axis file that puts captures on one time axis, by the times at which their headers were received.

    A logger sends its header just before it starts tracing, so the offsets are accurate to about a tenth of a second.
    Each capture is the target's name, the trace file and the result. Raises UsageError if the captures cannot be
    combined, or the file cannot be written.
    """
    began_s = captures[0][2].began_s
    entries = [
        AxisEntry(trace, name, round((captured.began_s - began_s) * 1e12) if number else 0)
        for number, (name, trace, captured) in enumerate(captures)
    ]
    write_axis(path, entries)
