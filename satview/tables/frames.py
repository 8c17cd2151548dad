"""What everything in columns can be handed on as: numpy, and data frames made of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from satview.tables.extras import required

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Frames(ABC):
    """Columns of one length, by name."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""

    @abstractmethod
    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column in numpy, shape (n,)."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """Return them as a table of Arrow.

        Raises:
            UsageError: The package pyarrow is not installed.
        """

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Return all columns in numpy by name, each as `[name]` has it; needs no other package.

        Returns:
            Arrays of (rows,); texts are of type object.
        """
        return {name: self[name] for name in self.columns}

    def to_pandas(self) -> pd.DataFrame:
        """Return them as a data frame of pandas.

        Raises:
            UsageError: A package is not installed.
        """
        required("pandas")
        table = self.arrow()
        for at, name in enumerate(table.column_names):
            table = table.set_column(at, name, _for_pandas(table.column(name)))
        return table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return them as a data frame of Polars.

        Raises:
            UsageError: A package is not installed.
        """
        return required("polars").from_arrow(self.arrow())


def _for_pandas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as pandas takes it: no text with two numbers, and numbers of texts that have a sign.

    Arrow does without both; up to pyarrow 21 it does not convert unsigned numbers of texts to categories of pandas.
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
