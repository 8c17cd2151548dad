"""Workloads that share CPUs: two threads, periodic tasks, a device with many interrupts, adaptive partitions."""

from __future__ import annotations

from satview.capture.kernel import Kernel, mode
from satview.capture.sim import calls
from satview.capture.sim.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, periodic

# A workload with periodic tasks: rate-monotonic priorities, jitter, and a missed deadline.


MARK_BEGIN, MARK_END, MARK_MISSED = 1, 2, 3
TASKS = (("fast", 10, 2, 30), ("middle", 20, 6, 20), ("slow", 50, 14, 10))  # name, period and run time in ms, priority
OVERLOAD_CYCLE = 12
_INSERT = mode("INSERTSUSEREVENT")


def setup_periodic(kernel: Kernel) -> None:
    """Start three periodic tasks that use 72 % of the CPU, and a thread under sporadic scheduling.

    In its period 12, counted from 0, the middle task runs four times as long.
    """
    machine = kernel.machine

    def cycle(number: int, period_ms: int, compute_ms: int, count: int) -> Program:
        begin_ns = machine.now * 1_000_000_000 // machine.target.cycles_per_s
        yield calls.TraceEvent(_INSERT, MARK_BEGIN, number, count)
        extra = 4 if number == 1 and count == OVERLOAD_CYCLE else 1
        yield calls.Compute(int(compute_ms * MS * extra * (0.8 + 0.2 * machine.random.random())))
        yield calls.TraceEvent(_INSERT, MARK_END, number, count)
        if machine.now * 1_000_000_000 // machine.target.cycles_per_s - begin_ns > period_ms * MS:
            yield calls.TraceEvent(_INSERT, MARK_MISSED, number, count)

    for number, (name, period_ms, compute_ms, priority) in enumerate(TASKS):
        kernel.spawn(
            f"usr/bin/{name}",
            periodic,
            period_ms * MS,
            cycle,
            number,
            period_ms,
            compute_ms,
            priority=priority,
            policy=Policy.FIFO,
            thread_name=f"{name}-{period_ms}ms",
        )
    kernel.spawn("usr/bin/sporadic", _sporadic, priority=25, thread_name="aperiodic")


def _sporadic() -> Program:
    """Run aperiodic load at high priority; sporadic scheduling limits it to 2 ms in 40 ms."""
    yield calls.SchedSet(25, Policy.SPORADIC, low_priority=5, budget_ns=2 * MS, period_ns=40 * MS)
    while True:
        yield calls.Sleep(33 * MS)
        yield calls.Compute(5 * MS)
        yield calls.Sleep(500 * US)


# Workloads with two threads: of high and low priority, as in the guide, and of equal priority.


HIGH, LOW = 20, 10
DEVICE_VECTOR = 5


def setup_two_threads(kernel: Kernel) -> None:
    """Start thread A, which waits for I/O, and thread B, which computes and is preempted when the I/O completes."""
    gaps = iter((12 * MS, None))
    kernel.device(DEVICE_VECTOR, lambda: next(gaps, None))
    kernel.spawn("usr/bin/two_threads", _main, priority=30, thread_name="main")


def _main() -> Program:
    yield calls.Compute(2 * MS)  # meanwhile the logger starts
    yield calls.ThreadCreate(_a, (), HIGH, Policy.FIFO, "A")
    yield calls.ThreadCreate(_b, (), LOW, Policy.FIFO, "B")


def _a() -> Program:
    """Run thread A: created (t1), blocks for I/O (t2), resumes when the I/O completes (t6), ends (t7)."""
    yield calls.ThreadCtl()
    ident = yield calls.InterruptAttachEvent(DEVICE_VECTOR)
    yield calls.InterruptWait()
    yield calls.InterruptUnmask(DEVICE_VECTOR, ident)
    yield calls.Compute(800 * US)


def _b() -> Program:
    """Run thread B: created (t3), makes kernel calls (t4), preempted (t5), continues (t8)."""
    for _ in range(6):
        yield calls.Compute(1500 * US)
        yield calls.ClockTime()
    yield calls.Compute(9 * MS)


def setup_polite(kernel: Kernel) -> None:
    """Start two threads of equal priority that yield the CPU to each other."""
    kernel.spawn("usr/bin/polite", _polite_main, priority=30)


def _polite_main() -> Program:
    yield calls.Compute(2 * MS)
    for name in ("after-you", "no-after-you"):
        yield calls.ThreadCreate(_polite, (), LOW, Policy.FIFO, name)


def _polite() -> Program:
    for _ in range(20):
        yield calls.Compute(600 * US)
        yield calls.SchedYield()


