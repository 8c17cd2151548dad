"""Every rule on a scene that a reader can add up: whole sentences, events and times, and the last value that counts."""

from __future__ import annotations

import pytest

from satview.events import wire
from tests.analysis.scenes import (
    CALLS,
    END,
    FAILED,
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


# --- Who gets the CPUs ----------------------------------------------------------------------------------------------
def ready_scene():
    """5.1 is ready from 100 to 400 and from 500 to 900, 6.1 from 200 to 500, 7.1 from 400 to the end at 1,000."""
    scene = Scene().time_event(0).state("RUNNING", 0, 6, 1).state("READY", 100, 5, 1)
    scene.swap(200, (6, 1), "READY", (7, 1)).swap(400, (7, 1), "READY", (5, 1)).swap(500, (5, 1), "READY", (6, 1))
    return scene.swap(900, (6, 1), "RECEIVE", (5, 1)).event(END, 1000)


FIVE_WAITS = ("pid 5 1 is ready from 0.000 100 000 s and runs 300.0 µs later; meanwhile ran pid 7 1 200.0 µs, "
              "pid 6 1 100.0 µs")  # fmt: skip
BEFORE = "meanwhile ran pid 6 1 400.0 µs; it happened once before, at 0.000 100 000 s."
FIVE_READY = verdict(
    f"pid 5 1 is ready from 0.000 500 000 s and runs 400.0 µs later; {BEFORE}", "info", (500, 900),
    threads=["pid 5 1", "pid 6 1"], events=[(500, "ready"), (900, "runs at last")],
    occurrences=[(100, 400, 100), (500, 900, 500)],
)  # fmt: skip
SIX_READY = verdict(
    "pid 6 1 is ready from 0.000 200 000 s and runs 300.0 µs later; meanwhile ran pid 7 1 200.0 µs, pid 5 1 100.0 µs.",
    "info", (200, 500), threads=["pid 6 1", "pid 7 1", "pid 5 1"], events=[(200, "ready"), (500, "runs at last")],
    occurrences=[(200, 500, 200)],
)  # fmt: skip
SEVEN_READY = verdict(
    "pid 7 1 is ready from 0.000 400 000 s and runs 600.0 µs later; meanwhile ran pid 6 1 400.0 µs, pid 5 1 200.0 µs.",
    "info", (400, 1000.001), threads=["pid 7 1", "pid 6 1", "pid 5 1"], events=[(400, "ready")],
    occurrences=[(400, 1000.001, 400)],
)  # fmt: skip
FIVE_LATER = verdict(
    "pid 5 1 is ready from 0.000 500 000 s and runs 400.0 µs later; meanwhile ran pid 6 1 400.0 µs.", "info",
    (500, 900), threads=["pid 5 1", "pid 6 1"], events=[(500, "ready"), (900, "runs at last")],
    occurrences=[(500, 900, 500)],
)  # fmt: skip
FIVE_ALONE = verdict(
    FIVE_WAITS + ".", "info", (100, 400), threads=["pid 5 1", "pid 7 1", "pid 6 1"],
    events=[(100, "ready"), (400, "runs at last")], occurrences=[(100, 400, 100)],
)  # fmt: skip
FIVE_STARVES = verdict(
    "pid 5 1 is ready for 700.0 µs of 800.0 µs from 0.000 100 000 s and gets next to no CPU; meanwhile ran "
    "pid 6 1 500.0 µs, pid 7 1 200.0 µs.", "warning", (100, 900), threads=["pid 5 1", "pid 6 1", "pid 7 1"],
    events=[(100, "ready"), (400, "runs at last"), (500, "ready"), (900, "runs at last")],
    occurrences=[(100, 900, 100)],
)  # fmt: skip
EACH_STARVES = [
    verdict("pid 6 1 is ready for 300.0 µs of 300.0 µs from 0.000 200 000 s and gets next to no CPU; meanwhile ran "
            "pid 7 1 200.0 µs, pid 5 1 100.0 µs.", "warning", (200, 500), threads=["pid 6 1", "pid 7 1", "pid 5 1"],
            events=[(200, "ready"), (500, "runs at last")], occurrences=[(200, 500, 200)]),
    verdict("pid 7 1 is ready for 600.0 µs of 600.0 µs from 0.000 400 000 s and gets next to no CPU; meanwhile ran "
            "pid 6 1 400.0 µs, pid 5 1 200.0 µs.", "warning", (400, 1000.001),
            threads=["pid 7 1", "pid 6 1", "pid 5 1"], events=[(400, "ready")], occurrences=[(400, 1000.001, 400)]),
    verdict(f"pid 5 1 is ready for 400.0 µs of 400.0 µs from 0.000 500 000 s and gets next to no CPU; {BEFORE}",
            "warning", (500, 900), threads=["pid 5 1", "pid 6 1"], events=[(500, "ready"), (900, "runs at last")],
            occurrences=[(100, 400, 100), (500, 900, 500)]),
]  # fmt: skip
SIX_RUNS = verdict(
    "pid 6 1 runs 600.0 µs of 900.0 µs from 0.000 000 000 s without waiting once.", "info", (0, 900),
    threads=["pid 6 1"], events=[(0, ""), (200, ""), (500, "")],
)  # fmt: skip


def crowd():
    """5.1 is ready from 100 to 600: 6.1 runs 40, 7.1 120, 8.1 140, 9.1 100, 8.1 again 60, the idle thread 40."""
    scene = Scene().time_event(0).state("RUNNING", 0, 1, 1).state("READY", 100, 5, 1)
    scene.state("READY", 100, 1, 1)
    now = 100
    for pid, length in ((6, 40), (7, 120), (8, 140), (9, 100), (8, 60)):
        scene.state("RUNNING", now, pid, 1).state("NANOSLEEP", now + length, pid, 1)
        now += length
    scene.state("RUNNING", now, 1, 1).swap(now + 40, (1, 1), "READY", (5, 1))
    return scene.swap(900, (5, 1), "RECEIVE", (1, 1)).event(END, 1000)


CROWD = verdict(
    "pid 5 1 is ready from 0.000 100 000 s and runs 500.0 µs later; meanwhile ran pid 8 1 200.0 µs, pid 7 1 120.0 µs, "
    "pid 9 1 100.0 µs, and 1 more 40.00 µs.", "info", (100, 600), threads=["pid 5 1", "pid 8 1", "pid 7 1", "pid 9 1"],
    events=[(100, "ready"), (600, "runs at last")], occurrences=[(100, 600, 100)],
)  # fmt: skip


def awake(pid, start, length, ran=None, rows=None):
    return verdict(
        f"pid {pid} 1 runs {ran or length}.0 µs of {length}.0 µs from 0.000 {start} 000 s without waiting once.",
        "info", (start, start + length), threads=[f"pid {pid} 1"], events=[(time, "") for time in rows or (start,)],
    )  # fmt: skip


CROWD_RUNS = [awake(7, 140, 120), awake(8, 260, 140)]
FIVE_AWAKE = awake(5, 100, 800, ran=300, rows=(100, 600))


def slices(*bursts):
    """5.1 and 6.1 run on CPU 1 by turns: begin, slices, how long each is; 3.1 and 4.1 did so before, three times."""
    scene = Scene(cpus=2).time_event(0)
    for (begin, count, length), first in zip(((1, 3, 1), *bursts), (3, 5, 5), strict=False):
        threads = [(first, 1), (first + 1, 1)]
        for number in range(count):
            scene.state("RUNNING", begin + number * length, *threads[number % 2], 1)
            scene.state("READY", begin + number * length + length, *threads[number % 2], 1)
        scene.state("RUNNING", begin + count * length, 1, 2, 1).state("READY", begin + count * length + 1, 1, 2, 1)
    return scene.event(END, 1000)


PING_PONG = verdict(
    "pid 5 1 and pid 6 1 hand CPU 1 to and fro 9 times within 100.0 µs from 0.000 020 000 s, 10.00 µs at a time.",
    "info", (20, 120), threads=["pid 5 1", "pid 6 1"], objects=["CPU 1"],
    events=[(time, "") for time in range(20, 110, 10)],
)  # fmt: skip

PING_PONGS = verdict(
    "pid 5 1 and pid 6 1 hand CPU 1 to and fro 13 times within 100.0 µs from 0.000 508 000 s, 8.000 µs at a time.",
    "info", (508, 648), threads=["pid 5 1", "pid 6 1"], objects=["CPU 1"],
    events=[(time, "") for time in range(508, 612, 8)], occurrences=[(20, 120, None), (508, 648, None)],
)  # fmt: skip


def turns(order, long=(), lost=None):
    """A, B and C, and the idle thread (i), run on CPU 1 from 20 on, 10 each, some 11; before one a buffer is lost."""
    scene, now = Scene(cpus=2).event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).time_event(1, 1), 20
    threads = {"A": (5, 1), "B": (6, 1), "C": (7, 1), "i": (1, 2)}
    for number, letter in enumerate(order):
        if number == lost:
            scene.event(wire.CONTROL_BUFFER, now, (3, 0)).time_event(now).time_event(now, 1)
        scene.state("RUNNING", now, *threads[letter], 1)
        now += 11 if number in long else 10
        scene.state("READY", now, *threads[letter], 1)
    return scene.event(END, 1000)


