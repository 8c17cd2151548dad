"""Units of time in nanoseconds: `kev.latency("tick", "done").p99 < 200 * us`."""

from __future__ import annotations

from typing import Final

ns: Final = 1
us: Final = 1_000
ms: Final = 1_000_000
s: Final = 1_000_000_000
