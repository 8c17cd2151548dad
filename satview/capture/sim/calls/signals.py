"""Signals: kernel calls, delivery and handlers, and the page faults and exceptions that become signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from satview.capture.sim.calls.call import SIGCONT, SIGSTOP, Call, code_address
from satview.capture.sim.calls.processes import continue_thread, kill, request, stop_thread
from satview.capture.sim.calls.timers import unblock
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import Body, Cpu, Process, Thread

# Kernel calls for signals, delivery of signals, and signal handlers, which are generators like programs.


__all__ = [
    "SIG_BLOCK",
    "SIG_SETMASK",
    "SIG_UNBLOCK",
    "SignalAction",
    "SignalFault",
    "SignalKill",
    "SignalKillSigval",
    "SignalProcmask",
    "SignalSuspend",
    "SignalWaitinfo",
    "Touch",
]

SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK = 0, 1, 2
_STOP_BY_DEFAULT = frozenset({24, 26, 27})  # SIGTSTP, SIGTTIN, SIGTTOU
IGNORED_BY_DEFAULT = frozenset({18, 20, 21})  # SIGCHLD, SIGWINCH, SIGURG
# States in which a signal stays pending until the thread runs again.
_NOT_BLOCKED = ("READY", "RUNNING", "DEAD", "STOPPED", "WAITPAGE", "WAITCTX", "STACK")
_SIGKILL = 9


def post(kernel: KernelServices, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
    """Send a signal to a process, or to its thread `target`, and log it."""
    thread = target or _receiver_of(process, signo)
    if thread is None:
        return
    time = kernel.history.cause = kernel.stamp()
    kernel.record.comm(cpu.index, time, "SIGNAL", (signo, code, 0, 0, 0, 0, 0, 0, 0), thread.pid, thread.tid)
    route(kernel, cpu, thread, signo, code)


def route(kernel: KernelServices, cpu: Cpu, thread: Thread, signo: int, code: int) -> None:
    """Deliver a signal to a thread: run its handler or default action, or end SignalWaitinfo.

    A signal that the thread blocks stays pending.
    """
    process = thread.process
    is_stop = signo == SIGSTOP or (signo in _STOP_BY_DEFAULT and signo not in process.handlers)
    if is_stop or signo == SIGCONT:
        for other in list(process.threads.values()):
            if is_stop:
                stop_thread(kernel, cpu, other)
            else:
                continue_thread(kernel, cpu, other, cpu.thread)
        if is_stop or signo not in process.handlers:
            return
    if thread.state == "SIGWAITINFO" and signo in thread.wait_signals:
        kernel.complete(thread, signo, sig_num=signo, si_signo=signo, si_code=code)
        kernel.wake(cpu, thread)
        return
    if signo in thread.blocked_signals:
        thread.held_signals.append((signo, code))
        return
    if signo in process.handlers:
        if process.handlers[signo] is not None:
            thread.pending_signals.append((signo, code))
            if thread.state not in _NOT_BLOCKED and unblock(kernel, cpu, thread, Errno.EINTR, "signal"):
                thread.finish = lambda: kernel.interrupted(kernel.cpus[thread.cpu], thread)
        return
    if signo not in IGNORED_BY_DEFAULT:
        kill(kernel, cpu, process, signo)


def _receiver_of(process: Process, signo: int) -> Thread | None:
    threads = [thread for thread in process.threads.values() if thread.state != "DEAD"]
    waiting = [thread for thread in threads if thread.state == "SIGWAITINFO" and signo in thread.wait_signals]
    free = [thread for thread in threads if signo not in thread.blocked_signals]
    return next(iter(waiting or free or threads), None)


def start_handler(kernel: KernelServices, thread: Thread) -> None:
    """Start the handler of the oldest signal delivered but not yet handled; the program continues after the handler."""
    signo, _ = thread.pending_signals.pop(0)
    body = thread.process.handlers.get(signo)
    if body is None:
        return
    thread.signal_frames.append((thread.generator, thread.value, thread.error, thread.remaining))
    thread.generator = body(signo)
    thread.value = thread.error = None
    thread.remaining = kernel.vary((200, 200))


def _signal_bits(signals: tuple[int, ...], prefix: str) -> dict[str, int]:
    bits = sum(1 << signo - 1 for signo in signals if 1 <= signo <= 64)
    return {f"{prefix}->bits[0]": bits & 0xFFFFFFFF, f"{prefix}->bits[1]": bits >> 32}


@dataclass(slots=True)
class HandlerEnd(Call):
    """The call with which a signal handler returns."""

    name = "SIGNAL_RETURN"
    logs: ClassVar = {"s_p": 0x8047AC0}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Continue the program or handler that the signal interrupted."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)

        def back() -> None:
            kernel.finish_silently(thread)
            thread.generator, thread.value, thread.error, thread.remaining = thread.signal_frames.pop()

        thread.finish = back


@dataclass(slots=True)
class SignalKill(Call):
    """Send a signal to a process (tid 0) or to one thread."""

    name = "SIGNAL_KILL"
    pid: int
    tid: int
    signo: int
    code: int = 0
    value: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the signal; signal 0 only checks that the target exists.

        Raises:
            QnxError: ESRCH (no such process or thread).
        """
        kernel.enter(cpu, thread, self)
        process = kernel.processes.get(self.pid) if self.pid else thread.process
        if process is None or process.is_dead or (self.tid and self.tid not in process.threads):
            raise QnxError(Errno.ESRCH, f"no process {self.pid}" + (f" thread {self.tid}" if self.tid else ""))
        kernel.complete(thread)
        if self.signo:
            post(kernel, cpu, process, process.threads.get(self.tid) if self.tid else None, self.signo, self.code)


