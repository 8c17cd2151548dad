"""`traceprinter -p`: the manual's examples, printf's rules, and that such listings are read back."""

from __future__ import annotations

import pytest

from satview.__main__ import main
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder
from tests.helpers.shared import shared_path

DEFAULT = "t:0x%08c CPU:%02C %-16Z:%-18z"


@pytest.fixture
def file(tmp_path):
    """Return a trace of 1 GHz: a PROCCREATE_NAME at 0 and a call 1.234567 ms later."""
    builder = TraceBuilder(start=0).time_event(0).process_name(0, 7, "server")
    return builder.call(11, 1_234_567, (3, 0x41)).write(tmp_path / "a.kev")


def printed(capsys, file, *options):
    assert main(["traceprinter", "-f", str(file), *options]) == 0
    return capsys.readouterr().out.partition(" -- KERNEL EVENTS -- \n")[2]


@pytest.mark.thorough
def test_the_default_format_is_the_layout(capsys):
    path = shared_path("real/qnx71-ker_call.traceprinter.txt")
    assert main(["traceprinter", "-f", str(path), "-p", DEFAULT]) == 0
    assert capsys.readouterr().out == path.read_text()


@pytest.mark.parametrize(
    ("fmt", "line"),
    [
        (
            "e:%06e t:%014t c:0x%010c CPU:%02C %-16Z:%-18z",
            "e:000011 t:0.001.234us c:0x000012d687 CPU:00 KER_CALL        :MSG_SENDV/11       coid:",
        ),
        ("%.3Z|%.-4z|", "KER|V/11| coid:"),
        ("%10Z %C%%", "  KER_CALL 0% coid:"),
        ("%Z %14t", "KER_CALL    0.001.234us coid:"),
        ("plain", "plain coid:"),
    ],
)
def test_formats(capsys, file, fmt, line):
    assert printed(capsys, file, "-p", fmt).splitlines()[-1].startswith(line)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-p", "%q"), "%q is not a conversion"),
        (("-p", "100%"), "is not a conversion"),
        (("-p", "a\nb"), "control characters"),
        (("-p", "%c", "--layout", "6"), "--layout 7"),
        (("-p", "%c", "--time", "ns"), "cannot be combined"),
        (("-p", "%c", "--format", "csv"), "cannot be combined"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys, file, options, text):
    assert main(["traceprinter", "-f", str(file), *options]) == 2
    assert text in capsys.readouterr().err


def test_a_listing_in_the_format_of_scripts_is_read_back(capsys, file, tmp_path):
    text = printed(capsys, file, "-p", "e:%06e t:%014t c:0x%010c CPU:%02C %-16Z:%-18z")
    (tmp_path / "x.txt").write_text(
        "  TRACE_CYCLES_PER_SEC:: 1000000000\n     TRACE_SYS_RELEASE:: 7.1.0\n -- KERNEL EVENTS -- \n" + text
    )
    again, trace = open_trace(tmp_path / "x.txt"), open_trace(file)
    assert again.events.code.tolist() == trace.events.code.tolist()
    assert again.events.time_cycles.tolist() == trace.events.time_cycles.tolist()
