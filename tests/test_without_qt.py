"""Everything below `satview/session` runs where Qt is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (
    "base", "events", "store", "linkage", "filters", "formats", "timeline", "analysis", "tables", "traceparser",
    "capture", "threadtrace", "export", "report", "fleet", "look", "testing", "cli",
)  # fmt: skip


def run(*command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.complete
def test_tests_of_the_lower_layers_pass():
    """The usual run has them where Qt is: that no layer imports it is shown below, and by the contracts of imports."""
    done = run(
        "-m",
        "pytest",
        "-c",
        "tests/without_qt.ini",
        "--rootdir",
        ".",
        "tests/timeline",
        "tests/formats/test_kev_files.py",
        *(f"tests/cli/test_{name}.py" for name in ("command_line", "info", "stats", "why", "traceprinter", "filter")),
        "-k",
        "not much_of_random",
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.thorough
def test_every_module_below_session_can_be_imported():
    code = f"""
import tests.helpers.without_qt, importlib, pkgutil, satview
from pathlib import Path
count = 0
for layer in {LAYERS!r}:
    package = importlib.import_module(f"satview.{{layer}}")
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)
            count += 1
print(count)
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 60


TRACE = "sample_traces/vendor-all_classes.kev"
COMMANDS = {
    "capture": ("ssh://127.0.0.1:1",),  # where nobody listens
    "target": ("--sdk", "SDK"),
    "targets": (),
    "info": (TRACE, "--json"),
    "traceprinter": ("-f", TRACE),
    "filter": (TRACE, "-e", "event == MSG_SENDV and duration > 1us", "--tracelogger", "--c-program", os.devnull),
    "stats": (TRACE, "--by", "all"),
    "check": (TRACE,),
    "why": ("CAPTURED", "--thread", "low", "--at", "100ms"),
    "snapshot": (TRACE, "--at", "0s"),
    "transactions": (TRACE,),
    "late": (TRACE,),
    "whatif": ("CAPTURED", "--set", "cpus=1"),
    "latencies": (TRACE,),
    "doctor": (TRACE,),
    "convert": (TRACE, os.devnull),
    "catalogue": ("learn", "LISTING"),
    "tracelogger": ("--workload", "inversion", "-f", "CAPTURED"),
    "locks": ("sample_traces/threads",),
    "records": ("sample_traces/threads",),
    "query": (TRACE, "select count(*) from event"),
    "export": (TRACE, "-o", "TABLE"),
    "trends": ("--list",),
    "look": (TRACE,),
    "guide": (),
    "plugins": (),
    "mcp": ("sample_traces",),  # ends with its input
    "compare": (TRACE, TRACE),
    "together": (TRACE, "CAPTURED", "-o", "AXIS"),
    "report": (TRACE, "-o", os.devnull, "--pictures", "0"),
}


@pytest.mark.thorough
def test_every_command_works(tmp_path):
    """One process for all of them: what a command imports when it runs is met as in processes of their own."""
    names = {
        "CAPTURED": str(tmp_path / "captured.kev"),
        "LISTING": str(tmp_path / "listing.txt"),
        "TABLE": str(tmp_path / "t.csv"),
        "AXIS": str(tmp_path / "both.sataxis"),
        "SDK": str(tmp_path / "sdk"),
    }
    order = sorted(COMMANDS, key=lambda name: name != "tracelogger")  # `why` is about what that captures
    lines = [[name, *(names.get(word, word) for word in COMMANDS[name])] for name in order]
    lines.insert(1, ["traceprinter", "-f", TRACE, "-o", names["LISTING"]])
    code = f"""
import tests.helpers.without_qt
from satview.__main__ import command_names, main
assert set(command_names()) == {set(COMMANDS)!r}
print([(line[0], code) for line in {lines!r} if (code := main(line)) not in (0, 1, 3, 4, 2 * (line[0] == "capture"))])
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[]", done.stderr[-3000:]
