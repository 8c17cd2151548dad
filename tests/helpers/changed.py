"""Workloads that are really changed, as somebody would who edits them: what predictions are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, MutexLock, ThreadCreate, TimerCreate
from satview.capture.sim.parts.threads import Policy, Program
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
        before, after: Called with the kernel before and after the set-up.
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
    after: Callable[[Kernel], None] | None = None
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


def changed(name: str, change: RealChange) -> Workload:
    """Return a workload with one change made."""
    workload = find(name)

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
            change.after(kernel)

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


def with_load(priority: int, period_ns: int, work_ns: int) -> Callable[[Kernel], None]:
    """Return what adds a thread that works for a time in each period."""

    def work(_count: int) -> Program:
        yield Compute(work_ns)

    def add(kernel: Kernel) -> None:
        kernel.spawn("whatif/load", partial(periodic, period_ns, work, priority=priority), priority=priority)

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


CHANGES: dict[str, dict[str, RealChange]] = {
    "nothing": {name: RealChange(()) for name in ("client-server", "nested-servers", "periodic", "automotive")},
    "another seed": {
        name: RealChange((), seed=100) for name in ("client-server", "nested-servers", "periodic", "automotive")
    },
    "priority": {
        "client-server": RealChange(("client4:priority=20",), "client4", priority=20),
        "nested-servers": RealChange(("screen:priority=20",), "screen", priority=20),
        "periodic": RealChange(("slow:priority=22",), "slow", priority=22),
        "automotive": RealChange(("planner 1:priority=15",), "planner", priority=15),
    },
    "policy": {
        "nested-servers": RealChange(("store:policy=fifo",), "store", policy=Policy.FIFO),
        "automotive": RealChange(("map_update 1:policy=fifo",), "map_update", policy=Policy.FIFO),
    },
    "runmask": {
        "nested-servers": RealChange(("store:runmask=0x2",), "store", runmask=2),
        "automotive": RealChange(("planner 1:runmask=0x1",), "planner", runmask=1),
    },
    "cpus": {
        "nested-servers": RealChange(("cpus=1",), cpus=1),
        "client-server": RealChange(("cpus=2",), cpus=2),
        "periodic": RealChange(("cpus=2",), cpus=2),
        "automotive": RealChange(("cpus=2",), cpus=2),
    },
    "threads": {
        "nested-servers": RealChange(("front:threads=1",), "front", edit=pool_of(2, 1)),
        "automotive": RealChange(("devb-ahci:threads=6",), "devb-ahci", edit=pool_of(3, 6)),
    },
    "speed": {
        "nested-servers": RealChange(("store:speed=2",), "store", edit=faster(2)),
        "periodic": RealChange(("middle:speed=2",), "middle", edit=faster(2)),
        "automotive": RealChange(("sensor_fusion:speed=2",), "sensor_fusion", edit=faster(2)),
    },
    "inherit": {
        "inversion": RealChange(("lock {mutex}:inherit=yes",), edit=inheriting(True)),
        "inheritance": RealChange(("lock {mutex}:inherit=no",), edit=inheriting(False)),
    },
    "budget": {
        "partitions": RealChange(("partition Drivers:budget=60",), before=with_shares({"Drivers": 60})),
        "partition-starvation": RealChange(("partition Telemetry:budget=50",), before=with_shares({"Telemetry": 50})),
    },
    "ceiling": {"inversion": RealChange(("lock {mutex}:ceiling=30",), edit=with_ceiling(30))},
    "rate": {"automotive": RealChange(("interrupt 12:rate=2",), before=interrupts_faster(12, 2))},
    "load": {
        "nested-servers": RealChange(
            ("load burner:period=10ms,work=2ms,priority=30",), after=with_load(30, 10 * MS, 2 * MS)
        ),
        "automotive": RealChange(
            ("load burner:period=10ms,work=4ms,priority=30",), after=with_load(30, 10 * MS, 4 * MS)
        ),
        "periodic": RealChange(("load burner:period=20ms,work=1ms,priority=40",), after=with_load(40, 20 * MS, MS)),
    },
}
"""By kind of change and workload."""