def back_and_forth(times, length="10.00"):
    """A and B switch to and fro in slices that begin at some times."""
    return verdict(
        f"pid 5 1 and pid 6 1 hand CPU 1 to and fro {len(times)} times within 100.0 µs from 0.000 0{times[0]} 000 s, "
        f"{length} µs at a time.", "info", (times[0], times[-1] + 100), threads=["pid 5 1", "pid 6 1"],
        objects=["CPU 1"], events=[(time, "") for time in times],
    )  # fmt: skip


TO_AND_FRO = {"window_ms": 0.1, "slice_us": 10, "least_count": 1}


# --- The system -----------------------------------------------------------------------------------------------------
SHARE = {"window_ms": 0.1, "taken_percent": 20, "serious_percent": 50}


def flood(*bursts, has_exits=True):
    """Interrupt 0x1f of CPU 1, 2 each, by begin, count and distance, and at 950 one without an end.

    One of another number comes before, and one of another CPU.
    """
    scene = Scene(cpus=2).time_event(0).event(INTERRUPT, 1, (0x1F, 0)).event(INTERRUPT, 2, (0x1E, 0), 1)
    for begin, count, distance in bursts:
        for time in range(begin, begin + count * distance, distance):
            scene.event(INTERRUPT, time, (0x1F, 0), 1)
            if has_exits:
                scene.event(INTERRUPT_EXIT, time + 2, (0x1F, 0), 1)
    return scene.event(INTERRUPT, 950, (0x1F, 0), 1).event(END, 1000)


FLOOD = verdict(
    "Interrupt 0x1f comes 12 times on CPU 1 within 120.0 µs from 0.000 100 000 s, one every 10.00 µs, and takes "
    "20 % of the CPU.",
    "warning", (100, 220), objects=["interrupt 0x1f", "CPU 1"], events=[(time, "") for time in range(100, 220, 10)],
)  # fmt: skip
UNTIMED_FLOOD = {**FLOOD, "certainty": "guess", "says": FLOOD["says"].replace(
    ", and takes 20 % of the CPU.", "; how long it is handled is not logged.")}  # fmt: skip

FLOODS = verdict(
    "Interrupt 0x1f comes 15 times on CPU 1 within 140.0 µs from 0.000 500 000 s, one every 9.333 µs, and takes 21 % "
    "of the CPU, and so 1 more time.", "warning", (500, 640), objects=["interrupt 0x1f", "CPU 1"],
    events=[(time, "") for time in range(500, 620, 8)], occurrences=[(100, 220, None), (500, 640, None)],
)  # fmt: skip
LONG_FLOOD = verdict(
    "Interrupt 0x1f comes 30 times on CPU 1 within 300.0 µs from 0.000 100 000 s, one every 10.00 µs, and takes "
    "20 % of the CPU.",
    "warning", (100, 400), objects=["interrupt 0x1f", "CPU 1"], events=[(time, "") for time in range(100, 340, 10)],
)  # fmt: skip


def interrupted(*bursts, is_repeated=False, has_exits=True):
    """MSG_RECEIVEV of 5.1, interrupted, or made again without an end, by begin, count and distance; 4.1 once.

    Before that one of a thread that is not known is interrupted twelve times.
    """
    number, scene = CALLS["MSG_RECEIVEV"], Scene().time_event(0)
    for time in range(12):
        scene.call(number, 0.01 * time).call(number + 256, 0.01 * time + 0.005)
    scene.state("RUNNING", 0.5, 4, 1).call(number, 1).call(number, 2)
    if has_exits:
        scene.exit(number, 3)
    scene.swap(5, (4, 1), "READY", (5, 1)).call(number, 10)
    if has_exits:
        scene.exit(number, 15)
    for begin, count, distance in bursts:
        for time in range(begin, begin + count * distance, distance):
            scene.call(number, time)
            if not is_repeated:
                scene.call(number + 256, time + 5)
    return scene.event(END, 1000)


RESTARTED = verdict(
    "MSG_RECEIVEV of pid 5 1 is interrupted 10 times within 100.0 µs from 0.000 100 000 s.", "warning", (100, 190.001),
    threads=["pid 5 1"], objects=["MSG_RECEIVEV"], events=[(time, "") for time in range(100, 200, 10)],
)  # fmt: skip

RESTARTED_LATER = verdict(
    "MSG_RECEIVEV of pid 5 1 is interrupted 12 times within 100.0 µs from 0.000 500 000 s.", "warning", (500, 588.001),
    threads=["pid 5 1"], objects=["MSG_RECEIVEV"], events=[(time, "") for time in range(500, 596, 8)],
)  # fmt: skip


def channels(count, fails=(), gives=(), create="CHANNEL_CREATE", destroy="CHANNEL_DESTROY",
             others=("MSG_INFO", "SYNC_MUTEX_LOCK", "MSG_RECEIVEV"), end=250, early=1):  # fmt: skip
    """`srv` creates one every 10 from 100 on; some fail, behind some one is given back. 4.1 creates some early."""
    scene = Scene().time_event(0).process_name(0, 5, "srv").state("RUNNING", 1, 4, 1)
    for number in range(early):
        scene.call(CALLS[create], 2 + 0.1 * number).exit(CALLS[create], 2.05 + 0.1 * number, (number + 1, 0))
    scene.swap(4, (4, 1), "READY", (5, 1))
    for number, name in enumerate(others):
        scene.call(CALLS[name], 10 + 2 * number).exit(CALLS[name], 11 + 2 * number)
    for number in range(count):
        now, result = 100 + number * 10, FAILED if number in fails else (number + 1, 0)
        scene.call(CALLS[create], now).exit(CALLS[create], now + 5, result)
        if number in gives:
            scene.call(CALLS[destroy], now + 7, (number, 0)).exit(CALLS[destroy], now + 8)
    return scene.event(END, end)


def leak(first, last, count, what="channels", left_out=()):
    return verdict(
        f"srv creates {count} {what} from 0.000 {first} 000 s to 0.000 {last} 000 s, one every "
        f"{(last - first) / (count - 1):.2f} µs, and gives none of them back.",
        "warning", (first, last), threads=["srv 1"], objects=[f"{what} of srv"],
        events=[(time, "") for time in range(first, last + 1, 10) if time not in left_out],
    )  # fmt: skip


def lossy(first=60, last=150):
    """Of buffers 1, 3 and 6 the ones in between are missing: from one event to 100, and from the last one to 400."""
    scene = Scene().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", first, 5, 1)
    scene.event(wire.CONTROL_BUFFER, 100, (3, 0)).time_event(100).state("RUNNING", last, 6, 1)
    return scene.event(wire.CONTROL_BUFFER, 400, (6, 0)).time_event(400).event(END, 500)


def late_ring():
    """The ring of CPU 1 begins at 100, that of CPU 0 at 0: nothing between two events is missing."""
    scene = Scene("8.0.0", cpus=2).event(wire.CONTROL_BUFFER, 0, (5, 0)).time_event(0).state("RUNNING", 60, 5, 1)
    scene.event(wire.CONTROL_BUFFER, 100, (4, 0), 1).time_event(100, 1).state("RUNNING", 150, 6, 1, 1)
    return scene.event(END, 500)


