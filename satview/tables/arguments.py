"""Arguments of many events as columns by name, whatever their release, mode and width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Frames, Texts, Values, html_rows
from satview.base.errors import UsageError
from satview.base.extras import required
from satview.base.safe_text import visible_line
from satview.linkage.rows import rows_of_codes
from satview.store.arguments import Arguments, all_arguments
from satview.store.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS: Final = 10
_OWN: Final = ("event", "time_cycles", "time_ns", "cpu", "thread")


def argument_table(trace: Trace, name: str) -> ArgumentTable:
    """Return the events of a name with their arguments as columns.

    Args:
        trace: The trace.
        name: As of `Trace.iter_events`: `MSG_SENDV`, `KER_EXIT/MSG_SENDV`, `SND_MESSAGE`. The bare name of a kernel
            call represents its entries, in both widths.

    Raises:
        UsageError: No event of the release has that name.
    """
    book = trace.catalogue
    codes = book.find(name)
    if not codes:
        near = ", ".join(book.suggest(name))
        raise UsageError(f"{name[:40]!r} is no event of {book.release}{f'; there are {near}' if near else ''}")
    entries = [code for code in codes if book.class_name(code) == "KER_CALL"]
    rows = rows_of_codes(trace, *(entries or codes))
    return ArgumentTable(trace, name, rows, all_arguments(trace, rows))


class ArgumentTable(Frames):
    """Events of one kind and their arguments; every column has shape (n,).

        sent = trace.arguments("MSG_SENDV")
        sent.columns                       # event, time_cycles, time_ns, cpu, thread, coid, ...
        sent["coid"], sent.known("coid")   # int64 (n,), and bool (n,): the event has it

    Attributes:
        name: What was requested.
        columns: Row of the event table, times, CPU and thread as in the table `event`; then the arguments. One of
            these names that is an argument's too has `arg_` before it.
    """

    def __init__(self, trace: Trace, name: str, rows: NDArray[np.uint32], found: Arguments) -> None:
        self._trace, self.name, self._rows = trace, name, rows
        self._found = {f"arg_{key}" if key in _OWN else key: values for key, values in found.items()}
        self._columns: tuple[str, ...] = (*_OWN, *self._found)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<ArgumentTable {visible_line(self.name)}: {len(self):,} events, {', '.join(self._found)}>"

    def _repr_html_(self) -> str:
        """Return the first rows for notebooks."""
        shown = ArgumentTable(self._trace, self.name, self._rows[:_SHOWN_ROWS],
                              all_arguments(self._trace, self._rows[:_SHOWN_ROWS]))  # fmt: skip
        parts = [shown._or_none(name) for name in shown.columns]
        return html_rows(shown.columns, zip(*parts, strict=True), f"{len(self):,} events")

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column in numpy: int64 (n,), texts as objects.

        Decimal arguments are signed, others unsigned; those of 64 bits above 2^63 are negative, with the same bits.

        Arguments that an event does not have are 0, texts the empty one; `known` distinguishes them.

        Raises:
            UsageError: There is no such column.
        """
        values = self._values(name)
        return values.numpy() if isinstance(values, Texts) else values

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return self._columns

    def known(self, name: str) -> NDArray[np.bool_]:
        """Return which events have an argument, bool (n,)."""
        if name in _OWN:
            return np.ones(len(self), np.bool_)
        self._values(name)
        return self._found[name][1]

    def arrow(self) -> pa.Table:
        """Return them as a table of Arrow; arguments that an event does not have are null.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        from satview.answers.frames import arrow_array

        arrays = {
            name: arrow_array(self._values(name), is_nullable=name not in _OWN, known=self.known(name))
            for name in self.columns
        }
        return required("pyarrow").table(arrays)

    def _or_none(self, name: str) -> list[Any]:
        """Return the values of a column, None where there is none."""
        pairs = zip(self[name].tolist(), self.known(name).tolist(), strict=True)
        return [value if is_known else None for value, is_known in pairs]

    def _values(self, name: str) -> Values:
        events, rows = self._trace.events, self._rows
        if name in self._found:
            values = self._found[name][0]
            return Texts(*values) if isinstance(values, tuple) else values
        if name not in _OWN:
            raise UsageError(f"{self.name} has no argument {name[:40]!r}; it has {', '.join(self._found)}")
        if name == "event":
            return rows
        if name == "time_ns":
            return self._trace.clock.ns_array(events.time_cycles[rows])
        column: NDArray[Any] = getattr(events, name)[rows]
        return column
