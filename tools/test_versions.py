"""Runs tests with the lowest or the newest versions of every dependency that pyproject.toml allows.

`python tools/test_versions.py lowest|newest [--python 3.12 ...] [--list] [TEST ...]`

Each Python that runs as `python3.N` (with pyenv: PYENV_VERSION=3.11.7:3.12.1:3.13.0) gets an environment of its own in
.make-state/; it is made again when pyproject.toml has other versions. Newest means: newest in the package index on
the day the environment is made (remove the folder to look again). Without TEST the files of TESTS run, which use every
dependency.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / ".make-state"
PYTHONS = ("3.11", "3.12", "3.13")
# Linters and type checkers say something else in every version; they are pinned by requirements.lock.
TOOLS = ("pytest", "pytest-qt", "hypothesis", "psutil", "pandas", "polars", "perfetto")
TESTS = (
    "tests/formats/test_kev_files.py",
    "tests/formats/test_payload_structs.py",    # construct
    "tests/formats/test_symbols.py",            # pyelftools
    "tests/formats/test_traceprinter.py",
    "tests/formats/test_changing_files.py",     # zstandard
    "tests/formats/test_linux.py",              # perfetto, zstandard
    "tests/analysis/test_statistics.py",        # numpy
    "tests/cli/test_stats.py",                  # rich
    "tests/cli/test_completion.py",             # shtab
    "tests/session/test_settings.py",           # platformdirs
    "tests/session/test_workspace_file.py",     # msgspec
    "tests/tables/test_tables.py",              # pyarrow, pandas, polars
    "tests/tables/test_sql.py",                 # duckdb
    "tests/tables/test_perfetto.py",            # perfetto
    "tests/fleet/test_fleet.py",                # dask, distributed
    "tests/look/test_server.py",                # mcp
    "tests/testing/test_plugin.py",             # pytest
    "tests/test_main.py",
    "tests/gui/test_main_window.py",
    "tests/gui/test_panels.py",
    "tests/gui/test_plots.py",                  # pyqtgraph
    "tests/gui/test_plugins.py",                # hatchling
    "tests/gui/test_stored_workspace.py",
    "tests/gui/test_ten_tasks.py",
    "tests/gui/test_filter_panel.py",
    "tests/gui/test_swimlane_pixels.py",
    "tests/gui/test_welcome.py",
)  # fmt: skip


def requirements(python: str) -> dict[str, SpecifierSet]:
    """Return package to allowed versions, of what satview and its tests need on a Python such as `3.12`."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = content["project"]
    extras = project["optional-dependencies"]
    tools = [Requirement(line) for line in extras["dev"]]
    requested = [
        Requirement(line) for line in (*project["dependencies"], *extras["tables"], *extras["dask"], *extras["mcp"])
    ]
    requested = [need for need in requested if need.name != "satview"]  # an extra that is part of another
    requested += [tool for tool in tools if tool.name in TOOLS]
    requested += map(Requirement, content["build-system"]["requires"])  # with which tests make plug-ins
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    found: dict[str, SpecifierSet] = {}
    for need in requested:
        if need.marker is None or need.marker.evaluate(there):
            found[need.name] = found.get(need.name, SpecifierSet()) & need.specifier
    return found


def lowest(name: str, allowed: SpecifierSet) -> str:
    """Return the requirement of a package's lowest allowed version.

    Raises:
        ValueError: No lower bound is given.
    """
    bounds = [Version(each.version) for each in allowed if each.operator == ">="]
    if not bounds:
        raise ValueError(f"{name} has no lowest version")
    return f"{name}=={max(bounds)}"


def newest(name: str, allowed: SpecifierSet) -> str:
    """Return the requirement of a package; pip takes the newest version that it allows."""
    return f"{name}{allowed}"


def interpreter(python: str) -> str | None:
    """Return the command that runs a Python, or None.

    The command may be there and still not run it: version managers have one for every Python that they know.
    """
    for command in (shutil.which(f"python{python}"), sys.executable):
        if command is None:
            continue
        requested = [command, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(requested, capture_output=True, text=True, check=False)
        if done.stdout.strip() == python:
            return command
    return None


def environment(which: str, python: str, command: str, needs: list[str]) -> Path:
    """Return the interpreter of an environment that has satview and exactly these packages; make it if need be."""
    folder = STATE / f"{which}-{python}"
    stamp, needed = folder / "needs.txt", "\n".join(sorted(needs)) + "\n"
    inside = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != needed:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([command, "-m", "venv", str(folder)], check=True)
        pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *needs], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", str(ROOT)], check=True)
        stamp.write_text(needed, encoding="utf-8")
    return inside


def run(which: str, python: str, tests: list[str], *, only_list: bool) -> bool:
    """Run the tests on one Python; return False if they fail."""
    pin = {"lowest": lowest, "newest": newest}[which]
    needs = [pin(name, allowed) for name, allowed in requirements(python).items()]
    print(f"Python {python}, {which}: {', '.join(needs)}", flush=True)
    if only_list:
        return True
    command = interpreter(python)
    if command is None:
        print(f"Python {python} is not here: not tested", flush=True)
        return True
    inside = environment(which, python, command, needs)
    words = [str(inside), "-m", "pytest", "--thorough", "-p", "no:cacheprovider", *(tests or TESTS)]
    surroundings = {"QT_QPA_PLATFORM": "offscreen", **os.environ}
    return subprocess.run(words, cwd=ROOT, env=surroundings, check=False).returncode == 0


def main() -> int:
    """Test one Python after the other; 1 if one of them fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("which", choices=("lowest", "newest"))
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only this one; may be given again")
    parser.add_argument("--list", action="store_true", help="print the versions only")
    options = parser.parse_intermixed_args()
    passed = [run(options.which, python, options.tests, only_list=options.list) for python in options.python or PYTHONS]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
