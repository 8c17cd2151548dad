"""Hits as text: one line each, and nothing in it that a spreadsheet would carry out."""

from __future__ import annotations

import numpy as np
import pytest

from satview.base.errors import Cancelled
from satview.events.wire import PROC_CREATE_NAME
from satview.session.event_text import COLUMNS
from satview.session.open_trace import hits_text
from tests.filters.made import RUNNING, START_CYCLES, Maker, make_trace


@pytest.fixture(scope="module")
def trace():
    maker = Maker()
    maker.text_event(PROC_CREATE_NAME, 0, START_CYCLES, (1, 20), b"=cmd|' calc'!A0\n\tsecond")
    maker.event(RUNNING, 0, START_CYCLES + 10, (20, 1))
    return make_trace(maker)


def test_names_of_programs_are_no_formulas_and_break_no_line(trace):
    rows = np.arange(len(trace.events), dtype=np.uint32)
    lines = hits_text(trace, rows, lambda: False, lambda _: None).split("\n")
    assert len(lines) == len(rows) + 1
    assert all(len(line.split("\t")) == len(COLUMNS) for line in lines)
    assert lines[-1].split("\t")[4].startswith("'=cmd|' ")


def test_a_copy_can_be_stopped(trace):
    rows = np.zeros(5000, np.uint32)
    with pytest.raises(Cancelled):
        hits_text(trace, rows, lambda: True, lambda _: None)