LOSS = verdict(
    "Events are missing in 2 ranges (3 buffers), 290.0 µs in all; the longest from 0.000 150 000 s for 250.0 µs.",
    "error", (150, 400), events=[(100, ""), (400, "")], occurrences=[(60, 100, None), (150, 400, None)],
)  # fmt: skip


# --- Periods and servers --------------------------------------------------------------------------------------------
def periodic(late, moved=(), *, unseen=()):
    """Ten pulses to 5.1, one every 100 from 100 on, received 5 later, or as late as given; one more of another.

    Of some numbers the trace does not show that 5.1 waits for the pulse: which one it receives is a guess.
    """
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 1).swap(5, (5, 1), "RECEIVE", (6, 1)).event(PULSE, 20, (8, 5))
    scene.swap(21, (6, 1), "READY", (5, 1)).event(RECEIVED_PULSE, 22, (8, 5)).swap(
        25, (5, 1), "CONDVAR" if 0 in unseen else "RECEIVE", (6, 1)
    )
    for number in range(10):
        sent = 100 + number * 100 + dict(moved).get(number, 0)
        received = sent + late.get(number, 5)
        scene.event(PULSE, sent, (9, 5)).state("READY", sent + 1, 5, 1).swap(received - 1, (6, 1), "READY", (5, 1))
        scene.event(RECEIVED_PULSE, received, (9, 5))
        scene.swap(received + 1, (5, 1), "CONDVAR" if number + 1 in unseen else "RECEIVE", (6, 1))
    return scene.event(END, 1200)


def received_late(since, late):
    return ("pid 5 1 has a period of 100.0 µs, and does not receive the pulse of "
            f"0.000 {since} 000 s until {late}.00 µs later")  # fmt: skip


ONCE_LATE = verdict(
    f"{received_late(400, 50)} (jitter 45.00 µs).", "warning", (400, 450), threads=["pid 5 1"],
    events=[(400, "period begins"), (450, "received late")], occurrences=[(400, 450, 400)],
)  # fmt: skip
TWICE_LATE = verdict(
    f"{received_late(700, 70)} (jitter 65.00 µs); it happened once before, at 0.000 400 000 s.", "warning", (700, 770),
    threads=["pid 5 1"], events=[(400, "period begins"), (450, "received late"), (700, "period begins"),
                                 (770, "received late")],
    occurrences=[(400, 450, 400), (700, 770, 700)],
)  # fmt: skip


def queue(served, later=(), threads=1, count=9, early=()):
    """Nine messages of five clients to `disk`, one every 20 from 100 on; each queues 40, then is served.

    One goes to another server before. More may follow: begin, and how long each queues. Threads receive by turns.
    Some clients may be the ones that the trace shows first.
    """
    events = [(60, 1, "RUNNING", (4, 1)), (29, 0, "RUNNING", (10, 1)), (30, 0, SEND, (0x70001, 4)),
              (31, 0, "SEND", (10, 1)), (70, 1, RECEIPT, (0x70001, 4)), (70.5, 1, "REPLY", (10, 1)),
              (80, 1, REPLY, (1, 10)), (80.5, 1, "READY", (10, 1)), (85, 1, "RECEIVE", (4, 1)),
              (85, 1, "RUNNING", (5, 1)), (59.5, 1, "READY", (5, 1))]  # fmt: skip
    for begin, queued in ((100, 40), *later):
        for number in range(count):
            sent, client = begin + number * 20, (10 + number % 5, 1)
            rcvid, received = (begin + number) << 16 | 1, begin + number * 20 + queued
            events += [
                (sent - 1, 0, "RUNNING", client),
                (sent, 0, SEND, (rcvid, 5)),
                (sent + 0.5, 0, "SEND", client),
                (received, 1, RECEIPT, (rcvid, 5)),
                (received + 0.5, 1, "REPLY", client),
                (received + served, 1, REPLY, client[::-1]),
                (received + 0.5 + served, 1, "READY", client),
            ]
            if threads > 1:
                events += [(received - 0.1, 1, "READY", (5, 2 - number % 2)),
                           (received - 0.1, 1, "RUNNING", (5, 1 + number % 2))] * (number > 0)  # fmt: skip
    scene = Scene(cpus=2).time_event(0).process_name(0, 5, "disk")
    for pid in early:
        scene.state("READY", 0.5, pid, 1)
    scene.state("RUNNING", 1, 5, 1, 1)
    for time, cpu, what, words in sorted(events, key=lambda event: event[0]):
        scene.state(what, time, *words, cpu) if isinstance(what, str) else scene.event(what, time, words, cpu)
    return scene.event(END, 1000)


def saturated(served, since=100):
    """From 120 to 220 all six messages sent between 100 and 200 queue, two of them for 20 and the others for 40."""
    waits = [(time + 0.5, "queues") for time in range(100, 201, 20)]
    receipts = [(time, "received") for time in range(140, 241, 20)]
    return verdict(
        f"Since 0.000 {since} 000 s messages queue for disk longer than they are served, most of all in the 100.0 µs "
        "from 0.000 120 000 s: 6 messages of 5 clients, of which one queues 40.00 µs and is served in "
        f"{served}.00 µs (medians); meanwhile disk 1 is in RUNNING 100 %.", "warning",
        (since, 300 if since == 100 else 280), threads=[*(f"pid {10 + number} 1" for number in range(5)), "disk 1"],
        objects=["server disk"], events=sorted([*waits, *receipts]),
    )  # fmt: skip


SATURATED_LATER = verdict(
    "Since 0.000 500 000 s messages queue for disk longer than they are served, most of all in the 100.0 µs from "
    "0.000 530 000 s: 7 messages of 5 clients, of which one queues 50.00 µs and is served in 20.00 µs (medians); "
    "meanwhile disk 1 is in RUNNING 100 %.", "warning", (500, 720),
    threads=[*(f"pid {10 + number} 1" for number in range(5)), "disk 1"], objects=["server disk"],
    events=sorted([*((time + 0.5, "queues") for time in range(500, 621, 20)),
                   *((time + 50, "received") for time in range(500, 621, 20))]),
    occurrences=[(100, 300, None), (500, 720, None)],
)  # fmt: skip
TWO_THREADS = {
    **saturated(20), "threads": [*(f"pid {10 + number} 1" for number in range(5)), "disk 1", "disk 2"],
    "says": saturated(20)["says"].replace("disk 1 is in RUNNING 100", "its 2 threads are in RUNNING 62 %, READY 38"),
}  # fmt: skip
FOUR_QUEUE = verdict(
    "Since 0.000 100 000 s messages queue for disk longer than they are served, most of all in the 100.0 µs from "
    "0.000 100 000 s: 4 messages of 4 clients, of which one queues 40.00 µs and is served in 20.00 µs (medians); "
    "meanwhile disk 1 is in RUNNING 100 %.", "warning", (100, 200),
    threads=[*(f"pid {10 + number} 1" for number in range(4)), "disk 1"], objects=["server disk"],
    events=sorted([*((time + 0.5, "queues") for time in range(100, 161, 20)),
                   *((time + 40, "received") for time in range(100, 161, 20))]),
)  # fmt: skip
QUEUE = {"window_ms": 0.1, "queued_percent": 100, "least_count": 5, "least_us": 40}


# --- Threads that wait ----------------------------------------------------------------------------------------------
def convoy(*later, count=8):
    """5.1, 5.2 and 5.3 wait by turns for a mutex of 5.9, eight times: from 102 on every 20, for 10.5 each.

    Before that 5.1 waits once for another mutex. Later they may wait again: begin, count and distance.
    """
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 9)
    turns = [(50, 1, 0x800)] + [(100 + number * 20, 1 + number % 3, 0x1000) for number in range(count)]
    for begin, more, distance in later:
        turns += [(begin + number * distance, 3 - number % 3, 0x1000) for number in range(more)]
    for now, tid, mutex in turns:
        who = 5, tid
        scene.swap(now, (5, 9), "READY", who).call(LOCK, now + 1, (mutex, 9 << 16 | 5))
        scene.swap(now + 2, who, "MUTEX", (5, 9)).call(UNLOCK, now + 12, (mutex, 0)).state("READY", now + 12.5, *who)
        scene.exit(UNLOCK, now + 13).swap(now + 14, (5, 9), "READY", who).exit(LOCK, now + 15)
        scene.swap(now + 16, who, "NANOSLEEP", (5, 9))
    return scene.event(END, 1000)


