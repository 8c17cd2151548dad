"""Opens recordings of the Linux scheduler as a `Trace`: all formats, also the text of perf script and ftrace."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.base.errors import Cancelled, TraceFormatError
from satview.base.time import NS_PER_S, Clock
from satview.events import linux, wire
from satview.events.catalogue import catalogue
from satview.events.spec import Argument, Payload, Release
from satview.events.states import READY, RUNNING, UNKNOWN
from satview.formats.linux import perfetto
from satview.formats.linux.records import MAGIC, CpuSwitches, Ints, Points, Schedule, ScheduleDetails, Tasks, WakeUps
from satview.formats.linux.trace_dat import MAGICS, read_perf_data, read_trace_dat
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, ProcessTable, StateIndex, ThreadTable
from satview.store.trace import Header, NumberPayloads, Trace

# Reads the text of perf script, trace-cmd report and the file `trace` of ftrace: a line per event.
#
# perf 28212 [000] 33361.678389: sched:sched_switch: prev_comm=perf prev_pid=28212 prev_prio=120 prev_state=D ==> ...
# client-100 [000] 5.003000: sched_switch: client:100 [110] S ==> swapper/0:0 [120]
#
# One expression matches many lines at once. Every repetition in it has a limit, so that the time per line is bounded.


_LINE: Final = re.compile(
    rb"^[ \t]{0,64}(.{1,40}?)(?:[ \t]{1,24}|-)(-?\d{1,10})(?:/(-?\d{1,10}))?[ \t]{1,16}(?:\([\d -]{1,12}\)[ \t]{1,4})?"
    rb"\[(\d{1,4})\][ \t]{1,16}(?:[^\s\d]\S{3,6}[ \t]{1,16})?(\d{1,10})\.(\d{1,9}):[ \t]{1,16}(?:\d{1,12}[ \t]{1,8})?"
    rb"(?:[\w-]{1,64}:)?([\w-]{1,64}):[ \t]*(.{0,4096})$",
    re.MULTILINE,
)
_SWITCH: Final = re.compile(
    rb"^(?:prev_comm=(.{0,40}?) prev_pid=(\d{1,10}) prev_prio=(-?\d{1,10}) prev_state=(\w)\S{0,8} ==> "
    rb"next_comm=(.{0,40}?) next_pid=(\d{1,10}) next_prio=(-?\d{1,10})"
    rb"|(.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\] (\w)\S{0,8} ==> (.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\]|).*$",
    re.MULTILINE,
)
_WAKE: Final = re.compile(
    rb"^(?:comm=(.{0,40}?) pid=(\d{1,10}) prio=(-?\d{1,10})(?: success=\d)? target_cpu=(\d{1,4})"
    rb"|(.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\][^:]{0,32}CPU:(\d{1,4})|).*$",
    re.MULTILINE,
)
_BLOCK: Final = 1 << 22
_WAKES: Final = (b"sched_waking", b"sched_wakeup", b"sched_wakeup_new")
_DIGITS: Final = 9  # of a second in nanoseconds


def looks_like(first_bytes: bytes) -> bool:
    """Return whether the first bytes of a file contain an event line of perf script or ftrace."""
    return b"\0" not in first_bytes and _LINE.search(first_bytes) is not None


@dataclass(frozen=True, slots=True)
class _Lines:
    """Columns of the event lines of a text, (n,) each."""

    time_ns: Ints
    cpu: Ints
    process: Ints
    thread: Ints
    name: list[bytes]
    event: list[bytes]
    rest: list[bytes]

    def taken(self, rows: Ints) -> bytes:
        """Return the remainder of some lines after the event name, one per line."""
        return b"\n".join([self.rest[row] for row in rows.tolist()])


@dataclass(frozen=True, slots=True)
class _LineDetails:
    """Implements `records.ScheduleDetails`: arguments are in the text after the event name."""

    lines: _Lines

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return the event name of a line and its arguments; text without `=` is one argument."""
        name, rest = (column[record].decode("utf-8", "replace") for column in (self.lines.event, self.lines.rest))
        pairs = re.findall(r"(\w{1,64})=(\S{0,256})", rest)
        return name, tuple(pairs) or ((("text", rest.strip()),) if rest.strip() else ())

    def raw(self, record: int) -> bytes:
        """Return the text of a line after the event name."""
        return self.lines.rest[record]


