"""The porting guide keeps what it promises: its program runs."""

import re
from pathlib import Path

from satview.events import wire
from satview.events.wire import WireClass
from satview.formats.kev.header import header_bytes
from satview.formats.kev.writer import SlotWriter
from satview.traceparser import constants

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "traceparser.md"


def test_the_example_of_the_guide(tmp_path, capsys):
    writer = SlotWriter()
    writer.event(wire.code(WireClass.COMM, 0), 0, 0x1234, [0x10001, 77])
    path = tmp_path / "x.kev"
    path.write_bytes(header_bytes([("LITTLE_ENDIAN", "TRUE"), ("SYS_RELEASE", "7.1.0")])
                     + writer.slots().astype("<u4").tobytes())
    names = {}
    exec(re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1], names)
    assert names["main"](path) == 0
    assert names["main"](tmp_path / "none") == 1
    assert capsys.readouterr().out == "0x00001234 to 77\n"


def test_the_guide_names_what_exists():
    for kind, name in re.findall(r"`(Info|Error|Debug|Sort)\.(\w+)", GUIDE.read_text(encoding="utf-8")):
        assert hasattr(getattr(constants, kind), name)
