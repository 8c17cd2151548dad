from __future__ import annotations

import os
import sys

import pytest
from PySide6.QtGui import QImage

from tests.gui.hands import run_program
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

_START = "from satview.__main__ import entry; entry()"


def satview(*arguments):
    """Run the command where there is no display."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {key: value for key, value in os.environ.items() if key not in displays}
    return run_program(_START, *arguments, environment=environment)


@pytest.mark.thorough
def test_picture_without_a_display(tmp_path):
    trace = (
        TraceBuilder().time_event(0).state("RUNNING", 10, 2, 1).state("READY", 2_000, 2, 1).write(tmp_path / "fine.kev")
    )
    done = satview(
        trace, "--screenshot", tmp_path / "a.png", "--size", "900x600", "--range", "0us..1us", "--select", "2"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (QImage(str(tmp_path / "a.png")).width(), QImage(str(tmp_path / "a.png")).height()) == (900, 600)


@pytest.mark.thorough
def test_dark_at_twice_the_pixels_and_lost_data(tmp_path):
    done = satview(
        scene(tmp_path), "--screenshot", tmp_path / "a.png", "--size", "800x500", "--scale", "2", "--theme", "dark"
    )
    assert (done.returncode, done.stderr) == (1, "")  # buffers were lost
    image = QImage(str(tmp_path / "a.png"))
    assert image.width() == 1600
    assert image.pixelColor(1500, 90).lightness() < 80


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("more", "message"),
    fewer(
        [
            (("--session", "/x"), "no session"),
            (("--range", "5s..6s"), "outside the trace"),
            (("--size", "big"), "--size 'big': write WIDTHxHEIGHT, from 200x200 to 16000x16000"),
        ],
        1,
    ),
)
def test_bad_use_is_one_sentence(tmp_path, more, message):
    refused(satview(scene(tmp_path), "--screenshot", tmp_path / "a.png", *more), message)


def refused(done, message):
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.thorough
def test_file_that_is_no_trace(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear all,\n")
    refused(satview(tmp_path / "letter.txt", "--screenshot", tmp_path / "a.png"), "satview: letter.txt")


@pytest.mark.thorough
def test_names_that_do_not_fit_the_trace_are_said_as_by_commands(tmp_path):
    """A folder without a program of the trace is refused; a text with two names of a pid is used, with a note."""
    trace, out = scene(tmp_path), tmp_path / "a.png"
    (tmp_path / "programs").mkdir()
    done = satview(trace, "--screenshot", out, "--symbols", tmp_path / "programs")
    assert (done.returncode, out.exists()) == (2, False)
    assert "programs: no program of this trace is in it: none has the name of a process" in done.stderr
    (tmp_path / "board.txt").write_text("pid name\n9 bin/a\n9 bin/b\n")
    done = satview(trace, "--screenshot", out, "--pidin", tmp_path / "board.txt")
    assert (done.returncode, out.exists()) == (1, True)  # buffers were lost
    assert done.stderr == "satview: board.txt: pid 9 is bin/a and bin/b there; the first name counts\n"


def test_no_display_is_reported(tmp_path):
    if sys.platform in ("win32", "darwin"):
        pytest.skip("these systems always have a display")
    done = satview(scene(tmp_path))
    assert done.returncode == 2
    assert "no display" in done.stderr
