"""What the handlers of an exported program share: the functions they call, and tables of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from satview.events.spec import Release
from satview.export.c_automaton import Automaton
from satview.export.c_patterns import pattern_table
from satview.export.c_text import comment, constants
from satview.filters.expressions.pattern import Pattern


@dataclass(slots=True)
class Tables:
    """Everything that the conditions of a program share; equal tables are one.

    Attributes:
        release: Whose events they are.
        parts: Names of the C functions that are called.
        lines: Definitions of tables.
        named: C conditions over `full` and `own`, by the name of the list of processes that fit.
        pattern_words: 64-bit words of the largest pattern's sets.
    """

    release: Release
    parts: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    pattern_words: int = 1
    _known: dict[object, str] = field(default_factory=dict)

    def use(self, part: str, *arguments: str) -> str:
        """Return a call of a part."""
        self.parts.add(part)
        return f"{part}({', '.join(arguments)})"

    def table(self, kind: str, declaration: str, rows: Sequence[str], shown: str = "") -> str:
        """Return the name of a constant table with given rows, at least one."""
        key = (kind, tuple(rows))
        name = self._known.get(key)
        if name is None:
            name = self._name(key, kind)
            self.lines += [*comment(shown), *constants(declaration.format(name), rows)]
        return name

    def pattern(self, pattern: Pattern) -> str:
        """Return the name of a pattern."""
        key = (pattern.text, pattern.ignores_case, pattern.is_whole)
        name = self._known.get(key)
        if name is None:
            name = self._name(key, "pattern")
            self.parts.add("pattern")
            self.lines += [*comment(pattern.text), *pattern_table(name, pattern)]
            self.pattern_words = max(self.pattern_words, len(Automaton(pattern.root).characters) // 64 + 1)
        return name

    def processes(self, test: str, shown: str) -> str:
        """Return the name of the list of processes for which a test of `full` or `own` holds."""
        name = self._known.get(test)
        if name is None:
            name = self._name(test, "named")
            self.named[name] = test
            self.lines += [*comment(shown), f"static struct named {name};"]
        return name

    def _name(self, key: object, kind: str) -> str:
        number = 1 + sum(known.startswith(f"{kind}_") for known in self._known.values())
        self._known[key] = f"{kind}_{number}"
        return self._known[key]