def read_perf_script(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:  # noqa: ARG001
    """Return the scheduler events in a text of perf script, trace-cmd or ftrace, and report lines without an event."""
    lines = _lines(data, problems)
    tasks = Tasks()
    # A line without a process does not say which process its thread belongs to.
    for thread, process, name in set(zip(lines.thread.tolist(), lines.process.tolist(), lines.name, strict=True)):
        if thread > 0:
            tasks.names.setdefault(thread, name.decode("utf-8", "replace"))
            if process >= 0:
                tasks.process[thread] = process
    events, which = np.unique(np.array(lines.event, np.bytes_), return_inverse=True)
    is_switch = (events == b"sched_switch")[which] if len(events) else np.zeros(0, np.bool_)
    wakes = [name for name in _WAKES if name in events.tolist()]
    wakes = [name for name in wakes if name != b"sched_wakeup"] if b"sched_waking" in wakes else wakes
    is_wake = np.isin(events, wakes)[which] if len(events) else is_switch
    switches, bad = _switches_of_lines(lines, np.flatnonzero(is_switch), tasks)
    woken, bad_wakes = _wakeups_of_lines(lines, np.flatnonzero(is_wake), tasks)
    if bad + bad_wakes:
        problems.add("bad-line", "switches or wake-ups of a spelling that is not known", None, bad + bad_wakes)
    other = np.flatnonzero(~is_switch & ~is_wake)
    known = linux.point_codes()
    codes = np.array([known.get(name.decode("ascii", "replace"), linux.POINT) for name in events.tolist()], np.int64)
    points = Points(lines.time_ns[other], other, lines.cpu[other], lines.thread[other],
                    codes[which[other]] if len(other) else other)  # fmt: skip
    return Schedule("text of perf script or ftrace", (), switches, woken, points, tasks, _LineDetails(lines))


def _lines(data: NDArray[np.uint8], problems: Problems) -> _Lines:
    matches: list[tuple[bytes, ...]] = []
    block_start, strange = 0, 0
    while block_start < len(data):
        block = data[block_start : block_start + _BLOCK].tobytes()
        end = block.rfind(b"\n") + 1
        block = block[: end or len(block)].replace(b"\r\n", b"\n")
        lines = _LINE.findall(block)
        strange += len(re.findall(rb"^[^\s#].*$", block, re.MULTILINE)) + len(
            re.findall(rb"^[ \t]+[^\s#].*$", block, re.MULTILINE)) - len(lines)  # fmt: skip
        matches += lines
        block_start += end or len(block)
    if strange > 0:
        problems.add("foreign-line", "lines that are not events: heads, stacks, or of another program", None, strange)
    columns = list(zip(*matches, strict=True)) or [()] * _LINE.groups
    before_slash, behind_slash = _numbers(columns[1]), _numbers([value or b"-1" for value in columns[2]])
    has_process = behind_slash >= 0
    digits = np.array([_DIGITS - len(value) for value in columns[5]], np.int64)
    time_ns = _numbers(columns[4]) * NS_PER_S + _numbers(columns[5]) * 10**digits
    process, thread = np.where(has_process, before_slash, -1), np.where(has_process, behind_slash, before_slash)
    return _Lines(time_ns, _numbers(columns[3]), process, thread, list(columns[0]), list(columns[6]), list(columns[7]))


def _numbers(column: tuple[bytes, ...] | list[bytes]) -> Ints:
    return np.array(column, np.bytes_).astype(np.int64) if len(column) else np.empty(0, np.int64)


def _columns(matches: list[tuple[bytes, ...]], half: int) -> tuple[list[list[bytes]], NDArray[np.bool_]]:
    """Return the columns of the lines that match, and which lines do; `half` of `matches` are for another spelling."""
    spellings = list(zip(*matches, strict=True))
    pairs = zip(spellings[:half], spellings[half:], strict=True)
    columns = [
        [first_spelling or second_spelling for first_spelling, second_spelling in zip(*pair, strict=True)]
        for pair in pairs
    ]
    is_known = [bool(value) for value in columns[1]]
    return [list(compress(column, is_known)) for column in columns], np.array(is_known, np.bool_)


def _add_names(numbers: Ints, names: list[bytes], tasks: Tasks) -> None:
    for number, name in set(zip(numbers.tolist(), names, strict=True)):
        if number > 0 and name:
            tasks.names[number] = name.decode("utf-8", "replace")


def _switches_of_lines(lines: _Lines, rows: Ints, tasks: Tasks) -> tuple[CpuSwitches, int]:
    if not len(rows):
        return CpuSwitches(), 0
    columns, is_known = _columns(_SWITCH.findall(lines.taken(rows)), 7)
    rows = rows[is_known]
    letters = linux.value_of_letter()
    state = np.array([letters.get(value.decode("ascii", "replace"), READY) for value in columns[3]], np.int64)
    before, after = _numbers(columns[1]), _numbers(columns[5])
    _add_names(before, columns[0], tasks)
    _add_names(after, columns[4], tasks)
    return CpuSwitches(lines.time_ns[rows], rows, lines.cpu[rows], before, _numbers(columns[2]), state, after,
                       _numbers(columns[6])), int(np.count_nonzero(~is_known))  # fmt: skip


def _wakeups_of_lines(lines: _Lines, rows: Ints, tasks: Tasks) -> tuple[WakeUps, int]:
    if not len(rows):
        return WakeUps(), 0
    columns, is_known = _columns(_WAKE.findall(lines.taken(rows)), 4)
    rows = rows[is_known]
    thread = _numbers(columns[1])
    _add_names(thread, columns[0], tasks)
    return WakeUps(lines.time_ns[rows], rows, lines.cpu[rows], lines.thread[rows], thread, _numbers(columns[2]),
                   _numbers(columns[3])), int(np.count_nonzero(~is_known))  # fmt: skip


# Opens schedules of Linux of any format as a `Trace`: events in time order, threads and processes, states.


Progress = Callable[[float], None]
CancelCheck = Callable[[], bool]
_HEAD_BYTES: Final = 4096


_Reader = Callable[[Path, NDArray[np.uint8], Problems], Schedule]


def score(first_bytes: bytes, path: Path) -> int:  # noqa: ARG001
    """Return how likely a file is a recording of the Linux scheduler: 100 by a magic number, 80 by a line, else 0."""
    reader = _reader_of(first_bytes)
    return 0 if reader is None else 80 if reader[1] is read_perf_script else 100


def open_linux(path: Path | str, progress: Progress | None = None, cancelled: CancelCheck | None = None) -> Trace:  # noqa: ARG001
    """Open a recording of the Linux scheduler as a trace; the whole file is read into memory.

    Args:
        path: The file.
        progress: Not used.
        cancelled: Called between the steps; True stops the load.

    Raises:
        TraceFormatError: The header is damaged, or the file contains no scheduler events.
        OSError: The file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    path, problems = Path(path), Problems()
    data = np.fromfile(path, np.uint8)
    data.setflags(write=False)
    reader = _reader_of(data[:_HEAD_BYTES].tobytes())
    if reader is None:
        raise TraceFormatError(path, 0, "it does not begin as a schedule of Linux does", "give another file")
    name, read = reader
    schedule = read(path, data, problems)
    if cancelled is not None and cancelled():
        raise Cancelled("loading was stopped")
    return trace_from_schedule(path, name, schedule, problems)


def _reader_of(first_bytes: bytes) -> tuple[str, _Reader] | None:
    """Return the name of a format and its reader, by the first bytes of a file."""
    if first_bytes.startswith(MAGIC):
        return "trace.dat", read_trace_dat
    if first_bytes[:8] in MAGICS:
        return "perf.data", read_perf_data
    if perfetto.looks_like(first_bytes):
        return "perfetto", perfetto.read_perfetto
    if looks_like(first_bytes):
        return "perf-script", read_perf_script
    return None


# Arguments of Linux events: the numbers that are stored for switches and wake-ups, and arguments from the file.


@dataclass(frozen=True, slots=True)
class LinuxPayloads(NumberPayloads):
    """Payloads of the events of a Linux trace; implements `store.trace.PayloadSource`.

    Attributes:
        events: The event table.
        record: int64 (n,), number of each event's record in the file.
        details: Names and arguments of records.
        names: Names of threads, by number.
    """

    events: EventTable
    record: NDArray[np.int64]
    details: ScheduleDetails
    names: dict[int, str]

    def raw(self, event: int) -> bytes:
        """Return the bytes of an event in the file; if there are none, the event's stored numbers as bytes."""
        return self.details.raw(int(self.record[event])) or NumberPayloads.raw(self, event)

    def decode(self, event: int, most: int | None = None) -> Payload:  # noqa: ARG002
        """Return the arguments of one event: the stored numbers, then those from the file; `most` is not used."""
        code, values = int(self.events.code[event]), self.values(event)
        name, file_arguments = self.details.text(int(self.record[event]))
        # A wake-up that only repeats another has no stored numbers, so the arguments of the file are shown.
        file_names = set() if any(values) else {key for key, _ in file_arguments}
        arguments = [
            Argument(field.name, value, str(value), 2 * i, 2, self._note(field.name, value))
            for i, (field, value) in enumerate(zip(linux.fields_of(code), values, strict=False))
            if field.name not in file_names
        ]
        known = {argument.name for argument in arguments}
        if name and name != _event_name(linux.unnamed(code), code):
            arguments.insert(0, Argument("tracepoint", name, name, 0, 0))
        arguments += [Argument(key, value, str(value), 0, 0) for key, value in file_arguments if key not in known]
        return Payload("same", tuple(arguments), tuple(self.words(event).tolist()), self.raw(event))

    def _note(self, name: str, value: int) -> str:
        return self.names.get(value, "") if name.endswith("pid") else ""


def _event_name(fallback: str, code: int) -> str:
    known = linux.names().get(code)
    return known.name if known else fallback


_MOST_CPUS: Final = 256  # the event table has eight bits for a CPU
_MOST_NUMBER: Final = 1 << 31
_LATEST_NS: Final = 1 << 61  # 73 years, longer than any traced clock has run


@dataclass(frozen=True, slots=True)
class _Unsorted(ColumnTable):
    """Events before they are sorted, int64 (n,) each.

    Attributes:
        time_ns, record: Time and record in the schedule.
        rank: Order of events from the same record.
        cpu: CPU.
        thread: Thread number from `_thread_numbers`.
        code: Event code.
        first, second, third: Stored numbers, see `resources/events/linux.toml`.
    """

    time_ns: Ints
    record: Ints
    rank: Ints
    cpu: Ints
    thread: Ints
    code: Ints
    first: Ints
    second: Ints
    third: Ints


_UNKNOWN: Final = -_MOST_NUMBER  # unknown thread


def trace_from_schedule(path: Path, format_name: str, schedule: Schedule, problems: Problems) -> Trace:
    """Build a trace from the scheduler events of a Linux recording; TraceFormatError if none has a possible time."""
    events = _Unsorted.concatenated([
        _switches(schedule), _gone(schedule, problems), _wakeups(schedule), _points(schedule), _states(schedule)
    ])  # fmt: skip
    if not len(events.time_ns):
        raise TraceFormatError(path, None, "it has no switch of threads, no wake-up and no other event",
                               "record the tracepoints of the group sched")  # fmt: skip
    problems.add("foreign", f"{schedule.title}: {schedule.says}")
    if int(events.cpu.max()) >= _MOST_CPUS:
        problems.add("lwp-lanes", f"CPUs from number {_MOST_CPUS - 1} on share one lane")
    events = _with_possible_values(events, problems)
    if not len(events.time_ns):
        raise TraceFormatError(
            path, None, "none of its events has a possible time", "the file is damaged; copy it again"
        )
    events = events.taken(np.lexsort((events.rank, events.record, events.time_ns)))
    events = _without_early_wakeups(events)
    keys, thread = _numbered(events)
    threads, processes = _tables(keys, schedule.tasks)
    small = np.uint16 if len(keys) < 1 << 16 else np.uint32
    n, start = len(events.time_ns), int(events.time_ns[0])
    table = EventTable(
        events.time_ns, events.code.astype(np.uint16), np.minimum(events.cpu, _MOST_CPUS - 1).astype(np.uint8),
        thread.astype(small), np.arange(n, dtype=np.uint32), np.ones(n, np.uint16),
    )  # fmt: skip
    numbers = tuple(column.astype(np.int32) for column in (events.first, events.second, events.third))
    payloads = LinuxPayloads(numbers, table, events.record, schedule.details, schedule.tasks.names)
    return Trace(
        path, format_name, Header((("SYS_RELEASE", "Linux"), ("SOURCE", schedule.title), *schedule.head_rows)), None,
        Release.LINUX, "little", Clock(NS_PER_S, start, None, is_absolute=False),
        max(min(schedule.cpus, _MOST_CPUS), int(table.cpu.max()) + 1), n, table, threads, processes,
        _state_index(table, len(keys)), BufferTable.none(), payloads, problems, catalogue(Release.LINUX), start - 1,
    )  # fmt: skip


# ---- events --------------------------------------------------------------------------------------------------------


def _with_possible_values(events: _Unsorted, problems: Problems) -> _Unsorted:
    """Remove events with impossible times, and report them; negative CPUs become 0."""
    is_possible = (events.time_ns >= 0) & (events.time_ns < _LATEST_NS)
    if not is_possible.all():
        count = int(np.count_nonzero(~is_possible))
        problems.add("clock-damaged", "events with impossible times are left out", None, count)
        events = events.taken(is_possible)
    return replace(events, cpu=np.maximum(events.cpu, 0))


def _thread_numbers(thread: Ints, cpu: Ints) -> Ints:
    """Return thread numbers, int64 (n,), in which the idle thread of each CPU, number 0 in Linux, is -1 - CPU."""
    is_known = (thread >= 0) & (thread < _MOST_NUMBER)
    return np.where(thread == 0, -1 - np.clip(cpu, 0, _MOST_CPUS - 1), np.where(is_known, thread, _UNKNOWN))


def _switches(schedule: Schedule) -> _Unsorted:
    """Return two events for each switch: one for the thread that leaves the CPU, one for the thread that gets it."""
    switches, code = schedule.switches, _code_of_value()
    before, after = _thread_numbers(switches.before, switches.cpu), _thread_numbers(switches.after, switches.cpu)
    zero = np.zeros(len(switches.cpu), np.int64)
    state = np.where(switches.before == 0, READY, switches.state)  # the idle thread can always run
    leaves = _Unsorted(switches.time_ns, switches.record, zero, switches.cpu, before, code[state], switches.before,
                       switches.before_prio, switches.after)  # fmt: skip
    comes = _Unsorted(switches.time_ns, switches.record, zero + 1, switches.cpu, after, zero + code[RUNNING],
                      switches.after, switches.after_prio, switches.before)  # fmt: skip
    return _Unsorted.concatenated([leaves.taken(before != _UNKNOWN), comes.taken(after != _UNKNOWN)])


def _gone(schedule: Schedule, problems: Problems) -> _Unsorted:
    """Return events that end a thread's run if the next switch on the CPU is from another thread; report the gaps."""
    switches = schedule.switches
    order = np.lexsort((switches.record, switches.time_ns, switches.cpu))
    previous, following = order[:-1], order[1:]
    is_missing = switches.cpu[previous] == switches.cpu[following]
    is_missing &= switches.after[previous] != switches.before[following]
    is_missing &= (switches.after[previous] >= 0) & (switches.before[following] >= 0)
    previous, following = previous[is_missing], following[is_missing]
    if len(following):
        first_ns = int(switches.time_ns[following].min())
        problems.add("lost-events", "switches are missing: a thread leaves a CPU that another one had; the state of "
                     "that one is unknown from there on", None, len(following), first_ns)  # fmt: skip
    was_busy = switches.after[previous] > 0
    previous, following = previous[was_busy], following[was_busy]
    zero = np.zeros(len(following), np.int64)
    return _Unsorted(switches.time_ns[following], switches.record[following], zero - 1, switches.cpu[following],
                     _thread_numbers(switches.after[previous], zero), zero + linux.GONE, switches.after[previous], zero,
                     zero - 1)  # fmt: skip


def _wakeups(schedule: Schedule) -> _Unsorted:
    """Return two events for each wake-up: one for the waker, and one for the thread that becomes ready."""
    wakeups = schedule.wakeups
    waker = np.where(wakeups.waker < 0, _runs_then(schedule), wakeups.waker)
    waker, zero = _thread_numbers(waker, wakeups.cpu), np.zeros(len(wakeups.cpu), np.int64)
    point, ready = linux.point_codes()[linux.WAKING], linux.state_codes()[READY]
    causes = _Unsorted(wakeups.time_ns, wakeups.record, zero, wakeups.cpu, waker, zero + point, wakeups.thread,
                       wakeups.prio, wakeups.target_cpu)  # fmt: skip
    woken, by = _thread_numbers(wakeups.thread, wakeups.cpu), np.where(waker == _UNKNOWN, -1, np.maximum(waker, 0))
    effects = _Unsorted(
        wakeups.time_ns, wakeups.record, zero + 1, wakeups.cpu, woken, zero + ready, wakeups.thread, wakeups.prio, by
    )
    return _Unsorted.concatenated([causes, effects.taken((woken > 0) & schedule.wakes_make_ready)])


def _runs_then(schedule: Schedule) -> Ints:
    """Return the thread on the CPU of each wake-up, by the last switch before it, int64; -1 = no such switch."""
    wakeups, switches = schedule.wakeups, schedule.switches
    out = np.full(len(wakeups.cpu), -1, np.int64)
    for cpu in np.unique(wakeups.cpu).tolist():
        of_cpu = np.flatnonzero(switches.cpu == cpu)
        of_cpu = of_cpu[np.argsort(switches.time_ns[of_cpu], kind="stable")]
        wakeup_rows = np.flatnonzero(wakeups.cpu == cpu)
        last = np.searchsorted(switches.time_ns[of_cpu], wakeups.time_ns[wakeup_rows], "right") - 1
        out[wakeup_rows[last >= 0]] = switches.after[of_cpu[last[last >= 0]]]
    return out


def _points(schedule: Schedule) -> _Unsorted:
    points = schedule.points
    zero = np.zeros(len(points.cpu), np.int64)
    return _Unsorted(points.time_ns, points.record, zero, points.cpu, _thread_numbers(points.thread, points.cpu),
                     points.code, zero, zero, zero)  # fmt: skip


def _states(schedule: Schedule) -> _Unsorted:
    states = schedule.states
    zero = np.zeros(len(states.cpu), np.int64)
    return _Unsorted(states.time_ns, states.record, zero + 2, states.cpu, _thread_numbers(states.thread, states.cpu),
                     _code_of_value()[states.state], states.thread, states.prio, zero - 1)  # fmt: skip


def _code_of_value() -> Ints:
    """Return the event code for each state of a thread, int64 (256,); the index is the state's number on lanes."""
    code = np.zeros(256, np.int64)
    code[UNKNOWN] = linux.GONE
    for value, number in linux.state_codes().items():
        code[value] = number
    return code


def _without_early_wakeups(events: _Unsorted) -> _Unsorted:
    """Remove READY events of threads that are still running.

    Linux can wake a thread that is about to sleep before it has left its CPU; the switch then shows the new state.
    """
    ready, running = linux.state_codes()[READY], linux.state_codes()[RUNNING]
    is_state = events.code >> wire.CLASS_SHIFT == wire.WireClass.PR_TH
    rows = np.flatnonzero(is_state)
    rows = rows[np.argsort(events.thread[rows], kind="stable")]
    code, thread = events.code[rows], events.thread[rows]
    is_woken = (code == ready) & (events.rank[rows] == 1)
    # Position of the last state that is no wake-up, carried forward over wake-ups of the same thread.
    position = np.where(is_woken, 0, np.arange(len(rows)))
    last = np.maximum.accumulate(position)
    runs = (code[last] == running) & (thread[last] == thread) & ~is_woken[last]
    keep = np.ones(len(events.code), np.bool_)
    keep[rows[is_woken & runs]] = False
    return events.taken(keep)


# ---- tables --------------------------------------------------------------------------------------------------------


def _numbered(events: _Unsorted) -> tuple[Ints, NDArray[np.intp]]:
    """Return the key of each row of the thread table, ascending, unknown first, and the row of every event."""
    keys, thread = np.unique(events.thread, return_inverse=True)
    if keys[0] == _UNKNOWN:
        return keys, thread
    return np.concatenate(([_UNKNOWN], keys)), thread + 1


def _tables(keys: Ints, tasks: Tasks) -> tuple[ThreadTable, ProcessTable]:
    """Return the thread and process tables; a thread whose process is unknown becomes a process of its own."""
    numbers = keys[1:].tolist()
    pids = [tasks.process.get(number, number) if number > 0 else 0 for number in numbers]
    pids = [pid if 0 <= pid < _MOST_NUMBER else number for pid, number in zip(pids, numbers, strict=True)]
    tids = [tasks.shown.get(number, number) if number > 0 else -1 - number for number in numbers]
    names = [tasks.names.get(number, "") if number > 0 else f"swapper/{-1 - number}" for number in numbers]
    by_pid = sorted(set(pids))
    row = {pid: index + 1 for index, pid in enumerate(by_pid)}
    process = [0, *(row[pid] for pid in pids)]
    nothing = np.full(len(by_pid) + 1, -1, np.int64)
    of_thread = {pid: name for pid, name in zip(reversed(pids), reversed(names), strict=True) if name}
    process_names = tuple(
        (tasks.process_names.get(pid) or tasks.names.get(pid) or of_thread.get(pid, "")) if pid else "swapper"
        for pid in by_pid
    )
    return (
        ThreadTable(np.array([-1, *pids], np.int32), np.array([-1, *tids], np.int32), np.array(process, np.int32),
                    ("", *names)),
        ProcessTable(np.array([-1, *by_pid], np.int32), nothing.astype(np.int32), ("", *process_names), nothing,
                     nothing.copy()),
    )  # fmt: skip


def _state_index(events: EventTable, thread_count: int) -> StateIndex:
    rows = np.flatnonzero(events.code >> wire.CLASS_SHIFT == wire.WireClass.PR_TH)
    rows = rows[np.argsort(events.thread[rows], kind="stable")]
    start = np.searchsorted(events.thread[rows], np.arange(thread_count + 1))
    return StateIndex(rows.astype(np.uint32), start.astype(np.int64))
