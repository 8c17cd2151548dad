"""Kernel calls and library functions that create, control and end threads and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from satview.capture.sim.calls.call import SIDE_CHANNEL, TCTL_IO, Call, code_address
from satview.capture.sim.calls.channels import close_channel, disconnect, send_pulse
from satview.capture.sim.calls.messages import MsgSend, MsgSendnc
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import ANY_CPU, Body, Connection, Cpu, Policy, Process, Program, Thread

__all__ = [
    "Dlopen", "Exec", "Fork", "Mmap", "Munmap", "Ring0", "Spawn", "ThreadCancel", "ThreadCreate", "ThreadCtl",
    "ThreadCtlExt", "ThreadDetach", "ThreadJoin", "ThreadName", "ThreadRunmask", "WaitPid",
]  # fmt: skip


# Library functions that send a message to the process manager, and Ring0(), with which it runs kernel code.


@dataclass(slots=True)
class ManagerCall(Call):
    """Base class of library functions that send a message to the process manager.

    The payload of the message is the object of this class itself.

    Attributes:
        message_type: First byte of the message.
        send: The kernel call that sends the message.
    """

    message_type: ClassVar[int] = 0
    send: ClassVar[type[MsgSend]] = MsgSend

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the message to the process manager."""
        message = bytes((self.message_type,)).ljust(64, b"\0")
        self.send(SIDE_CHANNEL, message, payload=self).carry_out(kernel, cpu, thread)


@dataclass(slots=True)
class Spawn(ManagerCall):
    """Start a process by a message to the process manager; result: its pid.

    Attributes:
        program: Name of the process.
        body: A generator function that yields the kernel calls of the first thread.
        args: Arguments of `body`.
        priority: Priority of the thread; -1 = the highest base priority in the caller's process.
        bits: 32 or 64; 0 = as the caller.
    """

    name = "MSG_SENDV"
    message_type = 0x0E
    program: str
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1
    bits: int = 0  # 0 = as the caller


@dataclass(slots=True)
class Fork(ManagerCall):
    """Start a process with the caller's name; result: its pid.

    The new process runs `body`, because the state of a running Python generator cannot be copied.
    """

    name = "MSG_SENDV"
    message_type = 0x0E
    body: Body
    args: tuple[Any, ...] = ()


@dataclass(slots=True)
class Exec(ManagerCall):
    """Run another program in the caller's process; all other threads of the process end, and the call never returns."""

    name = "MSG_SENDV"
    message_type = 0x0E
    program: str
    body: Body
    args: tuple[Any, ...] = ()


@dataclass(slots=True)
class WaitPid(ManagerCall):
    """Wait for the end of a child process; result: its exit value."""

    name = "MSG_SENDV"
    message_type = 0x0F
    pid: int


@dataclass(slots=True)
class Mmap(ManagerCall):
    """Map memory, or a file if `file` is not empty, by a message to the process manager; result: the address."""

    name = "MSG_SENDVNC"
    message_type = 0x40
    send = MsgSendnc
    length: int
    file: str = ""
    flags: int = 0x000800A2  # value for the text of a library in a 7.1 listing
    prot: int = 0x500  # read and execute


@dataclass(slots=True)
class Dlopen(Mmap):
    """Map a library and log its name, like dlopen(); result: the address."""

    length: int = 0x11000
    file: str = "libm.so.2"


@dataclass(slots=True)
class Munmap(ManagerCall):
    """Unmap memory, by a message to the process manager."""

    name = "MSG_SENDVNC"
    message_type = 0x41
    send = MsgSendnc
    address: int
    length: int


@dataclass(slots=True)
class Ring0(Call):
    """Call `function(kernel, cpu)` in kernel mode; used by the process manager. Result: the function's result."""

    name = "RING0"
    function: Callable[[KernelServices, Cpu], Any]

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the addresses of function and argument."""
        return {"func_p": code_address(self.function, thread), "arg_p": 0}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Run the function in kernel mode."""
        kernel.enter(cpu, thread, self)
        value = kernel.guard(thread, "Ring0 function", lambda: self.function(kernel, cpu))
        kernel.complete(thread, value, ret_val=value if isinstance(value, int) else 0)


# Creation and end of threads and processes.


MANAGER_PRIORITY = 10
_HIGHEST_PRIORITY = 255
_THREADS_HOLD, _THREADS_CONT, _ONE_THREAD_HOLD, _ONE_THREAD_CONT = 2, 3, 8, 9  # _NTO_TCTL_*
_CODE_DEATH = 2  # code of the pulse that informs the process manager of a process without threads


