"""Columns as Arrow arrays over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from satview.tables.columns import Made, Texts, Values
from satview.tables.extras import required
from satview.tables.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(columns: Sequence[Column], values: Made) -> pa.Table:
    """Return a table of Arrow; numbers stay where they are, only the bits that say what is null are made.

    Args:
        columns: Which, in order.
        values: At least the values of these, by name.

    Raises:
        UsageError: The package pyarrow is not installed.
    """
    pyarrow = required("pyarrow")
    return pyarrow.table(
        {column.name: arrow_array(values[column.name], is_nullable=column.is_nullable) for column in columns}
    )


def arrow_array(values: Values, *, is_nullable: bool, known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a column as an Arrow array.

    Args:
        values: (n,).
        is_nullable: -1, or the empty text, becomes null.
        known: bool (n,), instead: what is not null.
    """
    pyarrow = required("pyarrow")
    if isinstance(values, Texts):
        texts = _dictionary(values.texts)
        code = _narrowed(values)
        if is_nullable and known is None:
            known = ~np.isin(values.code, [i for i, text in enumerate(values.texts) if not text])
        indices = _numbers(pyarrow, code, known)
        return pyarrow.DictionaryArray.from_arrays(indices, texts, safe=False)
    if is_nullable and known is None:
        known = values != -1
    if values.dtype == np.bool_:
        return pyarrow.array(values, mask=None if known is None else ~known)
    return _numbers(pyarrow, values, known)


@lru_cache(maxsize=16)  # names of all codes take some milliseconds
def _dictionary(texts: tuple[str, ...]) -> Any:
    pyarrow = required("pyarrow")
    return pyarrow.array([as_utf8(text) for text in texts], pyarrow.string())


def as_utf8(text: str) -> str:
    """Return a text that can be written as UTF-8: half a surrogate pair, which a damaged name may hold, as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _narrowed(values: Texts) -> NDArray[Any]:
    """Return the codes of texts in a type that Arrow takes for indices."""
    code = values.code
    return code if code.dtype.kind == "u" else code.astype(np.uint32)


def _numbers(pyarrow: Any, values: NDArray[Any], known: NDArray[np.bool_] | None) -> Any:
    values = np.ascontiguousarray(values)
    nulls = 0 if known is None else len(known) - int(np.count_nonzero(known))
    bits = pyarrow.py_buffer(np.packbits(known, bitorder="little")) if known is not None and nulls else None
    kind = pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, len(values), [bits, pyarrow.py_buffer(values)], nulls)
