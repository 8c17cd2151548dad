"""A persistent simulated target, to which shells, loggers and programs connect, and the logger that runs on it."""

from __future__ import annotations

import os
import re
import select
import selectors
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, cast

import msgspec

from satview.base.child import child_command
from satview.base.errors import SatviewError, UsageError, one_line
from satview.base.new_file import NewFile, write_file
from satview.base.process import BAD_USE
from satview.base.safe_text import visible_line
from satview.base.time import NS_PER_S
from satview.capture.buffers import VERSIONS, KevFile, LoggerOptions, LoggerReport, TraceBuffers
from satview.capture.kernel import BOOT_SECONDS, Kernel
from satview.capture.kernel import mode as mode_of_name
from satview.capture.logger import Logger
from satview.capture.run import PACE_S, CaptureResult, calls_of_text, why_nothing
from satview.capture.sim.calls.processes import kill
from satview.capture.sim.machine import Machine
from satview.capture.sim.target import Target
from satview.capture.sim.threads import Cpu, InterruptSource, Policy, Process, Thread
from satview.capture.sim.truth import describe
from satview.capture.workloads import registry
from satview.capture.workloads.registry import advancing
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.filters.diagnostics import RuleError
from satview.target import shell
from satview.target.c_programs import Client, ClientJob, CProgram, HandlersRequest, ProgramRequest, ThreadRequest
from satview.target.line import TargetError

# A persistent simulated target: its kernel boots once; shells, loggers and programs connect to it over a socket.
#
# The target's clock follows real time, like the clock of a board: it advances in steps of 20 ms and at every request.
# If the simulation is slower than real time, the clock falls behind, and `pidin info` reports by how much.
#
# A single thread runs the simulation and serves all clients. Sockets never block it: data that a client does not read
# is queued in a bounded buffer, and a client that sends invalid data, stalls or dies does not affect the others.


_CLIENTS_MAX: Final = 200
_REQUEST_S: Final = 10.0  # time limit for a client to send its request
_BEHIND_BYTES: Final = 1 << 18
_STEP_S: Final = 0.05  # maximum real time between checks of the sockets
_C_PACE_S: Final = 0.002  # instead of PACE_S while there are programs in C
_SLIP_S: Final = 0.5  # lag behind real time above which the clock does not catch up
_REMEMBERED_NS: Final = 5 * NS_PER_S  # simulated time for which a dead process is kept
_MEMORY_MB: Final = (1800, 2048)
_FORM: Final = "%a %b %n %h %p %J %B"
_COLUMNS: Final = {"a": ("pid", 8), "b": ("tid", 3), "n": ("name", 28), "h": ("thread name", 16), "p": ("prio", 5),
                   "J": ("STATE", 10), "B": ("Blocked", 0)}  # fmt: skip
_OF_THREADS: Final = frozenset("bhpJB")
_POLICIES: Final = {Policy.FIFO: "f", Policy.RR: "r", Policy.OTHER: "o", Policy.SPORADIC: "s"}
_PROGRAMS: Final = ("id", "pidin", "run", "slay", "uname")
SIGHUP, SIGKILL, SIGTERM = 1, 9, 15

Words = Annotated[list[Annotated[str, msgspec.Meta(max_length=4096)]], msgspec.Meta(min_length=1, max_length=64)]
Pair = tuple[Annotated[str, msgspec.Meta(max_length=200)], Annotated[str, msgspec.Meta(max_length=4096)]]


class ShellCommand(msgspec.Struct, frozen=True, tag_field="do", tag="command", forbid_unknown_fields=True):
    """Request to run a program of the shell in a working folder."""

    words: Words
    folder: Annotated[str, msgspec.Meta(max_length=4096)]


class LoggerRun(msgspec.Struct, frozen=True, tag_field="do", tag="log", forbid_unknown_fields=True):
    """Request to run tracelogger on the target.

    Attributes:
        attributes: Keys and values to add to the header of the trace.
        limit_bytes: Maximum size of the file; 0 = no limit.
        rules: Text of the rules; empty = no rules.
    """

    options: LoggerOptions
    name: Annotated[str, msgspec.Meta(max_length=4096)]
    attributes: Annotated[list[Pair], msgspec.Meta(max_length=64)] = []
    limit_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    rules: Annotated[str, msgspec.Meta(max_length=1 << 15)] = ""