CONVOY = verdict(
    "3 threads wait 5 times for mutex 0x1000 (process pid 5) within 100.0 µs from 0.000 102 000 s, 52.50 µs in all, "
    "while pid 5 9 hold it in turn; pid 5 1 waits most, longest 10.50 µs from 0.000 102 000 s.", "warning",
    (102, 262), threads=["pid 5 1", "pid 5 2", "pid 5 3"], objects=["mutex 0x1000 (process pid 5)"],
    events=[(101, "asks"), (102, "waits"), (112.5, "goes on"), *((time, "waits") for time in range(122, 200, 20))],
)  # fmt: skip


def rush():
    """5.1 waits from 90 to 100 for a mutex of 5.9; 5.1, 5.2 and 5.3 do from 188, 189 and 190 to 200."""
    scene = Scene().time_event(0).state("RUNNING", 1, 5, 9).swap(80, (5, 9), "READY", (5, 1))
    scene.call(LOCK, 81, (0x1000, 9 << 16 | 5)).swap(90, (5, 1), "MUTEX", (5, 9)).state("READY", 100, 5, 1)
    scene.swap(101, (5, 9), "READY", (5, 1)).exit(LOCK, 102)
    for tid in (1, 2, 3):
        if tid > 1:
            scene.state("RUNNING", 186.5 + tid, 5, tid)
        scene.call(LOCK, 186.7 + tid, (0x1000, 9 << 16 | 5)).state("MUTEX", 187 + tid, 5, tid)
    scene.state("RUNNING", 190, 5, 9)
    for tid in (1, 2, 3):
        scene.state("READY", 200, 5, tid)
    return scene.event(END, 1000)


RUSH = verdict(
    "3 threads wait 3 times for mutex 0x1000 (process pid 5) within 100.0 µs from 0.000 100 000 s, 33.00 µs in all, "
    "while pid 5 9 hold it in turn; pid 5 1 waits most, longest 12.00 µs from 0.000 188 000 s.", "warning",
    (100, 288), threads=["pid 5 1", "pid 5 2", "pid 5 3"], objects=["mutex 0x1000 (process pid 5)"],
    events=[(187.7, "asks"), (188, "waits"), (189, "waits"), (190, "waits"), (200, "goes on")],
)  # fmt: skip
CONVOYS = verdict(
    "3 threads wait 6 times for mutex 0x1000 (process pid 5) within 100.0 µs from 0.000 502 000 s, 62.50 µs in all, "
    "while pid 5 9 hold it in turn; pid 5 1 waits most, longest 10.50 µs from 0.000 538 000 s.", "warning",
    (484.5, 692), threads=["pid 5 1", "pid 5 2", "pid 5 3"], objects=["mutex 0x1000 (process pid 5)"],
    events=[(502, "waits"), (520, "waits"), (537, "asks"), (538, "waits"), (548.5, "goes on"),
            *((time, "waits") for time in range(556, 600, 18))],
    occurrences=[(102, 262, None), (484.5, 692, None)],
)  # fmt: skip


def circle(*others):
    """5.1 waits from 30 on for a mutex of 5.2, which waits from 60 on for one of 5.1, until the trace ends at 1,060.

    So do threads of other processes, which the trace shows first, from 1,003 on and later.
    """
    scene = Scene().time_event(0)
    for pid in others:
        scene.state("READY", 0.5, pid, 1)
    scene.state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1).call(LOCK, 20, (0x2000, 2 << 16 | 5))
    scene.swap(30, (5, 1), "MUTEX", (5, 2)).call(LOCK, 50, (0x1000, 1 << 16 | 5)).swap(60, (5, 2), "MUTEX", (1, 1))
    for pid in others:
        scene.state("READY", 1002, pid, 2).state("RUNNING", 1002 + pid, pid, 1)
        scene.call(LOCK, 1002 + pid, (0x2000, 2 << 16 | pid)).swap(1002.2 + pid, (pid, 1), "MUTEX", (pid, 2))
        scene.call(LOCK, 1002.5 + pid, (0x1000, 1 << 16 | pid)).swap(1002.7 + pid, (pid, 2), "MUTEX", (1, 1))
        scene.state("READY", 1002.8 + pid, 1, 1)
    return scene.event(END, 1060)


CIRCLE = verdict(
    "pid 5 2 waits for mutex 0x1000 (process pid 5), held by pid 5 1, pid 5 1 waits for mutex 0x2000 (process pid 5), "
    "held by pid 5 2: none of them runs again from 0.000 060 s to the end of the trace, 1.000 ms.", "error",
    (60, 1060.001), threads=["pid 5 2", "pid 5 1"],
    objects=["mutex 0x1000 (process pid 5)", "mutex 0x2000 (process pid 5)"],
    events=[(20, "asks"), (30, "waits"), (50, "asks"), (60, "waits")],
)  # fmt: skip


def dead_owner():
    """5.1 ends at 16 with a mutex for which 5.2 waits from 60 on, until the trace ends at 1,060."""
    scene = Scene().time_event(0).state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1).call(CALLS["THREAD_DESTROY"], 15)
    scene.event(wire.THREAD_DESTROY, 16, (5, 1)).swap(17, (5, 1), "DEAD", (5, 2)).call(LOCK, 50, (0x1000, 1 << 16 | 5))
    return scene.swap(60, (5, 2), "MUTEX", (1, 1)).event(END, 1060)


DEAD_OWNER = verdict(
    "pid 5 2 waits for mutex 0x1000 (process pid 5), held by pid 5 1, which has ended, from 0.000 060 s to the end "
    "of the trace, 1.000 ms.", "error", (60, 1060.001), threads=["pid 5 2", "pid 5 1"],
    objects=["mutex 0x1000 (process pid 5)"], events=[(50, "asks"), (60, "waits")],
)  # fmt: skip


def semaphores():
    """5.1 posts a semaphore for which 5.2 waits from 30 on, and waits itself from 60 on for one that 5.2 posts."""
    wait, post = CALLS["SYNC_SEM_WAIT"], CALLS["SYNC_SEM_POST"]
    scene = Scene().time_event(0).state("RUNNING", 10, 5, 1).call(post, 11, (0x4001, 0)).exit(post, 12)
    scene.swap(13, (5, 1), "READY", (5, 2)).call(post, 14, (0x4002, 0)).exit(post, 15).call(wait, 20, (0x4001, 0))
    scene.swap(30, (5, 2), "SEM", (5, 1)).call(wait, 50, (0x4002, 0)).swap(60, (5, 1), "SEM", (1, 1))
    return scene.event(END, 1060)


SEMAPHORES = verdict(
    "pid 5 1 waits for semaphore 0x4002 (process pid 5), pid 5 2 waits for semaphore 0x4001 (process pid 5): none of "
    "them runs again from 0.000 060 s to the end of the trace, 1.000 ms.", "warning", (60, 1060.001),
    threads=["pid 5 1", "pid 5 2"],
    objects=["semaphore 0x4002 (process pid 5)", "semaphore 0x4001 (process pid 5)"],
    events=[(20, "asks"), (30, "waits"), (50, "asks"), (60, "waits")], certainty="inferred",
)  # fmt: skip


