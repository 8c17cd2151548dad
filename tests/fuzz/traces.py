"""Inputs of the readers: traces that are nearly right."""

from __future__ import annotations

import io
import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from satview.capture.buffers import LoggerOptions
from satview.capture.flight_recorder import QstForm
from satview.capture.run import Capture, run
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.unixware import interfaces
from satview.export.listing.forms import Style
from satview.export.listing.printer import Printer
from satview.export.listing.rows import TextRows, default_time
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.formats.source import source_of
from tests.fuzz.mutation import BAD_NUMBERS, mutate, mutate_lines
from tests.helpers import linux_scene, perfetto_probe, trace_dat
from tests.helpers.kev import KINDS, header_and_page
from tests.helpers.packing import PACKERS
from tests.helpers.thread_trace import record

LAYOUTS = ("6", "6.1", "7", "8")
MEMBER_BREAK = b"\n--8<--\n"
_KEYS = ("CYCLES_PER_SEC", "SYS_RELEASE", "SYSPAGE_LEN", "CPU_NUM", "LITTLE_ENDIAN", "BIG_ENDIAN", "DATE", "BOOT_DATE")
_RELEASES = {"6": Release.QNX_6, "7": Release.QNX_7, "8": Release.QNX_8}


@cache
def _codes(release: str) -> list[int]:
    book = catalogue(_RELEASES[release[0]])
    return [code for code in range(0x8000) if not book.name(code).startswith(("UNKNOWN", "?")) and code >> 10 < 32][
        :2000
    ]


@cache
def _start(release: str, order: str, cpus: int) -> tuple[tuple[tuple[str, str], ...], bytes]:
    pairs, page = header_and_page(release, order, cpus)
    return tuple(pairs), page


def kev(rng: random.Random) -> bytes:
    """Return a .kev file of any release and byte order, damaged in header, page, slots or nowhere."""
    release, order, cpus = rng.choice(list(KINDS)), rng.choice(("little", "little", "big")), rng.choice((1, 1, 2, 4))
    pairs, page = _start(release, order, cpus)
    if rng.random() < 0.15:
        pairs = _other_pairs(rng, pairs)
    if rng.random() < 0.1:
        page = mutate(rng, page)
    slots = _slots(rng, release, order, cpus)
    if rng.random() < 0.6:
        slots = damaged(rng, slots)
    body = slots.astype("<u4" if order == "little" else ">u4").tobytes()
    data = header_bytes(pairs) + page + body
    if rng.random() < 0.15:
        data = mutate(rng, data)
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data