class LogReport(msgspec.Struct, frozen=True):
    """Result of a logger for the client; the fields are those of `CaptureResult`."""

    logger: LoggerReport
    lost_buffers: int
    dropped_events: int
    duration_ns: int
    findings: list[str]


class End(msgspec.Struct, frozen=True, tag_field="do", tag="end", forbid_unknown_fields=True):
    """Request to end the target."""


_REQUESTS: Final = msgspec.json.Decoder(
    ShellCommand | LoggerRun | End | ProgramRequest | ThreadRequest | HandlersRequest
)


def checked_name(name: str) -> str:
    """Return the name unchanged if it is valid for a simulated target, else raise UsageError."""
    if not shell.NAME.fullmatch(name):
        raise UsageError(f"{name[:60]!a} is not a name for a target; use letters, digits, -, _ and ., 40 at most")
    return name


class _Stream:
    """A binary stream that sends the bytes written to it to a client, as frames."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def write(self, data: memoryview) -> int:
        """Send bytes to the client and return their number; bytes for a disconnected client are dropped."""
        self._client.frame(shell.DATA, bytes(data))
        return len(data)

    def flush(self) -> None:
        """Send as many queued frames as the client accepts."""
        self._client.flush()


class _LineFile(KevFile):
    """A logger's output that sends the content of the .kev file to the client, which writes the file."""

    def __init__(self, client: Client, request: LoggerRun, kernel: Kernel) -> None:
        self._client = client
        super().__init__(
            Path(request.name), kernel.target, kernel.machine.now, request.attributes, request.limit_bytes,
            cast("BinaryIO", _Stream(client)),
        )  # fmt: skip

    def is_behind(self) -> bool:
        """Return whether the logger must wait until its client has received more data."""
        return not self._client.is_closed and self._client.backlog > _BEHIND_BYTES


class LogJob(ClientJob):
    """A logger that runs for a client."""

    def __init__(self, client: Client, kernel: Kernel, request: LoggerRun, options: LoggerOptions) -> None:
        self._client, self._kernel = client, kernel
        self._begin = kernel.machine.now
        self._file = _LineFile(client, request, kernel)
        self._buffers: TraceBuffers | None = None
        self._is_asked_to_stop = self._is_told = False
        self._why_nothing = ""
        self.logger = Logger(kernel, options, self._file, self._say)

    def _say(self, level: int, text: str) -> None:
        self._client.frame(shell.SAID, bytes((level,)) + text.encode("utf-8", "replace"))

    def take(self, line: bytes) -> None:
        """Stop the logger; a client sends a line only for that."""
        del line
        self._is_asked_to_stop = True

    def abandon(self) -> None:
        """Stop the logger, because its client has disconnected."""
        self._file.is_cut = True
        self._is_asked_to_stop = True

    def is_over(self) -> bool:
        """Return whether the logger has written everything or was killed; send it SIGINT if a stop was requested."""
        logger, kernel = self.logger, self._kernel
        self._buffers = kernel.emitter.buffers or self._buffers
        if self._is_asked_to_stop and logger.is_ready and not self._is_told:
            self._is_told = True  # an earlier signal would end it at once
            logger.stop()
        if logger.is_done or logger.failure is not None:
            self._report()
            end_process(kernel, logger.process, 0)  # else its threads for signals and time would remain
            if logger.failure is not None:
                self._clean_up()
            return True
        if logger.process.is_dead:
            self._clean_up()
            self._client.end(1, "tracelogger was ended; what it had not written is lost")
            return True
        if not logger.report.events and logger.is_ready:
            self._why_nothing = why_nothing(kernel, logger.options)
        return False

    def _clean_up(self) -> None:
        """Stop tracing, and reset the filters and free the buffers that a killed logger left."""
        for mode in ("STOP", "DELALLCLASSES", "DEALLOCBUFFER"):
            with suppress(OSError):
                self._kernel.trace_event(mode_of_name(mode))

    def _report(self) -> None:
        logger, machine, buffers = self.logger, self._kernel.machine, self._buffers
        messages = list(logger.report.errors)
        if logger.failure is not None:
            messages.append(str(logger.failure))
        elif not logger.report.events:
            messages.append(f"nothing was captured: {self._why_nothing or 'it ended before it began'}")
        if self._file.is_cut and not self._client.is_closed:
            messages.append(f"{self._file.path.name} is full: what came later is not in it")
        self._client.frame(shell.REPORT, msgspec.json.encode(LogReport(
            logger.report,
            buffers.lost_buffers if buffers is not None else 0,
            buffers.dropped_events if buffers is not None else 0,
            (machine.now - self._begin) * NS_PER_S // machine.target.cycles_per_s,
            messages,
        )))  # fmt: skip
        self._client.end(0)


