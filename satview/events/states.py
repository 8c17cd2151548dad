"""Thread states of all releases on one scale, and the values that lanes are made of.

The number of a state on the wire depends on the release (7 is STACK up to 7.x and MQ_SEND in 8.0); a lane value does
not, so colours, legends and filters mean the same in every trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from satview.events import wire


class StateGroup(StrEnum):
    """Why a thread is not running, in the few kinds that matter when a lane is read from afar."""

    RUNNING = "running"
    READY = "ready"
    MESSAGE = "message"  # SEND, RECEIVE, REPLY, queues, pipes
    SYNC = "synchronisation"  # MUTEX, CONDVAR, SEM, RWLOCK, BARRIER, JOIN
    TIME = "time"  # NANOSLEEP
    INTERRUPT = "interrupt"  # INTR
    SIGNAL = "signal"  # SIGSUSPEND, SIGWAITINFO
    MEMORY = "memory"  # WAITPAGE, STACK, WAITCTX, ...
    STOPPED = "stopped"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class StateMeaning:
    """A thread state, whatever its number.

    Attributes:
        name: QNX spelling without prefix: `RUNNING`, `NET_SEND`.
        value: Its lane value, 2 to 37.
        group: Kind of waiting.
        meaning: One short sentence.
    """

    name: str
    value: int
    group: StateGroup
    meaning: str


ABSENT: Final = 0  # the thread does not exist, or nothing is drawn here
UNKNOWN: Final = 1  # it exists, its state is not known
FIRST_STATE: Final = 2

_ROWS: Final = (
    ("RUNNING", StateGroup.RUNNING, "executing on a CPU"),
    ("READY", StateGroup.READY, "could run, but another thread has the CPU"),
    ("SEND", StateGroup.MESSAGE, "sent a message that the server has not received yet"),
    ("RECEIVE", StateGroup.MESSAGE, "waiting for a message or pulse"),
    ("REPLY", StateGroup.MESSAGE, "waiting for the server's reply"),
    ("NET_SEND", StateGroup.MESSAGE, "waiting for a message to cross the network"),
    ("NET_REPLY", StateGroup.MESSAGE, "waiting for a reply across the network"),
    ("MQ_SEND", StateGroup.MESSAGE, "waiting for room in a message queue"),
    ("MQ_RECEIVE", StateGroup.MESSAGE, "waiting for a message in a queue"),
    ("PIPE", StateGroup.MESSAGE, "waiting for a pipe"),
    ("SEND_NOTIFY", StateGroup.MESSAGE, "waiting to send a notification"),
    ("MUTEX", StateGroup.SYNC, "waiting for a mutex that another thread holds"),
    ("CONDVAR", StateGroup.SYNC, "waiting for a condition variable"),
    ("SEM", StateGroup.SYNC, "waiting for a semaphore"),
    ("RWLOCK_READ", StateGroup.SYNC, "waiting to read under a reader/writer lock"),
    ("RWLOCK_WRITE", StateGroup.SYNC, "waiting to write under a reader/writer lock"),
    ("BARRIER", StateGroup.SYNC, "waiting for the others at a barrier"),
    ("MUON_MUTEX", StateGroup.SYNC, "waiting for a mutex of the process manager"),
    ("JOIN", StateGroup.SYNC, "waiting for another thread to end"),
    ("NANOSLEEP", StateGroup.TIME, "sleeping for a time"),
    ("TIMER_DELEGATE", StateGroup.TIME, "waiting for timers of another CPU"),
    ("INTR", StateGroup.INTERRUPT, "waiting for an interrupt"),
    ("INTR_ATTACH_EV", StateGroup.INTERRUPT, "waiting while an interrupt event is attached"),
    ("SIGSUSPEND", StateGroup.SIGNAL, "waiting for any signal"),
    ("SIGWAITINFO", StateGroup.SIGNAL, "waiting for a selected signal"),
    ("STACK", StateGroup.MEMORY, "waiting for its stack to be allocated"),
    ("WAITTHREAD", StateGroup.MEMORY, "waiting for a new thread to be set up"),
    ("WAITPAGE", StateGroup.MEMORY, "waiting for memory to be mapped"),
    ("WAITCTX", StateGroup.MEMORY, "waiting for a floating point context"),
    ("TRACEBUFFER", StateGroup.MEMORY, "waiting for a trace buffer"),
    ("STOPPED", StateGroup.STOPPED, "stopped by SIGSTOP, a debugger or a CONT that has not come"),
    ("SUSPENDED", StateGroup.STOPPED, "suspended by another thread"),
    ("DEAD", StateGroup.DEAD, "ended, not yet cleaned up"),
    # No state of the kernel, where a thread waits for a server: Python programs traced by satview.threadtrace.
    ("IO", StateGroup.MESSAGE, "waiting for input, output or another process"),
    # Of Linux, which does not say what for.
    ("SLEEPING", StateGroup.TIME, "waiting for anything at all (S of Linux)"),
    (
        "UNINTERRUPTIBLE",
        StateGroup.MEMORY,
        "waiting where no signal reaches it, mostly for a disk or a driver (D of Linux)",
    ),
)

STATES: Final[tuple[StateMeaning, ...]] = tuple(
    StateMeaning(name, FIRST_STATE + i, group, meaning) for i, (name, group, meaning) in enumerate(_ROWS)
)
STATE_BY_NAME: Final = {state.name: state for state in STATES}
STATE_BY_VALUE: Final = {state.value: state for state in STATES}
RUNNING: Final = STATE_BY_NAME["RUNNING"].value
READY: Final = STATE_BY_NAME["READY"].value
DEAD: Final = STATE_BY_NAME["DEAD"].value

# Values of CPU lanes. Six bits hold every value; the two bits above are flags of a drawn cell.
IDLE: Final = 38
INTERRUPT: Final = 39
KERNEL_CALL: Final = 40
WAITING: Final = 41  # process lanes: it lives, none of its threads runs or is ready
FIRST_PROCESS: Final = 42
PROCESS_HUES: Final = 22
VALUE_COUNT: Final = FIRST_PROCESS + PROCESS_HUES
VALUE_MASK: Final = 0x3F
SEEN_RUNNING: Final = 0x40  # something ran in this cell, though another state dominates it
SEEN_EVENT: Final = 0x80  # an event that is not a state change happened in this cell

NAMES_BY_VALUE: Final = tuple(  # of what lanes of threads show; empty of other values
    {ABSENT: "ABSENT", UNKNOWN: "UNKNOWN", IDLE: "IDLE", WAITING: "WAITING"}.get(value)
    or (STATE_BY_VALUE[value].name if value in STATE_BY_VALUE else "")
    for value in range(VALUE_COUNT)
)
IS_BUSY: Final = np.zeros(VALUE_COUNT, np.bool_)  # values of which even a moment must stay visible: something ran
IS_BUSY[[RUNNING, INTERRUPT, KERNEL_CALL, *range(FIRST_PROCESS, VALUE_COUNT)]] = True
IS_BUSY.setflags(write=False)
NOT_A_STATE: Final = 255  # in tables over event codes: the event is no change of thread state


def process_value(process_row: int) -> int:
    """Return the lane value that represents a process on CPU lanes; neighbours in the table differ."""
    return FIRST_PROCESS + process_row % PROCESS_HUES


def process_values(
    process_rows: np.ndarray[tuple[int], np.dtype[np.integer]],
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return `process_value` of every element, uint8."""
    return (FIRST_PROCESS + process_rows % PROCESS_HUES).astype(np.uint8)


STEP_OF_CODE: Final = np.zeros(wire.CODE_COUNT, np.int8)  # how deep a CPU is in interrupts: 1 for entries, -1 for exits
STEP_OF_CODE[[wire.code(wire.WireClass.INT, event) for event in (1, 5)]] = 1  # 32 and 64 bits
STEP_OF_CODE[wire.code(wire.WireClass.INT, 2)] = -1
STEP_OF_CODE.setflags(write=False)
