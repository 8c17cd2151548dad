"""The docs say what the code says, and nothing that only holds on somebody's machine."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import satview
from satview.__main__ import command_names

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.thorough
def test_the_page_of_keys_is_current():
    done = subprocess.run([sys.executable, "tools/write_docs.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "a page of docs is older than the code it comes from: run `python tools/write_docs.py`"


def test_every_command_has_a_row_and_an_example():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows, _, examples = page.partition("## Examples")
    for name in command_names():
        assert f"| `satview {name}` |" in rows, name
        assert f"satview {name}" in examples, name


def test_readme_is_one_screen():
    """Two sentences, a story of three pictures, how to install it, where to read on."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 70
    assert sum(line.startswith("![") for line in lines) == 3


def needed_at_run_time():
    """Return the names of all packages that an installed satview brings along here, those of packages included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting, found = list(project["dependencies"]), set()
    while waiting:
        need = Requirement(waiting.pop())
        if need.name not in found and (need.marker is None or need.marker.evaluate({"extra": ""})):
            found.add(need.name)
            waiting += metadata.requires(need.name) or []
    return found


def test_licences_of_all_packages_are_reported(monkeypatch):
    from satview.gui import dialogs

    reported = []
    monkeypatch.setattr(dialogs, "report", lambda _parent, _title, text, **_kind: reported.append(text))
    dialogs.about(None)
    readme = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    packages = needed_at_run_time()
    assert {"numpy", "shiboken6", "mdurl"} <= packages
    for name in packages:
        assert re.search(rf"\b{name}\b", readme, re.IGNORECASE), name
        assert re.search(rf"\b{name}\b", reported[0], re.IGNORECASE), name


def pages():
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "sample_traces" / "README.md"]


def test_files_that_the_pages_for_developers_name_exist():
    homes = ("satview/", "resources/", "tests/", "tools/", "docs/")
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"):
        for text in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            is_short = re.fullmatch(r"[a-z_/]+/\w+\.py", text) and not text.startswith(homes)
            path = f"satview/{text}" if is_short else text  # where the paragraph is about one layer
            if path.startswith(homes) and "NAME" not in path:
                assert list(ROOT.glob(path)), f"{page.name}: {path}"


def test_links_and_pictures_of_the_docs_exist():
    for page in pages():
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_changelog_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(satview.__version__)} - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)
