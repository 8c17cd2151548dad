"""`satview stats` as a user runs it."""

from __future__ import annotations

import csv
import io
import json

import pytest

from satview.__main__ import main
from tests.helpers.scene import scene


@pytest.fixture
def path(tmp_path):
    return str(scene(tmp_path))


@pytest.fixture
def stats(path, capsys):
    """Run the command; return exit code, output, errors."""

    def run(*arguments, file=path):
        code = main(["stats", file, *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_threads_as_a_table(stats):
    code, out, _ = stats()
    assert code == 1  # buffers were lost
    lines = out.splitlines()
    assert lines[0] == "scene.kev: 20.00 µs, counting all 17 events"
    assert lines[1].startswith("Events were lost for 4.000 µs of it")
    assert lines[3].startswith("Threads")
    head, first = lines[4], lines[5]
    assert head.split()[:5] == ["Thread", "pid", "tid", "CPU", "time"]
    assert first.startswith("client 1")
    assert "6.999 µs" in first
    assert "35.0 %" in first


def test_csv_has_plain_numbers_with_units_in_their_names(stats):
    rows = rows_of(stats("--format", "csv")[1])
    assert [(row["thread"], row["cpu_ns"], row["reply_ns"], row["unknown_ns"]) for row in rows] == [
        ("client 1", "6999", "4001", "8000"),
        ("server 1", "3999", "0", "8000"),
        ("unknown", "0", "0", "0"),
    ]
    assert sum(int(row["events"]) for row in rows) == 17  # "unknown" has those of no known thread


def test_what_is_not_exact_is_said_in_every_form(stats):
    """Interrupts were not captured, so CPU times may be less; events were lost, so there may be more runs."""
    lines = stats()[1].splitlines()
    assert "\u2248 6.999 \u00b5s" in lines[5]
    assert lines[8].startswith(
        "\u2248 3 of 3 in CPU time, Of one CPU, Of all CPUs, Mean run: interrupts were not captured"
    )
    assert lines[9].startswith("\u2265 3 of 3 in Runs, Longest run, READY")
    [client, *_] = rows_of(stats("--format", "csv")[1])
    assert (client["cpu_known"], client["runs_known"]) == ("estimate", "at least")
    assert "unknown_known" not in client
    reported = json.loads(stats("--format", "json")[1])
    known = reported["thread"][0]["known"]
    assert (known["cpu_ns"], known["runs"]) == ("estimate", "at least")
    assert not {"pid", "unknown_ns"} & known.keys()
    marks = {key: trust["mark"] for key, trust in reported["trust"]["thread"].items()}
    assert (marks["pid"], marks["cpu_ns"], marks["runs"]) == ("exact", "estimate", "lower-bound")


def test_sort_top_and_range(stats):
    rows = rows_of(stats("--format", "csv", "--sort", "receive_ns", "--top", "1", "--range", "0..5us")[1])
    assert [(row["thread"], row["receive_ns"]) for row in rows] == [("server 1", "4001")]
    assert [row["thread"] for row in rows_of(stats("--format", "csv", "--sort", "thread")[1])] == [
        "client 1",
        "server 1",
        "unknown",
    ]


def test_json_holds_several_tables(stats):
    reported = json.loads(stats("--format", "json", "--by", "cpu", "--by", "call")[1])
    assert (reported["start_ns"], reported["end_ns"], reported["counts"]) == (0, 20_001, "all 17 events")
    assert [cpu["busy_ns"] for cpu in reported["cpu"]] == [10_998, 0]
    assert [cpu["longest_run_ns"] is None for cpu in reported["cpu"]] == [False, True]  # nothing ran on it
    assert "\nCPU 1   " in stats("--by", "cpu")[1]  # blank for people
    assert reported["call"][0]["call"] == "MSG_SENDV"
    assert reported["call"][0]["longest_ns"] == 7000


def test_a_filter_is_named_and_touches_no_time(stats, tmp_path):
    _, out, _ = stats("-e", "class == USREVENT")
    assert "counting 2 of 17 events, those that pass: class == USREVENT" in out
    rules = tmp_path / "few.satrules"
    rules.write_text("DELALLCLASSES\nADDCLASS KERCALL\n")
    reported = json.loads(stats("-r", str(rules), "--format", "json", "--by", "thread", "--by", "event")[1])
    assert reported["counts"] == "2 of 17 events, those that pass: rules of few.satrules"
    assert [row["event"] for row in reported["event"]] == ["MSG_SENDV", "MSG_SENDV"]
    assert [(row["thread"], row["cpu_ns"], row["events"]) for row in reported["thread"]] == [("client 1", 6999, 2)]


def test_threads_are_those_with_an_event_that_passes_in_the_range(stats):
    """Of the changes of state, only the last one of the client, to NANOSLEEP, is at 12 us; the server waits there."""
    for part, threads in (("0us..20us", ["client 1", "server 1"]), ("11us..13us", ["client 1"])):
        rows = rows_of(stats("-e", "class == THREAD", "--format", "csv", "--range", part)[1])
        assert [row["thread"] for row in rows if row["thread"] != "unknown"] == threads
    assert "server 1" in stats("--range", "11us..13us")[1], "which is there"


def test_no_table_says_of_all_threads_what_is_true_of_those_that_pass(stats):
    """Times of threads do not follow a filter, and that no thread is left does not mean that none is known."""
    total = stats("--by", "state-total", "--format", "csv")[1]
    ran = {row["state"]: (row["total_ns"], row["threads"]) for row in rows_of(total)}["RUNNING"]
    assert ran == (str(6_999 + 3_999), "2")  # those of client and server above
    for condition in ("class == USREVENT", "class == SEC"):
        assert stats("--by", "state-total", "--format", "csv", "-e", condition)[1] == total
    out = stats("--by", "all", "-e", "class == SEC")[1]
    for sentence in (
        "No thread with an event that passes the filter is known in this range.",
        "No state of a thread with an event that passes the filter is known in this range.",
        "No process with an event that passes the filter is known in this range.",
        "No thread with an event that passes the filter runs on one CPU and then on another in this range.",
    ):
        assert sentence in out
    assert "No thread is" not in out
    assert "No state is" not in out
    assert "No process is" not in out


@pytest.mark.thorough
def test_all_tables_of_all_samples(stats, capsys):
    for sample in ("dense-4cpu.kev", "vendor-all_classes.kev", "threads"):
        code, out, _ = stats("--by", "all", file=f"sample_traces/{sample}")
        assert code in (0, 1)
        assert "Kernel calls" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sort", "nonsense"), "threads have no column 'nonsense'; they have thread, pid, tid, cpu_ns"),
        (("--format", "csv", "--by", "all"), "holds one table"),
        (("--range", "5s..6s"), "outside the trace"),
        (("--range", "x"), "is not a range"),
        (("-e", "pidd == 1"), "-e, column"),
        (("-r", "missing.satrules"), "missing.satrules"),
        (("--top", "-1"), "--top must be at least 1, not -1"),
        (("--top", "0"), "--top must be at least 1, not 0"),
    ],
)
def test_what_does_not_fit_is_one_sentence(stats, arguments, message):
    code, out, err = stats(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_not_a_trace(stats, tmp_path):
    (tmp_path / "x.kev").write_bytes(b"nothing")
    code, _, err = stats(file=str(tmp_path / "x.kev"))
    assert code == 2
    assert err.startswith("satview: x.kev")


def test_a_range_from_the_end_is_no_option(stats):
    """`--range -4us..` as two arguments: EVENT 8 alone, as the BUFFER event at 16 us is a cycle too early."""
    assert stats("--range", "-4us..")[1].splitlines()[0] == "scene.kev: 4.000 µs, counting 1 event"
    assert stats("--range=-5us..-2us")[1].splitlines()[0] == "scene.kev: 3.000 µs, counting 1 event"
