"""The docs say what the code says, and nothing that only holds on somebody's machine."""

import re
import subprocess
import sys
from pathlib import Path

from satview.__main__ import command_names

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_keys_is_current():
    done = subprocess.run([sys.executable, "tools/write_docs.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "docs/keys.md or docs/traceevent.md is old: run `python tools/write_docs.py`"


def test_readme_names_every_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in command_names():
        assert f"satview {name}" in readme, name


def test_links_and_pictures_of_the_docs_exist():
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "sample_traces" / "README.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
