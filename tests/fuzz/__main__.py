"""`python -m tests.fuzz --minutes N [--target NAME] [--seed S]`: exit code 0 if nothing broke, else 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.cases import FOLDER
from tests.fuzz.run import run_all, table
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the targets, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Run hostile inputs by the thousand.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long in all (default: 1)")
    parser.add_argument(
        "--target", action="append", choices=TARGETS, help="only this one; may be repeated (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs (default: 1)")
    parser.add_argument("--cases", type=Path, default=FOLDER, help="where inputs that broke something are stored")
    args = parser.parse_args()
    totals = run_all(args.target or list(TARGETS), args.seed, args.minutes, args.cases)
    print(table(totals))
    for name, each in totals.items():
        for count, first in sorted(each.seen.values(), reverse=True):
            print(f"{name}: {count:,} x {first}")
    return int(any(each.seen for each in totals.values()))


if __name__ == "__main__":
    sys.exit(main())