class WorkloadJob(ClientJob):
    """A workload that runs as a program of the shell; ending the job ends the workload's processes and devices."""

    def __init__(self, client: Client | None, kernel: Kernel) -> None:
        self._client, self._kernel = client, kernel
        self._pids: set[int] = set()
        self._sources: list[InterruptSource] = []

    def start(self, name: str) -> None:
        """Start a workload; UsageError if there is none of that name, or it cannot run on this target now."""
        machine = self._kernel.machine
        pids, sources = set(machine.processes), dict(machine.sources)
        fault: SatviewError | None = None
        try:
            registry.find(name).setup(self._kernel)
        except SatviewError as error:
            fault = error
        except Exception as error:  # noqa: BLE001  -- e.g. a set-up that expects a target on which nothing runs
            fault = UsageError(f"{name} cannot run on this target: {one_line(error)}")
        self._pids = set(machine.processes) - pids
        self._sources = [source for vector, source in machine.sources.items() if sources.get(vector) is not source]
        if fault is not None:
            self.abandon()
            raise fault

    def _alive(self) -> list[Process]:
        """Return the workload's processes that have not ended, including processes that they started."""
        processes = self._kernel.machine.processes.values()
        self._pids |= {process.pid for process in processes if process.parent in self._pids}
        return [process for process in processes if process.pid in self._pids and not process.is_dead]

    def is_over(self) -> bool:
        """Return whether all processes of the workload have ended; if so, report that to the client."""
        if self._alive():
            return False
        self._silence()
        if self._client is not None:
            self._client.end(0)
        return True

    def _silence(self) -> None:
        for source in self._sources:
            source.is_silent, source.gap_ns = True, lambda: None

    def abandon(self) -> None:
        """End the workload's processes with SIGHUP, as when a terminal is closed."""
        self._silence()
        while alive := self._alive():
            for process in alive:
                end_process(self._kernel, process, SIGHUP)


def end_process(kernel: Kernel, process: Process, signo: int) -> None:
    """End a process from outside the simulation, as a signal without a handler does."""
    machine = kernel.machine
    machine.kernel_entry(machine.cpus[0], lambda cpu: kill(machine, cpu, process, signo))


