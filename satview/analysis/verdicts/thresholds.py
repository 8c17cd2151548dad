"""Thresholds of verdicts: the defaults that rules declare, overridden by those of a user's file."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from satview.analysis.timing import read_timing
from satview.analysis.verdicts.rule import ENABLED, SEVERITY, THREADS, Thresholds, rules
from satview.analysis.verdicts.verdict import Severity
from satview.base.errors import UsageError
from satview.base.named_files import read_toml

_MOST_BYTES: Final = 1 << 16
_MOST: Final = 1e9
_HEAD: Final = """\
# When something is a verdict: `satview check --rules FILE`, satview.read_thresholds(FILE).
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


def read_thresholds(path: Path | None, timing: Path | None = None) -> Thresholds:
    """Return the default thresholds overridden by those of a user's file.

    The files are TOML; they contain no code.

    Args:
        path: The file, which may have only some of the tables and names; None = the defaults.
        timing: A file of timing (docs/late.md), for the verdicts on deadlines, periods and chains; None = none.

    Raises:
        UsageError: The file cannot be read, is no TOML, or has an invalid name or value; the text names file, line and
            correction.
    """
    thresholds = default_thresholds()
    if path is not None:
        text, tables = read_toml(path, _MOST_BYTES, "write it as [deadlock] and then least_ms = 20")
        thresholds = _over_defaults(path.name, text, tables)
    return thresholds if timing is None else replace(thresholds, timing=read_timing(timing))


def refuse_without_timing(kinds: Collection[str], thresholds: Thresholds) -> None:
    """Raise an error if a requested kind needs entries that the timing file lacks: it would never find anything.

    Raises:
        UsageError: There is such a kind.
    """
    for kind in kinds:
        if not thresholds.has_timing_for(kind):
            keys = " or ".join(rules()[kind].timing)
            raise UsageError(f"{kind} needs a file of timing that says a {keys} (docs/late.md)")


def _over_defaults(name: str, text: str, tables: dict[str, object]) -> Thresholds:
    values = {kind: dict(table) for kind, table in default_thresholds().values.items()}
    severities: dict[str, Severity] = {}
    threads: dict[str, tuple[str, ...]] = {}
    for kind, table in tables.items():
        if kind not in values:
            raise _refused(name, text, "", kind, f"there is no kind {kind[:40]!r}; there are {', '.join(values)}")
        if not isinstance(table, dict):
            raise _refused(name, text, "", kind, f"{kind} is no table; write [{kind}]")
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
                    raise _refused(name, text, kind, key, f'{key} is no list of names; write {key} = ["planner"]')
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
                raise _refused(name, text, kind, key, f"{key} is no number from 0 to {_MOST:.0f}; write {key} = "
                               f"{_spelt(known, key)}")  # fmt: skip
            known[key] = float(value)
    return Thresholds(values, severities, threads)


def _spelt(known: dict[str, float], key: str) -> str:
    return "false" if key == "enabled" else f"{known[key]:g}"


def _refused(name: str, text: str, kind: str, key: str, what: str) -> UsageError:
    """Return an error that gives the first line with a table, or with a name in a table."""
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
