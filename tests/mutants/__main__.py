"""`python -m tests.mutants [--rooms formats linkage ...] [--count N] [--seed S]`: exit code 0 if enough is noticed."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from tests.mutants.changes import Mutant, c_mutants, python_mutants
from tests.mutants.tree import ROOT, Reach, Tree, TreeError, digest

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Room:
    """A part of the program and the tests that hold it: globs of the project."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: Final = {
    "formats": Room(
        ("satview/formats/**/*.py",),
        (
            *("tests/formats/test_*.py", "tests/tables/test_perfetto.py", "tests/store/test_tables.py"),
            *("tests/core/test_same_columns.py", "tests/core/test_same_order.py"),
            *("tests/export/test_listing.py", "tests/export/test_listing_format.py"),
            *("tests/cli/test_traceprinter.py", "tests/plugins/test_plugins.py"),
        ),
    ),
    "base": Room(
        (
            "satview/base/new_*.py",
            "satview/base/column_arrays.py",
            "satview/base/shared_file.py",
            "satview/base/named_files.py",
        ),
        (
            "tests/base/test_new_*.py",
            "tests/base/test_array_file.py",
            "tests/base/test_shared_file.py",
            "tests/session/test_marks.py",
        ),
    ),
    "linkage": Room(
        ("satview/linkage/*.py",),
        (
            *("tests/linkage/test_*.py", "tests/core/test_same_links.py", "tests/formats/test_axis.py"),
            *("tests/analysis/test_client_server.py", "tests/analysis/test_snapshot.py", "tests/formats/test_linux.py"),
        ),
    ),
    "verdicts": Room(
        ("satview/analysis/verdicts/*.py",),
        ("tests/analysis/test_verdict*.py", "tests/analysis/test_thresholds.py"),
    ),
    "core": Room(
        ("satview/core/*.c",),
        (
            *("tests/core/test_*.py", "tests/linkage/test_truth.py", "tests/timeline/test_*.py"),
            *("tests/formats/test_decode.py", "tests/formats/test_stream.py", "tests/formats/test_clock.py"),
            *("tests/export/test_listing*.py", "tests/gui/test_lane_image.py"),
        ),
    ),
}
LEAST_SHARE: Final = 0.95


