"""Kernel calls that do not change the state of a thread, as a table of their names and preconditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from satview.capture.sim.calls.call import Call, check_io
from satview.capture.sim.calls.messages import live_connection, received_message
from satview.capture.sim.calls.processes import find_thread
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Cpu, Thread
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.layout import canonical
from satview.events.spec import Release
from satview.events.wire import WireClass

__all__ = ["PLAIN_CALLS", "KernelCall"]

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
            fault = f"yielded KernelCall({self.name!r:.40}), which is no call, or has a class of its own"
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
