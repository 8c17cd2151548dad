"""Every program under examples/ runs on a small trace and prints what a reader can check by hand."""

import ast
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from satview.events import wire
from satview.events.wire import WireClass
from satview.formats.kev.header import SlotWriter, header_bytes

FOLDER = Path(__file__).resolve().parents[2] / "examples"
PAIRS = [
    ("FILE_NAME", "shop.kev"),
    ("LITTLE_ENDIAN", "TRUE"),
    ("CYCLES_PER_SEC", "1000000"),
    ("SYS_RELEASE", "7.1.0"),
    ("SYSPAGE_LEN", "0"),
]


@pytest.fixture
def path(tmp_path):
    """Client 20 sends to server 30: one call of 400 us, received after 100 us; 1 MHz, so a cycle is a microsecond."""
    writer = SlotWriter()
    writer.event(wire.CONTROL_TIME, 0, 0, [0, 0])
    writer.text_event(wire.PROC_CREATE_NAME, 0, 0, [1, 20], b"bin/client")
    writer.text_event(wire.PROC_CREATE_NAME, 0, 0, [1, 30], b"bin/server")
    for stamp, wire_class, event, words in (
        (1000, WireClass.PR_TH, 1, [20, 1]),
        (1100, WireClass.KER_CALL, 11, [3, 0]),
        (1200, WireClass.COMM, 0, [0x10, 30]),
        (1210, WireClass.PR_TH, 6, [20, 1]),
        (1250, WireClass.PR_TH, 1, [30, 1]),
        (1300, WireClass.COMM, 2, [0x10, 30]),
        (1400, WireClass.COMM, 10, [1, 20]),
        (1450, WireClass.PR_TH, 1, [20, 1]),
        (1500, WireClass.KER_CALL, 139, [0, 0]),
        (2000, WireClass.PR_TH, 1, [1, 1]),
        (3500, WireClass.PR_TH, 1, [20, 1]),
    ):
        writer.event(wire.code(wire_class, event), 0, stamp, words)
    file = tmp_path / "shop.kev"
    file.write_bytes(header_bytes(PAIRS) + writer.slots().astype("<u4").tobytes())
    return file


def run(name, *arguments):
    return runpy.run_path(str(FOLDER / f"{name}.py"))["main"]([str(argument) for argument in arguments])


def test_count_states(path, capsys):
    assert run("count_states", path) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["client", "1", "4", "THRUNNING", "3,", "THREPLY", "1"]
    assert ["server", "1", "1", "THRUNNING", "1"] in lines


def test_kernel_calls(path, capsys):
    assert run("kernel_calls", path) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "MSG_SENDV", "1", "400.0", "µs", "400.0", "µs", "400.0", "µs",
    ]  # fmt: skip


def test_message_latency(path, capsys):
    assert run("message_latency", path) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["server", "1", "100.0", "µs", "100.0", "µs"]


def test_custom_printer(path, capsys):
    assert run("custom_printer", path) == 0
    assert capsys.readouterr().out.splitlines() == ["messages in shop.kev", "0x000004b0          20/1 -> 30"]
    assert run("custom_printer", path.with_name("none.kev")) == 1


def test_live_monitor(path, capsys, monkeypatch):
    assert run("live_monitor", path, "0.001") == 0
    assert capsys.readouterr().out.splitlines() == ["CPU 0: 100% 20/1", "CPU 0:   0% -"]
    with path.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
        assert run("live_monitor", "-", "0.0005") == 0
    assert capsys.readouterr().out.splitlines()[0] == "CPU 0: 100% 20/1"


@pytest.mark.thorough
def test_the_notebook():
    """Its cells run one after the other, as in a notebook; what it asserts holds, and the last lines have values."""
    cells = json.loads((FOLDER / "waits.ipynb").read_text(encoding="utf-8"))["cells"]
    names, shown = {}, []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "waits.ipynb", "exec"), names)
        shown.append(eval(compile(last, "waits.ipynb", "eval"), names))
    assert "197,137" in shown[0]._repr_html_()
    assert [kind for kind, _ in shown[1]] == ["priority-inversion"]
    assert len(shown[2]) == 10
    assert 1 < shown[3] < 100
    assert "ready" in shown[4][0]
    assert shown[5].between(0.4, 0.6).all()
    assert shown[5].index.tolist() == [0, 1, 2, 3]


def test_every_program_has_a_test():
    programs = {file.stem for file in FOLDER.glob("*.py")}
    assert programs == {
        name.removeprefix("test_")
        for name in globals()
        if name.startswith("test_") and (FOLDER / f"{name.removeprefix('test_')}.py").exists()
    }
    assert len(programs) >= 5
