"""Benchmarks are not part of the test run, but each can be listed, so all of them can be imported."""

from __future__ import annotations

from tests.benchmarks.__main__ import main


def test_all_are_listed_with_what_they_measure(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tests.benchmarks"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    titles = dict(line.split(None, 1) for line in lines)
    assert {"load", "frames", "links", "statistics", "tables", "all"} <= set(titles)
    assert all(title.endswith(".") for title in titles.values())
