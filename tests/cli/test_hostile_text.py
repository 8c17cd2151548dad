"""Names of a trace reach terminals and spreadsheets as text."""

from __future__ import annotations

import csv
import io
import json

import pytest

from satview.__main__ import main
from satview.base.safe_text import counted, csv_text, html_text, menu_text, tool_tip, visible, visible_line
from tests.helpers.kev import TraceBuilder

HOSTILE = "=cmd()\x1b]0;x\x07[bold]a\n\u202eb\x9b2J"


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 2, HOSTILE).thread_name(2, 2, 1, HOSTILE)
    for time in range(10, 100, 10):
        builder.state(("RUNNING", "READY")[time // 10 % 2], time, 2, 1)
    return str(builder.call(11, 105, (1, 2)).exit(11, 109).write(tmp_path / "t.kev"))


@pytest.mark.parametrize(
    "command",
    [
        "info",
        "info --json",
        "stats",
        "stats --by all",
        "stats --by process --format csv",
        "stats --format json",
        "traceprinter --format csv",
        "traceprinter --format jsonl",
        "filter --would-capture",
    ],
)
def test_no_control_character_reaches_the_terminal(trace, command, capsys):
    name, *options = command.split()
    assert main([name, trace, *options]) == 0
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\x00\r")
    if "json" not in command:
        assert "\u202e" not in out


def test_names_show_in_full_and_as_text(trace, capsys):
    assert main(["stats", trace]) == 0
    assert r"=cmd()\x1b]0;x\x07[bold]a\n\u202eb" in capsys.readouterr().out


def test_no_cell_of_a_table_is_a_formula(trace, capsys):
    for sheet in ("process", "thread"):
        assert main(["stats", trace, "--by", sheet, "--format", "csv"]) == 0
        cells = [cell for row in csv.reader(io.StringIO(capsys.readouterr().out)) for cell in row]
        assert any("cmd()" in cell for cell in cells)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_json_keeps_the_name_itself(trace, capsys):
    assert main(["stats", trace, "--by", "process", "--format", "json"]) == 0
    assert HOSTILE in {row["process"] for row in json.loads(capsys.readouterr().out)["process"]}


@pytest.mark.parametrize(
    ("function", "text", "shown"),
    [
        (visible, "a\x1b[2J\tb\nc\u202ed", "a\\x1b[2J\tb\nc\\u202ed"),
        (visible, "\ud800\udc80\U000e0041", "\\ud800\\x80\\U000e0041"),
        (visible, "caf\xe9 \u05d0", "caf\xe9 \u05d0"),
        (visible_line, "a\r\nb", "a\\r\\nb"),
        (html_text, "<a>&\n", "&lt;a&gt;&amp;<br>"),
        (tool_tip, "a & b", "a & b"),
        (tool_tip, "<img>", '<span style="white-space: pre-wrap">&lt;img&gt;</span>'),
        (menu_text, "a&b\tc", "a&&b\\tc"),
        (csv_text, "=1", "'=1"),
        (csv_text, " \uff1d1", "' \uff1d1"),
        (csv_text, "a\nb", "a b"),
        (csv_text, "a=1", "a=1"),
    ],
)
def test_each_medium(function, text, shown):
    assert function(text) == shown


def test_counts_have_the_plural_of_their_noun():
    counts = [counted(count, noun) for noun in ("event", "quiet process") for count in (0, 1, -1, 2_000)]
    assert counts[:4] == ["0 events", "1 event", "-1 event", "2,000 events"]
    assert counts[4:] == ["0 quiet processes", "1 quiet process", "-1 quiet process", "2,000 quiet processes"]
