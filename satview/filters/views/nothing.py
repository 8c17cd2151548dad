"""Why a filter selects nothing of a trace: an empty answer must not look like one about a quiet system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import CLASS_SHIFT, WireClass
from satview.filters.derived_columns import DerivedColumns
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import codes_that_fit
from satview.filters.rows import Bools
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.inserted import passing_in_view
from satview.store.trace import Trace

_NAMES_MOST: Final = 4


def why_nothing(
    built: BuiltRules, conditions: Sequence[Expression], trace: Trace, rows: slice, derived: DerivedColumns
) -> str:
    """Return why no event of a part of a trace passes rules and conditions, as a sentence without a full stop.

    Args:
        built: The rules; their own conditions count too.
        conditions: Others, which must hold as well.
        trace: What was filtered.
        rows: The part of its events.
        derived: Where durations and priorities come from.
    """
    if not len(trace.events):
        return "the trace has no events"
    if rows.start >= rows.stop:
        return "no event is in the range"
    code = trace.events.code[rows]
    passes = passing_in_view(built.state, trace, derived)[rows]
    if not passes.any():
        return f"the rules leave out all that is there, events of {_listed(_classes(trace, code)) or 'CONTROL'}"
    for condition in (*built.conditions, *conditions):
        codes = codes_that_fit(condition.tree)
        if not codes[code].any():
            return f"`{condition.text}` needs {_needed(trace, codes)}, of which there are none"
        if not codes[code[passes]].any():
            return f"`{condition.text}` needs events that the rules leave out"
        if not condition.mask(trace, np.arange(rows.start, rows.stop), derived).any():
            return f"`{condition.text}` holds for none of {len(code):,} events"
    return "each rule and condition lets some events pass, but none of them passes all"


def _needed(trace: Trace, codes: Bools) -> str:
    """Return the names of events, or of their classes where they are many."""
    known = [code for code in trace.catalogue.codes() if codes[code]]
    names = sorted({trace.catalogue.name(code) for code in known})
    return f"events of {_listed(_classes(trace, np.array(known)))}" if len(names) > _NAMES_MOST else _listed(names)


def _classes(trace: Trace, code: NDArray[np.integer]) -> list[str]:
    """Return the names of the classes of some codes, that of control events aside."""
    codes = np.unique(code)
    codes = codes[codes >> CLASS_SHIFT != WireClass.CONTROL]
    return [trace.catalogue.classes[index].name for index in np.unique(trace.catalogue.class_index_of_code[codes])]


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _NAMES_MOST else ""
    return ", ".join(names[:_NAMES_MOST]) + more
