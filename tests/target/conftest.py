"""One board for each test, with a real sshd; and one simulated target that stays for the tests of a module."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from satview.capture.sim.target import target
from satview.events.spec import Release
from satview.target import shell
from satview.target.simulated import SimulatedTarget
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


class Resident:
    """A simulated target that runs in a thread of the tests.

    Attributes:
        name: Of the target.
        target: The target itself.
        said: What came on its console.
    """

    def __init__(self, name, workloads=(), release=Release.QNX_7, **kind):
        self.name, self.said = name, []
        self.target = SimulatedTarget(name, target(release, **kind), 1, self.said.append)
        for workload in workloads:
            self.target.start_workload(workload)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self.target.serve, args=(self._is_over.is_set,))
        self._thread.start()

    def answer(self, *words):
        """Return exit code, standard output and standard error of a program of its shell."""
        return shell.answer(self.target.folder, list(words))

    def processes(self):
        """Return the names of the processes that live, without folders, the kernel left out."""
        _, text, _ = self.answer("pidin", "-F", "%n")
        return [line.rpartition("/")[2] for line in text.splitlines()[2:]]

    def waits_until(self, holds, seconds=40.0):
        """Return whether something holds, at the latest after so long."""
        end_s = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end_s:
                return False
            time.sleep(0.02)
        return True

    def close(self):
        self._is_over.set()
        self._thread.join()
        self.target.close()


@pytest.fixture(scope="module")
def targets_folder():
    """Let simulated targets be in a folder of the tests, whose path is short enough for a socket."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="sv") as folder:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(scope="module")
def resident(targets_folder):
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("no Unix sockets here")
    there = Resident("target", ["client-server"], cpus=2)
    yield there
    there.close()
