"""Compiles exported programs against headers of our own and runs them on the events of simulated captures."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from satview.capture.emit import RULE_DATA
from satview.capture.workloads import registry
from satview.events.modes import Mode
from satview.events.naming import names
from satview.events.spec import Release
from satview.events.wire import KER_64BIT, WireClass
from satview.export.c_program import RulesProgram
from satview.filters.external import EventContext, ExternalClass, external_of, feature_of, has_event_masks
from satview.filters.rules.rule_set import RuleSet
from satview.store.trace import Trace
from tests.capture.made import as_trace, finish, kernel, mode, run
from tests.filters.matrix import classes_with_handlers

HEADERS = Path(__file__).parent / "c"
FLAGS = ("-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-O0", "-pipe")


def constants(release: Release) -> dict[str, int]:
    """Return the values of everything that a program may name: what the target's headers would give."""
    values = {mode.symbol: mode.word for mode in Mode}
    values |= {f"_NTO_TRACE_{external.name}": int(external) for external in ExternalClass}
    for event_code, name in names(release).items():
        address = external_of(event_code, release)
        is_second = event_code & KER_64BIT and event_code >> 10 == WireClass.KER_CALL
        # Interrupts are addressed by vector; their events have the names of classes.
        if not name.symbol or address.external is None or is_second or event_code >> 10 == WireClass.INT:
            continue
        values[name.symbol] = argument_of(address.external, address.number, release)
    return values


def argument_of(external: ExternalClass, number: int, release: Release) -> int:
    """Return the event argument of TraceEvent() for a number in a class."""
    is_bit = has_event_masks(external, release) and external is not ExternalClass.CONTROL
    return 1 << number if is_bit else number


