"""The compiled core on and off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from satview.core import library


@contextmanager
def without_core() -> Iterator[None]:
    """Let the numpy code run, as where there is no compiler."""
    with mock.patch.object(library, "is_available", return_value=False):
        yield
