from __future__ import annotations

import tomllib
from pathlib import Path

from satview.base import named_files

ROOT = Path(__file__).resolve().parents[2]


def test_the_sample_of_a_checkout():
    assert named_files.sample_trace() == ROOT / "sample_traces" / "dense-4cpu.kev"
    assert named_files.sample_trace().is_file()


def test_the_sample_of_an_installed_satview(tmp_path, monkeypatch):
    """Where the wheel puts it is where satview looks for it."""
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    position = built["force-include"]["sample_traces/dense-4cpu.kev"]
    target = tmp_path / position
    target.parent.mkdir(parents=True)
    target.write_bytes(b"sample")
    monkeypatch.setattr(named_files, "_PACKAGE", tmp_path / "satview")
    named_files._root.cache_clear()
    try:
        assert named_files.sample_trace() == target
    finally:
        named_files._root.cache_clear()
