"""Kernel calls for priority, policy and partition of threads, and calls that change no state of a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from satview.base.time import NS_PER_S
from satview.capture.sim.calls.call import Call, check_io, effective_priority
from satview.capture.sim.calls.messages import live_connection, received_message
from satview.capture.sim.calls.processes import find_thread
from satview.capture.sim.scheduler import SLICE_TICKS
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import WINDOW_MS, Cpu, Partition, Policy, Sporadic, Thread
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.layout import canonical
from satview.events.spec import Release
from satview.events.wire import WireClass

# Kernel calls that set or query priority, scheduling policy and partition of threads.


__all__ = [
    "PLAIN_CALLS",
    "KernelCall",
    "SchedCtl",
    "SchedGet",
    "SchedInfo",
    "SchedJoinPartition",
    "SchedSet",
    "SchedYield",
]

_PRIVILEGED = 64  # lowest priority that requires privileges


@dataclass(slots=True)
class SchedYield(Call):
    """Yield the CPU to ready threads of the same priority."""

    name = "SCHED_YIELD"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Move the caller to the end of the ready queue of its priority."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        cpu.is_yielding = True


@dataclass(slots=True)
class SchedSet(Call):
    """Set priority and policy of the calling thread; the last four fields are for sporadic scheduling."""

    name = "SCHED_SET"
    priority: int
    policy: Policy = Policy.RR
    low_priority: int = 0
    budget_ns: int = 0
    period_ns: int = 0
    max_replenishments: int = 8

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: policy, priorities and sporadic budget."""
        return {
            "policy": self.policy,
            "sched_priority": self.priority,
            "param.ss_low_priority": self.low_priority,
            "param.ss_max_repl": self.max_replenishments,
            "param.ss_repl_period.tv_sec": self.period_ns // NS_PER_S,
            "param.ss_repl_period.tv_nsec": self.period_ns % NS_PER_S,
            "param.ss_init_budget.tv_sec": self.budget_ns // NS_PER_S,
            "param.ss_init_budget.tv_nsec": self.budget_ns % NS_PER_S,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set priority and policy of the caller.

        Raises:
            QnxError: EINVAL (the priority is not 1 to 255; sporadic: not low priority < priority, or budget > period).
        """
        kernel.enter(cpu, thread, self)
        if not 1 <= self.priority <= 255:
            raise QnxError(Errno.EINVAL, f"priority {self.priority}")
        thread.policy = self.policy
        thread.base_priority = self.priority
        thread.sporadic = None
        if self.policy is Policy.SPORADIC:
            if not 1 <= self.low_priority < self.priority or not 0 < self.budget_ns <= self.period_ns:
                raise QnxError(Errno.EINVAL, "sporadic scheduling needs low priority < priority, budget <= period")
            cycles = kernel.target.cycles
            thread.sporadic = Sporadic(
                self.priority,
                self.low_priority,
                cycles(self.budget_ns),
                cycles(self.period_ns),
                self.max_replenishments,
            )
            thread.sporadic.active_since = kernel.now
        kernel.complete(thread)
        kernel.scheduler.set_priority(cpu, thread, max(self.priority, effective_priority(thread)))


@dataclass(slots=True)
class SchedJoinPartition(Call):
    """Move the calling thread to a partition, by its number."""

    name = "SCHED_CTL"
    logs: ClassVar = {"cmd": 4, "data_p": 0x8047D00}
    partition: int
    is_critical: bool = False

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Move the caller to the partition.

        Raises:
            QnxError: EINVAL (no such partition).
        """
        kernel.enter(cpu, thread, self)
        partition = next((p for p in kernel.partitions if p.ident == self.partition), None)
        if partition is None:
            raise QnxError(Errno.EINVAL, f"no partition {self.partition}")
        thread.own_partition, thread.is_critical_itself = partition, self.is_critical
        if thread.lender is None:
            thread.partition, thread.is_critical = partition, self.is_critical
        kernel.complete(thread)


def _parameters(kernel: KernelServices, _thread: Thread, _partition: Partition | None) -> dict[str, int]:
    target = kernel.target
    return {
        "window_size_ms": WINDOW_MS,
        "number_of_partitions": len(kernel.partitions),
        "maximum_number_of_partitions": _MAX_PARTITIONS,
        "cycles_per_ms": target.cycles(1_000_000),
    }


def _usage(kernel: KernelServices, _thread: Thread, partition: Partition | None) -> dict[str, int]:
    assert partition is not None
    return {
        "partition_id": partition.ident,
        "running_time_cycles": partition.used_total,
        "critical_time_cycles": partition.critical_used,
        "window_size_cycles": kernel.target.cycles(WINDOW_MS * 1_000_000),
    }


def _last_bankruptcy(kernel: KernelServices, _thread: Thread, _partition: Partition | None) -> dict[str, int]:
    _, ident, (pid, tid) = kernel.truth.bankruptcies[-1] if kernel.truth.bankruptcies else (0, 0, (0, 0))
    ends = "at_the_last_bankruptcy"
    return {f"pid_{ends}": pid, f"tid_{ends}": tid, f"partition_id_{ends}": ident}


def _partitions_of_thread(_kernel: KernelServices, thread: Thread, _partition: Partition | None) -> dict[str, int]:
    own, current = thread.own_partition, thread.partition
    idents = {
        "original_partition_id": own.ident if own else 0,
        "inherited_partition_id": current.ident if current else 0,
    }
    return {"pid": thread.pid, "tid": thread.tid, **idents, "flags": int(thread.is_critical)}


def _partition_of_process(_kernel: KernelServices, thread: Thread, _partition: Partition | None) -> dict[str, int]:
    partition = thread.process.partition
    return {"pid": thread.pid, "partition_id": partition.ident if partition else 0}


def _budgets(_kernel: KernelServices, _thread: Thread, partition: Partition | None) -> dict[str, int]:
    assert partition is not None
    percent, critical_ms = partition.budget_percent, partition.critical_ms
    return {
        "partition_id": partition.ident,
        "percentage_budget": percent,
        "percentage_cpu_budget": percent,
        "critical_budget": critical_ms,
        "critical_budget_ms": critical_ms,
        "maximum_cpu_budget": 100,
        "budget_percent_scale": 100,
    }


def _thread_in_partition(_kernel: KernelServices, thread: Thread, partition: Partition | None) -> dict[str, int]:
    assert partition is not None
    return {"partition_id": partition.ident, "pid": thread.pid, "tid": thread.tid}


def _priorities(_kernel: KernelServices, _thread: Thread, _partition: Partition | None) -> dict[str, int]:
    old, new = "old_low_latency_priority", "new_low_latency_priority"
    return {old: _LOW_LATENCY, new: _LOW_LATENCY, "old_migrate_priority": 0, "new_migrate_priority": 0}


_MAX_PARTITIONS = 32
_LOW_LATENCY = 63
# Queries of SchedCtl(): name of the event that logs the answer, its arguments, and whether `partition` is required.
_Answer = Callable[[KernelServices, Thread, Partition | None], dict[str, int]]
_QUERIES: dict[str, tuple[str, _Answer, bool]] = {
    "parameters": ("APS_INFO", _parameters, False),
    "partition": ("APS_NEW_BUDGET", _budgets, True),
    "partition statistics": ("APS_PSTATS", _usage, True),
    "overall statistics": ("APS_OSTATS", _last_bankruptcy, False),
    "thread": ("APS_THREAD", _partitions_of_thread, False),
    "process": ("APS_PROCESS", _partition_of_process, False),
    "join": ("APS_JOIN", _thread_in_partition, True),
    "configure": ("SCHED_CONF", _priorities, False),
}


@dataclass(slots=True)
class SchedCtl(Call):
    """Query the partition scheduler, which logs the answer as a separate event (7.x on).

    Result: the arguments of that event. The numbers of the commands are unknown, so the command is logged as 0.

    Attributes:
        query: `parameters`, `partition`, `partition statistics`, `overall statistics`, `thread`, `process`,
            `configure`; `join` moves the caller into the partition.
        partition: Number of the partition, for queries about a partition.
    """

    name = "SCHED_CTL"
    logs: ClassVar = {"data_p": 0x8047D00}
    query: str
    partition: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Log and return the answer to the query.

        Raises:
            QnxError: ENOSYS (no partition scheduler); EINVAL (no such query or partition).
        """
        kernel.enter(cpu, thread, self)
        if not kernel.partitions:
            raise QnxError(Errno.ENOSYS, "no partition scheduler is loaded")
        partition = next((p for p in kernel.partitions if p.ident == self.partition), None)
        if self.query not in _QUERIES or (partition is None and _QUERIES[self.query][2]):
            raise QnxError(Errno.EINVAL, f"{self.query} of partition {self.partition}")
        event, answer, _ = _QUERIES[self.query]
        if self.query == "join":
            thread.own_partition = partition
            if thread.lender is None:
                thread.partition = partition
        values = answer(kernel, thread, partition)
        kernel.record.system(cpu.index, kernel.stamp(), event, dict(values))
        kernel.complete(thread, values)


@dataclass(slots=True)
class SchedGet(Call):
    """Query a thread's scheduling; result: `(policy, base priority, effective priority)`."""

    name = "SCHED_GET"
    pid: int = 0
    tid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return policy and priorities of the thread."""
        kernel.enter(cpu, thread, self)
        other = find_thread(kernel, thread, self.pid, self.tid)
        kernel.complete(
            thread,
            (other.policy, other.base_priority, other.priority),
            ret_val=int(other.policy),
            sched_priority=other.base_priority,
            sched_curpriority=other.priority,
        )


@dataclass(slots=True)
class SchedInfo(Call):
    """Query the limits of a policy; result: `(lowest priority, highest priority, time slice in ns)`."""

    name = "SCHED_INFO"
    pid: int = 0
    policy: int = Policy.RR

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the limits of the policy.

        Raises:
            QnxError: EINVAL (no such policy).
        """
        kernel.enter(cpu, thread, self)
        if self.policy not in list(Policy):
            raise QnxError(Errno.EINVAL, f"policy {self.policy}")
        slice_ns = SLICE_TICKS * (kernel.target.tick_ns or 1_000_000)
        kernel.complete(
            thread,
            (1, 255, slice_ns),
            priority_min=1,
            priority_max=255,
            priority_priv=_PRIVILEGED,
            interval_sec=slice_ns // NS_PER_S,
            interval_nsec=slice_ns % NS_PER_S,
        )


# Kernel calls that do not change the state of a thread, as a table of their names and preconditions.


_Values = Mapping[str, int]
_RAW = ("word 0", "word 1")  # arguments of a call whose argument list is unknown


def _channel(_kernel: KernelServices, thread: Thread, values: _Values) -> None:
    chid = values.get("chid", 0)
    if chid not in thread.process.channels:
        raise QnxError(Errno.EINVAL, f"no channel {chid}")


def _connection(_kernel: KernelServices, thread: Thread, values: _Values) -> None:
    live_connection(thread, values.get("coid", 0))


def _message(_kernel: KernelServices, thread: Thread, values: _Values) -> None:
    received_message(thread, values.get("rcvid", 0))


def _other_thread(kernel: KernelServices, thread: Thread, values: _Values) -> None:
    find_thread(kernel, thread, values.get("pid", 0), values.get("tid", 0))


def _privilege(kernel: KernelServices, thread: Thread, _values: _Values) -> None:
    check_io(kernel, thread)


def _unused(_kernel: KernelServices, _thread: Thread, _values: _Values) -> None:
    raise QnxError(Errno.ENOSYS, "no call has this number")


def _nothing(_kernel: KernelServices, _thread: Thread, _values: _Values) -> None:
    """Check nothing, because the documentation describes no error conditions."""


# Calls by their precondition.
_ROWS: tuple[tuple[Callable[[KernelServices, Thread, _Values], None], str], ...] = (
    (_channel, "CHANCON_ATTR CHANNEL_CTL"),
    (_connection, "NET_CRED"),
    (_message, "MSG_PAUSE"),
    (_other_thread, "CLOCK_ID"),
    (_privilege, "INTERRUPT_CHARACTERISTIC"),
    (
        _nothing,
        "NOP SYS_CPUPAGE_GET SYS_CPUPAGE_SET SYS_SRANDOM SYS_CUSTOM CACHE_FLUSH CACHE_CONTROL MSG_REGISTER_EVENT "
        "CONNECT_DUPFD SYNC_CTL SCHED_WAYPOINT POWER_PARAMETER POWER_ACTIVE NET_INFOSCOID TIMER_DELEGATE TEST "
        "INTERRUPT_CTL INTERRUPT_QUERY INTERRUPT_UNBLOCK",
    ),
    (
        _unused,
        "SPARE1 SPARE2 SPARE3 SPARE4 SYS_SPARE1 SIGNAL_SPARE1 SIGNAL_SPARE2 CHANNEL_SPARE1 CONNECT_SPARE1 "
        "CONNECT_SPARE2 THREAD_SPARE1 THREAD_SPARE2 INTERRUPT_SPARE1 INTERRUPT_SPARE2 INTERRUPT_SPARE3 "
        "INTERRUPT_SPARE4 CLOCK_SPARE2 TIMER_SPARE1 TIMER_SPARE2 NET_SPARE1 NET_SPARE2 POWER_SPARE2 POWER_SPARE3 "
        "POWER_SPARE4 BAD",
    ),
)
PLAIN_CALLS = {name: check for check, names in _ROWS for name in names.split()}


@cache
def _argument_names(release: Release, call: str, event: int) -> frozenset[str]:
    """Return the argument names of a call's entry (event 0) or exit (event `KER_EXIT_OFFSET`) in a release."""
    book = catalogue(release)
    code = wire.code(WireClass.KER_CALL, (book.kernel_call_number(call) or 0) + event)
    specs = (book.spec(code), book.spec(code | wire.KER_64BIT))
    lists = [fields for spec in specs for fields in (spec.fast, spec.wide) if fields]
    return frozenset(canonical(entry.name) for fields in lists for entry in fields)


@dataclass(slots=True)
class KernelCall(Call):
    """A kernel call in `PLAIN_CALLS`; result: the first value of `returns`.

    Attributes:
        name: Name of the call in the event table, such as `CLOCK_ID`.
        values: Arguments by their names in the event table, such as `{"pid": 1}`; others are 0. A call whose argument
            list is unknown has `word 0` and `word 1`.
        returns: Arguments of the exit by name; only `ret_val` for a call whose argument list is unknown.
        error: Error number with which the call fails; 0 = success.
    """

    name: str
    values: _Values = field(default_factory=dict)
    returns: _Values = field(default_factory=dict)
    error: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: those in `values`."""
        return {canonical(name): value for name, value in self.values.items()}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Check the call's arguments and precondition, and complete the call.

        Raises:
            QnxError: EINVAL (the call is not in the table, or does not have an argument); ENOSYS (a spare call number);
                the error of its precondition, or `error`.
        """
        check = PLAIN_CALLS.get(self.name)
        if check is None:
            fault = f"yielded KernelCall({self.name!r:.40}), which is not a call, or has a class of its own"
            kernel.fault(thread, fault, thread.location())
            raise QnxError(Errno.EINVAL)
        if kernel.target.has_call(self.name):
            self._check_names(kernel, thread)
        kernel.enter(cpu, thread, self)
        check(kernel, thread, self.values)
        if self.error:
            raise QnxError(Errno(self.error))
        kernel.complete(thread, next(iter(self.returns.values()), 0), **dict(self.returns))

    def _check_names(self, kernel: KernelServices, thread: Thread) -> None:
        release = kernel.target.release
        entry = _argument_names(release, self.name, 0) or frozenset(_RAW)
        leave = _argument_names(release, self.name, wire.KER_EXIT_OFFSET) or frozenset(("ret_val",))
        unknown = {canonical(name) for name in self.values} - entry | {canonical(name) for name in self.returns} - leave
        if unknown:
            fault = f"yielded KernelCall({self.name!r}) with {', '.join(sorted(unknown))}, which it does not have"
            kernel.fault(thread, fault, thread.location())
            raise QnxError(Errno.EINVAL)
