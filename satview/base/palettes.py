"""Names of the sets of colours for states; the colours themselves are in `gui.colours`."""

from __future__ import annotations

from typing import Final

STANDARD: Final = "standard"
PRINT: Final = "print"  # greys, always on white
PALETTES: Final = (STANDARD, "colour-blind", "contrast", PRINT)
