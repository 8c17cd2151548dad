"""Names, numbers and lists of events, checked by values a reader of the guides can look up."""

import subprocess
import sys

import numpy as np
import pytest

from satview.events import states, wire
from satview.events.catalogue import catalogue, release_of
from satview.events.modes import Mode, flag_names, mode_of
from satview.events.spec import Field, Release, Show
from satview.events.wire import WireClass, external_classes, internal_classes

QNX = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("6.1.0", Release.QNX_6),
        ("6.4.1", Release.QNX_6),
        ("6.5.0", Release.QNX_6),
        ("6.6.0", Release.QNX_6_6),
        ("7.0.0", Release.QNX_7),
        ("7.1.0", Release.QNX_7),
        ("8.0.0", Release.QNX_8),
        ("5.2", None),
        ("", None),
        ("9.0", None),
        ("six", None),
        ("6." + "4" * 5000, None),
        ("7" * 5000, None),
        ("7.1." + "0" * 5000, Release.QNX_7),
    ],
)
def test_release_of_header_value(text, release):
    assert release_of(text) is release


def test_kernel_call_msg_sendv_in_6x_has_the_lists_of_its_printer():
    spec = catalogue(Release.QNX_6).spec(wire.code(WireClass.KER_CALL, 11))
    assert (spec.class_name, spec.name) == ("KER_CALL", "MSG_SENDV")
    assert spec.calls == ("MsgSend", "MsgSendv", "MsgSendvs")
    assert spec.fast == (Field("coid", 1, Show.HEX), Field("msg", 1, Show.MSG))
    assert [field.name for field in spec.wide] == ["coid", "sparts", "rparts", "msg", "msg[1]", "msg[2]"]
    assert [field.show for field in spec.wide[3:]] == [Show.MSG, Show.MSG_MORE, Show.MSG_MORE]


def test_64_bit_form_exists_from_7x_on_only():
    code = wire.code(WireClass.KER_CALL, 11 | wire.KER_64BIT)
    spec = catalogue(Release.QNX_7).spec(code)
    assert spec.is_64bit
    assert spec.name == "MSG_SENDV"
    assert spec.wide[1] == Field("sparts", 2, Show.DEC)
    assert not catalogue(Release.QNX_6).spec(code).is_known
    assert not catalogue(Release.QNX_6_6).spec(code).is_known


def test_find_takes_listing_names_classes_and_header_spellings():
    found = catalogue(Release.QNX_7).find
    enter, leave, interrupted = (wire.code(WireClass.KER_CALL, 11 + offset) for offset in (0, 128, 256))
    wide = [code | wire.KER_64BIT for code in (enter, leave, interrupted)]
    assert found("MSG_SENDV") == (enter, leave, interrupted, *wide)
    assert found("ker_call/msg_sendv") == (enter, wide[0])
    assert found("__KER_MSG_SENDV") == found("MSG_SENDV")
    assert found("THRUNNING") == (wire.THREAD_RUNNING,)
    assert found("THREAD/THREADY") == found("_NTO_TRACE_THREADY") == (wire.code(WireClass.PR_TH, 2),)
    assert found("_NTO_TRACE_COMM_SMSG") == found("SND_MESSAGE") == found("SMSG") == (wire.code(WireClass.COMM, 0),)
    assert found("PROFILE") == (wire.code(WireClass.SYSTEM, 20), wire.code(WireClass.SYSTEM, 532))
    assert found("EVENT 17") == (wire.code(WireClass.USER, 17),)
    assert found("no such event") == ()


def test_suggest_offers_near_names():
    assert "MSG_SENDV" in catalogue(Release.QNX_7).suggest("MSG_SEND")
    assert catalogue(Release.QNX_7).suggest("qqqqqqqqq") == ()


def test_numbers_that_changed_meaning_in_8_0():
    old, new = catalogue(Release.QNX_7), catalogue(Release.QNX_8)
    assert old.name(wire.code(WireClass.PR_TH, 7)) == "THSTACK"
    assert new.name(wire.code(WireClass.PR_TH, 7)) == "THMQ_SEND"
    assert old.kernel_call_number("NET_CRED") == 93
    assert new.kernel_call_number("NET_CRED") is None
    assert new.kernel_call_number("MSG_QUEUE_OPEN") == 93
    assert old.state_value_of_code[wire.code(WireClass.PR_TH, 19)] == states.STATE_BY_NAME["NET_SEND"].value
    assert new.state_value_of_code[wire.code(WireClass.PR_TH, 19)] == states.STATE_BY_NAME["RWLOCK_READ"].value


