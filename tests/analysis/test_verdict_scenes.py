"""More rules on scenes that a reader can add up: servers, queues, why a wait never ends, and what would help."""

from __future__ import annotations

import pytest

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import ENABLED, Thresholds, default_thresholds
from satview.events import wire
from tests.analysis.scenes import (
    CALLS,
    END,
    INTERRUPT,
    INTERRUPT_EXIT,
    LOCK,
    PAUSE,
    PULSE,
    RECEIPT,
    RECEIVED_PULSE,
    REPLY,
    SEND,
    SIGNAL,
    UNLOCK,
    Scene,
    reported,
    verdict,
)
from tests.analysis.test_verdict_sentences import channels, flood, interrupted, signalled

SENDV, UNMASK, WAIT, DESTROY = (
    CALLS[name] for name in ("MSG_SENDV", "INTERRUPT_UNMASK", "INTERRUPT_WAIT", "THREAD_DESTROY")
)
A_MS = "1.000 ms"


# --- Servers and queues ---------------------------------------------------------------------------------------------
def passed_over(*waits, others=3, served=1, pid=5):
    """10.1 waits for `disk` from and for how long as given, which meanwhile receives messages of 11.1, 3 after each.

    The reply to 10.1 comes 1 after the receipt, or later. At 23 and 233 a second thread receives messages of 12.1.
    """
    scene, events = Scene(cpus=2).time_event(0).process_name(0, pid, "disk").state("RUNNING", 1, pid, 4, 1), []
    turns = [(20, 12, 3), (230, 12, 3)]
    for begin, length in waits:
        turns += [(begin, 10, length), *((begin + 10 + 10 * number, 11, 3) for number in range(others))]
    for number, (sent, client, queued) in enumerate(turns):
        rcvid, received = (number + 1) << 16 | 1, sent + queued
        replied = received + (served if client == 10 else 1)
        events += [(sent - 3, 0, "RUNNING", (client, 1)), (sent - 2, 0, wire.code(2, SENDV), (7, 0)),
                   (sent - 1, 0, SEND, (rcvid, pid)), (sent, 0, "SEND", (client, 1))]  # fmt: skip
        if received < 1000:
            events += [(received - 0.5, 1, RECEIPT, (rcvid, pid)), (received, 1, "REPLY", (client, 1)),
                       (replied, 1, REPLY, (1, client)), (replied + 1, 1, "READY", (client, 1))]  # fmt: skip
        if client == 12:
            events += [(sent, 1, "READY", (pid, 4)), (sent, 1, "RUNNING", (pid, 5)),
                       (replied + 1, 1, "RECEIVE", (pid, 5)), (replied + 1, 1, "RUNNING", (pid, 4))]  # fmt: skip
    for time, cpu, what, words in sorted(events, key=lambda event: event[0]):
        scene.state(what, time, *words, cpu) if isinstance(what, str) else scene.event(what, time, words, cpu)
    return scene.event(END, 1000)


def passed(count, longest, before=(), again=""):
    begin, end = longest
    return verdict(
        f"pid 10 1 waits {end - begin:.1f} µs from 0.000 {begin} 000 s for disk to receive its message, while disk "
        f"receives {count} others{again}.", "warning", (begin, end), threads=["pid 10 1", "disk 4"],
        objects=["server disk"], events=[(begin, "queues")],
        occurrences=[(start, stop, start) for start, stop in (*([before] if before else []), longest)],
    )  # fmt: skip


def pulse_queue(sent=8, served=2, before=1, earlier=0, since=170.5, sender=(4, 1)):
    """4.1 sends pulses to `ear`, one every 20 from 100 on; some are received, one every 20 too.

    Before that some are received at once, and some that were sent before the trace. One pulse of another connection,
    and one of another process, are not.
    """
    events = [(60, PULSE, (8, 5)), (70, PULSE, (9, 6)), *((100 + 20 * n, PULSE, (9, 5)) for n in range(sent))]
    for number in range(before):
        events += [(20 + number * 20, PULSE, (9, 5)), (25 + number * 20, RECEIVED_PULSE, (9, 5))]
    events += [(10 + 10 * number, RECEIVED_PULSE, (9, 5)) for number in range(earlier)]
    events += [(since + 20 * number, RECEIVED_PULSE, (9, 5)) for number in range(served)]
    scene = Scene().time_event(0).process_name(0, 5, "ear")
    if sender:
        scene.state("RUNNING", 1, *sender)
    for time, code, words in sorted(events):
        if code == PULSE:
            scene.event(code, time, words)
        else:
            scene.swap(time - 0.4, sender, "READY", (5, 1)).event(code, time, words)
            scene.swap(time + 0.2, (5, 1), "RECEIVE", sender)
    return scene.event(END, 500)


def pulses_around_a_loss():
    """4.1 sends six pulses from 10 on; a buffer is missing from 65 to 100; then it sends seven, one every 20."""
    scene = Scene().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).process_name(0.1, 5, "ear")
    scene.state("RUNNING", 1, 4, 1)
    for number in range(6):
        scene.event(PULSE, 10 + 10 * number, (9, 5))
    scene.state("RUNNING", 65, 4, 1).event(wire.CONTROL_BUFFER, 100, (3, 0)).time_event(100)
    scene.state("RUNNING", 100, 4, 1)
    for number in range(7):
        scene.event(PULSE, 100 + 20 * number, (9, 5))
    return scene.event(END, 500)


def piles(sent, does, waiting, *, last=None, severity="warning"):
    first = 100 + 20 * (sent - waiting)
    return verdict(
        f"{sent} pulses are sent to ear from 0.000 100 000 s to the end of the trace, 400.0 µs, one every "
        f"20.00 µs, and {does}: {waiting} wait at the end, the oldest for {500 - first}.0 µs.",
        severity, (100, 500.001),
        threads=["ear 1"] * (last is not None) + ["pid 4 1"], objects=["pulses to ear"],
        events=sorted([*((time, "waits") for time in range(first, 100 + 20 * sent, 20)),
                       *([(last, "last receipt")] if last is not None else ())]),
    )  # fmt: skip


def sleeper(late, count=11, other_cpu=None):
    """5.1 sleeps until 100, 200, ... and runs 2 later, or as late as given; then for 10. 6.1 runs while it does not.

    Of another CPU there may be events from some time on.
    """
    scene, now = Scene(cpus=2).time_event(0).state("RUNNING", 10, 5, 1), 10
    for number in range(count):
        due = 100 + number * 100
        if due == other_cpu:
            scene.time_event(due, 1).state("RUNNING", due, 1, 2, 1)
        scene.swap(now + 10, (5, 1), "NANOSLEEP", (6, 1)).state("READY", due, 5, 1)
        now = due + late.get(number, 2)
        scene.swap(now, (6, 1), "READY", (5, 1))
    return scene.event(END, now + 8)


