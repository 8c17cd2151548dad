"""One processor of a machine."""

from __future__ import annotations

from satview.capture.sim.parts.threads import Thread


class Cpu:
    """One processor.

    Attributes:
        thread: Who runs; None only inside the kernel, between a block and the next switch.
        until: When its thread's user code ends; None = never (idle).
        token: Outdates continue events of earlier spans of user code.
        handoff: Thread to switch to without a detour over the ready queue.
        claimed: Priority promised to a thread that was sent here; -1 = none.
        expected: How many threads that became ready here count on its next switch; it takes one of them.
    """

    __slots__ = (
        "claimed",
        "expected",
        "handoff",
        "idle",
        "index",
        "ipi_pending",
        "is_yielding",
        "thread",
        "token",
        "until",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.thread: Thread | None = None
        self.idle: Thread | None = None
        self.token = 0
        self.until: int | None = None
        self.handoff: Thread | None = None
        self.is_yielding = False
        self.claimed = -1
        self.expected = 0
        self.ipi_pending = False
