"""Slots printed per second by the traceprinter, and its ratio to decoding alone. Args: millions (default 1)."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from satview.__main__ import main
from satview.formats.kev.reader import open_kev
from tests.benchmarks.load import median_ns
from tests.benchmarks.made_traces import make_file


def run(args: list[str]) -> None:
    """Print one line per size."""
    for millions in [float(arg) for arg in args] or [1.0]:
        path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
        slots = open_kev(path).slot_count
        decode_ns = median_ns(lambda path=path: open_kev(path), 3)
        out = Path(tempfile.gettempdir()) / "satview-printed.txt"
        start = time.perf_counter_ns()
        main(["traceprinter", "-f", str(path), "-o", str(out)])
        print_ns = time.perf_counter_ns() - start
        print(
            f"{millions:g} M slots: {slots / print_ns * 1e9:,.0f} slots/s, "
            f"{out.stat().st_size / 1e6:.0f} MB of text in {print_ns / 1e9:.2f} s; "
            f"decoding {decode_ns / 1e9:.2f} s, ratio {print_ns / decode_ns:.1f}",
            flush=True,
        )
        out.unlink()