@dataclass(slots=True)
class Result:
    """What became of the mutants of a room.

    Attributes:
        noticed: How many a test noticed.
        not_compiled: How many are no C program: they do not count.
        equivalent: How many change no behaviour, by `equivalent.toml`.
        survived: Those that nobody noticed, each with whether a test reaches its line.
    """

    noticed: int = 0
    not_compiled: int = 0
    equivalent: int = 0
    survived: list[tuple[Mutant, bool]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Share noticed of those that change behaviour, 0 to 1."""
        changing = self.noticed + len(self.survived)
        return self.noticed / changing if changing else 1.0


def equivalent() -> dict[tuple[str, str, str], str]:
    """Return why a mutant changes no behaviour, by file, line before and line after the change."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(row["file"], row["line"], row["change"]): row["reason"] for row in rows}


def mutants_of(file: str) -> list[Mutant]:
    """Return all mutants of a file of the project."""
    source = (ROOT / file).read_bytes()
    return c_mutants(file, source) if file.endswith(".c") else python_mutants(file, source)


def files_of(globs: tuple[str, ...]) -> list[str]:
    """Return the files of the project that globs name, sorted."""
    return sorted(path.relative_to(ROOT).as_posix() for pattern in globs for path in ROOT.glob(pattern))


def chosen(names: list[str]) -> dict[str, list[str]]:
    """Return the files to change, by room.

    Args:
        names: Of rooms, or of modules or folders of them (`satview/formats/qst`, `satview.formats.qst`).

    Raises:
        SystemExit: A name is of no room.
    """
    result: dict[str, list[str]] = {}
    for name in names:
        if name in ROOMS:
            result[name] = files_of(ROOMS[name].modules)
            continue
        path = name if "/" in name else name.replace(".", "/")
        for room in ROOMS:
            files = [file for file in files_of(ROOMS[room].modules) if file.startswith(path)]
            if files:
                result[room] = sorted({*result.get(room, ()), *files})
                break
        else:
            raise SystemExit(f"{name} is neither a room ({', '.join(ROOMS)}) nor a module of one")
    return result


class Run:
    """Mutants in some trees at once."""

    def __init__(self, scratch: Path, processes: int) -> None:
        self._scratch = scratch
        self.trees: list[Tree] = [Tree(scratch / str(number)) for number in range(processes)]
        self._free: SimpleQueue[Tree] = SimpleQueue()
        for tree in self.trees:
            self._free.put(tree)
        self._threads = ThreadPoolExecutor(processes)
        self._printing = threading.Lock()

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(cancel_futures=True)
        for tree in self.trees:
            tree.close()

    def _in_tree(self, function: Any) -> Any:
        tree = self._free.get()
        try:
            return function(tree)
        finally:
            self._free.put(tree)

    def reach(self, room: str) -> Reach:
        """Return what the tests of a room reach, from the last run where nothing has changed since."""
        files, helpers = files_of(ROOMS[room].modules), sorted((ROOT / "tests/helpers").glob("*.py"))
        sources = digest([*(ROOT / file for file in files), *helpers])
        reach = Reach()

        def of(test_file: str) -> dict[str, Any]:
            stored = self._scratch / f"reach-{digest([ROOT / test_file])}-{sources}.json"
            if not stored.exists():
                python_files = [file for file in files if file.endswith(".py")]
                answer = self._in_tree(lambda tree: tree.reach(test_file, python_files or ["none"]))
                stored.write_text(json.dumps(answer))
            return json.loads(stored.read_text())

        for answer in self._threads.map(of, files_of(ROOMS[room].tests)):
            reach.tests.update(answer["test_s"])
            for file, by_line in answer["lines"].items():
                lines = reach.lines.setdefault(file, {})
                for line, contexts in by_line.items():
                    lines.setdefault(int(line), []).extend(context for context in contexts if context)
        return reach

    def room(self, room: str, mutants: list[Mutant], is_verbose: bool) -> Result:
        """Try mutants; survivors are printed as they come."""
        reach, reasons, result = self.reach(room), equivalent(), Result()

        def one(mutant: Mutant) -> None:
            source = (ROOT / mutant.file).read_bytes()
            before, after = mutant.texts(source)
            if (mutant.file, before, after) in reasons:
                result.equivalent += 1
                return
            tests = reach.by(mutant, source)
            noticed_by = self._in_tree(lambda tree: tree.verdict(mutant, tests, reach.tests)) if tests else ""
            with self._printing:
                if noticed_by == "compiler":
                    result.not_compiled += 1
                elif noticed_by:
                    result.noticed += 1
                else:
                    result.survived.append((mutant, bool(tests)))
                if not noticed_by or is_verbose:
                    verdict = f"noticed by {noticed_by}" if noticed_by else "survived" if tests else "not reached"
                    print(f"{mutant.file}:{mutant.line}: {verdict}\n  - {before}\n  + {after}", flush=True)

        list(self._threads.map(one, mutants))
        return result


def table(results: dict[str, Result]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| room | mutants | change nothing | change behaviour | noticed | share | survived | not reached |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for name, result in results.items():
        changing = result.noticed + len(result.survived)
        reached = sum(is_reached for _, is_reached in result.survived)
        lines.append(
            f"| `{name}` | {changing + result.equivalent} | {result.equivalent} | {changing} | {result.noticed} | "
            f"{100 * result.share:.1f} % | {reached} | {len(result.survived) - reached} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run mutants, print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Change the code in small ways and see whether the tests notice."
    )
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), metavar="ROOM",
                        help=f"rooms ({', '.join(ROOMS)}), or modules or folders of them (default: all)")  # fmt: skip
    parser.add_argument("--count", type=int, default=100, help="mutants of each room (default: 100; 0 = all)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed selects the same mutants (default: 1)")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default: 2)")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "satview-mutants",
                        help="folder for the copies of the project, kept for the next run")  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="print every mutant and the test that noticed it")
    args = parser.parse_args()
    begin_s = time.monotonic()
    results: dict[str, Result] = {}
    files_by_room = chosen(args.rooms)
    args.scratch.mkdir(parents=True, exist_ok=True)
    run = Run(args.scratch, args.processes)
    try:
        for room, files in files_by_room.items():
            mutants = [mutant for file in files for mutant in mutants_of(file)]
            if args.count:
                mutants = random.Random(args.seed).sample(mutants, min(args.count, len(mutants)))
            results[room] = run.room(room, mutants, args.verbose)
    except TreeError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        run.close()
    print(table(results))
    print(f"seed {args.seed}, {time.monotonic() - begin_s:.0f} s")
    return int(any(result.share < LEAST_SHARE for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
