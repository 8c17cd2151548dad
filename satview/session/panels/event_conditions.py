"""Filter conditions that describe the selection: its thread, process, event, class, CPU, state, arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Argument
from satview.events.states import NOT_A_STATE, STATE_BY_VALUE
from satview.filters.derived_columns import DerivedColumns
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression, validate
from satview.filters.expressions.syntax import in_quotes
from satview.session.open_trace import OpenTrace
from satview.store.arguments import taught
from satview.store.trace import Trace

_TEXT_MAX: Final = 80
_FUNCTION: Final = "thisfn"  # the argument that only entries and exits of functions have
_GLOB_SIGNS: Final = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class Proposal:
    """One condition that the selection meets.

    Attributes:
        what: Kind of condition: `Thread`, `Process`, `Event`, `Class`, `CPU`, `State`, or the name of an argument.
        title: The value in the condition, as shown to the user.
        expression: The condition.
        is_argument: True for arguments and payload words.
    """

    what: str
    title: str
    expression: str
    is_argument: bool = False


def proposals(opened: OpenTrace) -> tuple[Proposal, ...]:
    """Return filter conditions that the current selection meets: thread and process first, then event and state."""
    trace, selection = opened.trace, opened.selection
    offered: list[Proposal] = []
    event = selection.event
    thread = 0
    if selection.span is not None and selection.span.thread > 0:
        thread = selection.span.thread
    elif selection.lane is not None:
        info = opened.timeline.infos[selection.lane]
        thread = info.thread
        if not thread and info.process > 0 and event is None:
            offered.append(of_process(trace, info.process))
    if event is not None:
        thread = int(trace.events.thread[event]) or thread
    if thread > 0:
        offered += of_thread(trace, thread)
    if event is not None:
        offered += of_event(trace, event)
    if selection.span is not None and selection.span.value in STATE_BY_VALUE:
        name = STATE_BY_VALUE[selection.span.value].name
        if validate(f"state == {name}", trace.release) is None:
            offered.append(Proposal("State", name, f"state == {name}"))
    unique = {proposal.expression: proposal for proposal in reversed(offered)}
    return tuple(reversed(unique.values()))


def of_thread(trace: Trace, thread: int) -> Iterator[Proposal]:
    """Yield conditions for a thread and for its process."""
    pid, tid = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
    if tid > 0:
        yield Proposal("Thread", trace.thread_name(thread), f"pid == {pid} and tid == {tid}")
    yield of_process(trace, int(trace.threads.process[thread]))


def of_process(trace: Trace, process: int) -> Proposal:
    """Return the condition for a process."""
    return Proposal("Process", trace.process_name(process), f"pid == {int(trace.processes.pid[process])}")


def of_event(trace: Trace, event: int) -> Iterator[Proposal]:
    """Yield conditions that an event meets, one each for its kind, class, state, CPU and arguments."""
    code = int(trace.events.code[event])
    spec = trace.spec(event)
    kind = f"class == {spec.class_name} and event == {_word(spec.name)}"
    if not _fits(trace, event, kind):
        kind = f"code == {code}"
    yield Proposal("Event", spec.label or spec.name, kind)
    if _fits(trace, event, f"class == {_word(spec.class_name)}"):
        yield Proposal("Class", spec.class_name, f"class == {_word(spec.class_name)}")
    value = int(trace.catalogue.state_value_of_code[code])
    if value != NOT_A_STATE and value in STATE_BY_VALUE:
        name = STATE_BY_VALUE[value].name
        if _fits(trace, event, f"state == {name}"):
            yield Proposal("State", name, f"state == {name}")
    yield Proposal("CPU", str(int(trace.events.cpu[event])), f"cpu == {int(trace.events.cpu[event])}")
    for argument in trace.payloads.decode(event, 40).arguments[:40]:
        for condition in _argument_conditions(argument):
            if _fits(trace, event, condition):
                # Both entry and exit of a function, so that its calls stay complete.
                whole = condition if argument.name == _FUNCTION else f"{kind} and {condition}"
                yield Proposal(argument.name, argument.text, whole, is_argument=True)
                break


def _argument_conditions(argument: Argument) -> Iterator[str]:
    name = _word(argument.name)
    if isinstance(argument.value, int):
        value = argument.value
        number = hex(value) if argument.text.startswith("0x") and value >= 0 else str(value)
        yield f"arg.{name} == {number}"
        yield f"arg.{name} == {value & 0xFFFFFFFF}"
        if argument.words == 1:
            yield f"word[{argument.first_word}] == {value & 0xFFFFFFFF:#x}"
    elif isinstance(argument.value, str):
        text = argument.value[:_TEXT_MAX]
        if text.isprintable():
            yield f"arg.{name} == {in_quotes(text)}"
            yield f"text == {in_quotes(text)}"
            yield f"text ~ {in_quotes(f'*{_GLOB_SIGNS.sub(_in_brackets, text)}*')}"


class _NoDerivedColumns:
    """Stand-in for the computed columns, all -1: conditions made here read no durations, priorities and latencies."""

    def duration_ns(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        return np.full(len(rows), -1, np.int64)

    state_length_ns = priority = latency_ns = duration_ns


_NO_DERIVED_COLUMNS: Final[DerivedColumns] = _NoDerivedColumns()


def _fits(trace: Trace, event: int, text: str) -> bool:
    """Return whether a condition is valid and holds for an event."""
    try:
        condition = Expression(text, trace.release, taught=taught(trace))
        return bool(condition.mask(trace, np.array([event], np.uint32), _NO_DERIVED_COLUMNS)[0])
    except ExpressionError:
        return False


def _word(name: str) -> str:
    return name if name.isidentifier() else in_quotes(name)


def _in_brackets(sign: re.Match[str]) -> str:
    return f"[{sign.group()}]"
