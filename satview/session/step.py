"""The two ways to go from where one is."""

from __future__ import annotations

from typing import Final

BACK: Final = -1  # to earlier times
ON: Final = 1  # to later times
