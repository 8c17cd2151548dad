"""Gathers the pages of the site in out/docs: those of docs/, and a reference written from the code and the catalogue.

`python tools/write_site.py`, then `mkdocs build`; `make docs` does both. Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import satview
from satview.cli.shared.files import actions
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Field, Release
from satview.filters.expressions.nodes import FUNCTIONS
from satview.filters.expressions.semantics import FIELDS
from satview.viewer_command import whole_parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "out" / "docs"
WIDTH = 100  # of help texts, whatever the terminal is
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    return [*lines, *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows), ""]


def _list(fields: tuple[Field, ...] | None) -> str:
    """Return an argument list as a cell."""
    if fields is None:
        return "not known"
    return ", ".join(f"`{field.name}`{'' if field.is_sure else '?'}" for field in fields) or "none"


def _specs() -> dict[str, dict[str, tuple[EventSpec, list[str]]]]:
    """Return class to event to its newest row, with the releases that have it."""
    found: dict[str, dict[str, tuple[EventSpec, list[str]]]] = {}
    for release in RELEASES:
        book = catalogue(release)
        for code in book.codes():
            spec = book.spec(code)
            events = found.setdefault(spec.class_name, {})
            releases = events[spec.name][1] if spec.name in events else []
            if release.value not in releases:
                releases.append(release.value)
            events[spec.name] = (spec, releases)
    return found


def events_page() -> str:
    """Return every event by class, but for those of kernel calls."""
    lines = ["# Events", "", "Arguments are those of the newest release; `?` marks a notation that was inferred.", ""]
    for name, events in _specs().items():
        if name not in ("KER_CALL", "KER_EXIT", "INT_CALL"):
            lines += [f"## {name}", ""]
            lines += _table(("Event", "Fast", "Wide", "Releases", "When"), [
                (f"`{spec.name}`", _list(spec.fast), _list(spec.wide), ", ".join(releases), spec.when)
                for spec, releases in events.values()])  # fmt: skip
    return "\n".join(lines)


def kernel_calls_page() -> str:
    """Return every kernel call with the arguments of its entry and exit."""
    specs = _specs()
    rows = []
    for name, (spec, releases) in sorted(specs["KER_CALL"].items()):
        leaves = specs["KER_EXIT"].get(name)
        rows.append((f"`{name}`", ", ".join(f"{call}()" for call in spec.calls), _list(spec.fast), _list(spec.wide),
                     _list(leaves[0].wide) if leaves else "", ", ".join(releases)))  # fmt: skip
    titles = ("Kernel call", "Functions", "Entry, fast", "Entry, wide", "Exit, wide", "Releases")
    return "\n".join(["# Kernel calls", "", *_table(titles, rows)])


def expressions_page() -> str:
    """Return the fields and functions of conditions."""
    fields = [(f"`{name}`", spec.kind.value, spec.help, spec.known.value) for name, spec in FIELDS.items()]
    lines = ["# Expressions", "", "How conditions are combined: [filters](../filters.md).", "", "## Fields", ""]
    lines += _table(("Field", "Holds", "Means", "Known"), fields)
    functions = [(f"`{name}`", spec.help) for name, spec in FUNCTIONS.items()]
    return "\n".join([*lines, "## Functions", "", *_table(("Function", "Means"), functions)])


def commands_page() -> str:
    """Return the help of every command."""
    os.environ["COLUMNS"] = str(WIDTH)
    whole = whole_parser()
    lines = ["# Commands", "", "## satview", "", "```text", whole.format_help().rstrip(), "```", ""]
    for action in actions(whole):
        if isinstance(action, argparse._SubParsersAction) and action.dest == "command":
            for name, parser in action.choices.items():
                lines += [f"## satview {name}", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def _members(thing: type) -> list[str]:
    lines = []
    for name, member in vars(thing).items():
        text = inspect.getdoc(member.fget if isinstance(member, property) else member)
        is_own = isinstance(member, property) or inspect.isfunction(member)
        if not name.startswith("_") and is_own and text:
            lines += [f"### `{thing.__name__}.{name}`", ""]
            if not isinstance(member, property):
                lines += _signature(name, member)
            lines += [_docstring(text), ""]
    return lines


def _signature(name: str, function: Callable[..., object]) -> list[str]:
    """Return how a function is called, as lines of a page; annotations are text here, without their quotes."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    return ["```python", f"{name}{re.sub(r'^[(]self(, )?', '(', text)}", "```", ""]


def _docstring(text: str) -> str:
    """Return a docstring as text of a page: its sections are lists."""
    return re.sub(
        r"(?m)^(Args|Returns|Raises|Attributes|Signals|Yields):\n((?:[ ].*\n?|\n)+)",
        lambda found: f"**{found[1]}**\n\n{_entries(inspect.cleandoc(found[2]))}\n",
        text + "\n",
    )


def _entries(section: str) -> str:
    """Return a section of a docstring as a list: an entry begins where a line is not indented."""
    entries = re.split(r"\n(?! )", section)
    joined = [" ".join(part.strip() for part in entry.split("\n")) for entry in entries if entry.strip()]
    named = [re.sub(r"^([\w, .]+): ", r"`\1`: ", entry) for entry in joined]
    return "".join(f"* {entry}\n" for entry in named)


def python_page() -> str:
    """Return the public Python API with its docstrings."""
    lines = ["# Python API", "", "```text", inspect.getdoc(satview) or "", "```", ""]
    for name in satview.__all__:
        thing = getattr(satview, name)
        lines += [f"## `satview.{name}`", ""]
        if not inspect.isclass(thing):
            lines += _signature(f"satview.{name}", thing)
        lines += [_docstring(inspect.getdoc(thing) or ""), ""]
        if inspect.isclass(thing):
            lines += _members(thing)
    return "\n".join(lines)


REFERENCE: dict[str, Callable[[], str]] = {
    "events.md": events_page,
    "kernel-calls.md": kernel_calls_page,
    "expressions.md": expressions_page,
    "commands.md": commands_page,
    "python.md": python_page,
}


def _moved(text: str) -> str:
    """Return a page of the project's own folder with links as they are from the folder of docs."""
    return re.sub(r"\]\(docs/", "](", text).replace("](README.md", "](index.md")


def main() -> int:
    """Write all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    (PAGES / "index.md").write_text(_moved((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        (PAGES / name).write_text(_moved((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("](../README.md)", "](index.md)"), encoding="utf-8")
    (PAGES / "reference").mkdir()
    for name, page in REFERENCE.items():
        (PAGES / "reference" / name).write_text(page().rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
