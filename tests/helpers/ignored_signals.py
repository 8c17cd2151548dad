"""Signals that tests ignore from their start: SIGHUP under nohup, SIGINT in the background of a shell."""

from __future__ import annotations

import signal

import pytest


def skip_if_ignored(number: signal.Signals) -> None:
    """Skip a test of a signal that the processes it starts would ignore as well."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{signal.Signals(number).name} is ignored here, as under nohup or in the background of a shell")
