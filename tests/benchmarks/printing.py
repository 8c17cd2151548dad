"""Processor time of traceprinter's text, CSV, JSON lines and event list, and of a program that prints as the vendor's.

Args: [millions of slots (default 1)] [--shape NAME ...].
"""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.made_traces import SHAPES, file_of
from tests.benchmarks.peers import command_ms, peer_ms

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
        peer = peer_ms(path, prints=True)
        print(f"{shape}: a C program that prints as the vendor's: {peer or 0:.0f} ms", flush=True)
        for name, words in OUTPUTS.items():
            took = command_ms([sys.executable, "-m", "satview", *words, str(path)])
            rate = f"; {peer / took:.2f} times the rate" if peer else ""
            print(f"{shape}: {name}: {took:.0f} ms, {took / options.millions:.0f} ns/slot{rate}", flush=True)
