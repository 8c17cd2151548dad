"""A capture by probe: the same run under all rules, so what rules would capture is what they capture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace
from tests.helpers.extent import fewer

RULES = {
    "selected processes": "WHERE pid in (2, 3)\n",
    "by name": 'ADDALLCLASSES\nADDCLASSEVHANDLER KERCALL WHERE name ~ "*er*"\n'
    "ADDCLASSEVHANDLER THREAD WHERE tid == 1\n",
    "by priority": "ADDCLASS COMM\nADDCLASS THREAD\nSETCLASSFAST THREAD\n"
    "ADDCLASSEVHANDLER THREAD WHERE priority > 10\n",
}


def captured(folder: Path, name: str, *args: str) -> Trace:
    path = folder / name
    mode = () if {"-n", "-s", "-r"} & {*args} else ("-c",)
    command = ["tracelogger", "--probe", *mode, "--workload", "automotive", "--duration", "0.3", "-f", str(path)]
    assert main([*command, *args]) == 0
    return open_kev(path)


@pytest.mark.thorough
@pytest.mark.parametrize("name", fewer(list(RULES), 1))
def test_would_capture_says_what_the_next_capture_holds(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "mine.satrules"
    rules.write_text(RULES[name], encoding="utf-8")
    captured(tmp_path, "all.kev", "-w")
    logged = captured(tmp_path, "small.kev", "--rules", str(rules))
    capsys.readouterr()
    assert main(["filter", str(tmp_path / "all.kev"), "-r", str(rules), "--would-capture"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:2] == ["events", f"{len(logged.events):,}"]
    assert said[1].split()[:2] == ["slots", f"{logged.slot_count:,}"]
    assert len(logged.events) > 100


@pytest.mark.thorough
def test_a_forecast_says_how_much_the_logger_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rules = tmp_path / "all.kev", tmp_path / "mine.satrules"
    rules.write_text("ADDCLASS KERCALL\nADDCLASS COMM\n", encoding="utf-8")
    assert main(["tracelogger", "-c", "-w", "--workload", "automotive", "--duration", "0.1", "-f", str(path)]) == 0
    trace = open_kev(path)
    is_logger = [name.endswith("tracelogger") for name in trace.processes.names]
    its = np.array(is_logger)[trace.threads.process[trace.events.thread]] & np.isin(trace.events.code >> 10, (2, 7))
    capsys.readouterr()
    assert main(["filter", str(path), "-r", str(rules), "--would-capture"]) == 0
    assert f"tracelogger itself adds {int(its.sum()):,} of these events" in capsys.readouterr().out
    assert its.any()


@pytest.mark.thorough
def test_number_of_buffers_seconds_and_ring(tmp_path: Path) -> None:
    few = captured(tmp_path, "few.kev", "-n", "3")
    assert len(few.buffers.slot) == 3
    short = captured(tmp_path, "short.kev", "-s", "0.05")
    assert 45_000_000 < short.duration_ns <= 50_100_000
    ring = captured(tmp_path, "ring.kev", "-r", "-k", "2")
    assert len(ring.buffers.slot) == 2
    whole = captured(tmp_path, "whole.kev")
    assert ring.events.time_cycles[-1] >= whole.events.time_cycles[-1] - 1_000_000


@pytest.mark.thorough
def test_the_example_of_the_page_gives_the_numbers_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")
    example = page[page.index("With `mine.satrules`") :]
    rules = tmp_path / "mine.satrules"
    rules.write_text(example.split("```")[1], encoding="utf-8")
    captured(tmp_path, "all.kev", "-w")
    captured(tmp_path, "mine.kev", "--rules", str(rules))
    capsys.readouterr()
    assert main(["filter", str(tmp_path / "all.kev"), "-r", str(rules), "--would-keep"]) == 0
    assert main(["info", str(tmp_path / "mine.kev")]) == 0
    said = capsys.readouterr().out
    for line in example.split("```")[3].splitlines():
        if line.strip() and not line.startswith(("$", "...")):
            assert line in said