def slept(since, late):
    return (f"pid 5 1 has a period of 100.0 µs, has slept enough at 0.000 {since} 000 s and runs only {late}.00 µs "
            f"later; meanwhile ran pid 6 1 {late}.00 µs")  # fmt: skip


LATE_ONCE = verdict(
    f"{slept(500, 50)}.", "warning", (500, 550), threads=["pid 5 1", "pid 6 1"], certainty="inferred",
    events=[(500, "has slept"), (550, "runs late")], occurrences=[(500, 550, 500)],
)  # fmt: skip
LATE_TWICE = {
    **LATE_ONCE, "says": f"{slept(900, 60)}; it happened once before, at 0.000 500 000 s.", "span": (900, 960),
    "events": [*LATE_ONCE["events"], (900, "has slept"), (960, "runs late")],
    "occurrences": [(500, 550, 500), (900, 960, 900)],
}  # fmt: skip


# --- One long wait for a mutex --------------------------------------------------------------------------------------
def overtaken(*gives, end=400):
    """5.1 waits from 100 on for a mutex that threads of its process give up at some times, 5.9 last of all."""
    scene = Scene().time_event(0).state("READY", 1, 5, 9).state("RUNNING", 80, 5, 9).call(UNLOCK, 85, (0x1000, 0))
    scene.exit(UNLOCK, 86).swap(90, (5, 9), "READY", (5, 1)).call(LOCK, 95, (0x1000, 9 << 16 | 5))
    scene.swap(100, (5, 1), "MUTEX", (5, 9)).call(UNLOCK, 110, (0x2000, 0)).exit(UNLOCK, 111)
    runs = 5, 9
    for time, tid in gives:
        scene.swap(time - 2, runs, "NANOSLEEP", (5, tid)).call(UNLOCK, time, (0x1000, 0)).exit(UNLOCK, time + 1)
        runs = 5, tid
    if end < 1000:
        scene.state("READY", end, 5, 1).call(UNLOCK, end + 20, (0x1000, 0)).exit(UNLOCK, end + 21)
    return scene.event(END, 1000)


def overtook(count, *who, end=400, named=()):
    names = [f"pid 5 {tid}" for tid in who]
    return verdict(
        f"pid 5 1 waits {end - 100:.1f} µs from 0.000 100 000 s for mutex 0x1000 (process pid 5), which others have "
        f"and give up {count} times meanwhile: {' and '.join(named or names)}.", "warning", (100, end),
        threads=["pid 5 1", *names], objects=["mutex 0x1000 (process pid 5)"], certainty="inferred",
        events=[(95, "asks"), (100, "waits"), *[(end, "goes on")] * (end < 1000)],
    )  # fmt: skip


def kept(*waits):
    """5.1 waits for a mutex of 5.2 for 300 from 100, 500, ... on; meanwhile 5.2 is ready as given, and 6.1 runs."""
    scene = Scene().time_event(0).state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1)
    for number, ready in enumerate(waits):
        base = 400 * number
        if number:
            scene.swap(base + 90, (5, 2), "READY", (5, 1))
        scene.call(LOCK, base + 95, (0x1000, 2 << 16 | 5)).swap(base + 100, (5, 1), "MUTEX", (5, 2))
        for begin, end in ready:
            scene.swap(begin, (5, 2), "READY", (6, 1)).swap(end, (6, 1), "NANOSLEEP", (5, 2))
        scene.call(UNLOCK, base + 399, (0x1000, 0)).state("READY", base + 400, 5, 1).exit(UNLOCK, base + 401)
    return scene.event(END, 400 * len(waits) + 50)


def kept_at_both_ends():
    """5.1 waits from 100 to 400 for a mutex of 5.2, which is ready up to 160 and from 340 to 450, while 6.1 runs."""
    scene = Scene().time_event(0).state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1)
    scene.call(LOCK, 95, (0x1000, 2 << 16 | 5)).swap(100, (5, 1), "MUTEX", (6, 1))
    scene.swap(160, (6, 1), "NANOSLEEP", (5, 2)).swap(340, (5, 2), "READY", (6, 1)).state("READY", 400, 5, 1)
    return scene.swap(450, (6, 1), "NANOSLEEP", (5, 2)).event(END, 500)


def kept_server():
    """5.1 waits for the reply of 6.1, which is ready from 120 to 320 while 7.1 runs."""
    scene = exchange(dump((5, 1), (6, 1)), 90, (5, 1), (6, 1), 0x10001).swap(120, (6, 1), "READY", (7, 1))
    return scene.swap(320, (7, 1), "NANOSLEEP", (6, 1)).event(REPLY, 390, (1, 5)).state("READY", 391, 5, 1)


def could_run(length=100, again="", others=()):
    return verdict(
        "pid 5 1 waits 300.0 µs from 0.000 100 000 s for mutex 0x1000 (process pid 5), held by pid 5 2, which could "
        f"run and did not for {length}.0 µs of that; meanwhile ran pid 6 1 {length}.0 µs{again}: a priority inversion "
        "is possible, no event has priorities.", "warning", (100, 400), threads=["pid 5 1", "pid 5 2", "pid 6 1"],
        objects=["mutex 0x1000 (process pid 5)"], events=[(95, "asks"), (100, "waits"), (400, "goes on")],
        occurrences=[(100, 400, 100), *others],
    )  # fmt: skip


# --- Waits that never end -------------------------------------------------------------------------------------------
def dump(*threads, release="7.1.0"):
    """Begin a trace whose opening dump has some threads; process 6 is `srv`."""
    scene = Scene(release).process_name(0, 6, "srv")
    for number, thread in enumerate(threads):
        scene.event(wire.THREAD_CREATE, 0.1 + number / 100, thread)
    return scene.time_event(0.5)


def exchange(scene, at, client, receiver, rcvid, replier=None, *, is_received=True):
    """A thread sends to another one, which runs then; somebody replies and waits on, or nobody does."""
    scene.state("RUNNING", at, *client).call(SENDV, at + 1, (7, 0)).event(SEND, at + 2, (rcvid, receiver[0]))
    scene.swap(at + 3, client, "SEND", receiver)
    if is_received:
        scene.event(RECEIPT, at + 4, (rcvid, receiver[0]))
    scene.state("REPLY", at + 5, *client)
    if replier:
        scene.swap(at + 6, receiver, "RECEIVE", replier).event(REPLY, at + 7, client[::-1])
        scene.state("READY", at + 8, *client).state("CONDVAR", at + 9, *replier)
    return scene


def ends(scene, at, thread):
    """A thread runs and ends itself."""
    scene.state("RUNNING", at, *thread).call(DESTROY, at + 1).event(wire.THREAD_DESTROY, at + 2, thread)
    return scene.state("DEAD", at + 3, *thread)