@pytest.mark.parametrize("release", QNX)
def test_states_of_threads_only(release):
    table = catalogue(release).state_value_of_code
    assert table[wire.THREAD_RUNNING] == states.RUNNING
    assert table[wire.THREAD_CREATE] == table[wire.THREAD_DESTROY] == states.NOT_A_STATE
    virtual_running = table[wire.THREAD_RUNNING + wire.VTHREAD_OFFSET]  # 8.0 has no virtual threads: 27 is a state
    assert virtual_running in (states.NOT_A_STATE, states.STATE_BY_NAME["TRACEBUFFER"].value)
    outside = np.ones(wire.CODE_COUNT, dtype=bool)
    outside[wire.code(WireClass.PR_TH, 0) : wire.code(WireClass.PR_TH, 64)] = False
    assert (table[outside] == states.NOT_A_STATE).all()


@pytest.mark.parametrize("release", [*QNX, Release.UNIXWARE])
def test_every_code_has_a_spec_in_the_class_of_the_table(release):
    events = catalogue(release)
    known = set(events.codes())
    for code in range(wire.CODE_COUNT):
        assert events.classes[events.class_index_of_code[code]].name == events.class_name(code)
    for code in [*known, 0x7FFF, wire.code(12, 5), wire.code(WireClass.KER_CALL, 500), wire.code(WireClass.PR_TH, 60)]:
        spec = events.spec(code)
        assert spec.code == code
        assert spec.name
        assert spec.class_name == events.class_name(code)
        assert spec.is_known == (code in known)


def test_unknown_codes_have_telling_names():
    events = catalogue(Release.QNX_7)
    assert events.spec(wire.code(WireClass.PR_TH, 22)).name == "state 22"
    assert events.spec(wire.code(WireClass.PR_TH, 26 + 22)).class_name == "VTHREAD"
    assert events.spec(wire.code(13, 37)).name == "EVENT 37"
    assert events.spec(wire.code(13, 37)).class_name == "CLASS 13"
    assert events.spec(wire.code(WireClass.USER, 37)).is_known


def test_stray_class_13_of_6x_programs_is_system():
    spec = catalogue(Release.QNX_6).spec(wire.code(13, 10))
    assert (spec.class_name, spec.name) == ("SYSTEM", "FUNC_ENTER")
    assert not catalogue(Release.QNX_7).spec(wire.code(13, 10)).is_known


def test_call_with_a_list_in_the_old_table_only_is_marked_unsure():
    spec = catalogue(Release.QNX_7).spec(wire.code(WireClass.KER_CALL, 23))
    assert spec.name == "MSG_READIOV"
    assert [(field.name, field.is_sure) for field in spec.wide] == [
        ("rcvid", False),
        ("parts", False),
        ("offset", False),
        ("flags", False),
    ]


def test_errno_is_that_of_qnx():
    assert catalogue(Release.QNX_6).errno_name(48) == "ENOTSUP"
    assert catalogue(Release.QNX_6).errno_name(260) == "ETIMEDOUT"
    assert catalogue(Release.QNX_6).errno_name(9999) is None


def test_programming_interface_numbers():
    assert external_classes(Release.QNX_7)["VTHREAD"] == 11
    assert "VTHREAD" not in external_classes(Release.QNX_8)
    assert external_classes(Release.QNX_8)["PMU"] == 20
    assert internal_classes(Release.QNX_6)["COMM"] == 7
    assert "SEC" not in internal_classes(Release.QNX_6)
    assert (Mode.ADDCLASS, Mode.ADDCLASS.argc, Mode.ADDCLASS.word) == (3, 2, 0x20000003)
    assert mode_of("_NTO_TRACE_ADDCLASS") is mode_of(0x20000003) is Mode.ADDCLASS
    assert mode_of("ADDCLASSES") is None
    assert mode_of(50) is None
    assert flag_names("power")[0x20000] == "START"
    assert [flag_names("policy")[number] for number in (1, 2, 3, 4)] == ["FIFO", "RR", "OTHER", "SPORADIC"]


def test_labels_where_the_printer_differs_from_the_name():
    assert catalogue(Release.QNX_6).spec(wire.code(WireClass.KER_CALL, 83 + 128)).label == "SYNC_CONDVAR_SIG"
    assert catalogue(Release.QNX_6).spec(wire.code(WireClass.KER_CALL, 83)).label == ""
    assert catalogue(Release.QNX_7).spec(wire.code(WireClass.KER_CALL, 9)).label == "MSG_CURRENT"


@pytest.mark.thorough
def test_names_are_ready_fast_from_cold():
    """A start needs the names of one release; 30 ms are the limit, measured apart from importing numpy."""
    program = (
        "import numpy, difflib, time; start = time.process_time()\n"
        "from satview.events.catalogue import catalogue\nfrom satview.events.spec import Release\n"
        "made = catalogue(Release.QNX_7); made.name(2059)\nprint(time.process_time() - start)"
    )
    command = [sys.executable, "-c", program]
    best_s = min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5))
    # 0.03 s on a free machine; with the argument lists read at once it would be above half a second.
    assert best_s < 0.2
