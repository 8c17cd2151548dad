"""Descriptions of user events in XML: two forms, and what anybody may put into such a file."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events import wire
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
    return read_user_events(path).user


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


SINCE_8 = """<?xml version="1.0"?>
<eventdefinitions>
  <datakey format="%4ux mydata %2sd left %1ux flags" offset="4" wide_offset="12">
    <event class="6" id="30" name="mode"/><event class="2" id="11"/>
    <enum name="mydata" value="5" string="five"/><enum name="mydata" mask="0xF0" value="0x10" string="high"/>
    <bitmask name="flags" value="0x1" string="dirty"/><bitmask name="flags" mask="0x82" string="both"/>
    <condition name="mydata" value="5"><enum name="left" value="-1" string="none"/></condition>
  </datakey>
  <datakey format="%x again" show_masked_value="false"><event class="6" id="30"/>
    <enum name="again" value="7" string="seven"/></datakey>
</eventdefinitions>"""


def test_datakeys_of_8_0(tmp_path):
    path = tmp_path / "events.xml"
    path.write_text(SINCE_8)
    found = read_user_events(path)
    assert found.notes == ()
    assert sorted(found.events) == [wire.code(2, 11), wire.code(6, 30)]
    event = found.user[30]
    raw = struct.pack("<IIhBx", 7, 5, -1, 0x83)
    assert event.texts(raw, "little") == ["mydata=0x5 five", "left=-1 none", "flags=0x83 dirty both", "again=seven"]
    raw = struct.pack(">IIhBx", 8, 0x15, -1, 0x02)
    assert event.texts(raw, "big") == ["mydata=0x15 high", "left=-1", "flags=0x2", "again=0x8"]
    assert event.texts(raw[:8], "big") == ["mydata=0x15 high", "again=0x8"], "what has room shows"
    call = found.events[wire.code(2, 11)]
    assert [start for _, start in call.placed()] == [4, 8, 10]
    assert [start for _, start in call.placed(is_wide=True)] == [12, 16, 18]


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ("<thing/>", "line 1: 'thing' in datakey is not understood"),
        ("<enum name='v' value='1' colour='red' string='x'/>", "'colour' in enum is not understood"),
        ("<enum name='w' value='1' string='x'/>", "there is no field 'w' in the format"),
    ],
)
def test_what_is_not_understood_is_noted(tmp_path, inside, says):
    path = tmp_path / "events.xml"
    path.write_text(f"<a><datakey format='%4ux v'><event class='6' id='1'/>{inside}</datakey></a>")
    [note] = read_user_events(path).notes
    assert note.startswith("events.xml: line 1: ")
    assert says in note
    path.write_text("<a><event id='2'/><datakey format='%4ux v'/></a>")
    assert "a datakey without an event applies to none" in read_user_events(path).notes[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "%4u1x mine %1s0 text",
            (UserField("mine", 4, base="x"), UserField("text", 1, is_signed=True, count=0, base="c")),
        ),
        ("%x v", (UserField("v", 4, base="x"),)), ("%d v", (UserField("v", 4, is_signed=True),)),
        ("%u v", (UserField("v", 4),)), ("%s v", (UserField("v", 1, is_signed=True, count=0, base="c"),)),
        ("%8sd v", (UserField("v", 8, is_signed=True),)), ("%2u v", (UserField("v", 2),)),
    ],
)  # fmt: skip
def test_short_forms_of_formats(tmp_path, text, expected):
    assert read(tmp_path, f"<a><event id='1' sformat='{text}'/></a>")[1].fields == expected


BOMB = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<eventclass id="6"><event id="1" name="&b;"/></eventclass>"""
FETCH = '<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd"><eventclass><event id="1" name="x"/></eventclass>'
FAULTS = {
    "entities": (BOMB, "line 1: it declares a document type, which descriptions of events do not need"),
    "fetch": (FETCH, "line 1: it declares a document type"),
    "no XML": ("10 = queue", "line 1: no XML: "),
    "empty": ("", "no XML"),
    "cut": ("<eventclass id='6'>\n<event id='1'", "line 2: no XML"),
    "nothing": ("<a/>", "describes no events"),
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
    "offset": (
        "<a><datakey format='%x v' offset='-4'><event class='6' id='1'/></datakey></a>",
        "an offset of -4 bytes",
    ),
    "no format": ("<a><datakey><event class='6' id='1'/></datakey></a>", "a datakey without a format"),
    "values": ("<a><event id='1' sformat='%1u4096x v %1ux w'/></a>", "an event of more than 4096 values"),
    "all values": (
        "<a>" + "".join(f"<event id='{number}' sformat='%1u4096x v'/>" for number in range(33)) + "</a>",
        "the events have more than 131,072 values",
    ),
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


def field_of(tmp_path, attributes: str, inside: str = ""):
    [event] = read(tmp_path, f"<a><event id='1'><field name='f' {attributes}>{inside}</field></event></a>").values()
    return event.fields


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("size='8'", UserField("f", 8)), ("size='0x4'", UserField("f", 4)), ("width='2'", UserField("f", 2)),
        ("type='uint16_t'", UserField("f", 2)), ("type='INT64'", UserField("f", 8, is_signed=True)),
        ("type='int8_t'", UserField("f", 1, is_signed=True)), ("type='uint32'", UserField("f", 4)),
        ("type='string'", UserField("f", 1, count=0, base="c")), ("type='char'", UserField("f", 1, base="c")),
        ("type='char' count='5'", UserField("f", 1, count=5, base="c")), ("type='other'", UserField("f", 1)),
        ("type='uint32x'", UserField("f", 1)), ("size='4' signed='TRUE'", UserField("f", 4, is_signed=True)),
        ("size='4' signed='1'", UserField("f", 4, is_signed=True)),
        ("size='4' signed='yes'", UserField("f", 4, is_signed=True)),
        ("size='4' signed='s'", UserField("f", 4, is_signed=True)),
        ("size='4' signed='signed'", UserField("f", 4, is_signed=True)),
        ("size='4' signed='no'", UserField("f", 4)), ("type='uint32_t' signed='1'", UserField("f", 4, is_signed=True)),
        ("size='4' count='4096'", UserField("f", 4, count=4096)), ("size='4' count='0'", UserField("f", 4, count=0)),
        ("size='4' base='hex'", UserField("f", 4, base="x")), ("size='4' display='octal'", UserField("f", 4, base="o")),
        ("size='4' format='Binary'", UserField("f", 4, base="b")), ("size='4' base='i'", UserField("f", 4)),
        ("size='4' base='u'", UserField("f", 4)), ("size='4' base='X'", UserField("f", 4, base="x")),
        ("size='4' base='s'", UserField("f", 4, base="c")), ("size='4' label='g'", UserField("f", 4)),
    ],
)  # fmt: skip
def test_every_attribute_of_a_field(tmp_path, attributes, expected):
    assert field_of(tmp_path, attributes) == (expected,)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ("size='4' count='4097'", "a field of '4097' values; 0 to 4096 are possible"),
        ("size='4' count='x'", "a field of 'x' values"), ("size='4' count='-1'", "a field of '-1' values"),
        ("size='4' count='000001'", "a field of '000001' values"), ("size='16'", "a field of 16 bytes"),
        ("size='0'", "a field of 0 bytes; 1, 2, 4 and 8 are possible"), ("type='int4'", "a field of 0 bytes"),
        ("type='uint128_t'", "a field of 16 bytes"), ("size='four'", "line 1: size='four' is no number"),
        ("size='4' base='q'", "a field shown as 'q'; d, x, o, b and c are possible"),
    ],
)  # fmt: skip
def test_fields_that_cannot_be(tmp_path, attributes, says):
    with pytest.raises(UsageError) as caught:
        field_of(tmp_path, attributes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a><event id='0' name='x'/><event code='1023' label='y'/></a>", {0: "x", 1023: "y"}),
        ("<a><event number='5' name='x'/><event event='6' label='y' name='z'/></a>", {5: "x", 6: "z"}),
        ("<a><userevent id='5' name='x'/><events id='6' name='y'/></a>", {5: "x"}),
        ("<eventclass id='0x6'><event id='1' name='x'/></eventclass>", {1: "x"}),
        ("<a><eventclass id='7'><event id='1' name='x'/></eventclass><event id='2' name='y'/></a>", {2: "y"}),
        ("<eventclass name='USER'><event id='1' name='x'/></eventclass>", {1: "x"}),
        ("<a><eventclass name='Kernel'><event id='1' name='x'/></eventclass><event id='2' name='y'/></a>", {2: "y"}),
        ("<eventclass><event id='1' name='x'/></eventclass>", {1: "x"}),
        ("<a><event class='other us' id='1' name='x'/><event id='2' name='y'/></a>", {2: "y"}),
        ("<a><event class='us' id='1' name='x'/></a>", {1: "x"}),
        (f"<a><event id='1' name='{'n' * 201}'/></a>", {1: "n" * 200}),
        ("<a><event id='1' name='x'/><event id='1' name='again'/></a>", {1: "again"}),
        ("<a>" * 31 + "<event id='1' name='x'/>" + "</a>" * 31, {1: "x"}),
    ],
)
def test_which_events_are_described(tmp_path, text, expected):
    assert {number: event.name for number, event in read(tmp_path, text).items()} == expected


def test_names_of_values_and_fields_from_elements(tmp_path):
    inside = "<enum value='0x10' name='hex'/><value id='2'> two </value><keyvalue value='3' label='three'/>"
    inside += "<enum/><other value='4'/>"
    [field] = field_of(tmp_path, "size='4'", inside)
    assert field.names == {16: "hex", 2: "two", 3: "three"}
    text = f"<a><event id='1'><x size='4'> by text </x><x name='no size'/><x size='1' name='{'n' * 201}'/></event></a>"
    assert [each.label for each in read(tmp_path, text)[1].fields] == ["by text", "n" * 200]
    both = read(tmp_path, "<a><event id='1' format='%2U3X a %1d b'><x size='4' name='c'/></event></a>")[1].fields
    assert both == (UserField("a", 2, count=3, base="x"), UserField("b", 1), UserField("c", 4))
    assert read(tmp_path, f"<a><event id='1' sformat='{'%4u1d x ' * 256}'/></a>")[1].fields[255].label == "x"
    assert read(tmp_path, "<a><event id='1' sformat='%4S1d x'/></a>")[1].fields == (UserField("x", 4, is_signed=True),)
    assert read(tmp_path, "<a><event id='1' sformat=' '/></a>")[1].fields == ()


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
