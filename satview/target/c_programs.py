"""Clients and C programs of a simulated target, which is their kernel but never waits for them."""

from __future__ import annotations

import errno
import inspect
import select
import socket
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, cast

import msgspec

from satview.base.errors import UsageError
from satview.base.named_files import resource_path
from satview.base.new_file import write_file
from satview.capture.emit import EventData
from satview.capture.kernel import MAX_PRIORITY, Kernel
from satview.capture.sim import calls as sim
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.calls.processes import kill
from satview.capture.sim.services import Errno, QnxError
from satview.capture.sim.threads import Barrier, Condvar, Mutex, Policy, Program, RwLock, Semaphore, Sigevent
from satview.events.modes import header_names, mode_of
from satview.events.spec import Release
from satview.target import shell

# Clients of a simulated target: their connections, which never block the target, and their jobs.


_OUTGOING_MAX: Final = 1 << 22  # backlog limit of a client that does not read; loggers pause far below it


class ClientJob:
    """A job that the target runs for a client; the client waits until the job has ended."""

    def is_over(self) -> bool:
        """Return whether the job has ended; the result has then been sent to the client."""
        raise NotImplementedError

    def take(self, line: bytes) -> None:
        """Process a line that the client sends during the job; ignored by default."""

    def abandon(self) -> None:
        """End the job, because its client has disconnected."""
        raise NotImplementedError


class Client:
    """The connection to a client: a program outside the simulation.

    Attributes:
        job: The job that the target runs for the client; None = none.
        came_s: `time.monotonic()` when the client connected.
        is_ending: The result is queued or sent; the connection is closed when the client has received it.
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
        """Number of queued bytes that the client has not received yet."""
        return len(self._outgoing)

    def receive(self) -> list[bytes]:
        """Return the complete lines received; end of file or a line that is too long closes the connection."""
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
        """Wait until data is received, at most `seconds`."""
        if not self.is_closed:
            select.select([self.line], [], [], seconds)

    def frame(self, kind: bytes, content: bytes) -> None:
        """Send a frame to the client: a letter for the kind, the length, and the content."""
        self.send(shell.FRAME.pack(kind, len(content)) + content)

    def say(self, text: str, kind: bytes = shell.OUTPUT) -> None:
        """Send text, followed by the end of a line."""
        self.frame(kind, text.encode("utf-8", "replace") + b"\n")

    def end(self, code: int, why: str = "") -> None:
        """Send an error message, if any, and the exit code; close the connection once the client has received both."""
        if why:
            self.say(why, shell.ERROR)
        self.frame(shell.EXIT, bytes((code,)))
        self.is_ending = True

    def send(self, data: bytes) -> None:
        """Queue bytes and send as many as the client accepts; disconnect a client whose backlog is too large."""
        if self.is_closed:
            return
        self._outgoing += data
        self.flush()
        if len(self._outgoing) > _OUTGOING_MAX:
            self.is_closed = True

    def flush(self) -> None:
        """Send as many queued bytes as the client accepts."""
        try:
            while self._outgoing:
                del self._outgoing[: self.line.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True
        self.is_closed |= self.is_ending


# C programs on a simulated target: a process of this machine whose kernel calls a simulated process executes.
#
# Each thread of the program has a connection and a simulated thread. A call is a line of text: the processor time in
# nanoseconds that the real thread has used since its last call, the name of the call, numbers, and bytes in hexadecimal
# after an `x`. Before it executes the call, the simulated thread computes for that time, so that the trace shows the
# program's own work, independent of the load of this machine. The reply is a line too: 0 and the results, or an error
# number.
#
# Event handlers run in the program too, and are called over a separate connection; the kernel waits only briefly for
# their results.


_LOOK_S: Final = 0.002  # how long the simulation waits for a program's next call, which usually arrives at once
_COMPUTES_NS: Final = 500_000  # step of simulated computing while the next call has not arrived
_HANDLER_S: Final = 0.5  # time limit of an event handler; until a slower one has answered, none is called
_LATE_MAX: Final = 4  # late answers in a row after which no handler of the program is called again
_NUMBER_MAX: Final = 1 << 63
_OBJECTS_MAX: Final = 10_000
_THREADS_MAX: Final = 64
_MESSAGE_MAX: Final = 1 << 14
_PIDS: Final = 16
# Error numbers of QNX and of this machine, where the program is compiled, matched by name.
_OF_HOST: Final = {int(number): getattr(errno, number.name, errno.EIO) for number in Errno}
_OF_QNX: Final = {of_host: number for number, of_host in _OF_HOST.items()}
_KINDS: Final = {number: kind for kind, number in Sigevent.NOTIFY.items()}
_STATES: Final = ("SEND", "RECEIVE", "REPLY", "NANOSLEEP", "MUTEX", "CONDVAR", "JOIN", "INTR", "SEM")
_SIGKILL: Final = 9
_INT_MAX: Final = 0x7FFFFFFF
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_./-]{1,100}$")]


class ProgramRequest(msgspec.Struct, frozen=True, tag_field="do", tag="program", forbid_unknown_fields=True):
    """Request to start a process; the connection becomes that of the process's first thread."""

    name: Name


