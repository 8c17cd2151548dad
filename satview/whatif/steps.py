"""The parts of programs, and the changes that are made to them before a replay."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from satview.base.errors import UsageError
from satview.base.named_files import read_toml
from satview.base.safe_text import listed
from satview.base.time import parse_length
from satview.events.wire import MAX_CPUS
from satview.store.trace import Trace

# The parts of programs: steps of threads, messages and pulses with the work done for them, timers, interrupts.


@dataclass(slots=True)
class Begin:
    """Wait until the trace begins, or until a given time before or after its start.

    Attributes:
        after_ns: End of the wait, after the start of the trace; negative = before it.
        state: State in which the thread waits; STOPPED = in the trace it would have run.
        is_sleep: Whether the clock ends the wait.
    """

    after_ns: int = 0
    state: str = "STOPPED"
    is_sleep: bool = False


@dataclass(slots=True)
class Work:
    """Run user code for a time."""

    ns: int


@dataclass(slots=True)
class SleepStep:
    """Sleep, and be woken by the clock."""

    ns: int


@dataclass(slots=True)
class TimedWait:
    """Wait in a state for the recorded time, because no replayed step ends the wait."""

    state: str
    ns: int


@dataclass(slots=True)
class Send:
    """Send a message, by its number in `Programs.messages`."""

    message: int


@dataclass(slots=True)
class Receive:
    """Wait at a channel for a message or pulse, then carry out the steps that belong to it."""

    chid: int


@dataclass(slots=True)
class Reply:
    """Answer a message."""

    message: int


@dataclass(slots=True)
class SendPulse:
    """Send a pulse, by the number of its stream."""

    stream: int


@dataclass(slots=True)
class Lock:
    """Lock a mutex, or a reader/writer lock for writing or reading, by its number in `Programs.things`."""

    thing: int
    is_write: bool = True


@dataclass(slots=True)
class Unlock:
    """Unlock a mutex or a reader/writer lock; `is_write` is None if the trace does not show how it was locked."""

    thing: int
    is_write: bool | None = True


@dataclass(slots=True)
class Meet:
    """Wait at a barrier until all threads have come."""

    thing: int


@dataclass(slots=True)
class Await:
    """Wait at a condition variable or semaphore, by its number in `Programs.things`, for its next signal."""

    thing: int
    recorded_ns: int = 0


@dataclass(slots=True)
class Signal:
    """Signal a condition variable or semaphore; `count` is the number of threads it woke in the trace."""

    thing: int
    count: int


@dataclass(slots=True)
class AwaitInterrupt:
    """Wait for an interrupt."""


@dataclass(slots=True)
class Unmask:
    """Unmask an interrupt."""

    vector: int


@dataclass(slots=True)
class Wake:
    """Step of a handler that became a thread: end the interrupt wait of `thread`, a row of the thread table."""

    thread: int


@dataclass(slots=True)
class AwaitStart:
    """First step of a created thread: wait until its creator reaches its `StartThread`."""


@dataclass(slots=True)
class StartThread:
    """Start a thread, given by its row, which exists from the start on but waits in `AwaitStart`."""

    thread: int


@dataclass(slots=True)
class Every:
    """Wait for the next multiple of a period."""

    period_ns: int


@dataclass(slots=True)
class LogEvent:
    """Log a user event."""

    event: int
    words: tuple[int, int]


Step = (Begin | Work | SleepStep | TimedWait | Send | Receive | Reply | SendPulse | Lock | Unlock | Meet | Await
        | Signal | AwaitInterrupt | Unmask | Wake | AwaitStart | StartThread | Every | LogEvent)  # fmt: skip


@dataclass(slots=True)
class ThreadProgram:
    """The program of one thread.

    Attributes:
        pid, tid, process, name: As recorded.
        priority: The thread's own priority, without inheritance.
        other_priorities: If the trace shows no priorities, those that the thread has in three other rankings of all
            threads that also agree with the events; else empty.
        policy: Number of the policy on the wire.
        steps: Steps in order, without the work for messages and pulses.
        repeats: First and end position of the steps that are repeated after the last step; none if these are equal.
        sporadic: For policy 4: low priority, and budget and replenishment period in ns; None for other policies.
        ends: Whether the thread ended in the trace.
        partition: Number of the thread's scheduler partition; -1 = none.
        is_critical: Whether the thread may draw on the partition's critical budget.
        speed: Factor by which the thread works faster than recorded.
        cpu: CPU on which the thread runs first; -1 = it never runs.
    """

    row: int
    pid: int
    tid: int
    process: str
    name: str
    label: str
    priority: int
    policy: int
    steps: list[Step] = field(default_factory=list)
    repeats: tuple[int, int] = (0, 0)
    sporadic: tuple[int, int, int] | None = None
    ends: bool = False
    runmask: int = (1 << 64) - 1
    partition: int = -1
    is_critical: bool = False
    speed: float = 1.0
    cpu: int = -1
    other_priorities: tuple[int, ...] = ()

    @property
    def short_process(self) -> str:
        """Name of the process without its folder."""
        return self.process.rsplit("/", 1)[-1]


@dataclass(slots=True)
class RecordedMessage:
    """A message: pid and channel of the receiver, and its work, None if it was not received; and if it was answered."""

    pid: int
    chid: int = 0
    steps: list[Step] | None = None
    is_answered: bool = False
    first_word: int = 0


@dataclass(slots=True)
class Stream:
    """Pulses that come over one connection, in the order in which they were sent, and the work done for each.

    `scoid` is the number by which the receiver knows the connection; 0 = not known.
    """

    pid: int
    chid: int = 0
    scoid: int = 0
    priority: int = 10
    works: list[list[Step]] = field(default_factory=list)


@dataclass(slots=True)
class TimerSource:
    """The moments at which a timer, or the kernel itself, sends the pulses of a stream.

    Attributes:
        thread: Row of the thread that the expiries name; 0 = no expiry is logged.
        ident: Number of the timer in its expiries.
        moments_ns: Times of the pulses, after the start of the replay.
    """

    stream: int
    thread: int
    ident: int
    moments_ns: list[int]


@dataclass(slots=True)
class InterruptLine:
    """An interrupt vector: the times of its interrupts, and the pulse streams and threads that they reached.

    Attributes:
        vector, cpu: Number of the vector, and the CPU that took most of its interrupts.
        handlers: By pid of a handler, for each interrupt: run time of the handler in ns, and the receiver of its event:
            the number of a stream, -1 minus the row of a thread, or None.
        streams, threads: Streams and threads to which interrupts are delivered without a handler.
    """

    vector: int
    cpu: int
    moments_ns: list[int]
    handlers: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    streams: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Thing:
    """A synchronization object of kind `MUTEX`, `RWLOCK`, `BARRIER`, `CONDVAR` or `SEM`.

    Attributes:
        inherits: Whether the mutex has priority inheritance.
        ceiling: Priority that a thread gets while it holds the mutex; 0 = no ceiling.
        count: Number of threads that meet at the barrier.
    """

    kind: str
    address: int
    inherits: bool = True
    ceiling: int = 0
    count: int = 0


@dataclass(slots=True)
class PartitionShare:
    """A partition of the adaptive scheduler: its share of the CPUs, and its critical budget."""

    number: int
    name: str
    percent: int
    critical_ms: int


@dataclass(slots=True)
class Programs:
    """A trace as programs, which the simulated kernel can run.

    Attributes:
        begin_cycles: Time in the trace at which the programs begin.
        length_ns: Length of the trace from then on.
        tick_ns: Period of the clock interrupt; 0 = none.
        tick_offset_ns: Time of the last clock interrupt before the start.
        not_shown: Properties that the trace does not show, one sentence each.
    """

    trace: Trace
    begin_cycles: int
    length_ns: int
    cpus: int
    tick_ns: int
    tick_offset_ns: int
    threads: list[ThreadProgram]
    messages: list[RecordedMessage]
    streams: list[Stream]
    timers: list[TimerSource]
    interrupts: list[InterruptLine]
    things: list[Thing]
    partitions: list[PartitionShare]
    not_shown: list[str]


# Changes before a replay: parsed from `TARGET:KEY=VALUE` on the command line or from a file, checked and applied.


_MOST_BYTES: Final = 1 << 16
_MOST_THREADS: Final = 1000
_MOST_INTERRUPTS: Final = 1_000_000
_LEAST_PERIOD_NS: Final = 10_000
_MOST_NAMES: Final = 12  # in a message
_EXAMPLE: Final = 'write it as ["planner 1"] and then priority = 22'
_PLAIN_NUMBER: Final = re.compile(r"0x[0-9a-f]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_POLICIES: Final = {"fifo": 1, "rr": 2, "other": 3}
_LOAD_PID: Final = 0x7FF0_0000  # pid of the first added load
KEYS: Final = {
    "priority": "thread or process: its own priority, 1 to 255; messages and pulses still bring theirs",
    "policy": "thread or process: `fifo`, `rr`",
    "runmask": "thread or process: CPUs on which it may run, `0x3` = 0 and 1",
    "speed": "thread or process: its work takes 1/speed of the time",
    "threads": "process: this many threads receive its messages",
    "inherit": "lock: `yes` or `no`, priority inheritance",
    "ceiling": "lock: priority of the thread that holds it",
    "budget": "partition: share of the CPUs in percent",
    "rate": "interrupt: comes this many times as often",
    "handler": "interrupt: `thread 40` lets a thread of priority 40 do what its handlers do",
    "period": "`load NAME`, with work and priority: a thread that is added",
}


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """One change to make before a replay, such as a priority; an empty `target` stands for the whole trace."""

    target: str
    key: str
    value: str

    @property
    def is_load(self) -> bool:
        """Whether the change adds a thread."""
        return self.target.startswith("load ")

    def __str__(self) -> str:
        return f"{self.target}:{self.key}={self.value}" if self.target else f"{self.key}={self.value}"


@dataclass(slots=True)
class Changed:
    """Programs with changes applied."""

    programs: Programs
    cpus: int
    texts: tuple[str, ...] = ()


def parse_changes(texts: Sequence[str]) -> list[ProgramChange]:
    """Return the changes that texts such as `planner 1:priority=22` and `cpus=2` describe.

    A load, which is an additional thread, is one text: `load NAME:period=10ms,work=2ms,priority=20`. Raises UsageError
    if a text does not have that form, or its key or value is impossible in any trace.
    """
    out = []
    for text in texts:
        left, equals, value = text.partition("=")
        target, _, key = left.rpartition(":")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"{text[:60]!r} is not TARGET:KEY=VALUE, such as 'planner 1:priority=22', or cpus=2")
        out.append(ProgramChange(target.strip(), key.strip(), value.strip()))
        _check(out[-1])
    return out


def read_changes(path: Path) -> list[ProgramChange]:
    """Return the changes in a TOML file, which has a table of keys and values for each target, and `cpus` above.

    Raises UsageError if it cannot be read, has other content, or a change that is impossible in any trace.
    """
    _, content = read_toml(path, _MOST_BYTES, _EXAMPLE)
    out: list[ProgramChange] = []
    for target, value in content.items():
        if not isinstance(value, dict):
            out.append(ProgramChange("", target, _text_of(path, value)))
        elif target.startswith("load "):
            words = ",".join(f"{key}={_text_of(path, entry)}" for key, entry in value.items())
            out += parse_changes([f"{target}:{words}"])
        else:
            out += [ProgramChange(target, key, _text_of(path, entry)) for key, entry in value.items()]
    for change in out:
        _check(change)
    return out


def _text_of(path: Path, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float, str)):
        return str(value)
    raise UsageError(f"{path.name}: {str(value)[:40]!r} is neither a number nor text; {_EXAMPLE}")


def with_changes(programs: Programs, changes: Sequence[ProgramChange]) -> Changed:
    """Return a copy of programs with changes applied; the given programs are not modified.

    Raises UsageError if a change names an unknown target, has an invalid value, or repeats another one.
    """
    out = Changed(copy.copy(programs), programs.cpus, tuple(map(str, changes)))
    out.programs.threads = [copy.copy(thread) for thread in programs.threads]
    out.programs.interrupts = [copy.copy(line) for line in programs.interrupts]
    out.programs.things = [copy.copy(thing) for thing in programs.things]
    out.programs.partitions = [copy.copy(partition) for partition in programs.partitions]
    change_of_key: dict[tuple[str, str], ProgramChange] = {}
    for change in changes:
        earlier = change_of_key.setdefault((change.target.casefold(), change.key), change)
        if earlier is not change:
            raise UsageError(f"{change}: {earlier} changes the same; leave one of them out")
        _check(change)
        (_add_load if change.is_load else _MAKERS[change.key])(out, change)
    return out


# Targets of changes.


def _threads(out: Changed, change: ProgramChange) -> list[ThreadProgram]:
    """Return the threads that a target names: by label, `process tid` or thread name, or all threads of a process."""
    name = change.target.casefold()
    threads = out.programs.threads
    readings: tuple[Callable[[ThreadProgram], str], ...] = (
        lambda thread: thread.label, lambda thread: f"{thread.short_process} {thread.tid}",
        lambda thread: thread.name,
        lambda thread: thread.short_process, lambda thread: f"pid {thread.pid}",
    )  # fmt: skip
    for reading in readings:
        fits = [thread for thread in threads if reading(thread).casefold() == name]
        if fits:
            return fits
    raise _nothing(change, "thread or process", [thread.label for thread in threads])


def _nothing(change: ProgramChange, what: str, known: Sequence[str]) -> UsageError:
    there_are = f"there are {listed(known, _MOST_NAMES)}" if known else "the trace shows none"
    return UsageError(f"{change}: the trace has no such {what}; {there_are}")


# Values of changes, which can be checked before there is a trace.


def _whole(text: str) -> int:
    """Return a whole number; a file of changes may also have `22.0`."""
    return int(text.removesuffix(".0"))


_NUMBERS: Final[dict[str, tuple[float, float, Callable[[str], float], str]]] = {
    "cpus": (1, MAX_CPUS, _whole, "g"),
    "priority": (1, 255, _whole, "g"),
    "runmask": (1, (1 << 64) - 1, lambda text: int(text, 0), "#x"),
    "speed": (0.001, 1000, float, "g"),
    "threads": (1, _MOST_THREADS, _whole, "g"),
    "ceiling": (1, 255, _whole, "g"),
    "budget": (0, 100, _whole, "g"),
    "rate": (0.001, 1000, float, "g"),
}  # for each key with a number: smallest and largest number, conversion of the text, format of the range in a message


def _check(change: ProgramChange) -> None:
    """Raise `UsageError` if a change is impossible in any trace: an unknown key, a value that the key cannot have."""
    if change.is_load:
        _load(change)
        return
    if change.key not in _MAKERS:
        raise UsageError(f"{change}: there is no {change.key!r}; there are {', '.join(_MAKERS)}, and for a "
                         "thread that is added 'load NAME:period=10ms,work=2ms,priority=20'")  # fmt: skip
    if not change.target and change.key in KEYS:
        raise UsageError(f"{change} is a change of something: TARGET:{change}, where TARGET is a "
                         f"{KEYS[change.key].partition(':')[0]}")  # fmt: skip
    if change.target and change.key not in KEYS:
        raise UsageError(f"{change}: the CPUs are those of the target: cpus={change.value}")
    if change.key in _NUMBERS:
        _number(change)
    if change.key == "policy" and change.value.casefold() not in _POLICIES:
        raise UsageError(f"{change}: the policies are {', '.join(_POLICIES)}")
    if change.key == "inherit" and change.value.casefold() not in ("yes", "no"):
        raise UsageError(f"{change}: inherit is yes or no")
    if change.key == "handler":
        _handler_priority(change)


def _number(change: ProgramChange) -> float:
    """Return the value of a change as a number; UsageError unless it is in plain digits and within its bounds."""
    least, most, kind, form = _NUMBERS[change.key]
    try:
        value = kind(change.value) if _PLAIN_NUMBER.fullmatch(change.value) else float("nan")
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise UsageError(f"{change}: {change.value[:30]!r} is not a number from {least:{form}} to {most:{form}}")
    return value


def _handler_priority(change: ProgramChange) -> int:
    """Return the priority of the thread to which a handler is moved."""
    words = change.value.split()
    if words[0] != "thread" or len(words) != 2:
        raise UsageError(f"{change}: a handler is moved by handler=thread PRIORITY, as in 'handler=thread 40'")
    return int(_number(ProgramChange(change.target, "priority", words[1])))


def _load(change: ProgramChange) -> tuple[int, int, int]:
    """Return period, ns, work per period, ns, and priority of an added thread."""
    values = dict.fromkeys(("period", "work", "priority"), "")
    for word in f"{change.key}={change.value}".split(","):
        key, _, value = word.partition("=")
        if key.strip() not in values or not value.strip():
            raise UsageError(f"{change}: a load is written as 'load NAME:period=10ms,work=2ms,priority=20'")
        values[key.strip()] = value.strip()
    if not all(values.values()):
        lacks = " and ".join(key for key, value in values.items() if not value)
        raise UsageError(f"{change}: the load has no {lacks}; say it as 'load NAME:period=10ms,work=2ms,priority=20'")
    try:
        period_ns, work_ns = int(parse_length(values["period"])), int(parse_length(values["work"]))
    except UsageError as error:
        raise UsageError(f"{change}: {error}") from error
    if period_ns < _LEAST_PERIOD_NS or not 0 < work_ns <= period_ns:
        raise UsageError(f"{change}: the period is 10 us at least; the work is above 0 and fits into the period, as "
                         "one thread does it")  # fmt: skip
    return period_ns, work_ns, int(_number(ProgramChange(change.target, "priority", values["priority"])))


# The changes.


def _set_cpus(out: Changed, change: ProgramChange) -> None:
    out.cpus = int(_number(change))
    _check_masks(out, change)


def _check_masks(out: Changed, change: ProgramChange) -> None:
    for thread in out.programs.threads:
        if not thread.runmask & (1 << out.cpus) - 1:
            raise UsageError(f"{change}: {thread.label} may then run on none of {out.cpus} CPUs")


def _set_priority(out: Changed, change: ProgramChange) -> None:
    priority = int(_number(change))
    threads = _threads(out, change)
    changed = {thread.row for thread in threads}
    for thread in threads:
        if thread.sporadic is not None and priority <= thread.sporadic[0]:
            raise UsageError(
                f"{change}: {thread.label} falls to {thread.sporadic[0]} without budget; set its policy too"
            )
        thread.priority = priority
    # Pulses of timers and interrupts have a priority that their receiver has set: it changes with that of the receiver.
    received = {step.chid for thread in threads for step in thread.steps if isinstance(step, Receive)}
    pids = {thread.pid for thread in threads}
    others = {step.chid for thread in out.programs.threads if thread.pid in pids and thread.row not in changed
              for step in thread.steps if isinstance(step, Receive)}  # fmt: skip
    out.programs.streams = [
        _with(stream, priority=priority) if stream.pid in pids and stream.chid in received - others else stream
        for stream in out.programs.streams
    ]


def _with(thing: Any, **values: Any) -> Any:
    """Return a copy of a plain record with some values changed."""
    out = copy.copy(thing)
    for name, value in values.items():
        setattr(out, name, value)
    return out


def _set_policy(out: Changed, change: ProgramChange) -> None:
    for thread in _threads(out, change):
        thread.policy, thread.sporadic = _POLICIES[change.value.casefold()], None


def _set_runmask(out: Changed, change: ProgramChange) -> None:
    mask = int(_number(change))
    for thread in _threads(out, change):
        thread.runmask = mask
    _check_masks(out, change)


def _set_speed(out: Changed, change: ProgramChange) -> None:
    speed = _number(change)
    for thread in _threads(out, change):
        thread.speed *= speed


def _set_threads(out: Changed, change: ProgramChange) -> None:
    wanted = int(_number(change))
    threads = _threads(out, change)
    pool = [thread for thread in threads if any(isinstance(step, Receive) for step in thread.steps)]
    chids = [step.chid for thread in pool for step in thread.steps if isinstance(step, Receive)]
    messages = {message.chid for message in out.programs.messages if message.pid in {thread.pid for thread in pool}}
    chids = [chid for chid in chids if chid in messages]
    if not chids:
        raise UsageError(f"{change}: no thread of it receives messages in the trace")
    usual = max(set(chids), key=chids.count)
    pool = [thread for thread in pool if any(step == Receive(usual) for step in thread.steps)]
    is_only_server = [all(isinstance(step, Receive) for step in thread.steps) for thread in pool]
    for _ in range(len(pool), wanted, -1):
        least = next((position for position in range(len(pool) - 1, -1, -1) if is_only_server[position]), None)
        if least is None:
            raise UsageError(f"{change}: {len(pool)} threads of it also do other things than to receive")
        out.programs.threads.remove(pool.pop(least))
        del is_only_server[least]
    tid = max(thread.tid for thread in out.programs.threads if thread.pid == pool[0].pid)
    for number in range(wanted - len(pool)):
        added = ThreadProgram(_new_row(out), pool[0].pid, tid + 1 + number, pool[0].process, "added",
                              f"{pool[0].short_process} {tid + 1 + number}", pool[0].priority, pool[0].policy,
                              [Receive(usual)], (0, 1), speed=pool[0].speed)  # fmt: skip
        out.programs.threads.append(added)


def _new_row(out: Changed) -> int:
    """Return a row number for an added thread: negative, unlike rows of the trace, and below all other added ones."""
    return min(0, *(thread.row for thread in out.programs.threads)) - 1


def _lock(out: Changed, change: ProgramChange) -> Thing:
    locks = [thing for thing in out.programs.things if thing.kind == "MUTEX"]
    text = re.sub(r"^lock\s+", "", change.target)
    for thing in locks:
        if text.casefold() == f"{thing.address:#x}":
            return thing
    raise _nothing(change, "lock that somebody waited for", [f"lock {thing.address:#x}" for thing in locks])


def _set_inherit(out: Changed, change: ProgramChange) -> None:
    thing = _lock(out, change)
    thing.inherits = change.value.casefold() == "yes"


def _set_ceiling(out: Changed, change: ProgramChange) -> None:
    _lock(out, change).ceiling = int(_number(change))


def _set_budget(out: Changed, change: ProgramChange) -> None:
    name = re.sub(r"^partition\s+", "", change.target).casefold()
    for partition in out.programs.partitions:
        if name in (partition.name.casefold(), str(partition.number)):
            partition.percent = int(_number(change))
            if sum(entry.percent for entry in out.programs.partitions if entry.number) > 100:
                raise UsageError(f"{change}: the budgets together are more than 100 %")
            return
    raise _nothing(change, "partition", [f"partition {entry.name}" for entry in out.programs.partitions])


def _line(out: Changed, change: ProgramChange) -> InterruptLine:
    text = re.sub(r"^interrupt\s+", "", change.target)
    for line in out.programs.interrupts:
        if text in (str(line.vector), f"{line.vector:#x}"):
            return line
    raise _nothing(change, "interrupt", [f"interrupt {line.vector:#x}" for line in out.programs.interrupts])


def _set_rate(out: Changed, change: ProgramChange) -> None:
    line, rate = _line(out, change), _number(change)
    if len(line.moments_ns) * rate > _MOST_INTERRUPTS:
        raise UsageError(f"{change}: that would be more than {_MOST_INTERRUPTS:,} interrupts")
    line.moments_ns = list(_moments(line.moments_ns, rate, out.programs.length_ns))


def _moments(moments_ns: list[int], rate: float, length_ns: int) -> Iterator[int]:
    """Yield times, ns, whose gaps are those of `moments_ns` divided by `rate`, repeated up to the end of the trace."""
    gaps = [later - moment for moment, later in pairwise(moments_ns)]
    now = moments_ns[0] / rate
    yield int(now)
    number = 0
    while gaps and now < length_ns and number < _MOST_INTERRUPTS:
        now += max(1.0, gaps[number % len(gaps)] / rate)
        number += 1
        yield int(now)


def _move_handler(out: Changed, change: ProgramChange) -> None:
    line = _line(out, change)
    if not line.handlers:
        raise UsageError(f"{change}: the trace shows no handler of interrupt {line.vector:#x}")
    for pid, outcomes in line.handlers.items():
        steps: list[Step] = []
        for length_ns, outcome in outcomes:
            steps += [AwaitInterrupt(), Work(max(1, length_ns))]
            if outcome is not None:
                steps.append(SendPulse(outcome) if outcome >= 0 else Wake(-1 - outcome))
            steps.append(Unmask(line.vector))
        owner = next((thread for thread in out.programs.threads if thread.pid == pid), None)
        if owner is None:
            raise UsageError(f"{change}: the process of the handler has no thread in the trace")
        tid = 1 + max(thread.tid for thread in out.programs.threads if thread.pid == pid)
        row = _new_row(out)
        out.programs.threads.append(ThreadProgram(row, pid, tid, owner.process, f"interrupt-{line.vector}",
                                                  f"{owner.short_process} {tid}", _handler_priority(change), 1, steps,
                                                  (0, len(steps))))  # fmt: skip
        line.threads = [*line.threads, row]
    line.handlers = {}


def _add_load(out: Changed, change: ProgramChange) -> None:
    """Add a thread that starts work of a certain length once per period."""
    period_ns, work_ns, priority = _load(change)
    name = change.target.removeprefix("load ").strip() or "load"
    pid = max([_LOAD_PID, *(thread.pid + 1 for thread in out.programs.threads if thread.pid >= _LOAD_PID)])
    steps: list[Step] = [Begin(), Every(period_ns), Work(work_ns)]
    load = ThreadProgram(_new_row(out), pid, 1, f"whatif/{name}", name, f"{name} 1", priority, 2, steps, (1, 3))
    # Names that two processes share get a pid, so that activities of the trace would have no partner of their name.
    if any(thread.row > 0 and thread.short_process == load.short_process for thread in out.programs.threads):
        raise UsageError(f"{change}: the trace has a process {load.short_process}; give the load another name")
    out.programs.threads.append(load)


_MAKERS: Final[dict[str, Callable[[Changed, ProgramChange], None]]] = {
    "cpus": _set_cpus,
    "priority": _set_priority,
    "policy": _set_policy,
    "runmask": _set_runmask,
    "speed": _set_speed,
    "threads": _set_threads,
    "inherit": _set_inherit,
    "ceiling": _set_ceiling,
    "budget": _set_budget,
    "rate": _set_rate,
    "handler": _move_handler,
}
