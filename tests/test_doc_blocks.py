"""Every fenced block of README, CONTRIBUTING and docs runs as written, on the files its page names or makes.

A page is a folder of its own, in which its blocks run one after the other. What follows a line `$ command` is what that
command prints; `...` stands for any text, a line of it for any lines.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import satview as package
from satview.__main__ import command_names
from satview.events.spec import Release
from satview.filters.expressions.expression import validate
from satview.filters.rules.text import check_rules
from tests.helpers.commands import satview

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([a-z]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BOOT = "satview tracelogger --workload automotive -s 2 -f boot.kev"
IN = "satview tracelogger --workload automotive -w -s 4 -f IN.kev"
INVERSION = "satview tracelogger --workload inversion -w -f inversion.kev"
PLANNER = (
    'python -c "from pathlib import Path; from tests.helpers.elf import write_elf; '
    "write_elf(Path('build/planner'), {'plan': (0x8049000, 0x100)})\""
)
PIDIN = "python -c \"print('pid name', '1 procnto', sep=chr(10), file=open('board.txt', 'w'))\""
# What a page takes for granted: the README's first trace, or one that its text describes.
PREPARED = {
    "docs/commands.md": [BOOT, "satview convert boot.kev changed.kev"],
    "docs/python.md": [BOOT],
    "docs/comparing.md": [BOOT.replace("boot", "host"), BOOT.replace("boot.kev", "guest.kev --seed 2")],
    "docs/filters.md": [IN],
    "docs/fleet.md": ["mkdir nightly", BOOT.replace("boot", "nightly/a"),
                      BOOT.replace("boot.kev", "nightly/b.kev --seed 2")],
    "docs/lanes.md": ["satview tracelogger --workload instrumented -f run.kev", PLANNER, PIDIN],
    "docs/terminal.md": [INVERSION],
    "docs/threadtrace.md": ["cp sample_traces/threads_program.py program.py"],
    "docs/from-traceprinter.md": [BOOT],
    "docs/measuring.md": [BOOT],
    "docs/statistics.md": [BOOT],
    "docs/tables.md": [BOOT],
    "docs/transactions.md": [BOOT],
}  # fmt: skip
# By the beginning of a line or a block: why it is not run here.
NOT_RUN = {
    "usage: satview": "the help of the viewer, which tools/write_docs.py writes from its parser",
    "make ": "sets up an environment of its own, or is what runs this test",
    "gui | cli": "a picture of the layers, which tests/test_sources.py and import-linter hold",
    "satview mcp": "a server; tests/look/test_server.py",
    "satview fleet   ": "a window; tests/gui/test_trends.py",
    "satview boot.kev --session": "a session that somebody has saved; tests/gui/test_saved_sessions.py",
    "satview --follow": "does not end; tests/gui/test_follow.py",
    "satview together host.kev guest.dat": "needs a trace of trace-cmd; tests/formats/test_axis.py",
    "satview both.sataxis": "a window, and a second command in its comment",
    "satview tracelogger [options]": "a summary of options",
    "satview capture ssh": "needs a board; tests/target",
    "satview capture rig": "needs a board with a name; tests/target",
    "satview capture host": "needs two boards; tests/target",
    "ssh root@board": "needs a board; tests/formats/test_pidin.py",
    "seconds:nanoseconds": "a line of the format of thread traces; tests/formats/test_unixware.py",
    "static int on_send": "C for the vendor's library, which is not here",
    "$ pytest --kev": "names a nightly trace that nobody has; tests/testing/test_plugin.py",
    "# Polars": "needs Spark in its second half; tests/fleet/test_fleet.py reads with polars",
    "from satview.testing.units": "needs a project of its own; tests/testing/test_plugin.py",
    "from satview.fleet.export": "needs dask; tests/fleet/test_cluster.py",
}  # fmt: skip
FOUND_SOMETHING, UNDECIDED = 3, 4


def blocks(page):
    """Return (language, text) of the blocks of a page."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def is_left_out(text):
    return any(text.startswith(begin) for begin in NOT_RUN)


