"""A text of pidin names what the trace does not name; a name of the trace wins, and what is not used is said."""

from __future__ import annotations

import json

import pytest

from satview.base.errors import UsageError
from satview.formats.outside_names import read_pidin, with_names
from tests.helpers.commands import satview
from tests.helpers.kev import TraceBuilder, write_trace

PLAIN = """\
# pidin
     pid tid name               prio STATE       Blocked
       1   1 /procnto-smp-instr   0f READY
       1   2 /procnto-smp-instr 255r RECEIVE     1
    4099   1 proc/boot/slogger2  10r RECEIVE     1
    8196   1 usr/bin/my planner  10r RUNNING
   12293   1 usr/local/bin/with-a-long-name  10r NANOSLEEP
"""
NAMED = """\
     pid tid name                         thread name      prio  STATE      Blocked
    4099   1 proc/boot/slogger2           -                10r   RECEIVE    ch 1
    4099   2 proc/boot/slogger2           writer loop      10r   READY
    8196   1 usr/local/bin/with-a-long-name-of-all  looks 10r   READY
    8196   2 planner                                       10r   READY
"""
THREADS = """\
     pid name               thread name          STATE       Blocked
       1 /procnto-smp-instr 1                    READY
    4099 proc/boot/slogger2 writer               RECEIVE     1
"""


def names_in(tmp_path, text):
    path = tmp_path / "board.txt"
    path.write_text(text)
    return read_pidin(path)


def test_the_plain_form(tmp_path):
    names = names_in(tmp_path, PLAIN)
    assert names.by_pid == {1: "/procnto-smp-instr", 4099: "proc/boot/slogger2", 8196: "usr/bin/my planner",
                            12293: "usr/local/bin/with-a-long-name"}  # fmt: skip
    assert (names.by_thread, names.notes) == ({}, ())


def test_names_of_threads(tmp_path):
    names = names_in(tmp_path, NAMED)
    assert names.by_thread == {(4099, 2): "writer loop", (8196, 1): "looks"}
    assert names.by_pid[8196] == "usr/local/bin/with-a-long-name-of-all"
    assert names.notes == (
        "board.txt: pid 8196 is usr/local/bin/with-a-long-name-of-all and planner there; the first name counts",
    )


def test_names_of_threads_without_a_number_are_not_used_and_said(tmp_path):
    names = names_in(tmp_path, THREADS)
    assert names.by_pid == {1: "/procnto-smp-instr", 4099: "proc/boot/slogger2"}
    assert names.by_thread == {}
    assert names.notes == (
        "board.txt: 1 name of threads without a tid; `pidin -F '%a %b %n %h'` prints both",
    )  # fmt: skip


def test_two_columns_alone(tmp_path):
    assert names_in(tmp_path, "     pid name\n       7 usr/bin/a b\n" + "9" * 40 + " x\n").by_pid == {7: "usr/bin/a b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("\n     pid STATE\n 1 READY\n", "line 2 has no column name"),
        ("tid name\n1 x\n", "line 1 has no column pid"),
        ("boot log\n", "line 1 is not a line of titles with the columns pid and name"),
        ("pid name\nx y\n", "no line below the titles has a pid and a name"),
    ],
)
def test_what_is_no_text_of_pidin_is_one_sentence(tmp_path, text, said):
    with pytest.raises(UsageError) as error:
        names_in(tmp_path, text)
    assert str(error.value) == f"{tmp_path / 'board.txt'}: {said}; save what `pidin` prints"


@pytest.fixture
def trace(tmp_path):
    """Process 4099 has no name and thread 2; process 8196 is called `bin/server`, its thread 1 `listener`."""
    builder = TraceBuilder().time_event(0).process_name(5, 8196, "bin/server")
    builder.state("RUNNING", 50, 4099, 2).state("RUNNING", 60, 8196, 1)
    return builder.open(tmp_path)


def test_a_name_of_the_trace_wins(trace, tmp_path):
    named = with_names(trace, names_in(tmp_path, NAMED))
    row, thread = named.processes.row(4099), named.threads.row(4099, 2)
    assert named.process_name(row) == "slogger2"
    assert named.thread_name(thread) == "slogger2 2 (writer loop)"
    assert named.process_name_source(row) == named.thread_name_source(thread) == "name from pidin"
    other = named.processes.row(8196)
    assert (named.process_name(other), named.process_name_source(other)) == ("server", "")
    assert [problem.detail for problem in named.problems if problem.kind.slug == "other-name"] == [
        "pid 8196 is bin/server here and usr/local/bin/with-a-long-name-of-all in board.txt"
    ]
    assert str(named.pidin) == "1 process name and 2 thread names from pidin (board.txt)"
    assert trace.process_name(row) == "pid 4099"  # the trace before is as it was


def test_another_text_replaces_the_names_of_the_one_before(trace, tmp_path):
    named = with_names(trace, names_in(tmp_path, NAMED))
    again = with_names(named, names_in(tmp_path, "pid name\n8196 bin/server\n"))
    assert again.processes.names == trace.processes.names
    assert again.threads.names == trace.threads.names
    assert again.problems.counts() == trace.problems.counts()


@pytest.mark.thorough
def test_commands_take_the_text(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 50, 4099, 2).state("READY", 60, 4099, 2)
    path = write_trace(tmp_path / "t.kev", builder.writer.slots())
    text = tmp_path / "board.txt"
    text.write_text(NAMED)
    done = satview("info", path, "--pidin", text)
    assert b"1 process name and 1 thread name from pidin (board.txt)" in done.stdout
    assert b"pid 8196 is usr/local/bin" in done.stderr
    record = json.loads(satview("info", path, "--pidin", text, "--json").stdout)
    assert record["pidin"] == {"file": str(text), "process_names": 1, "thread_names": 1}
    assert b"slogger2" in satview("stats", path, "--pidin", text).stdout
    text.write_text("nothing\n")
    refused = satview("stats", path, "--pidin", text)
    assert refused.returncode == 2
    assert b"board.txt: line 1 is not a line of titles" in refused.stderr
