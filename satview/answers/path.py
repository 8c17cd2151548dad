"""Tables of a thread's critical path: its pieces, with repeated steps folded, and the totals by thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.analysis.critical_path import PIECE_WORDS, CriticalPath, PathWords, PieceKind
from satview.analysis.why import Rounds, find_rounds
from satview.answers.frames import Texts
from satview.answers.table import CERTAINTIES, Column, Kind, Question, Table
from satview.base.errors import Cancelled
from satview.base.time import format_duration, format_moment
from satview.linkage.links import Certainty
from satview.store.trace import Trace

_NONE: Final = -1
_CHECK_EVERY: Final = 256  # pieces between two calls of `is_cancelled`
_KINDS: Final = tuple(PIECE_WORDS[kind] for kind in PieceKind)
_PIECES: Final = Question(
    "path",
    "Critical path",
    "What had to happen, one after the other, for a thread to get from one moment to another?",
    (
        Column(
            "thread", Kind.THREAD, "the thread that the path is with; indented: the one above waits for it", "Thread"
        ),
        Column("start", Kind.TIME, "when the piece begins", "Time"),
        Column("end", Kind.TIME, "when it ends, and the next one begins"),
        Column("length", Kind.DURATION, "how long it is", "Length"),
        Column("kind", Kind.TEXT, "what it is spent with: `running`, `ready`, `waiting`, `waking up`", "Is"),
        Column("certainty", Kind.TEXT, "how sure it is that the path goes over this thread", "Certainty"),
        Column("event", Kind.EVENT, "the event that begins the state", "Event", is_nullable=True),
        Column("cause", Kind.EVENT, "the event that ends it", "Ended by", is_nullable=True),
        Column("depth", Kind.COUNT, "how many threads wait for it, one for the other", "Depth"),
        Column("does", Kind.TEXT, "what that thread does, and what ends it", "What"),
    ),
    "",
    "The path has no pieces.",
)
_TOTALS: Final = Question(
    "path_totals",
    "Critical path by thread",
    "What did that time go into?",
    (
        Column("thread", Kind.THREAD, "a thread that the path is with", "Thread"),
        Column("kind", Kind.TEXT, "what its pieces are spent with", "Is"),
        Column("length", Kind.DURATION, "sum of these pieces", "Length"),
        Column("share", Kind.SHARE, "of the interval", "Share"),
        Column("interrupted", Kind.DURATION, "how long its CPUs handled interrupts meanwhile", "Interrupts"),
    ),
    "",
    _PIECES.empty,
)


@dataclass(frozen=True, slots=True, eq=False)
class PathAnswer:
    """A critical path as tables.

    Attributes:
        path: The path.
        pieces: One row for each piece, in time order.
        folded: `pieces`, but if the same steps repeat four times or more, all rounds except the first and the last are
            nested below one row that sums them up.
        totals: Time that the path spends in each thread, the longest first; the sum is the length of the interval.
    """

    path: CriticalPath
    pieces: Table
    folded: Table
    totals: Table


def path_answer(trace: Trace, path: CriticalPath, is_cancelled: Callable[[], bool] = bool) -> PathAnswer:
    """Return a critical path as tables.

    Args:
        trace: The events.
        path: The critical path.
        is_cancelled: Called repeatedly during the work.

    Raises:
        Cancelled: `is_cancelled` returned true.
    """
    words, says = PathWords(trace), list[str]()
    for piece in range(len(path)):
        if piece % _CHECK_EVERY == 0 and is_cancelled():
            raise Cancelled("the path was stopped")
        sure = Certainty(int(path.certainty[piece]))
        says.append(words.describe(path, piece) + ("" if sure is Certainty.EXACT else f" ({sure.name.lower()})"))
    process = trace.threads.process[path.on_thread]
    steps = list(zip(path.depth.tolist(), process.tolist(), path.kind.tolist(), path.value.tolist(), strict=True))
    repeats = find_rounds(steps)
    # The row that sums up rounds comes before the first piece below it.
    starts = np.array([rounds.folded.start for rounds in repeats], np.int64)
    of_row = np.insert(np.arange(len(path)), starts, starts)
    heads = starts + np.arange(len(repeats))
    parent = np.full(len(of_row), _NONE, np.int64)
    for head, rounds in zip(heads.tolist(), repeats, strict=True):
        parent[head + 1 : head + 1 + len(rounds.folded)] = head
    is_piece = np.ones(len(of_row), np.bool_)
    is_piece[heads] = False
    end = path.end_cycles[of_row]
    end[heads] = [path.end_cycles[rounds.folded.stop - 1] for rounds in repeats]
    start = path.start_cycles[of_row]
    texts = np.array(says, np.object_)[of_row]
    texts[heads] = [_rounds_words(trace, path, rounds) for rounds in repeats]
    folded = Table(
        _PIECES,
        trace,
        {
            "thread": path.on_thread[of_row],
            "start": start,
            "end": end,
            "length": end - start,
            "kind": Texts(np.where(is_piece, path.kind[of_row], len(PieceKind)).astype(np.uint8), (*_KINDS, "")),
            "does": Texts.of(texts.tolist()),
            "certainty": Texts(path.certainty[of_row], CERTAINTIES),
            "event": np.where(is_piece, path.row[of_row], _NONE),
            "cause": np.where(is_piece, path.cause_row[of_row], _NONE),
            "depth": path.depth[of_row],
        },
        parent=parent,
        has_parts=True,
    )
    return PathAnswer(path, folded.at(np.flatnonzero(is_piece)), folded, _totals(trace, path, words))


def _rounds_words(trace: Trace, path: CriticalPath, rounds: Rounds) -> str:
    example = slice(rounds.folded.start, rounds.folded.stop, rounds.size)
    last = slice(rounds.folded.start + rounds.size - 1, rounds.folded.stop, rounds.size)
    start = path.start_cycles[example]
    length = path.end_cycles[last] - start
    worst, clock = int(np.argmax(length)), trace.clock
    steps = f"the same {rounds.size} steps" if rounds.size > 1 else "the same"
    return (f"{steps} {rounds.count - 2} more times, longest {format_duration(clock.duration_ns(int(length[worst])))} "
            f"from {format_moment(int(start[worst]), clock)}")  # fmt: skip


def _totals(trace: Trace, path: CriticalPath, words: PathWords) -> Table:
    totals = path.totals()
    cycles = np.array(list(totals.values()), np.int64)
    taken = words.interrupted(path)
    return Table(_TOTALS, trace, {
        "thread": np.array([thread for thread, _ in totals], np.int64),
        "kind": Texts(np.array([kind for _, kind in totals], np.uint8), _KINDS),
        "length": cycles,
        "share": cycles / max(path.window.length, 1),
        "interrupted": np.array([taken.get(key, _NONE) for key in totals], np.int64),
    }, place="")  # fmt: skip
