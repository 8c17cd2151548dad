from __future__ import annotations

import os

import pytest

from satview import __main__ as entry_module
from satview.__main__ import command_names, main


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in command_names():
        assert f" {name} " in text
    lines = text.splitlines()
    assert len(lines) <= 50, "one screen"
    assert max(map(len, lines)) <= 88
    assert main(["--help-all"]) == 0
    assert "--palette" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("satview ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-option"],
        ["a.kev", "--debug=nonsense"],
        ["--range", "1s..2s"],
        ["a.kev", "b.kev", "--screenshot", "x.png"],
    ],
)
def test_bad_use_is_code_two(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err


@pytest.mark.thorough
def test_a_command_is_imported_only_when_requested():
    import subprocess
    import sys

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; import satview.__main__ as m; m.command_names();"
            "commands = [name for name in sys.modules if name.startswith('satview.cli.') and '.shared' not in name];"
            "print(commands, 'PySide6' in sys.modules, 'numpy' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[] False False"


def test_numpy_starts_no_threads_for_matrices(monkeypatch):
    monkeypatch.setattr(entry_module, "end_process", lambda code: None)
    monkeypatch.setattr(entry_module, "main", lambda: 0)
    monkeypatch.setattr(entry_module.gc, "set_threshold", lambda objects: None)  # it is that of all tests
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")  # a user's own number stays
    entry_module.entry()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    entry_module.entry()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_sample_needs_no_file(tmp_path, monkeypatch):
    from satview.gui.windows import screenshot

    taken = []
    monkeypatch.setattr(screenshot, "take", lambda request: taken.append(request.link.path) or 0)
    assert main(["--sample", "--screenshot", str(tmp_path / "a.png")]) == 0
    assert [path.name for path in taken] == ["dense-4cpu.kev"]
    assert taken[0].is_file()
    assert main(["--sample", "other.kev", "--screenshot", str(tmp_path / "a.png")]) == 2, "a picture shows one trace"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--lanes", "log,nonsense"), "'nonsense' is not one of the event lanes: log, user, "),
        (("--labels", "state,"), "'' is not one of the labels: state, priority, "),
        (("--user-events", "none.xml"), "none.xml: there is no such file; check the name"),
        (("--pidin", "none.txt"), "none.txt: there is no such file; --pidin names a file with what `pidin` printed"),
        (("--pidin", "README.md"), "README.md: line 1 is not a line of titles with the columns pid and name"),
        (("--symbols", "none"), "none: there is no such folder; --symbols names the folder with the programs"),
        (("--symbols", "README.md"), "README.md: there is no such folder; --symbols names the folder with the"),
    ],
)
def test_what_the_viewer_is_to_show_is_checked_first(capsys, tmp_path, more, message):
    assert main([str(tmp_path / "t.kev"), "--screenshot", str(tmp_path / "a.png"), *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["look", "a\0b"], "argument 'a\\x00b': there is a NUL in it"),
        (["look", "a.kev", "--handle", "t-1\0"], "argument 't-1\\x00': there is a NUL in it"),
        (["info", "\ud800"], "argument '\\ud800': there is half of a character in it"),
        (["\0.kev"], "there is a NUL in it"),
        (["stats", "a.kev", "--top=--"], "argument --top=--: -- is not a value"),
        (["convert", "a.kev", "-o--"], "argument -o--: -- is not a value"),
        (["info", ""], "argument '' is empty; is a variable of the shell not set?"),
        (["stats", "a.kev", "--symbols="], "argument --symbols= is empty; is a variable of the shell not set?"),
        (
            ["query", "a.kev", "select 1", "--pidin", ""],
            "argument --pidin '' is empty; is a variable of the shell not set?",
        ),
        (["records", "none"], "none: there is no such file; check the name"),
        (["traceprinter", "none.kev"], "none.kev: there is no such file; check the name"),
        (["catalogue", "learn", "none.txt"], "none.txt: there is no such file; check the name"),
        (["info", "."], ".: this is a directory; name a file in it"),
    ],
)
def test_an_argument_that_is_none_is_refused_in_one_sentence(arguments, says, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1
