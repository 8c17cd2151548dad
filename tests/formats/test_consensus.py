"""Which TIME events are believed: clocks of CPUs written as levels, and what becomes of them.

`0*6 8*2 0*4` are six TIME events where they belong, two that are 8 rollovers late and four that are right again. Each
CPU has a TIME event every eighth of a rollover. `s0` is an event of a CPU that has no TIME yet, `s0@2` one that was
placed by CPU 2, `x1` one that passes a rollover without a TIME, `|` a place where buffers are missing, `||` one for all
CPUs, `.9` a silence of nine eighths. `~10` says that what follows is 2^10 cycles behind the event before, `~-25` that
it is 2^25 in front of it. `$` is a CPU whose last event is not known, `+2` one to whose times two rollovers were added.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from satview.formats.kev.consensus import (
    CROSSING,
    ROLLOVER,
    SEED,
    TIME,
    ClockVerdicts,
    Consensus,
    Correction,
    Surroundings,
    WalkNotes,
)

PACE = ROLLOVER // 8  # cycles between the TIME events of a CPU


def consensus(cpus: list[str], gap: int = PACE, **known: object) -> Consensus:
    """Return the consensus about CPUs from 0 on; all log event after event in turn."""
    claims, breaks, ends, standing = [], {}, {}, {}
    for cpu, text in enumerate(cpus):
        number, level, last, distance, begins = 0, 0, 0, gap, True
        for word in text.split():
            if word in ("|", "||"):
                breaks.setdefault(cpu if word == "|" else -1, []).append(number * len(cpus) + cpu - 1)
            if word[0] == "+":
                standing[cpu] = int(word[1:])
            if word[0] == ".":
                number += int(word[1:])
            if word[0] == "~":
                distance = (-1 if word[1] == "-" else 1) << int(word[1:].lstrip("-"))
            if word[0] in "|+.~$":
                continue
            kind = {"s": SEED, "x": CROSSING}.get(word[0], TIME)
            text_of_claim, _, origin = word.partition("@")
            claimed, _, count = text_of_claim.lstrip("sx").partition("*")
            for _ in range(int(count or 1)):
                row, last = number * len(cpus) + cpu, int(claimed) if kind != CROSSING else last
                value = 100 * ROLLOVER + number * PACE + cpu + last * ROLLOVER
                rollovers = int(claimed) if kind == CROSSING else last - level
                source = int(origin or 0) if kind == SEED else -1
                claims.append((row, cpu, kind, value, 0 if begins and kind != CROSSING else rollovers,
                               0 if begins else distance, source, int(kind == TIME)))  # fmt: skip
                level, number, begins = last, number + 1, False
        if "$" not in text:
            ends[cpu] = (number * len(cpus) + cpu, value + 10)
    columns = np.array(sorted(claims), np.int64).T
    return Consensus(WalkNotes(*columns), standing, Surroundings(breaks, **known), ends)


def told(of: Consensus, cpu: int) -> str:
    """Return where the runs of a CPU are placed, as levels; behind ? by how much that may be wrong."""
    clock = of.clocks[cpu]
    first = int(clock.claims.value[0] - clock.claims.row[0] // len(of.clocks) * PACE) // ROLLOVER - 100
    counts = np.bincount(clock.run, minlength=len(clock.level))
    return " ".join(
        f"{int(placed) + first}*{count}" + (f"?{doubt}" if doubt else "")
        for placed, doubt, count in zip(clock.placed, clock.doubt, counts, strict=True)
    )


def counts(verdicts: ClockVerdicts) -> str:
    """Return how many of what is reported; corrections follow from where runs are placed."""
    return " ".join(
        f"{name} {len(getattr(verdicts, name))}"
        for name in ClockVerdicts.__slots__
        if name != "corrections" and getattr(verdicts, name)
    )


ONE_COUNTER = """\
0*9 8*1 0*9                 -> 0*9 0*1 0*9                 : damaged 1
0*9 8*2 0*9                 -> 0*9 0*2 0*9                 : damaged 2
0*9 8*5 0*9                 -> 0*9 0*5 0*9                 : damaged 5
0*9 8*6 0*9                 -> 0*9 0*6?8 0*9?8             : damaged 6 doubtful 2
0*9 8*9 0*9                 -> 0*9 0*9?8 0*9?8             : damaged 9 doubtful 2
0*9 -8*2 0*9                -> 0*9 0*2 0*9                 : damaged 2
0*9 -8*9                    -> -8*9?8 -8*9?8               : damaged 9 doubtful 2
0*9 -8*9 0*9                -> 0*9?8 0*9?8 0*9             : damaged 9 doubtful 2
8*1 0*9                     -> 0*1 0*9                     : damaged 1
8*3 0*9                     -> 0*3 0*9                     : damaged 3
8*5 0*9                     -> 0*5?8 0*9?8                 : damaged 5 doubtful 2
8*9 0*9                     -> 0*9?8 0*9?8                 : damaged 9 doubtful 2
0*9 8*1                     -> 0*9 8*1?8                   : unproven 1
0*9 8*2                     -> 0*9 8*2?8                   : unproven 1
0*9 8*5                     -> 0*9 8*5?8                   : unproven 1
0*9 8*6                     -> 0*9 8*6?8                   : doubtful 1
0*9 8*9                     -> 0*9 8*9                     :
0*9 8*20                    -> 0*9 8*20                    :
0*9 | 8*1                   -> 0*9 8*1?8                   : doubtful 1
0*9 | 8*3                   -> 0*9 8*3?8                   : doubtful 1
0*9 | 64*9                  -> 0*9 64*9                    :
0*9 | 65*9                  -> 0*9 65*9                    :
0*9 | 8*3 | 0*9             -> 0*9 0*3?8 0*9               : damaged 3 doubtful 1
0*9 | -8*9                  -> 0*9 -8*9                    : steps 1
0*9 | -8*2 | 0*9            -> 0*9 0*2?8 0*9               : damaged 2 doubtful 1
0 8                         -> 0*1 8*1?8                   : unproven 1
8 0                         -> 8*1 0*1?8                   : steps 1 doubtful 1
0 0 8                       -> 0*2?8 8*1?8                 : unproven 1
0 8 8                       -> 8*1?8 8*2?8                 : damaged 1 doubtful 2
0*6 8*2 16*2 0*9            -> 0*6 0*2 0*2 0*9             : damaged 4
0*6 8*2 16*9                -> 0*6?16 8*2?8 16*9           : doubtful 2
0*6 16*2 8*9                -> 0*6?8 8*2?8 8*9             : damaged 2 doubtful 2
0*9 x1 0*9                  -> 0*9 0*1 0*9                 :
0*9 x1 1*9                  -> 0*9 0*1 1*9                 :
0*9 x2 1*9                  -> 0*9 0*1 1*9                 :
0*4 x1 0*4 x1 0*4           -> 0*4 0*1 0*4 0*1 0*4         :
0*9 / 0*9                   -> 0*9 / 0*9                   :
0*9 / 8*9                   -> 0*9?8 / 8*9?8               : doubtful 2
0*9 / 8*2 0*7               -> 0*9 / 0*2 0*7               : damaged 2
0*9 / 0*7 8*2               -> 0*9 / 0*7 0*2               : damaged 2
0*9 / 0*3 8*3 0*3           -> 0*9 / 0*3 0*3 0*3           : damaged 3
0*9 8*9 / 0*9 8*9           -> 0*9 8*9 / 0*9 8*9           :
0*9 8*3 / 0*9 8*3           -> 0*9 8*3 / 0*9 8*3           :
0*9 8*3 / 0*9 8*1           -> 0*9 8*3 / 0*9 8*1           : unproven 2
0*9 / 0*9 / 8*9             -> 0*9 / 0*9 / 0*9             : damaged 9
0*9 / 0*9 / 0*5 8*4         -> 0*9 / 0*9 / 0*5 0*4         : damaged 4
0*9 / 0*9 / 8*4 0*5         -> 0*9 / 0*9 / 0*4 0*5         : damaged 4
0*9 / 8*9 / 8*9             -> 8*9 / 8*9 / 8*9             : damaged 9
0*9 8*3 / 0*9 8*3 / 0*9 8*3 -> 0*9 8*3 / 0*9 8*3 / 0*9 8*3 :
0*9 8*9 / 0*9 8*9 / 0*9 8*9 -> 0*9 8*9 / 0*9 8*9 / 0*9 8*9 :
0*9 8*3 / 0*12 / 0*9 8*3    -> 0*9 0*3 / 0*12 / 0*9 0*3    : damaged 6
0*9 / s0 0*8                -> 0*9 / 0*1 0*8               :
0*9 / s0 8*8                -> 0*9 / 0*1 0*8               : damaged 8
8*1 0*8 / s8 0*8            -> 0*1 0*8 / 0*1 0*8           : damaged 1
8*1 0*8 / s0 0*8            -> 0*1 0*8 / 0*1 0*8           : damaged 1
0*9 / s8 0*8                -> 0*9 / 8*1 0*8               : reseeded 1
0*9 / 0*9 / s0 8*2 0*6      -> 0*9 / 0*9 / 0*1 0*2 0*6     : damaged 2
0*9 / s0                    -> 0*9 / 0*1                   :
8*1 0*8 / s8                -> 0*1 0*8 / 0*1               : damaged 1
0*20 / 0*9 / 3*3            -> 0*20 / 0*9 / 0*3               : damaged 3
0*20 / 3*5                  -> 0*20?3 / 3*5?3                 : doubtful 2
0*3 / 3*3 / 9*3             -> 3*3 / 3*3 / 3*3                : damaged 6
0*9 x1                      -> 0*9 0*1                        :
x1 0*9                      -> 0*1 0*9                        :
s0 x1 0*9                   -> 0*1 0*1 0*9                    :
0*9 x2 0*2                  -> 0*9 0*1 0*2                    :
0*9 | x1 0*9                -> 0*9 0*1 0*9                    :
0 64                        -> 0*1 64*1?64                    : unproven 1
0 65                        -> 0*1 65*1?65                    : unproven 1
0*3 8*2 0*3 8*2 0*3         -> 0*3?8 0*2?8 0*3?8 0*2?8 0*3?8  : damaged 4 doubtful 5
0*9 1*9                     -> 0*9 1*9                        :
0*9 1*1                     -> 0*9 1*1?1                      : unproven 1
0*9 2*2 0*2                 -> 0*9 0*2?2 0*2?2                : damaged 2 doubtful 2
-1*1 0*9                    -> 0*1?1 0*9                      : damaged 1 doubtful 1
0*6 1*6 2*6                 -> 0*6?1 1*6?1 2*6?1              : doubtful 3
0*6 1*2 2*6                 -> 0*6?2 1*2?1 2*6?2              : doubtful 3
0*12 8*12 0*12              -> 0*12 0*12?8 0*12?8             : damaged 12 doubtful 2
0*9 8*1 9*1 0*9             -> 0*9 0*1 0*1 0*9                : damaged 2
0*9 / 0*9 | 8*3             -> 0*9 / 0*9 8*3?8                : doubtful 1
0*30 8*30 / 0*60            -> 0*30 0*30?8 / 0*60             : damaged 30 doubtful 1
0*9 / 0*4 x1 1*4            -> 0*9 / 0*4 0*1 0*4              : damaged 4
0*9 / 8*9 / s8 8*8          -> 8*9 / 8*9 / 16*1 8*8           : reseeded 1 damaged 9
8*9 / s8 / 0*9 / 0*9        -> 0*9 / 0*1 / 0*9 / 0*9          : damaged 9
s1 0*6 1*5 -> 1*1 0*6?1 1*5?1 : unproven 1
+1 0*9                      -> -1*1 -1*8                      : damaged 1
0*5 2*1 x1 1*2              -> 0*5?2 2*1?2 1*1 1*2?1          : unproven 1
0*9 ~-24 8*6                -> 0*9 8*6?8                      : doubtful 1
0*9 ~-25 8*6                -> 0*9 8*6                        :
0*9 | 64*3                  -> 0*9 64*3?64                    : doubtful 1
0*9 | 65*3                  -> 0*9 65*3?65                    : unproven 1
.1 64*5 $ / +2 1*6          -> -1*5?65 / -1*1 -1*5            : damaged 6 doubtful 1
s3 x1 65*1 x1 0*6           -> 0*1 0*1 0*1?65 0*1 0*6?65      : damaged 1 doubtful 2
1*6 0*1 3*3                 -> 1*6?2 3*1?3 3*3?2              : damaged 1 doubtful 1 unproven 1
|| 8*1 0*12                 -> 0*1 0*12                       : damaged 1
16*2 2*2 0*1                -> 2*2?14 2*2?14 2*1?14           : damaged 3 doubtful 3
1*1 || 8*1 64*5             -> 1*1?63 64*1?63 64*5?63         : damaged 1 doubtful 3
"""
OWN_BUFFERS = """\
0*9 8*3 / 0*9 8*3           -> 0*9 8*3?8 / 0*9 8*3?8             : doubtful 2
0*9 8*3 / 0*9 8*1           -> 0*9 8*3?8 / 0*9 8*1?8             : unproven 2
0*9 / 0*9 / 8*9             -> 0*9 / 0*9 / 0*9?2                 : damaged 9 doubtful 1
0*9 / 8*9 / 8*9             -> 8*9?2 / 8*9 / 8*9                 : damaged 9 doubtful 1
0*9 8*3 / 0*9 8*3 / 0*9 8*3 -> 0*9 8*3?8 / 0*9 8*3?8 / 0*9 8*3?8 : doubtful 3
0*9 8*3 / 0*12 / 0*9 8*3    -> 0*9 8*3?8 / 0*12 / 0*9 8*3?8      : doubtful 2
0*9 / s0 8*8                -> 0*9 / 0*1?2 0*8?2                 : damaged 8 doubtful 2
8*1 0*8 / s0 0*8            -> 0*1 0*8 / 0*1 0*8?8               : damaged 1 doubtful 1
0*9 / s8 0*8                -> 0*9 / 0*1 0*8                     :
0*9 / s0                    -> 0*9 / 0*1?2                       : doubtful 1
8*1 0*8 / s8                -> 0*1 0*8 / 0*1?2                   : damaged 1 doubtful 1
0*9 / s5                    -> 0*9 / 1*1?2                    : doubtful 1
0*9 / s1                    -> 0*9 / 1*1?2                    : doubtful 1
0*9 / s-3                   -> 0*9 / -3*1?2                   : doubtful 1
0*9 / s0 / s4               -> 0*9 / 0*1?2 / 1*1?2            : doubtful 2
s3                          -> 3*1                            :
0*20 / 3*3                  -> 0*20?3 / 3*3?3                 : doubtful 2
0*20 / -3*3                 -> 0*20?3 / -3*3?5                : doubtful 2
0*20 / 3*6                  -> 0*20?3 / 3*6?3                 : doubtful 2
0*20 / 0*9 / 3*3            -> 0*20 / 0*9 / 3*3?3             : doubtful 1
0*3 / 3*3 / 9*3             -> 9*3?1 / 9*3?1 / 9*3            : damaged 6 doubtful 2
-1*1 0*9                    -> -1*1?1 0*9                     : unproven 1
0*6 1*6 2*6                 -> 0*6 1*6 2*6                    :
0*6 1*2 2*6                 -> 0*6 1*2?1 2*6                  : doubtful 1
0*9 / 0*9 | 8*3             -> 0*9 / 0*9 0*3                  : damaged 3
0*9 | 8*6                   -> 0*9 8*6                        :
0*9 / 0*4 x1 1*4            -> 0*9 / 0*4?1 0*1 1*4?1          : doubtful 2
0*9 / 8*9 / s8 8*8          -> 8*9?2 / 8*9 / 8*1 8*8          : damaged 9 doubtful 1
8*9 / s8 / 0*9 / 0*9        -> 0*9?2 / 0*1?2 / 0*9 / 0*9      : damaged 9 doubtful 2
-8*4 | 0 / s5@1 0*5 -8*9 -8*4 8*2 -> -8*4 -8*1 / -8*1 -8*5 -8*13 8*2?16 : damaged 6 unproven 1
s65 / s4 64 / x1 65*9 -> 65*1?3 / 64*1 64*1?60 / 65*1 65*9 : doubtful 2
16*1 / 0*6 64*6             -> 16*1?16 / 0*6?64 64*6?48       : doubtful 3
0*20 / 3*2 4*1              -> 0*20?3 / 3*2?3 3*1?3           : damaged 1 doubtful 3
s1 || 0*1 / s3 0*6          -> 0*1 0*1?1 / 0*1 0*6?2          : doubtful 2
1*5 / 2*6 65*2 | 0*2        -> 1*5?1 / 0*6 0*2 0*2            : damaged 8 doubtful 1
0*1 / 8*9                   -> 0*1?9 / 8*9?8                  : doubtful 2
1*1 || 8*1 64*5             -> 1*1?63 8*1?56 64*5?63          : doubtful 2 unproven 1
"""
OWN_COUNTERS = """\
0*9 / 8*9                   -> 0*9 / 8*9                         :
0*9 / 8*2 0*7               -> 0*9 / 0*2?8 0*7?8                 : damaged 2 doubtful 2
0*9 / 0*7 8*2               -> 0*9 / 0*7 8*2?8                   : unproven 1
0*9 / 0*3 8*3 0*3           -> 0*9 / 0*3?8 0*3?8 0*3?8           : damaged 3 doubtful 3
0*9 8*3 / 0*9 8*3           -> 0*9 8*3?8 / 0*9 8*3?8             : doubtful 2
0*9 8*3 / 0*9 8*1           -> 0*9 8*3?8 / 0*9 8*1?8             : unproven 2
0*9 / 0*9 / 8*9             -> 0*9 / 0*9 / 8*9                   :
0*9 / 0*9 / 0*5 8*4         -> 0*9 / 0*9 / 0*5?8 8*4?8           : doubtful 2
0*9 / 0*9 / 8*4 0*5         -> 0*9 / 0*9 / 0*4?8 0*5?8           : damaged 4 doubtful 2
0*9 / 8*9 / 8*9             -> 0*9 / 8*9 / 8*9                   :
0*9 8*3 / 0*9 8*3 / 0*9 8*3 -> 0*9 8*3?8 / 0*9 8*3?8 / 0*9 8*3?8 : doubtful 3
0*9 8*3 / 0*12 / 0*9 8*3    -> 0*9 8*3?8 / 0*12 / 0*9 8*3?8      : doubtful 2
0*9 / s0 8*8                -> 0*9 / 0*1 8*8                     : reseeded 1
8*1 0*8 / s0 0*8            -> 0*1 0*8 / -8*1 0*8                : reseeded 1 damaged 1
.1 s0@1 0*8 / 8*1 0*9       -> -8*1 0*8 / 0*1 0*9                : reseeded 1 damaged 1
0*9 / s5                    -> 0*9 / 5*1                      :
0*20 / 3*3                  -> 0*20 / 3*3                     :
0*30 8*30 / 0*60            -> 0*30 8*30 / 0*60               :
0*9 / 0*4 x1 1*4            -> 0*9 / 0*4?1 0*1 1*4?1          : doubtful 2
0*9 / 8*9 / s8 8*8          -> 0*9 / 8*9 / 8*1 8*8            :
8*9 / s8 / 0*9 / 0*9        -> 8*9 / 8*1 / 0*9 / 0*9          :
0*9 / 0*9 | 8*3             -> 0*9 / 0*9 8*3?8                : doubtful 1
0*9 || 8*3                  -> 0*9 8*3?8                      : doubtful 1
64*3 x1 65*3 / ~-29 64*12 .9 0*12 64 -> 64*3?1 64*1 65*3?1 / 64*12?64 0*12?64 64*1?64 : steps 1 doubtful 5
"""
HEADER_SAYS_0 = """\
0*9 -8*9     -> 0*9?8 0*9?8    : damaged 9 doubtful 2
0*9 | -8*9   -> 0*9 -8*9       : steps 1
0 8 8        -> 0*1?8 8*2?8    : unproven 1
0*6 8*2 16*9 -> 0*6 8*2?8 16*9 : doubtful 1
0*6 16*2 8*9 -> 0*6 8*2?8 8*9  : damaged 2 doubtful 1
.1 2*5 0*3 / 16*6 0*5       -> 0*5 0*3 / 0*6 0*5              : damaged 11
x1 0*1 3*5 x1 0*2           -> 3*1 3*1?3 3*5?3 3*1 3*2?3      : damaged 3 doubtful 3
s1 || 0*1 / s3 0*6          -> 1*1 0*1 / 3*1 0*6              : reseeded 1
0*1 / 8*9                   -> 0*1?8 / 8*9?8                  : doubtful 2
"""
OPTIONS = {
    ONE_COUNTER: {},
    OWN_BUFFERS: {"has_shared_buffers": False},
    OWN_COUNTERS: {"has_common_clock": False},
    HEADER_SAYS_0: {"uptime_cycles": 100 * ROLLOVER},
}


@pytest.mark.parametrize(
    ("line", "known"),
    [(line, known) for table, known in OPTIONS.items() for line in table.splitlines()],
    ids=[line.partition("->")[0].strip() for table in OPTIONS for line in table.splitlines()],
)
def test_where_runs_of_time_events_are_placed(line, known):
    """Behind the arrow where they are placed; behind the colon what is reported, and how often."""
    clocks, expected, reported = re.split(" *-> | *: ?", line)
    found = consensus(clocks.split(" / "), **known)
    assert counts(found.verdicts()) == reported
    assert " / ".join(told(found, cpu) for cpu in found.clocks) == expected


def test_what_a_verdict_holds():
    """Rows of the file, CPUs, and rollovers or cycles."""
    one = consensus(["0*9", "0*3 8*2 0*4", "0*9"]).verdicts()
    assert one.corrections == [Correction(1, 10, 16, -8)]
    assert one.damaged == [(10, 1, 8), (13, 1, 8)]
    assert consensus(["0*9 8*2"]).verdicts().unproven == [(9, 0, 8)]
    assert consensus(["0*9 8*6"]).verdicts().doubtful == [(9, 0, 8)]
    assert consensus(["8 0"]).verdicts().steps == [(1, 0, 8 * ROLLOVER - PACE)]
    assert consensus(["0*9", "s8 0*8"]).verdicts().reseeded == [(3, 1, PACE - 8 * ROLLOVER)]
