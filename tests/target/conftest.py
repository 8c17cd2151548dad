"""One board for each test, with a real sshd."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.board import SSHD, Board


@pytest.fixture
def board(tmp_path):
    if not (Path(SSHD).exists() and Path("/proc/self/stat").exists() and shutil.which("ssh")):
        pytest.skip("no sshd or no ssh here")
    there = Board(tmp_path / "board")
    yield there
    there.close()


@pytest.fixture
def quick_clock(monkeypatch):
    """Let captures look at the board's clock once, which leaves an error of half a second."""
    monkeypatch.setattr("satview.target.line._CLOCK_S", 0.01)
