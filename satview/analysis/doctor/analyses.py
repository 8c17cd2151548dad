"""Every analysis, one row each: what it answers, without what it has no answer, without what only a bound.

Verdicts bring their rows with their rules. `satview doctor`, the marks of
figures, the panel and `satview check` read this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from satview.analysis import needs as need
from satview.analysis.needs import Need
from satview.analysis.verdicts.rule import rules


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis.

    Attributes:
        key: Its name in files and on the command line; of a verdict its kind.
        title: For people.
        question: What it answers.
        needs: Without any of these it has no answer, or not a whole one; the first that is not met is named first.
        bounds: Without any of these the answer is a bound.
        is_verdict: True if it looks for something wrong (`satview check`).
    """

    key: str
    title: str
    question: str
    needs: tuple[Need, ...] = ()
    bounds: tuple[Need, ...] = (need.NO_DAMAGE, need.NO_LOSS)
    is_verdict: bool = False

    @property
    def all_needs(self) -> tuple[Need, ...]:
        """Needs of both sorts."""
        return self.needs + self.bounds


_ALL: Final = (need.NO_DAMAGE, need.NO_LOSS, need.OPENING)  # states are known from an event on
_EVENTS: Final = (need.NO_DAMAGE, need.NO_LOSS)

_ROWS: Final = (
    Analysis("cpu", "Who used the CPUs", "How long did each thread and process run?", (need.STATES,),
             (need.INTERRUPTED, need.IDLE, *_ALL)),
    Analysis("states", "States of threads", "How long was each thread in which state?", (need.STATES,),
             (need.IDLE, *_ALL)),
    Analysis("ready", "Waits for a CPU", "How long was each thread ready, and did not run?", (need.STATES,),
             (need.IDLE, *_ALL)),
    Analysis("migrations", "Migrations", "How often did a thread run on another CPU than before?",
             (need.STATES,), _ALL),
    Analysis("events", "Events", "How many events of which kind are there?"),
    Analysis("calls", "Kernel calls", "How long did each kernel call take, and did it fail?",
             (need.KERNEL, need.CALLS, need.EXITS, need.CALLERS)),
    Analysis("messages", "Messages", "Who sends to whom, and how long does each message take?",
             (need.KERNEL, need.MESSAGES), (need.STATES, *_EVENTS)),
    Analysis("message-sizes", "Sizes of messages", "How many bytes have messages?",
             (need.KERNEL, need.MESSAGES, need.CALLS, need.SIZES)),
    Analysis("pulses", "Pulses", "Who sends pulses, and when are they received?", (need.KERNEL, need.PULSES)),
    Analysis("wake-ups", "Wake-ups", "Who made a thread ready: another thread, a timer, an interrupt?",
             (need.KERNEL, need.STATES), (need.CALLS, need.MESSAGES_SENT, need.INTERRUPTS, need.TIMERS, *_EVENTS)),
    Analysis("holders", "Holders of mutexes", "Who holds the mutex that a thread waits for?",
             (need.KERNEL, need.STATES, need.CALLS, need.SOME_HOLDER), (need.ALL_HOLDERS, *_EVENTS)),
    Analysis("priorities", "Priorities", "At which priority does each thread run?",
             (need.KERNEL, need.STATES, need.PRIORITIES), _ALL),
    Analysis("interrupts", "Interrupts", "How often does each interrupt come, how late and how long is it handled?",
             (need.KERNEL, need.INTERRUPTS, need.LOGGED_INTERRUPTS, need.INTERRUPT_EXITS)),
    Analysis("partitions", "Partitions", "How much of its budget does each partition use?",
             (need.KERNEL, need.STATES, need.BUDGETS, need.PRIORITIES), _ALL),
    Analysis("periods", "Periods", "Does each periodic thread run in time?", (need.KERNEL, need.PULSES)),
    Analysis("locks", "Locks of a threads library", "Who waited for which lock, and who held it?", (), _EVENTS),
    Analysis("names", "Names", "What are the processes called?", (need.SOME_NAME,), (need.NAMES,)),
)  # fmt: skip

ANALYSES: Final[dict[str, Analysis]] = {row.key: row for row in _ROWS} | {
    kind: Analysis(kind, rule.title, rule.question, rule.needs, rule.bounds, True) for kind, rule in rules().items()
}
