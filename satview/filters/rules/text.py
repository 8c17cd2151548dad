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
`WHEN condition THEN action; action` is a trigger (`rules.triggers`).
`CALL` only names a Python function: reading a file never runs it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from pathlib import Path
from typing import Final

from satview.base.errors import UsageError
from satview.base.named_files import read_small
from satview.base.new_file import Sources, write_file
from satview.base.safe_text import listed
from satview.events.catalogue import catalogue
from satview.events.layout import Taught
from satview.events.modes import PREFIX, RULE_MODES, Mode
from satview.events.spec import Release
from satview.filters.derived_columns import LABEL
from satview.filters.diagnostics import Diagnostic, ExpressionError, RuleError, did_you_mean, nearest
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import later_parts
from satview.filters.expressions.syntax import in_quotes
from satview.filters.external import INT_CLASSES, PROCESS_NAMES, ExternalClass, classes_of, external_of, has_event_masks

# Names of events in rules, and TraceEvent()'s argument for each.


_INTERRUPT_EVENT: Final = re.compile(r"^interrupt ", re.IGNORECASE)  # before the number, as the window shows it
NUMBER: Final = re.compile(r"0[xX][0-9A-Fa-f]{1,16}|[0-9]{1,20}")
_MOST_ARGUMENT: Final = 2**64 - 1


@cache
def names_of_class(external: ExternalClass, release: Release) -> dict[str, int]:
    """Return the event arguments by name of a class, shared, not to be changed; empty if it has only numbers."""
    if external in INT_CLASSES or external in (ExternalClass.USER, ExternalClass.EMPTY):
        return {}
    if external is ExternalClass.PROCESS:
        return {name: 1 << i for i, name in enumerate(PROCESS_NAMES)}
    requested = ExternalClass.KERCALLENTER if external is ExternalClass.KERCALL else external
    book = catalogue(release)
    numbers: dict[str, int] = {}
    for code in book.codes():
        address = external_of(code, release)
        if address.external is requested:
            name = book.name(code).removesuffix("_64")
            numbers.setdefault(name, 1 << address.number if _is_bit(external, release) else address.number)
    return numbers


def _is_bit(external: ExternalClass, release: Release) -> bool:
    return has_event_masks(external, release) and external is not ExternalClass.CONTROL


def event_argument(name: str, external: ExternalClass, release: Release) -> int | None:
    """Return TraceEvent()'s event argument for a name, a number, or names of mask bits joined by `|`; or None."""
    if external in INT_CLASSES:
        name = _INTERRUPT_EVENT.sub("", name)
    if NUMBER.fullmatch(name):
        return number if (number := _int(name)) <= _MOST_ARGUMENT else None
    if "|" in name and has_event_masks(external, release):
        parts = [event_argument(part.strip(), external, release) for part in name.split("|")]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) else reduce(operator.or_, known)
    names = names_of_class(external, release)
    requested = name.upper()
    for spelling in (requested, requested.removeprefix(PREFIX), f"TH{requested}", f"VTH{requested}"):
        if spelling in names:
            return names[spelling]
    arguments = []
    for code in catalogue(release).find(name[:100]):
        address = external_of(code, release)
        is_in = address.external is external or (
            external is ExternalClass.KERCALL and address.external is ExternalClass.KERCALLENTER
        )
        if is_in:
            arguments.append(1 << address.number if _is_bit(external, release) else address.number)
    is_public_call = name != name.upper()  # one may be behind several kernel calls
    return arguments[0] if arguments and (not is_public_call or len({*arguments}) == 1) else None


def _int(text: str) -> int:
    """Return a number that `NUMBER` matches; leading zeros are decimal."""
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def event_text(external: ExternalClass, event: int, release: Release) -> str:
    """Return an event argument as it is written in a rule: a name or number, or for masks names joined with `|`."""
    by_number = {number: name for name, number in reversed(names_of_class(external, release).items())}
    if event in by_number:
        return by_number[event]
    if not has_event_masks(external, release) or not event:
        return str(event)
    named = [name for bit, name in by_number.items() if bit & event == bit]
    rest = event & ~reduce(operator.or_, [bit for bit in by_number if bit & event == bit], 0)
    parts = sorted(named, key=lambda name: names_of_class(external, release)[name])
    return "|".join([*parts, *([hex(rest)] if rest else [])])


# One rule, and how it is written.


