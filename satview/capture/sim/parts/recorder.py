"""What a machine needs of the recorder of its events."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol, cast

from satview.capture.sim.parts.loop import EventLoop
from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.threads import Partition, PendingCall, Process, Thread


class Mapping(Protocol):
    """A request to map memory; see `Mmap`."""

    length: int
    file: str
    flags: int
    prot: int


class Recorder(Protocol):
    """Gets every event with its CPU and time (cycles); the recorder decides whether it is written."""

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call begins."""

    def kernel_exit(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call ends; its outcome is in the thread."""

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call ends without its arguments."""

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """A thread enters the state it now has."""

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """CREATE or DESTROY of a thread."""

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """A thread has been named."""

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """PROCCREATE, PROCCREATE_NAME, PROCDESTROY or PROCDESTROY_NAME."""

    def comm(self, cpu: int, time: int, event: str, words: tuple[int, ...], pid: int, tid: int) -> None:
        """A message, pulse or signal; pid and tid are those that filters compare, tid 0 for the kernel's pulses."""

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """An interrupt begins."""

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """An interrupt ends."""

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """An interrupt handler begins."""

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """An interrupt handler ends and returns an event, or none."""

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """8.0: an interrupt is delivered to its service thread."""

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """A timer has expired (7.x on)."""

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """An inter-processor interrupt has come."""

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """A critical thread has used up its partition's critical budget."""

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Memory has been mapped (6.4 on)."""

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Memory has been given back (6.4 on)."""

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """A path name is resolved."""

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """8.0: a thread has become the service thread of an interrupt."""


def polled(recorder: Recorder, loop: EventLoop) -> Recorder:
    """Return a recorder that lets interrupts in after every event.

    They also come between two slots of a long event, and how long an event is depends on the filter. Without a look
    after each event they would come later under a filter that leaves it out, and history would depend on filters.
    """
    due = loop.events_due

    def polling(method: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any) -> None:
            method(*args)
            if due and due[0][0] <= loop.now and not loop.nesting:
                loop.poll_nested()

        return call

    names = [name for name in vars(Recorder) if not name.startswith("_")]
    return cast("Recorder", SimpleNamespace(**{name: polling(getattr(recorder, name)) for name in names}))
