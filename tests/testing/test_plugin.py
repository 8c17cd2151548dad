"""The pytest plug-in as projects meet it: in runs of pytest within the tests, and from the sample project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.helpers.scene import rounds_of_a_loop
from tests.testing.test_sentences import ticking

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "satview.testing.plugin"


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with a trace `tick.kev`; returns how to run its tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for pictures and captures, which are processes of their own
    ticking().write(pytester.path / "tick.kev")

    def run(text="", *options):
        if text:
            pytester.makepyfile(test_it=text)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", PLUGIN, *options)

    run.path = pytester.path
    run.pytester = pytester
    return run


SLOW = """
def test_latency(kev):
    assert kev.latency("tick", "done").p99 < 200
"""


def test_it_is_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}


@pytest.mark.thorough
def test_pytest_of_others_pays_nothing_for_it():
    code = (
        "import sys, pytest; before = set(sys.modules); import satview.testing.plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert {name for name in eval(done.stdout) if not name.startswith(("html", "_"))} == {
        "satview", "satview.base", "satview.base.errors", "satview.base.safe_text", "satview.testing",
        "satview.testing.plugin",
    }  # fmt: skip


@pytest.mark.thorough
def test_a_failure_names_the_location(project):
    project.pytester.makeini("[pytest]\nkev_file = tick.kev\nkev_pictures = none")
    result = project(SLOW)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "E*p99 of tick to done is 250 ns, not < 200 ns",
        "E*at 0.000 011 000 s (event 6)",
        "E*satview *tick.kev --range 0s..* --select 6",
        "*- satview -*",
        "picture: none is requested",
    ])  # fmt: skip


@pytest.mark.thorough
def test_a_failure_leaves_a_picture_and_junit_has_it(project):
    result = project(SLOW, "--kev", "tick.kev", "--junitxml", "out.xml")
    result.assert_outcomes(failed=1)
    picture = project.path / "kev-pictures" / "test_it.py-test_latency.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (picture.parent / ".gitignore").exists()
    [case] = ET.parse(project.path / "out.xml").getroot().iter("testcase")
    properties = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert properties["satview.location"] == "at 0.000 011 000 s (event 6)"
    assert properties["satview.picture"] == str(picture)
    assert "p99 of tick to done is 250 ns" in case.find("failure").get("message")
    assert str(picture) in case.find("failure").text


@pytest.mark.thorough
def test_ways_to_name_the_trace(project):
    (project.path / "sub").mkdir()
    (project.path / "sub" / "test_sub.py").write_text(
        "import pytest\n@pytest.mark.kev('../tick.kev')\ndef test_a(kev):\n    assert kev.events('tick') == 3\n"
    )
    project.pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef kev_names():\n    return {'start': 'event == THMUTEX'}\n"
    )
    text = "def test_b(kev):\n    assert kev.events('start') == 1\n"
    project(text, "--kev", "tick.kev", "--strict-markers").assert_outcomes(passed=2)
    result = project()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*no trace: give --kev FILE*"])
    result = project("", "--kev", "test_it.py")
    result.stdout.fnmatch_lines(["*test_it.py: *"])
    result.assert_outcomes(passed=1, errors=1)


@pytest.mark.thorough
def test_a_trace_outside_of_the_project_does_not_hide_its_settings(project):
    """pytest looks for settings before it knows the options of installed plug-ins, so this needs its own process."""
    folder = project.path / "inside"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nkev_pictures = none\n")
    (folder / "test_it.py").write_text("def test_a(kev):\n    assert kev.events('tick') == 3\n")
    apart, together = ["--kev", "../tick.kev"], ["--kev=../tick.kev"]
    for option, code, says in ((apart, 4, "write --kev=../tick.kev"), (together, 0, "1 passed")):
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *option], cwd=folder,
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert says in done.stdout + done.stderr


@pytest.mark.thorough
def test_cpus_and_states_that_do_not_exist_are_refused(project):
    result = project(
        "def test_a(kev):\n    assert kev.thread('logger 1').stays_on(0, 99)\n"
        "def test_b(kev):\n    assert kev.thread('logger 1').never()\n"
        "def test_c(kev):\n    assert kev.thread('logger 1').stays_on(0)\n",
        "--kev", "tick.kev",
    )  # fmt: skip
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines_random(["E*the trace has no CPU 99; it has 1 CPU, from 0 on", "E*never() of no state*"])


def test_other_failures_have_no_place(project):
    text = """
def test_a(kev):
    if kev.latency("tick", "done").p99 < 200:
        pass
    raise ValueError("other")

def test_b():
    assert 1 == 2
"""
    result = project(text, "--kev", "tick.kev")
    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line("*picture*")


BASE = """
def test_latency(kev):
    assert kev.latency("tick", "done").p99.no_worse_than_baseline(by=0.1)
