"""How processes end; that the commands do so is in tests/cli and tests/gui."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("is_shown", [False, True])
def test_the_process_ends_with_its_code_and_what_was_registered(is_shown):
    code = f"""
import atexit, sys
if {is_shown}:
    sys.modules["PySide6.QtWidgets"] = None  # as where windows were shown
atexit.register(lambda: print("registered"))
from satview.base.process import end_process
print("said", end="; ")
end_process(3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said; registered\n", "")
