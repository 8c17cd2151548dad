"""Any text as the value of any option or argument: a command ends as commands do, and never by an error inside."""

from __future__ import annotations

import argparse

import pytest

from satview.__main__ import main
from satview.viewer_command import whole_parser
from tests.helpers.commands import ROOT, SAMPLE
from tests.helpers.extent import fewer

THREADS = str(ROOT / "sample_traces" / "threads")
LIMITS = ("9" * 25, "\0", "\ud800", "x\udcffy", "--", "a\nb", "", "1e400", "nan", "-1", "#" + "9" * 30, "[", "1" * 400)
VALUES = fewer(LIMITS, 1)
# What a command needs besides the value; the traces are at the second place.
NEEDS = {
    "compare": [str(SAMPLE), str(SAMPLE)],
    "convert": [str(SAMPLE), "new.kev"],
    "export": [str(SAMPLE), "-o", "new.csv"],
    "locks": [THREADS],
    "query": [str(SAMPLE), "select 1"],
    "records": [THREADS],
    "report": [str(SAMPLE), "--pictures", "0", "-o", "new.html"],
    "snapshot": [str(SAMPLE), "--at", "0"],
    "together": [str(SAMPLE), "b.kev", "-o", "new.sataxis"],
    "tracelogger": ["--duration", "0.01", "-f", "new.kev"],
    "trends": ["fleet"],
    "why": [str(SAMPLE), "--thread", "1:1", "--at", "0"],
}
WITHOUT = ("guide", "plugins", "mcp", "catalogue")  # no text, or a server


def commands():
    parser = whole_parser()
    [found] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: each for name, each in found.choices.items() if name not in WITHOUT}


def takes_text(parser):
    for action in parser._actions:
        if not isinstance(action, (argparse._HelpAction, argparse._StoreTrueAction)):
            yield action


@pytest.mark.parametrize("name", sorted(commands()))
def test_any_text_as_any_value(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.kev").write_bytes((ROOT / "sample_traces" / "vendor-five_events.kev").read_bytes())
    needs = NEEDS.get(name, [str(SAMPLE)])
    for action in takes_text(commands()[name]):
        for value in VALUES:
            option = max(action.option_strings, key=len, default="")
            if option:
                words = [name, *needs, f"{option}={value}" if option.startswith("--") else option + value]
            elif value.startswith("-") or not value:
                continue
            else:
                words = [name, *([needs[0]] if action.dest in ("after", "output", "query") else []), value]
            code = main(words)
            said = capsys.readouterr()
            assert code in (0, 1, 2, 3, 4), (words, said.err)
            assert "Traceback" not in said.out + said.err, words
