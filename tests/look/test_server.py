"""The server for assistants, by a client of the same package: within this process, and once over pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest

from satview import look as server
from satview.__main__ import main
from satview.base.errors import TraceFormatError, UsageError
from satview.cli.automate.mcp import _EPILOG
from satview.events import wire
from satview.events.user_events import UserEvent, UserField
from satview.formats.registry import open_trace
from satview.store.axis import AxisEntry, write_axis
from satview.tables.sql import Limits
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop
from tests.helpers.sql_values import query_at_work, sql_values

mcp = pytest.importorskip("mcp")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 10, 7, 1)
    builder.state("READY", 1_000, 7, 1).state("RUNNING", 1_500, 7, 1).state("MUTEX", 4_000, 7, 1)
    (tmp_path / "traces" / "sub").mkdir(parents=True)
    builder.state("RUNNING", 9_000, 7, 1).write(tmp_path / "traces" / "sub" / "a.kev")
    (tmp_path / "secret.kev").write_bytes((tmp_path / "traces" / "sub" / "a.kev").read_bytes())
    return tmp_path / "traces"


@pytest.fixture
def call(folder):
    """Return a function that calls tools one after the other and returns (is_error, content) of each."""

    def run(*calls, source=None):
        async def requested():
            async with mcp.Client(source or server.make_server([folder])) as client:
                tools = (await client.list_tools()).tools
                answers = [await client.call_tool(name, arguments) for name, arguments in calls]
                return tools, [(bool(answer.is_error), answer.content[0]) for answer in answers]

        return anyio.run(requested)

    return run


def test_the_tools_only_read(call):
    tools, _ = call()
    assert {tool.name for tool in tools} == {"traces", "look", "verdicts", "why", "late", "tables", "sql", "picture"}
    assert f"Tools: {', '.join(tool.name for tool in tools)}." in " ".join(_EPILOG.split())
    for tool in tools:
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
        assert tool.description
    why = next(tool for tool in tools if tool.name == "why")
    assert set(why.input_schema["properties"]) == {"trace", "thread", "at"}
    assert why.description.startswith("Explain why a thread runs, is ready or waits at a moment: the chain of causes")


@pytest.mark.thorough
def test_descriptions_name_fields_for_all_tools(call, folder):
    event = UserEvent(11, "", (UserField("shown", 4),), 2)  # class 2, number 11: the kernel call MSG_SENDV
    made = server.make_server([folder], {event.code: event})
    _, [(is_error, content)] = call(
        ("sql", {"trace": "sub/a.kev", "query": "select count(shown) = count(*) as all_have from call_msg_sendv"}),
        source=made,
    )
    assert not is_error
    assert "true" in content.text.lower()


def test_answers(call):
    a = {"trace": "sub/a.kev"}
    _, answers = call(
        ("traces", {}),
        ("look", a),
        ("look", {**a, "handle": "t-1"}),
        ("verdicts", a),
        ("why", {**a, "thread": "t-1", "at": "6us"}),
        ("sql", {**a, "query": "select state, length_ns from state where state in ('MUTEX', 'READY') order by 2"}),
        ("tables", {}),
    )
    assert [is_error for is_error, _ in answers] == [False] * 7
    traces, trace, thread, verdicts, why, rows, tables = (content.text for _, content in answers)
    assert traces == "sub/a.kev"
    assert trace.startswith("a.kev\n")
    assert "MUTEX" in thread
    assert verdicts.startswith("nothing found")
    assert why.startswith("Why MUTEX?\napp 1 at 0.000 006 000 s")
    assert rows == "state,length_ns\nREADY,500\nMUTEX,5000"
    assert "ready_wait: How long each thread could run" in tables
    assert tables.startswith("event(event, time_cycles, time_ns")


def test_what_is_late_and_what_a_file_of_timing_forbids(call, folder):
    """Three rounds of 5,100 are longer than the deadline: of that 4,100 another thread runs."""
    rounds_of_a_loop().write(folder / "loop.kev")
    (folder / "timing.toml").write_text('[control]\ndeadline = "5us"\n')
    asked = {"trace": "loop.kev", "timing": "timing.toml"}
    _, answers = call(("late", asked), ("late", {**asked, "activity": "planner"}), ("verdicts", asked),
                      ("late", {"trace": "loop.kev", "timing": "../secret.kev"}))  # fmt: skip
    assert [is_error for is_error, _ in answers] == [False, True, False, True]
    late, unknown, verdicts, _ = (content.text for _, content in answers)
    assert "100 ns longer than its deadline of 5.000 µs: 4.100 µs ready while hog 1 ran" in late
    assert "preempted  whom hog 1, explains 3.000 µs, share 100.0 %" in late
    assert "names no activity; there are control 1" in unknown
    assert verdicts.startswith("deadline\n")


def test_what_a_trace_cannot_tell_of_late_work_is_said(call, folder):
    rounds_of_a_loop().write(folder / "loop.kev")
    builder = TraceBuilder().time_event(0)
    for time in range(1_000, 6_000, 1_000):
        builder.event(wire.code(wire.WireClass.USER, 1), time, (1, 2))
    builder.write(folder / "user.kev")
    (folder / "timing.toml").write_text(
        "[serve]\nstart = 'event == SND_MESSAGE'\nend = 'event == REPLY_MESSAGE'\ndeadline = '5us'\n"
    )
    asked = {"timing": "timing.toml"}
    _, answers = call(("late", {**asked, "trace": "loop.kev", "activity": "serve"}),
                      ("late", {**asked, "trace": "user.kev"}), ("late", {"trace": "user.kev"}),
                      ("verdicts", {**asked, "trace": "loop.kev"}))  # fmt: skip
    assert not any(is_error for is_error, _ in answers)
    one, timed, late, verdicts = (content.text for _, content in answers)
    reason = "serve: the trace has no events of the class COMM; capture them"
    assert one.endswith(f"The worst instance\n    Cannot tell: {reason}.")
    assert f"not all: {reason}" in timed
    assert "cannot tell: the trace has no states of threads; capture the class THREAD whole" in late
    assert verdicts == f"cannot tell: deadline: {reason}"


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("look", {"trace": "../secret.kev"}, "is not a file below"),
        ("look", {"trace": "/etc/passwd"}, "is not a file below"),
        ("look", {"trace": "none.kev"}, "is not a file below"),
        ("look", {"trace": "sub"}, "directory"),
        ("look", {"trace": "sub/a.kev", "handle": "t-9"}, "there is no thread t-9"),
        ("why", {"trace": "sub/a.kev", "thread": "nobody", "at": "1us"}, "the trace has no thread 'nobody'"),
        ("why", {"trace": "sub/a.kev", "thread": "t-1", "at": "soon"}, "soon"),
        ("sql", {"trace": "sub/a.kev", "query": "select * from read_csv('/etc/passwd')"}, "Permission Error"),
        ("sql", {"trace": "sub/a.kev", "query": "create table x (y int)"}, "is not a query"),
    ],
)
def test_mistakes_are_answers(call, tool, arguments, says):
    _, [(is_error, content)] = call((tool, arguments))
    assert is_error
    assert says in content.text


def test_links_lead_nowhere_else(call, folder):
    (folder / "link.kev").symlink_to(folder.parent / "secret.kev")
    _, [(is_error, content)] = call(("look", {"trace": "link.kev"}))
    assert is_error
    assert "is not a file below" in content.text


@pytest.fixture
def axis(folder, monkeypatch):
    """Return the name of an axis below the folder that names the file outside of it; its user has allowed that."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
    write_axis(
        folder / "x.sataxis", [AxisEntry(folder / "sub" / "a.kev", "a"), AxisEntry(folder.parent / "secret.kev", "b")]
    )
    assert len(open_trace(folder / "x.sataxis").events) > 0
    return "x.sataxis"


