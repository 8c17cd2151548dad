"""Workloads that are really changed, as somebody would who edits them: what predictions are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    Compute,
    InterruptAttach,
    InterruptAttachEvent,
    InterruptUnmask,
    InterruptWait,
    MsgSendPulse,
    MutexLock,
    ThreadCreate,
    ThreadCtl,
    TimerCreate,
)
from satview.capture.sim.threads import Policy, Program
from satview.capture.workloads.parts import MS, periodic
from satview.capture.workloads.registry import Workload, find

Edit = Callable[[Any], Any]  # of each thing that the program of a thread yields; a list stands for several


@dataclass(frozen=True, slots=True)
class RealChange:
    """One change, as it is said to `satview whatif`, and as it is made to a workload.

    Attributes:
        said: Texts for `--set`.
        process: Short name of the process that is edited; empty = the kernel, or every process.
        priority, policy, runmask: Of its first thread and its pulses; None = as it is.
        edit: Of what its threads yield.
        before: Called with the kernel before the set-up.
        after: Called with the kernel after it, and with the time before the capture begins, in ns.
        cpus: 0 = as the workload has it.
        seed: Added to that of the record: how far two runs of one workload are apart.
    """

    said: tuple[str, ...]
    process: str = ""
    priority: int | None = None
    policy: Policy | None = None
    runmask: int | None = None
    edit: Edit | None = None
    before: Callable[[Kernel], None] | None = None
    after: Callable[[Kernel, int], None] | None = None
    cpus: int = 0
    seed: int = 0


def edited(program: Program, edit: Edit) -> Program:
    """Run a program with everything that it yields edited, and what it starts too."""
    value, error = None, None
    while True:
        try:
            item = program.throw(error) if error is not None else program.send(value)
        except StopIteration as end:
            return end.value
        error = None
        if isinstance(item, ThreadCreate):
            item = replace(item, body=_edited_body(item.body, edit))
        changed_item = edit(item)
        try:
            for call in changed_item if isinstance(changed_item, list) else [changed_item]:
                value = yield call
        except Exception as raised:  # noqa: BLE001  -- what a call raises is the program's to handle
            error = raised


def _edited_body(body: Callable[..., Program], edit: Edit) -> Callable[..., Program]:
    def run(*args: Any) -> Program:
        return (yield from edited(body(*args), edit))

    return run


def changed(name: str, change: RealChange, lead_in_ns: int = -1) -> Workload:
    """Return a workload with one change made.

    Args:
        name: Of the workload.
        change: What is changed, from the very begin on.
        lead_in_ns: Time before the capture begins; -1 = as the workload likes it.
    """
    workload = find(name)
    if lead_in_ns >= 0:
        workload = replace(workload, lead_in_ns=lead_in_ns)

    def setup(kernel: Kernel) -> None:
        if change.before is not None:
            change.before(kernel)
        spawn = kernel.spawn

        def spawn_changed(path: str, body: Callable[..., Program], *args: Any, **named: Any) -> Any:
            if change.process in ("", path.rsplit("/", 1)[-1]):
                for key in ("priority", "policy", "runmask"):
                    if getattr(change, key) is not None:
                        named[key] = getattr(change, key)
                edits = [edit for edit in (change.edit, _pulses_at(change.priority)) if edit is not None]
                for edit in edits:
                    body = _edited_body(body, edit)
            return spawn(path, body, *args, **named)

        kernel.spawn = spawn_changed  # type: ignore[method-assign]
        workload.setup(kernel)
        kernel.spawn = spawn  # type: ignore[method-assign]
        if change.after is not None:
            change.after(kernel, workload.lead_in_ns)

    return replace(workload, setup=setup, cpus=change.cpus or workload.cpus)


def _pulses_at(priority: int | None) -> Edit | None:
    if priority is None:
        return None

    def edit(item: Any) -> Any:
        return replace(item, event=replace(item.event, priority=priority)) if isinstance(item, TimerCreate) else item

    return edit


def faster(factor: float) -> Edit:
    """Return an edit that makes user code faster."""
    return lambda item: Compute(int(item.ns / factor)) if isinstance(item, Compute) else item


def inheriting(inherits: bool) -> Edit:
    """Return an edit that sets whether mutexes have priority inheritance."""

    def edit(item: Any) -> Any:
        if isinstance(item, MutexLock):
            item.mutex.inherit = inherits
        return item

    return edit


def pool_of(recorded: int, wanted: int) -> Edit:
    """Return an edit that makes a pool of threads larger or smaller: its last worker is created more often, or not."""

    def edit(item: Any) -> Any:
        if not isinstance(item, ThreadCreate) or item.thread_name != f"worker-{recorded}":
            return item
        names = [f"worker-{number}" for number in range(recorded, wanted + 1)]
        return [replace(item, thread_name=name) for name in names] or Compute(200)

    return edit


def with_load(priority: int, period_ns: int, work_ns: int) -> Callable[[Kernel, int], None]:
    """Return what adds a thread that works for a time in each period, from the start of the capture on."""

    def work(_count: int) -> Program:
        yield Compute(work_ns)

    def add(kernel: Kernel, lead_in_ns: int) -> None:
        program = partial(periodic, period_ns, work, offset_ns=lead_in_ns, priority=priority)
        kernel.spawn("whatif/load", program, priority=priority)

    return add


def with_shares(percents: dict[str, int]) -> Callable[[Kernel], None]:
    """Return what gives partitions other budgets."""

    def change(kernel: Kernel) -> None:
        partitions = kernel.partitions

        def partitions_changed(*shares: tuple[str, int, int]) -> Any:
            return partitions(*((name, percents.get(name, percent), ms) for name, percent, ms in shares))

        kernel.partitions = partitions_changed  # type: ignore[method-assign]

    return change


def with_ceiling(priority: int) -> Edit:
    """Return an edit that gives mutexes a ceiling."""

    def edit(item: Any) -> Any:
        if isinstance(item, MutexLock):
            item.mutex.ceiling = priority
        return item

    return edit


def interrupts_faster(vector: int, rate: float) -> Callable[[Kernel], None]:
    """Return what lets an interrupt come so many times as often."""

    def change(kernel: Kernel) -> None:
        device = kernel.device

        def device_changed(number: int, gap_ns: Callable[[], int | None], cpu: int = 0) -> Any:
            if number != vector:
                return device(number, gap_ns, cpu)

            def faster_gap() -> int | None:
                gap = gap_ns()
                return None if gap is None else int(gap / rate)

            return device(number, faster_gap, cpu)

        kernel.device = device_changed  # type: ignore[method-assign]

    return change


def handlers_in_threads(priority: int) -> Edit:
    """Return an edit that lets a thread do what an interrupt handler does, as long as that takes."""

    def handling(attach: InterruptAttach) -> Program:
        yield ThreadCtl()
        ident = yield InterruptAttachEvent(attach.vector)
        while True:
            yield InterruptWait()
            yield Compute(attach.handler_ns)
            event = attach.handler()
            if event is not None:
                yield MsgSendPulse(event.coid, event.priority, event.code, event.value)
            yield InterruptUnmask(attach.vector, ident)

    def edit(item: Any) -> Any:
        if not isinstance(item, InterruptAttach):
            return item
        return ThreadCreate(handling, (item,), priority, Policy.FIFO, f"interrupt-{item.vector}")

    return edit


_CAR_LOAD = RealChange(("load burner:period=10ms,work=4ms,priority=30",), after=with_load(30, 10 * MS, 4 * MS))
_LOAD = RealChange(("load burner:period=10ms,work=2ms,priority=30",), after=with_load(30, 10 * MS, 2 * MS))
_WORKLOADS = (
    "automotive", "client-server", "convoy", "inheritance", "instrumented", "interrupt-flood", "inversion",
    "meeting-points", "nested-servers", "partition-starvation", "partitions", "periodic", "small-system", "starvation",
    "virtual-machine",
)  # fmt: skip

CHANGES: dict[str, dict[str, RealChange]] = {
    "nothing": {name: RealChange(()) for name in _WORKLOADS},
    "another seed": {name: RealChange((), seed=100) for name in _WORKLOADS},
    "priority": {
        "automotive": RealChange(("planner 1:priority=15",), "planner", priority=15),
        "client-server": RealChange(("client4:priority=20",), "client4", priority=20),
        "instrumented": RealChange(("reader 1:priority=15",), "reader", priority=15),
        "inversion": RealChange(("middle:priority=5",), "middle", priority=5),
        "nested-servers": RealChange(("screen:priority=20",), "screen", priority=20),
        "partitions": RealChange(("devc-critical:priority=35",), "devc-critical", priority=35),
        "periodic": RealChange(("slow:priority=22",), "slow", priority=22),
        "small-system": RealChange(("io-graphics:priority=25",), "io-graphics", priority=25),
        "starvation": RealChange(("ticker:priority=15",), "ticker", priority=15),
    },
    "policy": {
        "automotive": RealChange(("map_update 1:policy=fifo",), "map_update", policy=Policy.FIFO),
        "nested-servers": RealChange(("store:policy=fifo",), "store", policy=Policy.FIFO),
        "periodic": RealChange(("fast:policy=rr",), "fast", policy=Policy.RR),
    },
    "runmask": {
        "automotive": RealChange(("planner 1:runmask=0x1",), "planner", runmask=1),
        "instrumented": RealChange(("planner 1:runmask=0x2",), "planner", runmask=2),
        "nested-servers": RealChange(("store:runmask=0x2",), "store", runmask=2),
        "virtual-machine": RealChange(("host 1:runmask=0x1",), "host", runmask=1),
    },
    "cpus": {
        "automotive": RealChange(("cpus=2",), cpus=2),
        "client-server": RealChange(("cpus=2",), cpus=2),
        "convoy": RealChange(("cpus=2",), cpus=2),
        "inheritance": RealChange(("cpus=2",), cpus=2),
        "instrumented": RealChange(("cpus=1",), cpus=1),
        "inversion": RealChange(("cpus=2",), cpus=2),
        "meeting-points": RealChange(("cpus=1",), cpus=1),
        "nested-servers": RealChange(("cpus=1",), cpus=1),
        "periodic": RealChange(("cpus=2",), cpus=2),
        "small-system": RealChange(("cpus=2",), cpus=2),
        "starvation": RealChange(("cpus=2",), cpus=2),
        "virtual-machine": RealChange(("cpus=1",), cpus=1),
    },
    "threads": {
        "automotive": RealChange(("devb-ahci:threads=6",), "devb-ahci", edit=pool_of(3, 6)),
        "nested-servers": RealChange(("front:threads=1",), "front", edit=pool_of(2, 1)),
    },
    "speed": {
        "automotive": RealChange(("sensor_fusion:speed=2",), "sensor_fusion", edit=faster(2)),
        "client-server": RealChange(("client1:speed=0.5",), "client1", edit=faster(0.5)),
        "convoy": RealChange(("convoy:speed=0.1",), "convoy", edit=faster(0.1)),
        "inheritance": RealChange(("low:speed=2",), "low", edit=faster(2)),
        "instrumented": RealChange(("planner:speed=2",), "planner", edit=faster(2)),
        "interrupt-flood": RealChange(("devc-wild:speed=2",), "devc-wild", edit=faster(2)),
        "inversion": RealChange(("middle:speed=2",), "middle", edit=faster(2)),
        "meeting-points": RealChange(("meeting_points:speed=2",), "meeting_points", edit=faster(2)),
        "nested-servers": RealChange(("store:speed=2",), "store", edit=faster(2)),
        "partitions": RealChange(("devc-critical:speed=2",), "devc-critical", edit=faster(2)),
        "periodic": RealChange(("middle:speed=2",), "middle", edit=faster(2)),
        "small-system": RealChange(("devb-eide:speed=2",), "devb-eide", edit=faster(2)),
        "starvation": RealChange(("ticker:speed=0.5",), "ticker", edit=faster(0.5)),
        "virtual-machine": RealChange(("host:speed=2",), "host", edit=faster(2)),
    },
    "inherit": {
        "inheritance": RealChange(("lock {mutex}:inherit=no",), edit=inheriting(False)),
        "inversion": RealChange(("lock {mutex}:inherit=yes",), edit=inheriting(True)),
    },
    "budget": {
        "partition-starvation": RealChange(("partition Telemetry:budget=50",), before=with_shares({"Telemetry": 50})),
        "partitions": RealChange(("partition Drivers:budget=60",), before=with_shares({"Drivers": 60})),
    },
    "ceiling": {"inversion": RealChange(("lock {mutex}:ceiling=30",), edit=with_ceiling(30))},
    "rate": {
        "automotive": RealChange(("interrupt 12:rate=2",), before=interrupts_faster(12, 2)),
        "small-system": RealChange(("interrupt 10:rate=2",), before=interrupts_faster(10, 2)),
    },
    "handler": {
        "automotive": RealChange(("interrupt 12:handler=thread 40",), "dev-can", edit=handlers_in_threads(40)),
        "interrupt-flood": RealChange(("interrupt 9:handler=thread 40",), "devc-wild", edit=handlers_in_threads(40)),
    },
    "load": {
        "automotive": _CAR_LOAD,
        "client-server": _LOAD,
        "convoy": _LOAD,
        "instrumented": _LOAD,
        "meeting-points": _LOAD,
        "nested-servers": _LOAD,
        "partitions": _LOAD,
        "periodic": RealChange(("load burner:period=20ms,work=1ms,priority=40",), after=with_load(40, 20 * MS, MS)),
        "small-system": _LOAD,
        "starvation": _LOAD,
        "virtual-machine": _LOAD,
    },
}
"""By kind of change and workload."""
