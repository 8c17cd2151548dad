"""Which files are put into the cache of decoded traces, and where it is. Imports no numpy: it is needed at start-up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

SWITCH: Final = "SATVIEW_CACHE"  # environment: `off`, or another folder
CACHED_BYTES = 32 << 20  # smaller files are decoded as fast as a cache is looked for


def cache_folder() -> Path | None:
    """Return where this user's cache is, None if the environment switches it off."""
    named = os.environ.get(SWITCH, "")
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named)
    from platformdirs import user_cache_path  # on first use, as for the settings

    return user_cache_path("satview", appauthor=False) / "traces"


def is_large(path: Path) -> bool:
    """Return whether a file is so large that it is put into the cache."""
    try:
        return path.is_file() and path.stat().st_size >= CACHED_BYTES
    except OSError:
        return False
