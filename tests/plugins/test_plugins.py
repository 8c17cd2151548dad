"""Plug-ins: one of each kind as an installed package, and what happens when one fails."""

from __future__ import annotations

import json
import tomllib
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.answers.statistics import statistics_keys, statistics_table, statistics_titles
from satview.base import plugins
from satview.base.plugins import PluginKind
from satview.opened import open_trace
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import PluggedLane, Timeline
from tests.helpers.extent import usually
from tests.helpers.kev import TraceBuilder
from tests.helpers.plugin_fixtures import SAMPLES

SWITCHES = "# context switches\n0,0,init,5,1\n100,0,shell,6,1\n250,0,init,5,1\n300,0,idle,1,1\n"


def built(folder):
    """`app` runs at 10, is READY from 1,000 to 1,500 ns; heartbeats at 2, 12 and 52 ms."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
    builder.state("READY", 1_000, 7, 1).state("RUNNING", 1_500, 7, 1)
    for ms in (2, 12, 52):
        builder.event(6 << 10 | 1, ms * 1_000_000, (1, 2))
    return builder.write(folder / "built.kev")


@pytest.fixture
def path(tmp_path):
    return built(tmp_path)


@pytest.fixture
def samples(request):
    """The samples as pip leaves them behind; pip itself, which takes two seconds, installs them in the thorough run."""
    if usually(False, complete=True, thorough=True):
        request.getfixturevalue("samples")
        return
    package = request.getfixturevalue("package")
    for sample in SAMPLES.iterdir():
        [(group, points)] = tomllib.loads((sample / "pyproject.toml").read_text())["project"]["entry-points"].items()
        [(name, (module, _, function))] = [(name, place.partition(":")) for name, place in points.items()]
        code = (sample / f"{module}.py").read_text()
        package(group, name, f"{code}\nthing = {function}\n", module)


@pytest.mark.thorough
def test_samples_are_of_each_kind(samples, capsys):
    assert sorted(folder.name for folder in SAMPLES.iterdir()) == ["analysis", "export", "lane", "reader", "verdict"]
    assert main(["plugins"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(words[0], words[1], words[-1]) for words in lines] == [
        ("reader", "switches", "on"), ("analysis", "short-runs", "on"), ("lane", "ready-threads", "on"),
        ("verdict", "late-heartbeat", "on"), ("export", "svg", "on")]  # fmt: skip
    assert lines[0][2:4] == ["satview-sample-reader", "1.0"]
    assert main(["plugins", "--format", "json"]) == 0
    assert {each["switched_off"] for each in json.loads(capsys.readouterr().out)} == {None}


@pytest.mark.thorough
def test_without_plugins(path, capsys, monkeypatch, installed, with_plugins):
    with_plugins(installed)
    monkeypatch.setenv("SATVIEW_PLUGINS", "off")
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == "plug-ins are disabled by SATVIEW_PLUGINS=off\n"
    assert main(["stats", str(path), "--by", "short-runs"]) == 2


@pytest.mark.thorough
def test_the_reader(samples, tmp_path):
    (tmp_path / "a.csv").write_text(SWITCHES)
    trace = open_trace(tmp_path / "a.csv")
    assert (trace.format, trace.path.name) == ("switches", "a.csv")
    runs = trace.table("run")
    names = [trace.process_name(int(trace.threads.process[row])) for row in runs["thread"]]
    assert list(zip(names, runs["start_ns"].tolist(), strict=True))[:3] == [
        ("init", 0), ("shell", 100_000), ("init", 250_000)]  # fmt: skip
    (tmp_path / "b.csv").write_text(SWITCHES + "x,y\n")
    with pytest.raises(Exception, match=r"b\.csv: line 6 is no switch; write us,cpu,process,pid,tid"):
        open_trace(tmp_path / "b.csv")
    assert plugins.plugin(PluginKind.READER, "switches").fault == "", "a refusal is no fault"


def test_the_analysis(samples, path, capsys):
    assert main(["stats", str(path), "--by", "short-runs", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(",")[0] == "thread"
    assert lines[0].endswith(",short")
    assert [line.split(",")[0] + line[-2:] for line in lines[1:]] == ["app 1,1", "unknown,0"]
    assert statistics_titles()["short-runs"] == "Short runs"


def test_the_lane(samples, path):
    trace = open_trace(path)
    timeline = Timeline(trace)
    [info] = [info for info in timeline.infos if info.kind is LaneKind.PLUGGED]
    assert (info.title, info.index) == ("READY threads", len(timeline.infos) - 1)
    lane = timeline.lane(info.index)
    at = [timeline.label(lane.at(trace.clock.cycles(ns))) for ns in (500, 1_000, 1_499, 1_500, 9_000_000)]
    assert at == ["", "1 READY", "1 READY", "", ""]
    assert lane.spans.end_cycles == trace.window.end
    assert len(timeline.events_of(info.index)) == 0


def test_the_verdict(samples, path, capsys):
    assert main(["check", str(path), "--kind", "late-heartbeat", "--format", "json"]) == 3
    [found] = json.loads(capsys.readouterr().out)["verdicts"]
    assert (found["kind"], found["severity"], found["start_ns"], found["end_ns"]) == (
        "late-heartbeat", "warning", 12_000_000, 52_000_000)  # fmt: skip
    assert found["says"] == "No heartbeat for 40.00 ms, 1 times longer than 20 ms."
    assert main(["check", str(path), "--format", "junit"]) == 3
    [suite] = ET.fromstring(capsys.readouterr().out)
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["late-heartbeat"]
    assert open_trace(path).verdicts()[0].occurrences[0].row == 6


def test_the_export(samples, path, tmp_path, capsys):
    out = tmp_path / "out.svg"
    assert main(["export", str(path), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 2 written by a plug-in\n"
    svg = ET.parse(out).getroot()
    assert [bar.find("{*}title").text for bar in svg] == ["app 1", "app 1"]
    assert main(["export", str(path), "-o", str(out), "--range", "0s..1ms"]) == 2
    assert "writes the whole trace" in capsys.readouterr().err


FAILS = "def thing(*args):\n    raise ValueError('oh no')\n"


def state_of(kind):
    [found] = plugins.plugins(kind)
    return found.fault


def test_a_reader_that_fails(package, tmp_path, path):
    code = "class thing:\n    score = staticmethod(lambda *a: 1 / 0)\n"
    package("satview.readers", "broken", code)
    (tmp_path / "x.bin").write_bytes(b"abc")
    with pytest.raises(Exception, match="this is not a trace that satview knows"):
        open_trace(tmp_path / "x.bin")
    assert state_of(PluginKind.READER) == "ZeroDivisionError: division by zero"
    assert len(open_trace(path).events) == 8


@pytest.mark.parametrize("body", ["raise RuntimeError('oh')", "return None", "return 5"])
def test_a_reader_that_cannot_open(package, tmp_path, body):
    code = (
        f"class thing:\n    score = staticmethod(lambda *a: 50)\n    @staticmethod\n    def open(*a):\n        {body}\n"
    )
    package("satview.readers", "broken", code)
    (tmp_path / "x.bin").write_bytes(b"abc")
    with pytest.raises(Exception, match=r"the plug-in broken of bad-plugin 1\.0 failed to read it"):
        open_trace(tmp_path / "x.bin")
    assert state_of(PluginKind.READER)
    with pytest.raises(Exception, match="this is not a trace that satview knows"):
        open_trace(tmp_path / "x.bin")


@pytest.mark.parametrize("code", [FAILS, "def thing(*args):\n    return 5\n", "import nothing_of_that_name\n"])
def test_an_analysis_that_fails(package, path, code):
    package("satview.analyses", "broken", code)
    assert statistics_keys()[-1] == "broken"
    found = Statistics(open_trace(path))
    table = statistics_table("broken", found)
    assert len(table) == 0
    says = "Cannot tell: the analysis plug-in broken of bad-plugin 1.0 is switched off: "
    assert table.says_why_empty.startswith(says)
    assert len(statistics_table("thread", found)) == 2, "the others are as they were"
    assert statistics_titles()["broken"] == "broken"


@pytest.mark.parametrize(
    "code",
    [
        FAILS,
        "thing = lambda trace: [5]\n",
        "from satview.timeline.lane_tree import PluggedLane\n"
        "thing = lambda trace: [PluggedLane('a', [0], [10**15], ['x'])]\n",
        "from satview.timeline.lane_tree import PluggedLane\n"
        "thing = lambda trace: [PluggedLane('a', [5, 1], [6, 2], 'xy')]\n",
    ],
)
def test_a_lane_that_fails(package, path, code):
    package("satview.lanes", "broken", code)
    timeline = Timeline(open_trace(path))
    assert LaneKind.PLUGGED not in {info.kind for info in timeline.infos}
    assert state_of(PluginKind.LANE)


@pytest.mark.parametrize(
    "code",
    [
        FAILS,
        "thing = lambda trace: 5\n",
        "from satview.analysis.verdicts.evidence import *\n"
        "thing = lambda trace: [Verdict('x', Severity.ERROR, 0, 1, (), (), (10**6,), 'a', 'b')]\n",
        "from satview.analysis.verdicts.evidence import *\n"
        "thing = lambda trace: [Verdict('x', Severity.ERROR, 0, 1, (99,), (), (), 'a', 'b')]\n",
    ],
)
def test_a_verdict_that_fails(package, path, code):
    package("satview.verdicts", "broken", code)
    assert open_trace(path).verdicts() == ()
    assert state_of(PluginKind.VERDICT)


@pytest.mark.parametrize("code", [FAILS, "import sys\nthing = lambda *_: sys.exit(0)\n"])
def test_what_a_plugin_that_failed_would_have_said_cannot_be_told(package, path, capsys, code):
    package("satview.verdicts", "broken", code)
    package("satview.analyses", "broken", code, "bad_analysis")
    fault = "ValueError: oh no" if code == FAILS else "SystemExit: 0"
    assert main(["check", str(path), "--kind", "broken", "--format", "json"]) == 4
    reported = json.loads(capsys.readouterr().out)
    assert reported["outcome"] == "cannot tell"
    assert [row["kind"] for row in reported["undecided"]] == ["broken"]
    assert reported["undecided"][0]["reason"].endswith(f"is switched off: {fault}")
    assert main(["stats", str(path), "--by", "broken", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cannot_tell"]["broken"].endswith(f"is switched off: {fault}")


def test_an_export_that_fails_leaves_the_old_file(package, path, tmp_path, capsys):
    package("satview.exports", "xyz", FAILS)
    (tmp_path / "a.xyz").write_text("old")
    assert main(["export", str(path), "-o", str(tmp_path / "a.xyz")]) == 2
    assert "the export plug-in xyz of bad-plugin 1.0 is switched off: ValueError: oh no" in capsys.readouterr().err
    assert (tmp_path / "a.xyz").read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["a.xyz", "built.kev"]


def test_commands_name_what_failed(package, path, capsys):
    package("satview.verdicts", "broken", FAILS)
    assert main(["check", str(path), "--kind", "deadlock", "--allow-undecided"]) == 0
    assert capsys.readouterr().err == "", "it was not called"
    assert main(["check", str(path), "--allow-undecided"]) == 0
    says = "satview: the verdict plug-in broken of bad-plugin 1.0 is switched off: ValueError: oh no\n"
    assert capsys.readouterr().err == says
    assert main(["check", str(path), "--allow-undecided"]) == 0
    assert capsys.readouterr().err == "", "once is enough"


def test_what_is_switched_off_is_listed(package, capsys):
    package("satview.lanes", "broken", "raise SystemError('at\x1b import')\n")
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out.split(None, 4)[-1] == "switched off: SystemError: at\\x1b import\n"


def test_lanes_of_any_intervals(tmp_path):
    """Between intervals a lane is empty; those that touch have nothing in between."""
    trace = TraceBuilder().state("RUNNING", 0, 2, 1).state("READY", 99, 2, 1).open(tmp_path)
    begin = trace.window.start
    start, end = np.array([10, 20, 50]) + begin, np.array([20, 30, 60]) + begin
    spans = PluggedLane("a", start, end, ["x", "y", "z"], np.array([0, 1, 12])).within(trace)
    assert (spans.start_cycles - begin).tolist() == [0, 10, 20, 30, 50, 60]
    assert spans.texts == ("", "x", "y", "", "z", "")
    assert (np.diff(spans.value[1:3].astype(int)) == 1).all()
    for start, end in (([1, 2], [3, 4]), ([1], [1]), ([5, 1], [6, 2])):
        with pytest.raises(ValueError, match="overlap"):
            PluggedLane("a", start, end, ["x"] * len(start))
    with pytest.raises(ValueError, match="differ in length"):
        PluggedLane("a", [1], [2], [])


DEEP_QUEUE = """
from satview import Verdict
from satview.tables.table import argument_table
from satview.analysis.verdicts.evidence import Severity

def thing(trace):
    queue = argument_table(trace, "EVENT 1")
    if "depth" not in queue.columns or queue["depth"][0] <= 1:
        return []
    start = trace.window.start
    return [Verdict("deep-queue", Severity.WARNING, start, start + 1, (), (), (0,), "Deep.", "Drain it.")]
"""


def test_a_comparison_counts_verdicts_about_fields_that_a_file_describes(package, path, tmp_path, capsys):
    """In `built` the first word of event 1 is 1; in the other trace it is 9."""
    other = TraceBuilder().time_event(0).event(6 << 10 | 1, 100, (9, 0)).write(tmp_path / "other.kev")
    (tmp_path / "u.xml").write_text('<e><event id="1" sformat="%4u1d depth"/></e>')
    package("satview.verdicts", "deep-queue", DEEP_QUEUE)
    command = ["compare", str(path), str(other), "--by", "cpu", "--format", "json"]
    assert main([*command, "--user-events", str(tmp_path / "u.xml")]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"]["deep-queue"] == [0, 1]
    assert main(command) == 0
    assert "deep-queue" not in json.loads(capsys.readouterr().out)["verdicts"]