MARK_TEXT_LIMIT: Final = 200  # bytes of a mark: it becomes the text of a user event
KEEP_LIMIT: Final = 4096  # buffers: as many as a kernel takes


@dataclass(frozen=True, slots=True)
class Action:
    """The action of a trigger, written after `THEN`: a mark (empty = `DEFAULT_MARK`), and whether the recording stops.

    Before it stops, `keep` buffers are still filled.
    """

    mark: str = ""
    keep: int = 0
    stops: bool = False

    def text(self) -> str:
        """Return the actions as they are written after `THEN`: `MARK "late"; STOP`."""
        parts = [f"MARK {in_quotes(self.mark)}"] * bool(self.mark)
        parts += [f"KEEP {self.keep} buffer{'s' * (self.keep != 1)}"] * bool(self.keep)
        return "; ".join([*parts, *["STOP"] * self.stops])


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a call of TraceEvent(), a condition on every event, or a trigger.

    Attributes:
        mode: Mode of TraceEvent(); None for a condition on every event (`WHERE` alone) and for a trigger.
        external: The class; None if the mode takes none.
        event: The event argument of TraceEvent(), a mask for classes with masks; None if the mode takes none.
        pid, tid: None if the mode takes none.
        process: Name of the process, if it was written instead of the pid; otherwise empty.
        condition: Expression of a dynamic rule, of `WHERE` alone or of a trigger; empty for other rules.
        function: `file.py:name` of a dynamic rule that is a Python function; empty for other rules.
        action: Action at an event that fits the condition; None if the rule is not a trigger.
        line: Line number from 1; 0 = written by the program.
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
    action: Action | None = None
    line: int = field(default=0, compare=False)
    condition_start: int = field(default=0, compare=False)

    @property
    def is_where(self) -> bool:
        """Whether the rule is a condition on every event (`WHERE` alone)."""
        return self.mode is None and self.action is None

    def expression(self, release: Release, taught: Taught | None = None) -> Expression:
        """Return the condition of the rule as a checked expression."""
        return Expression(self.condition, release, taught=taught, is_trigger=self.action is not None)

    def text(self, release: Release) -> str:
        """Return the rule as a line."""
        if self.action is not None:
            return f"WHEN {self.condition} THEN {self.action.text()}"
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
        """Return the numbers after the mode in a call of TraceEvent(), without handlers."""
        return tuple(int(value) for value in (self.external, self.event, self.pid, self.tid) if value is not None)


def quoted(word: str) -> str:
    """Return a word as rules write it: in quotes if it contains blanks, quotes, `#` or `|`, or looks like a number."""
    if re.fullmatch(r"[^\s\"#|]+", word) and not NUMBER.fullmatch(word):
        return word
    return in_quotes(word)


# The parser of one line of a rule file: it reads word by word and reports the position of a fault.


