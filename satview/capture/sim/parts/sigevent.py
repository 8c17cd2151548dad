"""The sigevent structure, which specifies how a thread is notified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Sigevent"]


@dataclass(slots=True)
class Sigevent:
    """A sigevent: specifies how a thread is notified.

    Attributes:
        kind: Kind of notification: `pulse`, `intr` (wakes InterruptWait), `signal`, `unblock` or `none`.
        coid: Connection for the pulse, in the process that set up the event.
    """

    kind: str = "intr"
    coid: int = 0
    priority: int = 10
    code: int = 0
    value: int = 0
    signo: int = 0

    NOTIFY: ClassVar[dict[str, int]] = {"none": 0, "signal": 1, "pulse": 4, "unblock": 5, "intr": 6}

    @property
    def notify(self) -> int:
        """The number that represents `kind` in a sigevent structure."""
        return self.NOTIFY.get(self.kind, 0)


def event_values(event: Sigevent | None) -> dict[str, int]:
    """Return the fields of a sigevent by their names in the event table."""
    if event is None:
        return {}
    return {
        "event->sigev_notify": event.notify,
        "event->sigev_notify_function_p": event.coid or event.signo,
        "event->sigev_value": event.value,
        "event->sigev_notify_attributes_p": (event.priority & 0xFFFF) << 16 | event.code & 0xFFFF,
    }
