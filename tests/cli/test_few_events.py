"""Every command on traces without states of threads, without any event, with events of one class only."""

from __future__ import annotations

from satview.__main__ import main
from satview.answers.statistics import TABLES
from satview.events import wire
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder

THREADS = -4  # by an event of class THREAD that is no state: number 21 of release 7.1
# What makes the whole of a trace: the numbers of its classes, of which two events are written each.
TRACES = {
    "nothing": (),
    "control": (1,),
    "calls": (2,),
    "interrupts": (3,),
    "processes and threads": (4,),
    "threads without states": (THREADS,),
    "system": (6,),
    "communication": (7,),
    "user": (8,),
    "no threads": (1, 2, 3, 6, 7, 8),
}
COMMANDS = (
    "info FILE",
    "stats FILE --format json",
    "check FILE --format json",
    "check FILE",
    "doctor FILE",
    "snapshot FILE --at 0s",
    "snapshot FILE --at 0s --format json",
    "snapshot FILE --at 50%",
    "snapshot FILE --at #1",
    "why FILE --thread 1:1 --at 0s",
    "why FILE --thread 1:1 --range 0%..100%",
    "transactions FILE --nested",
    "latencies FILE --list",
    "latencies FILE",
    "locks FILE",
    "compare FILE FILE",
    "traceprinter -f FILE",
    "filter FILE -o OUT.kev",
    "convert FILE OUT.json",
    "export FILE -o OUT --format csv",
    "report FILE -o OUT.html",
    "together FILE FILE -o OUT.sataxis",
    *(f"stats FILE --by {name}" for name in TABLES),
)


def written(folder, classes):
    """Write two events of each class; the first one of every trace but the empty one tells the time."""
    builder = TraceBuilder()
    if classes:
        builder.time_event(0)
    for number in classes:
        for time in (abs(number) * 100, abs(number) * 100 + 50):
            if number == 4:
                builder.process_name(time, 7, "server").thread_name(time + 1, 7, 1, "worker")
            elif number == THREADS:
                builder.event(wire.code(4, 21), time, (7, 1))
            elif number != 1:
                builder.event(wire.code(number, 1), time, (2, 1))
    return builder.write(folder / "few.kev")


@points(classes=TRACES, command=COMMANDS)
def test_every_command_ends_with_a_sentence_or_an_answer(classes, command, tmp_path, capsys):
    path = written(tmp_path, classes)
    words = [str(path) if word == "FILE" else word.replace("OUT", str(tmp_path / "out")) for word in command.split()]
    code = main(words)
    said = capsys.readouterr().err
    assert code in (0, 1, 2, 3, 4), said
    assert "Traceback" not in said