# A workload with a device whose interrupts are so frequent that nothing else runs.


VECTOR = 9
CALM_NS, FLOOD_NS = 4 * MS, 30 * US
FLOOD_BEGINS_MS, FLOOD_ENDS_MS = 60, 130


def setup_interrupt_flood(kernel: Kernel) -> None:
    """Start a device that floods CPU 0 with interrupts between 60 and 130 ms, its driver, and a program on CPU 0."""
    machine = kernel.machine
    begin, ms = machine.now, machine.target.cycles(MS)

    def gap() -> int:
        is_flood = begin + FLOOD_BEGINS_MS * ms <= machine.now < begin + FLOOD_ENDS_MS * ms
        return int((FLOOD_NS if is_flood else CALM_NS) * (0.8 + 0.4 * machine.random.random()))

    kernel.device(VECTOR, gap)
    kernel.spawn("sbin/devc-wild", _driver, kernel, priority=21, thread_name="driver")
    kernel.spawn("usr/bin/victim", _victim, priority=10, thread_name="victim", runmask=1)


def _driver(kernel: Kernel) -> Program:
    chid = yield calls.ChannelCreate()
    coid = yield calls.ConnectAttach(0, chid)
    pulse = calls.Sigevent("pulse", coid, 21, code=3)
    count = [0]

    def handler() -> calls.Sigevent | None:
        count[0] += 1
        return pulse if count[0] % 8 == 1 else None

    if kernel.target.has_handlers:
        yield calls.ThreadCtl()
        yield calls.InterruptAttach(VECTOR, handler, 12 * US)
        while True:
            yield calls.MsgReceive(chid)
            yield calls.Compute(40 * US)
    ident = yield calls.InterruptAttachEvent(VECTOR, pulse)
    while True:
        yield calls.MsgReceive(chid)
        yield calls.Compute(12 * US)
        yield calls.InterruptUnmask(VECTOR, ident)


def _victim() -> Program:
    while True:
        yield calls.Compute(5 * MS)


# Workloads with adaptive partitions that together need more CPU time than exists.


SHARES = (("Drivers", 30, 10), ("Multimedia", 20, 0))  # name, percent, critical ms


def setup_partitions(kernel: Kernel) -> None:
    """Start a CPU-bound thread limited to 20 % in Multimedia, and a driver that exceeds its critical budget."""
    drivers, multimedia = kernel.partitions(*SHARES)
    kernel.spawn("opt/media/player", _hog, multimedia.ident, priority=30, policy=Policy.FIFO, thread_name="hog")
    kernel.spawn(
        "sbin/devc-critical", _critical, drivers.ident, priority=25, policy=Policy.FIFO, thread_name="critical"
    )
    kernel.spawn("usr/bin/shell", _background, priority=10, thread_name="background")


def _hog(partition: int) -> Program:
    yield calls.SchedJoinPartition(partition)
    while True:
        yield calls.Compute(5 * MS)


def _critical(partition: int) -> Program:
    yield calls.SchedJoinPartition(partition, is_critical=True)
    for _ in range(8):
        yield calls.Sleep(20 * MS)
        yield calls.Compute(4 * MS)
    yield calls.Sleep(100 * MS)
    yield calls.Compute(80 * MS)  # far above budget and critical budget
    while True:
        yield calls.Sleep(20 * MS)
        yield calls.Compute(4 * MS)


def _background() -> Program:
    while True:
        yield calls.Compute(3 * MS)


def setup_partition_starvation(kernel: Kernel) -> None:
    """Start a thread that uses up the budget of its partition, so that another thread of the partition starves."""
    [telemetry] = kernel.partitions(("Telemetry", 20, 0))

    def main() -> Program:
        yield calls.SchedJoinPartition(telemetry.ident)
        yield calls.ThreadCreate(_sampler, (telemetry.ident,), 20, Policy.FIFO, "sampler")
        yield calls.ThreadCreate(_uploader, (telemetry.ident,), 15, Policy.FIFO, "uploader")

    kernel.spawn("opt/telemetry", main, priority=25)
    kernel.spawn("usr/bin/render", _background, priority=10, thread_name="render")


def _sampler(partition: int) -> Program:
    yield calls.SchedJoinPartition(partition)
    yield calls.Sleep(30 * MS)  # no problem until now
    while True:
        yield calls.Compute(2 * MS)  # the mistake: it samples without a pause


def _uploader(partition: int) -> Program:
    yield calls.SchedJoinPartition(partition)
    while True:
        yield calls.Sleep(10 * MS)
        yield calls.Compute(100 * US)