class ThreadRequest(msgspec.Struct, frozen=True, tag_field="do", tag="thread", forbid_unknown_fields=True):
    """Announcement of another thread of a process, sent over the new thread's connection before ThreadCreate()."""

    pid: int
    ticket: int


class HandlersRequest(msgspec.Struct, frozen=True, tag_field="do", tag="handlers", forbid_unknown_fields=True):
    """Request to call the event handlers of a process over this connection."""

    pid: int


class _CallWords:
    """The arguments of a call; each method removes arguments from the front and returns them.

    QnxError (EINVAL) is raised if one is missing or has the wrong type, or there are too many.
    """

    def __init__(self, words: list[bytes]) -> None:
        self._words = words

    def number(self, minimum: int = -_NUMBER_MAX, maximum: int = _NUMBER_MAX) -> int:
        """Remove the next argument and return it as a number from `minimum` to `maximum`."""
        try:
            number = int(self._words.pop(0))
        except (IndexError, ValueError):
            raise QnxError(Errno.EINVAL, "no number") from None
        if not minimum <= number <= maximum:
            raise QnxError(Errno.EINVAL, f"{number} is not {minimum} to {maximum}")
        return number

    def data(self) -> bytes:
        """Remove the next argument and return it as bytes."""
        try:
            word = self._words.pop(0)
            if not word.startswith(b"x") or len(word) > 2 * _MESSAGE_MAX + 1:
                raise ValueError
            return bytes.fromhex(word[1:].decode("ascii"))
        except (IndexError, ValueError):
            raise QnxError(Errno.EINVAL, f"no bytes, or more than {_MESSAGE_MAX}") from None

    def numbers(self) -> tuple[int, ...]:
        """Remove all remaining arguments and return them as numbers."""
        return tuple(self.number() for _ in range(len(self._words)))

    def end(self) -> None:
        """Check that no argument is left."""
        if self._words:
            raise QnxError(Errno.EINVAL, "too many arguments")


