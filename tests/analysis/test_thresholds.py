"""Thresholds of verdicts: what ships, and files of users over it."""

from __future__ import annotations

import re
import tomllib

import pytest

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import Thresholds, default_thresholds, read_thresholds, rules, thresholds_text
from satview.base.errors import UsageError
from satview.capture.workloads import registry
from tests.capture.made import WIDE, traced


def test_every_kind_has_a_table_and_every_number_a_unit_and_a_comment(tmp_path):
    text = thresholds_text()
    assert {kind: {name: float(value) for name, value in table.items()} for kind, table in tomllib.loads(
        text).items()} == default_thresholds().values  # fmt: skip
    for line in text.splitlines():
        if re.match(r"[a-z_]+ = \d", line):
            assert re.match(r"[a-z_]+_(ms|us|percent|count) = [\d.]+ +# ", line), line
    (tmp_path / "same.toml").write_text(text)
    assert read_thresholds(tmp_path / "same.toml") == default_thresholds()
    assert default_thresholds().ns("deadlock", "least_ms") == 20_000_000
    assert default_thresholds().ns("priority-inversion", "least_us") == 1_000_000


DEFAULTS = """
busy-loop: least_ms 400, used_percent 60
deadlock: least_ms 20
growing-queue: least_count 16, least_ms 100
interrupt-flood: window_ms 20, taken_percent 25, serious_percent 50, least_count 300
leak: least_count 24, spread_ms 100
lock-contention: window_ms 100, waited_percent 100, least_count 10, passed_ms 100, kept_ms 20
long-ready: least_ms 60, serious_ms 150
lost-wakeup: least_ms 100, work_us 100
missed-period: least_count 8, regular_percent 80, tolerance_percent 5, late_percent 50
period: tolerance_percent 10
ping-pong: window_ms 20, slice_us 30, least_count 100
priority-inversion: least_us 1000
restarted-calls: window_ms 200, least_count 10
server-saturation: window_ms 100, queued_percent 100, least_count 8, least_us 200, passed_ms 100
starvation: window_ms 250, ready_percent 95
waits-for-ever: least_ms 100
"""


def test_the_numbers_that_ship():
    """What was measured with them (docs/answers.md) holds for these; a new verdict was not measured."""
    shipped = default_thresholds()
    assert {kind for kind in rules() if not shipped.is_enabled(kind)} == {k for k in rules() if rules()[k].timing}
    assert not shipped.is_enabled("period")
    assert shipped.values["data-loss"] == shipped.values["deadline"] == shipped.values["chain"] == {"enabled": 1}
    lines = {
        f"{kind}: {', '.join(f'{name} {value:g}' for name, value in table.items() if name != 'enabled')}"
        for kind, table in shipped.values.items()
    }
    assert not {*DEFAULTS.strip().splitlines()} - lines
    assert Thresholds({}).is_enabled("of a plug-in")


def test_a_file_replaces_what_it_names(tmp_path):
    (tmp_path / "mine.toml").write_text('[deadlock]\nleast_ms = 0.5\n["ping-pong"]\nenabled = false\n')
    found, default = read_thresholds(tmp_path / "mine.toml"), default_thresholds()
    assert found.ns("deadlock", "least_ms") == 500_000
    assert not found.is_enabled("ping-pong")
    assert found.is_enabled("deadlock")
    assert found.values["leak"] == default.values["leak"]
    assert default_thresholds().ns("deadlock", "least_ms") == 20_000_000, "the default is untouched"


def test_a_table_may_have_all_that_there_is(tmp_path):
    (tmp_path / "mine.toml").write_text(
        '[leak]\nseverity = "error"\nleast_count = 3\nthreads = ["a", "2:3"]\nspread_ms = 7\n[deadlock]\n'
        'threads = ["b"]\nleast_ms = 9\nseverity = "info"\nenabled = false\n'
    )
    limits = read_thresholds(tmp_path / "mine.toml")
    assert limits.values["leak"] == {"enabled": 1, "least_count": 3, "spread_ms": 7}
    assert limits.values["deadlock"] == {"enabled": 0, "least_ms": 9}
    assert limits.severities == {"leak": "error", "deadlock": "info"}
    assert limits.threads == {"leak": ("a", "2:3"), "deadlock": ("b",)}


