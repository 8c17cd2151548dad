"""Signals that arrive where Python notices them late, or where their exception is swallowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from satview.base.process import standard_input
from tests.helpers.extent import fewer
from tests.helpers.ignored_signals import skip_if_ignored

# The main thread does not get the signal, another one does: as if it had arrived just before the main thread's read(2).
LATE = """
import os, signal, sys, threading, time
from satview.base.process import Ended, signals_raise
from satview.base.process import standard_input
ends = (signal.SIGTERM, signal.SIGHUP)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, ends)
try:
    with signals_raise():
        print("ready", flush=True)
        {read}
except Ended as end:
    os._exit(end.code)
"""
SWALLOWED = """
import sys, time
import numpy as np
from satview.base.process import Ended, signals_raise
def is_ready():
    print("ready", flush=True)
    time.sleep(5)
class Finalised:
    def __del__(self):
        is_ready()
class LooksUp(type):  # as the type of enumerations does
    def __getattr__(cls, name):
        is_ready()
        raise AttributeError(name)
class Number(int, metaclass=LooksUp):
    pass
try:
    with signals_raise():
        {work}
        time.sleep(10)
except Ended as end:
    sys.exit(end.code)
except KeyboardInterrupt:
    sys.exit(130)
"""


def ended(code: str, number: int) -> int:
    """Return the exit code of a program that got a signal once it said that it is ready."""
    job = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"ready\n"
    time.sleep(0.3)  # it reads now
    job.send_signal(number)
    try:
        return job.wait(20)
    finally:
        job.kill()
        job.communicate()


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_read_that_it_does_not_interrupt(number):
    skip_if_ignored(number)
    assert ended(LATE.format(read="standard_input().read(1)"), number) == 128 + number


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("work", fewer(["Finalised()", "np.zeros(2) == Number(1)"], 1))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_whose_exception_is_swallowed_comes_again(work, number):
    skip_if_ignored(number)
    start_s = time.monotonic()
    assert ended(SWALLOWED.format(work=work), number) == 128 + number
    assert time.monotonic() - start_s < 8


CLEANS_UP = """
import sys, time
from satview.base.process import signals_raise
try:
    with signals_raise():
        try:
            print("ready", flush=True)
            time.sleep(10)
        finally:
            for _ in range(50):
                time.sleep(0.01)
            sys.stdout.write("clean")
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_what_cleans_up_after_a_signal_is_not_interrupted_by_its_repetition():
    skip_if_ignored(signal.SIGINT)
    job = subprocess.Popen([sys.executable, "-c", CLEANS_UP], stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"ready\n"
    job.send_signal(signal.SIGINT)
    assert job.communicate(timeout=20)[0] == b"clean"
    assert job.returncode == 130


def test_standard_input_gives_bytes_as_they_come_and_then_the_end(monkeypatch):
    there, here = os.pipe()
    with os.fdopen(there) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        file = standard_input()
        os.write(here, b"abc")
        assert file.read(3) == b"abc"
        os.write(here, b"de")
        os.close(here)
        assert file.read(10) == b"de"
