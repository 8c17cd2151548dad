"""The verdicts of the open trace: looked for in the background once somebody wants to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from satview.analysis.doctor.report import may_be_more
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.untold import untold
from satview.analysis.verdicts.verdict import Verdict, VerdictKind
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
    """What was found in a trace.

    Attributes:
        verdicts: The most severe first.
        untold: Kinds that the trace cannot tell, or not all of them, each with the reason.
        more: Why there may be more of all kinds; empty if there are none.
    """

    verdicts: tuple[Verdict, ...] = ()
    untold: Mapping[VerdictKind, str] = field(default_factory=dict)
    more: str = ""


def search_verdicts(trace: Trace) -> FoundVerdicts:
    """Return the verdicts of a trace, and what it cannot tell."""
    return FoundVerdicts(find_verdicts(trace), untold(trace), may_be_more(trace))