@pytest.mark.parametrize(("text", "message"), [
    ("[deadlok]\n", "line 1: there is no kind 'deadlok'; there are busy-loop, chain, data-loss, deadline, deadlock, "),
    ("# mine\n[leak]\nleast_count = 3\n[deadlock]\nleast_count = 2\n", "line 5: [deadlock] has no 'least_count'"),
    ("[deadlock]\nleast_ms = '20'\n", "line 2: least_ms is not a number from 0 to 1000000000; write least_ms = 20"),
    ("[deadlock]\nleast_ms = true\n", "line 2: least_ms is not a number; write least_ms = 20"),
    ("[deadlock]\n\nenabled = 1\n", "line 3: enabled is not true or false; write enabled = false"),
    ("[deadlock]\nleast_ms = -1\n", "line 2: least_ms is not a number from 0"),
    ("[deadlock]\nleast_ms = nan\n", "line 2: least_ms is not a number from 0"),
    ("[deadlock]\nleast_ms = 1000000000.5\n", "line 2: least_ms is not a number from 0"),
    ("[leak]\n[ 'deadlock' ] # x\n'least_ms' = -1\n", "line 3: least_ms is not a number from 0"),
    ("deadlock.least_ms = -1\n", "rules.toml: least_ms is not a number from 0"),
    ("deadlok.least_ms = 1\n", "line 1: there is no kind 'deadlok'"),
    ("deadlock = [1, 2]\n", "line 1: deadlock is not a table; write [deadlock]"),
    ("[leak]\nleast_count = 3\nthreads = []\n", "line 3: threads is not a list of names; write threads = ["),
    ('[leak]\nthreads = ["a", 3]\n', "line 2: threads is not a list of names"),
    ('[leak]\nthreads = ["a", ""]\n', "line 2: threads is not a list of names"),
    ("[leak]\n\nenabled = 'no'\n", "line 3: enabled is not true or false; write enabled = false"),
    ("[" + "x" * 50 + "]\n", "line 1: there is no kind '" + "x" * 40 + "'; there are"),
    ("[leak]\n" + "y" * 50 + " = 1\n", f"has no {'y' * 40!r}; it has enabled, least_count, spread_ms, severity"),
    ("[deadlock]\nleast_ms = 1e400\n", "line 2: least_ms is not a number from 0"),
    ("[deadlock]\nleast_ms = " + "9" * 400, "line 2: least_ms is not a number from 0"),
    ("[deadlock]\nleast_ms = " + "9" * 5000, "digits"),
    ("deadlock = 3\n", "line 1: deadlock is not a table; write [deadlock]"),
    ("[deadlock]\nleast_ms 20\n", "line 2: "),
    ("[deadlock]\nleast_ms =", "line 2: "),
    ("x = " + "[" * 3000, "rules.toml"),
    ("[deadlock]\nleast_ms = 20\n" + "#" * 70_000, "more than 64 KiB"),
])  # fmt: skip
def test_errors_name_file_line_and_remedy(tmp_path, text, message):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_thresholds(path)
    assert str(caught.value).startswith("rules.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["0", "1e9", "1000000000", "0.25"])
def test_numbers_that_a_threshold_may_be(tmp_path, value):
    (tmp_path / "rules.toml").write_text(f"[leak]\nleast_count = {value}\n")
    assert read_thresholds(tmp_path / "rules.toml").number("leak", "least_count") == float(value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(UsageError, match=r"missing\.toml: there is no such file"):
        read_thresholds(str(tmp_path / "missing.toml"))
    (tmp_path / "most.toml").write_bytes(b"#" * 65_536)
    assert read_thresholds(tmp_path / "most.toml") == default_thresholds()
    (tmp_path / "more.toml").write_bytes(b"#" * 65_537)
    with pytest.raises(UsageError, match=r"more\.toml.* more than 64 KiB"):
        read_thresholds(tmp_path / "more.toml")
    (tmp_path / "latin.toml").write_bytes(b"[deadlock]\n# \xe4\n")
    with pytest.raises(UsageError, match=r"latin\.toml, line 2: no UTF-8"):
        read_thresholds(tmp_path / "latin.toml")
    with pytest.raises(UsageError, match="this is a directory"):
        read_thresholds(tmp_path)


def test_a_file_says_what_verdicts_count_as_and_of_which_threads(tmp_path):
    def found(rules):
        (tmp_path / "rules.toml").write_text(rules)
        return [(verdict.kind, str(verdict.severity)) for verdict in find_verdicts(trace, read_thresholds(
            tmp_path / "rules.toml"))]  # fmt: skip

    trace = traced(registry.find("inversion").setup, 200, tmp_path, modes=WIDE).trace
    assert found("") == [("priority-inversion", "error")]
    assert found('[priority-inversion]\nseverity = "info"') == [("priority-inversion", "info")]
    assert found('[priority-inversion]\nthreads = ["middle"]') == [("priority-inversion", "error")]
    assert found('[priority-inversion]\nthreads = ["1:1"]') == []
    assert found('[priority-inversion]\nthreads = ["1:1", "middle"]') == [("priority-inversion", "error")]
    with pytest.raises(UsageError, match="the trace has no thread 'nobody'"):
        found('[priority-inversion]\nthreads = ["nobody"]')
    with pytest.raises(
        UsageError, match='line 2: severity is none of error, warning, info; write severity = "warning"'
    ):
        found('[priority-inversion]\nseverity = "fatal"')
    with pytest.raises(UsageError, match="line 2: threads is not a list of names"):
        found('[priority-inversion]\nthreads = "middle"')
