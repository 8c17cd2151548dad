"""Builds the compiled core into the wheel; $SATVIEW_PLATFORM names another platform than this machine, by its tag."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """One wheel per platform serves every Python: the library is called through ctypes and knows none of them."""

    def dependencies(self) -> list[str]:
        """Return the compiler, where the machine has none."""
        core = self._build_core()
        return [] if core.compiler(self._platform()) else [core.ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the files are collected: beside the sources for an editable install."""
        core, tag = self._build_core(), self._platform()
        if tag is not None and tag not in core.PLATFORMS:
            sys.exit(f"SATVIEW_PLATFORM={tag} is none of {', '.join(core.PLATFORMS)}")
        name = core.library_name(tag)
        self._folder = None if version == "editable" else Path(tempfile.mkdtemp())
        library = (self._folder or core.FOLDER) / name
        try:
            core.build(library, tag=tag)
        except core.BuildError as error:
            sys.exit(str(error))
        if self._folder is not None:
            build_data["force_include"][str(library)] = f"satview/core/{name}"
        build_data["pure_python"] = False
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag or here}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _platform(self) -> str | None:
        return os.environ.get("SATVIEW_PLATFORM") or None

    def _build_core(self) -> Any:
        tool = Path(self.root) / "tools" / "build_core.py"
        spec = importlib.util.spec_from_file_location("build_core", tool)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