def compiler() -> str:
    """Return the C compiler; skips the test where there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler; on Debian: apt-get install gcc libc6-dev")
    return found


def compiled(sources: Sequence[str], release: Release, folder: Path, *, check: bool = True) -> tuple[Path, str]:
    """Compile some programs into one file that runs any of them; return it and what the compiler says.

    Every program is compiled by itself, as a user would; none may give a warning.
    """
    gcc = compiler()
    defines = [f"#define {symbol} {value}u" for symbol, value in constants(release).items()]
    (folder / "release.h").write_text("\n".join(defines) + "\n")
    files = []
    for number, source in enumerate(sources):
        (folder / f"rules_{number}.c").write_text(source)
        files.append(f"part_{number}.c")
        head, tail = f"#define main main_{number}\nint main(void);", ""
        if "int main(int count" in source:
            head = f"int main_{number}(void);\n#define main with_words\nstatic int main(int count, char **words);"
            tail = f"int main_{number}(void) {{ return with_words(1, NULL); }}\n"
        (folder / files[-1]).write_text(f'{head}\n#include "rules_{number}.c"\n{tail}')
    mains = "\n".join(f"int main_{number}(void);" for number in range(len(sources)))
    rows = ", ".join(f"main_{number}" for number in range(len(sources)))
    table = f"extern int (*const programs[])(void);\nint (*const programs[])(void) = {{{rows}}};\n"
    (folder / "programs.c").write_text(f"{mains}\n{table}")
    command = [gcc, *FLAGS, f"-I{HEADERS}", "-I.", *files, "programs.c", str(HEADERS / "target.c"), "-o", "target"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert found.returncode == 0 or not check, found.stderr
    return folder / "target", found.stderr


@dataclass
class Given:
    """An event as the kernel gives it to handlers.

    Attributes:
        info: What the kernel knows of it.
        row: Its row in the trace with everything on.
    """

    info: EventContext
    row: int


@dataclass
class Everything:
    """A capture of everything, and what handlers of every class were requested.

    Attributes:
        trace: As read back.
        given: The events that handlers are evaluated for, in the order of the kernel.
    """

    trace: Trace
    given: list[Given]


def everything(name: str, release: Release, folder: Path, *, wide: bool, ms: float = 12, cpus: int = 1) -> Everything:
    """Return a capture of a workload with everything on."""
    made, sink = kernel(release, cpus, 3, 64, ())
    registry.find(name).setup(made)
    run(made, 1)
    seen: list[EventContext] = []

    def record(info: EventContext) -> int:
        seen.append(info)
        return 1

    made.trace_event(mode("ADDALLCLASSES"))
    made.trace_event(mode("SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST"))
    for external in classes_with_handlers(release):
        made.trace_event(mode("ADDCLASSEVHANDLER"), external, record, RULE_DATA)
    seen.clear()
    made.trace_event(mode("START"))
    run(made, ms)
    trace = as_trace(made, finish(made, sink), folder)
    return Everything(trace, _matched(trace, seen, release))


def _matched(trace: Trace, seen: Iterable[EventContext], release: Release) -> list[Given]:
    """Return the events with their rows: on each CPU both have the same order."""
    requested = set(classes_with_handlers(release))
    rows: dict[int, list[int]] = {}
    for row, (code, cpu) in enumerate(zip(trace.events.code.tolist(), trace.events.cpu.tolist(), strict=True)):
        if external_of(code, release).external in requested:
            rows.setdefault(cpu, []).append(row)
    found = []
    for info in seen:
        if rows.get(info.cpu):
            row = rows[info.cpu].pop(0)
            assert (int(trace.events.code[row]), tuple(trace.payloads.words(row).tolist())) == (info.code, info.words)
            found.append(Given(info, row))
    assert not any(rows.values()), "all events that are logged were given to a handler"
    return found


@dataclass
class Ran:
    """What a program did.

    Attributes:
        state: What its calls have set, handlers aside.
        attached: (class, event argument) of its handlers; -1 = the whole class.
        passes: Per event whether its switch, its pid and tid and the handlers let it pass.
        marks: Numbers of the events at which triggers hit, one for each hit.
        stops: Numbers of the events at which tracing was stopped.
    """

    state: RuleSet
    attached: set[tuple[int, int]]
    passes: list[bool]
    marks: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)


class Runner:
    """Runs compiled programs on the events of one capture."""

    def __init__(self, release: Release, processes: Mapping[int, bytes], events: Sequence[EventContext]) -> None:
        self._release, self._events = release, events
        known = [struct.pack("=II", pid, len(name)) + name for pid, name in processes.items()]
        self._processes = struct.pack("=I", len(known)) + b"".join(known)
        self._packed = [self._pack(info) for info in events]
        self._admitted: dict[tuple[object, ...], list[bool]] = {}

    def _pack(self, info: EventContext) -> bytes:
        address = external_of(info.code, self._release)
        number = address.number if address.vector_word < 0 else info.words[address.vector_word]
        argument = number if address.vector_word >= 0 else argument_of(address.external, number, self._release)
        mask, (pid, tid) = feature_of(info, self._release)
        words = info.words[: info.el_num]
        time = (info.time_ns, info.time_ns >> 32)
        values = [int(address.external), argument, info.header, *time, mask, pid, tid, info.el_num, *words]
        return struct.pack(f"={len(values)}I", *(value & 0xFFFFFFFF for value in values))

    def run(self, target: Path, number: int) -> Ran:
        """Run a program: its calls first; then the events that its switches let pass go to its handlers."""
        calls = self._run(target, number, b"").splitlines()
        state, attached = RuleSet(self._release), set()
        state.add_all_classes()  # somebody else has been there before
        state.set_all_classes_wide()
        state.set_class_tid(ExternalClass.KERCALL, 77, 7)
        for call in filter(None, calls):
            kind, *arguments = [int(part) for part in call.split()]
            if kind in (Mode.ADDEVENTHANDLER, Mode.ADDCLASSEVHANDLER):
                attached.add((arguments[0], arguments[1] if kind == Mode.ADDEVENTHANDLER else -1))
            elif kind != Mode.START:
                assert state.apply(kind, *arguments) == 0, call
        key = state.state()
        if key not in self._admitted:
            self._admitted[key] = [state.admits(info) for info in self._events]
        admitted = self._admitted[key]
        if not attached:
            return Ran(state, attached, admitted)
        handed = b"".join(packed for packed, is_on in zip(self._packed, admitted, strict=True) if is_on)
        said = self._run(target, number, handed, sum(admitted)).split("\n\n", 1)[1]
        answers = [*re.findall("([ms]*)([01])", said)]
        of_event = [number for number, is_on in enumerate(admitted) if is_on]
        marks, stops = (
            [number for number, (acts, _) in zip(of_event, answers, strict=True) for _ in range(acts.count(sign))]
            for sign in "ms"
        )
        results = iter(answers)
        passes = [is_on and next(results)[1] == "1" for is_on in admitted]
        return Ran(state, attached, passes, marks, stops)

    def _run(self, target: Path, number: int, events: bytes, count: int = 0) -> str:
        given = self._processes + struct.pack("=I", count) + events
        found = subprocess.run([target, str(number)], input=given, capture_output=True, check=False, timeout=30)
        assert found.returncode == 0, found.stderr
        return found.stdout.decode("ascii")


def passed(capture: Everything, programs: Sequence[RulesProgram], folder: Path) -> list[np.ndarray]:
    """Return per program the rows of the events that it lets pass."""
    release, trace = capture.trace.release, capture.trace
    target, _ = compiled([program.source for program in programs], release, folder)
    processes = dict(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True))
    runner = Runner(
        release,
        {pid: name.encode() for pid, name in processes.items() if pid > 0},
        [given.info for given in capture.given],
    )
    rows = np.array([given.row for given in capture.given])
    return [np.sort(rows[np.array(runner.run(target, number).passes, np.bool_)]) for number in range(len(programs))]
