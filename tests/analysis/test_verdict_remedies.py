"""What would help, by what the trace shows of priorities, of idle CPUs and of who waits for what."""

from __future__ import annotations

import pytest

from satview.analysis.verdicts.system import _no_sleep
from tests.analysis.scenes import END, Scene, found
from tests.analysis.test_verdict_scenes import beside_idle, mixed, pulse_queue, senders
from tests.analysis.test_verdict_sentences import QUEUE, chain, channels, circle, dead_posters, queue


def rivals(own, *theirs):
    """5.1 is ready from 100 to 400; 6.1 runs meanwhile, whose state is logged at some times with some priorities."""
    scene, is_ready = Scene().time_event(0), False
    for time, priority in (*theirs, (400, 1)):
        if time > 100 and not is_ready:
            scene.state("READY", 100, 5, 1, extra=(own, 2))
            is_ready = True
        if time < 400:
            scene.state("RUNNING", time, 6, 1, extra=(priority, 2))
    return scene.swap(400, (6, 1), "RECEIVE", (5, 1)).event(END, 500)


LOWER = ("Let pid 6 1 (priority 30) wait at times or run at less than 20; give pid 5 1 a higher priority only if its "
         "work is more urgent.")  # fmt: skip
SAME = ("pid 6 1 has the same priority (20): let it wait at times, or run both with the policy SCHED_RR; a higher "
        "priority for pid 5 1 only moves the problem.")  # fmt: skip
HIGHER = ("pid 5 1 has the higher priority (20, pid 6 1 19), to no avail: look at the budget of its partition (aps "
          "show) and at its runmask (pidin).")  # fmt: skip
NOT_KNOWN = "Compare its priority with that of the threads that ran, and look at the budget of its partition."
AFFINITY = "Let it run on the CPUs that are idle: widen its runmask, or the budget of its partition."


@pytest.mark.parametrize(("scene", "says"), [
    (rivals(20, (1, 30)), LOWER), (rivals(20, (1, 20)), SAME), (rivals(20, (1, 19)), HIGHER),
    (rivals(1, (1, 1)), SAME.replace("20", "1")), (rivals(0, (1, 30)), NOT_KNOWN),
    (rivals(20, (1, 9), (2, 30)), LOWER), (rivals(20, (1, 9), (101, 30)), LOWER),
    (rivals(20, (1, 9), (101, 30), (200, 8), (300, 7)), LOWER),
    (beside_idle(200), AFFINITY),
])  # fmt: skip
def test_what_would_let_a_thread_run(scene, says, tmp_path):
    """The priority of the other one is that with which it is logged next, or was logged last."""
    _, [one] = found(scene, "long-ready", tmp_path, least_ms=0.3)
    assert one.remedy == says
    _, [one] = found(scene, "starvation", tmp_path, window_ms=0.3, ready_percent=100)
    assert one.remedy == says


PILES = {"least_count": 6, "least_ms": 0.4}
FOR_EVER = {"least_ms": 1}


@pytest.mark.parametrize(("kind", "scene", "limits", "says"), [
    ("growing-queue", pulse_queue(), PILES, ["Receive all pulses that wait before the work, "]),
    ("growing-queue", pulse_queue(8, 0), PILES, ["Let a thread receive there again: "]),
    ("leak", channels(3, end=180), {"least_count": 3, "spread_ms": 0}, ["Call ChannelDestroy() when one "]),
    ("leak", channels(3, create="CONNECT_ATTACH", destroy="CONNECT_DETACH", end=180),
     {"least_count": 3, "spread_ms": 0}, ["Call ConnectDetach() when one "]),
    ("server-saturation", queue(20), QUEUE, ["Give the server more threads, "]),
    ("deadlock", senders(), FOR_EVER, ["Break the circle: "]),
    ("deadlock", mixed(), FOR_EVER, ["Give up mutex 0x1000 (process pid 5) before a message is sent to "]),
    ("deadlock", circle(), FOR_EVER, [
        "Let all threads take mutex 0x1000 (process pid 5) and mutex 0x2000 (process pid 5) in the same order."]),
    ("waits-for-ever", dead_posters(1), FOR_EVER, ["Keep that thread alive as long as others wait, "]),
    ("priority-inversion", chain(), {"least_us": 100}, [
        "Look where mutex 0x2000 (process pid 5) is made without priority inheritance (PTHREAD_PRIO_NONE), and give it "
        f"the protocol PTHREAD_PRIO_INHERIT: pid 5 4 then runs at priority {priority} " for priority in (25, 30)]),
])  # fmt: skip
def test_what_would_help(kind, scene, limits, says, tmp_path):
    _, verdicts = found(scene, kind, tmp_path, **limits)
    assert [each.remedy[: len(text)] for each, text in zip(verdicts, says, strict=True)] == says


def test_a_server_that_sleeps_most_of_the_time_shall_not():
    assert _no_sleep("NANOSLEEP 60 %, RUNNING 40 %") == "Do not sleep while a client waits for the reply. "
    assert _no_sleep("RUNNING 60 %, NANOSLEEP 40 %") == _no_sleep("") == ""