@dataclass(slots=True)
class ThreadDestroy(Call):
    """The call with which a thread ends itself."""

    name = "THREAD_DESTROY"
    logs: ClassVar = {"tid": -1, "priority": -1, "status_p": 0}  # tid -1 means the caller


@dataclass(slots=True)
class ThreadDestroyAll(Call):
    """The call with which the last thread of a process ends (up to 7.x)."""

    name = "THREAD_DESTROYALL"


def add_process(kernel: KernelServices, name: str, parent: int = 0, bits: int = 0, pid: int = 0) -> Process:
    """Add a process without threads and return it; 0 stands for the target's default `bits`, and an unused `pid`."""
    pid = pid or _new_pid(kernel)
    bits = bits or (64 if kernel.target.is_64bit else 32)
    process = Process(pid, parent, name, bits, kernel.partitions[0] if kernel.partitions else None)
    kernel.processes[pid] = process
    return process


def _new_pid(kernel: KernelServices) -> int:
    """Return an unused pid as QNX does: index in the low bits, count above, so that pids are not reused soon."""
    index = len(kernel.processes) + 1
    if index < 4 and index not in kernel.processes:
        return index
    while (pid := index + 4096 * (index + kernel.random.randrange(1, 30))) in kernel.processes:
        index += 1  # a persistent target reuses the indices of ended processes
    return pid


def add_thread(
    process: Process,
    program: Program,
    priority: int,
    policy: Policy = Policy.RR,
    name: str = "",
    runmask: int = ANY_CPU,
) -> Thread:
    """Add a thread to a process and return it; `start` makes it ready. `runmask` = the CPUs on which it may run."""
    thread = Thread(process, process.next_tid, program, priority, policy, name, runmask)
    process.next_tid += 1
    process.threads[thread.tid] = thread
    return thread


def new_process(kernel: KernelServices, name: str, parent: int = 1, bits: int = 0) -> Process:
    """Add a process without threads, connect it to the process manager, and return it."""
    process = add_process(kernel, name, parent, bits)
    manager = kernel.processes[1].channels[1]
    manager.process.scoids += 1
    process.connections[SIDE_CHANNEL] = Connection(process, SIDE_CHANNEL, manager, manager.process.scoids)
    process.next_coid = 1
    return process


def report_life(kernel: KernelServices, cpu: Cpu, thread: Thread, event: str) -> None:
    """Emit CREATE or DESTROY of a thread; the caller sets its next state."""
    time = kernel.stamp()
    kernel.history.life(time, thread, event, cpu.index)
    kernel.record.thread_life(cpu.index, time, thread, event)
    if event == "DESTROY":
        kernel.history.cause = time


def start(kernel: KernelServices, cpu: Cpu, thread: Thread, is_boot: bool = False) -> None:
    """Start a new thread: emit its creation and its name (not if `is_boot`), and make it ready."""
    report_life(kernel, cpu, thread, "CREATE")
    if thread.name and not is_boot:
        kernel.record.thread_name(cpu.index, kernel.stamp(), thread)
    kernel.scheduler.make_ready(cpu, thread)


