"""Rule sets as C programs: TraceEvent() calls that set exactly the same state on a target.

What the static filter cannot express becomes the skeleton of an event handler, with the condition beside it:
comparisons of payload words, pid and tid are written out, for the rest the author gets a place to fill in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from satview.events.naming import names
from satview.events.spec import Release
from satview.filters.building import BuiltRules
from satview.filters.diagnostics import ExpressionError
from satview.filters.expression import Expression
from satview.filters.external import (
    INT_CLASSES,
    ExternalClass,
    external_of,
    has_event_masks,
    internal_codes,
)
from satview.filters.rules import HANDLER_CLASSES, HANDLER_LIMIT, RuleSet
from satview.filters.switches import C
from satview.filters.syntax import (
    And,
    Arithmetic,
    Compare,
    Field,
    In,
    Negative,
    Node,
    Not,
    Number,
    Or,
    Word,
)
from satview.filters.text import Rule
from satview.filters.writing import rules_of

_DATA_WORDS: Final = 256  # room for the payload words of one event; the kernel fills in as many as there are


def c_program(rules: RuleSet | BuiltRules, title: str = "") -> str:
    """Return the source of a program that sets a rule set and leaves tracing to a logger in daemon mode.

    Args:
        rules: The rules. Conditions over all classes (`WHERE` lines) become handlers of every class that can have one,
            joined with the condition that it has already.
        title: Shown in the first comment.
    """
    state = rules.state.copy() if isinstance(rules, BuiltRules) else rules.copy()
    conditions = rules.conditions if isinstance(rules, BuiltRules) else ()
    notes = _attach(conditions, state)
    handlers = _Handlers(state.release)
    calls = [_call(rule, state.release, handlers) for rule in rules_of(state)] + notes
    return "\n".join(
        [*_head(title, bool(handlers.functions)), *handlers.source(), *_main(calls, bool(handlers.functions)), ""]
    )


def _head(title: str, has_handlers: bool) -> list[str]:
    safe = _comment(title)[:100].strip()
    needs = [
        "#include <errno.h>",
        "#include <stdio.h>",
        "#include <string.h>",
        "#include <sys/kercalls.h>",
        "#include <sys/neutrino.h>",
        "#include <sys/trace.h>",
    ]
    handler_needs = ["#include <stdint.h>", "#include <unistd.h>"] if has_handlers else []
    return [
        "/*",
        f" * Sets a filter of the instrumented kernel{': ' + safe if safe else ''}.",
        " * Written by satview. Run it as root:",
        " *   tracelogger -d1 -n 0 -f /dev/shmem/tracebuffer.kev &",
        " *   this_program",
        " */",
        "",
        *sorted(needs + handler_needs),
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


def _main(calls: Sequence[str], has_handlers: bool) -> list[str]:
    lines = ["int main(void)", "{"]
    if has_handlers:
        lines += [
            "    /* Handlers run inside the kernel, so they need the right to touch hardware. */",
            "    if (ThreadCtl(_NTO_TCTL_IO, 0) == -1) {",
            '        fprintf(stderr, "no I/O privilege: %s\\n", strerror(errno));',
            "        return 1;",
            "    }",
            "",
        ]
    lines += [f"    {call}" for call in calls]
    lines += [
        "",
        "    if (TraceEvent(_NTO_TRACE_START) == -1) {",
        '        fprintf(stderr, "cannot start: %s\\n", strerror(errno));',
        "        return 1;",
        "    }",
    ]
    if has_handlers:
        lines += [
            "    /* The kernel drops the handlers when this process ends: stop it with a signal. */",
            "    pause();",
        ]
    return [*lines, "    return failures != 0;", "}"]


def _call(rule: Rule, release: Release, handlers: _Handlers) -> str:
    """Return the C statement of one rule."""
    assert rule.mode is not None
    words = [f"_NTO_TRACE_{rule.mode.name}"]
    if rule.external is not None:
        words.append(f"_NTO_TRACE_{rule.external.name}")
        if rule.event is not None:
            words.append(event_symbol(rule.external, rule.event, release))
    words += [str(value) for value in (rule.pid, rule.tid) if value is not None]
    if rule.condition or rule.function:
        if release is Release.QNX_8:
            return f"/* 8.0 has no event handlers; left out: {_comment(rule.text(release))} */"
        name, data = handlers.add(rule)
        words += [name, f"&{data}"]
    return f"SET({', '.join(words)});"


def event_symbol(external: ExternalClass, event: int, release: Release) -> str:
    """Return the event argument as C writes it: the header's names where it has them, else a number."""
    known = names(release)
    if not has_event_masks(external, release):
        codes = internal_codes(external, event, release) if external not in INT_CLASSES else ()
        found = [known[code].symbol for code in codes if code in known and known[code].symbol]
        return found[0] if found else str(event)
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


def _comment(text: str) -> str:
    """Return text that can stand in a comment: nothing that ends it, nothing a compiler takes for more."""
    return re.sub(r"[^\x20-\x7e]|\*/|/\*|\?\?|\\\\$", " ", text).replace("\\", "/")[:2000]


# ---- handlers ----------------------------------------------------------------------------------------------------


