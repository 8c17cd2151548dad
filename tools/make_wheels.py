"""Makes the packages for all platforms and looks into each: `python -m tools.make_wheels FOLDER [--platform TAG ...]`.

What can be checked here is: the tag, the kind of library and its processor, that it exports every function of the
core, that nothing newer than the tag's C library is needed (Linux), and the signature without which Macs with an ARM
processor load nothing. The package for this machine is installed beside the packages it needs, and started.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import lief

from tools import build_core

lief.logging.disable()  # it warns of what is usual

ROOT = Path(__file__).resolve().parents[1]
MACHINES = {
    "x86_64": (lief.ELF.ARCH.X86_64, lief.MachO.Header.CPU_TYPE.X86_64, lief.PE.Header.MACHINE_TYPES.AMD64),
    "aarch64": (lief.ELF.ARCH.AARCH64, lief.MachO.Header.CPU_TYPE.ARM64, lief.PE.Header.MACHINE_TYPES.ARM64),
}


class WheelError(Exception):
    """A package is not what its name says; the text says in which way."""


def make_wheel(tag: str, folder: Path) -> Path:
    """Make the package for a platform, a key of `build_core.PLATFORMS`, and return it."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--no-build-isolation", "--wheel-dir", scratch, str(ROOT)]  # fmt: skip
        subprocess.run(command, env={**os.environ, "SATVIEW_PLATFORM": tag}, check=True)
        (made,) = Path(scratch).iterdir()
        folder.mkdir(parents=True, exist_ok=True)
        return Path(made.replace(folder / made.name))


def check_wheel(wheel: Path, tag: str) -> None:
    """Check what can be seen of a package without its platform.

    Raises:
        WheelError: It is not what its tag says.
    """
    if not wheel.name.endswith(f"-py3-none-{tag}.whl"):
        raise WheelError(f"{wheel.name} has not the tag {tag}")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if "/core/_passes" in name]
        if libraries != [f"satview/core/{build_core.library_name(tag)}"]:
            raise WheelError(f"{wheel.name} has the libraries {libraries}")
        data = archive.read(libraries[0])
        described = archive.read(
            next(name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        ).decode()
    tags = {f"py3-none-{part}" for part in tag.split(".")}
    if set(re.findall(r"^Tag: (\S+)$", described, re.MULTILINE)) != tags or "Root-Is-Purelib: false" not in described:
        raise WheelError(f"{wheel.name} describes itself otherwise: {described}")
    _check_library(data, tag)
    if "linux" in tag:
        _check_manylinux(wheel, tag)


def _check_library(data: bytes, tag: str) -> None:
    """Check kind, processor, exports and signature of a library."""
    binary = lief.parse(list(data))
    elf, macho, pe = MACHINES["x86_64" if tag.endswith(("x86_64", "amd64")) else "aarch64"]
    if isinstance(binary, lief.ELF.Binary):
        is_right = "linux" in tag and binary.header.machine_type == elf
    elif isinstance(binary, lief.MachO.Binary):
        is_right = tag.startswith("macosx") and binary.header.cpu_type == macho
        if is_right and "arm64" in tag and not binary.has_code_signature:
            raise WheelError(f"{tag}: the library is not signed, Macs with an ARM processor would not load it")
    elif isinstance(binary, lief.PE.Binary):
        is_right = tag.startswith("win") and binary.header.machine == pe
    else:
        is_right = False
    if not is_right:
        raise WheelError(f"{tag}: the library is of another kind or processor")
    exported = {str(function.name).removeprefix("_") for function in binary.exported_functions}
    if missing := exports_of_sources() - exported:
        raise WheelError(f"{tag}: the library does not export {', '.join(sorted(missing))}")


def exports_of_sources() -> set[str]:
    """Return the functions that the C sources export."""
    text = "".join(path.read_text("utf-8") for path in build_core.FOLDER.glob("*.c"))
    return set(re.findall(r"^EXPORT [^;{]*?\b(satview_\w+)\(", text, re.MULTILINE))


def _check_manylinux(wheel: Path, tag: str) -> None:
    """Let auditwheel say whether the library needs a newer C library than its tag allows."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    consistent = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_', shown)
    allowed = int(re.match(r"manylinux_2_(\d+)_", tag)[1])
    if consistent is None or int(consistent[1]) > allowed:
        raise WheelError(f"{wheel.name}: {shown}")


def run_wheel(wheel: Path) -> str:
    """Install a package for this machine without its checkout, and return what it says of its core."""
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", scratch, str(wheel)], check=True)
        program = (
            "import satview; from satview.__main__ import main\n"
            "print(satview.__file__); main(['--version', '--verbose'])"
        )
        shown = subprocess.run(
            [sys.executable, "-c", program], cwd=scratch, env={**os.environ, "PYTHONPATH": scratch},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        if not shown.startswith(scratch) or "core: compiled" not in shown:
            raise WheelError(f"{wheel.name} does not run: {shown}")
        return next(line for line in shown.splitlines() if line.startswith("core: "))


def main() -> int:
    """Make and check the packages; 1 if one is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--platform", action="append", choices=build_core.PLATFORMS, help="only this one; may be repeated"
    )
    options = parser.parse_args()
    for tag in options.platform or build_core.PLATFORMS:
        try:
            wheel = make_wheel(tag, options.folder)
            check_wheel(wheel, tag)
            is_own = build_core.PLATFORMS[tag] == build_core.own_target()
            print(f"{wheel}: checked{', ' + run_wheel(wheel) if is_own else ''}", flush=True)
        except WheelError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