class _CThread:
    """A thread of a C program: its connection, and the simulated thread that makes its kernel calls."""

    def __init__(self, program: CProgram, client: Client) -> None:
        self._program, self.client = program, client
        self._lines: list[bytes] = []
        self._answered_ns = 0

    def take(self, line: bytes) -> None:
        """Queue a call, which is one line."""
        self._lines.append(line)

    def body(self) -> Program:
        """Run the simulated thread: make the received calls until the thread or its connection ends."""
        program, result = self._program, 0
        yield sim.Compute(1)
        tid = next(thread.tid for thread in program.process.threads.values()  # only the running thread knows its tid
                   if inspect.getgeneratorstate(thread.generator) == inspect.GEN_RUNNING)  # fmt: skip
        self._answer((program.process.pid, tid))
        while (line := (yield from self._next())) is not None:
            words = line.split(b" ")
            name = words[1].decode("ascii", "replace") if len(words) > 1 else ""
            arguments = _CallWords(words[2:])
            try:
                if name in ("exit", "thread_exit"):
                    result = arguments.number()
                    if name == "exit":
                        yield from program.end_others(result)
                    return result
                value = yield from self._carry_out(name, arguments)
            except OSError as error:
                self._send(str(_number(error)))
            else:
                self._answer(value)
        return result

    def _carry_out(self, name: str, words: _CallWords) -> Generator[Any, Any, Any]:
        """Execute a call and return its result."""
        program = self._program
        if (answer := program.answers.get(name)) is not None:
            return answer(words)
        make = CALLS.get(name)
        if make is None:
            raise QnxError(Errno.ENOSYS, name[:40])
        call = make(program, words)
        words.end()
        return (yield call)

    def _next(self) -> Generator[Any, Any, bytes | None]:
        """Use the simulated CPU as long as the C program's thread ran; return its next call, None if it has gone."""
        computed_ns = 0
        self._receive_calls(_LOOK_S)
        while not self._lines:
            if self.client.is_closed:
                return None
            yield sim.Compute(_COMPUTES_NS)
            computed_ns += _COMPUTES_NS
            self._receive_calls(0)
        line = self._lines.pop(0)
        ran, _, _ = line.partition(b" ")
        ran_ns = int(ran) if ran.isdigit() and len(ran) < 16 else 0
        left_ns = min(ran_ns, time.monotonic_ns() - self._answered_ns) - computed_ns
        if left_ns > 0:
            yield sim.Compute(left_ns)
        return line

    def _receive_calls(self, seconds: float) -> None:
        """Queue the calls received; if none is queued, wait at most `seconds` for one."""
        if seconds and not self._lines:
            self.client.wait(seconds)
        for line in self.client.receive():
            self.take(line)
        self._program.on_check()

    def _answer(self, value: Any) -> None:
        self._send("0 " + " ".join(_words_of(value)))

    def _send(self, text: str) -> None:
        self._answered_ns = time.monotonic_ns()  # before sending: the real thread may run at once and preempt this one
        self.client.send(text.encode("ascii", "replace") + b"\n")


def _number(error: OSError) -> int:
    """Return the error number of a failed call, translated to this machine's error numbers."""
    number = error.errno or errno.EINVAL
    return _OF_HOST.get(number, number) if isinstance(error, QnxError) else number


def _words_of(value: Any) -> Iterator[str]:
    """Yield the words of a reply to the C program: numbers in decimal, bytes as an `x` and hexadecimal digits."""
    if isinstance(value, Received):
        yield from map(str, (value.rcvid, value.pid, value.tid, value.scoid, value.code, value.value, value.priority))
        yield f"x{value.message.hex()}"
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _words_of(part)
    elif isinstance(value, dict):
        yield from _words_of(tuple(value.values()))
    elif isinstance(value, bytes):
        yield f"x{value.hex()}"
    elif value is not None:
        yield str(int(value))