def senders():
    """5.1 sends to process 6 from 30 on, whose only thread sends to process 5 from 60 on."""
    scene = dump((5, 1), (6, 1)).state("READY", 1, 6, 1).state("RUNNING", 10, 5, 1).call(SENDV, 20, (7, 0))
    scene.event(SEND, 21, (0x10001, 6)).swap(30, (5, 1), "SEND", (6, 1)).call(SENDV, 50, (7, 0))
    return scene.event(SEND, 51, (0x20001, 5)).swap(60, (6, 1), "SEND", (1, 1)).event(END, 1060)


def mixed():
    """5.1 sends to 5.2, which receives it, and from 60 on waits for a mutex of 5.1."""
    scene = exchange(dump((5, 1), (5, 2)), 10, (5, 1), (5, 2), 0x10001).call(LOCK, 50, (0x1000, 1 << 16 | 5))
    return scene.swap(60, (5, 2), "MUTEX", (1, 1)).event(END, 1060)


def unknown_holders():
    """5.1 and 5.2 wait for mutexes that no event names; there are no other threads."""
    scene = dump((5, 1), (5, 2)).state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1)
    return scene.swap(30, (5, 1), "MUTEX", (5, 2)).swap(60, (5, 2), "MUTEX", (1, 1)).event(END, 1060)


def semaphore_and_mutex():
    """5.2 posts a semaphore that 5.1 waits for from 30 on, and waits from 60 on for a mutex of 5.1."""
    post, wait = CALLS["SYNC_SEM_POST"], CALLS["SYNC_SEM_WAIT"]
    scene = dump((5, 1), (5, 2)).state("RUNNING", 5, 5, 2).call(post, 6, (0x4000, 0)).exit(post, 7)
    scene.swap(8, (5, 2), "READY", (5, 1)).call(wait, 20, (0x4000, 0)).swap(30, (5, 1), "SEM", (5, 2))
    return scene.call(LOCK, 50, (0x1000, 1 << 16 | 5)).swap(60, (5, 2), "MUTEX", (1, 1)).event(END, 1060)


def unless(*others):
    """5.1 waits for the reply of 6.1, which sends to process 5, whose other threads may receive that."""
    scene = exchange(dump((5, 1), (6, 1), *((5, tid) for tid in others)), 10, (5, 1), (6, 1), 0x10001)
    scene.call(SENDV, 50, (7, 0)).event(SEND, 51, (0x20001, 5)).swap(60, (6, 1), "SEND", (1, 1))
    return scene.event(END, 1060)


def stuck(says, threads, objects, events, severity="error", certainty="exact"):
    return verdict(
        f"{says} none of them runs again from 0.000 060 s to the end of the trace, 1.000 ms.", severity,
        (60, 1060.001), threads=threads, objects=objects, events=events, certainty=certainty,
    )  # fmt: skip


ASKS = [(20, "asks"), (30, "waits"), (50, "asks"), (60, "waits")]
SENDERS = stuck(
    "pid 5 1 waits for srv to receive its message, srv 1 waits for pid 5 to receive its message:",
    ["pid 5 1", "srv 1"], ["srv to receive its message", "pid 5 to receive its message"], ASKS,
)  # fmt: skip
MIXED = stuck(
    "pid 5 1 waits for the reply from pid 5 2, pid 5 2 waits for mutex 0x1000 (process pid 5), held by pid 5 1:",
    ["pid 5 1", "pid 5 2"], ["the reply", "mutex 0x1000 (process pid 5)"],
    [(11, "asks"), (15, "waits"), (50, "asks"), (60, "waits")],
)  # fmt: skip
SEMAPHORE_AND_MUTEX = stuck(
    "pid 5 1 waits for semaphore 0x4000 (process pid 5), pid 5 2 waits for mutex 0x1000 (process pid 5), held by "
    "pid 5 1:", ["pid 5 1", "pid 5 2"], ["semaphore 0x4000 (process pid 5)", "mutex 0x1000 (process pid 5)"], ASKS,
    "warning", "inferred",
)  # fmt: skip
UNKNOWN_HOLDERS = stuck(
    "pid 5 1 waits for a mutex, whose holder no event shows, pid 5 2 waits for a mutex, whose holder no event shows:",
    ["pid 5 1", "pid 5 2"], ["a mutex", "a mutex"], [(30, "waits"), (60, "waits")], "warning", "guess",
)  # fmt: skip


def maybe(who):
    return stuck(
        "pid 5 1 waits for the reply from srv 1, srv 1 waits for pid 5 to receive its message: unless "
        f"{who} can end one of these waits,", ["pid 5 1", "srv 1"], ["the reply", "pid 5 to receive its message"],
        [(11, "asks"), (15, "waits"), (50, "asks"), (60, "waits")], "warning", "guess",
    )  # fmt: skip


def left_alone(*tids, stays=()):
    """5.1 waits for a condition variable from 60 on; then the other threads of its process end, or some stay."""
    scene = dump((5, 1), *((5, tid) for tid in (*tids, *stays)), (6, 1)).state("RUNNING", 10, 5, 1)
    scene.call(PAUSE, 50, (0x3000, 0x1000)).swap(60, (5, 1), "CONDVAR", (5, tids[0]))
    for number, tid in enumerate(tids):
        ends(scene, 70 + 10 * number, (5, tid))
    return scene.state("RUNNING", 200, 1, 1).event(END, 1060)


def alone(who, left):
    names = [f"pid 5 {tid}" for tid in who]
    return verdict(
        f"pid 5 1 waits for condition variable 0x3000 (process pid 5), and {' and '.join(names)}, the last "
        f"other {left} of its process, ended meanwhile, from 0.000 060 s to the end of the trace, "
        f"{A_MS}.", "warning", (60, 1060.001), threads=["pid 5 1", *names],
        objects=["condition variable 0x3000 (process pid 5)"], events=[(50, "asks"), (60, "waits")],
        certainty="inferred",
    )  # fmt: skip


def never_posted(timeout=False):
    """5.1 waits from 60 on for a semaphore that nobody posts; with TimerTimeout() that is no wait for ever."""
    scene = dump((5, 1), (5, 2)).state("RUNNING", 10, 5, 1)
    if timeout:
        scene.call(CALLS["TIMER_TIMEOUT"], 45, (2, 0)).exit(CALLS["TIMER_TIMEOUT"], 46)
    return scene.call(CALLS["SYNC_SEM_WAIT"], 50, (0x4000, 0)).swap(60, (5, 1), "SEM", (1, 1)).event(END, 1060)


NEVER_POSTED = verdict(
    "pid 5 1 waits for semaphore 0x4000 (process pid 5), which nobody else posts in this trace, from 0.000 060 s "
    "to the end of the trace, 1.000 ms.", "info", (60, 1060.001), threads=["pid 5 1"],
    objects=["semaphore 0x4000 (process pid 5)"], events=[(50, "asks"), (60, "waits")], certainty="guess",
)  # fmt: skip


