"""The pages of the site: the tutorial runs as written, the reference names everything."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import satview
from satview.__main__ import command_names, main
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.filters.expressions.nodes import FUNCTIONS
from satview.filters.expressions.semantics import FIELDS
from tools import write_site

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.thorough
def test_the_tutorial_runs_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # What follows is run by test_doc_blocks.
    page, _, _ = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").partition("## 7.")
    said = {}
    for line in re.findall(r"(?m)^satview (.+)$", page):
        words = shlex.split(line)
        if words[0] in command_names():
            found = 3 if line == "check inversion.kev" else 0
            assert main(words) == found, line
            said[line] = capsys.readouterr().out
    assert "568 events" in said["stats inversion.kev --by thread"]
    assert "68.09 ms" in said["stats inversion.kev --by thread"]
    steps = said["why inversion.kev --thread high --at 150ms"]
    assert steps.index("mutex") < steps.index("low") < steps.index("middle")
    for quoted in re.findall(r"(?m)^error: .*|waits 34.06 ms from 0.136 994 s for mutex 0x8129e40", page):
        assert quoted in said["check inversion.kev"]
    assert "inversion" not in said["check inheritance.kev"].replace("priority-inversion", "")


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("events.md", ["THRUNNING", "SND_MESSAGE", "INT_ENTR"]),
        ("expressions.md", [*FIELDS, *FUNCTIONS]),
        ("commands.md", [f"## satview {name}" for name in command_names()]),
        ("python.md", [f"satview.{name}" for name in satview.__all__]),
    ],
)
def test_the_reference_names_everything(page, names):
    text = write_site.REFERENCE[page]()
    assert [name for name in names if name not in text] == []


def test_the_reference_has_every_kernel_call():
    text = write_site.kernel_calls_page()
    book = catalogue(Release.QNX_8)
    calls = {book.name(code) for code in book.codes() if book.class_name(code) == "KER_CALL"}
    assert len(calls) > 80
    assert [name for name in calls if f"`{name}`" not in text] == []


def test_no_table_breaks():
    """A cell with a bar or a line break would shift the columns behind it."""
    for page in (write_site.events_page(), write_site.kernel_calls_page(), write_site.expressions_page()):
        widths = {}
        for line in page.splitlines():
            if line.startswith("|"):
                count = len(re.findall(r"(?<!\\)\|", line))
                assert count == widths.setdefault("now", count), line
            else:
                widths.clear()


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in nav, page.name
    for name in write_site.REFERENCE:
        assert f": reference/{name}\n" in nav
