"""Rules as text, one per line, in TraceEvent()'s own words; `.satrules` files.

    # what the disk driver does
    DELALLCLASSES
    ADDCLASS THREAD
    ADDEVENT KERCALL MSG_SENDV
    SETCLASSPID KERCALL devb-eide
    ADDEVENTHANDLER KERCALLENTER MSG_SENDV WHERE arg.coid > 2
    ADDCLASSEVHANDLER COMM CALL my_handlers.py:only_big_messages
    WHERE time > 1.2s

The lines take effect from top to bottom, as in the kernel. `WHERE` alone is a condition on every event, for views.
`CALL` only names a Python function: reading a file never runs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from satview.base.errors import UsageError
from satview.base.named_files import read_small
from satview.base.new_file import write_file
from satview.base.targets import Sources
from satview.events.spec import Release
from satview.filters.diagnostics import Diagnostic, RuleError
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_line import Processes, RuleLine, without_comment

FILE_LIMIT: Final = 1 << 20  # bytes of a rule file
LINE_LIMIT: Final = 2_000  # lines with a rule
WIDTH_LIMIT: Final = 12_000  # characters of a line
FAULT_LIMIT: Final = 100  # faults reported
PATTERN_LIMIT: Final = 200  # patterns in the conditions of one file: each is tried on a thousand names


_CALL: Final = re.compile(r"""\bCALL\s+(?:"([^"]+):[^":]*"|(\S+):)""", re.IGNORECASE)


def _not_read(limit: str, line: int) -> Diagnostic:
    return Diagnostic(f"more than {limit}; the rest was not read", 0, 1, line)


def check_rules(
    text: str, release: Release, processes: Processes | None = None
) -> tuple[tuple[Rule, ...], tuple[Diagnostic, ...]]:
    """Read rules and report every fault instead of raising; faulty lines are left out."""
    rules: list[Rule] = []
    faults: list[Diagnostic] = []
    pattern_count = 0
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH_LIMIT:
            faults.append(Diagnostic(f"a line may have {WIDTH_LIMIT} characters", 0, 1, number))
            continue
        bare = without_comment(line)
        if not bare.strip():
            continue
        if len(rules) >= LINE_LIMIT or len(faults) >= FAULT_LIMIT:
            limit = f"{LINE_LIMIT} rules" if len(rules) >= LINE_LIMIT else f"{FAULT_LIMIT} faults"
            faults.append(_not_read(limit, number))
            break
        parsed = RuleLine(bare, number, release, processes)
        try:
            rule = parsed.rule()
        except RuleError as error:
            faults += error.diagnostics
            continue
        pattern_count += parsed.pattern_count
        if pattern_count > PATTERN_LIMIT:
            faults.append(_not_read(f"{PATTERN_LIMIT} patterns", number))
            break
        rules.append(rule)
    return tuple(rules), tuple(faults)


def parse_rules(text: str, release: Release, processes: Processes | None = None) -> tuple[Rule, ...]:
    """Return the rules of a text.

    Args:
        text: One rule per line; `#` begins a comment.
        release: Whose names apply.
        processes: Pids by process name (`process_names`), so that names can represent pids; None = numbers only.

    Raises:
        RuleError: With every fault, each with its line, column and the nearest names.
    """
    rules, faults = check_rules(text, release, processes)
    if faults:
        raise RuleError(faults)
    return rules


def rules_text(rules: Sequence[Rule], release: Release) -> str:
    """Return rules as text, one per line."""
    return "".join(f"{rule.text(release)}\n" for rule in rules)


def load_rules(path: Path | str, release: Release, processes: Processes | None = None) -> tuple[Rule, ...]:
    """Read a `.satrules` file. Nothing in it is run.

    Raises:
        RuleError: Faults in the text.
        UsageError: The file is too large or no text, or cannot be read.
    """
    return parse_rules(read_rule_text(path), release, processes)


def read_rule_text(path: Path | str) -> str:
    """Return the text of a rule file.

    Raises:
        UsageError: It is too large, no text, or cannot be read.
    """
    path = Path(path)
    data = read_small(path, FILE_LIMIT, f"a rule file may have {FILE_LIMIT} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}, byte 0x{error.start:x}: this is no text") from error


def called_files(path: Path) -> list[Path]:
    """Return the files whose functions a rule file calls; none if it cannot be read."""
    try:
        text = read_rule_text(path)
    except UsageError:
        return []
    names = (_CALL.search(without_comment(line[:WIDTH_LIMIT])) for line in text.splitlines()[:LINE_LIMIT])
    return [path.parent / (found[1] or found[2]) for found in names if found]


def save_rules(path: Path | str, text: str, reading: Sources = ()) -> None:
    """Write a rule file; an old one is replaced only once the new one is complete.

    Raises:
        WriteError: It cannot be written, or is among `reading`, the files that must not be replaced.
    """
    write_file(path, text if text.endswith("\n") or not text else text + "\n", reading=reading)
