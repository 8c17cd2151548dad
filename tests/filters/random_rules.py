"""Random rule files with a fixed seed, made of what a trace holds, so that their conditions divide its events.

View, simulated capture and exported C are held against each other on the same texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from satview.events.spec import Show
from satview.filters.expressions.reach import items_logged
from satview.filters.external import ExternalClass
from satview.filters.rules.building import build
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.text import parse_rules, quoted
from satview.store.trace import Trace
from tests.filters.matrix import classes_with_handlers, rows_of

_SIGNS = ("==", "!=", "<", "<=", ">", ">=")
_OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")


class RandomRules:
    """Makes rules for one trace.

    Args:
        trace: With everything on.
        seed: Decides all of them.
        wide: Whether the trace was logged wide.
        has_priorities: Whether conditions compare priorities, which exported C cannot do everywhere.
        has_text_regexes: Whether they compare texts of events with regular expressions, which exported C cannot do.
    """

    def __init__(
        self, trace: Trace, seed: int, *, wide: bool, has_priorities: bool = False, has_text_regexes: bool = True
    ) -> None:
        self._has_priorities, self._has_text_regexes = has_priorities, has_text_regexes
        self._trace, self._rng, self._wide = trace, random.Random(seed), wide
        self._classes = [c for c in classes_with_handlers(trace.release) if len(rows_of(trace, c))]
        self._rows = {c: rows_of(trace, c) for c in self._classes}
        names = [name for name in trace.processes.names if name]
        self._names = [*names, *(name.rsplit("/", 1)[-1] for name in names)]
        self._texts = [name for name in names if len(name) > 3]

    def texts(self, count: int) -> Iterator[str]:
        """Yield rule texts that a capture accepts: switches, class and event handlers, conditions on everything."""
        for _ in range(count):
            lines = [*self._lines()]
            while faults := self._faults(lines):
                lines = [line for number, line in enumerate(lines, 1) if number not in faults]
            yield "\n".join(lines) + "\n"

    def _faults(self, lines: list[str]) -> set[int]:
        rules = parse_rules("\n".join(lines), self._trace.release)
        return {fault.line for fault in for_capture(build(rules, self._trace.release)).faults}

    def _lines(self) -> Iterator[str]:
        rng = self._rng
        yield "ADDALLCLASSES"
        yield f"SETALLCLASSES{'WIDE' if self._wide else 'FAST'}"
        for _ in range(rng.randrange(3)):
            external = rng.choice([c for c in self._classes if c is not ExternalClass.THREAD])
            yield rng.choice(
                (
                    f"DELCLASS {external.name}",
                    f"SETCLASSPID KERCALL {self._pid()}",
                    f"SETCLASSTID COMM {self._pid()} 1",
                    "DELEVENT THREAD THREADY",
                    "DELEVENT COMM REPLY",
                )
            )
        for external in self._classes:
            if rng.random() < 0.6:
                yield f"ADDCLASSEVHANDLER {external.name} WHERE {self.condition(external)}"
            if rng.random() < 0.4:
                yield f"ADDEVENTHANDLER {external.name} {self._event(external)} WHERE {self.condition(external)}"
        if rng.random() < 0.3:
            yield f"WHERE {self.condition(rng.choice(self._classes))}"

    def condition(self, external: ExternalClass, depth: int = 0) -> str:
        """Return a condition that may hold for events of a class."""
        rng = self._rng
        shape = rng.random()
        if depth < 3 and shape < 0.5:
            sign = rng.choice(("and", "or"))
            return f"({self.condition(external, depth + 1)} {sign} {self.condition(external, depth + 1)})"
        if depth < 3 and shape < 0.6:
            return f"not {self.condition(external, depth + 1)}"
        if depth < 3 and shape < 0.65:
            word = rng.choice(("true", "not true", "false"))
            return f"({self.condition(external, depth + 1)}) is {word}"
        return self._test(external)

    def _test(self, external: ExternalClass) -> str:
        rng, book = self._rng, self._trace.catalogue
        row = int(rng.choice(self._rows[external]))
        code = int(self._trace.events.code[row])
        tests = [
            f"class == {external.name}",
            f'event == "{book.name(code)}"',
            *([f"event ~ /{book.name(code)[1:4].lower()}|x{{2,3}}$/i"] if rng.random() < 0.2 else []),  # 10 ms each
            "state in (READY, RUNNING, REPLY)",
            f"name == {self._quoted(rng.choice(self._names))}",
            f'name ~ "*{rng.choice(self._names)[1:4]}*"',
            rng.choice(("name ~ /^\\W?[a-m]+\\w*(er|[^n-z\\d.])$/i", "name ~ /(?:[aeiou][^aeiou]+){2,3}/")),
            f'name in ({self._quoted(rng.choice(self._names))}, "nobody")',
            f"pid in ({self._pid()}, {self._pid()}, 77)",
            *[f"{self._value(external, row)} {rng.choice(_SIGNS)} {self._value(external, row)}"] * 4,
            f"{self._value(external, row)} in ({self._value(external, row)}, 1, {self._value(external, row)})",
            f"{self._value(external, row)} is {rng.choice(('known', 'unknown'))}",
            rng.choice(("failed", "state", "pid", "tid", "errno", "text", "name")) + " is known",
        ]
        if external is ExternalClass.KERCALLEXIT:
            tests += ["failed", "errno in (EAGAIN, ETIMEDOUT)", "errno > 100"] * 2
        if external is ExternalClass.PROCESS:
            text = rng.choice(self._texts)
            tests += [
                f'text ~ "*{text[1:3]}*"',
                f"text == {self._quoted(text)}",
                f'arg.name ~ "?{text[1:]}"',
                *(["text ~ /[a-m]+\\d*$/", "text ~ /^.R/i"] if self._has_text_regexes else ['text ~ "?[!r]*"']),
            ] * 2
        if external is ExternalClass.THREAD and self._wide:
            tests += ["arg.priority > 10", "arg.policy == 2"]
        if self._has_priorities and external is not ExternalClass.PROCESS:
            tests += [f"priority {rng.choice(_SIGNS)} {rng.choice((10, 15, 21))}", "priority is known"] * 2
        return rng.choice(tests)

    def _value(self, external: ExternalClass, row: int, depth: int = 0) -> str:
        rng, words = self._rng, self._trace.payloads.words(row).tolist()
        if depth < 2 and rng.random() < 0.35:
            parts = [self._value(external, row, depth + 1) for _ in range(2)]
            return rng.choice(
                (
                    f"({parts[0]} {rng.choice(_OPERATORS)} {parts[1]})",
                    f"abs({parts[0]})",
                    f"-{parts[0]}",
                    f"min({parts[0]}, {parts[1]})",
                    f"max({parts[0]}, {parts[1]})",
                    f"signed({parts[0]})",
                    f"bit({parts[0]}, {rng.randrange(70)})",
                )
            )
        index = rng.randrange(len(words))
        return rng.choice(
            (
                "pid",
                "tid",
                "cpu",
                "words",
                "code",
                "number",
                f"word[{index}]",
                f"word[{index}]",
                str(words[index]),
                str(words[index]),
                str(rng.randrange(9)),
                "0x8000000000000000",
                *self._arguments(row),
            )
        )

    def _arguments(self, row: int) -> list[str]:
        items = items_logged(self._trace.release, int(self._trace.events.code[row]), self._wide)
        return [f'arg."{item.name}"' for item in items if item.show not in (Show.STRING, Show.STRUCT)][:4]

    def _event(self, external: ExternalClass) -> str:
        rows = self._rows[external]
        if external.name.startswith("INT"):
            return str(self._trace.payloads.column(rows, 0)[0])
        name = self._trace.catalogue.name(int(self._rng.choice(self._trace.events.code[rows])))
        return name.removesuffix("_64")

    def _pid(self) -> int:
        pids = self._trace.processes.pid
        return int(self._rng.choice(pids[pids > 0].tolist()))

    @staticmethod
    def _quoted(text: str) -> str:
        return text if (text := quoted(text)).startswith('"') else f'"{text}"'
