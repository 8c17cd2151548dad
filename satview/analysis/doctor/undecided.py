"""Which verdicts a trace cannot have, and what to capture for them: silence must not look like health."""

from __future__ import annotations

from satview.analysis.doctor.analyses import ANALYSES
from satview.analysis.doctor.report import diagnosis
from satview.analysis.verdicts.rule import rules
from satview.store.trace import Trace


def undecided(trace: Trace) -> dict[str, str]:
    """Return the kinds that cannot be found in a trace, or not all of them, each with the reason and what to capture.

    These are the verdicts whose needs in the doctor's table are not met.

    Args:
        trace: The events.
    """
    if not len(trace.events):
        return {}
    kinds = (kind for kind in rules() if any(need.reason(trace) for need in ANALYSES[kind].needs))
    return {kind: diagnosis(trace, kind).says for kind in kinds}
