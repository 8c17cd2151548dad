"""Capture settings that meet the needs of an analysis: rules, and the equivalent command line of tracelogger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from satview.analysis.needs import NO_LOSS, Need
from satview.events.modes import Mode
from satview.filters.external import ExternalClass as C
from satview.filters.external import classes_of
from satview.filters.rules.building import build
from satview.filters.rules.text import Rule
from satview.filters.rules.writing import logger_numbers, tracelogger_command
from satview.store.trace import Trace

_LEFT_OUT: Final = (C.KERCALL, C.INT, C.VTHREAD, C.COMM, C.SYSTEM)  # PROCESS names things, THREAD shows who runs
_KERNEL_BUFFERS, _LOGGER_BUFFERS = 32, 64  # defaults of tracelogger, section 7.1
_MOST_BUFFERS: Final = 1024


@dataclass(frozen=True, slots=True)
class CaptureLine:
    """Settings of a capture, in two equivalent forms.

    Attributes:
        rules: Rules, one per line, for `satview tracelogger --rules` and for New capture.
        command: Command line of tracelogger for the target.
    """

    rules: str
    command: str


def capture_line(trace: Trace, needs: Iterable[Need], *, is_wide: bool = False) -> CaptureLine | None:
    """Return settings of a capture that meets needs, with only the classes involved; None if the trace is not of QNX.

    The classes PROCESS and THREAD are always captured: without them nothing has a name or an owner.

    Args:
        trace: The trace that does not meet the needs; its release decides which options exist.
        needs: All needs of an analysis, met or not.
        is_wide: All events wide, whether a need asks for it or not.
    """
    if not trace.release.is_qnx:
        return None
    needs = tuple(needs)
    requested = {external for need in needs for external in need.classes}
    release = trace.release
    rules = [Rule(Mode.ADDALLCLASSES)]
    rules += [Rule(Mode.DELCLASS, external) for external in _LEFT_OUT
              if external in classes_of(release) and external not in requested]  # fmt: skip
    is_wide |= any(need.is_wide for need in needs)
    rules.append(Rule(Mode.SETALLCLASSESWIDE if is_wide else Mode.SETALLCLASSESFAST))
    command = tracelogger_command(build(rules, release)).text
    if NO_LOSS in needs and NO_LOSS.reason(trace):
        command = command.replace("tracelogger", f"tracelogger {_more_buffers(trace)}", 1)
    return CaptureLine("".join(f"{rule.text(release)}\n" for rule in rules), command)


def _more_buffers(trace: Trace) -> str:
    """Return tracelogger options for four times as many buffers as the capture had, up to `_MOST_BUFFERS`."""
    given = logger_numbers(trace.header.get("TRACELOGGER_ARGS"))
    kernel, logger = given.get("k", _KERNEL_BUFFERS), given.get("b", _LOGGER_BUFFERS)
    return f"-k {min(4 * kernel, _MOST_BUFFERS)} -b {min(4 * logger, _MOST_BUFFERS)}"
