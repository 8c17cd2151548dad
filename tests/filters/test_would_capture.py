"""What a capture would log, worked out from a trace of everything, is what the simulated kernel logs: to the event."""

import numpy as np
import pytest

from satview.__main__ import main
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.filters.derived_columns import process_names
from satview.filters.diagnostics import RuleError
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.would_capture import would_capture
from tests.filters.random_rules import RandomRules
from tests.filters.test_rules_everywhere import captured
from tests.helpers.commands import SAMPLE
from tests.helpers.extent import fewer, points, usually

RULES = {
    "fast": "ADDALLCLASSES\nSETALLCLASSESFAST",
    "wide without messages": "ADDALLCLASSES\nDELCLASS COMM\nSETALLCLASSESWIDE\nSETCLASSFAST KERCALLEXIT",
    "calls, one wide": "ADDCLASS KERCALL\nADDCLASS SYSTEM\nADDCLASS CONTROL\nSETEVENTWIDE KERCALLENTER MSG_SENDV",
    "interrupts": "ADDCLASS INT\nADDCLASS THREAD\nSETCLASSFAST THREAD",
}
HANDLERS = {
    "names": 'ADDCLASSEVHANDLER KERCALL WHERE name ~ "*client*"\nADDCLASSEVHANDLER THREAD WHERE tid == 1',
    "arguments, fast": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.coid >= 0\nSETALLCLASSESFAST",
    "words, fast": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLEXIT WHERE word[1] == 0 and words == 2",
    "failures": "ADDALLCLASSES\nADDCLASSEVHANDLER KERCALL WHERE failed",
    "two processes": "WHERE pid in (1, 2) and cpu == 0",
    "by class": "WHERE class == KERCALLENTER or event == THRUNNING",
    "later half": "ADDALLCLASSES\nSETALLCLASSESFAST\nWHERE time > 20ms",
}


UNSURE = ("SLOG", "POWER", "PAGEWAIT", "GUEST_ENTER", "GUEST_EXIT", "RAISE_INTR")


def forecast(trace, text, window=None):
    """Return the answer for a trace of everything."""
    built = build(parse_rules(text, trace.release, process_names(trace)), trace.release)
    return would_capture(built, trace, None, window)


def by_name(trace):
    """Return how many events of each name a trace has, those of the buffers included."""
    return {trace.catalogue.name(code): int(trace.code_counts[code]) for code in np.flatnonzero(trace.code_counts)}


@points(
    name=["client-server", "interrupt-flood", "automotive"],
    release=[Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8],
    text=RULES,
)
def test_every_event_and_slot_is_foretold(name, release, text, tmp_path):
    everything, logged = both(name, release, text, tmp_path)
    agree(forecast(everything, text), logged)


@points(text=HANDLERS, release=[Release.QNX_6, Release.QNX_6_6, Release.QNX_7])
def test_handlers_and_where_lines_are_replayed(release, text, tmp_path):
    everything, logged = both("client-server", release, text, tmp_path)
    found = forecast(everything, text)
    agree(found, logged)
    assert 20 < found.events < 0.99 * found.total_events


def both(name, release, text, folder):
    """Return a trace of everything, wide, and one with rules, of the same run."""
    (folder / "rules").mkdir()
    cpus = 4 if name == "automotive" else 1
    everything = captured(name, release, "ADDALLCLASSES\nSETALLCLASSESWIDE", folder, 40, cpus)
    return everything, captured(name, release, text, folder / "rules", 40, cpus)


def agree(found, logged):
    """Compare an answer with a capture."""
    counted = {name: count for name, (count, _) in found.by_class.items() if count}
    assert counted == {name: count for name, count in logged.class_counts().items() if count}
    assert found.events == len(logged.events)
    assert found.slots == logged.slot_count
    assert found.is_exact


