"""Inputs that broke something once: stored as files, replayed by the tests."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "cases"
REASONS: Final = FOLDER / "reasons.toml"


def store(name: str, data: bytes, folder: Path = FOLDER) -> Path:
    """Store an input of a target; return its file."""
    path = folder / name / f"{hashlib.sha256(data).hexdigest()[:12]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def all_cases() -> list[tuple[str, Path]]:
    """Return target and file of every case, in order."""
    return [(path.parent.name, path) for path in sorted(FOLDER.glob("*/*.bin"))]


def reasons() -> dict[str, str]:
    """Return why cases still fail: `target/file` to a sentence."""
    return tomllib.loads(REASONS.read_text("utf-8")).get("still_failing", {}) if REASONS.exists() else {}


def signature(fault: str) -> str:
    """Return what two inputs with the same fault have in common: kind and position, without the numbers of the text."""
    kind, _, rest = fault.partition(":")
    position = rest.rpartition(" at ")[2]
    what = re.sub(r"[0-9a-fx']+", "", rest.rpartition(" at ")[0])[:40] if kind == "AssertionError" else ""
    return f"{kind} {position} {what}"