@dataclass(slots=True)
class SignalKillSigval(SignalKill):
    """Send a signal with a value (7.x on)."""

    name = "SIGNAL_KILL_SIGVAL"

    def older(self) -> Call:
        """Return `SignalKill`, which sends the signal without the type of its value."""
        return SignalKill(self.pid, self.tid, self.signo, self.code, self.value)


@dataclass(slots=True)
class SignalAction(Call):
    """Set a signal's handler: a generator function, or None = ignore; `default=True` restores the default action."""

    name = "SIGNAL_ACTION"
    signo: int
    handler: Body | None = None
    default: bool = False

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: signal and address of the handler."""
        return {
            "signo": self.signo,
            "sigstub_p": 0x78010,
            "pid": 0,
            "act->sa_handler_p": code_address(self.handler, thread) if self.handler else 1,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set or remove a handler of the caller's process.

        Raises:
            QnxError: EINVAL (no such signal).
        """
        kernel.enter(cpu, thread, self)
        if not 1 <= self.signo <= 64:
            raise QnxError(Errno.EINVAL, f"signal {self.signo}")
        if self.default:
            thread.process.handlers.pop(self.signo, None)
        else:
            thread.process.handlers[self.signo] = self.handler
        kernel.complete(thread)


@dataclass(slots=True)
class SignalWaitinfo(Call):
    """Wait for one of several signals; result: the number of the signal received."""

    name = "SIGNAL_WAITINFO"
    signals: tuple[int, ...]

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the signals as a bit mask."""
        bits = sum(1 << (signo - 1) for signo in self.signals)
        return {"sig_wait->bits[0]": bits & 0xFFFFFFFF, "sig_wait->bits[1]": bits >> 32}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait for one of the signals."""
        kernel.enter(cpu, thread, self)
        thread.wait_signals = frozenset(self.signals)
        kernel.block(cpu, thread, "SIGWAITINFO", "signal")


@dataclass(slots=True)
class SignalSuspend(Call):
    """Wait until a signal handler has run; always fails with EINTR."""

    name = "SIGNAL_SUSPEND"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait for any signal that has a handler."""
        kernel.enter(cpu, thread, self)
        kernel.block(cpu, thread, "SIGSUSPEND", "signal")


@dataclass(slots=True)
class SignalProcmask(Call):
    """Block or unblock signals of the calling thread; result: the numbers of the signals blocked before, a tuple."""

    name = "SIGNAL_PROCMASK"
    how: int = SIG_BLOCK
    signals: tuple[int, ...] = ()

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: operation and signals; pid and tid 0 stand for the caller."""
        return {"how": self.how, **_signal_bits(self.signals, "sig_blocked")}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Change the mask, and deliver pending signals that are no longer blocked.

        Raises:
            QnxError: EINVAL (no such operation).
        """
        kernel.enter(cpu, thread, self)
        old, named = thread.blocked_signals, frozenset(self.signals) - {_SIGKILL, SIGSTOP}
        changes = {SIG_BLOCK: old | named, SIG_UNBLOCK: old - named, SIG_SETMASK: named}
        if self.how not in changes:
            raise QnxError(Errno.EINVAL, f"how {self.how}")
        thread.blocked_signals = changes[self.how]
        due = [entry for entry in thread.held_signals if entry[0] not in thread.blocked_signals]
        thread.held_signals = [entry for entry in thread.held_signals if entry[0] in thread.blocked_signals]
        for signo, code in due:
            route(kernel, cpu, thread, signo, code)
        bits = _signal_bits(tuple(old), "sig_blocked")
        kernel.complete(thread, tuple(sorted(old)), **bits, **{f"old_{name}": value for name, value in bits.items()})


# Page faults, first use of the floating point unit, and processor exceptions that become signals.


_RETRY_CYCLES = 40  # time to repeat the instruction that faulted


@dataclass(slots=True)
class Touch(Call):
    """An access to a missing page, or the first use of the floating point unit; not a kernel call.

    Attributes:
        address: Address of the memory.
        is_context: This is the first use of the floating point unit, whose registers need memory to be saved.
    """

    address: int = 0x8050000
    is_context: bool = False

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait until the process manager has provided the memory."""
        thread.value = None
        thread.remaining = _RETRY_CYCLES
        if not self.is_context:
            values: dict[str, int | bytes] = {
                "pid": thread.pid,
                "tid": thread.tid,
                "ip": 0x8048100,
                "vaddr": self.address & 0xFFFFFFFF,
            }
            kernel.record.system(cpu.index, kernel.stamp(), "PAGEWAIT", values)
        resource = "register set" if self.is_context else "page"
        kernel.block(cpu, thread, "WAITCTX" if self.is_context else "WAITPAGE", resource)
        kernel.history.cause = -1  # a fault has no event of a call, a timer or an interrupt
        request(kernel, cpu, thread)


@dataclass(slots=True)
class SignalFault(Call):
    """A processor exception, which the kernel converts to a signal; up to 7.x the trace shows a kernel call for it.

    Without a handler the signal ends the process.

    Attributes:
        signo: Number of the signal: SIGILL 4, SIGTRAP 5, SIGFPE 8, SIGBUS 10, SIGSEGV 11.
        code: Reason, the signal's `si_code`.
        addr: Address at which the exception occurred.
    """

    name = "SIGNAL_FAULT"
    signo: int = 11
    code: int = 1
    addr: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: signal and code in one word, and the address."""
        return {"sigcode": self.signo | self.code << 8, "addr": self.addr}

    def older(self) -> Call:
        """Return this call: kernels that do not log it send the signal too."""
        return self

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the signal to the thread."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread, None, ret_val=self.signo)
        post(kernel, cpu, thread.process, thread, self.signo, self.code)
