"""Everything below `satview/session` runs where Qt is not installed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (
    "base",
    "events",
    "store",
    "linkage",
    "filters",
    "formats",
    "timeline",
    "analysis",
    "tables",
    "traceparser",
    "capture",
    "threadtrace",
    "export",
    "cli",
)


def run(*command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def test_tests_of_the_lower_layers_pass():
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
        "not 64_mb",
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_every_module_below_session_can_be_imported():
    code = f"""
import tests.helpers.without_qt, importlib, pkgutil, satview
from pathlib import Path
count = 0
for layer in {LAYERS!r}:
    package = importlib.import_module(f"satview.{{layer}}")
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)
            count += 1
print(count)
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 60


def test_commands_work():
    done = run(
        "-c",
        "import tests.helpers.without_qt, sys; from satview.__main__ import main; "
        "sys.exit(main(['info', 'sample_traces/vendor-all_classes.kev', '--json']))",
    )
    assert done.returncode == 0, done.stderr
    assert '"events": 35' in done.stdout
