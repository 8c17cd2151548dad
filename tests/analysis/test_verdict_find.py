"""What is looked for in a trace, by which names, and which of several verdicts about one wait is reported."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import satview
from satview.analysis.verdicts.find import find_verdicts, kind_of, verdicts_of
from satview.answers.verdicts import find
from satview.base.errors import Cancelled, UsageError
from satview.formats.axis import Member, trace_on_axis
from tests.analysis.scenes import CALLS, END, PAUSE, SIGNAL, Scene, thresholds
from tests.analysis.test_verdict_scenes import dump, ends
from tests.helpers.kev import TraceBuilder

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def signalled_by_a_dead_thread():
    """5.2 signals a condition variable and ends; 5.1 waits for it from 60 on, 7.1 for a semaphore from 75 on."""
    scene = dump((5, 1), (5, 2), (7, 1)).state("RUNNING", 5, 5, 2).call(SIGNAL, 20, (0x3000, 0)).exit(SIGNAL, 21)
    ends(scene, 22, (5, 2)).state("RUNNING", 30, 5, 1).call(PAUSE, 50, (0x3000, 0x1000))
    scene.swap(60, (5, 1), "CONDVAR", (7, 1)).call(CALLS["SYNC_SEM_WAIT"], 70, (0x4000, 0))
    return scene.swap(75, (7, 1), "SEM", (1, 1)).event(END, 1060)


def test_a_wait_that_is_explained_is_no_verdict_of_its_own_besides(tmp_path):
    trace = signalled_by_a_dead_thread().open(tmp_path)
    limits = thresholds("waits-for-ever", least_ms=0.1, **{"lost-wakeup__least_ms": 0.1})

    def reported(*kinds):
        found = find_verdicts(trace, limits, kinds or None)
        return [(each.kind, trace.thread_name(each.threads[0])) for each in found]

    lost, condvar, semaphore = (
        ("lost-wakeup", "pid 5 1"),
        ("waits-for-ever", "pid 5 1"),
        ("waits-for-ever", "pid 7 1"),
    )
    assert reported("lost-wakeup") == [lost]
    assert reported("waits-for-ever") == [condvar, semaphore]
    assert reported() == [lost, semaphore]


def test_events_behind_the_time_that_can_be_trusted_count_on_request(tmp_path):
    """5.1 is ready when one event comes 37.9 s later, by a TIME event that nothing confirms."""
    builder, step, late = TraceBuilder(cpus=1), 40_000_000, 9 << 32
    for number in range(20):
        builder.time_event(number * step).state("RUNNING", number * step + 10, 6, 1)
    builder.state("READY", 19 * step + 20, 5, 1).time_event(late).state("READY", late + 5, 6, 1)
    trace = builder.state("RUNNING", late + 5, 5, 1).open(tmp_path)
    assert [each.kind for each in find_verdicts(trace)] == ["busy-loop"]
    assert [each.kind for each in find_verdicts(trace, everything=True)] == ["starvation", "busy-loop"]


def test_verdicts_are_looked_for_once(tmp_path):
    trace, shares = Scene().time_event(0).state("RUNNING", 1, 5, 1).event(END, 500_000).open(tmp_path), []
    with pytest.raises(Cancelled):
        verdicts_of(trace, lambda: True)
    assert [each.kind for each in verdicts_of(trace, progress=shares.append)] == ["busy-loop"]
    count = len(shares)
    assert shares[-1] == 1
    assert verdicts_of(trace, lambda: True, shares.append) == find_verdicts(trace)
    assert len(shares) == count, "not looked for again"


def test_the_files_of_an_axis_share_the_progress(tmp_path):
    part = Scene().time_event(0).state("RUNNING", 1, 5, 1).event(END, 500_000).open(tmp_path)
    trace = trace_on_axis(tmp_path / "x.sataxis", [Member("a", part), Member("b", part)])
    shares = []
    assert [each.kind for each in find_verdicts(trace, progress=shares.append)] == ["busy-loop", "busy-loop"]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < shares[-1] == 1


def test_no_thread_goes_on_looking_after_somebody_has_cancelled():
    trace = satview.open_trace(SAMPLES / "dense-4cpu.kev")
    with pytest.raises(Cancelled):
        find_verdicts(trace, cancelled=lambda: True)
    assert [thread.name for thread in threading.enumerate() if thread.name == "satview-verdicts"] == []


class Plugged:
    """A plug-in, of which only the name is needed."""

    name = "My-Lock"


@pytest.mark.parametrize(("text", "kind"), [
    ("deadlock", "deadlock"), ("Priority inversion", "priority-inversion"), ("ping_pong", "ping-pong"),
    ("inversion", "priority-inversion"), ("  for   EVER ", "waits-for-ever"), ("my lock", "My-Lock"),
])  # fmt: skip
def test_kinds_by_their_names(text, kind, monkeypatch):
    monkeypatch.setattr("satview.analysis.verdicts.find.plugins", lambda _kind: (Plugged(),))
    assert kind_of(text) == kind


@pytest.mark.parametrize(("text", "says"), [
    ("lock", "'lock' is more than one kind of verdict; there are busy-loop, chain, data-loss, deadline, deadlock"),
    ("", "'' is more than one kind of verdict; there are"),
    ("x" * 41, f"{'x' * 40!r} is not a kind of verdict; there are busy-loop"),
])  # fmt: skip
def test_texts_that_mean_no_kind(text, says):
    with pytest.raises(UsageError) as caught:
        kind_of(text)
    assert str(caught.value).startswith(says)


def test_a_whole_name_comes_before_a_part_of_another_one(monkeypatch):
    monkeypatch.setattr(Plugged, "name", "lock")
    monkeypatch.setattr("satview.analysis.verdicts.find.plugins", lambda _kind: (Plugged(),))
    assert kind_of("Lock") == "lock"


def test_kinds_are_named_in_any_form_and_others_are_refused(tmp_path):
    trace = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).open(tmp_path)
    assert find_verdicts(trace, kinds=["inversion", "Data loss"]) == ()
    with pytest.raises(UsageError, match="'nosuch' is not a kind of verdict; there are "):
        find_verdicts(trace, kinds=["nosuch"])
    assert find(trace, kinds=["inversion"]).undecided["kind"].tolist() == ["priority-inversion"]
    with pytest.raises(UsageError, match="'nosuch' is not a kind of verdict"):
        find(trace, kinds=["nosuch"])
