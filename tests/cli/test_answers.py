"""docs/answers.md shows what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.__main__ import main

PAGE = Path(__file__).parents[2] / "docs" / "answers.md"


def examples() -> list[list[str]]:
    """Return the lines of every example that begins with a command."""
    found: list[list[str]] = []
    block: list[str] | None = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            if block and block[0].startswith("$ "):
                found.append(block)
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
    return found


@pytest.mark.parametrize("lines", examples(), ids=lambda lines: lines[0].split()[4])
def test_commands_print_what_the_page_shows(lines, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed = []
    for line in lines:
        if line.startswith("$ "):
            printed.append(line)
            assert main(line.split()[2:]) in (0, 1, 3)
            printed += capsys.readouterr().out.rstrip("\n").splitlines()
    assert printed == lines


def test_there_are_examples():
    assert len(examples()) >= 4
    commands = {line.split()[2] for lines in examples() for line in lines if line.startswith("$ ")}
    assert commands == {"tracelogger", "check", "why"}