@pytest.mark.thorough
def test_what_a_user_may_open_the_server_may_not(call, axis):
    a = {"trace": axis}
    _, answers = call(("look", a), ("picture", a), ("sql", {**a, "query": "select 1"}))
    for is_error, content in answers:
        assert is_error
        assert "secret.kev is outside of the folders that may be read" in content.text


def test_an_axis_may_name_what_is_below_the_folders(call, folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
    (folder / "b.kev").write_bytes((folder / "sub" / "a.kev").read_bytes())
    files = [{"name": name, "path": path, "offset_ps": 0} for name, path in (("a", "a.kev"), ("b", "../b.kev"))]
    (folder / "sub" / "x.sataxis").write_text(json.dumps({"satview_axis": 1, "files": files}))
    _, [(is_error, content)] = call(("look", {"trace": "sub/x.sataxis"}))
    assert not is_error, content
    with pytest.raises(TraceFormatError, match=r"x.sataxis.*b.kev outside of its folder"):
        open_trace(folder / "sub" / "x.sataxis")


def test_notes_and_members_of_a_set_that_lead_outside_are_not_read(call, folder):
    (folder.parent / "notes").write_text('{"marks": [{"start_cycles": 1, "end_cycles": 1, "text": "secret"}]}')
    (folder / "sub" / "a.kev.marks.json").symlink_to(folder.parent / "notes")
    shutil.copytree(ROOT / "sample_traces" / "threads", folder / "threads")
    (folder / "threads" / "tr.00042d7.009").symlink_to(ROOT / "sample_traces" / "threads" / "tr.00042d7.001")
    _, answers = call(("look", {"trace": "sub/a.kev"}), ("look", {"trace": "threads/tr.00042d7.001"}))
    for (is_error, content), name in zip(answers, ("a.kev.marks.json", "tr.00042d7.009"), strict=True):
        assert is_error
        assert f"{name} is outside of the folders that may be read" in content.text


@pytest.mark.parametrize("name", ["a\0b", "\udcff\0"])
def test_a_name_that_no_file_can_have(folder, name):
    with pytest.raises(UsageError, match="is not a file below"):
        server.Answers([folder]).look(name)


def test_many_rows_are_cut(call):
    _, [(_, content)] = call(("sql", {"trace": "sub/a.kev", "query": "select * from range(1000)"}))
    assert content.text.splitlines()[-1] == "... 1,000 rows; add a LIMIT or add them up"
    assert len(content.text.splitlines()) == 202


def test_an_answer_that_is_cut_says_so(call, monkeypatch):
    monkeypatch.setattr(server, "_LIMITS", Limits(answer_bytes=1 << 20))
    _, [(_, content)] = call(("sql", {"trace": "sub/a.kev", "query": "select * from range(1000000)"}))
    assert content.text.splitlines()[-1] == "... 129,055 rows, cut: there are more; add a LIMIT or add them up"


@pytest.mark.thorough
def test_every_type_has_a_text(call):
    queries = [f"select {each.sql} as v" for each in sql_values()]
    _, answers = call(*(("sql", {"trace": "sub/a.kev", "query": query}) for query in queries))
    for (is_error, content), each in zip(answers, sql_values(), strict=True):
        text = f'"{each.text.replace(chr(34), chr(34) * 2)}"' if {",", '"'} & {*each.text} else each.text
        assert (is_error, content.text) == (False, f"v\n{text}"), each


@pytest.mark.thorough
def test_no_tool_waits_for_a_query(folder, monkeypatch):
    """Neither another tool nor another query, though the first is in a function that lasts for a minute."""
    monkeypatch.setattr(server, "_LIMITS", Limits(time_s=12.0))  # a busy machine needs 5 s for the others
    a, ended = {"trace": "sub/a.kev"}, []

    async def ask(client, name, arguments):
        answer = await client.call_tool(name, arguments)
        ended.append((name, answer.content[0].text.splitlines()[0]))

    async def run():
        async with mcp.Client(server.make_server([folder])) as client, anyio.create_task_group() as tasks:
            slow = {**a, "query": "select levenshtein(repeat('a', 120000), repeat('b', 120000))"}
            tasks.start_soon(ask, client, "sql", slow)
            with anyio.fail_after(30):
                while query_at_work() is None:
                    await anyio.sleep(0.01)
            await ask(client, "look", a)
            await ask(client, "sql", {**a, "query": "select 1 as one"})

    anyio.run(run)
    assert [name for name, _ in ended] == ["look", "sql", "sql"]
    assert ended[1:] == [
        ("sql", "one"),
        ("sql", "Error executing tool sql: the query took longer than 12 s and was stopped"),
    ]


def test_a_picture(call, monkeypatch):
    requested = []

    def take(trace, path, options, size):
        requested.append((trace.name, options))
        path.write_bytes(b"\x89PNG")
        return "" if "--select=3" in options else "no Qt"

    monkeypatch.setattr(server, "screenshot", take)
    a = {"trace": "sub/a.kev"}
    _, answers = call(("picture", {**a, "range": "1us..2us", "event": 3}), ("picture", a))
    assert (answers[0][1].mime_type, base64.b64decode(answers[0][1].data)) == ("image/png", b"\x89PNG")
    assert requested[0] == ("a.kev", ["--range=1us..2us", "--select=3", "--no-cache"])
    assert answers[1][0]
    assert "no Qt" in answers[1][1].text


def test_a_trace_that_is_written_again_is_read_again(call, folder):
    answers = server.Answers([folder])
    first = answers.trace("sub/a.kev")
    assert answers.trace("sub/a.kev") is first
    TraceBuilder().time_event(0).write(folder / "sub" / "a.kev")
    assert len(answers.trace("sub/a.kev").events) == 1


@pytest.mark.complete  # 2 s of starting a process
def test_over_standard_input_and_output(call, folder):
    source = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "satview", "mcp", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    _, [(is_error, content)] = call(("traces", {}), source=source)
    assert (is_error, content.text) == (False, "sub/a.kev")


def test_bad_use(tmp_path, monkeypatch, capsys):
    assert main(["mcp", str(tmp_path / "none")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    for name in ("mcp", "mcp.server"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["mcp", str(tmp_path)]) == 2
    assert "pip install 'mcp>=2'" in capsys.readouterr().err
