"""Kernel calls about threads, scheduling, signals, synchronisation objects and interrupts that answer at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.capture.sim import signals
from satview.capture.sim.call_base import CLOCK_MONOTONIC, Call
from satview.capture.sim.errors import Errno, QnxError
from satview.capture.sim.objects import Mutex, SyncObject
from satview.capture.sim.privilege import TCTL_IO
from satview.capture.sim.process_calls import SignalKill
from satview.capture.sim.prompt import Answer, PromptCall
from satview.capture.sim.threads import Policy, Thread

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK = 0, 1, 2
_SIGKILL, _SIGSTOP = 9, 23
_PRIVILEGED = 64         # priority from which on a program needs privileges
_SECOND_NS = 1_000_000_000


def _thread_of(machine: Machine, thread: Thread, pid: int, tid: int) -> Thread:
    process = machine.processes.get(pid) if pid else thread.process
    found = process.threads.get(tid) if process is not None and tid else thread if not pid else None
    if process is not None and found is None and not tid:
        found = next(iter(process.threads.values()), None)
    if found is None or found.state == "DEAD":
        raise QnxError(Errno.ESRCH, f"no thread {tid} in process {pid}" if pid else f"no thread {tid}")
    return found


@dataclass(slots=True)
class ThreadDetach(PromptCall):
    """Let a thread end without anybody joining it; tid 0 = the caller."""

    name = "THREAD_DETACH"
    tid: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:
        """Mark the thread; a second time is an error."""
        other = _thread_of(machine, thread, 0, self.tid)
        if other.is_detached:
            raise QnxError(Errno.EINVAL, f"thread {self.tid} is detached already")
        other.is_detached = True
        if other.joiner is not None:
            machine.fail(other.joiner, Errno.EINVAL)
            machine.wake(cpu, other.joiner, waker=thread)
            other.joiner = None
        return 0, {}


@dataclass(slots=True)
class ThreadCancel(PromptCall):
    """Let a thread end itself as soon as it waits; its program gets `ThreadCancelled` at the `yield`."""

    name = "THREAD_CANCEL"
    tid: int
    canstub_p: int = 0x78120

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:
        """Take the thread out of its wait, or note it for the next one."""
        machine.cancel(cpu, _thread_of(machine, thread, 0, self.tid))
        return 0, {}


@dataclass(slots=True)
class ThreadCtl(PromptCall):
    """Change how a thread runs. `_NTO_TCTL_IO`, the default, gives the caller I/O privilege.

    Names and CPUs have calls of their own; the other commands have no effect.
    """

    name = "THREAD_CTL"
    cmd: int = TCTL_IO
    data_p: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Grant I/O privilege: everybody is root here."""
        if self.cmd == TCTL_IO:
            thread.has_io = True
        return 0, {}


@dataclass(slots=True)
class SchedGet(PromptCall):
    """Ask for a thread's scheduling; result `(policy, own priority, effective priority)`."""

    name = "SCHED_GET"
    pid: int = 0
    tid: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return policy and priorities."""
        other = _thread_of(machine, thread, self.pid, self.tid)
        return (other.policy, other.base_priority, other.priority), {
            "ret_val": int(other.policy), "sched_priority": other.base_priority, "sched_curpriority": other.priority}


@dataclass(slots=True)
class SchedInfo(PromptCall):
    """Ask for the bounds of a policy; result `(lowest, highest priority, time slice in ns)`."""

    name = "SCHED_INFO"
    pid: int = 0
    policy: int = Policy.RR

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return the bounds."""
        if self.policy not in list(Policy):
            raise QnxError(Errno.EINVAL, f"policy {self.policy}")
        slice_ns = machine.slice_ns
        return (1, 255, slice_ns), {"priority_min": 1, "priority_max": 255, "interval_sec": slice_ns // _SECOND_NS,
                                    "interval_nsec": slice_ns % _SECOND_NS, "priority_priv": _PRIVILEGED}


