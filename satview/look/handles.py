"""Short names of what is in a trace: `t-7` a thread, `e-28700` an event. The same file has the same ones each time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from satview.base.errors import UsageError

_HANDLE: Final = re.compile(r"([a-z])-?([0-9]{1,12})", re.ASCII)


class Subject(StrEnum):
    """What a handle can name; the value is its letter."""

    THREAD = "t"
    """Row of the table `thread`."""
    PROCESS = "p"
    """Row of the table `process`."""
    CPU = "c"
    """Number of the CPU, from 0."""
    EVENT = "e"
    """Number of the event, from 1, as the window and the other commands have it; its row in tables is one less."""
    VERDICT = "v"
    """Number of the verdict in the order of `satview check`, from 1."""
    MESSAGE = "m"
    """Row of the table `message`."""


@dataclass(frozen=True, slots=True)
class Handle:
    """One of them.

    Attributes:
        subject: What it names.
        number: As it is written.
    """

    subject: Subject
    number: int

    def __str__(self) -> str:
        return f"{self.subject.value}-{self.number}"


def handle_of(text: str) -> Handle:
    """Return what somebody typed as a handle.

    Raises:
        UsageError: It is none.
    """
    found = _HANDLE.fullmatch(text.strip().lower())
    if found is None or found[1] not in list(Subject):
        kinds = ", ".join(f"{subject.value}-N ({subject.name.lower()})" for subject in Subject)
        raise UsageError(f"{text.strip()[:40]!r} is no handle; there are {kinds}")
    return Handle(Subject(found[1]), int(found[2]))


def thread_handle(row: int) -> str:
    """Return the handle of a thread."""
    return str(Handle(Subject.THREAD, row))


def process_handle(row: int) -> str:
    """Return the handle of a process."""
    return str(Handle(Subject.PROCESS, row))


def event_handle(row: int) -> str:
    """Return the handle of an event, given its row."""
    return str(Handle(Subject.EVENT, row + 1))