class Page:
    """A page in a folder of its own.

    Attributes:
        names: What its blocks in Python have named so far.
        timing: What its blocks have said of activities so far.
    """

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.background = []
        self.names = {"__name__": "page"}
        self.timing = ""

    def close(self):
        for process in self.background:
            process.kill()
            process.communicate()

    def run(self):
        (self.folder / "your_script.py").write_text("import sys; print(len(sys.stdin.readlines()))")
        (self.folder / "timing.toml").write_text('["control-10ms"]\ndeadline = "10 ms"\n')
        for _, text in blocks(self.page):
            if text.startswith("ADDALLCLASSES"):  # the rules that commands before and after it name
                (self.folder / "mine.satrules").write_text(text, encoding="utf-8")
        for command in PREPARED.get(name_of(self.page), ()):
            self.command(command)
        for language, text in blocks(self.page):
            if not is_left_out(text):
                getattr(self, f"run_{language or 'plain'}")(text)

    # ---- commands ------------------------------------------------------------------------------------------------

    def command(self, line):
        """Run a command as a shell does; return what it prints."""
        line = re.sub(r"\s+#\s.*", "", line)
        *assigned, line = re.match(r"((?:[A-Z_]+=\S+ )*)(.*)", line).groups()
        environment = {**ENVIRONMENT, **dict(part.split("=", 1) for part in assigned[0].split())}
        if "|" in shlex.split(line):
            line, _, reader = line.partition(" | ")
            done = subprocess.run(self.words(reader), input=self.command(line).encode(), capture_output=True,
                                  cwd=self.folder, env=environment, check=False)  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout.decode()
        words = shlex.split(line)
        if words[-1] == "&":
            self.background.append(subprocess.Popen(
                [sys.executable, "-P", "-m", *words[:-1]], cwd=self.folder, env=environment, stdout=subprocess.PIPE
            ))  # fmt: skip
            return self.background[-1].stdout.readline().decode()  # it says when it is ready
        if words[0] == "satview" and words[1] not in (*command_names(), "--print-completion"):
            if "--screenshot" not in words:  # of a window a picture, so that all that the line says is carried out
                words += ["--screenshot", "window.png", "--size", "800x600"]
            done = subprocess.run([sys.executable, "-P", "-m", *words], cwd=self.folder, env=environment,
                                  capture_output=True, check=False)  # fmt: skip
        elif words[0] == "satview":
            done = satview(*words[1:], cwd=self.folder, env=environment)
        else:
            done = subprocess.run(self.words(line), cwd=self.folder, env=environment, capture_output=True, check=False)
        # A capture whose threads wait for ever ends with 1: that is what some workloads teach.
        fine = {"check": (0, FOUND_SOMETHING, UNDECIDED), "tracelogger": (0, 1)}.get(words[1], (0,))
        if "pytest" in words:  # a claim that fails, and the same one that holds later: the page shows which
            fine = (0, 1)
        if "--c-program" in words:  # with #error lines, where an event handler is not given what a rule asks for
            fine = (0, 1)
        assert done.returncode in fine, (line, done.stderr.decode()[-2000:])
        assert b"Traceback" not in done.stderr
        return done.stdout.decode()

    @staticmethod
    def words(line):
        words = shlex.split(line)
        return [sys.executable, *words[1:]] if words[0] == "python" else words

    def run_plain(self, text):
        first = text.lstrip().split(None, 1)[0]
        if text.startswith("$ "):
            self.compare(text)
        elif first in ("satview", "python") or re.match(r"[A-Z_]+=", first):
            for line in text.splitlines():
                if not is_left_out(line):
                    self.command(line)
        elif first.isupper() or first == "#":
            _, faults = check_rules(text, Release.QNX_7, {"devb-ahci": (1,)})
            assert not faults
        elif first.startswith("{"):
            json.loads(text)
        else:
            for line in text.splitlines():
                assert validate(line, Release.QNX_7) is None, line

    def compare(self, text):
        """Run the commands of a block and compare what they print."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            assert_printed(self.command(command), expected)

    def run_text(self, text):
        """What the command before it printed, a part of it."""
        self.compare(f"$ satview check inversion.kev\n...\n{text}...\n")

    # ---- languages -----------------------------------------------------------------------------------------------

    def run_python(self, text):
        if '"""' in text[:4] and "CPUS" in text:  # a workload, which the next block runs
            (self.folder / "mine.py").write_text(text, encoding="utf-8")
            return
        if '"""' in text[:4] and "def test_" in text:  # claims, which the next block runs
            (self.folder / "test_control.py").write_text(text, encoding="utf-8")
            return
        printed = io.StringIO()
        self.names.setdefault("satview", package)
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(text, name_of(self.page), "exec"), self.names)
        if re.search(r"^(for .*|with .*)?\s*print\(", text, re.MULTILINE) and "def main" not in text:
            assert printed.getvalue(), f"{name_of(self.page)} prints nothing:\n{text}"

    def run_toml(self, text):
        if "entry-points" in text:  # of another package
            tomllib.loads(text)
            return
        if "ssh://" in text:
            (self.folder / "targets.toml").write_text(text, encoding="utf-8")
            assert self.command("satview targets --targets targets.toml").startswith("rig  ssh://")
            return
        if text.startswith("cpus = "):  # changes to a replay
            (self.folder / "changes.toml").write_text(text, encoding="utf-8")
            self.command("satview whatif wide.kev --changes changes.toml")
            return
        if any(word in text for word in ("deadline", "chain", "cpus")):  # of timing: for later blocks, all of it
            self.timing += text
            (self.folder / "timing.toml").write_text(self.timing, encoding="utf-8")
            return
        (self.folder / "thresholds.toml").write_text(text, encoding="utf-8")
        self.command(f"satview check {next(self.folder.glob('*.kev')).name} --rules thresholds.toml")

    def run_json(self, text):
        json.loads(text)

    def run_xml(self, text):
        from satview.formats.user_event_file import read_user_events

        path = self.folder / "user.xml"
        path.write_text(text, encoding="utf-8")
        assert ET.fromstring(text).tag == "eventdefinitions"
        assert read_user_events(path)

    def run_sql(self, text):
        import duckdb

        with contextlib.chdir(self.folder):
            assert duckdb.sql(text).fetchall()


