"""A copy of the project with a Python of its own, in which a change can be tried."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.mutants.changes import Mutant
from tests.mutants.server import FAILED, LATE, PASSED

ROOT: Final = Path(__file__).resolve().parents[2]
_PARTS: Final = (
    *("satview", "resources", "tests", "tools", "examples", "sample_traces", "docs", "pyproject.toml", "LICENSE"),
    *("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "Makefile", "hatch_build.py"),
)


class TreeError(Exception):
    """The copy does not do what the project does, so nothing can be said about changes of it."""


@dataclass(slots=True)
class Reach:
    """What the tests of a room reach.

    Attributes:
        tests: Seconds that each took, by its id.
        lines: Ids of the tests that reach a line, by file and line.
    """

    tests: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def by(self, mutant: Mutant, source: bytes) -> list[str]:
        """Return the tests that can notice a mutant, the quick ones first; none if no test reaches it.

        Those that reach its line, then the others of the same test files: what one test reads another may look at. What
        runs at import (tables, constants) reaches all who use a module of the same folder.
        """
        if mutant.file.endswith(".c"):
            return sorted(self.tests, key=self.tests.__getitem__)
        line = statement_line(source, mutant.line)
        if line is None:
            folder = mutant.file.rpartition("/")[0]
            used = [lines for file, lines in self.lines.items() if file.startswith(folder)]
            return self._sorted({test for lines in used for tests in lines.values() for test in tests})
        reaching = set(self.lines.get(mutant.file, {}).get(line, ()))
        files = {test.partition("::")[0] for test in reaching}
        rest = {test for test in self.tests if test.partition("::")[0] in files} - reaching
        return [*self._sorted(reaching), *self._sorted(rest)]

    def _sorted(self, tests: set[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.tests[test], test))


def statement_line(source: bytes, line: int) -> int | None:
    """Return the first line of the innermost statement in a function that has a line; None outside of functions.

    The tracer notes a statement of many lines at its parts' lines, always at its first.
    """
    innermost, is_inside, pending = None, False, [(ast.parse(source), False)]
    while pending:
        node, is_in_function = pending.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt | ast.match_case | ast.ExceptHandler):
                continue
            if isinstance(child, ast.match_case):
                pending.append((child, is_in_function))
            elif child.lineno <= line <= child.end_lineno:
                innermost, is_inside = child.lineno, is_in_function
                pending.append((child, is_in_function or isinstance(child, ast.FunctionDef)))
    return innermost if is_inside else None


class Tree:
    """The copy; `close` ends its process, the folder stays for the next run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder / "tree", folder / "log.txt"
        python = _python_of(folder / "python", self.folder)
        _copy(self.folder)
        self._library = next((self.folder / "satview" / "core").glob("_passes.*[!wc]"), None)
        own = {"QT_QPA_PLATFORM": "offscreen", "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
        for name in ("home", "tmp"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)
        leading = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
        environment = {name: text for name, text in os.environ.items() if name not in leading}
        self._server = subprocess.Popen(
            [python, "-P", "-c", "from tests.mutants.server import serve; serve()"],
            cwd=self.folder, env={**environment, **own, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def run(self, tests: Sequence[str], taken_s: dict[str, float], files: Sequence[str] = ()) -> dict[str, Any]:
        """Run tests until one fails.

        Args:
            tests: Ids, or files.
            taken_s: Seconds that each usually takes, by id: one that takes ten times as long and 10 s has failed.
            files: Those of which is noted who reaches what; none = nothing is noted.

        Raises:
            TreeError: satview was not imported from the copy.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"tests": list(tests), "taken_s": taken_s, "log": str(self._log),
                   "map": [str(self.folder / file) for file in files]}  # fmt: skip
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        answer = json.loads(line) if line else {"elsewhere": ["the process has ended"]}
        if answer.get("elsewhere"):
            raise TreeError(f"not of the copy: {answer['elsewhere'][:3]}")
        return answer

    def reach(self, test_file: str, files: Sequence[str]) -> dict[str, Any]:
        """Return what the tests of a file reach: `test_s` (seconds by id) and `lines` (tests by file and line).

        Raises:
            TreeError: A test fails without any change.
        """
        answer = self.run([test_file], {}, files)
        if answer["code"] != PASSED:
            raise TreeError(
                f"{test_file} fails without a change: {answer.get('failed')}\n{self._log.read_text()[-3000:]}"
            )
        prefix = str(self.folder) + os.sep
        lines = {file.removeprefix(prefix): by_line for file, by_line in answer["lines"].items()}
        return {"test_s": answer["test_s"], "lines": lines}

    def verdict(self, mutant: Mutant, tests: Sequence[str], taken_s: dict[str, float]) -> str:
        """Make a change, run tests, take it back; return who noticed, empty if nobody did.

        Raises:
            TreeError: satview was not imported from the copy.
        """
        path = self.folder / mutant.file
        source, stamps = path.read_bytes(), path.stat()
        path.write_bytes(mutant.applied(source))
        os.utime(path, ns=(stamps.st_mtime_ns, stamps.st_mtime_ns - 7_000_000_000))  # byte code goes by time and size
        try:
            is_c = path.suffix in (".c", ".h")
            if is_c and not self._build():
                return "compiler"
            answer = self.run(tests, {test: taken_s[test] for test in tests})
            code = answer["code"]
            if code == PASSED:
                return ""
            return answer.get("failed") or (
                "time" if code == LATE else "start" if code == FAILED else f"signal {-code}"
            )
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
            if self._library is not None and self._library.with_suffix(".sound").exists():
                self._library.with_suffix(".sound").replace(self._library)

    def _build(self) -> bool:
        """Build the core of the changed source; False if it does not compile."""
        assert self._library is not None, "the core is not built: python tools/build_core.py"
        self._library.rename(self._library.with_suffix(".sound"))
        code = (
            "import sys; sys.path.insert(0, 'tools'); from pathlib import Path; import build_core; "
            f"build_core.build(Path({str(self._library)!r}), flags=('-O1', '-w'))"
        )
        command = [sys.executable, "-P", "-c", code]
        return subprocess.run(command, cwd=self.folder, capture_output=True, check=False).returncode == 0


def _python_of(folder: Path, tree: Path) -> str:
    """Return the Python that finds satview in a tree, and all else where this Python does."""
    venv.create(folder, clear=True, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # A folder named in a .pth file is searched, but its own .pth files are not read: they name the work tree.
    (packages / "scratch.pth").write_text(f"{tree}\n{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return str(folder / "bin" / "python")


def _copy(tree: Path) -> None:
    """Bring a copy up to date; byte code of files that are as they were stays."""
    wanted = set()
    for part in _PARTS:
        top = ROOT / part
        for source in [top] if top.is_file() else sorted(top.rglob("*")):
            if source.is_dir() or "__pycache__" in source.parts or source.suffix == ".new":
                continue
            target = tree / source.relative_to(ROOT)
            wanted.add(target)
            stamps = source.stat()
            if target.exists() and target.stat().st_mtime_ns == stamps.st_mtime_ns and (
                target.stat().st_size == stamps.st_size
            ):  # fmt: skip
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for old in tree.rglob("*"):
        if old.is_file() and old not in wanted and "__pycache__" not in old.parts:
            old.unlink()


def digest(files: Sequence[Path]) -> str:
    """Return what names a state of files."""
    content = hashlib.sha256()
    for file in files:
        content.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]