"""


@pytest.mark.thorough
def test_baselines(project):
    result = project(BASE, "--kev", "tick.kev")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["satview: 1 value with a baseline, not compared: no --baseline FILE"])
    again = ("--kev", "tick.kev", "--baseline", "b.json", "--kev-pictures", "none")
    project("", *again).stdout.fnmatch_lines(["satview: b.json: made, with 1 value of this run"])
    path = project.path / "b.json"
    stored = json.loads(path.read_text())
    assert stored == {"version": 1, "figures": {"test_it.py::test_latency": {"p99 of tick to done": 250.0}}}
    result = project("", *again)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["satview: b.json: 1 value compared"])

    ticking(lengths=(100, 400)).write(project.path / "tick.kev")
    result = project("", *again)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*p99 of tick to done is 400 ns, in the baseline 250 ns: more than 10 % worse"])
    assert json.loads(path.read_text()) == stored, "a comparison changes nothing"
    project("", *again, "--update-kev-baseline").assert_outcomes(failed=1)
    assert json.loads(path.read_text())["figures"]["test_it.py::test_latency"] == {"p99 of tick to done": 400.0}
    project("", *again).assert_outcomes(passed=1)


def test_new_values_are_told(project):
    (project.path / "b.json").write_text('{"version": 1, "figures": {}}')
    result = project(BASE, "--kev", "tick.kev", "--baseline", "b.json")
    result.stdout.fnmatch_lines(["satview: b.json: 0 values compared, 1 new not: *--update-kev-baseline"])


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 2}', '{"version": 1, "figures": {"a": {"b": "c"}}}'])
def test_a_file_that_is_no_baseline(project, content):
    (project.path / "b.json").write_text(content)
    result = project(BASE, "--kev", "tick.kev", "--baseline", "b.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*b.json: no baseline*"])
    assert (project.path / "b.json").read_text() == content


@pytest.mark.complete  # 4 s of starting a process
def test_several_processes(project):
    result = project(BASE, "--kev", "tick.kev", "--baseline", "b.json", "-n", "1")
    result.assert_outcomes(passed=1)
    assert "250.0" in (project.path / "b.json").read_text()


@pytest.mark.thorough
def test_an_option_of_somebody_else_stays_theirs(project):
    project.pytester.makeconftest(
        "def pytest_addoption(parser):\n    parser.addoption('--baseline', default='theirs')\n"
    )
    text = "def test_a(request):\n    assert request.config.getoption('--baseline') == 'mine'\n"
    project(text, "--baseline", "mine").assert_outcomes(passed=1)
    project(BASE, "--kev", "tick.kev", "--kev-baseline", "b.json").assert_outcomes(passed=1)
    assert (project.path / "b.json").exists()


@pytest.mark.thorough
def test_the_sample_project(project):
    """Its tests pass as they are, with a baseline made and then met."""
    sample = ROOT / "examples" / "pytest_project"
    for properties in ("made, with 1 value", "1 value compared"):
        result = project("", str(sample), "-c", str(sample / "pytest.ini"), "--baseline", str(project.path / "b.json"))
        result.assert_outcomes(passed=7)
        result.stdout.fnmatch_lines([f"satview: *b.json: {properties}*"])


def test_a_file_of_timing_names_activities(project):
    """A thread waits 100 ns for the CPU, and three times 4,100."""
    rounds_of_a_loop().write(project.path / "loop.kev")
    (project.path / "timing.toml").write_text(
        "[wait]\nstart = 'event == THREADY and pid == 5'\nend = 'event == THRUNNING and pid == 5'\n"
    )
    project.pytester.makeini("[pytest]\nkev_file = loop.kev\nkev_timing = timing.toml\nkev_pictures = none")
    result = project("def test_it(kev):\n    assert kev.activity('wait').longest < 200\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*longest of wait is 4.100 µs, not < 200 ns"])


@pytest.mark.thorough
def test_what_a_file_of_timing_says_of_a_class_that_is_not_there_is_not_known(project):
    rounds_of_a_loop().write(project.path / "loop.kev")
    (project.path / "timing.toml").write_text(
        "[serve]\nstart = 'event == SND_MESSAGE'\nend = 'event == REPLY_MESSAGE'\ndeadline = \"1 us\"\n"
    )
    project.pytester.makeini("[pytest]\nkev_file = loop.kev\nkev_timing = timing.toml\nkev_pictures = none")
    result = project(
        "def test_a(kev):\n    assert kev.activity('serve').count == 0\n"
        "def test_b(kev):\n    kev.no_verdict('deadline')\n"
        "def test_c(kev):\n    assert kev.events('class == COMM') == 0\n"
        "def test_d(kev):\n    assert kev.if_known.activity('serve').count == 0\n"
    )
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(
        ["E*cannot tell whether*serve: the trace has no events of the class COMM; capture them"]
    )