def masked(*unmasks):
    """5.1 waits for an interrupt every 10 from 14 on, and unmasks it in front of each wait as given."""
    scene = dump((5, 1)).state("RUNNING", 5, 5, 1)
    for number, is_unmasked in enumerate(unmasks):
        now = 10 * (number + 1)
        if is_unmasked:
            scene.call(UNMASK, now, (9, 1)).exit(UNMASK, now + 1)
        scene.call(WAIT, now + 3).swap(now + 4, (5, 1), "INTR", (1, 1))
        if number < len(unmasks) - 1:
            scene.swap(now + 8, (1, 1), "READY", (5, 1)).exit(WAIT, now + 9)
    return scene.event(END, 1054)


MASKED = verdict(
    "pid 5 1 waits for an interrupt, which it did not unmask after the last one, from 0.000 054 s to the end of "
    "the trace, 1.000 ms.", "warning", (54, 1054.001), threads=["pid 5 1"], objects=["an interrupt"],
    events=[(53, "asks"), (54, "waits")], certainty="inferred",
)  # fmt: skip


def replied_before(*tids):
    """6.1 receives messages of 5.1, to which other threads reply that end; to the last one, of 90, nobody does."""
    scene = dump((5, 1), (6, 1), *((6, tid) for tid in tids))
    for number, tid in enumerate(tids):
        ends(exchange(scene, 10 + 20 * number, (5, 1), (6, 1), 0x10001 * (number + 1), (6, tid)), 20 + 20 * number,
             (6, tid))  # fmt: skip
    return exchange(scene, 90, (5, 1), (6, 1), 0x90001).swap(100, (6, 1), "RECEIVE", (1, 1)).event(END, 1095)


def unanswered(why, since, threads=(), severity="info", certainty="guess"):
    return verdict(
        f"pid 5 1 waits for the reply, which srv 1 received{why}, from 0.000 {since:03} s to the end of the trace, "
        f"{A_MS}.", severity, (since, since + 1000.001), threads=["pid 5 1", "srv 1", *threads], objects=["the reply"],
        events=[(since - 4, "asks"), (since, "waits")], certainty=certainty,
    )  # fmt: skip


def turned_away(worker=None, at_last=None, *, has_dump=True, is_received=True):
    """6.1 receives a message of 5.1, then one of 7.1, to which alone it replies; 6.2 is in a state, if it is there."""
    scene = dump((5, 1), (7, 1), (6, 1), *[(6, 2)] * bool(worker)) if has_dump else Scene().time_event(0)
    if worker:
        scene.state(worker, 2, 6, 2)
    exchange(scene, 10, (5, 1), (6, 1), 0x10001, is_received=is_received).state("READY", 20, 6, 1)
    exchange(scene, 20, (7, 1), (6, 1), 0x20001).event(REPLY, 30, (1, 7)).state("READY", 31, 7, 1)
    if at_last:
        scene.swap(40, (6, 1), at_last, (1, 1))
    return scene.event(END, 1015)


TURNED = " and did not reply to before it turned to others"


# --- Signals and READY ----------------------------------------------------------------------------------------------
def habit(rounds, ran):
    """5.1 is woken some times and runs for 100 each time, then sleeps; a signal comes, it runs as given, and waits."""
    scene, now = dump((5, 1), (5, 2)).state("RUNNING", 10, 5, 1).call(PAUSE, 15, (0x3000, 0x1000)), 20
    scene.swap(now, (5, 1), "CONDVAR", (5, 2))
    for number in range(rounds):
        scene.call(SIGNAL, now + 10, (0x3000, 0)).state("READY", now + 10.5, 5, 1).exit(SIGNAL, now + 11)
        scene.swap(now + 12, (5, 2), "READY", (5, 1)).exit(PAUSE, now + 13)
        now += 112
        if number < rounds - 1:
            scene.call(PAUSE, now - 1, (0x3000, 0x1000)).swap(now, (5, 1), "CONDVAR", (5, 2))
    scene.swap(now, (5, 1), "NANOSLEEP", (5, 2)).call(SIGNAL, now + 2, (0x3000, 0)).exit(SIGNAL, now + 3)
    scene.swap(now + 5, (5, 2), "READY", (5, 1)).call(PAUSE, now + ran + 4, (0x3000, 0x1000))
    return scene.swap(now + ran + 5, (5, 1), "CONDVAR", (1, 1)).event(END, now + ran + 1005)


def too_early(rounds, ran):
    at = 20 + 112 * rounds
    waits = at + ran + 5
    return verdict(
        f"pid 5 1 waits for condition variable 0x3000 (process pid 5) from 0.000 {waits} s to the end of the "
        f"trace, 1.000 ms; pid 5 2 signalled it {ran + 3}.00 µs before, when nobody waited, and pid 5 1 ran "
        f"{ran}.00 µs in between.", "error", (waits, waits + 1000.001), threads=["pid 5 1", "pid 5 2"],
        objects=["condition variable 0x3000 (process pid 5)"], certainty="inferred",
        events=[(at + 2, "signals"), (waits - 1, "asks"), (waits, "waits")],
    )  # fmt: skip


def signalled_after(*, loss=False, overlap=False):
    """5.2 signals a condition variable at 20; 5.1 waits for it from 60 on.

    Before that a buffer may be missing, or 6.1 may run while 5.2 has not left the CPU, which no whole trace shows.
    """
    scene = Scene().event(wire.CONTROL_BUFFER, 0, (1, 0)).event(wire.THREAD_CREATE, 0.1, (5, 1)).time_event(0.3)
    scene.state("RUNNING", 1, 5, 2)
    if loss:
        scene.event(wire.CONTROL_BUFFER, 5, (3, 0)).time_event(5)
    if overlap:
        scene.state("RUNNING", 6, 6, 1).state("NANOSLEEP", 7, 6, 1)
    scene.state("READY", 9, 5, 2).state("RUNNING", 10, 5, 2).call(SIGNAL, 20, (0x3000, 0)).exit(SIGNAL, 21)
    scene.swap(30, (5, 2), "NANOSLEEP", (5, 1)).call(PAUSE, 50, (0x3000, 0x1000))
    return scene.swap(60, (5, 1), "CONDVAR", (1, 1)).event(END, 1060)


AFTER = verdict(
    "pid 5 1 waits for condition variable 0x3000 (process pid 5) from 0.000 060 s to the end of the trace, "
    "1.000 ms; pid 5 2 signalled it 40.00 µs before, when nobody waited, and pid 5 1 ran 30.00 µs in between.", "error",
    (60, 1060.001), threads=["pid 5 1", "pid 5 2"], objects=["condition variable 0x3000 (process pid 5)"],
    certainty="inferred", events=[(20, "signals"), (50, "asks"), (60, "waits")],
)  # fmt: skip