def _other_pairs(rng: random.Random, pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    found = dict(pairs)
    key = rng.choice(_KEYS)
    if rng.random() < 0.3:
        found.pop(key, None)
    else:
        found[key] = rng.choice([b for b in BAD_NUMBERS if b.isascii() and b"\0" not in b]).decode()
    return tuple(found.items())


def _slots(rng: random.Random, release: str, order: str, cpus: int) -> np.ndarray:
    writer, clock, sequence = SlotWriter(order), 0x1_0000_0000 + rng.choice((0, 0xFFFF_F000)), [rng.randrange(5)] * cpus
    codes, mine = _codes(release), [rng.choice(_codes(release)) for _ in range(6)]
    for _ in range(rng.choice((0, 1, 3, 10, 30, 30, 80))):
        clock += rng.choice((0, 1, 7, 1000, 100_000, 0x2000_0000))
        cpu, kind = rng.randrange(cpus), rng.random()
        if kind < 0.08:
            writer.event(wire.CONTROL_TIME, cpu, clock, (clock >> 32, clock & 0xFFFFFFFF))
        elif kind < 0.14:
            sequence[cpu] += rng.choice((1, 1, 1, 1, 2))
            writer.event(wire.CONTROL_BUFFER, cpu, clock, (sequence[cpu], rng.choice((0, 10, 1000))))
        elif kind < 0.2:
            text = rng.choice((b"proc/boot/procnto", b"a", b"", b"\xff\0x", b"<b>\x1b[0m", b"n" * 300))
            code = rng.choice((wire.PROC_CREATE_NAME, wire.PROC_THREAD_NAME))
            writer.text_event(code, cpu, clock, (rng.randrange(4), rng.randrange(4)), text)
        elif kind < 0.4:
            writer.event(wire.code(4, rng.randrange(30)), cpu, clock, (rng.randrange(1, 4), rng.randrange(1, 4)))
        else:
            count = rng.choice((2, 2, 2, 3, 4, 5, 8, 20))
            words = [rng.choice((0, 1, 2, 3, 0xFFFFFFFF, 0x80000000, rng.getrandbits(32))) for _ in range(count)]
            writer.event(rng.choice(mine) if rng.random() < 0.7 else rng.choice(codes), cpu, clock, words)
    return writer.slots()


def damaged(rng: random.Random, slots: np.ndarray) -> np.ndarray:
    """Return slots with one to five faults: bits, zeroes, parts that are moved, doubled or missing, other CPUs."""
    found = slots.reshape(-1, 4).astype(np.uint32)
    for _ in range(rng.choice((1, 1, 2, 5)) if len(found) else 0):
        at = rng.randrange(len(found))
        end = min(len(found), at + rng.choice((1, 2, 5, 20)))
        match rng.randrange(8):
            case 0:
                found[at, rng.randrange(4)] ^= np.uint32(1 << rng.randrange(32))
            case 1:
                found[at:end] = 0
            case 2:
                found = np.concatenate((found[:at], found[end:], found[at:end]))
            case 3:
                found = np.concatenate((found[:end], found[at:end], found[end:]))
            case 4 if len(found) > end - at:
                found = np.delete(found, slice(at, end), 0)
            case 5:
                found[at, 0] = found[at, 0] & np.uint32(0x3FFFFFFF) | np.uint32(rng.randrange(4) << 30)
            case 6:
                found[at] = np.frombuffer(rng.randbytes(16), np.uint32)
            case 7:
                found[at:end, 0] ^= np.uint32(rng.randrange(64) << wire.CPU_SHIFT)
    return found


def listing(rng: random.Random) -> bytes:
    """Return a listing printed from a sound or damaged trace, its lines then changed."""
    source = source_of(io.BytesIO(_sound_kev(rng)), "made.kev")
    layout = rng.choice(LAYOUTS)
    style = Style(layout, source.release, source.byte_order, rng.random() < 0.5, rng.random() < 0.3)
    rows = TextRows(source, style, rng.choice((default_time(layout), "cycles", "full", "ns", "wall")))
    text = "".join(Printer(source, rows).text()).encode("utf-8", "surrogateescape")
    return mutate_lines(
        rng, text, (b"t:0x00000001", b"CPU:00", b"CPU:99", b"-v", b"THREAD", b"THRUNNING", b"COMM", b"0x")
    )


def _sound_kev(rng: random.Random) -> bytes:
    release, order, cpus = rng.choice(list(KINDS)), rng.choice(("little", "big")), rng.choice((1, 2))
    pairs, page = _start(release, order, cpus)
    dtype = "<u4" if order == "little" else ">u4"
    return header_bytes(pairs) + page + _slots(rng, release, order, cpus).astype(dtype).tobytes()


def thread_set(rng: random.Random) -> bytes:
    """Return the files of a UnixWare thread trace, one after the other, with `MEMBER_BREAK` between them."""
    names, now, files = list(interfaces()), 0, []
    for lwp in range(1, rng.choice((2, 3, 4))):
        lines = []
        for _ in range(rng.choice((0, 1, 5, 20, 40))):
            now += rng.choice((0, 1, 1, 10, 1000, -3))
            arguments = [rng.choice((0, 1, 2, "0x10", "0xffffffff", -1)) for _ in range(rng.randrange(5))]
            which = rng.choice((0, 0, 1, 1, 2, 3))
            lines.append(record(max(0, now), lwp, rng.randrange(1, 5), rng.choice(names), which, *arguments))
        text = "".join(lines).encode()
        files.append(mutate_lines(rng, text, (b":", b"::", b"1000:")) if rng.random() < 0.7 else text)
    return MEMBER_BREAK.join(files)


def packed(rng: random.Random) -> bytes:
    """Return a compressed trace, damaged."""
    return mutate(rng, rng.choice(list(PACKERS.values()))(kev(rng) * rng.choice((1, 1, 2))))


def start_bytes(release: str) -> bytes:
    """Return header and system page of a small sound trace with two CPUs."""
    pairs, page = _start(release, "little", 2)
    return header_bytes(pairs) + page


@cache
def _foreign_files() -> tuple[bytes, ...]:
    """Return one file of each form, small."""
    dat, qst = (
        linux_scene.as_trace_dat(),
        (
            (Release.QNX_7, QstForm.VERSION_3),
            (Release.QNX_8, QstForm.VERSION_4),
            (Release.QNX_7, QstForm.VERSION_4_SLOTS),
        ),
    )
    return (
        dat,
        trace_dat.version_7(dat, "zlib"),
        linux_scene.as_perf_data(),
        linux_scene.TEXT.encode(),
        linux_scene.as_perfetto(),
        linux_scene.as_perfetto(is_compact=True),
        perfetto_probe.scene().trace.SerializeToString(),
        *(_qst(release, form) for release, form in qst),
    )


def _qst(release: Release, form: QstForm) -> bytes:
    options = LoggerOptions(iterations=0, kernel_buffers=2, is_ring=True, is_probe=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.qst"
        run(Capture("two-threads", release=release, duration_ns=20_000_000, options=options, cpus=1, qst=form), path)
        return path.read_bytes()


def foreign(rng: random.Random) -> bytes:
    """Return a damaged file of another tool; most damage is where heads are."""
    data = rng.choice(_foreign_files())
    if rng.random() < 0.6:
        return mutate(rng, data[:400]) + data[400:]
    return mutate(rng, data)
