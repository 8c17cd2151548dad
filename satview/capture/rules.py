"""Rule files for captures: the rules that filter a view, turned into the TraceEvent() calls that they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.event_data import RULE_DATA
from satview.capture.logger_options import RULE
from satview.filters.diagnostics import RuleError
from satview.filters.expressions.expression import Expression
from satview.filters.rules.building import FunctionLoader, build
from satview.filters.rules.capturing import CaptureRules, for_capture
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_line import Processes
from satview.filters.rules.text import parse_rules

if TYPE_CHECKING:
    from satview.capture.kernel import Kernel


def calls_of_text(
    text: str, kernel: Kernel, load_function: FunctionLoader | None = None, is_wide: bool = False
) -> tuple[list[RULE], CaptureRules]:
    """Return the calls that a rule text represents, with process names resolved on a machine that runs.

    Args:
        text: One rule per line, as in `.satrules` files.
        kernel: Its processes give the names their pids, its release the numbers.
        load_function: For rules that call Python functions; None refuses those.
        is_wide: Whether the logger makes everything wide before the rules.

    Returns:
        The calls, and what the rules become: its notes say what is captured although a view would hide it.

    Raises:
        RuleError: Faults in the text, a rule that the kernel would refuse, or one that no kernel can carry out.
        UsageError: A function that may not be run.
    """
    release = kernel.target.release
    rules = parse_rules(text, release, processes_of(kernel))
    captured = for_capture(build(rules, release, load_function, is_wide), kernel.target.has_handlers)
    if captured.faults:
        raise RuleError(list(captured.faults))
    calls = [_call(rule, captured, load_function) for rule in captured.rules]
    calls += [("ADDCLASSEVHANDLER", (external, handler, RULE_DATA)) for external, handler in captured.handlers.items()]
    return calls, captured


def processes_of(kernel: Kernel) -> Processes:
    """Return the pids behind the names of the processes that run, with and without folders."""
    pids: dict[str, tuple[int, ...]] = {}
    for process in kernel.machine.processes.values():
        for name in {process.name, process.short_name}:
            pids[name] = (*pids.get(name, ()), process.pid)
    return pids


def _call(rule: Rule, captured: CaptureRules, load_function: FunctionLoader | None) -> RULE:
    assert rule.mode is not None
    if rule.condition:
        return rule.mode.name, (*rule.arguments(), Expression(rule.condition, captured.state.release), RULE_DATA)
    if rule.function and load_function is not None:
        return rule.mode.name, (*rule.arguments(), load_function(rule.function), RULE_DATA)
    return rule.mode.name, rule.arguments()