# Text that is not closed continues to the end of the line, so that no character is read twice.
_WORD: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[^\s"]+')
_CLOSED: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
# Single quotes have a meaning only in conditions, since the name of a process may have one.
_QUOTED_OR_COMMENT: Final = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)
    | (?<=[=~(,\s])'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?$)
    | ~\s*/[^/\\]*(?:\\.[^/\\]*)*(?:/|\\?$)
    | (?:^|(?<=\s))(?P<comment>\#)
    """,
    re.VERBOSE,
)
_THEN: Final = re.compile(
    r"""
    "[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)
    | '[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?$)
    | ~\s*/[^/\\]*(?:\\.[^/\\]*)*(?:/|\\?$)
    | \b(?P<then>THEN)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ACTION: Final = re.compile(
    r"""\s*(?:
    MARK\s*(?P<mark>"[^"\\]*(?:\\.[^"\\]*)*")
    | KEEP\s+(?P<keep>[0-9]{1,9})\s+BUFFERS?
    | (?P<stop>STOP)
    )\s*(?P<end>;|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_ACTION_FORMS: Final = {"MARK": 'MARK "late"', "KEEP": "KEEP 20 buffers", "STOP": "STOP"}
_INTERRUPT: Final = "interrupt"
_MOST_PIDS: Final = 6  # in a message
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
        self.position = self.condition_start = 0
        self.pattern_count = 0

    def _fault(self, message: str, word: _Word | None = None, hints: Sequence[str] = ()) -> RuleError:
        start, end = (word.start, word.end) if word else (len(self.text.rstrip()), len(self.text.rstrip()))
        return RuleError([Diagnostic(f"{message}{did_you_mean(hints)}", start, end, self.number, tuple(hints))])

    def _take(self, what: str) -> _Word:
        if self.position >= len(self.words):
            raise self._fault(f"{what} is missing at the end of the line")
        word = self.words[self.position]
        written = self.text[word.start : word.end]
        if written[0] == '"' and not _CLOSED.fullmatch(written):
            raise self._fault("the text is not closed with a quotation mark", word)
        self.position += 1
        return word

    def rule(self) -> Rule:
        """Return the rule of the line; RuleError, with line and column, if the line has a fault."""
        word = self._take("the mode")
        name = word.text.upper().removeprefix(PREFIX)
        if name == "WHERE":
            condition = self._condition(word)
            return Rule(None, condition=condition, line=self.number, condition_start=self.condition_start)
        if name == "WHEN":
            return self._trigger(word)
        mode = Mode.__members__.get(name)
        if mode not in RULE_MODES:
            if mode is not None:
                raise self._fault(f"{mode.name} sets no filter, so it does not belong into rules", word)
            hints = nearest(name, [*(known.name for known in RULE_MODES), "WHERE", "WHEN"])
            raise self._fault(f"there is no mode {word.text[:40]!r}", word, hints)
        values: dict[str, object] = {}
        for part in mode.rule_arguments:
            self._argument(part, values)
        if self.position < len(self.words):
            raise self._fault(f"{mode.name} ends before this", self.words[self.position])
        start = self.condition_start
        return Rule(mode, line=self.number, condition_start=start, **values)  # type: ignore[arg-type]  # fields of Rule

    def _trigger(self, when: _Word) -> Rule:
        """Return the rule of `WHEN condition THEN action; action`."""
        then = next((m for m in _THEN.finditer(self.text, when.end) if m["then"]), None)
        if then is None:
            raise self._fault('THEN is missing; write WHEN pid == 7 THEN MARK "late"; STOP')
        condition = self._condition(when, then.start(), is_trigger=True)
        for start, end, message in later_parts(Expression(condition, self.release, is_trigger=True).tree):
            raise self._fault(message, _Word("", self.condition_start + start, self.condition_start + end))
        action = self._actions(then.end())
        return Rule(None, condition=condition, action=action, line=self.number, condition_start=self.condition_start)

    def _actions(self, start: int) -> Action:
        """Return the actions that are written from column `start` on, after `THEN`."""
        values: dict[str, str] = {}
        end, is_more = start, True
        while is_more:
            part = _ACTION.match(self.text, end)
            if part is None:
                raise self._no_action(end)
            kind = part.lastgroup if part.lastgroup != "end" else next(k for k in ("mark", "keep", "stop") if part[k])
            assert kind is not None
            word = _Word("", part.start(kind), part.end(kind))
            if kind in values:
                raise self._fault(f"{kind.upper()} stands here twice", word)
            values[kind] = part[kind]
            if kind == "mark" and not 0 < len(_unquoted(part[kind]).encode()) <= MARK_TEXT_LIMIT:
                raise self._fault(f"a mark has a text of 1 to {MARK_TEXT_LIMIT} bytes", word)
            if kind == "mark" and not _unquoted(part[kind]).isprintable():
                raise self._fault("a mark has characters that can be printed", word)
            if kind == "keep" and not 0 < int(part[kind]) <= KEEP_LIMIT:
                raise self._fault(f"KEEP takes 1 to {KEEP_LIMIT} buffers", word)
            end, is_more = part.end(), part["end"] == ";" and bool(self.text[part.end() :].strip())
        if "keep" in values and "stop" not in values:
            raise self._fault("KEEP says how many buffers are still filled before STOP; write STOP too, or no KEEP")
        return Action(_unquoted(values.get("mark", "")), int(values.get("keep", 0)), "stop" in values)

    def _no_action(self, start: int) -> RuleError:
        """Return the error for a text that is not an action; the error's position is the first word."""
        word = next((word for word in self.words if word.start >= start), None)
        if word is None:
            return self._fault("an action is missing: " + ", ".join(_ACTION_FORMS.values()))
        name = word.text.strip(";").upper()
        if name in _ACTION_FORMS:
            return self._fault(f"{name} is written as {_ACTION_FORMS[name]}, with ; before the next action", word)
        return self._fault(f"there is no action {word.text[:40]!r}", word, nearest(name, _ACTION_FORMS))

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
        if NUMBER.fullmatch(word.text) and _int(word.text) in known.values():
            return ExternalClass(_int(word.text))
        name = word.text.upper().removeprefix(PREFIX)
        if name in known:
            return known[name]
        if name in ExternalClass.__members__:
            raise self._fault(f"{self.release} has no class {name}", word)
        hints = nearest(_PRINTED.get(name, name), known)
        raise self._fault(f"there is no class {word.text[:40]!r}", word, hints)

    def _event(self, external: ExternalClass) -> int:
        word = self._take("the event")
        if external in INT_CLASSES and word.text.lower() == _INTERRUPT and self.position < len(self.words):
            word = self._take("the number")  # as the window shows it: `interrupt 0x1b`
        number = event_argument(word.text, external, self.release)
        if number is not None:
            return number
        names = names_of_class(external, self.release)
        if not names:
            raise self._fault(f"events of {external.name} are numbers", word)
        wrong = self._wrong_part(word, external)
        hints = nearest(wrong.text, names) or nearest(f"TH{wrong.text}", names)
        raise self._fault(f"{external.name} has no event {wrong.text[:40]!r}", wrong, hints)

    def _wrong_part(self, word: _Word, external: ExternalClass) -> _Word:
        """Return the first event of `A|B` that the class does not have; the word itself if events cannot be joined."""
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
            values["pid"] = _int(word.text)
            return
        if self.processes is None:
            raise self._fault(f"{word.text[:40]!r} is not a number; names of processes need an open trace", word)
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
            choice = listed([f"{word.text[:40]}[{pid}]" for pid in pids], _MOST_PIDS)
            raise self._fault(f"{len(pids)} processes are called {word.text[:40]!r}; give one of {choice}", word)
        values["pid"], values["process"] = pids[0], word.text

    def _number_of(self, what: str) -> int:
        word = self._take(what)
        if not NUMBER.fullmatch(word.text):
            raise self._fault(f"{what} is a number, {word.text[:40]!r} is none", word)
        return _int(word.text)

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

    def _condition(self, word: _Word, stop: int | None = None, *, is_trigger: bool = False) -> str:
        text = self.text[word.end : stop].strip()
        self.condition_start = offset = word.end + len(self.text[word.end :]) - len(self.text[word.end :].lstrip())
        self.position = len(self.words)
        try:
            self.pattern_count = len(Expression(text, self.release, is_trigger=is_trigger).patterns)
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
    for part in _QUOTED_OR_COMMENT.finditer(line):
        if part.group("comment") is not None:
            return line[: part.start("comment")]
    return line


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
    """Return the rules of all faultless lines of a text, and the faults of the others, instead of raising an error."""
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
        release: Release that the names are for.
        processes: Pids by process name (`process_names`), so that names can be written for pids; None = only numbers.

    Raises:
        RuleError: The text has faults; the error contains each with its line, its column and the nearest names.
    """
    rules, faults = check_rules(text, release, processes)
    if faults:
        raise RuleError(faults)
    return rules


def rules_text(rules: Sequence[Rule], release: Release) -> str:
    """Return rules as text, one per line."""
    return "".join(f"{rule.text(release)}\n" for rule in rules)


def read_rule_text(path: Path | str) -> str:
    """Return the text of a rule file; UsageError if it is too large, is not text, or cannot be read."""
    path = Path(path)
    data = read_small(path, FILE_LIMIT, f"a rule file may have {FILE_LIMIT} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}, byte 0x{error.start:x}: this is not text") from error


def called_files(path: Path) -> list[Path]:
    """Return the files whose functions a rule file calls; none if it cannot be read."""
    try:
        text = read_rule_text(path)
    except UsageError:
        return []
    names = (_CALL.search(without_comment(line[:WIDTH_LIMIT])) for line in text.splitlines()[:LINE_LIMIT])
    return [path.parent / (call[1] or call[2]) for call in names if call]


def save_rules(path: Path | str, text: str, reading: Sources = ()) -> None:
    """Write a rule file; an old one is replaced only once the new one is complete.

    Raises WriteError if the file cannot be written, or is among `reading`, the files that must not be replaced.
    """
    write_file(path, text if text.endswith("\n") or not text else text + "\n", reading=reading)
