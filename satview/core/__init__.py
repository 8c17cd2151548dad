"""The compiled core in C: the passes that take most of the time of loading, links, drawing and printing.

Nothing works without it: if its library cannot be loaded, importing a module that needs it raises `CoreError`.
"""

from __future__ import annotations


class CoreError(ImportError):
    """The library of the core cannot be loaded; the text names the file and the remedy."""