def test_a_window_counts_what_is_in_it(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES", tmp_path, 40)
    middle = trace.window.start + trace.window.length // 2
    first, second = (
        forecast(trace, "ADDCLASS THREAD\nSETCLASSFAST THREAD", TimeWindow(*part))
        for part in ((trace.window.start, middle), (middle, trace.window.end))
    )
    threads = int(np.isin(trace.events.code >> 10, 4).sum())
    states = trace.class_counts()["THREAD"]
    assert first.by_class["THREAD"][0] + second.by_class["THREAD"][0] == states <= threads
    assert first.total_events + second.total_events == len(trace.events)
    assert any("dump" in note for note in second.notes)
    assert not any("dump" in note for note in first.notes)


def test_what_no_kernel_can_ask_is_refused(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES", tmp_path)
    with pytest.raises(RuleError, match="line 1, column 7: a capture cannot test this: duration is known only later"):
        forecast(trace, "WHERE duration > 1ms")


def test_a_fast_trace_gives_lower_bounds_of_wide_events(tmp_path):
    trace = captured("client-server", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESFAST", tmp_path)
    found = forecast(trace, "ADDALLCLASSES\nSETALLCLASSESWIDE")
    assert not found.is_exact
    (tmp_path / "wide").mkdir()
    wide = captured("client-server", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESWIDE", tmp_path / "wide")
    assert found.total_slots < found.slots <= wide.slot_count


@pytest.mark.thorough
@pytest.mark.parametrize("release", fewer([Release.QNX_7, Release.QNX_6_6], 1), ids=str)
def test_the_fast_form_of_a_64_bit_value_is_its_low_half(release, tmp_path):
    """The receive calls of processes with 64 bits: the wide form has two words of `rparts`, the fast one has one."""
    text = "ADDALLCLASSES\nSETALLCLASSESFAST\nADDEVENTHANDLER KERCALLENTER MSG_RECEIVEV WHERE arg.rparts >= 1"
    everything, logged = both("automotive", release, text, tmp_path)
    agree(forecast(everything, text), logged)
    assert logged.class_counts()["KER_CALL"] > 100


@pytest.mark.thorough
def test_a_fast_trace_cannot_tell_what_a_priority_decides(tmp_path):
    text = "ADDALLCLASSES\nSETALLCLASSESFAST\nADDCLASSEVHANDLER KERCALL WHERE priority > 10 and cpu == 0"
    wide, logged = both("automotive", Release.QNX_7, text, tmp_path)
    agree(forecast(wide, text), logged)
    (tmp_path / "fast").mkdir()
    trace = captured("automotive", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESFAST", tmp_path / "fast", 40, 4)
    found = forecast(trace, text)
    is_call, is_first = trace.events.code >> 10 == WireClass.KER_CALL, trace.events.cpu == 0
    assert found.undecided == int((is_call & is_first).sum())
    assert not found.is_exact
    assert found.notes[0].startswith(
        f"Cannot tell whether {found.undecided:,} events would be logged: the rules compare a"
    )
    assert found.events <= len(logged.events) <= found.events + found.undecided + 9  # and BUFFER, TIME of those
    decided = forecast(trace, text.replace("cpu == 0", "cpu == 9"))
    assert decided.undecided == 0, "no event is of CPU 9, whatever the priority is"


def test_inserted_events_follow_the_switch_of_user_events(tmp_path):
    """USER decides for FUNC_ENTER, which libraries log; of SLOG, which the kernel may log too, a trace cannot tell.

    PATH_ATTACH of SEC is off either way.
    """
    text = "ADDALLCLASSES\nDELCLASS USER\nSETALLCLASSESFAST"
    everything, logged = both("instrumented", Release.QNX_7, text, tmp_path)
    found = forecast(everything, text)
    assert everything.class_counts()["SYSTEM"] > logged.class_counts()["SYSTEM"]
    names = {name: count for name, count in by_name(everything).items() if name.startswith("FUNC_")}
    assert names
    assert not names.keys() & by_name(logged).keys()
    assert found.by_class["SYSTEM"][0] == logged.class_counts()["SYSTEM"], (
        "nothing there is by the kernel alone or unsure"
    )
    assert found.undecided == sum(count for name, count in by_name(everything).items() if name in UNSURE)
    assert "programs insert such events" in found.notes[-1]
    on = forecast(everything, "ADDCLASS USER\nADDCLASS CONTROL")
    assert on.by_class["SYSTEM"][0] == sum(names.values()), "only USER is on"


BY_PROGRAMS = ("SYSTEM", "SEC", "QVM", "USREVENT")  # classes of what is inserted in the workload


@pytest.mark.parametrize(
    "text",
    [
        "ADDALLCLASSES\nDELCLASS USER\nSETALLCLASSESFAST",
        "ADDCLASS USER\nADDCLASS CONTROL",
        "ADDALLCLASSES\nADDCLASS SEC\nDELCLASS USER",
        "ADDCLASS SYSTEM\nADDCLASS CONTROL\nADDEVENT USER 1",
    ],
)
def test_events_of_8_0_say_who_logged_them(text, tmp_path):
    """So the forecast is exact, and a view shows what a capture has: all of SEC if USER is on, whatever SEC is."""
    everything, logged = both("instrumented", Release.QNX_8, text, tmp_path)
    assert everything.class_counts()["SEC"] == 4
    found = forecast(everything, text)
    assert (found.is_exact, found.undecided) == (True, 0)
    agree(found, logged)
    passes = build(parse_rules(text, Release.QNX_8), Release.QNX_8).mask(everything)
    shown = np.bincount(everything.events.code[passes], minlength=len(everything.code_counts))
    classes = {code: everything.catalogue.class_name(code) for code in np.flatnonzero(everything.code_counts).tolist()}
    for code in (code for code, name in classes.items() if name in BY_PROGRAMS):
        assert shown[code] == logged.code_counts[code], everything.catalogue.name(code)
    assert logged.class_counts().get("SEC", 0) == (4 if "ADDCLASS USER" in text else 0)


def test_a_view_follows_user_for_functions_and_says_what_it_cannot_tell(tmp_path, capsys):
    """Of 7.x: FUNC_ENTER and FUNC_EXIT go with USER; SLOG, POWER and PAGEWAIT are shown by SYSTEM, with a note."""
    everything = captured("instrumented", Release.QNX_7, "ADDALLCLASSES\nSETALLCLASSESWIDE", tmp_path)
    counts = by_name(everything)
    functions = sum(count for name, count in counts.items() if name.startswith("FUNC_"))
    unsure = sum(counts[name] for name in ("SLOG", "POWER", "PAGEWAIT"))
    assert min(functions, unsure) > 5
    rules = tmp_path / "mine.satrules"
    rules.write_text("ADDCLASS SYSTEM\n")
    assert main(["filter", str(everything.path), "-r", str(rules)]) == 0
    fit, note = capsys.readouterr().out.splitlines()
    system = everything.class_counts()["SYSTEM"]
    assert fit.split()[0] == str(system - functions)
    assert note.split(":")[0] == f"  Cannot tell whether a capture would have {unsure} events as shown"
    rules.write_text("ADDCLASS SYSTEM\nADDCLASS USER\n")
    assert main(["filter", str(everything.path), "-r", str(rules), "-e", "class == SYSTEM"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{system} of {len(everything.events)} events match"]


def test_traces_of_other_systems_are_refused(capsys):
    assert main(["filter", str(SAMPLE.parent / "threads"), "--would-capture"]) == 2
    assert "threads: this is not a trace of QNX, so no capture of tracelogger would have it" in capsys.readouterr().err


@pytest.mark.thorough
@points(
    name=["client-server", "automotive", "instrumented"],
    release=[Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8],
    source=["WIDE", "FAST"],
)
def test_random_rules_are_foretold_or_marked(name, release, source, tmp_path):
    """What is said to be exact is the capture to the event and slot; else the capture is within what is said."""
    everything = captured(name, release, f"ADDALLCLASSES\nSETALLCLASSES{source}", tmp_path)
    (tmp_path / "rules").mkdir()
    exact = 0
    for wide in (True, False):
        random = RandomRules(everything, 20261125, wide=wide, has_priorities=True)
        for text in random.texts(usually(1, thorough=7, complete=20)):
            found, logged = forecast(everything, text), captured(name, release, text, tmp_path / "rules")
            if found.is_exact:
                agree(found, logged)
            else:
                # BUFFER and TIME are in no bound: more events fill more buffers.
                more = logged.class_counts().get("CONTROL", 0)
                assert found.events <= len(logged.events) <= found.events + found.undecided + more, text
                assert found.slots <= logged.slot_count, text
            exact += found.is_exact
    assert exact or name == "instrumented" or source == "FAST"
