"""`satview records` as users call it."""

import csv
import io
import json

from satview.__main__ import main
from tests.helpers.thread_trace import write_set

TEXT = """
  0 lwp1 t1 mutex_lock 1 16
  1 lwp1 t1 mutex_lock 2 0 0
  5 lwp2 t2 sema_wait 1 48 5
"""


def test_text(tmp_path, capsys):
    assert main(["records", str(write_set(tmp_path, TEXT))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].split() == [
        "0.000", "001", "000", "s", "LWP", "1", "4321:1", "mutex_lock", "2", "rval=0", "blocked=0", "(got", "it", "at",
        "once)", "mutex=0x10", "(from", "the", "first", "record)",
    ]  # fmt: skip


def test_csv_of_one_category(tmp_path, capsys):
    assert main(["records", str(write_set(tmp_path, TEXT)), "--categories", "sema", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["lwp"], row["tid"], row["record"], row["arguments"]) for row in rows] == [
        ("LWP 2", "2", "sema_wait 1", "sema=0x30  s_count=5")
    ]


def test_jsonl_of_one_thread(tmp_path, capsys):
    assert main(["records", str(write_set(tmp_path, TEXT)), "--tid", "2", "--format", "jsonl"]) == 0
    reported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(record["time_ns"], record["arguments"]) for record in reported] == [
        (5000, {"sema": "0x30", "s_count": "5"})
    ]


def test_a_selection_without_records_is_said(tmp_path, capsys):
    path = str(write_set(tmp_path, TEXT))
    for options, code, printed, says in (
        (["--tid", "999"], 1, 0, "no record is of thread 999; there are records of 1, 2"),
        (["--tid", "2", "--tid", "999"], 0, 1, "no record is of thread 999; there are records of 1, 2"),
        (["--tid", "1", "--tid", "2"], 0, 3, ""),
        (["--categories", "cond"], 1, 0, "no record is of cond"),
        (["--categories", "cond", "--tid", "1"], 1, 0, "no record is of thread 1; there is no record"),
    ):
        assert main(["records", path, *options]) == code, options
        found = capsys.readouterr()
        assert (len(found.out.splitlines()), found.err) == (printed, f"satview: {says}\n" if says else ""), options


def test_refusals_and_damage(tmp_path, capsys):
    assert main(["records", str(tmp_path / "none")]) == 2
    write_set(tmp_path, TEXT)
    with (tmp_path / "tr.00010e1.001").open("a") as file:
        file.write("oops\n")
    assert main(["records", str(tmp_path)]) == 1
    assert "tr.00010e1.001, line 3: it has not 13 fields" in capsys.readouterr().err