def _start_without_stack(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Start a new thread in state STACK, where it waits until the process manager has created its stack."""
    report_life(kernel, cpu, thread, "CREATE")
    if thread.name:
        kernel.record.thread_name(cpu.index, kernel.stamp(), thread)
    thread.waiting_on = "stack"
    time = kernel.set_state(cpu, thread, "STACK")
    kernel.history.wait_begins(time, thread, "STACK", "stack", ())
    request(kernel, cpu, thread)


# Pages, register sets and stacks that the process manager provides on demand.

CODE_FAULT = 3  # code of the pulse with which the kernel requests them
_PROVIDED = ("WAITPAGE", "WAITCTX", "STACK")


def request(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Send a pulse to the process manager: a thread waits for a page, a register set or a stack."""
    link = Connection(thread.process, 0, kernel.processes[1].channels[1], 0)
    send_pulse(kernel, cpu, link, "SPULSE_EXE", MANAGER_PRIORITY, CODE_FAULT, thread.pid)


def provide_resources(pid: int, kernel: KernelServices, cpu: Cpu) -> int:
    """Wake the threads of a process that wait for a page, register set or stack; return how many. Run by `Ring0`."""
    kernel.spend(8_000)
    process = kernel.processes.get(pid)
    lacking = [t for t in process.threads.values() if t.state in _PROVIDED] if process is not None else []
    for thread in lacking:
        kernel.wake(cpu, thread, waker=cpu.thread)
    return len(lacking)


def end_of_program(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """End a thread whose program has ended; if it is the last thread, end its process too."""
    process = thread.process
    kernel.enter(cpu, thread, ThreadDestroy())
    is_last = all(t is thread or t.state == "DEAD" for t in process.threads.values())
    if is_last and not kernel.target.has_buffer_end:
        kernel.fail(thread, Errno.ENOTSUP)
        kernel.finish_silently(thread)
        kernel.enter(cpu, thread, ThreadDestroyAll())
    cause = kernel.history.cause
    destroy_thread(kernel, cpu, thread)
    if is_last:
        _end_process(kernel, cpu, process, cause)


def destroy_thread(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Destroy a thread in any state; fail the calls of its clients and wake the thread that joins it."""
    report_life(kernel, cpu, thread, "DESTROY")
    if thread.cpu >= 0:
        other = kernel.cpus[thread.cpu]
        kernel.scheduler.release(other, thread)
        if other is not cpu:
            kernel.send_ipi(other, -1)
    elif thread.state == "READY":
        kernel.scheduler.forget(thread)
    thread.call = thread.finish = None
    kernel.set_state(cpu, thread, "DEAD")
    for envelope in list(thread.serving.values()):
        if not envelope.dropped:
            kernel.fail(envelope.client, Errno.ESRCH)
            envelope.dropped = True
            kernel.wake(cpu, envelope.client, outcome="dead")
    thread.serving.clear()
    if thread.joiner is not None:
        kernel.complete(thread.joiner, thread.exit_value)
        kernel.wake(cpu, thread.joiner, waker=thread)


def _end_process(kernel: KernelServices, cpu: Cpu, process: Process, cause: int) -> None:
    """End a process without threads: release its resources; `cause` is the time of the event that ended the process."""
    process.is_dead = True
    main = min(process.threads)
    process.exit_value = process.threads[main].exit_value
    destroyed = kernel.history.cause
    close_all(kernel, cpu, process)
    for connection in list(process.connections.values()):
        kernel.history.cause = cause
        disconnect(kernel, cpu, process.connections.pop(connection.coid))
    kernel.history.cause = destroyed
    for notify in kernel.on_death:
        notify(process)
    manager = kernel.processes[1]
    link = Connection(process, 0, manager.channels[1], 0)
    send_pulse(kernel, cpu, link, "SPULSE_DEA", MANAGER_PRIORITY, _CODE_DEATH, process.pid)


def close_all(kernel: KernelServices, cpu: Cpu, process: Process) -> None:
    """Close the channels, stop the timers and detach the interrupts of a process, before it ends or at exec."""
    for channel in process.channels.values():
        close_channel(kernel, cpu, channel)
    for timer in process.timers.values():
        timer.generation += 1
    kernel.interrupts.detach_all(process)


def kill(kernel: KernelServices, cpu: Cpu, process: Process, signo: int) -> None:
    """End a process, unless it is process 1, as a signal without a handler does; `signo` gives the exit value."""
    if process.pid == 1 or process.is_dead:
        return
    cause = kernel.history.cause
    for thread in process.threads.values():
        if thread.state != "DEAD":
            thread.exit_value = -signo
            kernel.history.cause = cause
            kernel.stop_waiting(cpu, thread)
            destroy_thread(kernel, cpu, thread)
    _end_process(kernel, cpu, process, cause)


def stop_thread(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Stop a thread until `continue_thread`; a blocked thread stops when its wait ends, a kernel thread never."""
    if thread.is_held or thread.state == "DEAD" or thread.pid == 1:
        return
    thread.is_held = True
    if thread.state == "READY":
        kernel.scheduler.forget(thread)
    elif thread.state == "RUNNING":
        other = kernel.cpus[thread.cpu]
        kernel.scheduler.release(other, thread)
        if other is not cpu:
            kernel.send_ipi(other, -1)
    else:
        return
    thread.waiting_on = "SIGCONT"
    time = kernel.set_state(cpu, thread, "STOPPED")
    kernel.history.wait_begins(time, thread, "STOPPED", "SIGCONT", ())


def continue_thread(kernel: KernelServices, cpu: Cpu, thread: Thread, waker: Thread | None) -> None:
    """Continue a thread stopped by `stop_thread`; `waker` is the thread that continues it, None = no thread."""
    if thread.is_held:
        thread.is_held = False
        if thread.state == "STOPPED":
            kernel.wake(cpu, thread, waker=waker)


def find_thread(kernel: KernelServices, thread: Thread, pid: int, tid: int) -> Thread:
    """Return a thread by its ids; pid 0 = the caller's process, tid 0 = the caller, or any thread of another process.

    Raises:
        QnxError: ESRCH; there is no such thread, or it has ended.
    """
    process = kernel.processes.get(pid) if pid else thread.process
    other = process.threads.get(tid) if process is not None and tid else thread if not pid else None
    if process is not None and other is None and not tid:
        other = next(iter(process.threads.values()), None)
    if other is None or other.state == "DEAD":
        raise QnxError(Errno.ESRCH, f"no thread {tid} in process {pid}" if pid else f"no thread {tid}")
    return other


@dataclass(slots=True)
class ThreadCreate(Call):
    """Start a thread in the caller's process; result: its tid.

    Attributes:
        body: A generator function that yields the kernel calls of the thread.
        args: Arguments of `body`.
        priority: Priority; -1 = that of the caller.
        policy: Scheduling policy.
        thread_name: Name of the thread; empty = unnamed.
        runmask: The CPUs on which the thread may run, as a bit mask.
        has_stack: False = the thread waits in STACK while the process manager creates its stack (up to 7.x).
    """

    name = "THREAD_CREATE"
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1  # -1 = that of the caller
    policy: Policy = Policy.RR
    thread_name: str = ""
    runmask: int = ANY_CPU
    has_stack: bool = True  # False: the new thread waits in STACK while the process manager creates its stack (to 7.x)

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: addresses of function and argument, stack size, policy and priority."""
        priority = self.priority if self.priority >= 0 else thread.base_priority
        return {
            "func_p": code_address(self.body, thread),
            "arg_p": 0x8047F30,
            "stacksize": 0x20000,
            "policy": self.policy,
            "sched_priority": priority,
            "sched_curpriority": priority,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Start a thread in the caller's process.

        Raises:
            QnxError: EINVAL (the body is no generator function, the priority is above 255, or the runmask is not a
                number).
        """
        kernel.enter(cpu, thread, self)
        if not isinstance(self.runmask, int) or not self.priority <= _HIGHEST_PRIORITY:
            raise QnxError(Errno.EINVAL, f"priority {self.priority!r:.40}, runmask {self.runmask!r:.40}")
        program = self.body(*self.args)
        if not hasattr(program, "send"):
            name = getattr(self.body, "__name__", self.body)
            kernel.fault(thread, f"{name} is not a generator function", thread.location())
            raise QnxError(Errno.EINVAL)
        priority = self.priority if self.priority >= 0 else thread.base_priority
        new = add_thread(thread.process, program, priority, self.policy, self.thread_name, self.runmask)
        new.partition = new.own_partition = thread.own_partition
        new.has_io = thread.has_io
        if self.has_stack or not kernel.target.waits_for_threads:
            start(kernel, cpu, new)
        else:
            _start_without_stack(kernel, cpu, new)
        kernel.complete(thread, new.tid, thread_id=new.tid, owner=new.tid << 16 | thread.process.pid & 0xFFFF)


@dataclass(slots=True)
class ThreadJoin(Call):
    """Wait for the end of a thread of the caller's process; result: its exit value."""

    name = "THREAD_JOIN"
    logs: ClassVar = {"status_p": 0x8047E40}
    tid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait for the end of the thread; return at once if it has ended.

        Raises:
            QnxError: ESRCH (no such thread); EDEADLK (the thread is the caller); EINVAL (the thread is detached, or
                another thread joins it).
        """
        kernel.enter(cpu, thread, self)
        other = thread.process.threads.get(self.tid)
        if other is None or other is thread:
            raise QnxError(Errno.ESRCH if other is None else Errno.EDEADLK, f"thread {self.tid}")
        if other.is_detached or other.joiner is not None:
            raise QnxError(Errno.EINVAL, f"thread {self.tid} is detached, or joined by another thread")
        kernel.complete(thread, other.exit_value)
        if other.state == "DEAD":
            del thread.process.threads[self.tid]
            return
        other.joiner = thread
        kernel.block(cpu, thread, "JOIN", f"end of {other.label}", (other,))


@dataclass(slots=True)
class ThreadName(Call):
    """Name the calling thread."""

    name = "THREAD_CTL"
    logs: ClassVar = {"cmd": 11, "data_p": 0x8047D90}
    text: str

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the caller's name and log it."""
        kernel.enter(cpu, thread, self)
        thread.name = self.text[:100]
        kernel.record.thread_name(cpu.index, kernel.stamp(), thread)
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadRunmask(Call):
    """Restrict the calling thread to the CPUs in a bit mask."""

    name = "THREAD_CTL"
    mask: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the command and the mask."""
        return {"cmd": 4, "data_p": self.mask & 0xFFFFFFFF}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the caller's runmask; if it excludes the current CPU, move the caller to another CPU.

        Raises:
            QnxError: EINVAL (the mask contains no CPU of this machine).
        """
        kernel.enter(cpu, thread, self)
        mask = self.mask & (1 << len(kernel.cpus)) - 1
        if not mask:
            raise QnxError(Errno.EINVAL, f"runmask {self.mask:#x} names no CPU of this machine")
        kernel.complete(thread)
        thread.runmask = self.mask
        if not mask >> cpu.index & 1:
            kernel.scheduler.release(cpu, thread)
            kernel.scheduler.make_ready(cpu, thread)


@dataclass(slots=True)
class ThreadDetach(Call):
    """Detach a thread, so that it need not be joined; tid 0 = the caller."""

    name = "THREAD_DETACH"
    tid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Mark the thread as detached.

        Raises:
            QnxError: EINVAL (the thread is detached already).
        """
        kernel.enter(cpu, thread, self)
        other = find_thread(kernel, thread, 0, self.tid)
        if other.is_detached:
            raise QnxError(Errno.EINVAL, f"thread {self.tid} is detached already")
        other.is_detached = True
        if other.joiner is not None:
            kernel.fail(other.joiner, Errno.EINVAL)
            kernel.wake(cpu, other.joiner, waker=thread)
            other.joiner = None
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadCancel(Call):
    """Cancel a thread at its next cancellation point; `ThreadCancelled` is raised in its program at the `yield`."""

    name = "THREAD_CANCEL"
    tid: int
    canstub_p: int = 0x78120

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Cancel the thread now if it is blocked at a cancellation point; otherwise mark it as cancelled."""
        kernel.enter(cpu, thread, self)
        kernel.cancel(cpu, find_thread(kernel, thread, 0, self.tid))
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadCtl(Call):
    """Control threads by a command; `_NTO_TCTL_IO`, the default, gives the caller I/O privilege.

    `_NTO_TCTL_ONE_THREAD_HOLD` and `_CONT` stop and continue the thread `data_p`, `_NTO_TCTL_THREADS_HOLD` and `_CONT`
    all other threads of the process. `ThreadName` and `ThreadRunmask` are the commands for name and CPUs; other
    commands have no effect.
    """

    name = "THREAD_CTL"
    cmd: int = TCTL_IO
    data_p: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Grant I/O privilege (all users are root), or stop or continue threads.

        Raises:
            QnxError: ESRCH (no such thread).
        """
        kernel.enter(cpu, thread, self)
        self.apply(kernel, cpu, thread, thread)

    def apply(self, kernel: KernelServices, cpu: Cpu, thread: Thread, subject: Thread) -> None:
        """Complete the call of `thread`; apply the command to the thread `subject`, or to others of its process."""
        kernel.complete(thread)
        if self.cmd == TCTL_IO:
            subject.has_io = True
        elif self.cmd in (_ONE_THREAD_HOLD, _ONE_THREAD_CONT):
            tid = self.data_p if subject is thread else 0
            other = find_thread(kernel, subject, 0, tid)
            if self.cmd == _ONE_THREAD_HOLD:
                stop_thread(kernel, cpu, other)
            else:
                continue_thread(kernel, cpu, other, thread)
        elif self.cmd in (_THREADS_HOLD, _THREADS_CONT):
            for other in list(subject.process.threads.values()):
                if self.cmd == _THREADS_CONT:
                    continue_thread(kernel, cpu, other, thread)
                elif other is not subject:
                    stop_thread(kernel, cpu, other)


@dataclass(slots=True)
class ThreadCtlExt(ThreadCtl):
    """Control a thread of any process (7.x on)."""

    name = "THREAD_CTLEXT"
    pid: int = 0
    tid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Apply the command to the thread `tid` of process `pid`.

        Raises:
            QnxError: ESRCH (no such thread).
        """
        kernel.enter(cpu, thread, self)
        self.apply(kernel, cpu, thread, find_thread(kernel, thread, self.pid, self.tid))
