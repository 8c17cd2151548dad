"""Times of traceprinter's text, CSV, JSON lines and event list, and of a program that prints as the vendor's.

Args: [millions of slots (default 1)] [--shape NAME ...].
"""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.made_traces import SHAPES, file_of
from tests.benchmarks.peers import command_times, peer_times

OUTPUTS = {
    "traceprinter": ("traceprinter", "-f"),
    "traceprinter, CSV": ("traceprinter", "--format", "csv", "-f"),
    "traceprinter, JSON lines": ("traceprinter", "--format", "jsonl", "-f"),
    "event list": ("export", "--format", "list", "-o", "-"),
}


def run(args: list[str]) -> None:
    """Print one line per output and shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=1)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    options = parser.parse_args(args)
    for shape in options.shape or SHAPES:
        path = file_of(shape, options.millions)
        peer = peer_times(path, "print")
        if peer is not None:
            print(
                f"{shape}: a C program that prints as the vendor's: {peer[0]:.0f} ms CPU, {peer[1]:.0f} ms", flush=True
            )
        for name, words in OUTPUTS.items():
            used, took = min(command_times([sys.executable, "-m", "satview", *words, str(path)]) for _ in range(3))
            rate = f"; {peer[0] / used:.2f} and {peer[1] / took:.2f} times the rate" if peer else ""
            print(f"{shape}: {name}: {used:.0f} ms CPU, {took:.0f} ms{rate}", flush=True)
