"""Vendor listings and captures that are beside a checkout in some positions. Tests use them where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOTS = (os.environ.get("SATVIEW_SHARED", ""), str(Path(__file__).resolve().parents[3] / "shared"))
GUIDE_LISTINGS = (
    "all_classes", "one_class", "five_events", "ker_calls.all", "ker_calls.14", "eh_sample", "usr_event_simple",
    "traceprinter_quad",
)  # fmt: skip


def shared_path(name: str) -> Path:
    """Return the path of a reference file; skips the test where there is none."""
    for root in _ROOTS:
        if root and (path := Path(root) / name).exists():
            return path
    pytest.skip(f"reference file {name} is not here")
