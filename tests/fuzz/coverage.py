"""`python -m tests.fuzz.coverage TARGET CORPUS [libFuzzer options]`: guided by coverage, where atheris is installed.

The corpus is a folder of inputs; found ones are added to it. `--begin N` first fills it with inputs of the generator.
`--minimise NEW` runs nothing new, but copies to NEW the least of the inputs that reach every line that all reach;
it needs no atheris.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.cases import store

Lines = set[tuple[str, int]]


def begin(name: str, corpus: Path, count: int) -> None:
    """Fill a corpus with inputs of the generator."""
    from tests.fuzz.targets import TARGETS

    for index in range(count):
        store(".", TARGETS[name].make(random.Random(f"corpus/{name}/{index}")), corpus)


def lines_of(name: str, data: bytes, folder: Path) -> Lines:
    """Return file and line of the program that an input reaches."""
    from tests.fuzz.batch import run_one

    found: Lines = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if "/satview/" not in frame.f_code.co_filename:
            return None
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        run_one(name, data, folder)
    finally:
        sys.settrace(None)
    return found


def minimise(name: str, corpus: Path, target: Path, folder: Path) -> int:
    """Copy inputs, small ones first, that reach a line none before has reached; return how many."""
    reached: Lines = set()
    stored = 0
    for path in sorted(corpus.glob("*"), key=lambda each: (each.stat().st_size, each.name)):
        data = path.read_bytes()
        new = lines_of(name, data, folder) - reached
        if new:
            store(".", data, target)
            reached |= new
            stored += 1
    return stored


def main() -> None:
    """Run libFuzzer on a target, which does not return, or minimise a corpus."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.coverage")
    parser.add_argument("target")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--begin", type=int, default=0, metavar="N")
    parser.add_argument("--minimise", type=Path, metavar="NEW")
    args, options = parser.parse_known_args()
    args.corpus.mkdir(parents=True, exist_ok=True)
    made = tempfile.TemporaryDirectory(prefix="satview-fuzz-")  # removed when the process ends
    folder = Path(made.name)
    if args.minimise is not None:
        print(f"stored {minimise(args.target, args.corpus, args.minimise, folder)} inputs")
        return
    try:
        import atheris
    except ImportError:
        sys.exit("this needs atheris: pip install '.[fuzz]'")
    with atheris.instrument_imports(include=["satview"]):
        from tests.fuzz.targets import TARGETS
    begin(args.target, args.corpus, args.begin)
    target = TARGETS[args.target]

    def run(data: bytes) -> None:
        target.run(data, folder)

    limits = [f"-timeout={int(target.limit_s)}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *limits, *options, str(args.corpus)], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