@dataclass(slots=True)
class SignalKillSigval(SignalKill):
    """Send a signal with a value (7.x on)."""

    name = "SIGNAL_KILL_SIGVAL"

    def older(self) -> Call:
        """Send it without the value's type."""
        return SignalKill(self.pid, self.tid, self.signo, self.code, self.value)


@dataclass(slots=True)
class SignalProcmask(PromptCall):
    """Block or unblock signals of the calling thread; result: the signals blocked before."""

    name = "SIGNAL_PROCMASK"
    how: int = SIG_BLOCK
    signals: tuple[int, ...] = ()

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return operation and signals; pid and tid 0 stand for the caller."""
        return {"how": self.how, **_signal_bits(self.signals, "sig_blocked")}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:
        """Change the mask; signals that came while they were blocked come now."""
        old, chosen = thread.blocked_signals, frozenset(self.signals) - {_SIGKILL, _SIGSTOP}
        changes = {SIG_BLOCK: old | chosen, SIG_UNBLOCK: old - chosen, SIG_SETMASK: chosen}
        if self.how not in changes:
            raise QnxError(Errno.EINVAL, f"how {self.how}")
        thread.blocked_signals = changes[self.how]
        due = [entry for entry in thread.held_signals if entry[0] not in thread.blocked_signals]
        thread.held_signals = [entry for entry in thread.held_signals if entry[0] in thread.blocked_signals]
        for signo, code in due:
            signals.route(machine, cpu, thread, signo, code)
        bits = _signal_bits(tuple(old), "sig_blocked")
        return tuple(sorted(old)), bits | {f"old_{name}": value for name, value in bits.items()}


def _signal_bits(signals: tuple[int, ...], prefix: str) -> dict[str, int]:
    bits = sum(1 << signo - 1 for signo in signals if 1 <= signo <= 64)
    return {f"{prefix}->bits[0]": bits & 0xFFFFFFFF, f"{prefix}->bits[1]": bits >> 32}


@dataclass(slots=True)
class SyncCreate(PromptCall):
    """Let the kernel know an object; needed for those with attributes only."""

    name = "SYNC_CREATE"
    sync: SyncObject

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the object."""
        return {**self.sync.values(), "clockid": CLOCK_MONOTONIC}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Make it usable (again)."""
        self.sync.is_destroyed = False
        return 0, {}


@dataclass(slots=True)
class SyncDestroy(PromptCall):
    """Remove an object; not while somebody has it or waits for it."""

    name = "SYNC_DESTROY"
    sync: SyncObject

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the object."""
        return self.sync.values()

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Refuse if it is in use."""
        if self.sync.is_destroyed:
            raise QnxError(Errno.EINVAL, f"{self.sync.label} is destroyed already")
        if self.sync.waiters or getattr(self.sync, "owner", None) is not None:
            raise QnxError(Errno.EBUSY, self.sync.label)
        self.sync.is_destroyed = True
        return 0, {}


@dataclass(slots=True)
class SyncMutexRevive(PromptCall):
    """Take over a mutex whose owner has died (up to 7.x)."""

    name = "SYNC_MUTEX_REVIVE"
    mutex: Mutex

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the mutex."""
        return self.mutex.values()

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Give the mutex to the caller."""
        owner = self.mutex.owner
        if owner is None or owner.state != "DEAD":
            raise QnxError(Errno.EINVAL, f"the owner of {self.mutex.label} is alive")
        self.mutex.owner = thread
        thread.held.append(self.mutex)
        return 0, {}


@dataclass(slots=True)
class InterruptMask(PromptCall):
    """Keep an interrupt from the caller's process until `InterruptUnmask`; result: how often it is masked now."""

    name = "INTERRUPT_MASK"
    vector: int
    ident: int = -1

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return vector and id."""
        return {"intr": self.vector, "id": self.ident}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Mask what the process has attached there."""
        source = machine.sources.get(self.vector)
        mine = [a for a in source.attachments if a.process is thread.process] if source is not None else []
        if not mine:
            raise QnxError(Errno.EINVAL, f"nothing attached to interrupt {self.vector}")
        for attachment in mine:
            attachment.is_masked = True
        return 1, {"mask_level": 1}
