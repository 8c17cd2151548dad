"""Writes rule sets as C programs: TraceEvent() calls set the same state on a target; conditions become handlers.

A condition becomes an event handler with the same results as in a view (`c_conditions`). A rule that a handler cannot
evaluate becomes an `#error` in its place, so that a program that does less than its rules does not compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from satview.base.named_files import resource_path
from satview.events.naming import names
from satview.events.spec import Release
from satview.events.wire import THREAD_RUNNING
from satview.export.c_conditions import (
    NAMES_THREAD,
    CCondition,
    HandledCodes,
    Tables,
    comment,
    literal,
    needs_thread,
    variant_tables,
)
from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import codes_that_fit
from satview.filters.external import (
    CALL_COUNT,
    INT_CLASSES,
    ExternalClass,
    external_of,
    has_event_masks,
    internal_codes,
)
from satview.filters.rules.building import BuiltRules, handler_rules, rules_of
from satview.filters.rules.capturing import AllOf, for_capture
from satview.filters.rules.handlers import HANDLER_CLASSES, DynamicRule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import C
from satview.filters.rules.text import Rule
from satview.filters.rules.triggers import Trigger

# The C functions of exported programs: `resources/export/handlers.c`, cut into parts.


FIND_PROCESSES: Final = "find_processes"
"""The part that follows `note_process()`, a function generated from the names in the rules."""

_PART: Final = re.compile(r"^/// (\w+):([ \w]*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodePart:
    """A piece of C source, and the names of the parts that must come before it."""

    lines: tuple[str, ...]
    needs: tuple[str, ...]


@cache
def parts() -> Mapping[str, CodePart]:
    """Return every part by name; each part comes after the parts that it needs."""
    text = resource_path("export/handlers.c").read_text(encoding="ascii")
    _, *pieces = _PART.split(text)
    rows = zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    return {name: CodePart((*source.strip("\n").split("\n"), ""), tuple(needs.split())) for name, needs, source in rows}


def ordered(requested: Iterable[str]) -> list[str]:
    """Return the names of the requested pieces of C source (`parts`) and of those that they need, in order for C."""
    needed: set[str] = set()
    open_ = list(requested)
    while open_:
        name = open_.pop()
        if name not in needed:
            needed.add(name)
            open_ += parts()[name].needs
    return [name for name in parts() if name in needed]


# The lines before the functions of an exported program, and main().


_RING_LEAST: Final = 32  # buffers, the default of tracelogger
_EVERY: Final = (
    "   Or let it start a logger for each incident, and go on: files incident-0001.kev and so on, of which the newest",
    "   20 stay, and 500,000,000 bytes at most; 0 = no limit:",
    "     this_program incident 20 500000000 */",
)
_EVERY_HEADERS: Final = frozenset({"signal.h", "stdlib.h", "sys/stat.h", "sys/wait.h", "time.h"})
_MATCHING: Final = {"fits_glob": "fnmatch.h", "fits_regex": "regex.h"}


def head(title: str, has_handlers: bool, has_names: bool, used: set[str], ring: int = 0) -> list[str]:
    """Return the head of the program: description, headers and the macro SET.

    `used` are the parts whose headers are included; `ring` is the number of buffers of the ring, 0 = no ring.
    """
    headers = {"errno.h", "stdio.h", "string.h", "sys/kercalls.h", "sys/neutrino.h", "sys/trace.h", "unistd.h"}
    if has_handlers:
        headers |= {"stddef.h", "stdint.h"}
    if has_names:
        headers |= {"devctl.h", "dirent.h", "fcntl.h", "stdlib.h", "sys/procfs.h"}
    headers |= {header for part, header in _MATCHING.items() if part in used}
    headers |= {"sys/syspage.h"} if "note_span" in used else set()
    headers |= _EVERY_HEADERS if ring else set()
    return [
        "/* Sets a filter of the instrumented kernel. Written by satview. Run it as root:",
        f"     tracelogger -d1 {f'-r -k {ring}' if ring else '-n 0'} -f /dev/shmem/tracebuffer.kev &",
        "     this_program" + (" */" if not ring else ""),
        *(_EVERY if ring else ()),
        *comment(title),
        "",
        *(f"#include <{header}>" for header in sorted(headers)),
        "",
        "static int failures;",
        "",
        "/* Carries out one mode; a refused one is reported and the rest goes on. */",
        "#define SET(...) \\",
        "    do { \\",
        "        if (TraceEvent(__VA_ARGS__) == -1) { \\",
        '            fprintf(stderr, "line %d: %s\\n", __LINE__, strerror(errno)); \\',
        "            ++failures; \\",
        "        } \\",
        "    } while (0)",
        "",
    ]


def handler_data(number: int) -> list[str]:
    """Return the variables that the kernel fills for one attached handler; handlers share none, as interrupts nest."""
    return [
        f"static uint32_t words_{number}[2 * DATA_WORDS + 1];",
        f"static event_data_t data_{number} = {{.data_array = words_{number}}};",
    ]


def name_lookup(named: Mapping[str, str]) -> list[str]:
    """Return the C functions that fill the lists of processes; empty if there are no lists.

    `named` has for each list a C condition on `full` (the path) and `own` (the name without folders).
    """
    if not named:
        return []
    lines = [
        "/* Takes note of a process by its path and by its name without folders. */",
        "static void note_process(int32_t pid, const char *path)",
        "{",
        "    const char *const slash = strrchr(path, '/'), *const name = slash == NULL ? path : slash + 1;",
        "    const struct text full = as_text(path, strlen(path)), own = as_text(name, strlen(name));",
        "    if (*path == '\\0')",
        "        return;",
    ]
    for name, test in named.items():
        lines += [f"    if ({test})", f"        remember(&{name}, pid);"]
    return [*lines, "}", "", *parts()[FIND_PROCESSES].lines]


def main(calls: Sequence[str], has_handlers: bool, has_names: bool, ring: int = 0) -> list[str]:
    """Return the main function: get privileges, look up names, make the calls, START; `ring` is as for `head`."""
    lines = []
    if ring:  # a logger that ends takes back the classes, while handlers stay
        filters = [call for call in calls if "HANDLER, " not in call]
        calls = ["    set_filter();", *(call for call in calls if "HANDLER, " in call)]
        lines = ["static void set_filter(void)", "{", *filters, "}", ""]
    lines += [f"int main({'int count, char **words' if ring else 'void'})", "{"]
    if has_handlers:
        lines += [
            "    /* Handlers run inside the kernel, so they need the right to touch hardware. */",
            "    if (ThreadCtl(_NTO_TCTL_IO, 0) == -1) {",
            '        fprintf(stderr, "no I/O privilege: %s\\n", strerror(errno));',
            "        return 1;",
            "    }",
        ]
    if has_names:
        lines.append("    find_processes();")
    lines += [
        *calls,
        *(
            [
                "    if (count > 1)",
                f'        return record_every("{ring}", words[1], count > 2 ? strtoul(words[2], NULL, 10) : 0,',
                "                            count > 3 ? strtoll(words[3], NULL, 10) : 0);",
            ]
            if ring
            else []
        ),
        "    /* START is cancelled while there are no buffers; the logger of a busy target may need seconds. */",
        "    for (unsigned tries = 0; TraceEvent(_NTO_TRACE_START) == -1; tries++) {",
        "        if (errno != ECANCELED || tries == 100) {",
        '            fprintf(stderr, "cannot start: %s\\n", strerror(errno));',
        "            return 1;",
        "        }",
        "        usleep(100000);",
        "    }",
    ]
    if has_handlers:
        lines += [
            "    /* The kernel drops the handlers when this process ends: stop it with a signal. */",
            "    pause();",
        ]
    return [*lines, "    return failures != 0;", "}"]


@dataclass(frozen=True, slots=True)
class RulesProgram:
    """A program in C.

    Attributes:
        source: The text, printable ASCII.
        faults: Parts of the rules that C cannot express, with line and column in the rules; `#error` in the source.
        notes: Events that are captured although a view would hide them; comments in the source.
    """

    source: str
    faults: tuple[Diagnostic, ...]
    notes: tuple[str, ...]


def c_program(rules: RuleSet | BuiltRules, title: str = "") -> RulesProgram:
    """Return a C program that sets a rule set in the kernel; a logger in daemon mode writes the trace.

    `WHERE` lines are treated as in any capture (`filters.rules.capturing.for_capture`).
    """
    built = rules if isinstance(rules, BuiltRules) else BuiltRules(rules_of(rules), rules, ())
    return _Program(built).written(title)


def event_symbol(external: ExternalClass, event: int, release: Release) -> str:
    """Return the event argument of TraceEvent() in C: names from the header if they exist, else a number."""
    known = names(release)
    if not has_event_masks(external, release):
        codes = internal_codes(external, event, release) if external not in INT_CLASSES else ()
        symbols_of_event = [known[code].symbol for code in codes if code in known and known[code].symbol]
        return symbols_of_event[0] if symbols_of_event else str(event)
    symbols, rest = [], event
    for code, name in known.items():
        address = external_of(code, release)
        bit = (
            0 if address.external is not external else address.number if external is C.CONTROL else 1 << address.number
        )
        if bit & rest:
            symbols.append(name.symbol)
            rest &= ~bit
    return " | ".join([*symbols, *([f"0x{rest:x}u"] if rest or not symbols else [])])


@dataclass(slots=True)
class _Handler:
    """A handler function; rules share it if their conditions, which must all hold, and triggers are equal."""

    name: str
    conditions: tuple[Expression, ...]
    rules: list[Rule]
    triggers: tuple[int, ...] = ()


class _Program:
    def __init__(self, built: BuiltRules) -> None:
        self._built, self._release = built, built.state.release
        captured = for_capture(built)
        self._state, self._notes = captured.state, captured.notes
        self._open_faults = list(captured.faults)
        self._faults: list[Diagnostic] = []
        self._tables = Tables(self._release)
        self._everything = _everything(self._state)
        self._handlers: dict[tuple[object, ...], _Handler] = {}
        self._follows_threads = self._drops_running = False
        self._triggers, self._counts_slots = (
            captured.triggers,
            any(trigger.action.keep for trigger in captured.triggers),
        )
        self._classes: list[frozenset[ExternalClass]] = []  # that each trigger looks at
        for trigger in captured.triggers:
            self._place(trigger)

    def written(self, title: str) -> RulesProgram:
        """Return the program."""
        attached = [*self._attached()] if self._release is not Release.QNX_8 else []
        functions = [line for handler in self._handlers.values() for line in self._function(handler)]
        static = RuleSet(self._release)
        static.set_like(self._state)
        calls = [self._call(rule) for rule in rules_of(static)]
        data = [number for number, line in enumerate(attached, 1) if "&data_" in line]
        calls_and_notes = [
            *self._errors(self._take_faults(), "    "),
            *(f"    {call}" for call in calls),
            *attached,
            *(line for note in self._notes for line in comment(note, "    ")),
        ]
        ring = self._ring_buffers() if data else 0
        if ring:
            self._tables.parts.add("record_every")
        body = self._body(functions, data)
        has_handlers, has_names = bool(data), bool(self._tables.named)
        source = [
            *head(title, has_handlers, has_names, self._tables.parts, ring),
            *body,
            *main(calls_and_notes, has_handlers, has_names, ring),
            "",
        ]
        return RulesProgram("\n".join(source), tuple(self._faults), self._notes)

    def _ring_buffers(self) -> int:
        """Return how many buffers a ring needs for what its triggers keep; 0 if no trigger ends the capture.

        Triggers count slots as if buffers were full; a kernel closes a buffer when at least two thirds are full.
        """
        keeps = [trigger.action.keep for trigger in self._triggers if trigger.action.stops]
        return max(_RING_LEAST, max(keeps) * 3 // 2 + 2) if keeps else 0

    # ---- where handlers are attached -----------------------------------------------------------------------------

    def _attached(self) -> Iterator[str]:
        """Yield the calls that attach handlers, and collect the handler functions in `_handlers`."""
        positions = [*handler_rules(self._state)]
        self._follows_threads = any(
            rule.external not in NAMES_THREAD and needs_thread(condition.tree)
            for rule, handler in positions
            for condition in _conditions(handler) or ()
        ) or any(
            needs_thread(trigger.condition.tree) and classes - NAMES_THREAD
            for trigger, classes in zip(self._triggers, self._classes, strict=False)
        )
        if self._follows_threads:
            positions = self._with_tracker(positions)
        for number, (rule, handler) in enumerate(positions, 1):
            conditions = _conditions(handler)
            if conditions is None:
                yield from self._errors([self._no_c(handler)], "    ")
                continue
            name = self._handler(rule, conditions).name
            yield f"    SET({', '.join([*self._words(rule), name, f'&data_{number}'])});"

    def _with_tracker(self, positions: list[tuple[Rule, DynamicRule]]) -> list[tuple[Rule, DynamicRule]]:
        """Return the rules that attach handlers, and a handler for class THREAD that records the running thread.

        It is left out if a pid or tid is set for THRUNNING, or THREAD has no free position. THRUNNING events that are
        off are switched on for it, and discarded by it.
        """
        address = external_of(THREAD_RUNNING, self._release)
        has_handler = C.THREAD in self._state.class_handlers
        if self._state.thread_test(address) != (0, 0) or (
            not has_handler and self._state.add_class_ev_handler(C.THREAD, AllOf())
        ):
            self._follows_threads = False
            return positions
        if not self._state.is_on(address, THREAD_RUNNING):
            self._drops_running = True
            self._state.add_event(C.THREAD, 1 << address.number)
        return [*handler_rules(self._state)]

    def _place(self, trigger: Trigger) -> None:
        """Attach handlers to all classes whose events a trigger tests; report events that no handler gets."""
        state, release = self._state, self._release
        if release is Release.QNX_8:
            self._fault(trigger, f"release {release} has no event handlers, so that no program can watch its events; "
                        "record with satview capture --ring")  # fmt: skip
            return
        on = state.codes_at()
        seen = {external: state.codes_at(external) for external in sorted(HANDLER_CLASSES - {C.CONTROL})}
        visible = np.any(list(seen.values()), axis=0)
        pair = trigger.condition.latency
        for name, _, condition in pair.named_ends if pair is not None else ():
            if not (codes_that_fit(condition) & visible).any():
                self._fault(trigger, f"the kernel calls no handler for {name}; name a kernel call, a message or "
                            "a state, or record with satview capture --ring")  # fmt: skip
        hidden = trigger.codes & on & ~visible
        names = {external.name for code in np.flatnonzero(hidden).tolist()
                 if (external := state.address(code).external) not in (None, C.CONTROL)}  # fmt: skip
        if names and not (codes_that_fit(trigger.condition.tree) & visible).any():
            self._fault(trigger, f"the kernel calls no handler for events of {', '.join(sorted(names))}; record with "
                        "satview capture --ring")  # fmt: skip
        elif names:
            self._notes += (f"line {trigger.line}: the program does not see events of {', '.join(sorted(names))}, "
                            "which take no handler",)  # fmt: skip
        classes = {external for external, codes in seen.items()
                   if codes.any() and (self._counts_slots or (codes & trigger.codes).any())}  # fmt: skip
        for external in sorted(classes):
            if any(position[0] is external for position in state.event_handlers):
                self._fault(trigger, f"events of {external.name} have handlers of their own, behind which the program "
                            "cannot look; write their conditions with WHERE")  # fmt: skip
            elif external not in state.class_handlers and state.add_class_ev_handler(external, AllOf()):
                self._fault(trigger, f"all {state.handler_limit} positions for handlers are taken")
        self._classes.append(frozenset(classes))

    def _fault(self, trigger: Trigger, message: str) -> None:
        text = next(rule.text(self._release) for rule in self._built.rules if rule.line == trigger.line)
        self._open_faults.append(Diagnostic(message, 0, len(text), trigger.line))

    def _handler(self, rule: Rule, conditions: tuple[Expression, ...]) -> _Handler:
        external = rule.external
        is_tracker = self._follows_threads and external is C.THREAD and rule.event is None
        triggers = tuple(number for number, classes in enumerate(self._classes) if external in classes)
        key = (*(condition.text for condition in conditions), None, external in NAMES_THREAD, is_tracker, triggers)
        name = f"handler_{len(self._handlers) + 1}"
        handler = self._handlers.setdefault(key, _Handler(name, conditions, [], triggers))
        handler.rules.append(rule)
        return handler

    def _no_c(self, handler: DynamicRule) -> Diagnostic:
        parts = handler.parts if isinstance(handler, AllOf) else (handler,)
        position = next((getattr(part, "position", "") for part in parts if not isinstance(part, Expression)), "")
        rule = next((rule for rule in self._built.rules if rule.function == position and position), None)
        message = f"CALL {position}: a Python function does not become C; write a condition, or a handler in C"
        end = len(rule.text(self._release)) if rule is not None else 0
        return Diagnostic(message, 0, end, rule.line if rule is not None else 0)

    # ---- functions -----------------------------------------------------------------------------------------------

    def _function(self, handler: _Handler) -> list[str]:
        external = handler.rules[0].external
        requested = self._requested(handler)
        tests, errors = [], []
        for expression in handler.conditions:
            condition = CCondition(self._tables, requested)
            tests.append((expression.text, condition.text(expression.tree)))
            faults = self._take_faults(expression)
            if requested.on:  # else it is never called
                faults += self._faults_of(expression, condition)
            errors += self._errors(faults, "")
        lines = [f"static int {handler.name}(event_data_t *event)", "{", *errors]
        if self._follows_threads and external is C.THREAD and any(rule.event is None for rule in handler.rules):
            lines.append(f"    {self._tables.use('note_running', 'event')};")
            if self._drops_running:
                lines += [
                    "    /* THRUNNING is on for this handler alone. */",
                    f"    if ({self._tables.use('code_of', 'event')} == 0x{THREAD_RUNNING:x})",
                    "        return 0;",
                ]
        elif not handler.triggers and not any("event" in test for _, test in tests):
            lines.append("    (void)event;")
        for text, test in tests:
            lines += [*comment(f"WHERE {text}", "    "), f"    if (!({test}))", "        return 0;"]
        for number in handler.triggers:
            lines += self._watching(number, requested)
        if self._counts_slots and handler.triggers:
            lines.append(f"    {self._tables.use('count_slots', 'event')};")
        return [*lines, "    return 1;", "}", ""]

    def _watching(self, number: int, requested: HandledCodes) -> list[str]:
        """Return the C lines in a handler that test a trigger for an event, after the handler's conditions held."""
        trigger, use, spans = self._triggers[number], self._tables.use, f"spans_{number + 1}"
        condition = CCondition(self._tables, requested, spans)
        test = condition.text(trigger.condition.tree)
        faults = self._take_faults(trigger.condition)
        lines = [*comment(f"WHEN {trigger.condition.text} THEN {trigger.action.text()}", "    ")]
        pair = trigger.condition.latency
        used = []
        if pair is not None and pair.begins is not None and pair.ends is not None:
            thread, ends = condition.thread(pair), [condition.text(end) for end in (pair.begins, pair.ends)]
            lines.append(f"    {use('note_span', spans, *thread, *ends)};")
            used = [f"        {use('use_span', spans, *thread)};"]
            if (definition := f"static struct span {spans}[SPANS];") not in self._tables.lines:
                self._tables.lines.append(definition)
        lines += [f"    if ({test}) {{", *used, f"        {use('mark', literal(trigger.mark))};"]
        if trigger.action.stops:
            lines.append(f"        {use('stop_after', str(trigger.action.keep))};")
        faults += self._faults_of(trigger.condition, condition)
        return [*self._errors(faults, ""), *lines, "    }"]

    def _requested(self, handler: _Handler) -> HandledCodes:
        every, on = (
            np.logical_or.reduce([state.codes_at(rule.external, rule.event) for rule in handler.rules])
            for state in (self._everything, self._state)
        )
        for rule in handler.rules:
            if rule.external is C.KERCALLEXIT:  # any call can fail, those without a name too
                calls = range(CALL_COUNT) if rule.event is None else (rule.event,)
                every[[c for call in calls for c in internal_codes(C.KERCALLEXIT, call, self._release)]] = True
        return HandledCodes(
            handler.rules[0].external in NAMES_THREAD,
            tuple(np.flatnonzero(every).tolist()),
            tuple(np.flatnonzero(on).tolist()),
            self._state.is_wide,
        )

    # ---- faults --------------------------------------------------------------------------------------------------

    def _take_faults(self, expression: Expression | None = None) -> list[Diagnostic]:
        """Remove and return the open faults of rules with the condition `expression`; None = all open faults."""
        lines = {rule.line for rule in self._built.rules if expression is None or rule.condition == expression.text}
        faults = [fault for fault in self._open_faults if expression is None or fault.line in lines]
        self._open_faults = [fault for fault in self._open_faults if fault not in faults]
        return faults

    def _faults_of(self, expression: Expression, condition: CCondition) -> list[Diagnostic]:
        """Return diagnostics for the parts of a condition that cannot be translated to C."""
        unwritten = list(condition.unwritten)
        if condition.thread_node is not None and not self._follows_threads:
            unwritten.append(
                (
                    condition.thread_node,
                    "an event handler learns whose these events are from THRUNNING, but a pid is set for it, or no "
                    "position for a handler of THREAD is left",
                    "leave THREAD without pid, and a position for its handler",
                )
            )
        rule = next((rule for rule in self._built.rules if rule.condition == expression.text), Rule(None))
        start = rule.condition_start
        faults = [
            Diagnostic(f"C cannot test this: {why}; {remedy}", start + node.start, start + node.end, rule.line)
            for node, why, remedy in unwritten
        ]
        return list(dict.fromkeys(faults))

    def _errors(self, faults: Sequence[Diagnostic], indent: str) -> list[str]:
        """Return `#error` lines for faults, and record the first fault at each position of the rules."""
        for fault in faults:
            positions = [(known.line, known.start, known.end) for known in self._faults if known.line]
            if (fault.line, fault.start, fault.end) not in positions:
                self._faults.append(fault)
        return [f"{indent}#error {literal(str(fault))}" for fault in faults]

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _words(self, rule: Rule) -> list[str]:
        """Return the arguments of the TraceEvent() call of a rule, without a handler."""
        assert rule.mode is not None
        words = [rule.mode.symbol]
        if rule.external is not None:
            words.append(f"_NTO_TRACE_{rule.external.name}")
            if rule.event is not None:
                words.append(event_symbol(rule.external, rule.event, self._release))
        return words + [str(value) for value in (rule.pid, rule.tid) if value is not None]

    def _call(self, rule: Rule) -> str:
        return f"SET({', '.join(self._words(rule))});"

    def _body(self, functions: Sequence[str], data: Sequence[int]) -> list[str]:
        tables = self._tables
        lines: list[str] = []
        needed = tables.parts | ({"DATA_WORDS"} if data else set())
        needed |= {part for part in parts()[FIND_PROCESSES].needs if tables.named}
        for name in ordered(needed):
            lines += variant_tables(self._release) if name == "variant_of" else []
            lines += parts()[name].lines
        lines += [*tables.lines, *([""] if tables.lines else [])]
        lines += [*name_lookup(tables.named), *functions]
        lines += [line for number in data for line in handler_data(number)]
        return [*lines, *([""] if data else [])]


def _conditions(handler: DynamicRule) -> tuple[Expression, ...] | None:
    """Return the conditions of a dynamic rule; None if a part of the rule is not a condition."""
    parts = handler.parts if isinstance(handler, AllOf) else (handler,)
    expressions = tuple(part for part in parts if isinstance(part, Expression))
    return expressions if len(expressions) == len(parts) else None


def _everything(state: RuleSet) -> RuleSet:
    """Return a rule set of the same release with everything on, which shows the events that a handler can get."""
    all_on = RuleSet(state.release)
    for external in sorted(all_on.known):
        all_on.add_class(external)
    return all_on
