"""One rule, and how it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.external import ExternalClass
from satview.filters.rules.event_names import NUMBER, event_text


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        mode: What it does; None for a condition on every event (`WHERE` alone).
        external: The class; None where the mode takes none.
        event: The event argument as TraceEvent() takes it, a mask for classes with masks; None where there is none.
        pid, tid: None where the mode takes none.
        process: Name of the process where one was written instead of the pid; may be empty.
        condition: Expression of a dynamic rule; empty if it is none.
        function: `file.py:name` of a dynamic rule that is a Python function; empty if it is none.
        line: Line number from 1; 0 = made by the program.
        condition_start: Offset of the condition in its line.
    """

    mode: Mode | None
    external: ExternalClass | None = None
    event: int | None = None
    pid: int | None = None
    tid: int | None = None
    process: str = ""
    condition: str = ""
    function: str = ""
    line: int = field(default=0, compare=False)
    condition_start: int = field(default=0, compare=False)

    def text(self, release: Release) -> str:
        """Return the rule as a line."""
        if self.mode is None:
            return f"WHERE {self.condition}"
        words = [self.mode.name]
        if self.external is not None:
            words.append(self.external.name)
            if self.event is not None:
                words.append(event_text(self.external, self.event, release))
        if self.pid is not None:
            words.append(quoted(self.process) if self.process else str(self.pid))
        if self.tid is not None:
            words.append(str(self.tid))
        if self.condition:
            words += ["WHERE", self.condition]
        if self.function:
            words += ["CALL", quoted(self.function)]
        return " ".join(words)

    def arguments(self) -> tuple[int, ...]:
        """Return the numbers that follow the mode in a call of TraceEvent(), handlers left out."""
        return tuple(int(value) for value in (self.external, self.event, self.pid, self.tid) if value is not None)


def quoted(word: str) -> str:
    """Return a word as it has to be written in a rule: in quotes if it has blanks or signs in it."""
    if re.fullmatch(r"[^\s\"#|]+", word) and not NUMBER.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