def dead_posters(count):
    """5.2, 5.3, ... post a semaphore and end; 5.1 waits for it from 100 on, until the trace ends at 1,100."""
    post, scene = CALLS["SYNC_SEM_POST"], Scene().time_event(0).state("READY", 1, 5, 1)
    for tid in range(2, 2 + count):
        scene.state("READY", tid, 5, tid)
    for tid in range(2, 2 + count):
        scene.state("RUNNING", 10 * tid, 5, tid).call(post, 10 * tid + 1, (0x4000, 0)).exit(post, 10 * tid + 2)
        scene.call(CALLS["THREAD_DESTROY"], 10 * tid + 3).event(wire.THREAD_DESTROY, 10 * tid + 4, (5, tid))
        scene.state("DEAD", 10 * tid + 5, 5, tid)
    scene.state("RUNNING", 90, 5, 1).call(CALLS["SYNC_SEM_WAIT"], 95, (0x4000, 0)).swap(100, (5, 1), "SEM", (1, 1))
    return scene.event(END, 1100)


def nobody_posts(count, who):
    return verdict(
        f"pid 5 1 waits for semaphore 0x4000 (process pid 5), posted in this trace only by {who}, "
        f"{'which has ended' if count == 1 else 'all of which have ended'}, from 0.000 100 s to the end of the "
        "trace, 1.000 ms.", "warning", (100, 1100.001),
        threads=[f"pid 5 {tid}" for tid in range(1, 2 + count)], objects=["semaphore 0x4000 (process pid 5)"],
        events=[(95, "asks"), (100, "waits")], certainty="inferred",
    )  # fmt: skip


def signalled(at=(20,)):
    """5.2 signals a condition variable at 20; 5.1 waits for it from 60 on, 4.1 for one of its own."""
    scene = Scene().process_name(0, 5, "app").event(wire.THREAD_CREATE, 0.1, (4, 1))
    scene.event(wire.THREAD_CREATE, 0.1, (5, 1)).event(wire.THREAD_CREATE, 0.2, (5, 2)).time_event(0.3)
    scene.state("RUNNING", 1, 4, 1).call(PAUSE, 2, (0x3000, 0x1000)).swap(10, (4, 1), "CONDVAR", (5, 2))
    for time in at:
        if time == 30:
            scene.swap(30, (5, 2), "NANOSLEEP", (5, 1)).call(PAUSE, 50, (0x3000, 0x1000)).state("CONDVAR", 60, 5, 1)
            scene.state("RUNNING", 60, 5, 2)
        else:
            scene.call(SIGNAL, time, (0x3000, 0)).exit(SIGNAL, time + 1)
    if 30 not in at:
        scene.swap(30, (5, 2), "NANOSLEEP", (5, 1)).call(PAUSE, 50, (0x3000, 0x1000)).swap(
            60, (5, 1), "CONDVAR", (1, 1)
        )
    return scene.event(END, 1060)


def lost_signal(first, *signals):
    return verdict(
        "app 1 waits for condition variable 0x3000 (process app) from 0.000 060 s to the end of the trace, "
        f"1.000 ms; app 2 signalled it {60 - first}.00 µs before, when nobody waited, and app 1 ran "
        "30.00 µs in between.", "error", (60, 1060.001),
        threads=["app 1", "app 2"], objects=["condition variable 0x3000 (process app)"],
        events=[*((time, "signals") for time in signals), (50, "asks"), (60, "waits")], certainty="inferred",
    )  # fmt: skip


def inversion(high=30, low=10, middle=20, runs=((3, 100),), later=(), first=(1, 3, 4), later_mutex=0x1000, taken=0):
    """5.1 (high) waits from 12 on for a mutex of 5.2 (low), which threads in between keep from running from 20 on.

    Args:
        high, low, middle: Priorities; those in between have 20, 21, ... as given for 5.3.
        runs: Thread in between, and for how long it runs.
        later: The same of waits that follow, every 400.
        later_mutex: For which those are.
        taken: How long an interrupt takes 5 after the first of those in between runs.
        first: Which threads the trace shows first.
    """
    scene = Scene().time_event(0)

    def state(name, time, tid):
        scene.state(name, time, 5, tid, extra=({1: high, 2: low}.get(tid, middle + tid - 3), 2))

    for time, tid in enumerate(first, 1):
        state("READY", time, tid)
    state("RUNNING", 5, 2)
    for number, turns in enumerate((runs, *later)):
        now = 10 + 400 * number
        state("READY", now, 2)
        state("RUNNING", now, 1)
        mutex = later_mutex if number else 0x1000
        scene.call(LOCK, now + 1, (mutex, 2 << 16 | 5))
        state("MUTEX", now + 2, 1)
        state("RUNNING", now + 2, 2)
        now += 10
        for tid, length in turns:
            state("READY", now, 2)
            state("RUNNING", now, tid)
            if taken:
                scene.event(INTERRUPT, now + 5, (0x21, 0)).event(INTERRUPT_EXIT, now + 5 + taken, (0x21, 0))
            state("NANOSLEEP", now + length, tid)
            state("RUNNING", now + length, 2)
            now += length + 1
        now += 9
        scene.call(UNLOCK, now, (mutex, 0))
        state("READY", now + 1, 1)
        scene.exit(UNLOCK, now + 2)
        state("READY", now + 3, 2)
        state("RUNNING", now + 3, 1)
        scene.exit(LOCK, now + 4)
        state("NANOSLEEP", now + 5, 1)
        state("RUNNING", now + 5, 2)
    return scene.event(END, 2000)


def inverted(high=30, low=10, middle=20, again="", occurrences=((12, 131, 12),)):
    return verdict(
        f"pid 5 1 (priority {high}) waits 119.0 µs from 0.000 012 000 s for mutex 0x1000 (process pid 5), held by "
        f"pid 5 2; pid 5 3 (priority {middle}) keeps pid 5 2 (priority {low}) from running for 100.0 µs of "
        f"that{again}.",
        "error", (12, 131), threads=["pid 5 1", "pid 5 2", "pid 5 3"], objects=["mutex 0x1000 (process pid 5)"],
        events=[(12, "waits"), (20, "holder, ready"), (20, "preempts"), (131, "goes on")],
        occurrences=list(occurrences),
    )  # fmt: skip


TWO_BETWEEN = {
    **inverted(), "span": (12, 172), "threads": [*inverted()["threads"], "pid 5 4"],
    "says": inverted()["says"].replace("119.0", "160.0").replace("100.0", "140.0").replace(
        "pid 5 3 (priority 20) keeps", "pid 5 3 (priority 20) 100.0 µs, pid 5 4 (priority 21) 40.00 µs keep"),
    "events": [(12, "waits"), (20, "holder, ready"), (20, "preempts"), (61, "preempts"), (172, "goes on")],
    "occurrences": [(12, 172, 12)],
}  # fmt: skip
IN_PIECES = {
    **inverted(), "says": inverted()["says"].replace("119.0", "186.0").replace("100.0", "160.0"), "span": (12, 198),
    "events": [(12, "waits"), (20, "holder, ready"), *((20 + 21 * number, "preempts") for number in range(8)),
               (198, "goes on")],
    "occurrences": [(12, 198, 12)],
}  # fmt: skip

ONE_OF_TWO = {
    **inverted(), "says": inverted()["says"].replace("119.0", "200.0").replace("100.0", "160.0"), "span": (12, 211.999),
    "events": [(12, "waits"), (20, "holder, ready"), (20, "preempts"), (211.999, "goes on")],
    "occurrences": [(12, 211.999, 12)],
}  # fmt: skip


def chain(*, ends=False, is_named=True):
    """5.1 (30) waits from 31 on for 5.2 (25), which waits since 16 for 5.4 (10); 5.3 (20) runs from 40 to 140.

    The call of 5.2 may not name 5.4 as owner. The wait of 5.2 may end at 150; from 170 to 300 5.4 is kept from running
    again.
    """
    scene = Scene().time_event(0)

    def swap(time, leaves, name, runs):
        for tid, state in ((leaves, name), (runs, "RUNNING")):
            scene.state(state, time, 5, tid, extra=({1: 30, 2: 25, 3: 20, 4: 10}[tid], 2))

    swap(1, 3, "READY", 4)
    swap(10, 4, "READY", 2)
    scene.call(LOCK, 15, (0x2000, 4 << 16 | 5 if is_named else 0))
    swap(16, 2, "MUTEX", 4)
    swap(20, 4, "READY", 1)
    scene.call(LOCK, 30, (0x1000, 2 << 16 | 5))
    swap(31, 1, "MUTEX", 4)
    swap(40, 4, "READY", 3)
    swap(140, 3, "NANOSLEEP", 4)
    if ends:
        scene.call(UNLOCK, 149, (0x2000, 0))
        scene.state("READY", 150, 5, 2, extra=(25, 2)).exit(UNLOCK, 151)
        swap(160, 4, "READY", 2)
        swap(165, 2, "NANOSLEEP", 4)
        swap(170, 4, "READY", 3)
        swap(300, 3, "NANOSLEEP", 4)
    return scene.event(END, 400)


