"""Descriptions of user events in XML: two forms, and what anybody may put into such a file."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.events import wire
from satview.events.spec import Argument, Payload
from satview.events.user_events import UserEvent, UserField, ValueText
from satview.formats.kev.payloads import with_description
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
    "number": ("<a>\n<event id='ten' name='x'/></a>", "line 2: id='ten' is not a number"),
    "range": ("<a><event id='1024' name='x'/></a>", "numbers of events are 0 to 1023"),
    "digits": (f"<a><event id='{'9' * 5000}' name='x'/></a>", "numbers of events are 0 to 1023"),
    "size": ("<a><event id='1' sformat='%3u1d x'/></a>", "a field of 3 bytes"),
    "count": ("<a><event id='1' sformat='%4u99999d x'/></a>", "a field of '99999' values"),
    "format": ("<a><event id='1' sformat='depth'/></a>", "'depth' is not a format; write %4u1d label"),
    "base": ("<a><event id='1' sformat='%4u1q x'/></a>", "a field shown as 'q'"),
    "deep": ("<a>" * 40, "nested more than 32 deep"),
    "encoding": (b"<?xml version='1.0' encoding='klingon'?><a/>", "encoding"),
    "large": ("<!--" + "x" * (1 << 20) + "-->", "larger than 1 MiB"),
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
    with pytest.raises(UsageError, match=r"none\.xml: there is no such file"):
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
        ("type='uint128_t'", "a field of 16 bytes"), ("size='four'", "line 1: size='four' is not a number"),
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


def described(tmp_path, inside: str, attributes: str = "format='%4ux v %2sd w'"):
    """Return what a datakey of event 6/1 says, or of what is in it."""
    path = tmp_path / "events.xml"
    of = "" if "<event" in inside else "<event class='6' id='1' name='e'/>"
    path.write_text(f"<a><datakey {attributes}>{of}{inside}</datakey></a>")
    return read_user_events(path)


@pytest.mark.parametrize(
    ("inside", "texts"),
    [
        ("<enum name='v' value='5' string='five'/>", [ValueText(5, "five")]),
        ("<enum name='v' value='0x5' mask='0x0F' string='x'/>", [ValueText(5, "x", 15)]),
        ("<bitmask name='v' value='4' string='x'/>", [ValueText(4, "x", 4)]),
        ("<bitmask name='v' mask='6' string='x'/>", [ValueText(6, "x", 6)]),
        ("<bitmask name='v' mask='0' string='x'/>", [ValueText(0, "x", 0)]),
        ("<bitmask name='v' mask='6' value='2' string='x'/>", [ValueText(2, "x", 6)]),
        ("<enum name='v' value='1'/>", [ValueText(1, "")]),
        (f"<enum name='v' value='1' string='{'n' * 201}'/>", [ValueText(1, "n" * 200)]),
        ("<condition name='w' value='5'><enum name='v' value='1' string='x'/><bitmask name='v' value='2' string='y'/>"
         "</condition>", [ValueText(1, "x", -1, ("w", -1, 5)), ValueText(2, "y", 2, ("w", -1, 5))]),
        ("<condition name='w' mask='3' value='1'><enum name='v' value='1' string='x'/></condition>",
         [ValueText(1, "x", -1, ("w", 3, 1))]),
        ("<condition name='v' value='5' string='x'/>", [ValueText(5, "x")]),
        ("<condition name='v' value='5'/>", []), ("<other name='v' value='5' string='x'/>", []),
        ("<enum name='w' value='5' string='x'/>", []),
    ],
)  # fmt: skip
def test_texts_of_values(tmp_path, inside, texts):
    event = described(tmp_path, inside).user[1]
    assert (event.name, event.fields[0].texts) == ("e", tuple(texts))
    assert [(each.label, each.size, each.base, each.offsets) for each in event.fields] == [
        ("v", 4, "x", (0, 0)), ("w", 2, "d", None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "inside", "says"),
    [
        ("format='%x v'", "<enum name='v' string='x'/>", "value='' is not a number"),
        ("format='%x v'", "<enum name='v' value='1' mask='all' string='x'/>", "mask='all' is not a number"),
        ("format='%x v'", "<condition name='v' string='x'/>", "value='' is not a number"),
        ("format='%x v' offset='131073'", "", "an offset of 131073 bytes; 0 to 131072 are possible"),
        ("format='%x v' offset='5' wide_offset='-9'", "", "an offset of -9 bytes"),
        ("format='%x v' wide_offset='x'", "", "wide_offset='x' is not a number"),
        ("format='%1u4096x v %1ux w'", "", "an event of more than 4096 values"),
    ],
)
def test_datakeys_that_cannot_be(tmp_path, attributes, inside, says):
    with pytest.raises(UsageError) as caught:
        described(tmp_path, inside, attributes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("attributes", "inside", "codes", "notes"),
    [
        ("sformat='%x v' name='n' offset='131072' wide_offset='8'", "", [wire.code(6, 1)], []),
        ("format='%1u4095x v %1ux w' colour='red'", "", [wire.code(6, 1)], ["'colour' in datakey is not understood"]),
        ("format='%x v'", "<eventclass id='2'><event id='11'/><event id='12'/></eventclass><event class='1' id='3'/>",
         [wire.code(2, 11), wire.code(2, 12), wire.code(1, 3)], ["'eventclass' in datakey is not understood"]),
        ("format='%x v'", "<event class='31' id='1023'/><event class='32' id='1'/>", [wire.code(31, 1023)], []),
        ("format='%x v'", "<eventclass id='x'><event id='11'/></eventclass><event class='0' id='0'/>", [0],
         ["'eventclass' in datakey is not understood"]),
        ("format='%x v'", f"<{'t' * 50}/>", [wire.code(6, 1)], [f"'{'t' * 40}' in datakey is not understood"]),
        ("format='%x v'", f"<enum name='{'t' * 50}' value='1'/>", [wire.code(6, 1)],
         [f"there is no field '{'t' * 40}' in the format"]),
        ("format='%x v'", "<x/>" * 30, [wire.code(6, 1)], ["'x' in datakey is not understood"] * 20),
    ],
)  # fmt: skip
def test_events_and_notes_of_a_datakey(tmp_path, attributes, inside, codes, notes):
    found = described(tmp_path, inside, attributes)
    assert list(found.events) == codes
    assert len(found.notes) == len(notes)
    assert all(says in note for says, note in zip(notes, found.notes, strict=True))
    assert {len(event.fields) for event in found.events.values()} <= {1, 2}


def test_limits_of_a_description(tmp_path):
    """4,096 texts of a datakey; what an event is called by later datakeys counts where they say it."""
    enum = "<enum name='v' value='1'/>"
    assert len(described(tmp_path, enum * 4096).user[1].fields[0].texts) == 4096
    with pytest.raises(UsageError, match="more than 4,096 texts of values"):
        described(tmp_path, enum * 4097)
    shows = {value: described(tmp_path, "", f"format='%x v' show_masked_value='{value}'").user[1].fields[0].shows_number
             for value in ("false", "FALSE", "0", "no", "true", "1", "")}  # fmt: skip
    assert [value for value, is_shown in shows.items() if is_shown] == ["true", "1", ""]
    event = "<datakey format='%x {}'><event class='6' id='1' {}/></datakey>"
    both = read(tmp_path, "<a>" + event.format("a", "name='one'") + event.format("b", "") + "</a>")[1]
    assert (both.name, [each.label for each in both.fields]) == ("one", ["a", "b"])
    again = read(tmp_path, "<a>" + event.format("a", "name='one'") + event.format("b", "name='two'") + "</a>")[1]
    assert (again.name, [each.label for each in again.fields]) == ("two", ["a", "b"])


def test_fields_of_a_payload_become_arguments():
    """Before the raw words of a user event, behind the arguments of others; each with the words that it is in."""
    raw = struct.pack("<BhQ", 9, -2, 0x7FFFFFFF12345678) + b"me\0" + b"us"
    words = struct.unpack("<4I", raw)
    fields = (UserField("first", 1), UserField("d0", 2, is_signed=True), UserField("", 8, base="x"),
              UserField("who", 1, count=0, base="c"), UserField("who", 2, base="x"), UserField("none", 1))  # fmt: skip
    own = tuple(Argument(name, 5, "5", 0, 1) for name in ("d0", "d0_2"))
    payload = Payload("raw", own, words, raw)
    found = with_description(payload, UserEvent(100, "frame", fields), "little")
    assert [(each.name, each.value, each.text, each.first_word, each.words) for each in found.arguments[:-2]] == [
        ("first", 9, "9", 0, 1), ("d0_3", -2, "-2", 0, 1), ("field 2", 0x7FFFFFFF12345678, "0x7fffffff12345678", 0, 3),
        ("who", "me", "me", 2, 2), ("who_2", 0x7375, "0x7375", 3, 1),
    ]  # fmt: skip
    assert (found.arguments[-2:], found.raw, found.words) == (own, raw, words)
    call = UserEvent(11, "", (UserField("x", 4, offsets=(0, 4)),), 2)
    for many, value in ((words, words[1]), (words[:2], words[0]), (words[:3], words[1])):
        found = with_description(Payload("raw", own, many, raw[: 4 * len(many)]), call, "little")
        assert [(each.name, each.value) for each in found.arguments] == [("d0", 5), ("d0_2", 5), ("x", value)]
    user = UserEvent(11, "", (UserField("x", 4, offsets=(0, 4)),))
    assert with_description(payload, user, "little").arguments[0].value == words[0], "is never wide"


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
