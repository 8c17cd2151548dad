"""The verdicts of the open trace: looked for in the background once somebody wants to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.untold import untold
from satview.analysis.verdicts.verdict import Verdict, VerdictKind
from satview.session.answer import Answer
from satview.session.jobs import IsCancelled, Report
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
    """What was found in a trace.

    Attributes:
        verdicts: The most severe first.
        untold: Kinds that the trace cannot tell, or not all of them, each with the reason.
    """

    verdicts: tuple[Verdict, ...] = ()
    untold: Mapping[VerdictKind, str] = field(default_factory=dict)


class VerdictSearch(Answer):
    """Looks for verdicts at the first `start`, and again in a refreshed trace while they are wanted.

    Attributes:
        found: The verdicts; None = not looked for yet, or that failed.
    """

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._is_of_this = False
        self.found: FoundVerdicts | None = None

    def start(self) -> None:
        """Look for them, unless that is done or under way."""
        if not self._is_of_this and not self.is_busy:
            self._start(partial(_find, self._trace))

    def take(self, trace: Trace) -> None:
        """Look in a refreshed trace from now on; what was found before shows until the next `start`."""
        self._job.cancel()
        self._trace, self._is_of_this = trace, False

    def _take(self, result: object) -> None:
        self._is_of_this = True
        if isinstance(result, FoundVerdicts):
            self.found = result


def _find(trace: Trace, _is_cancelled: IsCancelled, _report: Report) -> FoundVerdicts:
    """Work of the job; it holds the trace, no widget."""
    return FoundVerdicts(find_verdicts(trace), untold(trace))