CHAIN = verdict(
    "pid 5 1 (priority 30) waits 369.0 µs from 0.000 031 000 s for mutex 0x1000 (process pid 5), held by pid 5 2 and "
    "so, 1 step on, for pid 5 4; pid 5 3 (priority 20) keeps pid 5 4 (priority 10) from running for 100.0 µs of that.",
    "error", (31, 400.001), threads=["pid 5 1", "pid 5 4", "pid 5 3"], objects=["mutex 0x1000 (process pid 5)"],
    events=[(31, "waits"), (40, "holder, ready"), (40, "preempts")], occurrences=[(31, 400.001, 31)],
)  # fmt: skip


def long_chain(count):
    """Of 5.1, 5.2, ... all but the last one wait for the next one, which is kept from running from 500 to 600."""
    scene = Scene().time_event(0)

    def state(name, time, tid):
        scene.state(name, time, 5, tid, extra=(10 if tid == count else 20 if tid == 99 else 50 - tid, 2))

    state("RUNNING", 1, count)
    for number, tid in enumerate(range(count - 1, 0, -1), 1):
        now = 20 * number
        state("READY" if tid == count - 1 else "MUTEX", now, tid + 1)
        state("RUNNING", now, tid)
        scene.call(LOCK, now + 10, (0x1000 * tid, (tid + 1) << 16 | 5))
    state("MUTEX", 400, 1)
    state("RUNNING", 400, count)
    state("READY", 500, count)
    state("RUNNING", 500, 99)
    state("NANOSLEEP", 600, 99)
    state("RUNNING", 600, count)
    return scene.event(END, 700)


def test_chains_have_eight_waits_at_most(tmp_path):
    """Of nine waits those that are eight and fewer from the end are reported."""
    said = [each["says"] for each in reported(long_chain(10), "priority-inversion", tmp_path, least_us=100)]
    assert len(said) == 8
    assert "held by pid 5 10; pid 5 99 (priority 20) keeps pid 5 10 (priority 10) from running for 100.0 µs" in said[0]
    assert said[-1].startswith("pid 5 2 (priority 48) waits ")
    assert "held by pid 5 3 and so, 7 steps on, for pid 5 10; pid 5 99 (priority 20) keeps " in said[-1]


def kept_all_through():
    """5.1 (30) waits from 100 to 200 for 5.2 (10), ready since 1; 5.3 (20) runs on CPU 1 from 2 on, 5.4 (40) too."""
    scene = Scene(cpus=2).time_event(0).state("READY", 1, 5, 2, extra=(10, 2))
    scene.state("RUNNING", 2, 5, 3, 1, extra=(20, 2)).state("RUNNING", 3, 5, 1, extra=(30, 2))
    scene.call(LOCK, 99, (0x1000, 2 << 16 | 5)).state("MUTEX", 100, 5, 1, extra=(30, 2))
    scene.state("RUNNING", 100, 5, 4, extra=(40, 2)).state("READY", 200, 5, 1, extra=(30, 2))
    return scene.event(END, 300)


