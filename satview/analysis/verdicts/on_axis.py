"""Verdicts about one file of several on one axis, with the times, events and threads of the axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from satview.analysis.verdicts.verdict import Occurrence, Verdict
from satview.store.axis import Part


def on_axis(part: Part, verdict: Verdict) -> Verdict:
    """Return a verdict about a file as one about the trace that it is a part of."""
    return replace(
        verdict,
        start_cycles=_moment(part, verdict.start_cycles),
        end_cycles=_moment(part, verdict.end_cycles),
        threads=tuple(part.threads[list(verdict.threads)].tolist()),
        evidence=tuple(part.rows[list(verdict.evidence)].tolist()),
        occurrences=tuple(_occurrence(part, occurrence) for occurrence in verdict.occurrences),
    )


def _occurrence(part: Part, own: Occurrence) -> Occurrence:
    row = int(part.rows[own.row]) if own.row >= 0 else own.row
    return Occurrence(_moment(part, own.start_cycles), _moment(part, own.end_cycles), row)


def _moment(part: Part, own: int) -> int:
    return int(part.cycles(np.array([own]))[0])
