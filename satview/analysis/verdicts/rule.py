"""Declarations of the rules of `satview check`, and their thresholds: defaults, and values of a user file."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from satview.analysis.activities import Timing, read_timing
from satview.analysis.needs import KERNEL, NO_DAMAGE, NO_LOSS, Need
from satview.analysis.verdicts.evidence import Severity, Verdict
from satview.base.errors import UsageError
from satview.base.named_files import read_toml
from satview.base.time import UNITS_NS, Clock

if TYPE_CHECKING:
    from satview.analysis.verdicts.evidence import Evidence


# Declarations of the rules of `satview check`: kind, question, needs and thresholds.
#
# A rule is one function decorated with `verdict_rule`, in any module of this folder. Windows, commands, the doctor,
# SQL, claims in tests and the file of thresholds take their information about a kind from the decorator's arguments.


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
        """Return the threshold `name` of a kind, which is a count or a share in percent."""
        return self.values[kind][name]

    def ns(self, kind: str, name: str) -> int:
        """Return the threshold `name` of a kind, which is a time (`_us` or `_ms` at the end), in nanoseconds."""
        return round(self.values[kind][name] * UNITS_NS[name.rpartition("_")[2]])

    def is_enabled(self, kind: str) -> bool:
        """Return whether a kind of verdict is enabled, and the timing file has the entries that it needs.

        Kinds of plug-ins, which have no thresholds, are always enabled.
        """
        return kind not in self.values or (bool(self.values[kind][ENABLED]) and self.has_timing_for(kind))

    def has_timing_for(self, kind: str) -> bool:
        """Return whether the timing file has the entries that a kind needs; most kinds need none."""
        keys = rules()[kind].timing if kind in rules() else ()
        return not keys or any(getattr(entry, key) for entry in self.timing.values() for key in keys)


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
        """Return the threshold `name`, which is a time, in cycles; at least 1, so that no window is empty."""
        return max(1, self.clock.cycles_of(self.thresholds.ns(self.kind, name)))

    def number(self, name: str) -> float:
        """Return the threshold `name`, which is a count (at least 1) or a share in percent."""
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

    `thresholds` gives the default and the meaning of each threshold. `KERNEL` is added to `needs` if there are any.
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


# Thresholds of verdicts: the defaults that rules declare, overridden by those of a user's file.


_MOST_BYTES: Final = 1 << 16
_MOST: Final = 1e9
_HEAD: Final = """\
# What counts as a verdict: `satview check --rules FILE`, satview.read_thresholds(FILE).
# The end of a name is its unit: _ms, _us (time), _percent, _count. The file may have any of these tables and names;
# what it leaves out stays as it is here. `enabled = false` turns a kind off, `severity = "error"` says what its
# verdicts count as (error, warning or info), `threads = ["planner", "2:3"]` that only those of some threads count.
#
# Sums and counts are those of a window of a fixed length (window_ms): what happens elsewhere in the trace, and how long
# the trace is, changes nothing.
"""


@cache
def default_thresholds() -> Thresholds:
    """Return the thresholds that the rules declare."""
    return Thresholds({kind: {ENABLED: 1.0} | {name: number.default for name, number in rule.thresholds.items()}
                       for kind, rule in rules().items()})  # fmt: skip


def thresholds_text() -> str:
    """Return the default thresholds as a file that `read_thresholds` reads, each with its meaning."""
    parts = [_HEAD]
    for rule in rules().values():
        lines = [f"[{rule.kind}]  # {rule.meaning.removesuffix('.')}", f"{ENABLED} = true"]
        for name, number in rule.thresholds.items():
            lines.append(f"{f'{name} = {number.default:g}':<28} # {number.meaning}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def read_thresholds(path: Path | str | None, timing: Path | str | None = None) -> Thresholds:
    """Return the default thresholds overridden by those of a user's file.

    The files are TOML; they contain no code.

    Args:
        path: The file, which may have only some of the tables and names; None = the defaults.
        timing: A timing file (docs/late.md), for the verdicts on deadlines, periods and chains; None = none.

    Raises:
        UsageError: The file cannot be read, is no TOML, or has an invalid name or value; the text names file, line and
            correction.
    """
    thresholds = default_thresholds()
    if path is not None:
        path = Path(path)
        text, tables = read_toml(path, _MOST_BYTES, "write it as [deadlock] and then least_ms = 20")
        thresholds = _over_defaults(path.name, text, tables)
    return thresholds if timing is None else replace(thresholds, timing=read_timing(timing))


def refuse_unsearched(kinds: Collection[str], thresholds: Thresholds) -> None:
    """Raise an error if a requested kind is switched off, or needs entries that the timing file lacks.

    Without the error, the empty result would look as if a search had found nothing.

    Raises:
        UsageError: A requested kind cannot be searched for.
    """
    for kind in kinds:
        if not thresholds.has_timing_for(kind):
            keys = " or ".join(rules()[kind].timing)
            raise UsageError(f"{kind} needs a timing file that says a {keys} (docs/late.md)")
        if not thresholds.is_enabled(kind):
            raise UsageError(f"{kind} is switched off by the file of thresholds: enabled = false")


def _over_defaults(name: str, text: str, tables: dict[str, object]) -> Thresholds:
    values = {kind: dict(table) for kind, table in default_thresholds().values.items()}
    severities: dict[str, Severity] = {}
    threads: dict[str, tuple[str, ...]] = {}
    for kind, table in tables.items():
        if kind not in values:
            raise _refused(name, text, "", kind, f"there is no kind {kind[:40]!r}; there are {', '.join(values)}")
        if not isinstance(table, dict):
            raise _refused(name, text, "", kind, f"{kind} is not a table; write [{kind}]")
        for key, value in table.items():
            known = values[kind]
            if key == SEVERITY:
                if value not in tuple(Severity):
                    raise _refused(name, text, kind, key, f"{key} is none of {', '.join(Severity)}; write "
                                   f'{key} = "{Severity.WARNING}"')  # fmt: skip
                severities[kind] = Severity(value)
                continue
            if key == THREADS:
                if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
                    raise _refused(name, text, kind, key, f'{key} is not a list of names; write {key} = ["planner"]')
                threads[kind] = tuple(value)
                continue
            if key not in known:
                raise _refused(name, text, kind, key, f"[{kind}] has no {key[:40]!r}; it has "
                               f"{', '.join((*known, SEVERITY, THREADS))}")  # fmt: skip
            is_switch = key == "enabled"
            if is_switch != isinstance(value, bool):
                requested = "true or false" if is_switch else "a number"
                raise _refused(name, text, kind, key, f"{key} is not {requested}; write {key} = {_spelt(known, key)}")
            if not isinstance(value, (int, float)) or not 0 <= value <= _MOST:  # NaN is in no range
                raise _refused(name, text, kind, key, f"{key} is not a number from 0 to {_MOST:.0f}; write {key} = "
                               f"{_spelt(known, key)}")  # fmt: skip
            known[key] = float(value)
    return Thresholds(values, severities, threads)


def _spelt(known: dict[str, float], key: str) -> str:
    return "false" if key == "enabled" else f"{known[key]:g}"


def _refused(name: str, text: str, kind: str, key: str, what: str) -> UsageError:
    """Return an error with the text `what` and the number of the faulty line, the first with `key` in table `kind`.

    If `kind` is empty, `key` is the table itself, or is outside of tables.
    """
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    is_inside = not kind
    head = re.compile(rf"\s*\[\s*[\"']?{re.escape(kind)}[\"']?\s*\]") if kind else None
    requested = re.compile(rf"\s*{quoted}\s*=" if kind else rf"\s*(\[\s*{quoted}\s*[\].]|{quoted}\s*[=.])")
    for number, line in enumerate(text.splitlines(), 1):
        if head is not None and line.lstrip().startswith("["):
            is_inside = head.match(line) is not None
        if is_inside and requested.match(line):
            return UsageError(f"{name}, line {number}: {what}")
    return UsageError(f"{name}: {what}")