def only_the_last():
    """5.9 signals three condition variables at 2, 3 and 4; 5.1, 5.2 and 5.3 wait for one each, until the end.

    5.1 has waited since and was woken, 5.2 has slept and worked, 5.3 has done nothing.
    """
    scene = dump((5, 1), (5, 2), (5, 3), (5, 9)).state("RUNNING", 1, 5, 9)
    for number in range(3):
        scene.call(SIGNAL, 2 + number, (0x3000 + 0x1000 * number, 0)).exit(SIGNAL, 2.5 + number)
    scene.swap(10, (5, 9), "READY", (5, 1)).call(PAUSE, 15, (0x3000, 0x800)).swap(20, (5, 1), "CONDVAR", (5, 9))
    scene.state("READY", 25, 5, 1).swap(30, (5, 9), "READY", (5, 1)).exit(PAUSE, 31)
    scene.call(PAUSE, 35, (0x3000, 0x800)).swap(40, (5, 1), "CONDVAR", (5, 2))
    scene.swap(60, (5, 2), "NANOSLEEP", (5, 9)).swap(70, (5, 9), "READY", (5, 2))
    scene.call(PAUSE, 195, (0x4000, 0x800)).swap(200, (5, 2), "CONDVAR", (5, 3))
    return scene.call(PAUSE, 205, (0x5000, 0x800)).swap(210, (5, 3), "CONDVAR", (1, 1)).event(END, 1210)


THE_LAST = verdict(
    "pid 5 3 waits for condition variable 0x5000 (process pid 5) from 0.000 210 s to the end of the trace, "
    "1.000 ms; pid 5 9 signalled it 206.0 µs before, when nobody waited, and pid 5 3 ran 10.00 µs in between.", "error",
    (210, 1210.001), threads=["pid 5 3", "pid 5 9"], objects=["condition variable 0x5000 (process pid 5)"],
    certainty="inferred", events=[(4, "signals"), (205, "asks"), (210, "waits")],
)  # fmt: skip


def at_edges(before, behind):
    """5.1 is ready from 300 to 600, up to 210 and from 700 on for as long as given, while 6.1 runs; else it runs."""
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 1)
    for begin, end in ((210 - before, 210), (300, 600), (700, 700 + behind)):
        scene.swap(begin, (5, 1), "READY", (6, 1)).swap(end, (6, 1), "RECEIVE", (5, 1))
    return scene.event(END, 1000)


def hungry(*ready):
    first, last, total = ready[0][0], ready[-1][1], sum(end - begin for begin, end in ready)
    return verdict(
        f"pid 5 1 is ready for {total}.0 µs of {last - first}.0 µs from 0.000 {first} 000 s and gets next to no CPU; "
        f"meanwhile ran pid 6 1 {total}.0 µs.", "warning", (first, last), threads=["pid 5 1", "pid 6 1"],
        events=[event for begin, end in ready for event in ((begin, "ready"), (end, "runs at last"))],
        occurrences=[(first, last, first)],
    )  # fmt: skip


def ready_early(pid, at):
    """Thread 5 of a process is ready from some time to 400, while 6.1 runs; the opening dump ends before 10."""
    scene = dump((6, 1)).state("RUNNING", 1, 6, 1)
    for time, is_call in sorted(((10, True), (at, False))):
        scene.call(CALLS["MSG_INFO"], 10) if is_call else scene.state("READY", time, pid, 5)
    return scene.swap(400, (6, 1), "RECEIVE", (pid, 5)).event(END, 500)


def ready_before(at, *, has_dump=False):
    """5.5 is ready from some time to 400, while 6.1 runs; of CPU 1 there are events from 100 on.

    With an opening dump, even if that is over in a moment, nothing is missing before that.
    """
    scene = Scene(cpus=2).event(wire.THREAD_CREATE if has_dump else END, 0, (6, 1)).time_event(0)
    scene.call(CALLS["MSG_INFO"], 1).state("RUNNING", 1, 6, 1)
    for time, cpu in sorted(((100, 1), (at, 0))):
        scene.time_event(time, 1).state("RUNNING", time, 7, 1, 1) if cpu else scene.state("READY", time, 5, 5)
    return scene.swap(400, (6, 1), "RECEIVE", (5, 5)).event(END, 500)


def becomes_ready(who, at, **others):
    names = [name.replace("_", " ") for name in others]
    ran = ", ".join(f"{name} {length}.0 µs" for name, length in zip(names, others.values(), strict=True))
    return verdict(
        f"{who} is ready from 0.000 {at:03} 000 s and runs {400 - at}.0 µs later; meanwhile ran {ran}.",
        "info", (at, 400), threads=[who, *names],
        events=[(at, "ready"), (400, "runs at last")], occurrences=[(at, 400, at)],
    )  # fmt: skip


# --- Interrupts, idle CPUs, losses ----------------------------------------------------------------------------------
def taken_from():
    """Interrupt 0x1f takes 4 every 10 from 100 to 200: up to 166 from 5.1, then from 6.1."""
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 1)
    for time in range(100, 200, 10):
        scene.event(INTERRUPT, time, (0x1F, 0)).event(INTERRUPT_EXIT, time + 4, (0x1F, 0))
        if time == 160:
            scene.swap(166, (5, 1), "READY", (6, 1))
    return scene.event(END, 500)


TAKEN = verdict(
    "Interrupt 0x1f comes 10 times on CPU 0 within 100.0 µs from 0.000 100 000 s, one every 10.00 µs, and takes 40 % "
    "of the CPU; it takes that "
    "time from pid 5 1 28.00 µs, pid 6 1 12.00 µs.", "warning", (100, 200), threads=["pid 5 1", "pid 6 1"],
    objects=["interrupt 0x1f", "CPU 0"], events=[(time, "") for time in range(100, 200, 10)],
)  # fmt: skip


def handled_long(*later):
    """Interrupt 0x1f takes 300 from 100 on, three windows; and again later, as given by begin and length."""
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 1).event(INTERRUPT, 100, (0x1F, 0))
    scene.event(INTERRUPT_EXIT, 400, (0x1F, 0))
    for begin, length in later:
        scene.event(INTERRUPT, begin, (0x1F, 0)).event(INTERRUPT_EXIT, begin + length, (0x1F, 0))
    return scene.event(END, 900)


HANDLED_LONG = verdict(
    "Interrupt 0x1f comes 1 time on CPU 0 within 300.0 µs from 0.000 100 000 s, and takes 100 % of the CPU; it "
    "takes that time from pid 5 1 300.0 µs.", "error", (100, 400), threads=["pid 5 1"],
    objects=["interrupt 0x1f", "CPU 0"], events=[(100, "")],
)  # fmt: skip


TWICE_LONG = {
    **HANDLED_LONG, "says": HANDLED_LONG["says"].replace(
        "300.0 µs.", "300.0 µs, and so 1 more time."), "occurrences": [(100, 400, None), (500, 800, None)],
}  # fmt: skip


