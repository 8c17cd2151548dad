"""SECURITY.md: each of its sentences names the test that holds it, and each of these is there."""

from __future__ import annotations

import re

from tests.helpers.commands import ROOT

NAME = re.compile(r"`(tests/[\w/]+\.py)::(?:(\w+)::)?(test_\w+)`")


def test_every_sentence_names_tests_that_are_there():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = text.split("## What holds it")[1].split("## Reporting")[0]
    rows = [row for row in promises.splitlines() if row.startswith("| ")][2:]
    assert len(rows) >= 12
    for row in rows:
        sentence, tests = row.strip("| ").split(" | ")
        assert sentence.endswith("."), row
        named = NAME.findall(tests)
        assert named, f"no test is named: {row}"
        assert not NAME.sub("", tests).strip(" ,"), f"this is no name of a test: {tests}"
        for file, group, name in named:
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *def {name}\(", source, re.MULTILINE), f"{file} has no {name}"
            assert not group or re.search(rf"^class {group}\b", source, re.MULTILINE), f"{file} has no {group}"


def test_every_package_that_make_installs_is_pinned_with_the_hashes_of_its_files():
    files = sorted(ROOT.glob("requirements*.lock"))
    assert [file.name for file in files] == [
        "requirements-dev.lock", "requirements-docs.lock", "requirements-wheels.lock", "requirements.lock"
    ]  # fmt: skip
    for file in files:
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#", "--"))]
        assert len(packages) > 15
        for line in packages:
            assert re.match(r"[\w.\[\],-]+==[\w.]+ .*--hash=sha256:[0-9a-f]{64}", line), line
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in makefile.splitlines() if "$(PIP)" in line and "pip-tools" not in line]  # make lock
    assert len(installs) >= 6
    assert makefile.count("pip install") == 1, "by $(PIP) only"
    for line in installs:
        assert "-r requirements" in line or "--no-deps" in line or "--no-index" in line, line
