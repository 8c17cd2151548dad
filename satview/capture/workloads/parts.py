"""Building blocks of workloads: periodic threads and servers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.threads import Policy, Program
from satview.events.modes import Mode

MS = 1_000_000
US = 1_000
PeriodicTask = Callable[..., Program]


def inserted(wire_class: int, event: int, words: Sequence[int]) -> calls.TraceEvent:
    """Return the TraceEvent() call with which libraries and drivers insert an event of any class into the trace.

    Args:
        wire_class: Internal number of the class, as in a slot.
        event: Number of the event in the class.
        words: Payload words.
    """
    return calls.TraceEvent(Mode.INSERTCCLASSEVENT, wire_class, event, list(words), len(words))


def order_of(kernel: Kernel) -> str:
    """Return the byte order of a target, "big" or "little", for `split64` and `text_words`."""
    return "big" if kernel.target.big_endian else "little"


class Address:
    """The address of a server: pid and chid, 0 until the server runs."""

    def __init__(self) -> None:
        self.pid = 0
        self.chid = 0

    def connect(self) -> Generator[Any, Any, int]:
        """Wait until the server runs, connect to it, and return the coid."""
        while not self.chid:
            yield calls.Sleep(MS)
        coid: int = yield calls.ConnectAttach(self.pid, self.chid)
        return coid


def periodic(period_ns: int, task: PeriodicTask, *args: Any, offset_ns: int = 0, priority: int = 20) -> Program:
    """Run `task(*args, count)` at every expiry of a periodic timer; `count` begins with 0.

    Args:
        period_ns: Period of the timer.
        task: A generator function that yields kernel calls.
        args: First arguments of `task`.
        offset_ns: Time that is added to the first period.
        priority: Priority of the timer's pulses, at which the task runs.
    """
    chid = yield calls.ChannelCreate()
    coid = yield calls.ConnectAttach(0, chid)
    timer = yield calls.TimerCreate(calls.Sigevent("pulse", coid, priority, code=1))
    yield calls.TimerSettime(timer, period_ns + offset_ns, period_ns)
    count = 0
    while True:
        yield calls.MsgReceive(chid)
        yield from task(*args, count)
        count += 1


def server(
    address: Address,
    pid: Callable[[], int],
    workers: int,
    serve: Callable[[Received], Program],
    priority: int = 15,
    name: str = "worker",
) -> Program:
    """Run a server with a channel and worker threads, which run `serve(received)` for each message or pulse.

    Args:
        address: Receives pid and chid of the server.
        pid: Returns the pid of the server's process.
        workers: Number of threads, including the calling thread.
        serve: A generator function that yields kernel calls.
        priority: Priority of the further threads.
        name: Name of the further threads, followed by their number.
    """
    chid = yield calls.ChannelCreate()
    for i in range(workers - 1):
        yield calls.ThreadCreate(_serve_loop, (chid, serve), priority, Policy.RR, f"{name}-{i + 2}")
    address.pid = pid()
    address.chid = chid
    yield from _serve_loop(chid, serve)


def _serve_loop(chid: int, serve: Callable[[Received], Program]) -> Program:
    while True:
        received = yield calls.MsgReceive(chid)
        yield from serve(received)


def replying(
    low_ns: int, high_ns: int, vary: Callable[[int, int], int], answer: bytes = b"OK"
) -> Callable[[Received], Program]:
    """Return a function `serve` for `server` that computes for a random time, then replies to a message.

    Args:
        low_ns: Shortest time.
        high_ns: Longest time.
        vary: Returns a random time between two bounds.
        answer: The reply.
    """

    def serve(received: Received) -> Program:
        yield calls.Compute(vary(low_ns, high_ns))
        if not received.is_pulse:
            yield calls.MsgReply(received.rcvid, len(answer), answer)

    return serve
