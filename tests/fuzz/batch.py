"""The child process: runs inputs one after the other under limits, and says after each what became of it."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.targets import TARGETS, input_of

MEMORY_BYTES = 4 << 30
_MEASURED_EACH = 100  # every so many inputs, memory is measured: it costs time
_LARGE_BYTES = 512  # smaller inputs say little about the time and memory per byte


class HangError(BaseException):
    """An input takes too long; no `except Exception` may swallow it."""


@dataclass(slots=True)
class Result:
    """What became of one input.

    Attributes:
        index: Its number.
        fault: Empty, else kind, text and position of the exception.
        taken_s: Time it took.
        unit_s: Time per unit (slot or byte); 0 for small inputs.
        unit_bytes: Memory at the peak per byte of input; 0 where it was not measured.
    """

    index: int
    fault: str = ""
    taken_s: float = 0.0
    unit_s: float = 0.0
    unit_bytes: float = 0.0


def run_one(name: str, data: bytes, folder: Path) -> str:
    """Run one input under its alarm; return what was wrong, empty if nothing was."""
    target = TARGETS[name]
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_REAL, target.limit_s)
    try:
        target.run(data, folder)
    except HangError:
        return f"hang: more than {target.limit_s} s at {_position(sys.exc_info()[2])}"
    except BaseException as error:  # noqa: BLE001  -- whatever it is, it is a result
        return f"{type(error).__name__}: {str(error)[:300]} at {_position(error.__traceback__)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def _on_alarm(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


def _position(where: Any) -> str:
    """Return the innermost line of the program, else of the target."""
    frames = traceback.extract_tb(where)
    mine = [
        frame for frame in frames if "/satview/" in frame.filename and "/site-packages/" not in frame.filename
    ] or frames
    frame = mine[-1]
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}"


def measure(name: str, seed: int, index: int, folder: Path) -> Result:
    """Run an input and measure it."""
    data = input_of(name, seed, index)
    has_memory = index % _MEASURED_EACH == 0 and len(data) >= _LARGE_BYTES
    if has_memory:
        tracemalloc.start()
    begin_s = time.perf_counter()
    fault = run_one(name, data, folder)
    taken_s = time.perf_counter() - begin_s
    result = Result(index, fault, taken_s)
    if has_memory:
        result.unit_bytes = tracemalloc.get_traced_memory()[1] / len(data)
        result.taken_s = 0.0  # measuring slows down
        tracemalloc.stop()
    elif len(data) >= _LARGE_BYTES:
        result.unit_s = taken_s / (len(data) / TARGETS[name].unit_bytes)
    return result


def main() -> None:
    """Run inputs until time is over; print a line of JSON before and after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("seed", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    end_s, index = time.monotonic() + args.seconds, args.first
    with tempfile.TemporaryDirectory(prefix="satview-fuzz-") as folder:
        run_one(args.name, b"", Path(folder))  # what is imported and made on first use is not measured
        while time.monotonic() < end_s:
            out.write(f"{index}\n")
            out.write(json.dumps(asdict(measure(args.name, args.seed, index, Path(folder)))) + "\n")
            index += 1


if __name__ == "__main__":
    main()