def handled_by_thread(end=200):
    """8.0: interrupt 0x1f comes every 10 from 100 on and wakes 5.1, which runs for 4 from 1 later on."""
    scene = dump((5, 1), release="8.0.0").state("INTR", 2, 5, 1).state("RUNNING", 3, 1, 1)
    for time in range(100, end, 10):
        scene.event(INTERRUPT, time, (0x1F, 0)).state("READY", time + 0.5, 5, 1).swap(time + 1, (1, 1), "READY", (5, 1))
        scene.swap(time + 5, (5, 1), "INTR", (1, 1))
    return scene.event(END, 500)


def handled_by_pulse(between, cpu=0):
    """The same by a pulse to 5.1, with some other events between interrupt and pulse, which may be of another CPU."""
    scene = Scene("8.0.0", cpus=2).process_name(0, 6, "srv").event(wire.THREAD_CREATE, 0.1, (5, 1)).time_event(0.5)
    scene.time_event(0.6, 1).state("RECEIVE", 2, 5, 1).state("RUNNING", 3, 1, 1).state("RUNNING", 3, 1, 2, 1)
    for time in range(100, 200, 10):
        scene.event(INTERRUPT, time, (0x1F, 0))
        for number in range(between):
            scene.event(END, time + 0.1 * (number + 1))
        scene.event(PULSE, time + 0.4, (9, 5), cpu).state("READY", time + 0.5, 5, 1)
        scene.swap(time + 1, (1, 1), "READY", (5, 1)).event(RECEIVED_PULSE, time + 2, (9, 5))
        scene.swap(time + 5, (5, 1), "RECEIVE", (1, 1))
    return scene.event(END, 500)


HANDLED = verdict(
    "Interrupt 0x1f comes 10 times on CPU 0 within 100.0 µs from 0.000 101 000 s, one every 10.00 µs, and takes 40 % "
    "of the CPU; it is handled by "
    "pid 5 1 40.00 µs.", "warning", (101, 201), threads=["pid 5 1"], objects=["interrupt 0x1f", "CPU 0"],
    events=[(time, "") for time in range(100, 200, 10)], certainty="inferred",
)  # fmt: skip


HANDLED_ONCE = verdict(
    "Interrupt 0x1f comes 1 time on CPU 0 within 100.0 µs from 0.000 101 000 s, and takes 4 % of the CPU; it is "
    "handled by pid 5 1 4.000 µs.", "warning", (101, 201), threads=["pid 5 1"], objects=["interrupt 0x1f", "CPU 0"],
    events=[(100, "")], certainty="inferred",
)  # fmt: skip


def handled_by_nobody():
    """8.0: interrupt 0x1f is the first event; no event shows what lets 5.1 run then."""
    scene = Scene("8.0.0").event(INTERRUPT, 0, (0x1F, 0)).state("RUNNING", 1, 5, 1).state("INTR", 150, 5, 1)
    return scene.state("RUNNING", 150, 1, 1).event(END, 500)


def beside_idle(idle):
    """5.1 is ready from 100 to 400; 6.1 runs on CPU 0, on CPU 1 nobody for as long as given, then 7.1.

    Interrupts 0x21 of CPU 0 take 40 (0x22 5 of it) and 2, interrupt 0x20 takes 3.
    """
    scene = Scene(cpus=2).time_event(0).state("RUNNING", 1, 6, 1).state("RUNNING", 1, 1, 2, 1).state("READY", 100, 5, 1)
    for begin, end, number in ((150, 190, 0x21), (160, 165, 0x22), (200, 202, 0x21), (210, 213, 0x20)):
        scene.event(INTERRUPT, begin, (number, 0))
        scene.event(INTERRUPT_EXIT, 165, (0x22, 0)) if number == 0x22 else None
        if number != 0x21 or begin == 200:
            scene.event(INTERRUPT_EXIT, 190 if number == 0x22 else end, (0x21 if number == 0x22 else number, 0))
    if idle < 300:
        scene.swap(100 + idle, (1, 2), "READY", (7, 1), 1)
    return scene.swap(400, (6, 1), "RECEIVE", (5, 1)).event(END, 500)


def beside_interrupts(*lengths):
    """5.1 is ready from 100 to 400 while 6.1 runs; interrupts 0x21 take some of that."""
    scene = Scene().time_event(0).state("RUNNING", 1, 6, 1).state("READY", 100, 5, 1)
    for number, length in enumerate(lengths):
        scene.event(INTERRUPT, 150 + 10 * number, (0x21, 0)).event(
            INTERRUPT_EXIT, 150 + 10 * number + length, (0x21, 0)
        )
    return scene.swap(400, (6, 1), "RECEIVE", (5, 1)).event(END, 500)


def interrupted_by(taken=""):
    plain = waits_beside("")
    says = plain["says"].replace(" (interrupt 0x21 42.00 µs, interrupt 0x20 3.000 µs of it)", taken)
    return {**plain, "says": says}


def waits_beside(others, idle=None, who=()):
    text = "; idle meanwhile, and forbidden to it by its runmask or its partition: CPU 1 "
    return verdict(
        f"pid 5 1 is ready from 0.000 100 000 s and runs 300.0 µs later; meanwhile ran pid 6 1 300.0 µs{others} "
        f"(interrupt 0x21 42.00 µs, interrupt 0x20 3.000 µs of it){f'{text}{idle}.0 µs' if idle else ''}.", "info",
        (100, 400), threads=["pid 5 1", "pid 6 1", *who], events=[(100, "ready"), (400, "runs at last")],
        occurrences=[(100, 400, 100)],
    )  # fmt: skip


def dropped():
    """8.0: CPU 1 drops events at 100, its last one before that being of 2."""
    scene = Scene("8.0.0", cpus=2).time_event(0).time_event(0.5, 1).state("RUNNING", 1, 5, 1)
    scene.state("RUNNING", 2, 6, 1, 1).event(wire.CONTROL_DROPPED, 100, (3, 0), 1).state("RUNNING", 150, 6, 2, 1)
    return scene.event(END, 500)


DROPPED = verdict(
    "Events of CPU 1 are missing in 1 range (1 drop), 98.00 µs in all; the longest from 0.000 002 000 s for 98.00 µs.",
    "error", (2, 100), objects=["CPU 1"], events=[(100, "")],
)  # fmt: skip

PASSED = {"passed_ms": 0.1, "least_count": 100}
PILES = {"least_count": 6, "least_ms": 0.4}
OVERTAKEN = {"passed_ms": 0.3, "least_count": 100}
KEPT = {"kept_ms": 0.1, "least_count": 100}
STARVES = {"window_ms": 0.5, "ready_percent": 60}
FOR_EVER = {"least_ms": 1}
FLOOD = {"window_ms": 0.1, "taken_percent": 40}


