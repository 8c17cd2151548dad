"""Builds the compiled core, beside its sources or for any platform that satview has wheels for.

`python tools/build_core.py [--sanitize] [--platform TAG] [-o FILE]`; `--has-compiler` only says whether it could.

The compiler is $CC or `cc` where one works here, else the one of the Python package `ziglang`, which also builds for
all other platforms. satview does not work without its core, so a build that cannot make it ends with one sentence.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "satview" / "core"
# Tag of the wheel: what Zig calls the platform. glibc 2.17 and macOS 11 are older than what Qt needs.
PLATFORMS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64.manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
    "win_arm64": "aarch64-windows-gnu",
}
ZIG = "ziglang>=0.17"
FLAGS = ("-std=c11", "-O3", "-g0", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
ADVICE = f"install a C compiler (Debian: apt-get install gcc libc6-dev) or its stand-in, pip install '{ZIG}'"


class BuildError(Exception):
    """The core cannot be built; the text says why and what to do."""


def library_name(tag: str | None = None) -> str:
    """Return the name of the library on a platform of `PLATFORMS`; None = on this machine."""
    system = tag or {"win32": "win", "darwin": "macosx"}.get(sys.platform, "linux")
    return "_passes" + (".dll" if system.startswith("win") else ".dylib" if system.startswith("macosx") else ".so")


def compiler(tag: str | None = None) -> list[str] | None:
    """Return the words that call a C compiler for a platform; None if there is none.

    Args:
        tag: A key of `PLATFORMS`; None = this machine.
    """
    if tag is None:
        named = shlex.split(os.environ.get("CC", ""))
        for words in [named] if named else [["cc"], ["gcc"], ["clang"]]:
            if shutil.which(words[0]) and _compiles(words):
                return words
    target = PLATFORMS[tag] if tag is not None else own_target()
    has_zig = importlib.util.find_spec("ziglang") is not None
    return [sys.executable, "-m", "ziglang", "cc", "-target", target] if has_zig and target else None


def build(library: Path, *, tag: str | None = None, flags: tuple[str, ...] = ()) -> None:
    """Build the library.

    Args:
        library: The new file.
        tag: The platform, a key of `PLATFORMS`; None = this machine.
        flags: More options for the compiler.

    Raises:
        BuildError: There is no compiler, or it fails.
    """
    words = compiler(tag)
    if words is None:
        raise BuildError(f"satview cannot be built without a C compiler: {ADVICE}")
    sources = sorted(FOLDER.glob("*.[ch]"))
    content = b"".join(source.read_bytes() for source in sources)
    digest = f"{len(content):08x}{zlib.crc32(content):08x}"
    beside = library.with_suffix(".new")
    command = [*words, *FLAGS, *flags, f'-DSATVIEW_SOURCE="{digest}"', "-o", str(beside),
               *(str(source) for source in sources if source.suffix == ".c")]  # fmt: skip
    if subprocess.run(command, check=False).returncode:
        beside.unlink(missing_ok=True)
        raise BuildError(f"satview cannot be built: {shlex.join(words)} failed, see above; or {ADVICE}")
    beside.replace(library)  # one that is open elsewhere stays whole


def _compiles(words: list[str]) -> bool:
    """Return whether a compiler has what it needs: Debian's gcc comes without the headers of the C library."""
    command = [*words, "-fsyntax-only", "-x", "c", "-"]
    program = b"#include <string.h>\n#include <stdint.h>\n"
    return subprocess.run(command, input=program, capture_output=True, check=False).returncode == 0


def own_target() -> str | None:
    """Return what Zig calls this machine, the oldest processor of its kind; None if there are no wheels for it."""
    system = {"win32": "win", "darwin": "macosx"}.get(sys.platform, sys.platform)
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    for tag, target in PLATFORMS.items():
        if target.startswith(machine) and (tag.startswith(system) or (system == "linux" and "linux" in tag)):
            return target
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sanitize", action="store_true", help="with address and undefined-behaviour sanitizers")
    parser.add_argument("--platform", choices=PLATFORMS, help="for another platform, by the tag of its wheel")
    parser.add_argument("--has-compiler", action="store_true", help="only say whether there is a compiler")
    parser.add_argument("-o", type=Path, help="the new file; satview/core/_passes.* otherwise")
    options = parser.parse_args()
    if options.has_compiler:
        sys.exit(compiler(options.platform) is None)
    try:
        build(
            options.o or FOLDER / library_name(options.platform),
            tag=options.platform,
            flags=SANITIZED if options.sanitize else (),
        )
    except BuildError as error:
        sys.exit(str(error))
