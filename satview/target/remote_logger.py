"""Runs tracelogger on a persistent simulated target: the data it sends are written to a file."""

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
def told_as_target_error() -> Iterator[None]:
    """Convert connection errors of a simulated target to TargetError."""
    try:
        yield
    except shell.NoTargetError as error:
        raise TargetError(str(error)) from error


def release_there(name: str) -> Release:
    """Return the release of a persistent target.

    Raises:
        TargetError: There is none of that name.
    """
    with told_as_target_error():
        _, text, _ = shell.answer(shell.folder_of(name), ["uname", "-r"])
    release = release_of(text.strip())
    if release is None:
        raise TargetError(f"the simulated target {name} does not say its release; end it, and start it again")
    return release


def log_there(
    name: str, request: LoggerRun, path: Path, stream: BinaryIO | None, stops: Callable[[], bool],
    say: Callable[[int, str], None],
) -> CaptureResult:  # fmt: skip
    """Run a logger on a persistent target until it has ended.

    Args:
        name: Name of the target.
        request: Options and rules of the logger.
        path: The file; it gets its name as soon as its header is complete, or in ring mode when it is finished.
        stream: Write to this stream instead.
        stops: Called ten times a second; True stops the logger.
        say: Called with level and text of each message.

    Raises:
        TargetError: There is no such target, or it ended before the logger.
        UsageError: The target rejects the request; nothing was written.
        WriteError: The file cannot be written.
    """
    with told_as_target_error(), shell.connect(shell.folder_of(name)) as line:
        line.sendall(msgspec.json.encode(request) + b"\n")
        answers = _answers(line, stops)
        refused: list[str] = []
        for kind, content in answers:  # before the file is touched
            if kind == shell.DATA:
                break
            refused.append(_text(content))
            if kind == shell.EXIT:
                raise UsageError("; ".join(refused[:-1]) or "refused without a reason")
        else:
            raise TargetError(f"the simulated target {name} has ended")
        for text in refused:
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
    """Yield the received frames; send a stop request when the caller asks for it."""
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
    """Write the received data; return the logger's final report, None if it sends none."""
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
