"""Every row of the project's reference table is in the catalogue, where the table is at hand."""

import json

import pytest

from satview.events import rows, wire
from satview.events.catalogue import catalogue
from satview.events.modes import Mode, flag_names
from satview.events.naming import state_numbers
from satview.events.spec import Release, Show
from satview.events.wire import WireClass, external_classes, internal_classes
from tests.helpers.shared import shared_path

QNX = {"6.x": Release.QNX_6, "6.6": Release.QNX_6_6, "7.x": Release.QNX_7, "8.0": Release.QNX_8}
LETTERS = {
    "H": ("hex", 1),
    "D": ("dec", 1),
    "P": ("pointer", 1),
    "X": ("hex", 2),
    "E": ("dec", 2),
    "S": ("msg", 1),
    "s": ("msg_cont", 1),
    "N": ("string", 0),
}
# Payload words that a third party saw although the header says nothing of them.
SEEN = {"_NTO_TRACE_INT_DELIVER"}


# Names of control arguments that no expression can spell.
RENAMED = {"buffer sequence number": "sequence", "lsb(offset)": "lsb"}


def nameable(name):
    """Return the name of an argument as the catalogue has it: without blanks."""
    return RENAMED.get(name, name).replace(" ", "_")


def renamed(arguments):
    """Return a list of the table with the catalogue's names; two of one name are distinguished by a number."""
    names = [argument[0] for argument in arguments or []]
    return arguments and [
        [nameable(name) if names.count(name) == 1 or name != "cookie" else f"{name}{number}", *rest]
        for number, (name, *rest) in enumerate(arguments, 1)
    ]


@pytest.fixture(scope="module")
def table():
    return json.loads(shared_path("spec/kercalls.json").read_text())


def as_list(fields):
    return fields and [
        [field.name, field.words or None, field.show.value + ("" if field.is_sure else "?")] for field in fields
    ]


def test_kernel_call_numbers_and_public_calls(table):
    assert len(table["kernel_calls"]) == 135
    for row in table["kernel_calls"]:
        for key, release in QNX.items():
            assert catalogue(release).kernel_call_number(row["name"]) == row["number"].get(key), (row["name"], key)
            if key in row["number"]:
                spec = catalogue(release).spec(wire.code(WireClass.KER_CALL, row["number"][key]))
                assert (spec.name, list(spec.calls)) == (row["name"], row["calls"])


def wire_codes(row, key):
    where = row["wire"]
    event = where.get("event", where.get("event_offset", 0) + row.get("number", {}).get(key, 0))
    return wire.code(where["class"], event | where.get("event_flag", 0))


@pytest.mark.parametrize("key", ["6.6", "7.x", "8.0"])
def test_lists_of_the_guide(table, key):
    """6.6 and 7.x use the guide; 8.0 too, unless a row of its own replaces the guide's."""
    seen = 0
    added = {wire_codes(row, "8.0") for row in table["events_8.0"]} if key == "8.0" else set()
    for row in table["events"]:
        if "number" in row and key not in row["number"]:
            continue
        code = wire_codes(row, key)
        spec = catalogue(QNX[key]).spec(code)
        if not spec.is_known or code in added:
            assert key != "7.x", row  # every row exists in 7.x
            continue
        if key == "8.0" and row["class"] in ("_NTO_TRACE_THREAD", "_NTO_TRACE_VTHREAD") and spec.name != row["name"]:
            continue  # the number means another state there
        seen += 1
        assert as_list(spec.fast) == renamed(row["fast"]), row
        assert as_list(spec.wide) == renamed(row["wide"]), row
        if row.get("when"):
            assert spec.when == row["when"]
        if row.get("args_label", row["name"]) != row["name"]:
            assert spec.label == row["args_label"]
    assert seen > 230


def test_names_of_the_guide(table):
    for row in table["events"]:
        if "KERCALL" in row["class"] or row["event"] == "any interrupt number":
            continue
        codes = catalogue(Release.QNX_7).find(row["event"])
        assert wire_codes(row, "7.x") in codes, row


def test_additions_of_8_0(table):
    for row in table["events_8.0"]:
        spec = catalogue(Release.QNX_8).spec(wire_codes(row, "8.0"))
        assert spec.is_known
        assert wire_codes(row, "8.0") in catalogue(Release.QNX_8).find(row["event"])
        if row["event"] not in SEEN:
            assert as_list(spec.fast) == renamed(row["fast"]), row
            assert as_list(spec.wide) == renamed(row["wide"]), row


def test_lists_of_the_6_4_printer(table):
    for row in table["printer_6.4"]:
        codes = catalogue(Release.QNX_6).find(row["event"])
        if "KERCALL" in row["class"]:
            class_name = "KER_CALL" if row["class"].endswith("ENTER") else "KER_EXIT"
            codes = catalogue(Release.QNX_6).find(f"{class_name}/{row['event'][6:]}")
            counts = rows.word_counts(class_name.lower(), "lists_6")[row["event"][6:]]
            assert counts == (row["fast_words"], row["wide_words"])
        spec = catalogue(Release.QNX_6).spec(codes[0])
        assert spec.class_name == row["printed_class"].strip()
        assert (spec.label or spec.name) == row["printed_event"].strip()
        expected, fast, base = [], [], ""
        for argument in row["args"]:
            text = argument.removeprefix("f")
            show, words = LETTERS[text[0]]
            name = nameable(text[1:])
            if text[0] == "S":
                base, more = name, 0
            elif text[0] == "s":
                more += 1
                name = f"{base}[{more}]"
            expected.append((name, words, show))
            if argument != text:
                fast.append(expected[-1])
        assert [(field.name, field.words, field.show.value) for field in spec.wide] == expected, row
        listed = [(field.name, field.words, field.show.value) for field in spec.fast]
        # Events that are alike in both modes have one list; the printer's marks then cover its beginning.
        assert listed == fast or (spec.fast == spec.wide and listed[: len(fast)] == fast), row


