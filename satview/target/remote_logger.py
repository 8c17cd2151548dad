"""Runs tracelogger on a persistent simulated target, and writes the received trace to a file."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from satview.base.errors import UsageError
from satview.base.new_file import NewFile
from satview.capture.run import CaptureResult
from satview.events.catalogue import release_of
from satview.events.spec import Release
from satview.target import shell
from satview.target.profiles import TargetError
from satview.target.simulated import LoggerRun, LogReport

_LOOK_S: Final = 0.1


@contextmanager
def as_target_error() -> Iterator[None]:
    """Convert NoTargetError to TargetError."""
    try:
        yield
    except shell.NoTargetError as error:
        raise TargetError(str(error)) from error


def release_there(name: str) -> Release:
    """Return the release of a persistent simulated target.

    Raises:
        TargetError: No target of that name runs, or it does not report its release.
    """
    with as_target_error():
        _, text, _ = shell.answer(shell.folder_of(name), ["uname", "-r"])
    release = release_of(text.strip())
    if release is None:
        raise TargetError(f"the simulated target {name} does not say its release; end it, and start it again")
    return release


def log_there(
    name: str, request: LoggerRun, path: Path, stream: BinaryIO | None, stops: Callable[[], bool],
    say: Callable[[int, str], None],
) -> CaptureResult:  # fmt: skip
    """Run a logger on a persistent simulated target until it has ended, and return its result.

    Args:
        name: Name of the target.
        request: Options and rules of the logger.
        path: The file; it gets its name as soon as its header is complete, or in ring mode when the file is complete.
        stream: Write to this stream instead of `path`; None = write to `path`.
        stops: Called ten times a second; True stops the logger.
        say: Called with level and text of each message.

    Raises:
        TargetError: No target of that name runs, or the target ended before the logger.
        UsageError: The target rejects the request; nothing was written.
        WriteError: The file cannot be written.
    """
    with as_target_error(), shell.connect(shell.folder_of(name)) as line:
        line.sendall(msgspec.json.encode(request) + b"\n")
        answers = _answers(line, stops)
        messages: list[str] = []
        for kind, content in answers:  # before the file is created
            if kind == shell.DATA:
                break
            if kind == shell.EXIT:
                raise UsageError("; ".join(messages) or "refused without a reason")
            messages.append(_text(content))
        else:
            raise TargetError(f"the simulated target {name} has ended")
        for text in messages:
            say(0, text)
        with nullcontext() if stream else NewFile(path, streams=True, keeps_part=True, is_buffered=False) as new:
            output: BinaryIO = stream if stream is not None else new.stream  # type: ignore[union-attr]
            _write(output, content)
            if new is not None and not request.options.is_ring:
                new.publish()
            report = _take(answers, output, say)
    if report is None:
        raise TargetError(f"the simulated target {name} ended before its logger; {path.name} has what came")
    return CaptureResult(path, report.logger.slots, report.logger.buffers, report.lost_buffers, report.dropped_events,
                         report.duration_ns, report.findings, False, report.logger)  # fmt: skip


def _answers(line: Any, stops: Callable[[], bool]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each received frame; send a stop line once `stops()` returns True."""
    coming, is_stopping = shell.frames(line), False
    while True:
        if not is_stopping and stops():
            is_stopping = True
            line.sendall(b"stop\n")
        if select.select([line], [], [], _LOOK_S)[0]:
            frame = next(coming, None)
            if frame is None:
                return
            yield frame


def _take(
    answers: Iterator[tuple[bytes, bytes]], output: BinaryIO, say: Callable[[int, str], None]
) -> LogReport | None:
    """Write the received data and pass messages to `say`; return the logger's final report, None if none was sent."""
    report = None
    for kind, content in answers:
        if kind == shell.DATA:
            _write(output, content)
        elif kind == shell.SAID:
            say(content[0], _text(content[1:]))
        elif kind == shell.ERROR:
            say(0, _text(content))
        elif kind == shell.REPORT:
            report = msgspec.json.decode(content, type=LogReport)
        elif kind == shell.EXIT:
            break
    return report


def _write(output: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[output.write(left) :]
    output.flush()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").rstrip("\n")
