"""`satview filter` as a user runs it."""

from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.export.kev import write_subset
from satview.formats.kev.header import write_kev
from satview.formats.kev.reader import open_kev
from tests.filters.made import Maker, random_trace
from tests.helpers.commands import SAMPLE
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder
from tests.helpers.linux_scene import TEXT


@pytest.fixture
def trace_file(tmp_path):
    trace = random_trace(5, 800)
    path = tmp_path / "in.kev"
    write_subset(trace, path, np.ones(len(trace.events), np.bool_))
    return path


def test_rules_and_expression_write_a_smaller_file(tmp_path, trace_file, capsys):
    rules = tmp_path / "mine.satrules"
    rules.write_text("DELALLCLASSES\nADDCLASS COMM\nADDCLASS KERCALL\nSETCLASSPID KERCALL devb-eide\n")
    out = tmp_path / "out.kev"
    arguments = ["-r", str(rules), "-e", "cpu == 0", "-o", str(out), "--from", "300ms", "--to", "6s"]
    assert main(["filter", str(trace_file), *arguments]) == 0
    printed = capsys.readouterr().out
    small, large = open_kev(out), open_kev(trace_file)
    assert f"of {len(large.events):,} events" in printed
    assert "more to keep threads, names and states correct" in printed
    is_call = small.events.code >> 10 == 2
    is_comm = small.events.code >> 10 == 7
    assert is_call.any()
    assert is_comm.any()
    assert (small.events.cpu[is_comm] == 0).all()
    assert set(small.threads.pid[small.events.thread[is_call]]) == {7}
    relative = small.events.time_cycles - large.events.time_cycles[0]
    assert relative[is_comm].min() >= 300_000
    assert relative.max() < 6_000_000
    assert "devb-eide" in " ".join(small.processes.names)


def test_without_output_events_are_counted(trace_file, capsys):
    assert main(["filter", str(trace_file), "-e", "event == MSG_SENDV"]) == 0
    large = open_kev(trace_file)
    count = sum(large.spec(row).name == "MSG_SENDV" for row in range(len(large.events)))
    assert capsys.readouterr().out == f"{count:,} of {len(large.events):,} events match\n"


@pytest.mark.thorough
@points(
    case=[
        (["-e", "class == SEC"], "", 1, "`class == SEC` needs events of SEC, of which there are none"),
        (["-e", "pid == 999"], "", 1, "`pid == 999` holds for none of 16 events"),
        (
            ["-e", "cpu == 0 and priority > 10"],
            "",
            1,
            "holds for none of 16 events: the trace has no priorities, which wide",
        ),
        (["-e", "class == THREAD", "-e", "event != THREADY"], "", 1, "none of them passes all"),
        (["-e", "event == THREADY"], "DELALLCLASSES\nADDCLASS COMM\n", 1, "the rules leave out all that is there, "),
        (["-e", "class == THREAD"], "DELALLCLASSES\nADDCLASS PROCESS\n", 1, "needs events that the rules leave out"),
        (["-e", "pid == 2 and (cpu == 1 and cpu > 1)"], "", 2, "-e, column 15: no event can ever fit 'cpu == 1 and"),
        (["-e", "not not 2 < 1"], "", 2, "-e, column 9: no event can ever fit"),
        (["-e", "arg.coid == 1 and class == THREAD"], "", 2, "no event can ever fit"),
        ([], "WHERE pid > 0 and class == COMM and state == READY\n", 2, "r.satrules:1:7: no event can ever fit"),
        (["-e", "cpu >= 0 and cpu <= 0 and not cpu > 0"], "", 0, ""),
    ],
    command=["filter", "filter -o a.kev", "export a.csv --format list"],
)
def test_nothing_is_kept_for_a_reason(case, command, tmp_path, monkeypatch, capsys):
    options, rules, code, says = case
    monkeypatch.chdir(tmp_path)
    builder = TraceBuilder().time_event(0).process_name(5, 2, "bin/a")
    for number in range(14):
        builder.state("READY", 10 + number, 2, 1)
    builder.write(tmp_path / "t.kev")
    (tmp_path / "r.satrules").write_text(rules)
    if rules and command.startswith("export"):
        return  # it takes none
    name, *rest = command.split()
    assert main([name, "t.kev", *rest, *options, *(["-r", "r.satrules"] if rules else [])]) == code
    printed = capsys.readouterr()
    assert says in printed.err
    assert (tmp_path / "a.kev").exists() == (code != 2 and "a.kev" in rest)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["thread trace", "Linux"])
