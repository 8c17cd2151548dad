"""A folder of a stranger: commands and the server's tools run no code of it and read nothing outside of it.

In the folder are modules with the names of all that satview imports, each of which leaves a mark when it is run; files
that name others outside; and texts with NULs, halves of characters and line breaks. Commands are processes of their
own, as a user starts them, for it is the start that decides where modules come from.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from satview import look as server
from satview.cli import command_names
from tests.helpers.commands import ROOT, SAMPLE
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder

SECRET = "word-of-the-secret-file"
NASTY = "a\0b\ud800c\nd\r\x1b[2J"
# What Python itself imports before any program, such as `collections`, cannot be kept away from `python -m`.
SHADOWS = (
    "numpy", "datetime", "json", "satview", "duckdb", "pyarrow", "PySide6", "construct", "re2", "rich", "platformdirs",
    "sitecustomize", "usercustomize", "typing", "argparse", "multiprocessing", "pickle", "subprocess", "logging",
    "concurrent", "tempfile", "hashlib", "xml", "tomllib", "zstandard", "pyqtgraph", "shiboken6", "pandas", "mcp",
    "anyio", "queue", "socket", "threading", "uuid", "decimal", "csv", "gzip", "shutil", "platform", "difflib", "shtab",
    "msgspec",
)  # fmt: skip
SCRIPT = Path(sysconfig.get_path("scripts")) / "satview"
COMMANDS = {
    "capture": "ssh://127.0.0.1:1 -r r.satrules",  # where nobody listens
    "catalogue": "learn list.txt",
    "check": "t.kev -r limits.toml",
    "compare": "t.kev t.kev",
    "convert": "list.txt new.kev",
    "doctor": "t.kev",
    "export": "more -o fleet --jobs 2",  # processes of its own
    "filter": "t.kev -r r.satrules",
    "guide": "",
    "info": "t.kev",
    "late": "t.kev",
    "whatif": "wrong.kev --set cpus=1",
    "latencies": "t.kev",
    "locks": "threads",
    "look": "t.kev",
    "mcp": ".",
    "plugins": "",
    "query": "t.kev from_event",
    "records": "threads",
    "report": "wrong.kev -o new.html",  # has verdicts, and so pictures, each by a process of its own
    "snapshot": "t.kev --at 1us",
    "stats": "t.kev --by process",
    "target": "--sdk new_sdk",
    "targets": "",
    "together": "t.kev more/b.kev -o new.sataxis",
    "tracelogger": "--duration 0.01 -f new2.kev",
    "traceprinter": "t.kev -v",
    "transactions": "t.kev",
    "trends": "none",
    "why": "t.kev --thread 7:1 --at 5us",
}
FIRST_COMMANDS = sorted(COMMANDS, key=lambda name: (name != "info", name != "query", name))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Return the folder; outside of it are a trace and notes with a word that must show nowhere."""
    outside = tmp_path_factory.mktemp("outside")
    trace(SECRET).write(outside / "secret.kev")
    folder = outside / "folder"
    (folder / "more").mkdir(parents=True)
    mark = outside / "ran"
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(
            f"open({str(mark)!r}, 'a').write({name!r} + chr(10))\nraise SystemExit(99)\n"
        )
    for name in ("plugin.dist-info", "evil-1.0.dist-info"):
        (folder / name).mkdir()
        (folder / name / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (folder / name / "entry_points.txt").write_text(
            "[satview.readers]\nevil = numpy:x\n[satview.lanes]\nevil = numpy:x\n"
        )
    trace("app").write(folder / "t.kev")
    for name in "ab":
        shutil.copyfile(SAMPLE, folder / "more" / f"{name}.kev")
    (folder / "t.kev.marks.json").write_text(json.dumps({"marks": [
        {"start_cycles": 0, "end_cycles": 1, "text": NASTY, "path": str(outside / "secret.kev")}, NASTY]}))  # fmt: skip
    axis = {"satview_axis": 1, "files": [{"name": "one", "path": "t.kev", "offset_ps": 0},
                                         {"name": "two", "path": "../secret.kev", "offset_ps": 0}]}  # fmt: skip
    (folder / "relative.sataxis").write_text(json.dumps(axis))
    axis["files"][1]["path"] = str(outside / "secret.kev")
    (folder / "whole.sataxis").write_text(json.dumps(axis))
    (folder / "link.kev").symlink_to(outside / "secret.kev")
    axis["files"][1]["path"] = "link.kev"
    (folder / "linked.sataxis").write_text(json.dumps(axis))
    (folder / "disguised.kev").write_text(json.dumps(axis))
    for key, text in (("path", NASTY), ("name", NASTY)):
        nasty = json.loads(json.dumps(axis))
        nasty["files"][1][key] = text
        (folder / f"nasty-{key}.sataxis").write_text(json.dumps(nasty))
    (folder / "s.satsession").write_text(json.dumps({
        "satview_session": 1, "compared": {"path": str(outside / "secret.kev"), "first_cycles": 0, "second_cycles": 0,
                                           "aligned_by": NASTY, "is_linked": True},
        "filter": {"expression": NASTY}, "lanes": {"find": NASTY}}))  # fmt: skip
    (folder / "r.satrules").write_text("ADDALLCLASSES\n")
    (folder / "evil.satrules").write_text("ADDALLCLASSES\nADDCLASSEVHANDLER COMM CALL numpy.py:x\n")
    (folder / "limits.toml").write_text("[starvation]\nenabled = false\n")
    shutil.copytree(ROOT / "sample_traces" / "threads", folder / "threads")
    workload = ("tracelogger", "--workload", "inversion", "-f", str(folder / "wrong.kev"))
    assert run(["-m", "satview"], *workload, cwd=ROOT, home=outside).returncode == 0
    done = run(["-m", "satview"], "traceprinter", str(SAMPLE), cwd=ROOT, home=outside)
    (folder / "list.txt").write_bytes(done.stdout)
    return folder


def trace(name):
    builder = TraceBuilder().time_event(0).process_name(1, 7, name).state("RUNNING", 10, 7, 1)
    builder.state("READY", 1_000, 7, 1).state("RUNNING", 1_500, 7, 1).state("MUTEX", 4_000, 7, 1)
    return builder.state("RUNNING", 9_000, 7, 1)


def run(start, *words, cwd, home):
    """Run satview as a user does, with nothing of this process but what a shell has; the user has no settings."""
    environment = {"PATH": f".:{cwd}:{os.environ.get('PATH', '')}", "HOME": str(home), "QT_QPA_PLATFORM": "offscreen",
                   "LANG": "C.UTF-8", "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache"),
                   "XDG_CONFIG_HOME": str(home / "config"), "SATVIEW_INSTANCE": "off"}  # fmt: skip
    command = [str(SCRIPT)] if start == "script" else [sys.executable, *start]
    return subprocess.run(
        [*command, *words], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip


def check(stranger, done):
    """Nothing ran, nothing of outside shows, and the command ended as commands do."""
    mark = stranger.parent / "ran"
    assert not mark.exists(), mark.read_text()
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2, 3, 4), said.decode(errors="replace")
    assert b"Traceback" not in said
    assert SECRET.encode() not in said


