"""Descriptions of user events in XML: two forms, and what anybody may put into such a file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events.user_events import UserField
from satview.formats.user_event_file import read_user_events
from tests.helpers.extent import usually

OLDER = """<?xml version="1.0" encoding="UTF-8"?>
<eventdefinitions><datakeys>
  <eventclass name="User Events" id="6">
    <event id="10" name="queue" sformat="%4u1d depth"/>
    <event id="0x14" name="frame" sformat="%2s1d left %2u1x flags %1u0c title"/>
  </eventclass>
  <eventclass id="10"><event id="0" name="guest" sformat="%8u1x ip"/></eventclass>
</datakeys></eventdefinitions>"""

NEWER = """<?xml version="1.0"?>
<userEvents>
  <event class="6" id="30" name="mode">
    <field name="state" type="uint32_t"><enum value="1" name="fast"/><enum value="2">slow</enum></field>
    <field name="level" size="4" signed="true" base="dec"/>
    <field name="who" type="string"/>
  </event>
</userEvents>"""


def read(tmp_path, text, name="events.xml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_user_events(path)


def test_formats_of_the_older_form(tmp_path):
    found = read(tmp_path, OLDER)
    assert sorted(found) == [10, 20], "events of the hypervisor are no user events"
    assert found[10].name == "queue"
    assert found[10].fields == (UserField("depth", 4),)
    assert found[20].fields == (
        UserField("left", 2, is_signed=True), UserField("flags", 2, base="x"), UserField("title", 1, count=0, base="c")
    )  # fmt: skip
    raw = (-3 & 0xFFFF).to_bytes(2, "little") + (0x81).to_bytes(2, "little") + b"main\0\0\0\0"
    assert found[20].texts(raw, "little") == ["left=-3", "flags=0x81", "title=main"]
    assert found[20].texts(raw[:3], "little") == ["left=-3"], "a payload may be shorter than its description"


def test_fields_and_named_values_of_the_newer_form(tmp_path):
    [event] = read(tmp_path, NEWER).values()
    assert event.number == 30
    raw = bytes([2, 0, 0, 0]) + (-7 & 0xFFFFFFFF).to_bytes(4, "little") + b"me\0\0"
    assert event.texts(raw, "little") == ["state=slow", "level=-7", "who=me"]
    raw = bytes([0, 0, 0, 9]) + (-7 & 0xFFFFFFFF).to_bytes(4, "big") + b"me\0\0"
    assert event.texts(raw, "big") == ["state=9", "level=-7", "who=me"]


BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<eventclass id="6"><event id="1" name="&b;"/></eventclass>"""
FETCH = '<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd"><eventclass><event id="1" name="x"/></eventclass>'
FAULTS = {
    "entities": (BOMB, "line 1: it declares a document type, which descriptions of events do not need"),
    "fetch": (FETCH, "line 1: it declares a document type"),
    "no XML": ("10 = queue", "line 1: no XML: "),
    "empty": ("", "no XML"),
    "cut": ("<eventclass id='6'>\n<event id='1'", "line 2: no XML"),
    "nothing": ("<a/>", "describes no user events"),
    "number": ("<a>\n<event id='ten' name='x'/></a>", "line 2: id='ten' is no number"),
    "range": ("<a><event id='1024' name='x'/></a>", "numbers of events are 0 to 1023"),
    "digits": (f"<a><event id='{'9' * 5000}' name='x'/></a>", "numbers of events are 0 to 1023"),
    "size": ("<a><event id='1' sformat='%3u1d x'/></a>", "a field of 3 bytes"),
    "count": ("<a><event id='1' sformat='%4u99999d x'/></a>", "a field of '99999' values"),
    "format": ("<a><event id='1' sformat='depth'/></a>", "'depth' is no format; write %4u1d label"),
    "base": ("<a><event id='1' sformat='%4u1q x'/></a>", "a field shown as 'q'"),
    "deep": ("<a>" * 40, "nested more than 32 deep"),
    "encoding": (b"<?xml version='1.0' encoding='klingon'?><a/>", "encoding"),
    "large": ("<!--" + "x" * (1 << 20) + "-->", "larger than 1 MiB"),
    "fields": (f"<a><event id='1' sformat='{'%4u1d x ' * 257}'/></a>", "at most 256"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_hostile_files_are_one_sentence(tmp_path, fault):
    text, says = FAULTS[fault]
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("events.xml: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"none\.xml: No such file"):
        read_user_events(tmp_path / "none.xml")


@given(data=st.data())
@settings(max_examples=usually(20, complete=300, thorough=50), deadline=None)
def test_damaged_files_are_read_or_refused(tmp_path_factory, data):
    text = bytearray((OLDER + NEWER[21:]).encode())
    for _ in range(data.draw(st.integers(0, 6))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(tmp_path_factory.mktemp("damaged"), bytes(text))
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert all(0 <= number <= 1023 for number in found)
