"""`satview whatif` as a user or a script runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from satview.formats.registry import open_trace
from tests.helpers.commands import satview
from tests.whatif.test_fit import captured


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory.mktemp("whatif"), "nested-servers").path


def lines_of(*arguments: object) -> list[str]:
    """Return what a command prints that ends well."""
    done = satview("whatif", *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


@pytest.mark.thorough
def test_the_fit_comes_first_without_and_with_a_change(servers: Path) -> None:
    for arguments in ((), ("--set", "cpus=1")):
        assert lines_of(servers, *arguments)[0].startswith("The unchanged replay is off by <0.1 % in the median")
    lines = lines_of(servers, "--set", "cpus=1", "--set", "store:speed=2")
    assert lines[1:3] == ["Changed: cpus=1", "Changed: store:speed=2"]
    assert (
        "Not shown by the trace: Work that depends on data or time, and code that polls, is repeated as it was."
        in lines
    )


@pytest.mark.thorough
def test_a_predicted_trace_says_that_it_is_one(servers: Path, tmp_path: Path) -> None:
    out = tmp_path / "predicted.kev"
    lines_of(servers, "--set", "cpus=1", "-o", out)
    trace = open_trace(out, None)
    assert trace.cpu_count == 1
    assert trace.header.get("PREDICTED_FROM") == servers.name
    assert trace.header.get("PREDICTED_CHANGES") == "cpus=1"
    shown = satview("info", out).stdout.decode()
    assert f"Predicted  from {servers.name}, with cpus=1" in shown


@pytest.mark.thorough
def test_json_has_the_fit_beside_the_prediction(servers: Path) -> None:
    done = satview("whatif", servers, "--set", "store:speed=2", "--format", "json")
    found = json.loads(done.stdout)
    assert found["changes"] == ["store:speed=2"]
    assert found["fit"]["median_error"] < 0.01
    (report,) = (row for row in found["activities"] if row["activity"].startswith("report 1"))
    assert report["median_ns"] == pytest.approx(12_415_000, rel=0.01)  # 12 ms of the store, 300 us of the front
    assert report["predicted_median_ns"] == pytest.approx(6_415_000, rel=0.01)


@pytest.mark.thorough
def test_a_search_tries_the_least_first(servers: Path) -> None:
    done = satview("whatif", servers, "--search", "front:threads", "--format", "json")
    found = json.loads(done.stdout)
    assert [row["change"] for row in found["candidates"]] == [f"front:threads={count}" for count in range(1, 7)]
    assert {row["outcome"] for row in found["candidates"]} == {"holds"}
    assert found["says"] == "The least that keeps all deadlines is front:threads=1."


@pytest.mark.thorough
def test_sensitivity_shows_that_the_store_counts_most(servers: Path) -> None:
    """A report waits for 12 ms of the store in each round: a microsecond saved there is one saved of the round.

    Its own 11 us a round may seem to count for more, by chance.
    """
    done = satview("whatif", servers, "--sensitivity", "report", "--format", "json")
    helps = json.loads(done.stdout)["sensitivity"]
    assert {row["process"] for row in helps[:2]} == {"store", "report"}
    best = max(helps, key=lambda row: row["gain"])
    assert best["process"] == "store"
    assert best["gain"] == pytest.approx(1_200, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--set", "nobody:priority=1"), "the trace has no such thread or process"),
        (("--search", "everything"), "is not cpus, TARGET:priority or TARGET:threads"),
        (("--search", ""), "argument --search '' is empty"),
        (("--sensitivity", "none"), "'none' names no activity; there are store 1 (keeper), "),
        (
            ("--search", "cpus", "--sensitivity", "none"),
            "--search and --sensitivity are two questions: give one of them",
        ),
        (("--search", "cpus", "--set", "cpus=1"), "make changes of their own"),
        (("--sensitivity", "nothing"), "names no activity; there are "),
        (("--changes", "missing.toml"), "missing.toml"),
    ],
)
def test_wrong_usage_is_said_in_one_line(servers: Path, arguments: tuple[str, ...], says: str) -> None:
    done = satview("whatif", servers, *arguments)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.thorough
def test_bounds_of_late_are_beside_what_the_replay_gives(servers: Path) -> None:
    """The unchanged replay of this workload is off by nothing: its longest report takes as long as the recorded one."""
    document = json.loads(satview("late", servers, "--schedulability", "--format", "json").stdout)
    report, part = sorted((row for row in document["schedulability"] if row["activity"].startswith("report 1")),
                          key=lambda row: len(row["activity"]))  # fmt: skip
    assert (part["activity"], part["replayed_ns"]) == ("report 1 (report): MSG_SENDV", None), "a part of a report"
    assert part["known"]["replayed_ns"] == "unknown"
    assert report["measured_ns"] > 12_000_000
    assert report["replayed_ns"] == pytest.approx(report["measured_ns"], rel=0.01)
    assert report["known"]["replayed_ns"] == "estimate"
    assert document["fit"][0].startswith("The unchanged replay is off by <0.1 % in the median")
    document = json.loads(satview("late", servers, "--schedulability", "--no-replay", "--format", "json").stdout)
    assert "replayed_ns" not in document["schedulability"][0]
    assert document["fit"] == []
    done = satview("late", servers, "--no-replay")
    assert (done.returncode, done.stderr) == (
        2,
        b"satview: --no-replay is about --schedulability, which nothing asks for\n",
    )
