"""The guide's six programs give results of the same shape as the guide's listings (kinds, order, words)."""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path

import pytest

from satview.capture.tutorial import run_tutorial
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace
from tests.capture.made import events, names
from tests.helpers.shared import shared_path

FOLDER = Path(__file__).parents[2] / "examples" / "tutorial"


def capture(
    example: str, folder: Path, cpus: int = 1, sys_release: str = "6.1.0", number: int | None = None,
    seed: int = 1,
) -> Trace:  # fmt: skip
    main = runpy.run_path(str(FOLDER / f"{example}.py"))["main"]
    result = run_tutorial(main if number is None else partial(main, number), folder / "t.kev", cpus, sys_release, seed)
    assert not result.findings
    assert 1 <= result.buffers <= 3, "-n 3"
    return open_kev(folder / "t.kev")


def golden_kinds(name: str) -> set[str]:
    """Return the class of every event of a vendor listing, as `THREAD`, `KER_CALL`, ..."""
    text = shared_path(f"golden/{name}.results.txt").read_text()
    return {kind.strip() for kind in re.findall(r"^t:0x\w+ CPU:\d\d (\w+)\s*:", text, re.MULTILINE)}


@pytest.mark.thorough
def test_all_classes(tmp_path: Path) -> None:
    trace = capture("all_classes", tmp_path)
    assert golden_kinds("all_classes") <= set(trace.class_counts()) | {"INT_CALL", "INT_ENTR", "INT_EXIT"}
    assert names(trace)[:3] == ["TIME", "PROCCREATE_NAME", "THCREATE"]
    start = names(trace).index("TRACE_EVENT")
    after = events(trace)[start + 1 : start + 6]
    # As in the listing: the program's exit, its destroyed last thread fails with 48, then all threads go.
    assert [(name, words[:2]) for _, name, words in after] == [
        ("THREAD_DESTROY", (0xFFFFFFFF, 0)),
        ("THREAD_DESTROY", (0xFFFFFFFF, 48)),
        ("THREAD_DESTROYALL", (0, 0)),
        ("THDESTROY", after[3][2]),
        ("THDEAD", after[4][2]),
    ]


@pytest.mark.thorough
def test_one_class(tmp_path: Path) -> None:
    trace = capture("one_class", tmp_path)
    assert set(trace.class_counts()) == {"THREAD"} == golden_kinds("one_class")
    assert all(len(words) == 2 for _, _, words in events(trace)), "fast: pid and tid"
    assert names(trace)[:4] == ["THCREATE", "THREADY", "THCREATE", "THRECEIVE"]


@pytest.mark.thorough
def test_five_events(tmp_path: Path) -> None:
    trace = capture("five_events", tmp_path)
    assert set(names(trace)) == {"PROCCREATE_NAME", "THCREATE", "THRUNNING", "INTENTER", "MSG_READV"}
    assert set(trace.class_counts()) == {"PROCESS", "THREAD", "INT_ENTR", "KER_EXIT"} == golden_kinds("five_events")
    assert {words[0] for _, _, words in events(trace, "INTENTER")} == {0}
    read = events(trace, "MSG_READV")[0][2]
    assert len(read) == 4, "wide: number of bytes and three words of the message"


def test_all_kernel_calls(tmp_path: Path) -> None:
    trace = capture("ker_calls", tmp_path)
    assert set(trace.class_counts()) == {"THREAD", "KER_CALL", "KER_EXIT"}
    received = [words for _, name, words in events(trace, "MSG_RECEIVEV") if len(words) == 18]
    assert received, "wide exits of MsgReceivev() carry the message information"
    assert all(words[9] & 0x40000000 for words in received if words[0]), "info->scoid of a local client"


def test_one_kernel_call(tmp_path: Path) -> None:
    # With the seed of the example its third buffer ends with an event, as the one with all calls does.
    seed = runpy.run_path(str(FOLDER / "ker_calls.py"))["SEED"]
    trace = capture("ker_calls", tmp_path, number=14, seed=seed)
    assert not trace.problems.cost_data
    assert set(trace.class_counts()) >= {"THREAD", "KER_CALL", "KER_EXIT"}
    assert {name for name in names(trace) if not name.startswith("TH")} == {"MSG_RECEIVEV"}


@pytest.mark.thorough
def test_event_handlers(tmp_path: Path) -> None:
    trace = capture("event_handlers", tmp_path)
    kinds = names(trace)
    assert kinds[0] == "THRUNNING"
    assert set(kinds[0::2]) == {"THRUNNING"}
    assert set(kinds[1::2]) == {"RING0"}
    assert len(kinds) > 50
    assert trace.duration_ns == pytest.approx(1e9, rel=0.05)


def test_user_events(tmp_path: Path) -> None:
    trace = capture("user_events", tmp_path, 2, "6.2.1")
    inserted = [(name, words[:2]) for _, name, words in events(trace) if name.startswith("EVENT ")]
    assert inserted[:4] == [(f"EVENT {111 * n}", (n, 11 * n)) for n in (1, 2, 3, 4)]
    assert inserted[4][0] == "EVENT 555"
    first = names(trace).index("EVENT 111")
    # 6.2.1 records the calls around them, as the listing shows.
    assert names(trace)[first - 2 : first + 4] == [
        "TRACE_EVENT", "TRACE_EVENT", "EVENT 111", "TRACE_EVENT", "TRACE_EVENT", "EVENT 222",
    ]  # fmt: skip
    text = b"".join(word.to_bytes(4, "little") for word in events(trace, "EVENT 555")[0][2])
    assert text.rstrip(b"\0") == b"Hello world"


def shape(line: str) -> str:
    """Return a line of a listing with runs of blanks as one and numbers as #."""
    return re.sub(r"\b(0x)?[0-9a-f]*\d[0-9a-f]*\b", "#", " ".join(line.split()).replace(" :", ":"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("example", "golden"),
    [
        ("all_classes", "all_classes"),
        ("one_class", "one_class"),
        ("five_events", "five_events"),
        ("event_handlers", "eh_sample"),
        ("user_events", "usr_event_simple"),
        ("ker_calls", "ker_calls.all"),
    ],
)
def test_they_print_the_guide_s_shape(
    example: str, golden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{golden}.results"
    monkeypatch.setattr("sys.argv", [example, str(file)])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(FOLDER / f"{example}.py"), run_name="__main__")
    printed = capsys.readouterr()
    assert stop.value.code == 0
    expected = [shape(line) for line in shared_path(f"golden/{golden}.results.txt").read_text().splitlines()]
    got = [shape(line) for line in printed.out.splitlines()]
    keys = {line.split("::")[0] for line in expected if line.startswith("TRACE_")}
    assert keys <= {line.split("::")[0] for line in got}
    assert f"TRACE_TRACELOGGER_ARGS:: tracelogger -d1 -n 3 -f {file.name}" in printed.out
    threads = {line for line in expected if "THREAD:THRUNNING" in line and line.startswith("t:#")}  # not misprinted
    assert threads <= set(got), "as the listing has it"
    if example == "event_handlers":
        listed = {line for line in expected if line.startswith("t:")}
        assert listed == {line for line in got if line.startswith("t:")}
        assert len(listed) == 2
