"""`satview locks` as users call it."""

import json

from satview.__main__ import main
from tests.helpers.thread_trace import write_set

TEXT = """
  0 lwp1 t1 mutex_lock 1 16
  1 lwp1 t1 mutex_lock 2 0 0
  5 lwp2 t2 mutex_lock 1 16
 10 lwp1 t1 mutex_unlock 0 16 0 1
 12 lwp2 t2 mutex_lock 2 0 1
 20 lwp2 t2 mutex_unlock 0 16 0 0
 21 lwp2 t2 sema_wait 1 48 5
 22 lwp2 t2 sema_wait 2 0
"""


def test_table(tmp_path, capsys):
    assert main(["locks", str(write_set(tmp_path, TEXT)), "--waits", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["", "Locks"]
    words = [" ".join(line.split()) for line in lines]
    assert words[2] == "Kind Address pid Waited Waits Longest Calls Failed Holds Held Longest held Threads"
    assert words[3] == "mutex 0x10 4321 7.000 µs 1 7.000 µs 2 0 2 17.00 µs 9.000 µs 2"
    assert words[4] == "1 lock that no thread waited for: --all lists them too."
    assert words[6:8] == ["Waits", "Thread Call Lock From Length Event"]
    assert words[8] == "pid 4321 2 mutex_lock 0x10 0.000 005 000 s 7.000 µs 3"
    assert len(lines) == 9


def test_all_shows_locks_nobody_waited_for(tmp_path, capsys):
    assert main(["locks", str(write_set(tmp_path, TEXT)), "--all"]) == 0
    printed = capsys.readouterr().out
    assert "0x30" in printed
    assert "no thread waited for" not in printed


def test_json_and_categories(tmp_path, capsys):
    assert main(["locks", str(write_set(tmp_path, TEXT)), "--json", "--categories", "sema"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [(lock["kind"], lock["address"], lock["calls"], lock["waits"]) for lock in reported["locks"]] == [
        ("sema", "0x30", 1, 0)
    ]


def test_several_files_and_damage(tmp_path, capsys):
    write_set(tmp_path, TEXT)
    with (tmp_path / "tr.00010e1.002").open("a") as file:
        file.write("rubbish\n")
    assert main(["locks", str(tmp_path / "tr.00010e1.001"), str(tmp_path / "tr.00010e1.002")]) == 1
    assert "tr.00010e1.002, line 6: it has not 13 fields" in capsys.readouterr().err


def test_refusals(tmp_path, capsys):
    assert main(["locks", str(tmp_path / "none")]) == 2
    assert main(["locks", str(write_set(tmp_path, TEXT)), "--categories", "mutx"]) == 2
    assert main(["locks", str(write_set(tmp_path, TEXT)), "--waits", "-1"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert "did you mean mutex" in errors[1]
    assert errors[2] == "satview: --waits must be at least 0, not -1"