class CProgram(ClientJob):
    """A running C program: a simulated process, whose kernel calls are requested by a real process.

    Args:
        request: Request that contains the name of the process.
        names: Pid and chid of each named channel of the target; shared by all programs.
        on_check: Called after each check of a connection, during which simulated time stands still.

    Attributes:
        objects: Synchronization objects by kind and address.
        answers: Functions for requests that are no kernel calls, by name.
    """

    def __init__(
        self, kernel: Kernel, request: ProgramRequest, client: Client, names: dict[str, tuple[int, int]],
        on_check: Callable[[], None], say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.kernel, self.on_check, self._say, self._names = kernel, on_check, say, names
        self._threads = [_CThread(self, client)]
        self._tickets: dict[int, _CThread] = {}
        self._handlers: Client | None = None
        self._is_handling = True
        self._awaits_answer = False  # of a handler
        self._late_call = b""  # of a late handler
        self._late_answers = 0  # in a row
        self.objects: dict[tuple[str, int], Any] = {}
        self.answers: dict[str, Callable[[_CallWords], Any]] = {
            "cycles": lambda _words: kernel.machine.now,
            "clock_rate": lambda _words: kernel.target.cycles_per_s,
            "init": self._init,
            "name_attach": self._name_attach,
            "name_find": self._name_find,
            "processes": self._processes,
            "path": self._path,
        }  # fmt: skip
        self.process = kernel.spawn(request.name, self._threads[0].body)

    # Connections

    def take(self, line: bytes) -> None:
        """Queue a call of the first thread."""
        self._threads[0].take(line)

    def is_over(self) -> bool:
        """Return whether the process has ended; its connections are then closed. Kill it if its client has gone."""
        clients = [thread.client for thread in (*self._threads, *self._tickets.values())]
        if not self.process.is_dead:
            if clients[0].is_closed:
                self.abandon()
            return False
        for client in (*clients, self._handlers):
            if client is not None:
                client.is_ending = True
                client.flush()
        return True

    def abandon(self) -> None:
        """Kill the simulated process, because the real process has ended."""
        machine = self.kernel.machine
        machine.kernel_entry(machine.cpus[0], lambda cpu: kill(machine, cpu, self.process, _SIGKILL))

    def end_others(self, value: int) -> Program:
        """End the remaining threads of the process with an exit value, because the program calls exit()."""
        machine = self.kernel.machine
        if sum(thread.state != "DEAD" for thread in self.process.threads.values()) > 1:
            cpu = machine.cpus[0]
            machine.deferred.append((cpu, lambda on_cpu: kill(machine, on_cpu, self.process, -value)))
            yield sim.Sleep(1_000_000)

    def connect(self, request: ThreadRequest | HandlersRequest, client: Client) -> ClientJob:
        """Accept another connection of the program: for its event handlers, or for a thread before it is created.

        Raises UsageError if the program has too many connections of this kind.
        """
        if isinstance(request, HandlersRequest):
            if self._handlers is not None:
                raise UsageError("this program has a connection for its handlers")
            self._handlers = client
            client.send(b"0\n")
            return _ProgramLines(self.take_late)
        if len(self._threads) + len(self._tickets) >= _THREADS_MAX:
            raise UsageError(f"a program has {_THREADS_MAX} threads at most")
        thread = self._tickets[request.ticket] = _CThread(self, client)
        client.send(b"0\n")
        return _ProgramLines(thread.take)

    def new_thread(self, ticket: int) -> _CThread:
        """Return the thread announced with a ticket, and count it as running; QnxError (EAGAIN) if none was."""
        thread = self._tickets.pop(ticket, None)
        if thread is None:
            raise QnxError(Errno.EAGAIN, "no thread waits with this ticket")
        self._threads.append(thread)
        return thread

    # Requests that are no kernel calls

    def _name_attach(self, words: _CallWords) -> int:
        chid, name = words.number(), words.data().decode("utf-8", "replace")
        holder = self.kernel.machine.processes.get(self._names.get(name, (0, 0))[0])
        if holder is not None and not holder.is_dead:
            raise QnxError(Errno.EEXIST, name)
        if len(self._names) >= _OBJECTS_MAX:
            raise QnxError(Errno.ENOMEM, "too many names")
        self._names[name] = self.process.pid, chid
        return 0

    def _name_find(self, words: _CallWords) -> tuple[int, int]:
        pid, chid = self._names.get(words.data().decode("utf-8", "replace"), (0, 0))
        holder = self.kernel.machine.processes.get(pid)
        if holder is None or holder.is_dead:
            raise OSError(errno.ENOENT, "no channel has this name")
        return pid, chid

    def _processes(self, words: _CallWords) -> list[int]:
        """Return the lowest pids above the given pid, at most `_PIDS`; the program repeats the request for more."""
        last = words.number()
        alive = (process.pid for process in self.kernel.machine.processes.values() if not process.is_dead)
        return sorted(pid for pid in alive if pid > last)[:_PIDS]

    def _path(self, words: _CallWords) -> bytes:
        process = self.kernel.machine.processes.get(words.number())
        if process is None or process.is_dead:
            raise QnxError(Errno.ESRCH, "no such process")
        return process.name.encode("utf-8", "replace")

    def sync_object(self, kind: str, words: _CallWords) -> Any:
        """Return the object at an address; it is created on first use, like a statically initialized object."""
        address = words.number(0)
        return self.objects.get((kind, address)) or self._new_object(kind, address, _INITIAL[kind])

    def _init(self, words: _CallWords) -> None:
        """Create an object from arguments: kind, address, and a number (count, or 1 for a mutex with inheritance)."""
        kind = words.data().decode("ascii", "replace")
        if kind not in _INITIAL:
            raise QnxError(Errno.EINVAL, kind[:40])
        self._new_object(kind, words.number(0), words.number(0))

    def _new_object(self, kind: str, address: int, value: int) -> Any:
        if len(self.objects) >= _OBJECTS_MAX:
            raise QnxError(Errno.ENOMEM, "too many objects")
        sync_object = self.objects[kind, address] = _OBJECTS[kind](f"{address:#x}", value)
        sync_object.address = address & 0xFFFFFFFF
        return sync_object

    # Handlers

    def event_handler(self, number: int) -> Callable[[EventData], Program]:
        """Return a function that calls an event handler of the program by number, and yields its TraceEvent() calls."""

        def handle(data: EventData) -> Program:
            pid, tid = data.feature
            values = (number, data.header, data.feature_mask, pid, tid, *data.data_array[: data.el_num])
            result = yield from self._ask("event", values)
            return result[0] if result else 1

        return handle

    def full_buffer_handler(self, number: int) -> Callable[[int], Sigevent | None]:
        """Return a function that calls the program's handler `number` of the trace interrupt."""

        def handle(info: int) -> Sigevent | None:
            asking = self._ask("buffer", (number, info))
            try:
                next(asking)
                while True:
                    asking.throw(QnxError(Errno.EPERM, "such a handler must not call TraceEvent()"))
            except StopIteration as end:
                return _sigevent(_CallWords([b"%d" % value for value in end.value])) if end.value else None

        return handle

    def _ask(self, kind: str, values: tuple[int, ...]) -> Generator[Any, Any, tuple[int, ...]]:
        """Call a handler (`event` or `buffer`) in the program and yield its TraceEvent() calls; return its result."""
        client = self._handlers
        if client is None or client.is_closed or not self._is_handling:
            return ()
        if self._awaits_answer:
            if self._late_call and kind == "event":
                call, self._late_call = self._late_call, b""
                yield from self._make_call(client, call)
            return ()
        client.send(f"{kind} {' '.join(map(str, values))}\n".encode())
        self._awaits_answer = True
        deadline_s = time.monotonic() + _HANDLER_S
        while not client.is_closed and (left_s := deadline_s - time.monotonic()) > 0:
            client.wait(left_s)
            for line in client.receive():
                word, *rest = line.split(b" ")
                if word == b"answer":
                    self._awaits_answer, self._late_answers = False, 0
                    try:
                        return _CallWords(rest).numbers()
                    except QnxError:
                        return ()
                yield from self._make_call(client, line)
        if not client.is_closed:
            self._note_late_answer()
        return ()

    def _make_call(self, client: Client, line: bytes) -> Generator[Any, Any, None]:
        """Yield the TraceEvent() call that a handler has sent, and send the call's result back to the handler."""
        _, *words = line.split(b" ")
        try:
            if words[:1] != [b"TraceEvent"]:
                raise QnxError(Errno.EPERM, "a handler calls nothing else")
            value = yield _trace_event(self, _CallWords(words[1:]))
            client.send(b"0 %d\n" % value)
        except OSError as error:
            client.send(b"%d\n" % _number(error))

    def _note_late_answer(self) -> None:
        """Report a late handler; stop calling handlers if too many answers in a row were late."""
        self._late_answers += 1
        self._is_handling = self._late_answers < _LATE_MAX
        if self._late_answers == 1 or not self._is_handling:
            until = "until they have answered" if self._is_handling else "any more"
            self._say(f"{self.process.short_name}: its event handlers took longer than {_HANDLER_S:g} s and are not "
                      f"called {until}; events pass")  # fmt: skip

    def take_late(self, line: bytes) -> None:
        """Process a line that a handler sends after its time limit: its answer, or a call to make at the next event."""
        if line.startswith(b"answer"):
            self._awaits_answer = False
        else:
            self._late_call = line


class _ProgramLines(ClientJob):
    """Receives the calls of an additional thread, or late lines of event handlers; others see when these end."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def take(self, line: bytes) -> None:
        """Pass a line on."""
        self._take(line)

    def is_over(self) -> bool:
        """Return True: nothing waits for this job."""
        return True

    def abandon(self) -> None:
        """Do nothing: the thread notices the end of its connection, and the kernel waits for no handler any more."""


# The calls by name, with their arguments.


_OBJECTS: Final[dict[str, Callable[[str, int], Any]]] = {
    "mutex": lambda name, inherits: Mutex(name, bool(inherits)),
    "condvar": lambda name, _: Condvar(name),
    "semaphore": Semaphore,
    "barrier": Barrier,
    "rwlock": lambda name, _: RwLock(name),
}
_INITIAL: Final = {"mutex": 1, "condvar": 0, "semaphore": 0, "barrier": 1, "rwlock": 0}


def _sigevent(words: _CallWords) -> Sigevent | None:
    kind = _KINDS.get(words.number(), "none")
    coid_or_signo, priority, code, value = (
        words.number(),
        words.number(-1, MAX_PRIORITY),
        words.number(),
        words.number(),
    )
    if kind == "none":
        return None
    signo = coid_or_signo if kind == "signal" else 0
    return Sigevent(kind, coid_or_signo, max(priority, 1), code, value, signo)


def _trace_event(program: CProgram, words: _CallWords) -> sim.TraceEvent:
    """Return a TraceEvent() call in which handlers, buffers and texts replace the pointers of the C program."""
    value = words.number()
    trace_mode, arguments = mode_of(value), list[Any]()
    for name in trace_mode.arguments if trace_mode is not None else ():
        if name == "handler":
            arguments.append(program.event_handler(words.number()))
        elif name == "data":
            arguments.append(EventData())
        elif name == "pointer":
            arguments.append([])
        elif name in ("buffer", "string"):
            arguments.append(words.data())
        else:
            arguments.append(words.number())
    return sim.TraceEvent(value, *arguments)


def _qnx_number(words: _CallWords) -> int:
    number = words.number(1, 4095)
    return _OF_QNX.get(number, number)


def _priority(words: _CallWords) -> int:
    priority = words.number(-1, MAX_PRIORITY)
    return priority or -1


def _mutex(program: CProgram, words: _CallWords) -> Mutex:
    return cast("Mutex", program.sync_object("mutex", words))


def _thread_create(program: CProgram, words: _CallWords) -> sim.ThreadCreate:
    ticket, priority, policy = words.number(), _priority(words), words.number(0, 4)
    body = program.new_thread(ticket).body
    return sim.ThreadCreate(body, (), priority, Policy(policy) if policy else Policy.RR)


def _timeout(_program: CProgram, words: _CallWords) -> sim.TimerTimeout:
    ns, mask = words.number(0), words.number(0)
    return sim.TimerTimeout(tuple(state for bit, state in enumerate(_STATES) if mask >> bit & 1), ns)


CALLS: Final[dict[str, Callable[[CProgram, _CallWords], sim.Call]]] = {
    "TraceEvent": _trace_event,
    "InterruptHookTrace": lambda p, w: sim.InterruptHookTrace(p.full_buffer_handler(w.number()), w.number()),
    "InterruptAttachEvent": lambda _, w: sim.InterruptAttachEvent(w.number(0, 4096), _sigevent(w) or Sigevent()),
    "InterruptDetach": lambda _, w: sim.InterruptDetach(w.number()),
    "InterruptWait": lambda _, __: sim.InterruptWait(),
    "InterruptUnmask": lambda _, w: sim.InterruptUnmask(w.number(0, 4096), w.number()),
    "ThreadCtl": lambda _, w: sim.ThreadCtl(w.number()),
    "ThreadRunmask": lambda _, w: sim.ThreadRunmask(w.number()),
    "ThreadCreate": _thread_create,
    "ThreadJoin": lambda _, w: sim.ThreadJoin(w.number()),
    "ThreadName": lambda _, w: sim.ThreadName(w.data().decode("utf-8", "replace")),
    "SchedSet": lambda _, w: sim.SchedSet(w.number(1, MAX_PRIORITY), Policy(w.number(1, 3))),
    "SchedGet": lambda _, __: sim.SchedGet(),
    "SchedYield": lambda _, __: sim.SchedYield(),
    "ChannelCreate": lambda _, w: sim.ChannelCreate(bool(w.number() & 1)),
    "ChannelDestroy": lambda _, w: sim.ChannelDestroy(w.number()),
    "ConnectAttach": lambda _, w: sim.ConnectAttach(w.number(), w.number(), bool(w.number())),
    "ConnectDetach": lambda _, w: sim.ConnectDetach(w.number()),
    "MsgSend": lambda _, w: sim.MsgSend(w.number(), w.data(), w.number(0, _MESSAGE_MAX)),
    "MsgReceive": lambda _, w: sim.MsgReceive(w.number()),
    "MsgReceivePulse": lambda _, w: sim.MsgReceivePulse(w.number()),
    "MsgReply": lambda _, w: sim.MsgReply(w.number(), w.number(), w.data()),
    "MsgError": lambda _, w: sim.MsgError(w.number(), _qnx_number(w)),
    "MsgRead": lambda _, w: sim.MsgRead(w.number(), w.number(0, _MESSAGE_MAX), w.number(0, _MESSAGE_MAX)),
    "MsgWrite": lambda _, w: sim.MsgWrite(w.number(), w.data(), w.number(0, _MESSAGE_MAX)),
    "MsgSendPulse": lambda _, w: sim.MsgSendPulse(w.number(), _priority(w), w.number(-128, 127), w.number()),
    "MsgDeliverEvent": lambda _, w: sim.MsgDeliverEvent(w.number(), _sigevent(w) or Sigevent("none")),
    "TimerCreate": lambda _, w: sim.TimerCreate(_sigevent(w) or Sigevent("none")),
    "TimerSettime": lambda _, w: sim.TimerSettime(w.number(), w.number(0), w.number(0)),
    "TimerDestroy": lambda _, w: sim.TimerDestroy(w.number()),
    "TimerTimeout": _timeout,
    "Sleep": lambda _, w: sim.Sleep(w.number(0)),
    "ClockTime": lambda _, __: sim.ClockTime(),
    "MutexLock": lambda p, w: sim.MutexLock(_mutex(p, w)),
    "MutexUnlock": lambda p, w: sim.MutexUnlock(_mutex(p, w)),
    "CondWait": lambda p, w: sim.CondWait(p.sync_object("condvar", w), _mutex(p, w)),
    "CondSignal": lambda p, w: sim.CondSignal(p.sync_object("condvar", w), bool(w.number())),
    "SemWait": lambda p, w: sim.SemWait(p.sync_object("semaphore", w)),
    "SemPost": lambda p, w: sim.SemPost(p.sync_object("semaphore", w)),
    "BarrierWait": lambda p, w: sim.BarrierWait(p.sync_object("barrier", w)),
    "RwLockAcquire": lambda p, w: sim.RwLockAcquire(p.sync_object("rwlock", w), bool(w.number())),
    "RwLockRelease": lambda p, w: sim.RwLockRelease(p.sync_object("rwlock", w)),
    "SignalKill": lambda _, w: sim.SignalKill(w.number(), w.number(), w.number(1, 64)),
    "SignalSuspend": lambda _, __: sim.SignalSuspend(),
}


# Headers, library and examples for compiling programs.


def write_sdk(folder: Path, release: Release) -> int:
    """Write headers, library and examples for C programs of a release into a folder; return the number of files.

    Raises UsageError if the folder cannot be created, WriteError if a file cannot be written.
    """
    source = resource_path("target/Makefile").parent
    texts = {path.relative_to(source): path.read_bytes() for path in sorted(source.rglob("*")) if path.is_file()}
    lines = [f"#define {name} {value:#x}{'u' * (value > _INT_MAX)}" for name, value in header_names(release).items()
             if name.isascii() and name.isidentifier()]  # fmt: skip
    head = f"/* Names of the trace interface, of kernel calls and of their events in QNX {release.value}. */"
    guard = "SATVIEW_TARGET_RELEASE_H"
    header = "\n".join((f"#ifndef {guard}", f"#define {guard}", head, *lines, "#endif", ""))
    texts[Path("include/release.h")] = header.encode("ascii")
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{path.parent}: {error.strerror or error}") from error
        write_file(path, text)
    return len(texts)