def test_every_command_is_here():
    assert set(COMMANDS) == set(command_names())


@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer(FIRST_COMMANDS, 1))
def test_a_command_runs_no_module_of_the_folder(stranger, name):
    words = [word.replace("from_event", "from event") for word in COMMANDS[name].split()]
    done = run("script", name, *words, cwd=stranger, home=stranger.parent)
    check(stranger, done)
    assert done.returncode in ((2,) if name in ("capture", "trends") else (0, 1, 3, 4)), done.stderr


# Tells what a process opens, and every address that it looks for; runs a command.
AUDIT = """
import os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
def hook(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        way = "writes" if (args[2] or 0) & WRITES else "reads"
        os.write(log, f"{way} {os.path.realpath(os.fsdecode(args[0]))}\\n".encode("utf-8", "replace"))
    elif event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "urllib.Request"):
        os.write(log, f"network {event} {args}\\n".encode())
sys.addaudithook(hook)
from satview.__main__ import entry
entry()
"""


# The processes of export have a socket pair of their own.
@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer([name for name in FIRST_COMMANDS if name != "export"], 1))
def test_a_command_opens_and_writes_what_was_named_and_no_address(stranger, tmp_path, name):
    log = tmp_path / "log"
    words = [word.replace("from_event", "from event") for word in COMMANDS[name].split()]
    # -B: in a fresh clone Python writes its byte code beside the modules.
    done = run(["-P", "-B", "-c", AUDIT, str(log)], name, *words, cwd=stranger, home=tmp_path)
    check(stranger, done)
    lines = log.read_text().splitlines()
    assert any(line.startswith("reads ") for line in lines)
    assert [line for line in lines if line.startswith("network")] == []
    outside, temporary = str(stranger.parent), os.path.realpath(tempfile.gettempdir())
    for way, _, path in (line.partition(" ") for line in lines):
        if path.startswith(outside):
            assert path.startswith(f"{stranger}{os.sep}") or path == str(stranger), (way, path)
        if way == "writes":
            named = path.startswith(
                (str(stranger / "new"), str(stranger / ".new"), str(tmp_path), f"{temporary}/satview-")
            )
            # Python tries with an empty file whether the folder of temporary files can be written.
            assert named or path == os.devnull or str(Path(path).parent) == temporary, path


