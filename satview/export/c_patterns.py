"""Globs and regular expressions as tables for C: an automaton of the tree that RE2 gets, with its transitions computed.

State 0 means that the pattern fits; every other state waits for one character. A set of states is a bit mask of 64-bit
words. `fits()` in the exported program goes through a text once and needs no memory but two such sets, so it can run
in an event handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from satview.export.c_automaton import Automaton
from satview.export.c_text import constants
from satview.filters.expressions.pattern import Pattern
from satview.filters.expressions.pattern_syntax import Ranges

_WORD_BITS: Final = 64
_NONE: Final[Ranges] = ((1, 0),)  # C has no empty tables; no character is in this


def pattern_table(name: str, pattern: Pattern) -> list[str]:
    """Return the C definition of a pattern's tables under a name."""
    automaton = Automaton(pattern.root)
    characters = automaton.characters
    number = {index: bit for bit, (index, _, _) in enumerate(characters, 1)} | {0: 0}
    count = max(1, len(characters))  # C has no empty tables: a state that nothing reaches represents none
    words = -(-(count + 1) // _WORD_BITS)

    def mask(states: Iterable[int]) -> str:
        bits = sum(1 << number[state] for state in states if state in number)
        return ", ".join(f"0x{bits >> _WORD_BITS * i & (1 << _WORD_BITS) - 1:x}ULL" for i in range(words))

    def reached(entries: list[int], at_start: bool, at_end: bool) -> str:
        return mask(automaton.closure(entries, at_start=at_start, at_end=at_end))

    begin = [automaton.entry]
    again = [] if pattern.is_whole else begin
    ranges = [item or _NONE for _, item, _ in characters] or [_NONE]
    following = [[entry] for _, _, entry in characters] or [[]]
    starts = [sum(len(item) for item in ranges[:i]) for i in range(count + 1)]
    pairs = [f"{{0x{low:x}, 0x{high:x}}}" for item in ranges for low, high in item]
    nexts = [reached(entries, False, at_end) for entries in following for at_end in (False, True)]
    return [
        *constants(f"uint32_t {name}_ranges[][2]", pairs),
        *constants(f"uint16_t {name}_starts[]", [str(start) for start in starts]),
        *constants(f"uint64_t {name}_nexts[]", nexts),
        *constants(f"uint64_t {name}_begins[]", [reached(begin, True, False), reached(begin, True, True)]),
        *constants(f"uint64_t {name}_again[]", [reached(again, False, False), reached(again, False, True)]),
        f"static const struct pattern {name} = {{",
        f"    {name}_ranges, {name}_starts, {name}_nexts, {name}_begins, {name}_again, {count}, {words}, "
        f"{int(pattern.is_whole)}",
        "};",
    ]
