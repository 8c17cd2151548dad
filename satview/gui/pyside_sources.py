"""Keeps PySide6 from reading the source of every module that is imported behind it.

It looks for its own name there, to know where `from __feature__ import snake_case` may matter: a sixth of the time that
imports take until the first trace shows. Modules of satview, of numpy and of Python itself never have that line.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

import PySide6  # noqa: F401  -- brings the module that is looked for

_NAMES: Final = sys.stdlib_module_names | {"satview", "numpy"}


def skip_sources() -> None:
    """Answer by the name of a module instead of reading its source; does nothing in an unexpected PySide6."""
    feature: Any = sys.modules.get("shibokensupport.feature")
    looks = getattr(feature, "_mod_uses_pyside", None)
    if looks is None or hasattr(looks, "original"):
        return

    def uses_pyside(module: ModuleType) -> bool:
        # True is the careful answer: the standard names of Qt come back where another package has switched.
        return module.__name__.partition(".")[0] in _NAMES or bool(looks(module))

    uses_pyside.original = looks  # type: ignore[attr-defined]
    feature._mod_uses_pyside = uses_pyside
