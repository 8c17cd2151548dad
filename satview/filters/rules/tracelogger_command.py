"""Rule sets as tracelogger command lines, and back. Options: description of the capture side, section 7.1."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.external import SECURITY, classes_of
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import C

_CLASS_OF_FILTER: Final = {1: C.KERCALL, 2: C.INT, 3: C.PROCESS, 4: C.THREAD, 5: C.VTHREAD, 6: C.COMM, 7: C.SYSTEM}
DEFAULT_OUTPUT: Final = "/dev/shmem/tracebuffer.kev"  # noqa: S108  -- on the target, tracelogger's own default
_NO_RING0: Final = 11  # 6.4, not documented, so it is read but not written
_RING0: Final = 2  # kernel call number
_WITH_VALUE: Final = "AbDdFfknpSs"


@dataclass(frozen=True, slots=True)
class TraceloggerCommand:
    """A command line and how well it does what the rules say.

    Attributes:
        text: The command line.
        is_exact: True if a capture with it keeps exactly what the rules let pass.
        reasons: What it cannot do, one sentence each; empty if it is exact. The C program does the rest.
    """

    text: str
    is_exact: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedArguments:
    """What a TRACELOGGER_ARGS attribute says about the rules.

    Attributes:
        rules: Rules that set the same filter; empty if the logger set none.
        notes: What else it says, and what could not be read, one sentence each.
    """

    rules: tuple[Rule, ...]
    notes: tuple[str, ...]


def tracelogger_command(rules: RuleSet | BuiltRules, file_name: str = DEFAULT_OUTPUT) -> TraceloggerCommand:
    """Return the tracelogger command that comes closest to a rule set without losing any of its events.

    Args:
        rules: The rules.
        file_name: Output on the target.
    """
    state = rules.state if isinstance(rules, BuiltRules) else rules
    words = ["tracelogger"]
    reasons = []
    for number, external in _CLASS_OF_FILTER.items():
        if external in state.known and _is_off(state, external):
            words.append(f"-F{number}")
    if SECURITY in state.known and state.later[SECURITY].any():
        words.append("-a")
    is_wide = _anything_wide(state)
    if is_wide:
        words.append("-w")
    made = RuleSet(state.release)
    for rule in from_tracelogger_args(" ".join(words), state.release).rules:
        if rule.mode is not None:
            made.apply(rule.mode, *rule.arguments())
    reasons += _differences(state, made)
    if isinstance(rules, BuiltRules) and rules.conditions:
        reasons.append("WHERE lines are for views; the capture keeps the events they would leave out")
    words += ["-f", file_name]
    return TraceloggerCommand(shlex.join(words), not reasons, tuple(reasons))


def _is_off(state: RuleSet, external: C) -> bool:
    probe = state.copy()
    probe.del_class(external)
    return probe.switches() == state.switches()


def _anything_wide(state: RuleSet) -> bool:
    """Return whether some event that is on is requested in full."""
    enters, leaves = state.calls & 5 == 5, state.calls & 10 == 10
    is_thread = state.thread_is_wide and bool(state.thread & state.all_states)
    return bool(
        enters.any() or leaves.any() or is_thread or (state.comm & 3 == 3).any() or (state.system & 3 == 3).any()
    )


def _differences(state: RuleSet, made: RuleSet) -> list[str]:
    """Say what the command line leaves in that the rules keep out, or logs in another form."""
    reasons = []
    if state.switches() != made.switches():
        reasons.append("some classes are on in part: tracelogger can only leave out whole classes")
    if _widths_of_what_is_on(state, state) != _widths_of_what_is_on(made, state):
        reasons.append("some events are fast and some wide: tracelogger logs all in one form, here wide")
    if any(test.pid.any() for test in state.threads_of.values()):
        reasons.append("events of selected processes or threads only: tracelogger has no option for that")
    if state.class_handlers or state.event_handlers:
        reasons.append("dynamic rules: they need a program that attaches handlers")
    return reasons


def _widths_of_what_is_on(state: RuleSet, on: RuleSet) -> tuple[object, ...]:
    thread = state.thread_is_wide if on.thread & on.all_states else False
    calls = (on.calls & 1) * (state.calls >> 2 & 1) | (on.calls & 2) * (state.calls >> 3 & 1)
    return (
        thread,
        calls.tobytes(),
        ((on.comm & 1) * (state.comm & 2)).tobytes(),
        ((on.system & 1) * (state.system & 2)).tobytes(),
    )


def from_tracelogger_args(arguments: str, release: Release) -> ImportedArguments:
    """Return the rules that a tracelogger command line sets, as TRACELOGGER_ARGS has it (with blanks between).

    Args:
        arguments: The command line, with or without `tracelogger` in front.
        release: Whose classes apply.
    """
    options, notes = _options(arguments)
    if any(option == "d" for option, _ in options) and not any(option == "E" for option, _ in options):
        notes.append("the logger ran as a daemon: a program chose the events, the arguments do not show which")
        return ImportedArguments((), tuple(notes))
    rules = [
        Rule(mode, c)
        for c in (C.KERCALL, C.THREAD, C.VTHREAD, C.COMM)
        for mode in (Mode.CLRCLASSPID, Mode.CLRCLASSTID)
        if c is not C.VTHREAD or release is not Release.QNX_8
    ]
    rules.append(Rule(Mode.ADDALLCLASSES))
    for option, value in options:
        if option == "F":
            rules += _left_out(value, release, notes)
        elif option == "a" and SECURITY in classes_of(release):
            rules.append(Rule(Mode.ADDCLASS, SECURITY))
    is_wide = any(option == "w" for option, _ in options)
    rules.append(Rule(Mode.SETALLCLASSESWIDE if is_wide else Mode.SETALLCLASSESFAST))
    notes += [text for key, text in _MEANINGS.items() if any(option == key for option, _ in options)]
    return ImportedArguments(tuple(rules), tuple(notes))


_MEANINGS: Final = {
    "r": "captured in ring mode: only the last part of the run is in the file",
    "S": "captured with a size limit: the end may be cut",
    "s": "captured for a given time",
    "c": "captured until stopped",
    "n": "captured for a given number of buffers",
}


def logger_numbers(arguments: str) -> dict[str, int]:
    """Return the options of a tracelogger command line whose value is a plain number, by letter; the last one counts.

    Args:
        arguments: The command line, with or without `tracelogger` in front.
    """
    options, _ = _options(arguments)
    return {key: int(value) for key, value in options if value.isascii() and value.isdigit() and len(value) < 7}


def _left_out(value: str, release: Release, notes: list[str]) -> list[Rule]:
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else -1
    if number == _NO_RING0:
        return [Rule(Mode.DELEVENT, C.KERCALL, _RING0)]
    external = _CLASS_OF_FILTER.get(number)
    if external is None:
        if number != 0:
            notes.append(f"the filter -F {value[:20]} is not known")
        return []
    if external is C.VTHREAD and release is Release.QNX_8:
        return []
    return [Rule(Mode.DELCLASS, external)]


def _options(arguments: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Split a command line as getopt does: `-wF1`, `-w -F 1`, `-d1`; values may hold blanks that nothing marks."""
    words = arguments.split()
    words = words[1:] if words and not words[0].startswith("-") else words
    found: list[tuple[str, str]] = []
    notes = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            notes.append(f"{word[:40]!r} is no option")
            continue
        position = 1
        while position < len(word):
            option = word[position]
            position += 1
            if option in _WITH_VALUE:
                value = word[position:]
                if not value and at < len(words):
                    value = words[at]
                    at += 1
                found.append((option, value))
                break
            found.append((option, ""))
    return found, notes[:5]
