"""No command writes onto a file that it reads, in whatever role and under whatever name."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.cli.shared.files import InputFile, OutputFile, actions
from satview.store.axis import AxisEntry, write_axis
from satview.viewer_command import whole_parser
from tests.helpers.commands import ROOT, SAMPLE, satview
from tests.helpers.elf import write_elf
from tests.helpers.extent import fewer

HANDLERS = "def all(event):\n    return 1\n"
USER_EVENTS = (ROOT / "docs" / "images" / "user-events.xml").read_bytes()

# Command, then every file that it reads with these words.
READS = {
    "capture ssh://127.0.0.1:1 -r r.satrules --allow-code -o OUT": ["r.satrules", "handlers.py"],
    "capture ssh://127.0.0.1:1 --targets targets.toml -o OUT": ["targets.toml"],
    "convert a.kev OUT": ["a.kev", "a.kev.marks.json"],
    "export a.kev --format csv -o OUT": ["a.kev", "a.kev.marks.json"],
    "export a.kev --format list -o OUT": ["a.kev", "a.kev.marks.json"],
    "export a.kev --table chain -c timing.toml --format csv -o OUT": ["timing.toml"],
    "export x.sataxis --format csv -o OUT": ["x.sataxis", "a.kev", "b.kev", "b.kev.marks.json"],
    "export a.kev --symbols programs --format csv -o OUT": ["programs/usr/bin/procnto-instr"],
    "export threads --format csv -o OUT": ["threads/tr.00042d7.002", "threads/tr.00042d7.names",
                                           "threads/tr.00042d7.002.time"],
    "filter a.kev -r r.satrules --allow-code -o OUT": ["a.kev", "a.kev.marks.json", "r.satrules", "handlers.py"],
    "filter a.kev -r r.satrules -r s.rules --allow-code --c-program OUT": ["a.kev", "r.satrules", "s.rules"],
    "query a.kev from_event --format csv -o OUT": ["a.kev", "a.kev.marks.json"],
    "query fleet from_event --format csv -o OUT": ["fleet/satview-fleet.json", "fleet/event/trace=a.kev/part.parquet"],
    "report a.kev -r limits.toml --pictures 0 -o OUT": ["a.kev", "a.kev.marks.json", "limits.toml"],
    "together a.kev b.kev -o OUT": ["a.kev", "a.kev.marks.json", "b.kev"],
    "tracelogger --duration 0.01 --rules r.satrules --allow-code -f OUT": ["r.satrules", "handlers.py"],
    "tracelogger --duration 0.01 --control control.py -f OUT": ["control.py"],
    "tracelogger --duration 0.01 --workload work.py -f OUT": ["work.py"],
    "tracelogger --events 1000 --workload work.py -f OUT": ["work.py"],
    "traceprinter a.kev -o OUT": ["a.kev", "a.kev.marks.json"],
    "traceprinter -f a.kev -o OUT": ["a.kev"],
    "whatif a.kev --changes changes.toml -c timing.toml -o OUT": ["a.kev", "changes.toml", "timing.toml"],
    "a.kev --compare b.kev --user-events u.xml --session s.satsession --screenshot OUT":
        ["a.kev", "a.kev.marks.json", "b.kev", "b.kev.marks.json", "u.xml", "./s.satsession"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("outputs")
    for name in ("a.kev", "b.kev"):
        shutil.copyfile(SAMPLE, found / name)
        (found / f"{name}.marks.json").write_text('{"marks": []}')
    shutil.copytree(ROOT / "sample_traces" / "threads", found / "threads")
    write_axis(found / "x.sataxis", [AxisEntry(found / "a.kev", "a"), AxisEntry(found / "b.kev", "b")])
    (found / "handlers.py").write_text(HANDLERS)
    (found / "r.satrules").write_text("ADDALLCLASSES\nADDCLASSEVHANDLER COMM CALL handlers.py:all\n")
    (found / "s.rules").write_text("ADDALLCLASSES\n")
    (found / "limits.toml").write_text("[starvation]\nenabled = false\n")
    (found / "changes.toml").write_text("cpus = 2\n")
    (found / "timing.toml").write_text("")
    (found / "targets.toml").write_text('[rig]\naddress = "ssh://rig"\n')
    (found / "control.py").write_text("def main():\n    yield from ()\n")
    (found / "work.py").write_text("def setup(kernel):\n    pass\n")
    (found / "u.xml").write_bytes(USER_EVENTS)
    (found / "s.satsession").write_text('{"satview_session": 1}')
    (found / "programs" / "usr" / "bin").mkdir(parents=True)
    write_elf(found / "programs" / "usr" / "bin" / "procnto-instr", {"main": (0x8048010, 16)})
    (found / "one").mkdir()
    shutil.copyfile(SAMPLE, found / "one" / "a.kev")
    assert satview("export", "one", "-o", "fleet", cwd=found).returncode == 0
    return found


@pytest.mark.parametrize(("command", "read"), [(command, name) for command, names in READS.items() for name in names])
def test_no_output_replaces_what_the_command_reads(folder, command, read, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    ending = ".sataxis" if command.startswith("together") else ".png" if "--screenshot" in command else ".out"
    before = Path(read).read_bytes()
    targets = {"link": Path(f"link{ending}"), "hard": Path(f"hard{ending}")}
    targets["link"].symlink_to(Path(read).absolute())
    os.link(read, targets["hard"])
    if ending == ".out":
        targets["itself"] = Path(read)
    try:
        for way, target in fewer(list(targets.items()), 1):  # the others are in test_command_line.py
            words = [
                str(target) if word == "OUT" else word.replace("from_event", "from event").replace("s.sat", "./s.sat")
                for word in command.split()
            ]
            assert main(words) == 2, way
            assert "this is the file that is being read" in capsys.readouterr().err, way
            assert Path(read).read_bytes() == before, way
    finally:
        for way in ("link", "hard"):
            targets[way].unlink(missing_ok=True)


def test_another_file_is_replaced(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("old.csv").write_text("old")
    assert main(["export", "a.kev", "-o", "old.csv"]) == 0
    assert Path("old.csv").read_text().startswith('"event",')


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "needs"), [
    ("convert a.kev", "OUT is missing"), ("export a.kev --table state", "-o OUT is missing"),
    ("filter a.kev -e cpu==0", ""), ("report a.kev --pictures 0", "-o OUT is missing"),
])  # fmt: skip
def test_an_output_is_named_by_its_option_or_behind_the_file(folder, command, needs, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(folder)
    name, read, *options = command.split()
    ending = {"export": ".csv", "report": ".html"}.get(name, ".kev")
    option, behind = tmp_path / f"option{ending}", tmp_path / f"behind{ending}"
    assert main([name, read, *options, "-o", str(option)]) == 0
    assert main([name, read, str(behind), *options]) == 0
    assert option.read_bytes() == behind.read_bytes()
    assert option.stat().st_size > 1000
    assert main([name, read, str(behind), *options, "-o", str(option)]) == 2
    assert f"two outputs are given, {behind} and {option}" in capsys.readouterr().err
    assert main([name, read, *options]) == (2 if needs else 0)
    assert needs in capsys.readouterr().err


@pytest.mark.parametrize(("command", "endings"), [
    ("filter a.kev -e cpu==0 -o", ".kev"), ("convert a.kev", ".kev"),
    ("capture ssh://127.0.0.1:1 -o", ".kev"), ("a.kev --screenshot", ".png or .svg or .pdf"),
    ("report a.kev -o", ".html or .htm"),
])  # fmt: skip
def test_the_name_of_a_trace_or_picture_does_not_deny_what_is_in_it(
    folder, command, endings, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(folder)
    for name in ("prog.c", "s.foo", "s", "x.kev.gz"):
        assert main([*command.split(), str(tmp_path / name)]) == 2
        assert f"{name}: the file extension selects the format; use {endings}\n" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_command_with_an_output_is_tried():
    """An output is declared by its type; a command that has one is in the list above."""
    tried = {command.split()[0] for command in READS}
    commands = {"a.kev": whole_parser()}
    for action in whole_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands |= action.choices
    for name, parser in commands.items():
        own = actions(parser) if name != "a.kev" else parser._actions
        if any(action.type is OutputFile for action in own):
            assert name in tried
            assert any(isinstance(action.type, type) and issubclass(action.type, (InputFile, Path))
                       for action in (actions(parser) if name != "a.kev" else parser._actions))  # fmt: skip


def test_every_argument_that_is_called_a_file_has_such_a_type():
    """What help calls FILE, DIR or OUT says by its type whether it is read or written."""
    for action in actions(whole_parser()):
        words = set(str(action.metavar).replace(".", " ").replace("|", " ").split())
        if action.metavar and words & {"FILE", "file", "DIR", "OUT", "IN", "LISTING", "RULES", "X"} - {"X"}:
            assert isinstance(action.type, type), action.dest
            assert issubclass(action.type, (InputFile, OutputFile, Path)), action.dest
