"""The porting guide keeps what it promises: its program runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from satview.events import wire
from satview.events.wire import WireClass
from satview.formats.kev.header import SlotWriter, header_bytes
from satview.traceparser import api

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "traceparser.md"


def test_the_example_of_the_guide(tmp_path, capsys):
    writer = SlotWriter()
    writer.event(wire.code(WireClass.COMM, 0), 0, 0x1234, [0x10001, 77])
    path = tmp_path / "x.kev"
    path.write_bytes(
        header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "7.1.0")]) + writer.slots().astype("<u4").tobytes()
    )
    names = {}
    exec(re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1], names)
    assert names["main"](path) == 0
    assert names["main"](tmp_path / "none") == 1
    assert capsys.readouterr().out == "0x00001234 to 77\n"


def test_a_program_of_the_guide_s_shape(tmp_path, capsys):
    """As a program of the C library: a state, header values, a range of events, user data, debug output."""
    from satview.traceparser import (
        __KER_MSG_SENDV,
        _NTO_TRACE_THREAD,
        _NTO_TRACE_THREADY,
        _NTO_TRACE_THRUNNING,
        _TRACEPARSER_DEBUG_NONE,
        _TRACEPARSER_INFO_SYS_RELEASE,
        traceparser,
        traceparser_cs_range,
        traceparser_debug,
        traceparser_destroy,
        traceparser_get_info,
        traceparser_init,
    )

    writer = SlotWriter()
    for state in (1, 2, 5):
        writer.event(wire.code(WireClass.PR_TH, state), 0, 0x1000 + state, [7, state])
    path = tmp_path / "x.kev"
    path.write_bytes(
        header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "7.1.0")]) + writer.slots().astype("<u4").tobytes()
    )

    def count(_state, counts, header, _time, buffer, length):
        counts.append((header & 0x3FF, buffer[1], length))
        return 0

    state = traceparser_init(None)
    assert traceparser_debug(state, sys.stderr, _TRACEPARSER_DEBUG_NONE) == 0
    counts = []
    assert traceparser_cs_range(state, counts, count, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING, _NTO_TRACE_THREADY) == 0
    assert traceparser(state, None, path) == 0
    assert traceparser_get_info(state, _TRACEPARSER_INFO_SYS_RELEASE, None) == "7.1.0"
    assert traceparser_destroy(state) is None
    assert counts == [(1, 1, 2), (2, 2, 2)], "THRECEIVE is outside the range"
    assert __KER_MSG_SENDV == 11


@pytest.mark.thorough
def test_the_library_is_imported_on_use_only():
    """Nothing heavy comes with the package, and names that do not exist are refused as by any module."""
    program = (
        "import sys, satview.traceparser as t; assert 'numpy' not in sys.modules; "
        "assert t.header_names('8.0')['_NTO_TRACE_THRUNNING'] == 1; assert t._NTO_TRACE_THRUNNING == 2; "
        "assert not hasattr(t, 'traceparser_one_event'); assert 'numpy' not in sys.modules; "
        "assert t._TRACEPARSER_WRONG_FILE_VERSION == 13; assert t._TRACEPARSER_INFO_SYSPAGE == -1; "
        "assert not hasattr(t, '_TRACEPARSER_NONSENSE'); t.traceparser_init"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    from satview import traceparser

    assert all(hasattr(traceparser, name) for name in traceparser.__all__)


def test_the_guide_names_what_exists():
    for kind, name in re.findall(r"`(Info|Error|Debug|Sort)\.(\w+)", GUIDE.read_text(encoding="utf-8")):
        assert hasattr(getattr(api, kind), name)
