"""Long work shows a line on a terminal, and only there; Ctrl+C ends it with one line."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.cli.shared import terminal as progress

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
START = (
    "import sys; from satview.__main__ import main; from satview.cli.shared import terminal as progress; "
    "progress.DELAY_S = float(sys.argv.pop(1)); sys.exit(main())"
)
SLOWLY = (
    "import time; from satview.analysis.verdicts import find; look = find._verdicts_of; "
    "find._verdicts_of = lambda *given: (time.sleep(0.3), look(*given))[1]; "
)
ENVIRONMENT = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
ERASED = "\x1b[2K"


class Run:
    """A command whose standard error is a terminal, and whose standard output is a file.

    Attributes:
        seen: What came to the terminal so far.
    """

    def __init__(self, folder, *arguments, delay_s=0.0, stdout=None, start=START):
        self.terminal, theirs = pty.openpty()
        self.out = folder / "stdout"
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", start, str(delay_s), *map(str, arguments)], cwd=folder, env=ENVIRONMENT,
                stdin=subprocess.DEVNULL, stdout=theirs if stdout == "terminal" else out, stderr=theirs,
            )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def read(self, until=None, timeout_s=60.0):
        """Read until a text is there, or the command has closed its terminal."""
        end_s = time.monotonic() + timeout_s
        while until is None or until not in self.seen:
            assert time.monotonic() < end_s, self.seen[-2000:]
            if not select.select([self.terminal], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.terminal, 65536)
            except OSError:  # Linux: nobody has the other end open any more
                data = b""
            if not data:
                break
            self.seen += data.decode("utf-8", "replace")
        return self.seen

    def end(self):
        """Wait for the end; return the exit code, and what the terminal shows then."""
        self.read()
        code = self.process.wait(60)
        os.close(self.terminal)
        return code, shown(self.seen)


def shown(text):
    """Return the lines that are left on a terminal, which carries out carriage returns and `erase line`."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b"):
            row = max(0, row - 1)
        elif part == ERASED:
            lines[row] = ""
        elif not part.startswith("\x1b") and part != "\r":
            lines[row] += part
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("progress") / "long name of a trace.kev"
    assert main(["tracelogger", "--workload", "automotive", "--events", "600000", "-w", "-f", str(path)]) == 0
    return path


COMMANDS = {
    "check": (["check", "{}"], "checking long name of a trace.kev", (0, 1, 3)),
    "stats": (["stats", "{}", "--by", "all", "--format", "json"], "counting in", (0, 1)),
    "export": (["export", "{}", "-o", "new.txt"], "writing new.txt", (0, 1)),
    "query": (["query", "{}", "select count(*) from event"], "querying long name", (0, 1)),
    "transactions": (["transactions", "{}"], "rows", (0, 1)),
    "picture": (["{}", "--screenshot", "new.png"], "drawing long name", (0, 1)),
    "filter": (["filter", "{}", "-e", "duration > 2 us", "-o", "new.kev"], "reading long name", (0, 1)),
    "traceprinter": (["traceprinter", "{}"], "printing long name of a trace.kev", (0, 1)),
    "tracelogger": (["tracelogger", "--workload", "automotive", "-c", "--duration", "4", "-f", "new.kev"],
                    "capturing new.kev", (0, 1)),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_is_there_and_gone(name, trace, tmp_path):
    words, what, codes = COMMANDS[name]
    arguments = [word.format(trace) for word in words]
    run = Run(tmp_path, *arguments, delay_s=0.0)
    code, left = run.end()
    assert code in codes, run.seen
    assert what in run.seen
    assert ERASED in run.seen
    assert not any(what in line for line in left), left
    quiet = subprocess.run([sys.executable, "-P", "-m", "satview", *arguments], cwd=tmp_path, env=ENVIRONMENT,
                           capture_output=True, check=False)  # fmt: skip
    assert quiet.returncode == code
    assert b"\x1b" not in quiet.stderr
    assert what.encode() not in quiet.stderr
    if name != "tracelogger":
        assert run.out.read_bytes() == quiet.stdout, "a terminal beside it changes nothing of the output"


@pytest.mark.thorough
def test_the_share_and_the_time_left_are_shown(trace, tmp_path):
    """Each kind takes longer than the line needs to be drawn, however quick the machine is."""
    run = Run(tmp_path, "check", trace, start=START.replace("sys.exit", SLOWLY + "sys.exit"))
    run.end()
    shares = [int(share) for share in re.findall(r"checking[^\r\n]*?(\d+)%", run.seen)]
    assert shares == sorted(shares)
    assert len(set(shares)) > 2
    assert max(shares) <= 100
    assert re.search(r"\d:\d\d left", run.seen)


IN_STEPS = (
    "export {} -o new.csv", "export {} -o new.parquet", "export {} -o new.arrow", "export {} -o new.jsonl",
    "export {} -o new.json", "export {} -o new.pftrace", "export {} --table all -o new", "export {} --by-class -o new",
    "report {} --pictures 0 -o new.html", "compare {} {}",
)  # fmt: skip


@pytest.mark.parametrize("words", IN_STEPS)
def test_work_in_steps_says_its_share(words, tmp_path, monkeypatch, capsys):
    """Where it is known how much there is to do, the line says how much of it is done."""
    shares = defaultdict(list)
    monkeypatch.setattr(progress._ProgressLine, "report", lambda line, share: shares[line].append(share))
    monkeypatch.chdir(tmp_path)
    sample = str(ROOT / "sample_traces" / "vendor-ker_calls-14.kev")
    assert main([word.format(sample) for word in words.split(" ")]) in (0, 1)
    of_work = [of_line for line, of_line in shares.items() if not line.what.startswith("rea")]
    assert of_work
    assert all(of_line == sorted(of_line) for of_line in of_work)
    assert all(0.5 <= of_line[-1] <= 1.0 for of_line in of_work)


@pytest.mark.thorough
def test_a_report_on_the_same_terminal_is_whole(trace, tmp_path):
    words = ["stats", str(trace), "--by", "event", "--format", "csv"]
    _, left = Run(tmp_path, *words, stdout="terminal").end()
    quiet = subprocess.run([sys.executable, "-P", "-m", "satview", *words], check=False, env=ENVIRONMENT, cwd=tmp_path,
                           capture_output=True)  # fmt: skip
    assert re.sub(r"\s+", " ", " ".join(left)).strip() == re.sub(r"\s+", " ", quiet.stdout.decode()).strip()


@pytest.mark.thorough
def test_what_is_quick_shows_nothing(tmp_path):
    sample = ROOT / "sample_traces" / "vendor-five_events.kev"
    code, left = Run(tmp_path, "info", sample, delay_s=30).end()
    assert (code, left) == (0, [])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["check", "stats", "export", "filter", "traceprinter"])
def test_ctrl_c_ends_it_with_one_line(name, trace, tmp_path):
    words, _, _ = COMMANDS[name]
    run = Run(tmp_path, *[word.format(trace) for word in words])
    run.read(until="reading" if name != "traceprinter" else "printing")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == (130, ["satview: interrupted"])
    assert [path.name for path in tmp_path.iterdir()] == ["stdout"]
