"""The compiled core: the passes that decide how long loading, links, drawing and printing take, in C.

Nothing works without it: where its library cannot be loaded, importing what needs it raises `CoreError`.
"""

from __future__ import annotations


class CoreError(ImportError):
    """The library of the core cannot be loaded; the text names the file and says what to do."""
