"""Expressions over a trace of the threads library, which brings classes, pairs and states of its own."""

from pathlib import Path

import numpy as np

import satview
from satview.linkage.calls import partner

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "threads"


def test_classes_whatever_the_case():
    trace = satview.open_trace(SAMPLE)
    rows = satview.select(trace, "class == mutex")
    assert {trace.spec(int(row)).class_name for row in rows} == {"mutex"}
    np.testing.assert_array_equal(rows, satview.select(trace, "class == MUTEX"))
    assert len(rows) == trace.class_counts()["mutex"]


def test_durations_are_those_of_the_pairs():
    trace = satview.open_trace(SAMPLE)
    times = trace.events.time_cycles
    requested = [
        row
        for row in range(len(trace.events))
        if (other := partner(trace, row)) is not None and abs(int(times[other] - times[row])) > 100_000
    ]
    assert requested
    assert satview.select(trace, "duration > 100us").tolist() == requested
