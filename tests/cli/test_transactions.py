"""`satview transactions` and `satview latencies` as a user or a script runs them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def inversion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("transactions") / "inversion.kev"
    run(Capture("nested-inversion", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return path


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("latencies") / "flood.kev"
    run(Capture("interrupt-flood", options=LoggerOptions(iterations=4, is_wide=True)), path)
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return exit code, output, errors."""

    def run_it(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_it


def test_a_table_with_nested_messages_below_theirs(command: Run, inversion: Path) -> None:
    code, out, _ = command("transactions", inversion, "--nested")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "inversion.kev: 2 of 2 messages")
    assert lines[3].split()[:4] == ["Client", "Server", "Type", "Sent"]
    assert lines[4].startswith("high 1     front 1")
    assert lines[5].startswith("  front 1  store 1")


def test_filters_and_order_in_json(command: Run, inversion: Path) -> None:
    code, out, _ = command("transactions", inversion, "--server", "store", "--format", "json")
    [only] = json.loads(out)["transactions"]
    assert (code, only["client"], only["server"]) == (0, "front 1", "store 1")
    assert only["queued_ns"] + only["service_ns"] + only["reply_ns"] == pytest.approx(only["round_trip_ns"], abs=2)
    for options, count in (
        (("--type", "0x776f6e"), 1),
        (("--client", "store"), 0),
        (("--range", "0..1ms"), 0),
        (("--sort", "queued", "--top", "1"), 1),
    ):
        assert (
            len(json.loads(command("transactions", inversion, "--format", "json", *options)[1])["transactions"])
            == count
        )


@pytest.mark.parametrize("name", ["transactions", "latencies", "late", "snapshot", "check"])
def test_csv_of_a_trace_that_cannot_tell_says_so_on_standard_error(command: Run, name: str, tmp_path: Path) -> None:
    path = TraceBuilder().time_event(0).event(wire.code(wire.WireClass.USER, 1), 10, (1, 2)).write(tmp_path / "t.kev")
    _, out, err = command(name, path, "--format", "csv", *(["--at", "50%"] if name == "snapshot" else []))
    assert len(out.splitlines()) == 1, "the names of the columns"
    assert err.startswith("satview: cannot tell: "), err
    if name == "snapshot":
        document = json.loads(command(name, path, "--at", "50%", "--format", "json")[1])
        assert document["outcome"] == "cannot tell"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("transactions", "--client", "nobody"), "the trace has no thread or process 'nobody'"),
        (("transactions", "--server", "999999"), "the trace has no thread or process '999999'"),
        (("latencies", "--thread", "nobody"), "the trace has no thread or process 'nobody'"),
        (("latencies", "--interrupt", "99999999999"), "the trace has no interrupt 0x174876e7ff; it has 0x"),
    ],
)
def test_names_that_the_trace_does_not_have_are_refused(
    command: Run, flood: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = command(arguments[0], flood, *arguments[1:])
    assert (code, out) == (2, "")
    assert err.startswith(f"satview: {says}")


def test_csv_has_units_in_its_names(command: Run, inversion: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(command("transactions", inversion, "--format", "csv")[1])))
    assert [row["client"] for row in rows] == ["high 1", "front 1"]
    assert list(rows[0])[3:8] == ["start_ns", "queued_ns", "service_ns", "reply_ns", "round_trip_ns"]


def test_latencies_per_source_and_one_by_one(command: Run, flood: Path) -> None:
    code, out, _ = command("latencies", flood, "--interrupt", "9", "--format", "json")
    driver = [row for row in json.loads(out)["latencies"] if row["thread"] == "devc-wild 1 (driver)"]
    legs = {row["leg"]: row for row in driver}
    assert code in (0, 1)
    assert 12_000 <= legs["handler"]["min_ns"] <= legs["handler"]["p99_ns"] <= legs["handler"]["max_ns"] < 14_000
    code, out, _ = command("latencies", flood, "--list", "--top", "3", "--sort", "handler", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 3
    assert [int(row["handler_ns"]) for row in rows] == sorted((int(row["handler_ns"]) for row in rows), reverse=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions", "--top", "-1"),
        ("transactions", "--top", "0"),
        ("transactions", "--range", "5s..4s"),
        ("transactions", "--type", "x"),
        ("transactions", "--sort", "size"),
        ("latencies", "--top", "3"),
        ("latencies", "--sort", "total"),
        ("latencies", "--interrupt", "seven"),
        ("latencies", "--list", "--top", "-2"),
        ("latencies", "--list", "--top", "0"),
    ],
)
def test_bad_use_is_refused(command: Run, inversion: Path, arguments: tuple[str, ...]) -> None:
    name, *options = arguments
    code, out, err = command(name, inversion, *options)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize("name", ["transactions", "latencies"])
def test_traces_without_any(command: Run, tmp_path: Path, name: str) -> None:
    code, out, _ = command(name, scene(tmp_path))
    assert code == 1  # buffers were lost
    assert "events were lost for 4.000 µs" in out
    assert "Cannot tell: " in out
    empty = TraceBuilder().time_event(0).write(tmp_path / "empty.kev")
    assert command(name, empty)[0] == 0
    document = json.loads(command(name, empty, "--format", "json")[1])
    assert (document["schema_version"], document["outcome"], document[name]) == (1, "cannot tell", [])
    assert "capture the class COMM" in document["reason"]
    assert "Cannot tell: " in command(name, empty)[1]


@pytest.mark.parametrize("name", ["transactions", "latencies", "late"])
def test_a_capture_on_qnx_is_no_remedy_for_traces_of_other_systems(command: Run, name: str) -> None:
    out = command(name, "sample_traces/threads")[1]
    assert out.splitlines()[-1] == "Cannot tell: the trace is that of a threads library, not of a kernel."


def test_names_are_text(command: Run, tmp_path: Path) -> None:
    from tests.helpers.exchange import Exchange

    made = Exchange()
    made.build.process_name(5, 2, "=cmd()\x1b]0;x\x07[bold]a")
    made.send(100, 2, 3, 1)
    path = made.build.write(tmp_path / "hostile.kev")
    out = command("transactions", path)[1]
    assert r"=cmd()\x1b]0;x\x07[bold]a" in out
    out = command("transactions", path, "--format", "csv")[1]
    cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
    assert any("cmd()" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith("=")]
