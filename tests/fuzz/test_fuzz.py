"""What broke once stays mended, and some hundred inputs more; `python -m tests.fuzz` runs them by the thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import run as run_module
from tests.fuzz.batch import run_one
from tests.fuzz.cases import FOLDER, all_cases, reasons, signature, store
from tests.fuzz.run import Totals, run_batch, table
from tests.fuzz.targets import TARGETS, Target, input_of
from tests.helpers.extent import usually

_SEED = 20261122
_INPUTS_EACH = usually(5, complete=100, thorough=15)


@pytest.mark.parametrize(
    ("name", "path"), all_cases(), ids=lambda value: value.stem if isinstance(value, Path) else value
)
def test_case(name, path, tmp_path, qapp):
    fault = run_one(name, path.read_bytes(), tmp_path)
    reason = reasons().get(f"{name}/{path.name}")
    if reason is not None:
        if fault:
            pytest.xfail(reason)
        pytest.fail("it works now: take it out of reasons.toml")
    assert fault == ""


@pytest.mark.parametrize("name", TARGETS)
def test_seeded_inputs(name, tmp_path, qapp):
    for index in range(_INPUTS_EACH):
        fault = run_one(name, input_of(name, _SEED, index), tmp_path)
        assert fault == "", f"input {index} of {name} with seed {_SEED}"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["expressions", "listing"])
def test_corpus(name, tmp_path, qapp):
    files = sorted((FOLDER.parent / "corpus" / name).iterdir())
    assert len(files) > 20
    for file in files:
        assert run_one(name, file.read_bytes(), tmp_path) == "", file.name


@pytest.mark.thorough
def test_minimised_corpus_reaches_the_same_lines(tmp_path):
    for text in (b"\0pid == 901", b"\0pid == 902", b"\0pid == 901 and tid == 1"):
        store(".", text, tmp_path / "all")
    # In a process of its own: tracing every line would slow down whatever else this one has to do.
    command = [
        sys.executable, "-m", "tests.fuzz.coverage", "expressions", str(tmp_path / "all"), "--minimise",
        str(tmp_path / "least"),
    ]  # fmt: skip
    subprocess.run(command, cwd=FOLDER.parents[2], check=True, timeout=120, capture_output=True)
    assert len([*(tmp_path / "least").rglob("*.bin")]) == 2


def test_inputs_are_repeatable():
    for name in TARGETS:
        assert input_of(name, 3, 4) == input_of(name, 3, 4)
    assert input_of("kev", 3, 4) != input_of("kev", 3, 5)


def _broken(data, folder):
    if data == b"loop":
        while True:
            pass
    raise ZeroDivisionError("by zero")


def test_faults_and_hangs_are_results(monkeypatch, tmp_path):
    monkeypatch.setitem(TARGETS, "broken", Target("broken", lambda rng: b"", _broken, limit_s=0.2))
    assert run_one("broken", b"x", tmp_path).startswith("ZeroDivisionError: by zero at ")
    assert run_one("broken", b"loop", tmp_path).startswith("hang: more than 0.2 s at ")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import os; print(7, flush=True); os.abort()", "death: SIGABRT"),
        ("import time; print(7, flush=True); time.sleep(60)", "hang: in C code"),
    ],
)
def test_a_child_that_dies_or_is_silent_costs_one_input(program, expected, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run_module, "_GRACE_S", -4.5)
    monkeypatch.setattr(run_module, "child_command", lambda *_: [run_module.sys.executable, "-c", program])
    totals = Totals()
    assert run_batch("kev", 1, 7, 1.0, totals, tmp_path) == 8
    assert expected in capsys.readouterr().out
    assert (totals.inputs, totals.hangs + totals.deaths, len(list(tmp_path.glob("kev/*.bin")))) == (1, 1, 1)
    assert "| all | 1 | 0 |" in table({"kev": totals})


def test_cases_are_kept_once(tmp_path):
    assert store("kev", b"a", tmp_path) == store("kev", b"a", tmp_path)
    assert (tmp_path / "kev").is_dir()
    assert signature("ValueError: 12 at a.py:3 f") == signature("ValueError: 99 at a.py:3 f")