class _Handlers:
    """Collects the handler functions of a program; equal conditions share one function."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.functions: dict[str, str] = {}

    def add(self, rule: Rule) -> tuple[str, str]:
        """Return the names of the function and of its data for a dynamic rule."""
        key = rule.condition or f"function {rule.function}"
        name = self.functions.setdefault(key, f"handler_{len(self.functions) + 1}")
        return name, f"{name}_data"

    def source(self) -> list[str]:
        """Return the functions and their data."""
        lines: list[str] = []
        for key, name in self.functions.items():
            lines += [
                f"static uint32_t {name}_words[{_DATA_WORDS}];",
                f"static event_data_t {name}_data = {{ .data_array = {name}_words }};",
                "",
            ]
            lines += [*self._function(key, name), ""]
        return lines

    def _function(self, key: str, name: str) -> list[str]:
        comment = _comment(key)
        head = [f"/* {comment[i : i + 100]} */" for i in range(0, len(comment), 100)]
        is_function = key.startswith("function ")
        text = None if is_function else in_c(Expression(key, self.release).tree)
        lines = [*head, f"static int {name}(event_data_t *event)", "{"]
        if text is not None:
            lines += ["    const uint32_t *word = event->data_array;", "    (void)word;", f"    return {text};"]
        else:
            lines += [
                "    (void)event;",
                "    /* Fill in: return 0 to keep the event out. This runs inside the kernel: it must not block. */",
                "    return 1;",
            ]
        return [*lines, "}"]


def _attach(conditions: Sequence[Expression], state: RuleSet) -> list[str]:
    """Attach conditions over all classes to every class that can have a handler; return comments on the others."""
    if not conditions:
        return []
    text = " and ".join(f"({condition.text})" for condition in conditions)
    notes = [_join(text, external, state) for external in sorted(state.known & HANDLER_CLASSES)]
    return [f"/* {note}: {_comment(text)} */" for note in notes if note]


def _join(text: str, external: ExternalClass, state: RuleSet) -> str:
    """Let the handler of a class ask for a condition too; return what to tell if it cannot."""
    before = state.class_handlers.get(external)
    if before is not None and not isinstance(before, Expression):
        return f"The handler of {external.name} also has to ask"
    try:
        handler = Expression(text if before is None else f"({before.text}) and {text}", state.release)
    except ExpressionError:  # what each of them may have is too much for all together
        return f"Too much for one condition, fill it in: the handler of {external.name} has to ask"
    if state.add_class_ev_handler(external, handler):
        return f"All {HANDLER_LIMIT} places for handlers are taken, so none of {external.name} asks"
    return ""


def in_c(node: Node) -> str | None:
    """Return a condition as a C expression over `event` and `word`; None if a handler cannot know what it asks for."""
    if isinstance(node, And | Or):
        parts = [in_c(part) for part in node.parts]
        known = [part for part in parts if part is not None]
        return (
            (" && " if isinstance(node, And) else " || ").join(f"({part})" for part in known)
            if len(known) == len(parts)
            else None
        )
    if isinstance(node, Not):
        part = in_c(node.part)
        return None if part is None else f"!({part})"
    if isinstance(node, Compare):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None:
            return None
        return _guarded(node, f"{left} {node.sign} {right}")
    if isinstance(node, In):
        value, choices = _number(node.value), [_number(choice) for choice in node.choices]
        if value is None or None in choices:
            return None
        return _guarded(node, " || ".join(f"{value} == {choice}" for choice in choices))
    return None


def _guarded(node: Node, text: str) -> str:
    """Add what makes the parts known: enough payload words, valid features."""
    guards = sorted(set(_guards(node)))
    return f"({text})" if not guards else " && ".join([*guards, f"({text})"])


def _guards(node: Node) -> Iterator[str]:
    if isinstance(node, Word):
        yield f"event->el_num > {node.index}"
    elif isinstance(node, Field) and node.name in ("pid", "tid"):
        yield f"(event->feature_mask & {1 if node.name == 'pid' else 2}u)"
    elif isinstance(node, Compare | Arithmetic):
        yield from _guards(node.left)
        yield from _guards(node.right)
    elif isinstance(node, In):
        for part in (node.value, *node.choices):
            yield from _guards(part)
    elif isinstance(node, Negative):
        yield from _guards(node.part)


_FIELDS_IN_C: Final = {
    "pid": "(long long)(int32_t)event->feature[0]",
    "tid": "(long long)(int32_t)event->feature[1]",
    "cpu": "(long long)(event->header >> 24 & 0x3f)",
    "code": "(long long)(event->header & 0x7fff)",
    "words": "(long long)event->el_num",
}
_SIGNS_IN_C: Final = ("+", "-", "*", "&", "|", "^")


def _number(node: Node) -> str | None:
    if isinstance(node, Number):
        return f"{node.value}LL" if node.value < 1 << 63 else f"(long long){node.value}ULL"
    if isinstance(node, Word) and node.index < _DATA_WORDS:
        return f"(long long)word[{node.index}]"
    if isinstance(node, Field):
        return _FIELDS_IN_C.get(node.name)
    if isinstance(node, Negative):
        part = _number(node.part)
        return None if part is None else f"(-{part})"
    if isinstance(node, Arithmetic) and node.sign in _SIGNS_IN_C:
        left, right = _number(node.left), _number(node.right)
        return None if left is None or right is None else f"({left} {node.sign} {right})"
    return None
