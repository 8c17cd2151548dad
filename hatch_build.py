"""Builds the compiled core into the wheel, where there is a C compiler; without one the wheel is pure Python."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """One wheel per platform serves every Python: the library is called through ctypes and knows none of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the files are collected."""
        del version
        tool = Path(self.root) / "tools" / "build_core.py"
        spec = importlib.util.spec_from_file_location("build_core", tool)
        assert spec is not None
        assert spec.loader is not None
        build_core = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build_core)
        library = build_core.FOLDER / f"_passes{build_core.SUFFIX}"
        if build_core.build(library):
            build_data["artifacts"].append(str(library.relative_to(self.root)))
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
