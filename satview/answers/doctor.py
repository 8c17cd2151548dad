"""The doctor: which analyses a trace supports exactly, as a bound or not at all, and what to capture for the rest."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.analysis.doctor import ANALYSES, applicable, diagnosis
from satview.analysis.needs import CaptureLine, capture_line
from satview.analysis.times.basis import TITLES, Mark
from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Question, Table
from satview.store.trace import Trace

_MARKS: Final = tuple(Mark)  # the best first
_TRUST: Final = Column("trust", Kind.TEXT, "the mark in words", "Trust", sql="")
_COMMAND: Final = Column("command", Kind.SENTENCE, "tracelogger on the target captures what it needs; empty if no "
                         "capture would help", "Capture with")  # fmt: skip
QUESTION: Final = Question(
    "doctor",
    "Doctor",
    "What can this trace show, and what is to be captured for the rest?",
    (
        Column("key", Kind.TEXT, "its name on the command line; of a verdict its kind", "Key"),
        Column("title", Kind.TEXT, "what is looked at", "Analysis"),
        Column("mark", Kind.TEXT, "`exact`, `lower-bound`, `estimate`, `needs-wide`, `needs-class`, `not-logged`",
               "Mark"),
        _TRUST,
        Column("reason", Kind.TEXT, "why its answers cannot be trusted further; empty if they are exact", "Why"),
        Column("remedy", Kind.TEXT, "what to do for better ones; empty if nothing would help", "What to do"),
        Column("rules", Kind.TEXT, "the same capture as rules", "Rules"),
        _COMMAND,
        Column("question", Kind.SENTENCE, "what it answers", "Question"),
        Column("tone", Kind.TEXT, "`error`: no answer; `warning`: one that may not be exact", sql=""),
    ),
    "",
    "",
    tone="tone",
)  # fmt: skip
_GROUPS: Final = Question(
    "doctor-groups",
    "Doctor",
    QUESTION.text,
    (
        _TRUST,
        Column("titles", Kind.TEXT, "what is looked at, verdicts last", "Analyses"),
        Column("why", Kind.SENTENCE, "why it cannot be trusted further, and what to do", "Why"),
        _COMMAND,
    ),
    "",
    "",
)


def doctor(trace: Trace, is_quick: bool = False) -> Table:
    """Return a table of how well a trace supports each analysis: exactly, as a bound, or not at all.

    `satview.analysis.doctor` lists what each analysis needs; section 8 of the format description says which events
    each class and form contains.

    Args:
        trace: The events.
        is_quick: Skip needs that depend on links, which take as long as `satview check`.
    """
    rows = [diagnosis(trace, key, is_quick) for key in applicable(trace)]
    marks, lines = [row.trust.mark for row in rows], [row.capture for row in rows]
    return Table(QUESTION, trace, {
        "key": Texts.of([row.analysis.key for row in rows]),
        "title": Texts.of([row.analysis.title for row in rows]),
        "mark": Texts(np.array([_MARKS.index(mark) for mark in marks], np.uint8), tuple(map(str, _MARKS))),
        "trust": Texts(np.array([_MARKS.index(mark) for mark in marks], np.uint8),
                       tuple(TITLES.values())),
        "reason": Texts.of([row.trust.reason for row in rows]),
        "remedy": Texts.of([row.remedy for row in rows]),
        "rules": Texts.of([line.rules if line else "" for line in lines]),
        "command": Texts.of([line.command if line else "" for line in lines]),
        "question": Texts.of([row.analysis.question for row in rows]),
        "tone": Texts.of(["" if mark is Mark.EXACT else "warning" if mark.is_answer else "error" for mark in marks]),
    }, place="")  # fmt: skip


def exact_in(table: Table) -> str:
    """Return a text on the number of exact analyses, such as `exact in 25 of 32 analyses`."""
    exact = sum(table.text(row, "mark") == Mark.EXACT for row in range(len(table)))
    return f"exact in {exact} of {len(table)} analyses"


def capture_for(table: Table) -> CaptureLine | None:
    """Return the capture that meets the needs of all rows of a `doctor` table; None if no capture would help."""
    keys = [table.text(row, "key") for row in range(len(table)) if table.text(row, "command")]
    needs = dict.fromkeys(need for key in keys for need in ANALYSES[key].all_needs)
    return capture_line(table.trace, needs) if needs else None


def grouped(table: Table) -> Table:
    """Return a table with one row per mark, reason and remedy of a `doctor` table, the worst first."""
    groups: dict[tuple[int, str, str], list[int]] = {}
    for row in range(len(table)):
        mark = _MARKS.index(Mark(table.text(row, "mark")))
        groups.setdefault((mark, table.text(row, "reason"), table.text(row, "remedy")), []).append(row)
    order = sorted(groups, key=lambda group: -group[0])
    parts = [table.at(table.positions[groups[group]]) for group in order]
    lines = [capture_for(part) for part in parts]
    return Table(_GROUPS, table.trace, {
        "trust": Texts.of([TITLES[_MARKS[mark]] for mark, _, _ in order]),
        "titles": Texts.of([_titles(part) for part in parts]),
        "why": Texts.of(["; ".join(filter(None, words)) for _, *words in order]),
        "command": Texts.of([line.command if line else "" for line in lines]),
    }, place="")  # fmt: skip


def _titles(table: Table) -> str:
    """Return the titles of all analyses in a table as one text, verdicts last."""
    names = [(table.text(row, "title"), table.text(row, "key")) for row in range(len(table))]
    plain = [title for title, key in names if not ANALYSES[key].is_verdict]
    verdicts = [title.lower() for title, key in names if ANALYSES[key].is_verdict]
    of_verdicts = [f"{'verdicts' if plain else 'Verdicts'} ({', '.join(verdicts)})"] if verdicts else []
    return ", ".join([*plain, *of_verdicts])
