"""Names of bits and values inside payloads."""

from __future__ import annotations

from functools import cache

from satview.events import rows


@cache
def flag_names(table: str) -> dict[int, str]:
    """Return a table of bits or values of `flags.toml`: `power`, `runstate`, `able`, `path_attach`, `timer`, ..."""
    return rows.numbers("flags", table)
