"""Rules that no option says: built by the user's compiler, copied to the target, run beside its logger, removed.

The compiler is a script around gcc and the headers of a simulated target, on which the program then really runs: once
by the target's own address, once over a real sshd, whose tracelogger is that of the simulated target.
"""

from __future__ import annotations

import re
import shutil

import pytest
from msgspec.structs import replace

from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.target import capture as capture_module
from satview.target.c_programs import write_sdk
from satview.target.capture import built_program, capture
from satview.target.line import Profile, TargetError, find_profile
from satview.target.request import Board, TargetRequest, with_rules
from tests.target.conftest import Resident

pytestmark = pytest.mark.usefixtures("quick_clock")
RULES = "ADDCLASS THREAD\nADDEVENT KERCALL MSG_SENDV\nWHERE cpu == 0\n"
EVENTS = {"KER_CALL MSG_SENDV", "KER_EXIT MSG_SENDV"}


@pytest.fixture
def resident(targets_folder):
    there = Resident("target", ["client-server"], cpus=2)
    yield there
    there.close()


@pytest.fixture
def qcc(resident, tmp_path):
    """Command of a compiler whose programs find the simulated target wherever they are started."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc; on Debian: apt-get install gcc libc6-dev")
    sdk = tmp_path / "sdk"
    write_sdk(sdk, Release.QNX_7)
    (sdk / "where.h").write_text(
        "int setenv(const char *, const char *, int);\n__attribute__((constructor)) static void say_where(void)\n"
        f'{{ setenv("SATVIEW_TARGET", "{resident.target.folder}", 1); }}\n'
    )
    script = tmp_path / "qcc"
    script.write_text(f'#!/bin/sh\nexec {gcc} -include {sdk}/where.h -I{sdk}/include "$@" {sdk}/target.c -pthread\n')
    script.chmod(0o755)
    return f"{script} -O1"


def run(profile, path, rules=RULES, stops=lambda: False):
    """Capture for a second; return what became of it and what was said."""
    said = []
    request = TargetRequest(profile, path, rules=rules, rules_name="calls.satrules", seconds=1.0)
    return capture(request, stops, lambda _: None, said.append), said


def log_on(resident, board):
    """Let the tracelogger of a board be that of a simulated target."""
    folder = resident.target.folder
    board.add_program("tracelogger", f": > $BOARD/running/$$\nXDG_RUNTIME_DIR={folder.parents[1]}\n"
                      f'export XDG_RUNTIME_DIR\nexec {folder}/bin/tracelogger "$@"')  # fmt: skip


def check_events(path):
    """Check that a trace has what the rules let pass: calls of CPU 0 and their ends, threads, and the kernel's own."""
    trace = open_trace(path)
    calls = list(trace.iter_events("KER_CALL", "KER_EXIT", "COMM", "INT_ENTR"))
    assert {f"{event.class_name} {event.name.rpartition('/')[2]}" for event in calls} == EVENTS
    assert {event.cpu for event in calls} == {0}
    assert len(calls) > 20


@pytest.mark.thorough
def test_rules_run_on_a_simulated_target(resident, qcc, tmp_path):
    profile = replace(find_profile("sim://", tmp_path / "none.toml"), qcc=qcc)
    captured, said = run(profile, tmp_path / "run.kev")
    assert captured.faults == captured.notes == []
    assert re.search(r"the rules run on target as a program in C: .*/qcc -O1 -o rules rules.c", "\n".join(said))
    assert captured.command == "tracelogger -d1 -c -k 32 -b 64 -f -"
    check_events(tmp_path / "run.kev")
    assert not list((resident.target.folder / "shmem").iterdir())
    assert resident.waits_until(lambda: not [name for name in resident.processes() if name.startswith("satview-")])


