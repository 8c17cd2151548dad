"""Thread states of all releases with common numbers, and the other values that lanes show.

The number of a state in events depends on the release (7 is STACK up to 7.x and MQ_SEND in 8.0); its lane value does
not, so that colours, legends and filters mean the same in every trace.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from satview.events import wire


class StateGroup(StrEnum):
    """Groups of thread states, mostly by the kind of object that a thread waits for."""

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
    """A thread state, independent of its number in a release.

    Attributes:
        name: QNX spelling without prefix: `RUNNING`, `NET_SEND`.
        value: Value that represents the state in lanes, 2 to 37.
        short: Three letters at most, for bars that are too short for the name.
    """

    name: str
    value: int
    group: StateGroup
    meaning: str
    short: str


ABSENT: Final = 0  # the thread does not exist, or nothing is drawn here
UNKNOWN: Final = 1  # it exists, its state is not known
FIRST_STATE: Final = 2

_ROWS: Final = (
    ("RUNNING", "RUN", StateGroup.RUNNING, "executing on a CPU"),
    ("READY", "RDY", StateGroup.READY, "could run, but another thread has the CPU"),
    ("SEND", "SND", StateGroup.MESSAGE, "sent a message that the server has not received yet"),
    ("RECEIVE", "RCV", StateGroup.MESSAGE, "waiting for a message or pulse"),
    ("REPLY", "RPL", StateGroup.MESSAGE, "waiting for the server's reply"),
    ("NET_SEND", "NSD", StateGroup.MESSAGE, "waiting for a message to cross the network"),
    ("NET_REPLY", "NRP", StateGroup.MESSAGE, "waiting for a reply across the network"),
    ("MQ_SEND", "QSD", StateGroup.MESSAGE, "waiting for room in a message queue"),
    ("MQ_RECEIVE", "QRC", StateGroup.MESSAGE, "waiting for a message in a queue"),
    ("PIPE", "PIP", StateGroup.MESSAGE, "waiting for a pipe"),
    ("SEND_NOTIFY", "NTF", StateGroup.MESSAGE, "waiting to send a notification"),
    ("MUTEX", "MTX", StateGroup.SYNC, "waiting for a mutex that another thread holds"),
    ("CONDVAR", "CND", StateGroup.SYNC, "waiting for a condition variable"),
    ("SEM", "SEM", StateGroup.SYNC, "waiting for a semaphore"),
    ("RWLOCK_READ", "RWR", StateGroup.SYNC, "waiting to read under a reader/writer lock"),
    ("RWLOCK_WRITE", "RWW", StateGroup.SYNC, "waiting to write under a reader/writer lock"),
    ("BARRIER", "BAR", StateGroup.SYNC, "waiting for the others at a barrier"),
    ("MUON_MUTEX", "MUO", StateGroup.SYNC, "waiting for a mutex of the process manager"),
    ("JOIN", "JN", StateGroup.SYNC, "waiting for another thread to end"),
    ("NANOSLEEP", "SLP", StateGroup.TIME, "sleeping for a time"),
    ("TIMER_DELEGATE", "TMR", StateGroup.TIME, "waiting for timers of another CPU"),
    ("INTR", "INT", StateGroup.INTERRUPT, "waiting for an interrupt"),
    ("INTR_ATTACH_EV", "IAE", StateGroup.INTERRUPT, "waiting while an interrupt event is attached"),
    ("SIGSUSPEND", "SGS", StateGroup.SIGNAL, "waiting for any signal"),
    ("SIGWAITINFO", "SGW", StateGroup.SIGNAL, "waiting for a selected signal"),
    ("STACK", "STK", StateGroup.MEMORY, "waiting for its stack to be allocated"),
    ("WAITTHREAD", "WTH", StateGroup.MEMORY, "waiting for a new thread to be set up"),
    ("WAITPAGE", "WPG", StateGroup.MEMORY, "waiting for memory to be mapped"),
    ("WAITCTX", "WCX", StateGroup.MEMORY, "waiting for a floating point context"),
    ("TRACEBUFFER", "TRC", StateGroup.MEMORY, "waiting for a trace buffer"),
    ("STOPPED", "STP", StateGroup.STOPPED, "stopped by SIGSTOP, a debugger or a CONT that has not come"),
    ("SUSPENDED", "SUS", StateGroup.STOPPED, "suspended by another thread"),
    ("DEAD", "DED", StateGroup.DEAD, "ended, not yet cleaned up"),
    # No state of the kernel: Python programs traced by satview.threadtrace.
    ("IO", "IO", StateGroup.MESSAGE, "waiting for input, output or another process"),
    # States of Linux, which does not show what a thread waits for.
    ("SLEEPING", "SLP", StateGroup.TIME, "waiting for anything at all (S of Linux)"),
    (
        "UNINTERRUPTIBLE",
        "UNI",
        StateGroup.MEMORY,
        "waiting where no signal reaches it, mostly for a disk or a driver (D of Linux)",
    ),
)

STATES: Final[tuple[StateMeaning, ...]] = tuple(
    StateMeaning(name, FIRST_STATE + i, group, meaning, short) for i, (name, short, group, meaning) in enumerate(_ROWS)
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
PROCESS_HUES: Final = 21
QUIET_PROCESS: Final = FIRST_PROCESS + PROCESS_HUES  # processes that used too little to have a colour of their own
VALUE_COUNT: Final = QUIET_PROCESS + 1
VALUE_MASK: Final = 0x3F
SEEN_RUNNING: Final = 0x40  # something ran in this cell, though another state dominates it
SEEN_EVENT: Final = 0x80  # an event that is not a state change happened in this cell

NAMES_BY_VALUE: Final = tuple(  # of what lanes of threads show; empty of other values
    {ABSENT: "ABSENT", UNKNOWN: "UNKNOWN", IDLE: "IDLE", WAITING: "WAITING"}.get(value)
    or (STATE_BY_VALUE[value].name if value in STATE_BY_VALUE else "")
    for value in range(VALUE_COUNT)
)
IS_BUSY: Final = np.zeros(VALUE_COUNT, np.bool_)  # values that must stay visible however short: something ran
IS_BUSY[[RUNNING, INTERRUPT, KERNEL_CALL, *range(FIRST_PROCESS, VALUE_COUNT)]] = True
IS_BUSY.setflags(write=False)
NOT_A_STATE: Final = 255  # in tables over event codes: the event is no change of thread state


# Chosen so that the busiest processes of the sample traces and lessons have colours far from each other.
_NAME_SALT: Final = "87619:"


def process_value(name: str) -> int:
    """Return the value of a process on CPU lanes in every trace, by name or path of its program; some share one.

    The last part of a path counts unless it is a number (`kworker/1`).
    """
    last = name.rpartition("/")[2]
    counts = name if last.isdecimal() else last
    return FIRST_PROCESS + zlib.crc32((_NAME_SALT + counts).encode()) % PROCESS_HUES


STEP_OF_CODE: Final = np.zeros(wire.CODE_COUNT, np.int8)  # change of interrupt depth: 1 for entries, -1 for exits
STEP_OF_CODE[[wire.code(wire.WireClass.INT, event) for event in (1, 5)]] = 1  # 32 and 64 bits
STEP_OF_CODE[wire.code(wire.WireClass.INT, 2)] = -1
STEP_OF_CODE.setflags(write=False)