def test_events_of_other_systems_pass_unless_rules_switch_everything_off(kind, tmp_path, capsys):
    """`satview info` counts 397 and 17 events: 6 switches of two threads each, 2 wakings of two events, an interrupt.

    None of their classes is one of TraceEvent().
    """
    path, count, class_name, of_class = SAMPLE.parent / "threads", 397, "mutex", 122
    if kind == "Linux":
        path, count, class_name, of_class = tmp_path / "perf.txt", 17, "tracepoint", 3
        path.write_text(TEXT)
    expected = {
        "": (count, 0),
        "ADDALLCLASSES": (count, 0),
        "DELALLCLASSES": (0, 1),
        "DELALLCLASSES\nADDALLCLASSES": (count, 0),
        f"WHERE class == {class_name}": (of_class, 0),
    }
    for text, (passing, code) in expected.items():
        rules = tmp_path / "r.satrules"
        rules.write_text(f"{text}\n")
        assert main(["filter", str(path), "-r", str(rules)]) == code, text
        assert capsys.readouterr().out == f"{passing} of {count} events match\n", text
    assert main(["filter", str(path), "-e", f"class == {class_name}"]) == 0
    assert capsys.readouterr().out == f"{of_class} of {count} events match\n"
    assert main(["stats", str(path), "-e", f"class == {class_name}", "--by", "event"]) == 0
    assert f"counting {of_class} of {count} events" in capsys.readouterr().out
    listing = tmp_path / "part.txt"
    assert main(["export", str(path), str(listing), "--format", "list", "-e", f"class == {class_name}"]) == 0
    assert len(listing.read_text().splitlines()) == of_class + 1  # a line in front tells the form
    capsys.readouterr()
    for name in ("COMM", "KERCALL", "EMPTY"):
        assert main(["filter", str(path), "-e", f"class == {name}"]) == 2
        assert f"there is no class '{name}'" in capsys.readouterr().err
    assert main(["filter", str(path), "-e", "code == 30000"]) == 1
    assert "`code == 30000` needs codes of no known event, of which there are none" in capsys.readouterr().err


