"""What a rule of `satview check` declares beside its function: kind, question, needs and thresholds.

A rule is one function with a `verdict_rule` above it, in any module of this folder. Windows, commands, the doctor, SQL,
claims in tests and the file of thresholds take all that they say about the kind from there.
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
    """When something is a verdict: by kind, then by name; the end of a name is its unit.

    Attributes:
        values: The numbers; switches (`enabled`) are 0 or 1.
        severities: What every verdict of a kind counts as; of other kinds the rule says it.
        threads: Names of threads by kind: only verdicts count that one of these is in; of other kinds all.
        timing: What a file of timing says of activities and chains, by name.
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
        """Return whether verdicts of a kind are requested; those of plug-ins, which have no thresholds, always are."""
        return kind not in self.values or (bool(self.values[kind][ENABLED]) and self.is_said(kind))

    def is_said(self, kind: str) -> bool:
        """Return whether the file of timing says what a kind needs to know; most need nothing of it."""
        keys = rules()[kind].timing if kind in rules() else ()
        return not keys or any(getattr(said, key) for said in self.timing.values() for key in keys)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of one kind, times in cycles of one trace.

    Attributes:
        thresholds: Those of all kinds.
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
        """What a file of timing says of activities and chains, by name."""
        return self.thresholds.timing

    def of(self, kind: str) -> Limits:
        """Return the thresholds of another kind."""
        return Limits(self.thresholds, kind, self.clock)


Search = Callable[["Evidence", Limits], list[Verdict]]
_RULES: Final[dict[str, Rule]] = {}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides whether something is a verdict.

    Attributes:
        default: What it is unless a user's file says otherwise.
        meaning: One line for people, without a full stop.
    """

    default: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of verdict.

    Attributes:
        kind: Stable name on the command line, in files and in SQL: `priority-inversion`.
        meaning: What is wrong, as one sentence.
        question: What the rule answers.
        search: Looks for it.
        needs: Without any of these the trace cannot show it.
        bounds: Without any of these there may be more than is found.
        thresholds: By name; the end of a name is its unit: `_ms`, `_us`, `_percent`, `_count`.
        proof: One sentence: what would prove a verdict that rests on what is inferred; empty if none does.
        timing: What of `Timing` it is about: it is looked for if a file of timing says any of these; empty = always.
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
        """The kind for people: `Priority inversion`."""
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
    """Make a function the rule of a kind of verdict.

    Args:
        kind: As of `Rule`.
        meaning: As of `Rule`.
        question: As of `Rule`.
        needs: As of `Rule`; that the events are those of a kernel is added.
        bounds: As of `Rule`.
        thresholds: By name the default, and what it means.
        proof: As of `Rule`.
        timing: As of `Rule`.
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