@pytest.mark.thorough
def test_a_program_that_comes_before_the_logger_has_buffers_waits_for_them(resident, qcc, tmp_path, monkeypatch):
    monkeypatch.setattr(capture_module, "START", capture_module.START.replace("sleep 2; ", ""))
    slow = resident.target.folder / "bin" / "tracelogger"
    quick = slow.with_name("quick-tracelogger")
    slow.rename(quick)
    slow.write_text(f'#!/bin/sh\nsleep 2\nexec {quick} "$@"\n')
    slow.chmod(0o755)
    try:
        captured, _ = run(replace(find_profile("sim://", tmp_path / "none.toml"), qcc=qcc), tmp_path / "run.kev")
    finally:
        quick.rename(slow)
    assert captured.faults == captured.notes == []
    check_events(tmp_path / "run.kev")


def test_the_program_is_copied_over_ssh_run_and_removed(board, resident, qcc, tmp_path):
    log_on(resident, board)
    captured, _ = run(replace(board.profile, qcc=qcc), tmp_path / "run.kev")
    assert captured.faults == captured.notes == []
    check_events(tmp_path / "run.kev")
    assert board.is_clean_within(5)
    assert resident.waits_until(lambda: not [name for name in resident.processes() if name.startswith("satview-")])


@pytest.mark.thorough
def test_a_broken_line_leaves_no_program_there(board, resident, qcc, tmp_path):
    log_on(resident, board)
    cuts = []

    def cut_once():
        if not cuts and [name for name in resident.processes() if name.startswith("satview-")]:
            cuts.append(board.cut())
        return False

    captured, _ = run(replace(board.profile, qcc=qcc), tmp_path / "run.kev", stops=cut_once)
    assert len(cuts) == 1
    assert "the line to board broke" in captured.faults[0]
    assert board.is_clean_within(10)
    assert resident.waits_until(lambda: not [name for name in resident.processes() if name.startswith("satview-")])


@pytest.mark.thorough
def test_a_program_that_cannot_run_there_ends_the_capture_and_is_said(board, tmp_path):
    """This one is for another processor."""
    script = tmp_path / "qcc"
    script.write_text("#!/bin/sh\nprintf 'no program' > rules\n")
    script.chmod(0o755)
    board.add_program("tracelogger", ": > $BOARD/running/$$\nexec sleep 60")
    with pytest.raises(TargetError, match=r"of the rules ended on board with status 127.*satview-.*not found"):
        run(replace(board.profile, qcc=str(script)), tmp_path / "run.kev")
    assert board.is_clean_within(5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "echo 'x: warning: dull'; echo 'rules.c:7: error: no such type' >&2; exit 1",
            "rules.c:7: error: no such type",
        ),
        ("exit 3", "exit status 3"),
        (None, "there is no compiler"),
    ],
)
def test_a_build_that_fails_is_one_sentence(tmp_path, text, said):
    script = tmp_path / "qcc"
    if text is not None:
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    with pytest.raises(TargetError) as error:
        built_program("int main(void) {}", Profile("ssh://rig", qcc=str(script)), print)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rules", "sys_release"), [(RULES.replace("cpu == 0", "duration > 1ms"), "7.1.0"), (RULES, "8.0.0")]
)
def test_rules_that_no_program_says_are_filtered_here_and_said(rules, sys_release, tmp_path):
    request = TargetRequest(Profile("ssh://rig", qcc="qcc"), tmp_path / "run.kev", rules=rules)
    request, reasons = with_rules(request, Board(sys_release=sys_release))
    assert (request.source, request.path.name) == ("", "run.unfiltered.kev")
    assert reasons[-1].startswith("no program in C says these rules: ")


def test_rules_that_options_say_need_no_compiler(tmp_path):
    request = TargetRequest(
        Profile("ssh://rig", qcc="qcc"), tmp_path / "run.kev", rules="ADDALLCLASSES\nDELCLASS INT\n"
    )
    request, reasons = with_rules(request, Board(sys_release="7.1.0"))
    assert (request.source, request.filters, reasons) == ("", ("-F2",), ())