def test_thread_states(table):
    for key, release in QNX.items():
        listed = table["thread_states"]["7.x" if key == "6.6" else key]
        assert state_numbers(release) == {row["name"]: row["number"] for row in listed}
    assert set(table["printer_6.4_states"]) <= set(state_numbers(Release.QNX_6))


def test_system_event_numbers(table):
    keys = {"6.4": "6.x", "6.5": "6.x", "6.6": "6.6", "7.x": "7.x", "8.0": "8.0"}
    for listed, key in keys.items():
        for row in table["system_events"][listed]:
            code = wire.code(WireClass.SYSTEM, row["number"])
            assert code in catalogue(QNX[key]).find(f"_NTO_TRACE_SYS_{row['name']}"), row


@pytest.mark.parametrize(
    ("block", "prefix", "number_key", "wire_class"),
    [
        ("comm_events", "_NTO_TRACE_COMM_", "number", WireClass.COMM),
        ("qvm_events", "_NTO_TRACE_QVM_", "number", WireClass["QVM"]),
        ("process_events", "_NTO_TRACE_", "wire", WireClass.PR_TH),
    ],
)
def test_plain_number_tables(table, block, prefix, number_key, wire_class):
    for row in table[block]:
        assert wire.code(wire_class, row[number_key]) in catalogue(Release.QNX_7).find(prefix + row["name"])


@pytest.mark.parametrize(
    ("block", "prefix", "wire_class"),
    [
        ("sec_events", "_NTO_TRACE_SEC_", WireClass["SEC"]),
        ("pmu_events", "_NTO_TRACE_PMU_", WireClass["PMU"]),
        ("interrupt_events", "_NTO_TRACE_INT_", WireClass.INT),
    ],
)
def test_number_tables_per_release(table, block, prefix, wire_class):
    for key, listed in table[block].items():
        for row in listed:
            assert wire.code(wire_class, row["number"]) in catalogue(QNX[key]).find(prefix + row["name"]), row


def test_control_event_numbers(table):
    for key, listed in table["control_events"].items():
        for row in listed:
            assert catalogue(QNX[key]).find(row["name"]) == (wire.code(WireClass.CONTROL, row["number"]),)


def test_errno_modes_classes_and_flags(table):
    for number, name in table["errno"].items():
        assert catalogue(Release.QNX_6).errno_name(int(number)) == name
    modes = {mode.symbol: mode for mode in Mode}
    assert len(modes) == len(table["modes"])
    for row in table["modes"]:
        mode = modes[row["name"]]
        assert (mode.argc, int(mode), mode.word, mode.since.value) == (
            row["argc"],
            row["number"],
            row["value"],
            "6.x" if row["since"].startswith("6.") and row["since"] != "6.6" else row["since"],
        )
    for row in table["external_classes"]:
        for key, release in QNX.items():
            is_there = row["since"] <= key.replace("6.x", "6.4") or row["since"] == "6.x"
            if row["since"] != "6.4" and is_there and key not in row:
                assert external_classes(release)[row["name"]] == row["number"]
    for row in table["internal_classes"]:
        assert internal_classes(Release.QNX_8)[row["name"]] == row["number"]
    bits = flag_names("power") | flag_names("power_idle")
    for name, value in table["power_flags"].items():
        if name == "CPUMASK":
            continue
        word, _, condition = name.partition(" (")
        names = flag_names("power_frequency") if condition.startswith("IDLE clear") else bits
        assert names[value] == word
    for name, value in table["sec_values"]["able_flags"].items():
        assert value == 0 or flag_names("able")[value] == name
    for block, key in (("path_attach", "path_attach_status"), ("qnet_connect", "qnet_connect_status")):
        assert flag_names(block) == {value: name for name, value in table["sec_values"][key].items()}
    for name, text in table["inkernel_bits_6.4"].items():
        if name != "note":
            assert flag_names("inkernel")[int(text.split()[0])] == name


def test_notations_are_those_of_the_table(table):
    assert {show.value for show in Show} == set(table["hints"])


@pytest.mark.parametrize("release", QNX.values())
def test_every_argument_outside_kernel_calls_can_be_named_in_an_expression(release):
    names = catalogue(release)
    for code in names.codes():
        spec = names.spec(code)
        if spec.class_name in ("CONTROL", "SYSTEM", "THREAD", "VTHREAD", "PROCESS", "SEC", "QVM"):
            for fields in (spec.fast, spec.wide):
                listed = [field.name for field in fields or ()]
                assert all(name.isidentifier() for name in listed), spec
