"""Filters over 10 million slots, against a plain copy of the file and the same comparison written in numpy.

Args: [millions].
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from satview.events.wire import WireClass, code
from satview.filters import derived_columns as event_rows
from satview.filters.derived_columns import EventMask, TraceDerivedColumns
from satview.filters.expressions.expression import Expression
from satview.filters.passes import Pass, PassEvaluator, PassStack
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import C
from satview.formats.kev.reader import open_kev
from satview.linkage.calls import calls, interrupts
from satview.store.trace import Trace
from tests.benchmarks.load import median_ns
from tests.benchmarks.made_traces import make_file


def selected_mask(trace: Trace) -> EventMask:
    """A third of the codes and half of the threads."""
    mask = EventMask.everything(trace)
    mask.codes[np.arange(1 << 15) % 3 != 0] = False
    mask.threads[::2] = False
    return mask


def static_rules(trace: Trace) -> RuleSet:
    """Everything but some events, kernel calls of one process."""
    rules = RuleSet(trace.release)
    rules.add_all_classes()
    rules.del_event(C.THREAD, 1 << 6)
    rules.del_class(C.INT)
    rules.set_class_pid(C.KERCALL, int(trace.threads.pid[1]))
    return rules


def plain_comparison(trace: Trace, after_cycles: int) -> Callable[[], object]:
    """The rule of the expression below, written by hand in numpy over chunks."""
    events, number = trace.events, code(WireClass.PR_TH, 1)
    answer = np.empty(len(events), np.bool_)

    def timed() -> None:
        for part in event_rows.chunks(len(events)):
            answer[part] = (
                (events.cpu[part] == 1)
                & ((events.code[part] == number) | (events.cpu[part] > 2))
                & (events.time_cycles[part] > after_cycles)
            )

    return timed


EXPRESSIONS = (
    "cpu == 1 and (event == THRUNNING or cpu > 2) and time > 1s", "pid == 4097 and event == MSG_SENDV",
    "event == MSG_SENDV and arg.coid > 2", "word[0] > 1000000", "event == MSG_SENDV and duration > 2us",
    "state == REPLY and length > 5us", "priority > 20",
)  # fmt: skip


def copy_of(path: Path) -> int:
    """Return how long a warm copy of the file's bytes takes, in nanoseconds."""
    data = np.fromfile(path, np.uint8)
    target = np.empty_like(data)
    return median_ns(lambda: np.copyto(target, data))


def run(args: list[str]) -> None:
    """Print one line per filter: milliseconds, times a copy of the file's bytes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    millions = parser.parse_args(args).millions
    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    copy_ns = copy_of(path)
    trace = open_kev(path)
    count = len(trace.events)
    print(f"{count:,} events; copy of the file {copy_ns / 1e6:.1f} ms")

    def report(name: str, timed: Callable[[], object], base_ns: int = copy_ns, base: str = "copy") -> int:
        took_ns = median_ns(timed)
        print(f"{name:<64} {took_ns / 1e6:8.1f} ms  {took_ns / count:6.2f} ns/event  {took_ns / base_ns:6.2f} x {base}")
        return took_ns

    mask = selected_mask(trace)
    report("class/event and thread set, with rows", lambda: event_rows.rows(trace.events, mask))
    only_codes = EventMask(mask.codes, np.ones_like(mask.threads))
    report("class/event set alone", lambda: event_rows.event_mask(trace.events, only_codes))
    rules = static_rules(trace)
    report("static rules with a pid for kernel calls", lambda: rules.mask(trace))
    after = trace.clock.cycles(1_000_000_000)
    plain_ns = report("numpy by hand: the first expression below", plain_comparison(trace, after))
    info = TraceDerivedColumns(trace)
    for text in EXPRESSIONS:
        expression = Expression(text, trace.release)
        took = report(text, lambda expression=expression: expression.mask(trace, None, info))
        if text == EXPRESSIONS[0]:
            print(f"{'':<64} {took / plain_ns:.2f} x numpy by hand")
    report("links: kernel calls, interrupts and handlers", lambda: (calls(trace), interrupts(trace)))
    report(
        "duration of every event",
        lambda: [info.duration_ns(np.arange(part.start, part.stop)) for part in event_rows.chunks(len(trace.events))],
    )
    evaluator = PassEvaluator(trace, info)
    stack = PassStack((Pass("a", expression="cpu == 1"), Pass("b", expression="class == COMM", is_inverted=True)))
    evaluator.result(stack)
    report("a pass switched on and off again (answers cached)", lambda: evaluator.result(stack))
