"""A pytest plugin: Qt cannot be imported, as on a machine that does not have it."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

NAMES = ("PySide6", "shiboken6", "pyqtgraph")


class _NoQt(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in NAMES:
            raise ModuleNotFoundError(f"No module named {fullname!r} (hidden by this test run)", name=fullname)


assert not any(name in sys.modules for name in NAMES)
sys.meta_path.insert(0, _NoQt())