@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer(("info", "report", "export"), 1))
def test_python_m_satview_runs_no_module_of_the_folder(stranger, name):
    """`satview.py` is left out: Python looks for the program itself there before any line of satview runs."""
    folder = stranger.parent / f"as-module-{name}"
    shutil.copytree(stranger, folder, symlinks=True, ignore=shutil.ignore_patterns("satview.py", "fleet"))
    done = run(["-m", "satview"], name, *COMMANDS[name].split(), cwd=folder, home=stranger.parent)
    check(stranger, done)
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.thorough
def test_python_m_satview_threadtrace_imports_nothing_of_the_folder_but_what_the_program_does(stranger, tmp_path):
    folder = tmp_path / "as-module"
    shutil.copytree(stranger, folder, symlinks=True, ignore=shutil.ignore_patterns("satview.py", "fleet"))
    (folder / "program.py").write_text("import helper\nprint(helper.word)\n")
    (folder / "helper.py").write_text("word = 'of the program'\n")
    for words in (["program.py"], ["-m", "program"]):
        done = run(["-m", "satview.threadtrace"], *words, cwd=folder, home=stranger.parent)
        check(stranger, done)
        assert done.stdout == b"of the program\n", done.stderr


AXES = ("relative.sataxis", "whole.sataxis", "linked.sataxis", "disguised.kev", "nasty-path.sataxis")


@pytest.mark.thorough
@pytest.mark.parametrize("file", fewer(AXES, 1))
def test_no_command_opens_what_an_axis_names_outside(stranger, file):
    beside = ["t.kev", "--compare", file, "--screenshot", "new.png"]
    query = ["query", file, "select name from process"]
    for words in fewer((["info", file], query, [file, "--screenshot", "new.png"], beside), 3):
        done = run("script", *words, cwd=stranger, home=stranger.parent)
        check(stranger, done)
        assert done.returncode == 2, done.stderr
        says = done.stderr.decode()
        assert len(says.splitlines()) == 1
        if not file.startswith("nasty"):
            assert "secret.kev outside of its folder, which is not opened unasked" in says
            assert f"`satview together --allow {file}`" in says


@pytest.mark.thorough
def test_a_session_opens_no_file_that_it_names(stranger):
    done = run("script", "t.kev", "--session", "./s.satsession", "--screenshot", "new.png", cwd=stranger,
               home=stranger.parent)  # fmt: skip
    check(stranger, done)


@pytest.mark.thorough
def test_rules_run_no_file_that_they_name(stranger):
    done = run("script", "filter", "t.kev", "-r", "evil.satrules", cwd=stranger, home=stranger.parent)
    check(stranger, done)
    assert "numpy.py is code and was not allowed to run" in done.stderr.decode()


