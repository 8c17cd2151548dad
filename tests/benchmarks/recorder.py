"""The flight recorder: a simulated week with 1,000 triggers, and how fast and how soon a stream is watched."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from satview.capture.flight_recorder import Bounds
from satview.capture.run import make_tile, write_tiles
from satview.events.spec import Release
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.target.capture import capture
from satview.target.request import TargetRequest
from satview.target.watching import Recording
from tests.helpers.board import SSHD, Board
from tests.helpers.recorder_soak import soak

LATE = 1000
EVENTS = 3_000_000
PIECE = 1 << 16  # bytes that arrive at once
RULES = {
    "a condition": "WHEN event == MSG_SENDV and pid == 1 and time < 0s THEN STOP",
    "a latency": 'WHEN latency("KER_CALL/MSG_SENDV", "KER_EXIT/MSG_SENDV") > 1s THEN STOP',
}
RUNS = 5


def run(args: list[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        found = soak(Path(name), int(args[0]) if args else LATE)
    missed = sorted(set(range(found.late)) - set(found.numbers))
    grown_mb = (found.memory_kb[1] - found.memory_kb[0]) / 1000
    print(f"{found.simulated_s / 86_400:.2f} simulated days in {found.seconds:.1f} s, {found.slots:,} slots: "
          f"{found.late} late jobs, {len(missed)} missed, {len(found.numbers) - len(set(found.numbers))} double, "
          f"{found.files} files; at most {found.most_files} files with {found.most_bytes:,} bytes at a time; "
          f"memory grew by {grown_mb:.1f} MB")  # fmt: skip
    _watch()
    if Path(SSHD).exists() and shutil.which("ssh"):
        _notice()


def _watch() -> None:
    """Print how fast a stream is watched."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "all.kev"
        write_tiles(path, EVENTS, make_tile())
        data = path.read_bytes()
        for title, rules in RULES.items():
            built = build(parse_rules(rules, Release.QNX_7), Release.QNX_7)
            recording = Recording(Path(name) / "part.kev", [], built, Bounds(32), lambda _text: None)
            begin_s = time.monotonic()
            for start in range(0, len(data), PIECE):
                recording.take(data[start : start + PIECE])
            seconds = time.monotonic() - begin_s
            print(f"watching {title}: {len(data) / seconds / 1e6:.0f} MB/s, {EVENTS / seconds:,.0f} events per second, "
                  f"{recording.hits} hits")  # fmt: skip


def _notice() -> None:
    """Print how soon a trigger is noticed over a real ssh."""
    delays = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as name:
            board = Board(Path(name) / "board")
            try:
                rules = 'WHEN event == SND_MESSAGE and time > 1.5s THEN MARK "sent"; STOP'
                request = TargetRequest(board.profile, Path(name) / "a.kev", rules=rules, is_ring=True, seconds=60)
                captured = capture(request, lambda: False, lambda _text: None, lambda _text: None)
                delays.append(captured.noticed_s)
            finally:
                board.close()
    print(f"over ssh a trigger is noticed {min(delays):.2f} to {max(delays):.2f} s after its event ({RUNS} runs)")
