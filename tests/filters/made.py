"""Traces for filter tests: small ones written out event by event, and random ones with every class in them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import WireClass, code
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.header import SlotWriter, standard_header
from satview.store.problems import Problems
from satview.store.trace import Header, Trace

CYCLES_PER_S = 1_000_000  # a cycle is a microsecond
START_CYCLES = (1 << 32) * 3 + 1000
RELEASES = {Release.QNX_6: "6.4.1", Release.QNX_6_6: "6.6.0", Release.QNX_7: "7.1.0", Release.QNX_8: "8.0.0"}
PROCESSES = {1: "proc/boot/procnto-instr", 7: "/sbin/devb-eide", 12: "/usr/bin/client", 20: ""}
THREADS = ((1, 1), (1, 2), (7, 1), (7, 2), (12, 1), (12, 2), (20, 1))

RUNNING, READY, RECEIVE, REPLY = (code(WireClass.PR_TH, n) for n in (1, 2, 5, 6))
CREATE = code(WireClass.PR_TH, 24)
MSG_SENDV, MSG_RECEIVEV = code(WireClass.KER_CALL, 11), code(WireClass.KER_CALL, 14)
MSG_SENDV_EXIT, MSG_RECEIVEV_EXIT = code(WireClass.KER_CALL, 11 + 128), code(WireClass.KER_CALL, 14 + 128)
SMSG, RMSG, REPLY_MESSAGE = (code(WireClass.COMM, n) for n in (0, 2, 10))

Event = tuple[int, int, int, Sequence[int]]  # microseconds since the start, CPU, code, words


class Maker(SlotWriter):
    """A slot writer that knows when the trace begins."""

    def at(self, time_us: int, cpu: int, event_code: int, *words: int) -> None:
        self.event(event_code, cpu, START_CYCLES + time_us, words)

    def text_at(self, time_us: int, cpu: int, event_code: int, words: Sequence[int], text: bytes) -> None:
        self.text_event(event_code, cpu, START_CYCLES + time_us, words, text)

    def start(self, processes: dict[int, str] = PROCESSES, threads: Iterable[tuple[int, int]] = THREADS) -> int:
        """Write what START dumps; return the microseconds it took."""
        now = START_CYCLES
        self.event(code(WireClass.CONTROL, 1), 0, now, (now >> 32, now & 0xFFFFFFFF))
        at = 1
        for pid, name in processes.items():
            kind = code(WireClass.PR_TH, 192 if name else 64)
            if name:
                self.text_at(at, 0, kind, (0, pid), name.encode())
            else:
                self.at(at, 0, kind, 0, pid)
            at += 1
            for owner, tid in threads:
                if owner == pid:
                    self.at(at, 0, CREATE, pid, tid)
                    self.at(at + 1, 0, READY, pid, tid)
                    at += 2
        return at


def make_trace(
    maker: SlotWriter, release: Release = Release.QNX_6, cpus: int = 2, attributes: Sequence[tuple[str, str]] = ()
) -> Trace:
    """Return what a reader makes of the slots."""
    pairs = standard_header(
        file_name="made.kev",
        date="Fri Aug 17 09:18:04 2001",
        boot_date="Fri Aug 17 09:02:16 2001",
        byte_order=maker.byte_order,
        cycles_per_s=CYCLES_PER_S,
        cpu_count=cpus,
        release=RELEASES[release],
        version="2001/08/15-08:15:15",
        machine="x86pc",
        node="localhost",
        syspage_length=0,
        attributes=attributes,
    )
    return trace_from_slots("made.kev", "kev", Header(pairs), b"", maker.slots(), maker.byte_order, Problems())


def made(events: Iterable[Event], release: Release = Release.QNX_6, byte_order: str = "little") -> Trace:
    """Return a trace of START's dump and some events; their times count from its end."""
    maker = Maker(byte_order)
    begin = maker.start()
    for time_us, cpu, event_code, words in events:
        maker.at(begin + time_us, cpu, event_code, *words)
    return make_trace(maker, release)


def random_trace(seed: int, count: int = 400, release: Release = Release.QNX_6, byte_order: str = "little") -> Trace:
    """Return a trace with every class of a release, unknown codes, texts, failed calls and strange vectors in it."""
    rng = random.Random(seed)
    book = catalogue(release)
    maker = Maker(byte_order)
    at = maker.start()
    kernel = [c for c in book.codes() if c >> 10 == WireClass.KER_CALL and c & 0x7F in (1, 2, 11, 14, 15, 70, 80, 81)]
    usual = [RUNNING, READY, RECEIVE, REPLY, SMSG, RMSG, REPLY_MESSAGE, *kernel[:24]]
    for _ in range(count):
        at += rng.choice((1, 3, 700, 40_000))
        cpu = rng.randrange(2)
        picked = rng.choice(usual if rng.random() < 0.6 else book.codes() if rng.random() < 0.9 else range(1024, 32768))
        _one(maker, rng, at, cpu, picked)
    return make_trace(maker, release)


def _one(maker: Maker, rng: random.Random, at: int, cpu: int, picked: int) -> None:
    wire_class, event = picked >> 10, picked & 1023
    pid, tid = rng.choice(THREADS)
    if wire_class == WireClass.CONTROL:
        maker.at(at, cpu, code(WireClass.CONTROL, 1), START_CYCLES + at >> 32, START_CYCLES + at & 0xFFFFFFFF)
    elif wire_class == WireClass.PR_TH and event >= 64:
        maker.text_at(at, cpu, code(WireClass.PR_TH, 320), (pid, tid), rng.choice((b"worker", b"", b"timer")))
    elif wire_class == WireClass.PR_TH:
        maker.at(at, cpu, picked, pid, tid, *([rng.randrange(1, 64), 2] if rng.random() < 0.5 else []))
    elif wire_class == WireClass.INT:
        vector = rng.choice((0, 1, 5, 300, 0x80000001))
        maker.at(at, cpu, picked, *((pid, vector, 1, 2) if event in (3, 6) else (vector, 1)))
    elif wire_class == WireClass.COMM:
        own = rng.random() < 0.5
        words = (tid, pid) if event >= 10 else (0x10001, pid if own else rng.choice((7, 12, 0xFFFFFFFF)))
        maker.at(at, cpu, picked, *words)
    elif wire_class == WireClass.USER and rng.random() < 0.5:
        maker.text_at(
            at,
            cpu,
            picked,
            (),
            rng.choice((b"hello world, said somebody", b"frame 17 of the film", b"\x01\x02ab defg")),
        )
    elif wire_class == WireClass.KER_CALL and rng.random() < 0.2:
        maker.at(at, cpu, picked, 0xFFFFFFFF, rng.choice((4, 260, 0xFFFFFFFF)))
    else:
        size = rng.choice((2, 2, 2, 4, 6, 8, 10))
        maker.at(
            at, cpu, picked, *(rng.choice((0, 1, 3, 7, 12, 0xFF, 0x80000000, rng.getrandbits(32))) for _ in range(size))
        )
