"""Where the trace comes from, and what the project calls its events."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def kev_file(tmp_path_factory):
    """Capture half a second of the simulated kernel; yours returns the file that tracelogger wrote on the target."""
    path = tmp_path_factory.mktemp("trace") / "periodic.kev"
    command = [sys.executable, "-m", "satview", "tracelogger", "--workload", "periodic", "-w", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def kev_names():
    """The programs of the workload insert user events: 1 when a cycle begins, 2 when it is done."""
    return {
        "tick": 'class == USREVENT and number == 1 and name == "fast"',
        "done": 'class == USREVENT and number == 2 and name == "fast"',
    }
