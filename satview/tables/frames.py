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
        return self.arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return them as a data frame of Polars.

        Raises:
            UsageError: A package is not installed.
        """
        return required("polars").from_arrow(self.arrow())
