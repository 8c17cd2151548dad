"""`satview together`: which file is where, what the commands make of it, and what is refused in a sentence."""

from __future__ import annotations

import json

import pytest

from satview.__main__ import main
from satview.formats.registry import open_trace
from satview.store.axis import files_of
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def pair(tmp_path):
    found = []
    for name, mark in (("host", 700), ("guest", 200)):
        builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
        found.append(builder.event(6 << 10 | 7, mark).event(6 << 10, 9_000).write(tmp_path / f"{name}.kev"))
    return [str(path) for path in found]


def begins(path):
    trace = open_trace(path)
    return {part.name: trace.clock.ns(part.window.start) for part in files_of(trace).parts}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"host": 0, "guest": 0}),
        (["--offset", "guest=2us"], {"host": 0, "guest": 2_000}),
        (["--offset", "2=-1.5us"], {"host": 1_500, "guest": 0}),
        (["--align", 'event == "USREVENT/EVENT 7"'], {"host": 0, "guest": 500}),
        (["--align", "counter"], {"host": 0, "guest": 0}),
        (["--names", "a,b", "--offset", "b=1us"], {"a": 0, "b": 1_000}),
    ],
)
def test_where_each_file_begins(pair, tmp_path, options, expected, capsys):
    out = tmp_path / "both.sataxis"
    assert main(["together", *pair, "-o", str(out), *options]) == 0
    assert begins(out) == expected
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(expected)


def test_commands_take_it_as_one_trace(pair, tmp_path, capsys):
    out = str(tmp_path / "both.sataxis")
    assert main(["together", *pair, "-o", out, "--offset", "guest=2us"]) == 0
    capsys.readouterr()
    assert main(["stats", out, "--by", "process", "--format", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert {row["process"] for row in reported["process"]} == {"host:app", "guest:app"}
    assert main(["check", out, "--allow-undecided"]) == 0
    assert main(["export", out, "-o", str(tmp_path / "x.kev")]) == 2
    assert "one .kev file cannot hold events of several targets" in capsys.readouterr().err
    assert main(["convert", out, str(tmp_path / "x.kev")]) == 2
    assert "one .kev file cannot hold events of several targets" in capsys.readouterr().err
    assert main(["traceprinter", out]) == 2
    assert "both.sataxis: files on one axis are not printed together; print each, or list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ("aa", [], "host.kev is named twice"),
        ("a-", [], "standard input cannot be read again"),
        ("a", [], "an axis has 2 to 16 files, not 1"),
        ("ab", ["--offset", "zoo=1s"], "there is no file 'zoo' on the axis; there are host, guest"),
        ("ab", ["--offset", "host=1s"], "host is the file that the others are placed by"),
        ("ab", ["--offset", "guest"], "is not an offset; write B=12.5ms"),
        ("ab", ["--offset", "guest=soon"], "'soon' is not a time"),
        ("ab", ["--offset", "guest=40000000s"], "guest would begin more than a year away"),
        ("ab", ["--names", "a"], "1 name given for 2 files"),
        ("ab", ["--names", "a,a"], "two files are called 'a'"),
        ("ab", ["--align", 'event == "USREVENT/EVENT 9"'], "host.kev has no event where"),
        ("ab", ["--align", "event =="], "host.kev: column"),
        ("ab", ["--align", 'event == "USREVENT/EVENT 7"', "--number", "0"], "0 is not the number of a match"),
        (
            "ab",
            ["--offset", "guest=1s", "--align", 'event == "USREVENT/EVENT 7"'],
            """every file has an offset, so none is left to align by 'event == "USREVENT/EVENT 7"'; leave one out""",
        ),
        ("ab", ["--offset", "2=1s", "--align", "counter"], "every file has an offset, so none is left to align by"),
        ("ab", ["--number", "2"], "--number 2 counts matches of an expression; --align start has none"),
        ("ab", ["--align", "counter", "--number", "2"], "--number 2 counts matches of an expression; --align counter"),
    ],
)
def test_what_makes_no_axis(pair, tmp_path, files, options, says, capsys):
    names = [which if which == "-" else pair["ab".index(which)] for which in files]
    out = tmp_path / "both.sataxis"
    assert main(["together", *names, "-o", str(out), *options]) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


def test_an_axis_cannot_replace_its_files_or_be_on_another(pair, tmp_path, capsys):
    out = tmp_path / "both.sataxis"
    assert main(["together", *pair, "-o", pair[0]]) == 2
    assert "for example host.sataxis" in capsys.readouterr().err
    assert main(["together", *pair, "-o", str(out)]) == 0
    assert main(["together", str(out), pair[0], "-o", str(tmp_path / "y.sataxis")]) == 2
    assert "both.sataxis is an axis itself" in capsys.readouterr().err


def test_options_of_an_axis_need_together(pair, capsys):
    assert main([*pair, "--offset", "guest=1s"]) == 2
    assert "need --together" in capsys.readouterr().err


QUEUE = '<eventdefinitions><event id="7" name="queue" sformat="%4u1d depth"/></eventdefinitions>'


@pytest.fixture
def queues(tmp_path):
    """Two files in which the queue of event 7 is 5 deep after 700 and after 200 ns, and 3 and 1 deep 100 ns before."""
    for name, mark in (("host", 700), ("guest", 200)):
        builder = TraceBuilder().time_event(0)
        builder.event(6 << 10 | 7, mark - 100, (mark // 200, 0)).event(6 << 10 | 7, mark, (5, 0))
        builder.event(6 << 10, 9_000).write(tmp_path / f"{name}.kev")
    (tmp_path / "queue.xml").write_text(QUEUE)
    return [str(tmp_path / name) for name in ("host.kev", "guest.kev")], str(tmp_path / "queue.xml")


@pytest.mark.thorough
def test_files_are_aligned_by_a_field_that_a_file_describes(queues, tmp_path, capsys):
    (files, described), out = queues, tmp_path / "both.sataxis"
    assert main(["together", *files, "-o", str(out), "--align", "arg.depth == 5", "--user-events", described]) == 0
    assert begins(out) == {"host": 0, "guest": 500}
    assert main(["together", *files, "-o", str(out), "--user-events", files[0]]) == 2
    assert "host.kev: line 1: no XML" in capsys.readouterr().err