KEPT_ALL_THROUGH = {
    **inverted(occurrences=[(100, 200, 100)]), "span": (100, 200),
    "says": inverted()["says"].replace("119.0", "100.0").replace("012 000", "100 000"),
    "events": [(1, "holder, ready"), (2, "preempts"), (100, "waits"), (200, "goes on")],
}  # fmt: skip
DIRECT = {
    **CHAIN, "says": "pid 5 2 (priority 25) waits 384.0 µs from 0.000 016 000 s for mutex 0x2000 (process pid 5), "
    "held by pid 5 4; pid 5 3 (priority 20) keeps pid 5 4 (priority 10) from running for 100.0 µs of that.",
    "span": (16, 400.001), "objects": ["mutex 0x2000 (process pid 5)"], "occurrences": [(16, 400.001, 16)],
    "threads": ["pid 5 2", "pid 5 4", "pid 5 3"], "events": [(16, "waits"), *CHAIN["events"][1:]],
}  # fmt: skip
DIRECT_ENDS = {
    **DIRECT, "says": DIRECT["says"].replace("384.0", "134.0"), "span": (16, 150), "occurrences": [(16, 150, 16)],
    "events": [*DIRECT["events"], (150, "goes on")],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "scene", "limits", "expected"), [
    ("long-ready", ready_scene(), {"least_ms": 0.3}, [SIX_READY, SEVEN_READY, FIVE_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.3, "serious_ms": 0.4}, [
        {**SEVEN_READY, "severity": "warning"}, {**FIVE_READY, "severity": "warning"}, SIX_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.3, "serious_ms": 0.400001}, [
        {**SEVEN_READY, "severity": "warning"}, SIX_READY, FIVE_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.300001}, [SEVEN_READY, FIVE_LATER]),
    ("long-ready", ready_scene(), {"least_ms": 0.4}, [SEVEN_READY, FIVE_LATER]),
    ("long-ready", ready_scene(), {"least_ms": 0.400001}, [SEVEN_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.3, "starvation__window_ms": 0.8, "starvation__ready_percent": 50},
     [FIVE_ALONE, SIX_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.3, "starvation__window_ms": 0.301, "starvation__ready_percent": 100},
     [FIVE_ALONE, SIX_READY]),
    ("long-ready", ready_scene(), {"least_ms": 0.3, "starvation__window_ms": 0.3, "starvation__ready_percent": 100},
     []),
    ("long-ready", crowd(), {"least_ms": 0.5}, [CROWD]),
    ("starvation", ready_scene(), {"window_ms": 0.8, "ready_percent": 87.5}, [FIVE_STARVES]),
    ("starvation", ready_scene(), {"window_ms": 0.8, "ready_percent": 87.6}, []),
    ("starvation", ready_scene(), {"window_ms": 0.1, "ready_percent": 100}, EACH_STARVES),
    ("busy-loop", ready_scene(), {"least_ms": 0.9, "used_percent": 66}, [SIX_RUNS]),
    ("busy-loop", ready_scene(), {"least_ms": 0.9, "used_percent": 67}, []),
    ("busy-loop", crowd(), {"least_ms": 0.12, "used_percent": 100}, CROWD_RUNS),
    ("busy-loop", crowd(), {"least_ms": 0.14, "used_percent": 37.5}, [FIVE_AWAKE, CROWD_RUNS[1]]),
    ("busy-loop", ready_scene(), {"least_ms": 0.900002, "used_percent": 66}, []),
    ("ping-pong", slices((10, 11, 10)), {"window_ms": 0.1, "slice_us": 10, "least_count": 9}, [PING_PONG]),
    ("ping-pong", slices((10, 11, 10)), {"window_ms": 0.1, "slice_us": 10, "least_count": 10}, []),
    ("ping-pong", slices((10, 11, 10), (500, 16, 8)), {"window_ms": 0.1, "slice_us": 10, "least_count": 9},
     [PING_PONGS]),
    ("ping-pong", slices((10, 16, 8), (500, 11, 10)), {"window_ms": 0.1, "slice_us": 10, "least_count": 9}, [{
        **PING_PONGS, "says": PING_PONGS["says"].replace("508 000", "018 000"), "span": (18, 158),
        "events": [(time, "") for time in range(18, 122, 8)], "occurrences": [(18, 158, None), (510, 610, None)]}]),
    ("ping-pong", slices((10, 10, 10)), {"window_ms": 0.1, "slice_us": 10, "least_count": 9}, []),
    ("ping-pong", slices((10, 11, 10)), {"window_ms": 0.08, "slice_us": 10, "least_count": 9}, []),
    ("ping-pong", slices((10, 11, 10)), {"window_ms": 0.1, "slice_us": 9.999, "least_count": 9}, []),
    ("ping-pong", slices((10, 3, 10)), {"window_ms": 0.1, "slice_us": 10, "least_count": 1}, [
        {**PING_PONG, "events": [(time, "")], "span": (time, time + 100), "occurrences": [(time, time + 100, None)],
         "threads": [f"pid {pid} 1", f"pid {pid + 1} 1"], "says": f"pid {pid} 1 and pid {pid + 1} 1 hand CPU 1 to and "
         f"fro 1 times within 100.0 µs from 0.000 {time:03} 000 s, {each} µs at a time."}
        for pid, time, each in ((3, 2, "1.000"), (5, 20, "10.00"))]),
    ("ping-pong", turns("ABABA"), TO_AND_FRO, [back_and_forth((30, 40, 50))]),
    ("ping-pong", turns("ABABA", long=[2]), TO_AND_FRO, []),
    ("ping-pong", turns("ABABABA", long=[0]), TO_AND_FRO, [back_and_forth((41, 51, 61, 71))]),
    ("ping-pong", turns("ABABABA", long=[6]), TO_AND_FRO, [back_and_forth((30, 40, 50, 60))]),
    ("ping-pong", turns("ABABABA", long=[3]), TO_AND_FRO, [back_and_forth((30, 71))]),
    ("ping-pong", turns("ABABABA", lost=3), TO_AND_FRO, [back_and_forth((30, 60, 70))]),
    ("ping-pong", turns("AiAiAiA"), TO_AND_FRO, []),
    ("ping-pong", turns("iAiAiAi"), TO_AND_FRO, []),
    ("ping-pong", turns("ABCABCA"), TO_AND_FRO, []),
    ("ping-pong", turns("AAAAA"), TO_AND_FRO, []),
    ("ping-pong", turns("BACACAB"), TO_AND_FRO, [
        {**back_and_forth((40, 50, 60)), "threads": ["pid 5 1", "pid 7 1"],
         "says": back_and_forth((40, 50, 60))["says"].replace("pid 6 1", "pid 7 1")}]),
    ("interrupt-flood", flood((100, 12, 10)), SHARE, [FLOOD]),
    ("interrupt-flood", flood((100, 12, 10)), {**SHARE, "taken_percent": 20.001}, []),
    ("interrupt-flood", flood((100, 12, 10)), {**SHARE, "serious_percent": 20}, [{**FLOOD, "severity": "error"}]),
    ("interrupt-flood", flood((100, 12, 10), (500, 15, 8)), SHARE, [FLOODS]),
    ("interrupt-flood", flood((100, 15, 8), (500, 12, 10)), SHARE, [{
        **FLOODS, "says": FLOODS["says"].replace("500 000", "100 000"), "span": (100, 240),
        "events": [(time, "") for time in range(100, 220, 8)], "occurrences": [(100, 240, None), (500, 620, None)]}]),
    ("interrupt-flood", flood((100, 30, 10)), SHARE, [LONG_FLOOD]),
    ("interrupt-flood", flood((100, 9, 10)), SHARE, []),
    ("interrupt-flood", flood((100, 12, 10), has_exits=False), {**SHARE, "least_count": 10}, [UNTIMED_FLOOD]),
    ("interrupt-flood", flood((100, 12, 10), has_exits=False), {**SHARE, "least_count": 11}, []),
    ("restarted-calls", interrupted((100, 11, 10)), {"window_ms": 0.1, "least_count": 10}, [RESTARTED]),
    ("restarted-calls", interrupted((100, 11, 10)), {"window_ms": 0.1, "least_count": 11}, []),
    ("restarted-calls", interrupted((100, 11, 10), (500, 12, 8)), {"window_ms": 0.1, "least_count": 10},
     [RESTARTED_LATER]),
    ("restarted-calls", interrupted((100, 11, 10), is_repeated=True), {"window_ms": 0.1, "least_count": 10},
     [RESTARTED]),
    ("restarted-calls", interrupted((100, 11, 10), is_repeated=True, has_exits=False),
     {"window_ms": 0.1, "least_count": 10}, []),
    ("restarted-calls", interrupted((100, 10, 10), is_repeated=True), {"window_ms": 0.1, "least_count": 10}, []),
    ("leak", channels(10), {"least_count": 10, "spread_ms": 0.09}, [leak(100, 190, 10)]),
    ("leak", channels(10), {"least_count": 10, "spread_ms": 0.090001}, []),
    ("leak", channels(2, end=180), {"least_count": 0, "spread_ms": 0}, [leak(100, 110, 2)]),
    ("leak", channels(1, end=180), {"least_count": 0, "spread_ms": 0}, []),
    ("leak", channels(10, end=269), {"least_count": 10, "spread_ms": 0.09}, [leak(100, 190, 10)]),
    ("leak", channels(10, end=270), {"least_count": 10, "spread_ms": 0.09}, []),
    ("leak", channels(10, early=10), {"least_count": 10, "spread_ms": 0.0009}, [leak(100, 190, 10)]),
    ("leak", channels(10), {"least_count": 11, "spread_ms": 0.09}, []),
    ("leak", channels(12, fails=(3,)), {"least_count": 11, "spread_ms": 0.05}, [leak(100, 210, 11, left_out=(130,))]),
    ("leak", channels(12, gives=(2,)), {"least_count": 9, "spread_ms": 0.05}, [leak(130, 210, 9)]),
    ("leak", channels(12, gives=(8,)), {"least_count": 9, "spread_ms": 0.05}, [leak(100, 180, 9)]),
    ("leak", channels(10, create="CONNECT_ATTACH", destroy="CONNECT_DETACH"), {"least_count": 10, "spread_ms": 0.05},
     [leak(100, 190, 10, "connections")]),
    ("leak", channels(10, others=("MSG_INFO", "MSG_RECEIVEV")), {"least_count": 10, "spread_ms": 0.05}, []),
    ("data-loss", lossy(), {}, [LOSS]),
    ("data-loss", lossy(0, 320), {}, [{**LOSS, "span": (0, 100), "says": LOSS["says"].replace("290.0", "180.0").replace(
        "0.000 150 000 s for 250.0", "0.000 000 000 s for 100.0"), "occurrences": [(0, 100, None), (320, 400, None)]}]),
    ("data-loss", lossy(5, 320), {}, [{**LOSS, "span": (5, 100), "says": LOSS["says"].replace("290.0", "175.0").replace(
        "0.000 150 000 s for 250.0", "0.000 005 000 s for 95.00"), "occurrences": [(5, 100, None), (320, 400, None)]}]),
    ("data-loss", late_ring(), {}, []),
    ("missed-period", periodic({3: 50}), {"least_count": 9}, [ONCE_LATE]),
    ("missed-period", periodic({3: 50}), {"least_count": 10}, []),
    ("missed-period", periodic({3: 49}), {"least_count": 8}, []),
    ("missed-period", periodic({3: 50, 6: 70}), {"least_count": 8}, [TWICE_LATE]),
    ("missed-period", periodic({3: 50}, [(5, 5)]), {"regular_percent": 100}, [ONCE_LATE]),
    ("missed-period", periodic({3: 50}, [(5, 5.001)]), {"regular_percent": 80}, []),
    ("missed-period", periodic({3: 50}, [(5, 6)]), {"regular_percent": 77}, [ONCE_LATE]),
    ("missed-period", periodic({3: 50}, [(5, 6)]), {"regular_percent": 77.8}, []),
    ("missed-period", periodic({3: 50, 6: 70}, unseen=range(4)), {"least_count": 8}, [
        {**TWICE_LATE, "certainty": "inferred"}]),
    ("missed-period", periodic({3: 50}, unseen=range(10)), {"least_count": 8}, [
        {**ONCE_LATE, "certainty": "inferred"}]),
    ("server-saturation", queue(20), QUEUE, [saturated(20)]),
    ("server-saturation", queue(20, [(500, 50)]), QUEUE, [SATURATED_LATER]),
    ("server-saturation", queue(20, threads=2), QUEUE, [TWO_THREADS]),
    ("server-saturation", queue(20, count=4), {**QUEUE, "least_count": 4, "queued_percent": 160}, [FOUR_QUEUE]),
    ("server-saturation", queue(20, count=4), {**QUEUE, "least_count": 4, "queued_percent": 160.001}, []),
    ("server-saturation", queue(40), QUEUE, [saturated(40)]),
    ("server-saturation", queue(41), QUEUE, []),
    ("server-saturation", queue(0), QUEUE, [
        {**saturated(20), "says": saturated(20)["says"].replace("20.00 µs", "0 ns")}]),
    ("server-saturation", queue(20, early=[12]), QUEUE, [
        {**saturated(20), "threads": [*(f"pid {pid} 1" for pid in (12, 10, 11, 13, 14)), "disk 1"]}]),
    ("server-saturation", queue(20), {**QUEUE, "least_us": 40.001}, []),
    ("server-saturation", queue(20), {**QUEUE, "least_count": 6}, [saturated(20, since=120)]),
    ("server-saturation", queue(20), {**QUEUE, "least_count": 7}, []),
    ("server-saturation", queue(20), {**QUEUE, "queued_percent": 200}, [saturated(20, since=120)]),
    ("server-saturation", queue(20), {**QUEUE, "queued_percent": 201}, []),
    ("lock-contention", convoy(), {"window_ms": 0.1, "waited_percent": 52.5, "least_count": 5}, [CONVOY]),
    ("lock-contention", convoy((500, 10, 18)), {"window_ms": 0.1, "waited_percent": 50, "least_count": 5}, [CONVOYS]),
    ("lock-contention", convoy(count=5), {"window_ms": 0.1, "waited_percent": 52.5, "least_count": 5},
     [{**CONVOY, "span": (102, 202), "occurrences": [(102, 202, None)]}]),
    ("lock-contention", convoy((500, 6, 20)), {"window_ms": 0.1, "waited_percent": 50, "least_count": 5},
     [{**CONVOY, "occurrences": [(102, 262, None), (492.5, 622, None)]}]),
    ("lock-contention", rush(), {"window_ms": 0.1, "waited_percent": 33, "least_count": 3}, [RUSH]),
    ("lock-contention", rush(), {"window_ms": 0.1, "waited_percent": 33, "least_count": 4}, []),
    ("lock-contention", convoy(), {"window_ms": 0.1, "waited_percent": 52.51, "least_count": 5}, []),
    ("lock-contention", convoy(), {"window_ms": 0.1, "waited_percent": 50, "least_count": 6}, []),
    ("deadlock", circle(), {"least_ms": 1.000001}, [CIRCLE]),
    ("deadlock", circle(), {"least_ms": 1.000002}, []),
    ("deadlock", circle(4, 6), {"least_ms": 0.06}, [CIRCLE]),
    ("waits-for-ever", dead_owner(), {"least_ms": 1.000001}, [DEAD_OWNER]),
    ("waits-for-ever", dead_owner(), {"least_ms": 1.000002}, []),
    ("waits-for-ever", dead_posters(1), {"least_ms": 1}, [nobody_posts(1, "pid 5 2")]),
    ("waits-for-ever", dead_posters(3), {"least_ms": 1}, [nobody_posts(3, "pid 5 2 or pid 5 3 or pid 5 4")]),
    ("waits-for-ever", dead_posters(4), {"least_ms": 1},
     [nobody_posts(4, "pid 5 2 or pid 5 3 or pid 5 4 or 1 more")]),
    ("waits-for-ever", dead_posters(5), {"least_ms": 1},
     [nobody_posts(5, "pid 5 2 or pid 5 3 or pid 5 4 or 2 more")]),
    ("deadlock", semaphores(), {"least_ms": 1}, [SEMAPHORES]),
    ("lost-wakeup", signalled(), {"least_ms": 1.000001}, [lost_signal(20, 20)]),
    ("lost-wakeup", signalled((12, 25)), {"least_ms": 1}, [lost_signal(25, 12, 25)]),
    ("lost-wakeup", signalled(), {"least_ms": 1.000002}, []),
    ("lost-wakeup", signalled(), {"least_ms": 1, "work_us": 30}, [lost_signal(20, 20)]),
    ("lost-wakeup", signalled(), {"least_ms": 1, "work_us": 29.99}, [
        {**lost_signal(20, 20), "severity": "warning", "certainty": "guess"}]),
    ("lost-wakeup", signalled((20, 30, 70)), {"least_ms": 0.5}, []),
    ("priority-inversion", inversion(), {"least_us": 100}, [inverted()]),
    ("priority-inversion", inversion(), {"least_us": 100.001}, []),
    ("priority-inversion", inversion(first=(2, 1, 3)), {"least_us": 100}, [inverted()]),
    ("priority-inversion", inversion(later=[[(3, 100)]]), {"least_us": 100},
     [inverted(again="; it happens once more", occurrences=[(12, 131, 12), (412, 531, 412)])]),
    ("priority-inversion", inversion(later=[[(3, 99)], [(3, 150)]]), {"least_us": 100},
     [{**inverted(), "span": (812, 981), "occurrences": [(12, 131, 12), (812, 981, 812)],
       "says": inverted(again="; it happened once before, at 0.000 012 000 s")["says"].replace(
           "119.0", "169.0").replace("from 0.000 012", "from 0.000 812").replace("100.0", "150.0"),
       "events": [(812, "waits"), (820, "holder, ready"), (820, "preempts"), (981, "goes on")]}]),
    ("priority-inversion", inversion(runs=[(4, 40), (3, 100)]), {"least_us": 140}, [TWO_BETWEEN]),
    ("priority-inversion", inversion(runs=[(4, 40), (3, 100)]), {"least_us": 140.001}, []),
    ("priority-inversion", inversion(runs=[(3, 20)] * 8), {"least_us": 160}, [IN_PIECES]),
    ("priority-inversion", inversion(runs=[(3, 20)] * 7 + [(3, 19.9)]), {"least_us": 160}, []),
    ("priority-inversion", inversion(runs=[(3, 160), (4, 19.999)]), {"least_us": 160}, [ONE_OF_TWO]),
    ("priority-inversion", inversion(runs=[(3, 99)], later=[[(3, 100)]], later_mutex=0x2000), {"least_us": 100}, [
        {**inverted(occurrences=[(412, 531, 412)]), "span": (412, 531), "objects": ["mutex 0x2000 (process pid 5)"],
         "says": inverted()["says"].replace("0x1000", "0x2000").replace("000 012", "000 412"),
         "events": [(time + 400, role) for time, role in inverted()["events"]]}]),
    ("priority-inversion", inversion(taken=0.999), {"least_us": 100}, [inverted()]),
    ("priority-inversion", inversion(taken=1), {"least_us": 100}, [
        {**inverted(),
         "says": inverted()["says"].replace(" of that.", " of that (interrupt 0x21 1.000 µs of it)."),
        }]),
    ("priority-inversion", kept_all_through(), {"least_us": 100}, [KEPT_ALL_THROUGH]),
    ("priority-inversion", chain(), {"least_us": 100}, [DIRECT, CHAIN]),
    ("priority-inversion", chain(ends=True), {"least_us": 100}, [DIRECT_ENDS, CHAIN]),
    ("priority-inversion", chain(ends=True, is_named=False), {"least_us": 100}, [
        {**DIRECT_ENDS, "certainty": "inferred"}, {**CHAIN, "certainty": "inferred"}]),
    ("priority-inversion", inversion(high=20), {"least_us": 100}, []),
    ("priority-inversion", inversion(high=21), {"least_us": 100}, [inverted(high=21)]),
    ("priority-inversion", inversion(low=20), {"least_us": 100}, []),
    ("priority-inversion", inversion(low=1), {"least_us": 100}, [inverted(low=1)]),
    ("priority-inversion", inversion(low=0), {"least_us": 100}, []),
    ("priority-inversion", inversion(low=19), {"least_us": 100}, [inverted(low=19)]),
])  # fmt: skip
def test_what_a_rule_says(kind, scene, limits, expected, tmp_path):
    assert reported(scene, kind, tmp_path, **limits) == expected
