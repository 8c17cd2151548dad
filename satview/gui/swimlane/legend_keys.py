"""What the legend explains that is no lane value: the keys of these entries, all below 0."""

from __future__ import annotations

from typing import Final

EVENTS: Final = -1  # ticks above the bars
RAN: Final = -2  # strips at the foot of bars
SHARES: Final = -3  # stacks where intervals are too dense for bars
MARKED: Final = -5  # strips at the foot of what a filter marks
LOST: Final = -4  # hatched from top to bottom: events are missing
