"""The compiled core: C functions for the most expensive passes of loading, links, drawing and printing.

The core is required: modules that use it raise `CoreError` on import if its library cannot be loaded.
"""

from __future__ import annotations


class CoreError(ImportError):
    """The compiled core cannot be loaded; the message has the file and the remedy."""
