"""Which events `trace.iter_events("KER_CALL", pid=7)` yields: their rows, by name, thread, CPU and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events.catalogue import Catalogue
from satview.store.tables import EventTable

_CHUNK = 1 << 16


def walk(
    events: EventTable,
    codes: NDArray[np.bool_],
    threads: NDArray[np.bool_],
    cpu: int | None,
    bounds: tuple[int, int],
    rows: NDArray[np.integer] | None,
) -> Iterator[int]:
    """Yield the rows of the events that fit, ascending; some ten thousand are tested at once.

    Args:
        events: The events of the trace.
        codes: bool (32768,), which codes fit.
        threads: bool (threads,), which rows of the thread table fit.
        cpu: Number of the CPU; None = any.
        bounds: The first row, and the one behind the last.
        rows: Integers (n,), ascending: yield none but these; None = any.
    """
    for at in range(bounds[0], bounds[1], _CHUNK):
        part = slice(at, min(at + _CHUNK, bounds[1]))
        mask = codes[events.code[part]] & threads[events.thread[part]]
        if cpu is not None:
            mask &= events.cpu[part] == cpu
        found = np.flatnonzero(mask) + at
        if rows is not None:
            found = np.intersect1d(found, rows[np.searchsorted(rows, part.start) : np.searchsorted(rows, part.stop)])
        yield from found.tolist()


def codes_of_names(catalogue: Catalogue, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which codes have one of some names, bool (32768,); no name = all codes.

    Args:
        catalogue: The names of the release.
        names: Printed classes (`KER_CALL`) and event names (`MSG_SENDV`, `KER_EXIT/MSG_SENDV`).

    Raises:
        UsageError: A name is neither a class nor an event of this release.
    """
    table = np.full(len(catalogue.class_index_of_code), not names)
    classes = {entry.name: i for i, entry in enumerate(catalogue.classes)}
    for name in names:
        if name in classes:
            table |= catalogue.class_index_of_code == classes[name]
        elif found := catalogue.find(name):
            table[list(found)] = True
        else:
            near = ", ".join((*catalogue.suggest(name), *classes)[:5])
            raise UsageError(f"{name!r} is neither a class nor an event of {catalogue.release}; there are {near}")
    return table
