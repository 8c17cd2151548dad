"""`satview report`: one page that needs no other file and carries out nothing of the trace."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from satview import report as page
from satview.__main__ import main
from satview.base.errors import WriteError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop, scene

PNG = b"\x89PNG\r\n\x1a\n picture"
ALONE = {"meta", "img", "br"}


class Page(HTMLParser):
    """Checks that every tag is closed, and keeps texts, tags and attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def inversion(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "inversion.kev"
    run(Capture("inversion", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return path


def report(path, tmp_path, *options):
    out = tmp_path / "out.html"
    assert main(["report", str(path), "-o", str(out), *options]) in (0, 1)
    return Page(out.read_text(encoding="utf-8"))


def test_what_is_in_it(inversion, tmp_path, monkeypatch, capsys):
    requested = []

    def picture(trace, path, options, size):
        requested.append((Path(trace).name, options, size))
        path.write_bytes(PNG)
        return ""

    monkeypatch.setattr(page, "screenshot", picture)
    found = report(inversion, tmp_path)
    assert capsys.readouterr().out.endswith("out.html: 1 verdict\n")
    for title in ("Trace", "Verdicts", "Load of the CPUs", "Threads", "How long things take", "Losses and problems"):
        assert title in found.texts
    assert "error: priority-inversion, 2 times" in found.texts
    assert re.search(r"high 1 \(high\).* waits 3[34]\.\d\d ms .* for mutex", found.text)
    assert requested[0][1] == []
    assert requested[1][1][0] == "--range"
    command = next(text for text in found.texts if text.startswith("satview /"))
    assert " ".join(requested[1][1]) in command
    sources = [value for name, value in found.attributes if name == "src"]
    assert [base64.b64decode(source.partition("base64,")[2]) for source in sources] == [PNG, PNG]
    assert found.tags.count("svg") >= 3


def test_it_needs_no_other_file_and_runs_nothing(inversion, tmp_path):
    found = report(inversion, tmp_path, "--pictures", "0")
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert "img" not in found.tags
    assert [name for name, _ in found.attributes if name in ("href", "src") or name.startswith("on")] == []
    assert any("default-src 'none'" in (value or "") for _, value in found.attributes)


def test_numbers_are_those_of_the_commands(inversion, tmp_path, capsys):
    found = report(inversion, tmp_path, "--pictures", "0")
    assert main(["stats", str(inversion), "--by", "thread", "--format", "csv"]) == 0
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines() if line.startswith(("thread", "middle"))]
    row = dict(zip(lines[0], lines[1], strict=True))
    cpu_ms = int(row["cpu_ns"]) / 1e6
    at = found.texts.index("middle 1 (middle)", found.texts.index("Threads"))
    assert found.texts[at + 1] == f"{cpu_ms:.2f} ms"
    assert found.texts[at + 3] == row["runs"]


def test_the_worst_round_is_split_and_compared(tmp_path):
    found = report(rounds_of_a_loop().write(tmp_path / "looping.kev"), tmp_path, "--pictures", "0")
    begin = found.texts.index("What is late")
    late = found.texts[begin : found.texts.index("What the trace cannot show", begin)]
    assert found.texts[begin:].count("Responses of control 1") == 1
    assert "the line is its deadline of 10.00 \N{MICRO SIGN}s" in " ".join(late)
    activity = late.index("control 1")
    assert late[activity + 1 : activity + 3] == ["sleep", "40"]
    says = next(text for text in late if text.startswith("control 1 took 5.100 \N{MICRO SIGN}s from 0.000 110 000 s"))
    assert says.endswith("4.100 \N{MICRO SIGN}s ready while hog 1 ran, 1.000 \N{MICRO SIGN}s own work.")
    share = late.index("hog 1")
    assert late[share : share + 3] == ["hog 1", "4.100 \N{MICRO SIGN}s", "80.4 %"]
    assert late[late.index("hog 1", share + 1) + 1] == "3.000 \N{MICRO SIGN}s", "three of the slowest four: 4,000 more"


def test_losses_have_their_places(tmp_path):
    found = report(scene(tmp_path), tmp_path, "--pictures", "0")
    assert "Events are missing in 1 range, 4.000 \N{MICRO SIGN}s in all." in found.text
    assert "0.000 012 000 s" in found.texts
    assert "error: data-loss" in found.text or "warning: data-loss" in found.text or "info: data-loss" in found.text
    assert ("class", "lost") in found.attributes


def test_names_are_text(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 7, "<img src=x>").state("RUNNING", 10, 7, 1)
    builder.state("READY", 500, 7, 1).state("RUNNING", 900, 7, 1)
    found = report(builder.write(tmp_path / "a&b.kev"), tmp_path, "--pictures", "0")
    assert "img" not in found.tags
    assert "<img src=x> 1" in found.texts


def test_a_trace_without_events(tmp_path):
    found = report(TraceBuilder().write(tmp_path / "empty.kev"), tmp_path, "--pictures", "0")
    assert "No events are missing." in found.texts
    assert "Verdicts" not in found.texts


def test_a_picture_that_cannot_be_taken_is_told(inversion, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "screenshot", lambda *_: "no Qt <here>")
    found = report(inversion, tmp_path, "--pictures", "1")
    assert found.texts.count("No picture: no Qt <here>") == 2


def test_a_file_that_cannot_be_written_is_refused_before_the_long_part(inversion, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page, "find_verdicts", lambda *_, **__: pytest.fail("it began to work"))
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "same.html").symlink_to(inversion)
    for name in ("folder.html", "same.html", "none/a.html", "r.kev"):
        assert main(["report", str(inversion), "-o", str(tmp_path / name)]) == 2
        assert Path(name).name in capsys.readouterr().err
    with pytest.raises(WriteError, match="this is the file that is being read"):
        page.write_report(open_trace(inversion), inversion)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["in.kev", "-o", "a.html", "--pictures", "-1"], "must be at least 0"),
        (["-", "-o", "a.html"], "pictures cannot be drawn from standard input"),
        (["in.kev", "-o", "in.kev"], "in.kev"),
        (["none.kev", "-o", "a.html"], "none.kev"),
    ],
)
def test_bad_use(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page, "screenshot", lambda *_: "not taken")
    before = TraceBuilder().time_event(0).write(tmp_path / "in.kev").read_bytes()
    assert main(["report", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert (tmp_path / "in.kev").read_bytes() == before
