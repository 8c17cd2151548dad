"""Every command of the README runs as written, one after the other, in an empty folder; so does its Python example."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import satview

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
WINDOWS = {  # what these do is tested in tests/gui
    "satview boot.kev",
    "satview boot.kev --range 1.2s..1.5s --select 4711",
    "satview 'boot.kev#t=1.2s..1.5s&sel=4711'",
    "satview boot.kev --session drivers",
    "satview boot.kev --lanes calls,timers --labels state,priority,partner",
    "satview --follow boot.kev",
    "satview boot.kev --compare changed.kev",
}
FOUND_SOMETHING = 3


def block(begin):
    """Return the lines of the block that begins so."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.search(rf"^```[a-z]*\n({begin}.*?)^```", text, re.MULTILINE | re.DOTALL)[1].splitlines()


def run(line, folder):
    """Return the exit code of a command."""
    words = shlex.split(line)
    if words[0] == "python" or "--screenshot" in words:
        start = [sys.executable, *(words[1:] if words[0] == "python" else ("-m", *words))]
        return subprocess.run(start, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False).returncode
    assert words[0] == "satview"
    return satview(*words[1:], cwd=folder).returncode


@pytest.mark.thorough
def test_commands_and_example(tmp_path):
    lines = [re.sub(r"\s+#.*", "", line) for line in block("satview tracelogger")]
    assert len(lines) >= 20
    assert set(lines) >= WINDOWS
    failed = {line: code for line in lines if line not in WINDOWS and (code := run(line, tmp_path))}
    assert failed in ({}, {"satview check boot.kev": FOUND_SOMETHING})
    made = {"boot.kev", "out.png", "listing.txt", "small.kev", "events.parquet", "out.kev"}
    assert made <= {file.name for file in tmp_path.iterdir()}
    code = "\n".join(block("import satview"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
