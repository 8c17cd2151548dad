"""Children are the satview that starts them, and run nothing of the folder that they are started in."""

import json
import shutil
import subprocess
import sys

import pytest

from satview.base.child import child_command, child_environment, run_satview
from satview.base.errors import Cancelled, UsageError
from tests.helpers.commands import ROOT


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, env=child_environment(), capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_a_child_is_the_satview_that_starts_it(tmp_path):
    """A copy in a folder of its own, while another one is installed: the child is the copy."""
    shutil.copytree(ROOT / "satview", tmp_path / "copy" / "satview", ignore=shutil.ignore_patterns("__pycache__"))
    version = tmp_path / "copy" / "satview" / "__init__.py"
    version.write_text(version.read_text().replace('__version__ = "', '__version__ = "copy of ', 1))
    (tmp_path / "copy" / "numpy.py").write_text("raise SystemExit('the folder of the copy is on the path')")
    shutil.copytree(ROOT / "resources", tmp_path / "copy" / "resources")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'copy')!r}); sys.modules['numpy'] = None; "
        "from satview.base.child import child_command; "
        "import json; print(json.dumps(child_command('satview.__main__:entry', '--version', '--verbose')))"
    )
    command = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True).stdout
    done = run(json.loads(command), tmp_path)
    assert done.stdout.startswith("satview copy of "), done.stderr
    assert "numpy " in done.stdout


def test_a_child_runs_no_module_of_the_folder(tmp_path):
    for name in ("satview", "numpy", "datetime", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"print('{name} of the folder')")
    done = run(child_command("satview.__main__:entry", "--version"), tmp_path)
    assert done.stdout.startswith("satview "), done.stderr
    assert "of the folder" not in done.stdout


@pytest.mark.thorough
def test_a_command_that_takes_too_long_is_ended_and_one_that_fails_says_why(tmp_path):
    endless = ["tracelogger", "--workload", "automotive", "-s", "100000", "-f", str(tmp_path / "endless.kev")]
    with pytest.raises(UsageError, match=r"satview did not end within 0\.2 s"):
        run_satview(endless, 0.2)
    with pytest.raises(Cancelled):
        run_satview(endless, 60, lambda: True)
    with pytest.raises(UsageError, match=r"missing\.kev: there is no such file"):
        run_satview(["info", str(tmp_path / "missing.kev")], 60)
    assert run_satview(["--version"], 60).startswith("satview ")
