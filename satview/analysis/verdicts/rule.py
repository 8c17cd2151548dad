"""Declarations of the rules of `satview check`: kind, question, needs and thresholds.

A rule is one function decorated with `verdict_rule`, in any module of this folder. Windows, commands, the doctor, SQL,
claims in tests and the file of thresholds take their information about a kind from the decorator's arguments.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from satview.analysis.needs import KERNEL, NO_DAMAGE, NO_LOSS, Need
from satview.analysis.timing import Timing
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.base.time import Clock
from satview.base.time_text import UNITS_NS

if TYPE_CHECKING:
    from satview.analysis.verdicts.evidence import Evidence

ENABLED: Final = "enabled"  # the switch of a kind among its thresholds
SEVERITY: Final = "severity"
THREADS: Final = "threads"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the rules by kind, then by name; a name ends with its unit.

    Attributes:
        values: The numbers; switches (`enabled`) are 0 or 1.
        severities: Severity of all verdicts of a kind; for other kinds the rule decides.
        threads: Names of threads by kind: only verdicts that involve one of them count; for other kinds all count.
        timing: Entries of the timing file for activities and chains, by name.
    """

    values: dict[str, dict[str, float]]
    severities: dict[str, Severity] = field(default_factory=dict)
    threads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    timing: Mapping[str, Timing] = field(default_factory=dict)

    def number(self, kind: str, name: str) -> float:
        """Return a count, or a share in percent."""
        return self.values[kind][name]

    def ns(self, kind: str, name: str) -> int:
        """Return a time whose name ends in `_us` or `_ms`, in nanoseconds."""
        return round(self.values[kind][name] * UNITS_NS[name.rpartition("_")[2]])

    def is_enabled(self, kind: str) -> bool:
        """Return whether a kind of verdict is enabled; kinds of plug-ins, which have no thresholds, always are."""
        return kind not in self.values or (bool(self.values[kind][ENABLED]) and self.has_timing_for(kind))

    def has_timing_for(self, kind: str) -> bool:
        """Return whether the timing file has the entries that a kind needs; most kinds need none."""
        keys = rules()[kind].timing if kind in rules() else ()
        return not keys or any(getattr(said, key) for said in self.timing.values() for key in keys)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of one kind, times in cycles of one trace.

    Attributes:
        thresholds: Thresholds of all kinds.
        kind: The kind.
        clock: The clock of the trace.
    """

    thresholds: Thresholds
    kind: str
    clock: Clock

    def cycles(self, name: str) -> int:
        """Return a time in cycles, at least 1: no window is empty."""
        return max(1, self.clock.cycles_of(self.thresholds.ns(self.kind, name)))

    def number(self, name: str) -> float:
        """Return a count, at least 1, or a share in percent."""
        number = self.thresholds.number(self.kind, name)
        return max(1.0, number) if name.endswith("_count") else number

    @property
    def timing(self) -> Mapping[str, Timing]:
        """Entries of the timing file for activities and chains, by name."""
        return self.thresholds.timing

    def of(self, kind: str) -> Limits:
        """Return the thresholds of another kind."""
        return Limits(self.thresholds, kind, self.clock)


Search = Callable[["Evidence", Limits], list[Verdict]]
_RULES: Final[dict[str, Rule]] = {}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold of a rule.

    Attributes:
        default: Value if the user's file has none.
        meaning: One line of display text, without a full stop.
    """

    default: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of verdict.

    Attributes:
        kind: Stable name on the command line, in files and in SQL: `priority-inversion`.
        meaning: The problem, as one sentence.
        question: The question that the rule answers.
        search: Function that returns the verdicts.
        needs: If any of these is unmet, the trace cannot show the problem.
        bounds: If any of these is unmet, there may be more verdicts than are found.
        thresholds: By name; the end of a name is its unit: `_ms`, `_us`, `_percent`, `_count`.
        proof: One sentence: what would prove a verdict that rests on inferred links; empty if no verdict does.
        timing: Fields of `Timing` that the rule checks: it runs if the timing file has any of them; empty = always.
    """

    kind: str
    meaning: str
    question: str
    search: Search
    needs: tuple[Need, ...]
    bounds: tuple[Need, ...]
    thresholds: Mapping[str, Threshold]
    proof: str
    timing: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Display name of the kind: `Priority inversion`."""
        return self.kind.replace("-", " ").capitalize()


def verdict_rule(
    kind: str,
    *,
    meaning: str,
    question: str,
    needs: tuple[Need, ...] = (),
    bounds: tuple[Need, ...] = (NO_DAMAGE, NO_LOSS),
    thresholds: Mapping[str, tuple[float, str]] | None = None,
    proof: str = "",
    timing: tuple[str, ...] = (),
) -> Callable[[Search], Search]:
    """Return a decorator that registers a function as the rule of a kind; arguments as the attributes of `Rule`.

    `thresholds` gives the default and the meaning of each threshold. `KERNEL` is added to `needs` unless it is empty.
    """
    all_needs = (KERNEL, *needs) if needs else ()
    numbers = {name: Threshold(float(default), text) for name, (default, text) in (thresholds or {}).items()}

    def register(search: Search) -> Search:
        _RULES[kind] = Rule(
            kind, meaning, question, search, all_needs, bounds, MappingProxyType(numbers), proof, timing
        )
        return search

    return register


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule by its kind, in alphabetical order; imports the modules of this folder."""
    folder = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{__package__}.{module.name}")
    return MappingProxyType(dict(sorted(_RULES.items())))
