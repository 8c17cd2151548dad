"""Scripts for shells, run by the shells that are here."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from satview.__main__ import command_names, main
from satview.cli.shared.files import SHELLS, actions
from satview.viewer_command import whole_parser


@pytest.fixture
def script(capsys):
    def printed(shell):
        assert main(["--print-completion", shell]) == 0
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_can_read_its_script(script, shell, tmp_path):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not here")
    file = tmp_path / "script"
    file.write_text(script(shell), encoding="utf-8")
    done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_there_is_a_script_for_every_shell_that_help_names():
    action = next(action for action in whole_parser()._actions if action.dest == "print_completion")
    assert tuple(action.choices) == SHELLS


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        (["satview", "sta"], {"stats"}),
        (["satview", "--sam"], {"--sample"}),
        (["satview", "--theme", ""], {"system", "light", "dark"}),
        (["satview", "stats", "--format", "j"], {"json"}),
        (["satview", "stats", "boot"], {"boot.kev"}),
        (["satview", "info", "--js"], {"--json"}),
        (["satview", "zzz"], set()),  # bash goes on with names of files: `-o default`
    ],
)
def test_bash_proposes(script, tmp_path, typed, proposed):
    (tmp_path / "boot.kev").touch()
    words = " ".join(f"'{word}'" for word in typed)
    previous = typed[-2]
    code = f"""{script("bash")}
COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}
_shtab_satview satview '{typed[-1]}' '{previous}' 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert set(done.stdout.split()) == proposed


def test_first_words_may_be_files(script):
    assert "complete -o bashdefault -o default -F" in script("bash")
    assert "_describe 'satview commands' _commands; _files" in script("zsh")


def test_every_command_is_in_the_whole_parser():
    parsers = next(action for action in actions(whole_parser()) if action.dest == "command")
    assert set(parsers.choices) == set(command_names())


def test_it_opens_nothing(capsys):
    assert main(["a.kev", "--print-completion", "bash"]) == 2
    assert "take no FILE" in capsys.readouterr().err
