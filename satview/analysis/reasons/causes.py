"""Events that end waits of threads, and their origin: a thread, a timer or an interrupt."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.events import wire
from satview.linkage.actors import TIMER
from satview.linkage.blockers import REPLY
from satview.linkage.latencies import deliveries
from satview.linkage.messages import messages
from satview.linkage.table import NO_EVENT, OPEN, Certainty
from satview.linkage.wake_ups import last_sends, wake_ups
from satview.store.trace import Trace

NO_ROW: Final = -1


class Causes:
    """Causes of wake-ups in one trace.

    Args:
        trace: The events. The first question makes the links of the whole trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def of_end(self, row: int) -> tuple[int, Certainty]:
        """Return the event that caused the end of a wait, given the waiting thread's own event; -1 if none is known.

        The receipt of the message ends a wait in SEND: the thread goes to REPLY without a wake-up.

        Args:
            row: The thread's next change of state after the wait began; -1 or `OPEN` for none.
        """
        if row in (NO_ROW, OPEN):
            return NO_ROW, Certainty.EXACT
        table = wake_ups(self._trace)
        link = int(table.ended_by(np.array([row]))[0])
        if link >= 0:
            return int(table.from_row[link]), Certainty(int(table.certainty[link]))
        if int(self._trace.catalogue.state_value_of_code[self._trace.events.code[row]]) == REPLY:
            return self._receipt(row), Certainty.EXACT
        return NO_ROW, Certainty.EXACT

    def _receipt(self, row: int) -> int:
        """Return the receipt of the message by which a thread came into REPLY, -1 if it is not known."""
        thread = np.array([self._trace.events.thread[row]], np.int64)
        sent = last_sends(self._trace, thread, np.array([row], np.uint32))
        if sent[0] == NO_EVENT:
            return NO_ROW
        receipt = int(messages(self._trace).ends_of(sent)[0])
        return NO_ROW if receipt in (NO_EVENT, OPEN) else receipt

    def origin(self, row: int) -> int:
        """Return the event that sent a pulse or signal; the event itself if that is unknown, or it is neither."""
        table = deliveries(self._trace)
        link = int(table.ended_by(np.array([row]))[0])
        return int(table.from_row[link]) if link >= 0 else row

    def actor(self, row: int) -> int:
        """Return the thread that caused an event; -1 for timers, interrupts, and pulses that they send."""
        row = self.origin(row)
        code = int(self._trace.events.code[row])
        if code == TIMER or wire.class_of(code) == wire.WireClass.INT:
            return NO_ROW
        return int(self._trace.events.thread[row]) or NO_ROW

    def words(self, row: int) -> str:
        """Return a description of an event that ended a wait."""
        trace, name = self._trace, self._trace.spec(row).name
        if wire.class_of(int(trace.events.code[row])) == wire.WireClass.INT:
            return f"interrupt 0x{int(trace.payloads.words(row)[0]):x} (event #{row + 1})"
        actor, origin = self.actor(row), self.origin(row)
        if actor < 0 and origin != row:
            return f"{name} (event #{row + 1}) of {self.words(origin)}"
        return f"{name} (event #{row + 1})" + (f" of {trace.thread_name(actor)}" if actor > 0 else "")