class SimulatedTarget:
    """A simulated target that serves clients over a socket.

    Args:
        say: Called with console messages: faults of programs, one sentence each.

    Raises:
        TargetError: A target of that name runs already, or its folder or socket cannot be used.
    """

    def __init__(self, name: str, kind: Target, seed: int, say: Callable[[str], None]) -> None:
        self.folder, self._say = shell.folder_of(name), say
        self._lock = self._locked()
        self._listener = self._listening()
        self.kernel = Kernel(replace(kind, boot_s=int(time.time() - BOOT_SECONDS)), seed)
        self.kernel.is_up = True
        self._write_programs(name)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._clients: list[Client] = []
        self._jobs: list[ClientJob] = []
        self._died: dict[int, int] = {}  # by pid of a dead process: time when it was noticed, in cycles
        self._is_ending = False
        self._began_s, self._began_cycles = time.monotonic(), self.kernel.machine.now
        self._slipped_s = self._step_ends_s = 0.0
        self._names: dict[str, tuple[int, int]] = {}  # channel names of programs in C: pid and chid

    @property
    def logs(self) -> list[LogJob]:
        """The jobs of running loggers: none or one."""
        return [job for job in self._jobs if isinstance(job, LogJob)]

    # The folder

    def _locked(self) -> int:
        """Lock the folder, which only one target may use at a time; return the file descriptor of the lock file."""
        import fcntl  # not on Windows, which `folder_of` has refused

        shell.make_private(self.folder)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise TargetError(f"a simulated target called {self.folder.name} runs already; use it, end it with "
                              f"`satview target{shell.named(self.folder.name)} --end`, or give another --name"
                              ) from None  # fmt: skip
        return lock

    def _listening(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        path = self.folder / "socket"
        path.unlink(missing_ok=True)
        try:
            listener.bind(str(path))
        except OSError as error:
            listener.close()
            raise TargetError(f"{path}: {error}; choose a shorter folder with XDG_RUNTIME_DIR") from error
        listener.listen(_CLIENTS_MAX)
        listener.setblocking(False)
        return listener

    def _write_programs(self, name: str) -> None:
        """Write the shell's programs: scripts that send a request to the target, or run `satview tracelogger`."""
        programs = self.folder / "bin"
        for folder in (programs, self.folder / "shmem"):
            folder.mkdir(mode=0o700, exist_ok=True)
        ask = [str(Path(sys.executable).absolute()), "-IS", str(Path(shell.__file__).absolute()), str(self.folder)]
        log = child_command("satview.__main__:entry", "tracelogger", "--target", name)
        for program in (*_PROGRAMS, *(workload for workload, _ in registry.names())):
            _write_program(programs / program, [*ask, program])
        _write_program(programs / "tracelogger", log)

    # The loop

    def serve(self, is_over: Callable[[], bool]) -> None:
        """Run until a client ends the target or `is_over` returns True.

        Args:
            is_over: Called fifty times a second; True ends the target.

        Raises:
            CaptureError: The simulation made no progress.
        """
        with advancing(self.kernel.machine, self.folder.name):
            while not (is_over() or self._is_ending):
                for key, _ in self._selector.select(self._pace_s()):
                    if key.fileobj is self._listener:
                        self._accept()
                self._listen()
                self._advance()
                self._update_jobs()

    def _pace_s(self) -> float:
        """Return the real time between two steps of the simulation, which is short while C programs run."""
        return _C_PACE_S if any(isinstance(job, CProgram) for job in self._jobs) else PACE_S

    def start_workload(self, name: str) -> None:
        """Start a workload that runs as long as the target; UsageError if it cannot be started."""
        job = WorkloadJob(None, self.kernel)
        job.start(name)
        self._jobs.append(job)

    def close(self) -> None:
        """End the target, and close the connections of its clients."""
        for client in self._clients:
            client.line.close()
        self._listener.close()
        self._selector.close()
        (self.folder / "socket").unlink(missing_ok=True)
        os.close(self._lock)

    def _accept(self) -> None:
        with suppress(OSError):
            line, _ = self._listener.accept()
            client = Client(line)
            if len(self._clients) >= _CLIENTS_MAX:
                client.end(shell.GONE, f"the target serves {_CLIENTS_MAX} programs already")
                line.close()
                return
            self._clients.append(client)
            self._selector.register(line, selectors.EVENT_READ)

    def _listen(self) -> None:
        """Read from clients, send queued data, and remove disconnected clients."""
        for client in self._clients:
            client.flush()
            for line in client.receive():
                if not client.has_asked:
                    client.has_asked = True
                    self._begin(client, line)
                elif client.job is not None:
                    client.job.take(line)
            client.is_closed |= not client.has_asked and time.monotonic() - client.came_s > _REQUEST_S
        for client in [client for client in self._clients if client.is_closed]:
            if client.job is not None and not client.is_ending:
                client.job.abandon()
            self._selector.unregister(client.line)
            client.line.close()
            self._clients.remove(client)

    def _begin(self, client: Client, line: bytes) -> None:
        """Execute a client's request, which is its first line; an error is sent to the client."""
        try:
            request = _REQUESTS.decode(line)
            if isinstance(request, LoggerRun):
                client.job = self._start_log(client, request)
                self._jobs.append(client.job)
            elif isinstance(request, End):
                self._is_ending = True
                client.end(0)
            elif isinstance(request, ProgramRequest):
                client.job = CProgram(self.kernel, request, client, self._names, self._pause_if_late, self._say)
                self._jobs.append(client.job)
            elif isinstance(request, (ThreadRequest, HandlersRequest)):
                client.job = self._program(request.pid).connect(request, client)
            else:
                self._command(client, request)
        except msgspec.MsgspecError as error:
            client.end(BAD_USE, f"the target does not understand this: {visible_line(str(error))[:200]}")
        except RuleError as error:
            for fault in error.diagnostics:
                client.say(f"line {fault.line}, column {fault.column}: {fault.message}", shell.ERROR)
            client.end(BAD_USE, "nothing was captured because the rules have errors")
        except SatviewError as error:
            client.end(BAD_USE, visible_line(str(error)))
        except Exception as error:  # noqa: BLE001  -- no request may end the target
            client.end(BAD_USE, f"the target could not do this: {visible_line(one_line(error))}")

    def _program(self, pid: int) -> CProgram:
        """Return the running C program with this pid."""
        for job in self._jobs:
            if isinstance(job, CProgram) and job.process.pid == pid:
                return job
        raise UsageError(f"no program in C has the pid {pid}")

    def _pause_if_late(self) -> None:
        """Pause the simulation to serve other clients if waiting for C programs has taken too long."""
        if time.monotonic() > self._step_ends_s:
            self.kernel.machine.stop()

    def _start_log(self, client: Client, request: LoggerRun) -> LogJob:
        if self.logs:
            pid = self.logs[0].logger.process.pid
            raise UsageError(f"tracelogger runs already (pid {pid}), and a second one would take its buffers; wait for "
                             f"it, or `slay {pid}`")  # fmt: skip
        if request.options.rules is not None or request.options.is_probe:
            raise UsageError("a logger of this target has its rules as text, and no probe")
        options = request.options
        if request.rules.strip():
            calls, rules = calls_of_text(request.rules, self.kernel, None, options.is_wide)
            options = replace(options, rules=calls)
            for note in rules.notes:
                client.say(note, shell.ERROR)
        return LogJob(client, self.kernel, request, options)

    def _advance(self) -> None:
        """Run the simulation until its clock has caught up with real time, but not longer than `_STEP_S`."""
        machine, now_s = self.kernel.machine, time.monotonic()
        cycles_per_s = machine.target.cycles_per_s
        due = self._began_cycles + int((now_s - self._began_s) * cycles_per_s)
        self._step_ends_s = now_s + _STEP_S
        machine.run(due, lambda: time.monotonic() > self._step_ends_s)
        machine.is_stopped = False  # a logger that has ended stops the machine
        behind_s = (due - machine.now) / cycles_per_s
        if behind_s > _SLIP_S:
            self._slipped_s += behind_s
            self._began_s += behind_s
        machine.truth.forget()

    def _update_jobs(self) -> None:
        """Remove jobs that have ended, report faults of programs, and delete processes that died a while ago."""
        self._jobs = [job for job in self._jobs if not job.is_over()]
        machine = self.kernel.machine
        for fault in machine.faults:
            self._say(visible_line(str(fault)))
        machine.faults.clear()
        for pid, process in machine.processes.items():
            if process.is_dead:
                self._died.setdefault(pid, machine.now)
        due = machine.now - machine.target.cycles(_REMEMBERED_NS)
        if not machine.processes[1].channels[1].pulses:  # else the process manager still has to clean up
            for pid in [pid for pid, died in self._died.items() if died < due]:
                del self._died[pid], machine.processes[pid]

    # Programs of the shell

    def _command(self, client: Client, command: ShellCommand) -> None:
        name, *words = command.words
        if name == "pidin":
            client.say(self._pidin(words))
        elif name == "uname":
            client.say(self._uname(words))
        elif name == "id":
            client.say("0" if words == ["-u"] else "uid=0(root) gid=0(root)")
        elif name == "slay":
            self._slay(words)
        elif name in ("run", *(workload for workload, _ in registry.names())):
            arguments = words if name == "run" else command.words
            if len(arguments) != 1:
                raise UsageError("usage: run WORKLOAD, or run FILE.py; Ctrl+C ends it")
            file = arguments[0]
            job = WorkloadJob(client, self.kernel)
            job.start(str(Path(command.folder) / file) if file.endswith(".py") else file)
            client.job = job
            self._jobs.append(job)
            return
        else:
            raise UsageError(f"{name}: there is no such program; there are {', '.join(_PROGRAMS)}, tracelogger, and "
                             "the workloads")  # fmt: skip
        client.end(0)

    def _uname(self, words: Sequence[str]) -> str:
        kind = self.kernel.target
        fields = {"s": "QNX", "n": "simulated", "r": kind.sys_release, "v": VERSIONS[kind.release],
                  "m": kind.machine, "p": "x86_64" if kind.is_64bit else "x86"}  # fmt: skip
        letters = "".join(word.lstrip("-") for word in words) or "s"
        unknown = set(letters) - {*fields, "a"}
        if unknown:
            raise UsageError(f"uname: no option -{min(unknown)}; there are -a and -{', -'.join(fields)}")
        return " ".join(text for letter, text in fields.items() if letter in letters or "a" in letters)

    def _processes(self) -> list[Process]:
        """Return the processes that have not ended."""
        return [process for process in self.kernel.machine.processes.values() if not process.is_dead]

    def _slay(self, words: Sequence[str]) -> None:
        """Execute the command `slay`: send a signal to processes, by pid or name."""
        number = re.fullmatch(r"-([1-9]|[1-5][0-9])", words[0]) if words else None
        who, signo = words[1 if number else 0 :], int(number[1]) if number else SIGTERM
        if len(who) != 1:
            raise UsageError("usage: slay [-SIGNAL] PID|NAME")
        targets = [process for process in self._processes()
                   if process.pid != 1 and who[0] in (str(process.pid), process.short_name, process.name)]  # fmt: skip
        if not targets:
            raise UsageError(f"slay: no process {who[0][:60]} that can be ended; `pidin` lists them")
        machine = self.kernel.machine
        for process in targets:
            if signo == SIGKILL:
                end_process(self.kernel, process, signo)
            else:
                machine.kernel_entry(machine.cpus[0], partial(_signal, machine, process, signo))

    def _pidin(self, words: Sequence[str]) -> str:
        """Return the output of the command `pidin`: a list of processes, or information on the machine."""
        if words == ["info"]:
            return self._info()
        form = _FORM
        if len(words) == 2 and words[0] == "-F":
            form = words[1]
        elif words:
            raise UsageError("usage: pidin [info | -F FORM]; a form has " + ", ".join(
                f"%{letter} {title}" for letter, (title, _) in _COLUMNS.items()))  # fmt: skip
        letters = re.findall(r"%(.)", form)
        if unknown := [letter for letter in letters if letter not in _COLUMNS]:
            raise UsageError(f"pidin: no column %{unknown[0]}")
        rows = [[_COLUMNS[letter][0] for letter in letters]]
        for process in self._processes():
            threads = [thread for thread in process.threads.values() if thread.state != "DEAD"]
            shown = threads if _OF_THREADS & set(letters) else threads[:1]
            rows += [[_cell(thread, letter) for letter in letters] for thread in shown]
        aligns = [">" if letter in "abp" else "<" for letter in letters]
        widths = [_COLUMNS[letter][1] or "" for letter in letters]
        lines = (
            [f"{text:{align}{width}}" for text, align, width in zip(row, aligns, widths, strict=True)] for row in rows
        )
        return "\n".join(" ".join(cells).rstrip() for cells in lines)

    def _info(self) -> str:
        kind, machine = self.kernel.target, self.kernel.machine
        free, memory = _MEMORY_MB
        boot = time.strftime("%b %d %H:%M:%S UTC %Y", time.gmtime(kind.boot_s))
        late = f"{self._slipped_s:.1f} s behind real time, which this machine is too slow for"
        return (f"CPU:X86{'_64' if kind.is_64bit else ''} Release:{kind.sys_release}  FreeMem:{free}MB/{memory}MB "
                f"BootTime:{boot}\nProcesses: {len(self._processes())}, Processors: {kind.cpus}, up "
                f"{machine.now / kind.cycles_per_s:.1f} s, clock {late if self._slipped_s else 'follows real time'}"
                )  # fmt: skip


def _signal(machine: Machine, process: Process, signo: int, cpu: Cpu) -> None:
    machine.post_signal(cpu, process, None, signo, 0)


def _cell(thread: Thread, letter: str) -> str:
    """Return the text of a thread in a column of pidin."""
    process = thread.process
    blocked = describe(thread.waiting_on) if thread.waiting_on is not None else ""
    values = {"a": process.pid, "b": thread.tid, "n": process.name, "h": thread.name or "-",
              "p": f"{thread.priority}{_POLICIES[thread.policy]}", "J": thread.state, "B": blocked}  # fmt: skip
    return visible_line(str(values[letter]))


def _write_program(path: Path, words: Sequence[str]) -> None:
    """Write a shell script that runs a command and appends the script's own arguments."""
    write_file(path, f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)


# Runs tracelogger on a persistent simulated target, and writes the received trace to a file.


_LOOK_S: Final = 0.1


@contextmanager
def as_target_error() -> Iterator[None]:
    """Convert NoTargetError to TargetError."""
    try:
        yield
    except shell.NoTargetError as error:
        raise TargetError(str(error)) from error


def release_there(name: str) -> Release:
    """Return the release of a persistent simulated target; TargetError if none of that name runs or it reports none."""
    with as_target_error():
        _, text, _ = shell.answer(shell.folder_of(name), ["uname", "-r"])
    release = release_of(text.strip())
    if release is None:
        raise TargetError(f"the simulated target {name} does not say its release; end it, and start it again")
    return release


def log_there(
    name: str, request: LoggerRun, path: Path, stream: BinaryIO | None, stops: Callable[[], bool],
    say: Callable[[int, str], None],
) -> CaptureResult:  # fmt: skip
    """Run a logger on a persistent simulated target until it has ended, and return its result.

    Args:
        name: Name of the target.
        request: Options and rules of the logger.
        path: The file; it gets its name as soon as its header is complete, or in ring mode when the file is complete.
        stream: Write to this stream instead of `path`; None = write to `path`.
        stops: Called ten times a second; True stops the logger.
        say: Called with level and text of each message.

    Raises:
        TargetError: No target of that name runs, or the target ended before the logger.
        UsageError: The target rejects the request; nothing was written.
        WriteError: The file cannot be written.
    """
    with as_target_error(), shell.connect(shell.folder_of(name)) as line:
        line.sendall(msgspec.json.encode(request) + b"\n")
        answers = _answers(line, stops)
        messages: list[str] = []
        for kind, content in answers:  # before the file is created
            if kind == shell.DATA:
                break
            if kind == shell.EXIT:
                raise UsageError("; ".join(messages) or "refused without a reason")
            messages.append(_text(content))
        else:
            raise TargetError(f"the simulated target {name} has ended")
        for text in messages:
            say(0, text)
        with nullcontext() if stream else NewFile(path, streams=True, keeps_part=True, is_buffered=False) as new:
            output: BinaryIO = stream if stream is not None else new.stream  # type: ignore[union-attr]
            _write(output, content)
            if new is not None and not request.options.is_ring:
                new.publish()
            report = _take(answers, output, say)
    if report is None:
        raise TargetError(f"the simulated target {name} ended before its logger; {path.name} has what came")
    return CaptureResult(path, report.logger.slots, report.logger.buffers, report.lost_buffers, report.dropped_events,
                         report.duration_ns, report.findings, False, report.logger)  # fmt: skip


def _answers(line: Any, stops: Callable[[], bool]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each received frame; send a stop line once `stops()` returns True."""
    coming, is_stopping = shell.frames(line), False
    while True:
        if not is_stopping and stops():
            is_stopping = True
            line.sendall(b"stop\n")
        if select.select([line], [], [], _LOOK_S)[0]:
            frame = next(coming, None)
            if frame is None:
                return
            yield frame


def _take(
    answers: Iterator[tuple[bytes, bytes]], output: BinaryIO, say: Callable[[int, str], None]
) -> LogReport | None:
    """Process the frames from a logger until it ends; return its final report, None if none was sent."""
    report = None
    for kind, content in answers:
        if kind == shell.DATA:
            _write(output, content)
        elif kind == shell.SAID:
            say(content[0], _text(content[1:]))
        elif kind == shell.ERROR:
            say(0, _text(content))
        elif kind == shell.REPORT:
            report = msgspec.json.decode(content, type=LogReport)
        elif kind == shell.EXIT:
            break
    return report


def _write(output: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[output.write(left) :]
    output.flush()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").rstrip("\n")
