"""Lines of events, kind by kind, by one `%` template each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from satview.events import wire
from satview.export.listing.forms import Form
from satview.export.listing.printer import Lines, _counts, _filled, _group, _variants

_COUNT_SHIFT = 15
_VARIANT_SHIFT = 46


class PlainLines:
    """Prints the events of a source."""

    def __init__(self, source, rows):
        self._source, self._rows = source, rows
        self._forms: dict[int, Form | None] = {}

    def begin(self, batch, rows) -> Callable[[], Lines]:
        """Return what makes the text of some events of a batch."""
        lines = self._lines(batch, rows)
        return lambda: lines

    def _lines(self, batch, rows):
        counts = _counts(batch, rows)
        variant = _variants(self._source, batch, rows, counts).astype(np.int64)
        kinds = batch.code[rows].astype(np.int64) | counts << _COUNT_SHIFT | variant << _VARIANT_SHIFT
        texts, printed, heads = np.full(len(rows), b"", object), 0, self._rows.heads(batch, rows)
        for kind in np.unique(kinds).tolist():
            members, form = np.flatnonzero(kinds == kind), self._form(kind)
            if form is None:
                continue
            group = _group(self._source, batch, rows[members], int(counts[members[0]]))
            template = self._rows.separator.replace("%", "%%") + self._rows.begin(form) + form.template
            texts[members] = _filled(template, form.columns, [head.of(members) for head in heads], group)
            printed += len(members)
        return Lines(b"".join(texts), np.cumsum([len(text) for text in texts], dtype=np.int64), printed)

    def _form(self, kind):
        if kind not in self._forms:
            spec = self._source.catalogue.spec(kind & wire.CODE_MASK)
            self._forms[kind] = self._rows.form(spec, kind >> _COUNT_SHIFT & 0x7FFFFFFF, kind >> _VARIANT_SHIFT)
        return self._forms[kind]
