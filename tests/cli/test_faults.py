"""Memory that cannot be had and reads that fail, at the n-th call, in every command that reads a trace.

What holds for every n: the command does what it does without a fault, or says one sentence with exit code 2 and leaves
no file. `--complete` tries every n.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.commands import ROOT
from tests.helpers.extent import usually
from tests.helpers.faults import Faults, Outcome, faults_in

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs LD_PRELOAD and a compiler"),
]
TRACE = "vendor-all_classes.kev"
COMMANDS = {
    "info": ["info", TRACE],
    "stats": ["stats", TRACE],
    "check": ["check", TRACE],
    "print": ["traceprinter", "-f", TRACE],
    "print to a file": ["traceprinter", "-f", TRACE, "-o", "out.txt"],
    "export": ["export", TRACE, "-o", "out.csv", "--format", "list"],
    "filter": ["filter", TRACE, "-o", "out.kev"],
    "open": ["open", TRACE],  # on the thread of a window
}
_MOST = usually(6, complete=10_000)
_MOST_TRIES = 6


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    folder = tmp_path_factory.mktemp("faults")
    shutil.copy(ROOT / "sample_traces" / "dense-4cpu.kev", folder / TRACE)
    with faults_in(folder) as running:
        yield running


def _run(faults: Faults, command: str, kind: str, number: int, lasts: bool = False) -> Outcome:
    for path in faults.folder.iterdir():
        if path.name != TRACE:
            path.unlink()
    return faults.run(COMMANDS[command], kind, faults.folder / TRACE, number, lasts)


def _said(outcome: Outcome, sound: Outcome) -> str:
    """Return what a command that failed says; empty if it did what it does without a fault."""
    if (outcome.code, outcome.out, outcome.error, outcome.files) == (sound.code, sound.out, sound.error, sound.files):
        return ""
    assert outcome.code == 2, (outcome.code, outcome.error)
    assert outcome.error.startswith("satview"), outcome.error
    assert outcome.error.count("\n") == 1, outcome.error
    assert list(outcome.files) == [TRACE], "a part of a file is left"
    assert sound.out.startswith(outcome.out), "what was printed is not the beginning of what is printed without a fault"
    return outcome.error


def _numbers(calls: int) -> list[int]:
    """Return which calls fail: the first ones, the last one and some between."""
    return sorted({*range(1, min(calls, _MOST // 2) + 1), *range(1, calls + 1, max(1, 2 * calls // _MOST)), calls})


@pytest.mark.parametrize("command", COMMANDS)
def test_the_nth_allocation_fails(faults, command):
    sound = _run(faults, command, "memory", 0)
    assert sound.code in (0, 3)
    assert sound.calls > 10
    said = [_said(_run(faults, command, "memory", number), sound) for number in _numbers(sound.calls)]
    assert any(said)
    assert all("there is not enough memory" in text or "allocate" in text for text in said if text), said
    assert _said(_run(faults, command, "memory", 1, lasts=True), sound)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_nth_read_fails(faults, command):
    sound = _run(faults, command, "error", 0)
    assert sound.calls > 5
    said = [_said(_run(faults, command, "error", number), sound) for number in _numbers(sound.calls)]
    assert any(said)
    # It names the file that cannot be read, not the one that is written meanwhile.
    assert all(TRACE in text and "Input/output error" in text for text in said if text), said


@pytest.mark.parametrize("command", COMMANDS)
def test_the_nth_read_gives_half_of_what_was_requested(faults, command):
    """A file system may do so, and nothing is lost by it."""
    sound = _run(faults, command, "short", 0)
    for number in _numbers(sound.calls):
        assert _said(_run(faults, command, "short", number), sound) == "", number
    assert _said(_run(faults, command, "short", 1, lasts=True), sound) == ""


@pytest.mark.parametrize("command", ["info", "check", "print", "export"])
def test_a_process_that_may_have_little_memory(faults, command):
    """The limit of the system: for stacks of threads and libraries too, not only for columns.

    Where the last 128 KB are used, numpy 2.4 may write to a buffer that it did not get (an array indexed by numbers of
    another type than intp, a sum of two types), and Python 3.11 may wait for a thread that could not begin. That is
    theirs, and comes in up to 3 of 20 runs at limits that two threads reach at once. So such an end counts only if it
    comes again and again with 256 KB more each time.
    """
    sound = _run(faults, command, "limit", 1 << 30)

    def limited(limit_bytes: int) -> Outcome:
        for more in range(_MOST_TRIES):
            outcome = _run(faults, command, "limit", limit_bytes + more * (256 << 10))
            if outcome.code not in (-signal.SIGSEGV, -signal.SIGALRM):
                break
        return outcome

    said = [_said(limited(1 << power), sound) for power in range(19, 28)]
    if command != "info":  # which may need no more than the process has left
        assert any("there is not enough memory" in text for text in said[:2])
    assert said[-1] == ""


def test_without_a_fault_nothing_is_counted_as_one(faults: Faults, tmp_path: Path):
    """What injects is looked at: reads of another file go on, and a fault behind the last call changes nothing."""
    other = tmp_path / "other"
    other.write_bytes(b"x")
    outcome = faults.run(COMMANDS["info"], "error", other, 1)
    assert (outcome.code, outcome.calls) == (0, 0)
    sound = _run(faults, "info", "error", 0)
    assert _said(_run(faults, "info", "error", sound.calls + 1), sound) == ""
