from __future__ import annotations

import pytest

from satview.__main__ import command_names, main


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in command_names():
        assert name in text
    assert "exit codes" in text


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


def test_a_command_is_imported_only_when_asked_for():
    import subprocess
    import sys

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; import satview.__main__ as m; m.command_names();"
            "print(any(name.startswith('satview.cli.') or name == 'PySide6' for name in sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