@pytest.fixture(scope="module")
def served(stranger):
    """Let one server in the folder, over pipes, answer all requests; return those to refuse, the others, all answers.

    An answer is (is_error, text). The last of the answers is the list of traces.
    """
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    outside = [str(stranger.parent / "secret.kev"), "../secret.kev", "link.kev", "a\0b", "a\nb", "\u2028"]
    outside += fewer(AXES, 1)
    bad = [(tool, {"trace": name}) for tool in ("look", "verdicts", "late") for name in outside]
    bad += [(tool, {"trace": "t.kev", "timing": name}) for tool in ("late", "verdicts") for name in outside]
    bad += [("why", {"trace": name, "thread": "t-1", "at": "5us"}) for name in outside]
    bad += [("sql", {"trace": name, "query": "select name from process"}) for name in outside]
    bad += [("picture", {"trace": name}) for name in ("whole.sataxis", "link.kev", "a\0b")]
    nasty = ("a\0b", "a\nb", "\x1b[2J", "9" * 40)
    good = {"trace": "t.kev"}
    bad += [("look", {**good, "handle": text}) for text in nasty]
    bad += [("late", {**good, "activity": text}) for text in nasty]
    bad += [("why", {**good, "thread": text, "at": "5us"}) for text in nasty]
    bad += [("why", {**good, "thread": "t-1", "at": text}) for text in nasty[:3]]
    bad += [("sql", {**good, "query": text}) for text in nasty[:3]]
    bad += [("picture", {**good, "range": text}) for text in nasty[:1]]
    fine = [("look", good), ("verdicts", good), ("late", good), ("why", {**good, "thread": "t-1", "at": "5us"}),
            ("sql", {**good, "query": "select * from process"}), ("tables", {}), ("picture", good),
            ("traces", {})]  # fmt: skip

    async def requested():
        scratch = stranger.parent / "scratch"
        scratch.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(stranger.parent), "QT_QPA_PLATFORM": "offscreen",
                       "TMPDIR": str(scratch)}  # fmt: skip
        start = StdioServerParameters(command=str(SCRIPT), args=["mcp", "."], cwd=stranger, env=environment)
        async with mcp.Client(stdio_client(start)) as client:
            answers = [await client.call_tool(name, arguments) for name, arguments in bad + fine]
            return [(bool(answer.is_error), str(answer.content[0])) for answer in answers]

    before = sorted(stranger.rglob("*"))
    answers = anyio.run(requested)
    return SimpleNamespace(bad=bad, fine=fine, answers=answers, before=before, after=sorted(stranger.rglob("*")))


@pytest.mark.thorough
def test_every_tool_of_the_server_stays_in_its_folder(stranger, served):
    count = len(served.bad)
    for (name, arguments), (is_error, text) in zip(served.bad, served.answers[:count], strict=True):
        assert is_error, (name, arguments, text)
        assert SECRET not in text, (name, arguments)
        assert "Traceback" not in text
        assert "ValueError" not in text
        assert "embedded null" not in text, (name, arguments, text)
    for (name, _), (is_error, text) in zip(served.fine, served.answers[count:], strict=True):
        assert not is_error, (name, text)
        assert SECRET not in text
    assert "link.kev" not in served.answers[-1][1]
    assert not (stranger.parent / "ran").exists()


@pytest.mark.thorough
def test_the_server_leaves_no_file(stranger, served):
    """Of the picture that it was asked for, too."""
    assert ("picture", {"trace": "t.kev"}) in served.fine
    assert served.after == served.before
    assert not list((stranger.parent / "scratch").glob("satview-mcp-*"))


@pytest.mark.thorough
def test_the_tools_that_are_tried_are_all(stranger):
    tools = {name for name, value in vars(server.Answers).items() if callable(value) and not name.startswith("_")}
    assert tools - {"path", "trace"} == {"traces", "look", "verdicts", "why", "late", "tables", "sql", "picture"}
