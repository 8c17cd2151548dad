"""Tables of named columns that convert to numpy, Arrow, pandas and Polars; texts are stored dictionary-encoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.plugins import required
from satview.base.safe_text import html_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


Rows = slice | NDArray[np.int64]
_MOST_CACHED: Final = 1 << 16  # texts in a dictionary whose Arrow array is cached


@dataclass(frozen=True, slots=True)
class Texts:
    """A dictionary-encoded column of texts.

    Attributes:
        code: (n,), unsigned integers: index of each row's text in `texts`.
        texts: The texts that codes refer to.
    """

    code: NDArray[np.unsignedinteger[Any]]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return a column whose codes are in the alphabetical order of the texts, so that sorting by code works."""
        names = sorted(set(texts), key=lambda text: (text.casefold(), text))
        number = {name: code for code, name in enumerate(names)}
        return cls(np.array([number[text] for text in texts], np.uint32), tuple(names))

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, rows: Rows) -> Texts:
        return Texts(self.code[rows], self.texts)

    def numpy(self) -> NDArray[np.object_]:
        """Return the text of every row, object (n,); rows with equal codes share one object."""
        names = np.empty(max(len(self.texts), 1), np.object_)
        names[: len(self.texts)] = self.texts
        return np.asarray(names[self.code], np.object_)


@dataclass(frozen=True, slots=True)
class Several:
    """A column in which each row has any number of values, such as the threads of a verdict; for short tables.

    Attributes:
        rows: The values of each row: numbers or texts, depending on the kind of the column.
    """

    rows: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of values in each row, int64 (n,)."""
        return np.fromiter(map(len, self.rows), np.int64, len(self.rows))


@dataclass(frozen=True, slots=True)
class Partial:
    """A column in which rows may lack a value, where no value, such as -1, can stand for absence.

    Attributes:
        values: (n,); 0 or the empty text where a row has no value.
        known: bool (n,), whether each row has a value.
    """

    values: NDArray[Any] | Texts
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, rows: Rows) -> Partial:
        return Partial(self.values[rows], self.known[rows])

    def numpy(self) -> NDArray[Any]:
        """Return the value of every row, (n,)."""
        return self.values.numpy() if isinstance(self.values, Texts) else self.values


Values = NDArray[Any] | Texts | Partial
ColumnsByName = dict[str, Values]  # the columns of a table by name, except those in nanoseconds


class Frames(ABC):
    """Base class of tables: named columns of equal length."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""

    @abstractmethod
    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column as a numpy array, shape (n,)."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """Return the columns as an Arrow table.

        Raises:
            UsageError: The package pyarrow is not installed.
        """

    def to_arrow(self) -> pa.Table:
        """Return the same as `arrow()`."""
        return self.arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the columns by the Arrow PyCapsule interface, for `pl.DataFrame(x)`, `pa.table(x)`, DuckDB, ..."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Return all columns as numpy arrays (rows,) by name, texts with dtype object; needs no other package."""
        return {name: self[name] for name in self.columns}

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns as a pandas data frame.

        Raises:
            UsageError: pandas or pyarrow is not installed.
        """
        required("pandas")
        table = self.arrow()
        for position, name in enumerate(table.column_names):
            table = table.set_column(position, name, _for_pandas(table.column(name)))
        return table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the columns as a Polars data frame.

        Raises:
            UsageError: polars or pyarrow is not installed.
        """
        return required("polars").from_arrow(self.arrow())


def html_rows(heads: Iterable[str], rows: Iterable[Iterable[object]], caption: str, tips: Sequence[str] = ()) -> str:
    """Return rows as an HTML table, for notebooks, with HTML of a line below it and tool tips of the columns."""
    titles = [f' title="{html_text(tip)}"' for tip in tips]
    head = "".join(f"<th{titles[column] if titles else ''}>{html_text(name)}</th>" for column, name in enumerate(heads))
    body = "".join("<tr>" + "".join(f"<td>{html_text(str(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{caption}</p>"


def _for_pandas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as pandas needs it: with distinct texts and signed indices; other columns unchanged.

    Arrow itself allows equal texts and unsigned indices, but up to pyarrow 21 does not convert them for pandas.
    """
    pyarrow = required("pyarrow")
    if not pyarrow.types.is_dictionary(column.type) or not column.num_chunks:
        return column
    combined = column.combine_chunks()
    texts = combined.dictionary.to_pylist()
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if len(number) == len(texts) and pyarrow.types.is_signed_integer(combined.indices.type):
        return column
    numbers = pyarrow.array([number[text] for text in texts], pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(numbers.take(combined.indices), pyarrow.array(list(number)))


def arrow_array(values: Values, *, is_nullable: bool, known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a column as an Arrow array.

    Args:
        values: The column, (n,).
        is_nullable: Whether -1 and the empty text become null.
        known: bool (n,), whether each value is not null; None = decided by `is_nullable`.
    """
    pyarrow = required("pyarrow")
    if isinstance(values, Partial):
        return arrow_array(values.values, is_nullable=True, known=values.known)
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


def _dictionary(texts: tuple[str, ...]) -> Any:
    return _strings(texts) if len(texts) > _MOST_CACHED else _cached_strings(texts)


@lru_cache(maxsize=16)  # converting the names of all codes takes some milliseconds
def _cached_strings(texts: tuple[str, ...]) -> Any:
    return _strings(texts)


def _strings(texts: tuple[str, ...]) -> Any:
    pyarrow = required("pyarrow")
    return pyarrow.array(texts if all(map(str.isascii, texts)) else list(map(as_utf8, texts)), pyarrow.string())


def as_utf8(text: str) -> str:
    """Return a text that can be encoded as UTF-8: lone surrogates, which a damaged name may contain, are made `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _narrowed(values: Texts) -> NDArray[Any]:
    """Return the codes of a text column as unsigned integers, (n,), which become dictionary indices in Arrow."""
    code = values.code
    return code if code.dtype.kind == "u" else code.astype(np.uint32)


def _numbers(pyarrow: Any, values: NDArray[Any], known: NDArray[np.bool_] | None) -> Any:
    values = np.ascontiguousarray(values)
    nulls = 0 if known is None else len(known) - int(np.count_nonzero(known))
    bits = pyarrow.py_buffer(np.packbits(known, bitorder="little")) if known is not None and nulls else None
    kind = pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, len(values), [bits, pyarrow.py_buffer(values)], nulls)
