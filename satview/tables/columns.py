"""Columns before they have a library: numpy arrays, and texts as numbers of a few different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts of which few are different.

    Attributes:
        code: (n,), unsigned integers: which of the texts.
        texts: The texts.
    """

    code: NDArray[np.unsignedinteger[Any]]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return a column of short tables: every row with its own text."""
        return cls(np.arange(len(texts), dtype=np.uint32), tuple(texts))

    def __len__(self) -> int:
        return len(self.code)

    def numpy(self) -> NDArray[np.object_]:
        """Return the texts one by one, object (n,); equal ones are one object."""
        names = np.empty(max(len(self.texts), 1), np.object_)
        names[: len(self.texts)] = self.texts
        return np.asarray(names[self.code], np.object_)


Values = NDArray[Any] | Texts
Made = dict[str, Values]  # the columns of a table by name, but those in nanoseconds
