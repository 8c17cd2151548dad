"""The verdicts of the open trace: looked for in the background once somebody wants to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.untold import untold
from satview.analysis.verdicts.verdict import Verdict, VerdictKind
from satview.base.errors import SatviewError
from satview.session.jobs import IsCancelled, LatestJob, Report
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


class VerdictSearch(QObject):
    """Looks for verdicts at the first `start`, and again after each reading of a growing file while they are wanted.

    Signals:
        changed: They are found, are being looked for, or could not be found.
    """

    changed = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._is_of_this = False
        self.found: FoundVerdicts | None = None
        self.error = ""
        self._job = LatestJob(self)
        self._job.done.connect(self._on_found)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """Whether they are being looked for."""
        return self._job.is_busy

    def start(self) -> None:
        """Look for them, unless that is done or under way."""
        if not self._is_of_this and not self.is_busy:
            self._job.start(partial(_find, self._trace))
            self.changed.emit()

    def take(self, trace: Trace) -> None:
        """Take a longer reading of the trace; what was found in the shorter one shows until the next `start`."""
        self._job.cancel()
        self._trace, self._is_of_this = trace, False

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    @Slot(object)
    def _on_found(self, found: object) -> None:
        if isinstance(found, FoundVerdicts):
            self.found, self.error, self._is_of_this = found, "", True
            self.changed.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self.error, self._is_of_this = str(error), True
        self.changed.emit()


def _find(trace: Trace, _is_cancelled: IsCancelled, _report: Report) -> FoundVerdicts:
    """Work of the job; it holds the trace, no widget."""
    return FoundVerdicts(find_verdicts(trace), untold(trace))
