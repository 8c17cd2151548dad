"""Signals: sending, waiting, handlers that run as programs of their own, and calls that they interrupt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.capture.sim import processes, timers
from satview.capture.sim.call_base import Call
from satview.capture.sim.errors import Errno

if TYPE_CHECKING:
    from satview.capture.sim.calls import SignalAction, SignalKill, SignalSuspend, SignalWaitinfo
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Process, Thread

IGNORED_BY_DEFAULT = frozenset({18, 20, 21})   # SIGCHLD, SIGWINCH, SIGURG
_NOT_BLOCKED = ("READY", "RUNNING", "DEAD")


@dataclass(slots=True)
class HandlerEnd(Call):
    """A signal handler returns."""

    name = "SIGNAL_RETURN"

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the address of the saved context."""
        return {"s_p": 0x8047AC0}


def post(machine: Machine, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
    """Send a signal to a process, or to one of its threads."""
    thread = target or _choose(process, signo)
    if thread is None:
        return
    time = machine.history.cause = machine.stamp()
    machine.record.comm(cpu.index, time, "SIGNAL", (signo, code, 0, 0, 0, 0, 0, 0, 0), thread.pid, thread.tid)
    route(machine, cpu, thread, signo, code)


def route(machine: Machine, cpu: Cpu, thread: Thread, signo: int, code: int) -> None:
    """Do with a signal what its thread and process have set up."""
    process = thread.process
    if thread.state == "SIGWAITINFO" and signo in thread.wait_signals:
        machine.complete(thread, signo, sig_num=signo, si_signo=signo, si_code=code)
        machine.wake(cpu, thread)
        return
    if signo in thread.blocked_signals:
        thread.held_signals.append((signo, code))
        return
    if signo in process.handlers:
        if process.handlers[signo] is not None:
            thread.pending_signals.append((signo, code))
            if thread.state not in _NOT_BLOCKED:
                timers.unblock(machine, cpu, thread, Errno.EINTR, "signal")
                thread.finish = lambda: machine.interrupted(machine.cpus[thread.cpu], thread)
        return
    if signo not in IGNORED_BY_DEFAULT:
        processes.kill(machine, cpu, process, signo)


def _choose(process: Process, signo: int) -> Thread | None:
    threads = [thread for thread in process.threads.values() if thread.state != "DEAD"]
    waiting = [thread for thread in threads if thread.state == "SIGWAITINFO" and signo in thread.wait_signals]
    free = [thread for thread in threads if signo not in thread.blocked_signals]
    return next(iter(waiting or free or threads), None)


def deliver(machine: Machine, cpu: Cpu, thread: Thread) -> None:  # noqa: ARG001  -- same shape as the other kernel steps
    """Start the handler of the oldest pending signal on top of what a thread does."""
    signo, _ = thread.pending_signals.pop(0)
    body = thread.process.handlers.get(signo)
    if body is None:
        return
    thread.signal_frames.append((thread.generator, thread.value, thread.error, thread.remaining))
    thread.generator = body(signo)
    thread.value = thread.error = None
    thread.remaining = machine.vary((200, 200))


def handler_end(machine: Machine, cpu: Cpu, thread: Thread, call: HandlerEnd) -> None:
    """Go back to what the signal interrupted."""
    machine.enter(cpu, thread, call)
    machine.complete(thread)

    def back() -> None:
        machine.finish_silently(thread)
        thread.generator, thread.value, thread.error, thread.remaining = thread.signal_frames.pop()

    thread.finish = back


def signal_kill(machine: Machine, cpu: Cpu, thread: Thread, call: SignalKill) -> None:
    """Send a signal; 0 only asks whether the target exists."""
    machine.enter(cpu, thread, call)
    process = machine.processes.get(call.pid) if call.pid else thread.process
    if process is None or process.is_dead or (call.tid and call.tid not in process.threads):
        machine.fail(thread, Errno.ESRCH, f"no process {call.pid}" + (f" thread {call.tid}" if call.tid else ""))
        return
    machine.complete(thread)
    if call.signo:
        post(machine, cpu, process, process.threads.get(call.tid) if call.tid else None, call.signo, call.code)


def signal_action(machine: Machine, cpu: Cpu, thread: Thread, call: SignalAction) -> None:
    """Set or remove a handler of the caller's process."""
    machine.enter(cpu, thread, call)
    if not 1 <= call.signo <= 64:
        machine.fail(thread, Errno.EINVAL, f"signal {call.signo}")
        return
    if call.default:
        thread.process.handlers.pop(call.signo, None)
    else:
        thread.process.handlers[call.signo] = call.handler
    machine.complete(thread)


def signal_waitinfo(machine: Machine, cpu: Cpu, thread: Thread, call: SignalWaitinfo) -> None:
    """Wait for one of some signals."""
    machine.enter(cpu, thread, call)
    thread.wait_signals = frozenset(call.signals)
    machine.block(cpu, thread, "SIGWAITINFO", "signal")


def signal_suspend(machine: Machine, cpu: Cpu, thread: Thread, call: SignalSuspend) -> None:
    """Wait for any signal that has a handler."""
    machine.enter(cpu, thread, call)
    machine.block(cpu, thread, "SIGSUSPEND", "signal")
