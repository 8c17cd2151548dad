"""Reads one line of a rule file, word by word, and says where a fault is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from satview.events.modes import RULE_MODES, Mode
from satview.events.spec import Release
from satview.filters.diagnostics import Diagnostic, ExpressionError, RuleError, did_you_mean, nearest
from satview.filters.expressions.expression import Expression
from satview.filters.external import INT_CLASSES, ExternalClass, classes_of, has_event_masks
from satview.filters.names import LABEL
from satview.filters.rules.event_names import NUMBER, PREFIX, event_argument, names_of_class
from satview.filters.rules.rule import Rule

# What is not closed goes on to the end of the line, so that no character is looked at twice.
_WORD: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[^\s"]+')
_CLOSED: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
# Only conditions know single quotes: a process may have one in its name.
_QUOTED_OR_COMMENT: Final = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)
    | (?<=[=~(,\s])'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?$)
    | ~\s*/[^/\\]*(?:\\.[^/\\]*)*(?:/|\\?$)
    | (?:^|(?<=\s))(?P<comment>\#)
    """,
    re.VERBOSE,
)
_INTERRUPT: Final = "interrupt"
Processes = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


class RuleLine:
    """One line of a rule file, read word by word; every method raises RuleError, with line and column."""

    def __init__(self, text: str, number: int, release: Release, processes: Processes | None) -> None:
        self.text, self.number, self.release, self.processes = text, number, release, processes
        self.words = [_Word(_unquoted(m.group()), m.start(), m.end()) for m in _WORD.finditer(text)]
        self.at = self.condition_start = 0
        self.pattern_count = 0

    def _fault(self, message: str, word: _Word | None = None, hints: Sequence[str] = ()) -> RuleError:
        start, end = (word.start, word.end) if word else (len(self.text.rstrip()), len(self.text.rstrip()))
        return RuleError([Diagnostic(f"{message}{did_you_mean(hints)}", start, end, self.number, tuple(hints))])

    def _take(self, what: str) -> _Word:
        if self.at >= len(self.words):
            raise self._fault(f"{what} is missing at the end of the line")
        word = self.words[self.at]
        written = self.text[word.start : word.end]
        if written[0] == '"' and not _CLOSED.fullmatch(written):
            raise self._fault("the text is not closed with a quotation mark", word)
        self.at += 1
        return word

    def rule(self) -> Rule:
        """Return the rule of the line.

        Raises:
            RuleError: It has a fault; with line and column.
        """
        first = self._take("the mode")
        name = first.text.upper().removeprefix(PREFIX)
        if name == "WHERE":
            condition = self._condition(first)
            return Rule(None, condition=condition, line=self.number, condition_start=self.condition_start)
        mode = Mode.__members__.get(name)
        if mode not in RULE_MODES:
            if mode is not None:
                raise self._fault(f"{mode.name} sets no filter, so it does not belong into rules", first)
            hints = nearest(name, [*(known.name for known in RULE_MODES), "WHERE"])
            raise self._fault(f"there is no mode {first.text[:40]!r}", first, hints)
        values: dict[str, object] = {}
        for part in mode.rule_arguments:
            self._argument(part, values)
        if self.at < len(self.words):
            raise self._fault(f"{mode.name} ends before this", self.words[self.at])
        start = self.condition_start
        return Rule(mode, line=self.number, condition_start=start, **values)  # type: ignore[arg-type]  # fields of Rule

    def _argument(self, part: str, values: dict[str, object]) -> None:
        if part == "class":
            values["external"] = self._external()
        elif part == "event":
            external = values["external"]
            assert isinstance(external, ExternalClass)
            values["event"] = self._event(external)
        elif part == "pid":
            self._pid(values)
        elif part == "tid":
            values["tid"] = self._number_of("the tid")
        else:
            self._handler(values)

    def _external(self) -> ExternalClass:
        word = self._take("the class")
        known = {c.name: c for c in classes_of(self.release)}
        if NUMBER.fullmatch(word.text) and int(word.text, 0 if word.text[:2].lower() == "0x" else 10) in known.values():
            return ExternalClass(int(word.text, 0 if word.text[:2].lower() == "0x" else 10))
        name = word.text.upper().removeprefix(PREFIX)
        if name in known:
            return known[name]
        if name in ExternalClass.__members__:
            raise self._fault(f"{self.release} has no class {name}", word)
        hints = nearest(_PRINTED.get(name, name), known)
        raise self._fault(f"there is no class {word.text[:40]!r}", word, hints)

    def _event(self, external: ExternalClass) -> int:
        word = self._take("the event")
        if external in INT_CLASSES and word.text.lower() == _INTERRUPT and self.at < len(self.words):
            word = self._take("the number")  # as the window shows it: `interrupt 0x1b`
        found = event_argument(word.text, external, self.release)
        if found is not None:
            return found
        names = names_of_class(external, self.release)
        if not names:
            raise self._fault(f"events of {external.name} are numbers", word)
        wrong = self._wrong_part(word, external)
        hints = nearest(wrong.text, names) or nearest(f"TH{wrong.text}", names)
        raise self._fault(f"{external.name} has no event {wrong.text[:40]!r}", wrong, hints)

    def _wrong_part(self, word: _Word, external: ExternalClass) -> _Word:
        """Return the first event of `A|B` that the class does not have; the word itself where none can be combined."""
        if "|" not in word.text or not has_event_masks(external, self.release):
            return word
        start = word.start + (self.text[word.start] == '"')
        for part in word.text.split("|"):
            if event_argument(part.strip(), external, self.release) is None:
                return _Word(part.strip(), start, start + len(part))
            start += len(part) + 1
        return word

    def _pid(self, values: dict[str, object]) -> None:
        word = self._take("the pid, or the name of a process,")
        is_quoted = self.text[word.start] == '"'
        if NUMBER.fullmatch(word.text) and not is_quoted:
            values["pid"] = int(word.text, 0) if word.text[:2].lower() == "0x" else int(word.text)
            return
        if self.processes is None:
            raise self._fault(f"{word.text[:40]!r} is no number; names of processes need an open trace", word)
        pids = self.processes.get(word.text, ())
        label = LABEL.fullmatch(word.text)
        if label is not None and not pids:  # as the window shows it: `dumper[12]`, `pid 7`
            pid = int(label["numbered"] or label["pid"])
            pids = (pid,) if label["name"] is None or pid in self.processes.get(label["name"], ()) else ()
        if not pids:
            labels = (f"{name}[{pid}]" for name, own in self.processes.items() for pid in own)
            known = (*self.processes, *(labels if label is not None else ()))
            raise self._fault(f"there is no process {word.text[:40]!r}", word, nearest(word.text, known))
        if len(pids) > 1:
            listed = ", ".join(f"{word.text[:40]}[{pid}]" for pid in pids[:6])
            raise self._fault(f"{len(pids)} processes are called {word.text[:40]!r}; give one of {listed}", word)
        values["pid"], values["process"] = pids[0], word.text

    def _number_of(self, what: str) -> int:
        word = self._take(what)
        if not NUMBER.fullmatch(word.text):
            raise self._fault(f"{what} is a number, {word.text[:40]!r} is none", word)
        return int(word.text, 0) if word.text[:2].lower() == "0x" else int(word.text)

    def _handler(self, values: dict[str, object]) -> None:
        word = self._take("WHERE with a condition, or CALL with a function,")
        if word.text.upper() == "WHERE":
            values["condition"] = self._condition(word)
        elif word.text.upper() == "CALL":
            target = self._take("file.py:function")
            path, colon, name = target.text.rpartition(":")
            if not colon or not path or not name.isidentifier():
                raise self._fault("write the function as file.py:name", target)
            values["function"] = target.text
        else:
            raise self._fault(
                "a dynamic rule goes on with WHERE and a condition, or with CALL and file.py:function",
                word,
                nearest(word.text, ("WHERE", "CALL")),
            )

    def _condition(self, word: _Word) -> str:
        text = self.text[word.end :].strip()
        self.condition_start = offset = word.end + len(self.text[word.end :]) - len(self.text[word.end :].lstrip())
        self.at = len(self.words)
        try:
            self.pattern_count = len(Expression(text, self.release).patterns)
        except ExpressionError as error:
            start, end = offset + error.start, offset + max(error.end, error.start)
            raise RuleError([Diagnostic(error.message, start, end, self.number, error.suggestions)]) from None
        return text


_PRINTED: Final = {
    "KER_CALL": "KERCALLENTER",
    "KER_EXIT": "KERCALLEXIT",
    "INT_CALL": "KERCALLINT",
    "INT_ENTR": "INTENTER",
    "INT_EXIT": "INTEXIT",
    "USREVENT": "USER",
    "INT_HANDLER_ENTR": "INT_HANDLER_ENTER",
}


def _unquoted(word: str) -> str:
    if len(word) >= 2 and word[0] == '"' == word[-1]:
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


def without_comment(line: str) -> str:
    """Return a line up to its comment: a `#` at its start or after a blank, outside quotes and patterns."""
    for found in _QUOTED_OR_COMMENT.finditer(line):
        if found.group("comment") is not None:
            return line[: found.start("comment")]
    return line
