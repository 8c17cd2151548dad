"""The verdicts of the open trace: looked for in the background once they are seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from satview.base.counts import counted
from satview.session.tasks import IsCancelled
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.analysis.verdicts.verdict import Verdict

_MOST_KINDS: Final = 2  # that a summary names


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
    """What was found in a trace.

    Attributes:
        verdicts: The most severe first.
        undecided: Kinds that the trace cannot show, or not all of them, each with the reason.
        more: Why there may be more of all kinds; empty if there are none.
    """

    verdicts: tuple[Verdict, ...] = ()
    undecided: Mapping[str, str] = field(default_factory=dict)
    more: str = ""


def search_verdicts(trace: Trace, is_cancelled: IsCancelled) -> FoundVerdicts:
    """Return the verdicts of a trace, and what it cannot show.

    Raises:
        Cancelled: They are not needed any more.
    """
    from satview.analysis.doctor.report import may_be_more  # on first use: no picture waits for it
    from satview.analysis.doctor.undecided import undecided
    from satview.analysis.verdicts.find import find_verdicts

    return FoundVerdicts(find_verdicts(trace, cancelled=is_cancelled), undecided(trace), may_be_more(trace))


def summary(found: FoundVerdicts) -> str:
    """Return in a few words what was found: how many verdicts, and the kinds of the most severe ones."""
    count, unknown = len(found.verdicts), len(found.undecided)
    kinds = list(dict.fromkeys(str(verdict.kind) for verdict in found.verdicts))
    if not count:
        reported = f", {counted(unknown, 'kind')} cannot be decided" if unknown else ""
        return f"No verdicts{reported}"
    more = "\N{HORIZONTAL ELLIPSIS}" if len(kinds) > _MOST_KINDS else ""
    return f"{counted(count, 'verdict')}: {', '.join(kinds[:_MOST_KINDS])}{more}"