def assert_printed(printed, expected):
    """Compare what a command printed with what its page shows."""
    lines = expected.rstrip("\n").split("\n") if expected.strip() else []
    text = [re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"[ ]*\n" for line in lines]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else one for line, one in zip(lines, text, strict=True))
    shown = printed.rstrip("\n") + "\n" if printed.strip() else ""
    assert re.fullmatch(pattern, shown), f"the page shows\n{expected}\nprinted is\n{printed}"


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks_run(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_traces", tmp_path / "sample_traces")
    with tempfile.TemporaryDirectory(prefix="sv") as folder:  # short enough for a socket
        monkeypatch.setitem(ENVIRONMENT, "XDG_RUNTIME_DIR", folder)
        shown = Page(page, tmp_path)
        try:
            shown.run()
        finally:
            shown.close()


def test_what_is_left_out_is_there():
    texts = [text for page in PAGES for _, text in blocks(page)]
    lines = [line for text in texts for line in (text, *text.splitlines())]
    for begin in NOT_RUN:
        assert any(line.startswith(begin) for line in lines), begin


def test_other_output_than_shown_is_noticed():
    assert_printed("a\nb 12\nc\n", "a\n...\n")
    assert_printed("a\nb 12\nc\n", "a\nb ...\nc\n")
    for expected in ("a\nb 12\n", "a\nb 1\nc\n", "a\n...\nd\n"):
        with pytest.raises(AssertionError, match="the page shows"):
            assert_printed("a\nb 12\nc\n", expected)