def test_faults_are_shown_with_their_position(tmp_path, trace_file, capsys):
    rules = tmp_path / "bad.satrules"
    rules.write_text("ADDCLASS COMN\nADDEVENT THREAD THRUNING\n")
    assert main(["filter", str(trace_file), "-r", str(rules)]) == 2
    errors = capsys.readouterr().err
    assert "bad.satrules:1:10: there is no class 'COMN'; did you mean COMM?" in errors
    assert "bad.satrules:2:17: THREAD has no event 'THRUNING'; did you mean THRUNNING" in errors
    assert main(["filter", str(trace_file), "-e", "pid == 7 an tid == 1"]) == 2
    errors = capsys.readouterr().err
    assert "-e, column 10: 'an' does not fit" in errors
    assert "\n  pid == 7 an tid == 1\n           ^^\n" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "soon"], "'soon' is not a time"),
        (["--from", "3s", "--to", "2s"], "the range from 3s to 2s is empty"),
        (["--from", "3000s", "--to", "3001s"], "the range from 3000s to 3001s is empty or outside this trace"),
        (["-r", "missing.satrules"], "there is no such file"),
    ],
)
def test_bad_use(trace_file, capsys, arguments, message):
    assert main(["filter", str(trace_file), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_code_runs_only_when_allowed(tmp_path, trace_file, capsys):
    (tmp_path / "h.py").write_text("def f(event):\n    return event.cpu == 1\n")
    rules = tmp_path / "code.satrules"
    rules.write_text("ADDALLCLASSES\nADDCLASSEVHANDLER COMM CALL h.py:f\n")
    assert main(["filter", str(trace_file), "-r", str(rules)]) == 2
    assert "h.py is code and was not allowed to run" in capsys.readouterr().err
    assert main(["filter", str(trace_file), "-r", str(rules), "-e", "class == COMM", "--allow-code"]) == 0
    large = open_kev(trace_file)
    count = int(((large.events.code >> 10 == 7) & (large.events.cpu == 1)).sum())
    assert capsys.readouterr().out.startswith(f"{count:,} of ")


def test_back_to_capture(tmp_path, trace_file, capsys):
    rules = tmp_path / "mine.satrules"
    rules.write_text("ADDALLCLASSES\nDELCLASS THREAD\nSETALLCLASSESFAST\n")
    program = tmp_path / "out.c"
    assert (
        main(
            [
                "filter",
                str(trace_file),
                "-r",
                str(rules),
                "--tracelogger",
                "--c-program",
                str(program),
                "--would-capture",
                "--explain",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "tracelogger -F4 -f " in printed
    assert "thread state" not in printed
    assert "Thread lanes: " in printed
    assert "slots   " in printed
    assert "SET(_NTO_TRACE_ADDCLASS, _NTO_TRACE_KERCALL);" in program.read_text()


@pytest.mark.parametrize("option", ["--tracelogger", "--c-program=out.c"])
def test_what_is_for_qnx_is_refused_for_other_traces(option, tmp_path, monkeypatch, capsys):
    threads = str(Path("sample_traces/threads").absolute())
    monkeypatch.chdir(tmp_path)
    assert main(["filter", threads, "-e", "cpu == 1", option]) == 2
    printed = capsys.readouterr()
    assert "threads: this is not a trace of QNX, so neither tracelogger nor a program for QNX filters it" in printed.err
    assert (printed.out, list(tmp_path.iterdir())) == ("", [])


def test_what_c_cannot_do_is_reported_with_its_position(tmp_path, trace_file, capsys):
    rules = tmp_path / "a*\\.satrules"
    untold = "ADDCLASSEVHANDLER KERCALLENTER WHERE pid == 7 and duration > 1ms"
    rules.write_text(f"ADDALLCLASSES\n{untold}\nWHERE cpu == 0\n")
    program = tmp_path / "out.c"
    assert main(["filter", str(trace_file), "-r", str(rules), "--c-program", str(program)]) == 1
    printed = capsys.readouterr()
    assert f"{program}: written, with errors" in printed.out
    assert "satview: line 2, column 51: a capture cannot test this: duration is known only later" in printed.err
    source = program.read_text()
    assert '#error "line 2, column 51: ' in source
    assert "/* a*\\.satrules */" in source
    rules.write_text("ADDALLCLASSES\nWHERE pid == 7\n")
    assert main(["filter", str(trace_file), "-r", str(rules), "--c-program", str(program)]) == 0
    printed = capsys.readouterr()
    assert f"{program}: written\n  WHERE does not apply to " in printed.out
    assert "#error" not in program.read_text()


@pytest.mark.thorough
def test_conditions_of_e_are_where_lines_of_a_capture(tmp_path, trace_file, capsys):
    rules, program = tmp_path / "r.satrules", tmp_path / "out.c"

    def printed(*words: str) -> list[str]:
        main(["filter", str(trace_file), *words])
        return capsys.readouterr().out.splitlines()

    for condition in ("class == COMM", "pid == 7", "class == KERCALL and failed"):
        rules.write_text(f"WHERE {condition}\n")
        of_rule = printed("-r", str(rules), "--would-capture")
        assert printed("-e", condition, "--would-capture") == of_rule
        assert of_rule != printed("--would-capture")
        printed("-r", str(rules), "--c-program", str(program))
        source = program.read_text().replace("/* r.satrules */\n", "")
        printed("-e", condition, "--c-program", str(program))
        assert program.read_text() == source
    said = printed("-e", "pid == 7", "--tracelogger")
    assert (
        "  not exact: WHERE lines and other conditions are for views; the capture keeps the events they would"
        in said[1]
    )
    assert main(["filter", str(trace_file), "-e", "duration > 0ns", "--would-capture"]) == 2
    assert "satview: -e, column 1: a capture cannot test this: duration is known" in capsys.readouterr().err
    assert main(["filter", str(trace_file), "-e", "duration > 0ns", "--c-program", str(program)]) == 1
    assert "satview: -e, column 1: a capture cannot test this: duration is known" in capsys.readouterr().err
    rules.write_text("WHERE duration > 0ns\n")
    assert main(["filter", str(trace_file), "-r", str(rules), "-e", "duration > 1ns", "--would-capture"]) == 2
    assert "line 1, column 7: a capture" in (both := capsys.readouterr().err)
    assert "; -e, column 1: a capture" in both
    said = printed("-e", "duration > 0ns", "--explain")
    assert said[0].startswith("-e: a capture cannot test this: duration is known only later")


def test_rules_behind_a_capture(tmp_path, capsys):
    maker = Maker()
    maker.start()
    pairs = (
        ("LITTLE_ENDIAN", "TRUE"),
        ("CYCLES_PER_SEC", "1000000"),
        ("SYS_RELEASE", "6.4.1"),
        ("SYSPAGE_LEN", "0"),
        ("TRACELOGGER_ARGS", "tracelogger -F1 -w -n 3"),
    )
    path = tmp_path / "args.kev"
    write_kev(path, pairs, b"", maker.slots(), "little")
    assert main(["filter", str(path), "--from-args"]) == 0
    printed = capsys.readouterr().out
    assert "ADDALLCLASSES\nDELCLASS KERCALL\nSETALLCLASSESWIDE\n" in printed
    write_kev(path, pairs[:-1], b"", maker.slots(), "little")
    assert main(["filter", str(path), "--from-args"]) == 2


def test_a_damaged_trace_is_filtered_and_said_to_be_damaged(tmp_path, trace_file):
    cut = tmp_path / "cut.kev"
    cut.write_bytes(trace_file.read_bytes() + b"\x01" * 7)
    assert main(["filter", str(cut), "-o", str(tmp_path / "out.kev")]) == 1
    assert not open_kev(tmp_path / "out.kev").problems.cost_data
