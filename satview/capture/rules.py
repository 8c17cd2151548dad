"""Rule files for captures: the rules that filter a view, turned into the TraceEvent() calls that they are."""

from __future__ import annotations

from collections.abc import Callable

from satview.base.errors import UsageError
from satview.capture.kernel import Kernel
from satview.capture.logger_options import RULE
from satview.capture.settings import EventData
from satview.events import wire
from satview.events.spec import Release
from satview.filters.building import SWITCHING, FunctionLoader, build
from satview.filters.event_facts import EventFacts
from satview.filters.expression import Expression
from satview.filters.rules import DynamicRule
from satview.filters.text import Rule, parse_rules


def calls_of_text(text: str, kernel: Kernel, load_function: FunctionLoader | None = None) -> list[RULE]:
    """Return the calls that a rule text stands for, with process names resolved on a machine that runs.

    Rules that switch nothing on or off start with everything on, as they do in a view.

    Args:
        text: One rule per line, as in `.satrules` files.
        kernel: Its processes give the names their pids, its release the numbers.
        load_function: For rules that call Python functions; None refuses those.

    Raises:
        RuleError: Faults in the text, or a rule that the kernel would refuse.
        UsageError: A rule that makes sense in a view only.
    """
    release = kernel.target.release
    pids: dict[str, tuple[int, ...]] = {}
    for process in kernel.machine.processes.values():
        for name in {process.name, process.short_name}:
            pids[name] = (*pids.get(name, ()), process.pid)
    rules = parse_rules(text, release, pids)
    build(rules, release, load_function)      # refuses what the kernel would refuse, with the line
    dynamic = [rule for rule in rules if rule.condition or rule.function]
    if dynamic and not kernel.target.has_handlers:
        raise UsageError(f"line {dynamic[0].line}: release {release} has no event handlers, so rules with WHERE or "
                         "CALL work in views only")
    start: list[RULE] = [] if any(rule.mode in SWITCHING for rule in rules) else [("ADDALLCLASSES", ())]
    return start + [_call(rule, release, load_function) for rule in rules]


def _call(rule: Rule, release: Release, load_function: FunctionLoader | None) -> RULE:
    if rule.mode is None:
        raise UsageError(f"line {rule.line}: a condition on every event is for views; attach it to a class to capture")
    if rule.condition:
        return rule.mode.name, (*rule.arguments(), _handler(Expression(rule.condition, release)), EventData())
    if rule.function and load_function is not None:
        return rule.mode.name, (*rule.arguments(), _handler(load_function(rule.function)), EventData())
    return rule.mode.name, rule.arguments()


def _handler(judge: DynamicRule) -> Callable[[EventData], int]:
    """Return an event handler of the kernel that asks a dynamic rule."""

    def handler(data: EventData) -> int:
        known = bool(data.feature_mask)
        return judge(EventFacts(
            data.header & wire.CODE_MASK, data.feature[0] if known else -1, data.feature[1] if known else -1,
            tuple(data.data_array[: data.el_num]), data.header >> wire.CPU_SHIFT & wire.CPU_MASK))

    return handler
