"""Builds the compiled core beside its sources, if there is a C compiler; says what it did.

`python tools/build_core.py [--sanitize] [-o FILE]`. Without a compiler the numpy code runs instead: that is no error.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "satview" / "core"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
FLAGS = ("-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def compiler() -> list[str] | None:
    """Return the C compiler as $CC names it, else the first that is there; None for none."""
    named = shlex.split(os.environ.get("CC", ""))
    for words in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(words[0]):
            return words
    return None


def build(target: Path, *, sanitize: bool = False) -> bool:
    """Build the library; return False if there is no compiler or it fails."""
    words = compiler()
    if words is None:
        print("no C compiler: the numpy code runs instead of the compiled core", file=sys.stderr)
        return False
    sources = sorted(FOLDER.glob("*.[ch]"))
    content = b"".join(source.read_bytes() for source in sources)
    digest = f"{len(content):08x}{zlib.crc32(content):08x}"
    beside = target.with_suffix(".new")
    command = [*words, *FLAGS, *(SANITIZED if sanitize else ()), f'-DSATVIEW_SOURCE="{digest}"', "-o", str(beside),
               *(str(source) for source in sources if source.suffix == ".c")]  # fmt: skip
    done = subprocess.run(command, check=False)
    if done.returncode:
        print("the compiler failed: the numpy code runs instead of the compiled core", file=sys.stderr)
        beside.unlink(missing_ok=True)
        return False
    beside.replace(target)  # one that is open elsewhere stays whole
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("-o", type=Path, default=FOLDER / f"_passes{SUFFIX}")
    options = parser.parse_args()
    build(options.o, sanitize=options.sanitize)