@pytest.mark.parametrize(("kind", "scene", "limits", "expected"), [
    ("server-saturation", passed_over((100, 100)), PASSED, [passed(3, (100, 200))]),
    ("server-saturation", passed_over((100, 100), pid=1), PASSED, [passed(3, (100, 200))]),
    ("server-saturation", passed_over((100, 99)), PASSED, []),
    ("server-saturation", passed_over((100, 100), others=2), PASSED, [passed(2, (100, 200))]),
    ("server-saturation", passed_over((100, 100), others=1), PASSED, []),
    ("server-saturation", passed_over((100, 1), served=200), PASSED, []),
    ("server-saturation", passed_over((300, 900)), PASSED, [passed(3, (300, 1000.001))]),
    ("server-saturation", passed_over((100, 100), (300, 150)), PASSED, [
        passed(3, (300, 450), before=(100, 200), again="; it happened once before, at 0.000 100 000 s")]),
    ("growing-queue", pulse_queue(), PILES, [piles(8, "only 2 are received", 6, last=190.5)]),
    ("growing-queue", pulse_queue(), {**PILES, "least_count": 7}, []),
    ("growing-queue", pulse_queue(), {**PILES, "least_ms": 0.400001}, [
        piles(8, "only 2 are received", 6, last=190.5)]),
    ("growing-queue", pulse_queue(), {**PILES, "least_ms": 0.400002}, []),
    ("growing-queue", pulse_queue(8, 0), PILES, [
        piles(8, "none is received (ear 1 received the last one before that, at 0.000 025 000 s)", 8, last=25,
              severity="error")]),
    ("growing-queue", pulse_queue(8, 0, before=0, earlier=2), PILES, [
        piles(8, "none is received (ear 1 received the last one before that, at 0.000 020 000 s)", 8, last=20,
              severity="error")]),
    ("growing-queue", pulse_queue(since=300.5), PILES, [piles(8, "only 2 are received", 6, last=320.5)]),
    ("growing-queue", pulse_queue(served=3, since=300.5), {**PILES, "least_count": 5}, []),
    ("growing-queue", pulse_queue(sender=(1, 1)), PILES, [
        {**piles(8, "only 2 are received", 6, last=190.5), "threads": ["ear 1"]}]),
    ("growing-queue", pulse_queue(8, 0, before=0, sender=None), PILES, [
        {**piles(8, "none is received", 8, severity="error"), "threads": []}]),
    ("growing-queue", pulse_queue(8, 0, before=0), PILES, [piles(8, "none is received", 8, severity="error")]),
    ("growing-queue", pulse_queue(16, 4), PILES, [piles(16, "only 4 are received", 12, last=230.5)]),
    ("growing-queue", pulses_around_a_loss(), PILES, [piles(7, "none is received", 7, severity="error")]),
    ("growing-queue", pulse_queue(8, 2, before=3), {**PILES, "least_count": 6}, [
        piles(8, "only 2 are received", 6, last=190.5)]),
    ("missed-period", sleeper({4: 50}), {"least_count": 5}, [LATE_ONCE]),
    ("missed-period", sleeper({4: 50}, count=10), {"least_count": 5}, []),
    ("missed-period", sleeper({1: 60, 4: 50}, count=14, other_cpu=400), {"least_count": 5}, [LATE_ONCE]),
    ("missed-period", sleeper({1: 60, 4: 50}, count=13, other_cpu=400), {"least_count": 5}, []),
    ("missed-period", sleeper({4: 49.9}), {"least_count": 5}, []),
    ("missed-period", sleeper({4: 50, 8: 60}), {"least_count": 5}, [LATE_TWICE]),
    ("lock-contention", overtaken((150, 9), (200, 2), (250, 9)), OVERTAKEN, [overtook(3, 9, 2)]),
    ("lock-contention", overtaken((150, 9), (200, 2), (250, 9), end=399), OVERTAKEN, []),
    ("lock-contention", overtaken((150, 9), (200, 2)), OVERTAKEN, []),
    ("lock-contention", overtaken((150, 3), (200, 2), (250, 9), (300, 2), end=1000.001), OVERTAKEN,
     [overtook(4, 2, 9, 3, end=1000.001, named=["pid 5 9", "pid 5 3", "pid 5 2"])]),
    ("lock-contention", kept([(120, 220)]), KEPT, [could_run()]),
    ("lock-contention", kept([(120, 219.9)]), KEPT, []),
    ("lock-contention", kept([(120, 170), (180, 230)]), KEPT, [could_run()]),
    ("lock-contention", kept([(120, 220)]), {**KEPT, "kept_ms": 0.3}, []),
    ("lock-contention", kept([(120, 220)], [(520, 720)]), KEPT,
     [could_run(again="; it happens once more", others=[(500, 800, 500)])]),
    ("lock-contention", kept_at_both_ends(), KEPT, [could_run(120)]),
    ("lock-contention", kept_server(), KEPT, []),
    ("deadlock", senders(), FOR_EVER, [SENDERS]),
    ("deadlock", mixed(), FOR_EVER, [MIXED]),
    ("deadlock", semaphore_and_mutex(), FOR_EVER, [SEMAPHORE_AND_MUTEX]),
    ("deadlock", unknown_holders(), FOR_EVER, [UNKNOWN_HOLDERS]),
    ("deadlock", unless(2), FOR_EVER, [maybe("pid 5 2")]),
    ("deadlock", unless(2, 3), FOR_EVER, [maybe("pid 5 2 or pid 5 3")]),
    ("waits-for-ever", left_alone(2), FOR_EVER, [alone((2,), "thread")]),
    ("waits-for-ever", left_alone(2, 3), FOR_EVER, [alone((2, 3), "threads")]),
    ("waits-for-ever", left_alone(2, stays=(3,)), FOR_EVER, []),
    ("waits-for-ever", never_posted(), FOR_EVER, [NEVER_POSTED]),
    ("waits-for-ever", never_posted(timeout=True), FOR_EVER, []),
    ("waits-for-ever", masked(1, 1, 1, 1, 0), FOR_EVER, [MASKED]),
    ("waits-for-ever", masked(1, 1, 1, 1, 1), FOR_EVER, []),
    ("waits-for-ever", masked(1, 1, 0, 1, 0), FOR_EVER, []),
    ("waits-for-ever", masked(1, 1, 1, 0), FOR_EVER, []),
    ("waits-for-ever", replied_before(2), FOR_EVER, [
        unanswered("; srv 2, which replied before, has ended", 95, ["srv 2"], "warning", "inferred")]),
    ("waits-for-ever", replied_before(2, 3), FOR_EVER, [
        unanswered("; srv 2 and srv 3, which replied before, have ended", 95, ["srv 2", "srv 3"], "warning",
                   "inferred")]),
    ("waits-for-ever", turned_away(), FOR_EVER, [unanswered(" and no thread holds", 15)]),
    ("waits-for-ever", turned_away(has_dump=False), FOR_EVER, []),
    ("waits-for-ever", turned_away(is_received=False), FOR_EVER, []),
    ("waits-for-ever", turned_away("CONDVAR"), FOR_EVER, [unanswered(TURNED, 15)]),
    ("waits-for-ever", turned_away("RECEIVE"), FOR_EVER, [unanswered(" and no thread holds", 15)]),
    ("waits-for-ever", turned_away("CONDVAR", "RECEIVE"), FOR_EVER, [unanswered(TURNED, 15)]),
    ("lost-wakeup", habit(1, 96), {**FOR_EVER, "work_us": 96}, [too_early(1, 96)]),
    ("lost-wakeup", habit(1, 96), {**FOR_EVER, "work_us": 95}, []),
    ("lost-wakeup", habit(2, 50), {**FOR_EVER, "work_us": 1}, [too_early(2, 50)]),
    ("lost-wakeup", habit(2, 51), {**FOR_EVER, "work_us": 1000}, []),
    ("lost-wakeup", habit(3, 50), {**FOR_EVER, "work_us": 1}, [too_early(3, 50)]),
    ("lost-wakeup", habit(3, 51), {**FOR_EVER, "work_us": 1000}, []),
    ("lost-wakeup", signalled_after(), FOR_EVER, [AFTER]),
    ("lost-wakeup", signalled_after(loss=True), FOR_EVER, []),
    ("lost-wakeup", signalled_after(overlap=True), FOR_EVER, []),
    ("lost-wakeup", only_the_last(), FOR_EVER, [THE_LAST]),
    ("busy-loop", pulses_around_a_loss(), {"least_ms": 0.41}, []),
    ("busy-loop", pulses_around_a_loss(), {"least_ms": 0.4}, [verdict(
        "pid 4 1 runs 400.0 µs of 400.0 µs from 0.000 100 000 s without waiting once.", "info", (100, 500.001),
        threads=["pid 4 1"], events=[(100, "")])]),
    ("starvation", at_edges(89, 99), STARVES, [hungry((300, 600))]),
    ("starvation", at_edges(90, 99), STARVES, [hungry((120, 210), (300, 600))]),
    ("starvation", at_edges(89, 100), STARVES, [hungry((300, 600), (700, 800))]),
    ("starvation", at_edges(90, 100), STARVES, [hungry((120, 210), (300, 600), (700, 800))]),
    ("long-ready", ready_early(5, 8), {"least_ms": 0.2}, [becomes_ready("pid 5 5", 8, srv_1=392)]),
    ("long-ready", ready_early(1, 8), {"least_ms": 0.2}, []),
    ("long-ready", ready_early(1, 11), {"least_ms": 0.2}, [becomes_ready("pid 1 5", 11, srv_1=389)]),
    ("long-ready", ready_before(99), {"least_ms": 0.2}, []),
    ("long-ready", ready_before(50, has_dump=True), {"least_ms": 0.2}, [
        becomes_ready("pid 5 5", 50, pid_6_1=350, pid_7_1=300)]),
    ("long-ready", ready_before(100), {"least_ms": 0.2}, [
        becomes_ready("pid 5 5", 100, pid_6_1=300, pid_7_1=300)]),
    ("interrupt-flood", taken_from(), FLOOD, [TAKEN]),
    ("interrupt-flood", taken_from(), {**FLOOD, "taken_percent": 40.001}, []),
    ("interrupt-flood", taken_from(), {**FLOOD, "serious_percent": 40}, [{**TAKEN, "severity": "error"}]),
    ("interrupt-flood", taken_from(), {**FLOOD, "serious_percent": 40.001}, [TAKEN]),
    ("interrupt-flood", handled_long(), {"window_ms": 0.1, "taken_percent": 100}, [HANDLED_LONG]),
    ("interrupt-flood", handled_long((600, 5)), {"window_ms": 0.1, "taken_percent": 100}, [HANDLED_LONG]),
    ("interrupt-flood", handled_long((500, 300)), {"window_ms": 0.1, "taken_percent": 100}, [TWICE_LONG]),
    ("interrupt-flood", handled_by_thread(), FLOOD, [HANDLED]),
    ("interrupt-flood", handled_by_pulse(0), FLOOD, [HANDLED]),
    ("interrupt-flood", handled_by_pulse(1), FLOOD, [HANDLED]),
    ("interrupt-flood", handled_by_pulse(2), FLOOD, []),
    ("interrupt-flood", handled_by_pulse(0, cpu=1), FLOOD, []),
    ("interrupt-flood", handled_by_thread(end=110), {"window_ms": 0.1, "taken_percent": 4}, [HANDLED_ONCE]),
    ("interrupt-flood", handled_by_nobody(), {"window_ms": 0.1, "taken_percent": 1}, []),
    ("long-ready", beside_idle(200), {"least_ms": 0.3}, [
        waits_beside(", pid 7 1 100.0 µs", idle=200, who=["pid 7 1"])]),
    ("long-ready", beside_idle(150), {"least_ms": 0.3}, [waits_beside(", pid 7 1 150.0 µs", who=["pid 7 1"])]),
    ("long-ready", beside_idle(300), {"least_ms": 0.3}, [waits_beside("", idle=300)]),
    ("long-ready", beside_interrupts(2, 1), {"least_ms": 0.3}, [
        interrupted_by(" (interrupt 0x21 3.000 µs of it)")]),
    ("long-ready", beside_interrupts(2, 0.999), {"least_ms": 0.3}, [interrupted_by()]),
    ("data-loss", dropped(), {}, [DROPPED]),
])  # fmt: skip
def test_what_a_rule_says(kind, scene, limits, expected, tmp_path):
    assert reported(scene, kind, tmp_path, **limits) == expected


RULES_FOR_LITTLE = {
    "busy-loop", "growing-queue", "interrupt-flood", "lock-contention", "lost-wakeup", "missed-period",
    "restarted-calls", "server-saturation", "starvation",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1e-6, 1e9])
def test_no_threshold_is_too_small_or_too_large(number, tmp_path):
    """A window has a cycle at least, a count is 1 at least: every rule ends, whatever it finds."""
    values = {
        kind: {name: 1 if name == ENABLED else number for name in table}
        for kind, table in default_thresholds().values.items()
    }
    found = set()
    for scene in (passed_over((100, 100)), pulse_queue(), sleeper({4: 50}), kept([(120, 220)]), taken_from(),
                  beside_idle(200), channels(2), interrupted((100, 2, 10)), flood((100, 2, 10), has_exits=False),
                  signalled()):  # fmt: skip
        found |= {each.kind for each in find_verdicts(scene.open(tmp_path), Thresholds(values))}
    assert found >= RULES_FOR_LITTLE if number < 1 else not found
