"""Plug-ins for tests: the samples as installed packages, and packages that fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from satview.base import plugins

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "examples" / "plugins"


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Install the samples with pip into a folder of their own."""
    folder = tmp_path_factory.mktemp("plugins")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *options, *map(str, sorted(SAMPLES.iterdir()))], check=True, capture_output=True)
    return folder


@pytest.fixture
def with_plugins(monkeypatch):
    """Return a function that makes a folder one of those from which Python imports."""

    def use(folder):
        monkeypatch.syspath_prepend(str(folder))
        plugins.forget()

    before = set(sys.modules)
    yield use
    plugins.forget()
    for name in set(sys.modules) - before:
        if name.startswith(("sample_", "bad_")):
            del sys.modules[name]


@pytest.fixture
def samples(installed, with_plugins):
    with_plugins(installed)


@pytest.fixture
def package(tmp_path, with_plugins):
    """Return a function that installs a module with one entry point, as pip leaves it behind."""

    def make(group, name, code, module="bad_plugin"):
        folder = tmp_path / "site"
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:thing\n")
        (folder / f"{module}.py").write_text(code)
        with_plugins(folder)

    return make
