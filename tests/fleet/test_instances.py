"""Slow against fast over a data set: the same as over its files, one trace at a time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.answers.late import late
from satview.base.errors import UsageError
from satview.fleet.export import export_folder
from satview.fleet.query import recorded_instances
from satview.formats.registry import open_trace
from tests.helpers.scene import rounds_of_a_loop

SLOW = {"a.kev": (), "board/b.kev": tuple(range(12)), "c.kev": (3,)}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return the data set of three traces of 40 rounds, of which 12 are slow in one and 1 in another."""
    (tmp_path / "traces" / "board").mkdir(parents=True)
    for name, slow in SLOW.items():
        rounds_of_a_loop(40, slow).write(tmp_path / "traces" / name)
    export_folder(tmp_path / "traces", tmp_path / "fleet", ("activity_instance",))
    return tmp_path / "fleet"


def test_the_slowest_of_a_data_set_are_those_of_its_traces(fleet: Path) -> None:
    """Of 120 rounds the slowest 12 are slow ones, of two traces; a trace without any of them is not opened again."""
    paths = [fleet.parent / "traces" / name for name in SLOW]
    first, *others = (late(open_trace(path, None)) for path in paths)
    group = recorded_instances(fleet, "control 1", without=[paths[0].resolve()])
    assert [(one.path.name, len(one.event)) for one in group] == [("b.kev", 40), ("c.kev", 40)]
    by_files, by_set = first.compared(0, others=others), first.compared(0, others=group)
    for name in ("times", "causes", "paths"):
        assert getattr(by_set, name).records() == getattr(by_files, name).records()
    (row,) = by_set.times.records()
    assert (row["whom"], row["explains_ns"], row["in_slow"], row["in_fast"]) == ("hog 1", 4_000, 12, 60)


@pytest.mark.thorough
def test_the_command_takes_data_sets(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = fleet.parent / "traces"
    for option, files in (("--with", ["board/b.kev", "c.kev"]), ("--against", ["board/b.kev", "c.kev"])):
        answers = []
        for others in ([fleet], [traces / name for name in files]):
            assert main(["late", str(traces / "a.kev"), option, *map(str, others), "--format", "json"]) == 0
            answers.append(json.loads(capsys.readouterr().out))
        assert answers[0] == answers[1], option


@pytest.mark.thorough
def test_each_trace_counts_once(
    fleet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace itself, one by another path, one twice, and one of the data set are each the same as nothing more."""
    monkeypatch.chdir(fleet.parent / "traces")

    def answer(*arguments: object) -> dict[str, object]:
        assert main(["late", "board/b.kev", *map(str, arguments), "--format", "json"]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    alone, both = answer(), answer("--with", "c.kev")
    assert answer("--with", "board/b.kev", fleet.parent / "traces/board/b.kev") == alone
    assert answer("--with", "c.kev", "./board/../c.kev", "board/b.kev") == both
    assert answer("--with", fleet) == answer("--with", fleet, fleet, "c.kev")
    against = answer("--with", "c.kev", "--against", "a.kev")
    assert against != both
    assert answer("--with", "c.kev", "--against", "c.kev", "board/b.kev", "a.kev") == against
    assert answer("--with", "c.kev", "--against", fleet) == against
    nothing = "satview: nothing is left to compare control 1 with: --against names only what counts already, as FILE"
    for options, says in (([], nothing), (["--with", "c.kev"], f"{nothing} or by --with")):
        assert main(["late", "board/b.kev", "--against", "./board/b.kev", *options]) == 2
        assert capsys.readouterr().err == f"{says}\n"
    assert main(["late", "board/b.kev", "--against", "c.kev", "--with", "c.kev"]) == 2
    assert capsys.readouterr().err == f"{nothing} or by --with\n"


@pytest.mark.thorough
def test_traces_that_are_gone_are_named_and_left_out(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three traces one is deleted: the tables still have it, but its rounds cannot be opened."""
    traces = fleet.parent / "traces"
    (traces / "c.kev").unlink()
    assert main(["export", str(traces), "-o", str(fleet), "--table", "activity_instance"]) == 0
    said = capsys.readouterr()
    assert said.err == "satview: c.kev is gone; its tables stay in the data set\n"
    assert said.out == f"{fleet}: 0 traces written, 0 events, 2 unchanged, 1 gone\n"
    answers = []
    for others in (fleet, traces / "board" / "b.kev"):
        assert main(["late", str(traces / "a.kev"), "--with", str(others), "--format", "json"]) == 0
        said = capsys.readouterr()
        answers.append(json.loads(said.out))
        gone = "1 of 3 traces of the data set fleet are gone, such as " + str(traces / "c.kev") + "; they are left out"
        assert said.err == (f"satview: {gone}\n" if others == fleet else "")
    assert answers[0] == answers[1]
    for home in fleet.glob("*/trace=c.kev"):  # as docs/fleet.md says
        shutil.rmtree(home)
    assert main(["export", str(traces), "-o", str(fleet), "--table", "activity_instance"]) == 0
    assert main(["late", str(traces / "a.kev"), "--with", str(fleet)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "2 unchanged\n" in said.out
    for path in traces.rglob("*.kev"):
        path.unlink()
    with pytest.raises(UsageError, match="2 of 2 traces of the data set fleet are gone"):
        recorded_instances(fleet, "control 1", say=pytest.fail)


@pytest.mark.thorough
def test_what_the_data_set_cannot_give_is_said(fleet: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace of the data set fleet has the learned activity planner 1"):
        recorded_instances(fleet, "planner 1")
    (changed,) = (one for one in recorded_instances(fleet, "control 1") if one.path.name == "c.kev")
    rounds_of_a_loop(20, ()).write(fleet.parent / "traces" / "c.kev")
    with pytest.raises(
        UsageError, match=r"c\.kev has other instances of control 1 than the data set; run satview export"
    ):
        changed.samples(changed.event * 0 + range(40))
    (fleet.parent / "traces" / "c.kev").unlink()
    with pytest.raises(UsageError, match=r"1 of 3 traces of the data set fleet are gone, such as .*c\.kev"):
        recorded_instances(fleet, "control 1")
    export_folder(fleet.parent / "traces", tmp_path / "without", ("event",))
    with pytest.raises(
        UsageError, match="the data set without has no table activity_instance; add it by `satview export"
    ):
        recorded_instances(tmp_path / "without", "control 1")
