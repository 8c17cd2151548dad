"""Programs in C on a simulated target: what they do is in its trace."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.export.c_program import c_program, parts
from satview.filters.derived_columns import process_names
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.formats.registry import open_trace
from satview.target import shell
from satview.target.c_programs import CALLS, write_sdk
from tests.helpers.commands import satview
from tests.helpers.extent import usually
from tests.target.conftest import Resident

FLAGS = ("-std=gnu99", "-g", "-Wall", "-Wextra", "-Werror", "-pthread")
PROGRAMS = Path(__file__).resolve().parents[2] / "resources/target/programs"
GUIDE = {
    "all_classes": {"THREAD", "KER_CALL", "KER_EXIT", "INT_ENTR", "INT_EXIT", "PROCESS", "COMM", "SYSTEM", "USREVENT"},
    "one_class": {"THREAD"},
    "five_events": {"THREAD", "PROCESS", "INT_ENTR"},
    "ker_calls": {"THREAD", "KER_CALL", "KER_EXIT"},
    "user_events": {"THREAD", "KER_CALL", "KER_EXIT", "INT_ENTR", "INT_EXIT", "PROCESS", "COMM", "SYSTEM", "USREVENT"},
}


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    """The folder that programs are compiled with, its library compiled."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc; on Debian: apt-get install gcc libc6-dev")
    folder = tmp_path_factory.mktemp("sdk")
    write_sdk(folder, Release.QNX_7)
    compile_with(folder, "-c", str(folder / "target.c"), "-o", str(folder / "target.o"))
    return folder


def compile_with(sdk, *words):
    done = subprocess.run(
        ["gcc", *FLAGS, f"-I{sdk / 'include'}", f"-I{PROGRAMS}", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def resident(targets_folder):
    """A target of its own for each test: what a program has left on it cannot reach the next one."""
    there = Resident("target", ["client-server"], cpus=2)
    yield there
    there.close()


@pytest.fixture
def run_program(sdk, resident, tmp_path, monkeypatch):
    """Compile programs and start them on the target."""
    monkeypatch.setenv("SATVIEW_TARGET", str(resident.target.folder))
    running = []

    def start(source, *words, is_background=False):
        path = source if isinstance(source, Path) else PROGRAMS / f"{source}.c"
        program = tmp_path / path.stem
        if not program.exists():
            compile_with(sdk, str(path), str(sdk / "target.o"), "-o", str(program))
        process = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)  # fmt: skip
        running.append(process)
        return process if is_background else (*process.communicate(timeout=60), process.returncode)

    yield start
    for process in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the loggers that it has started
        process.communicate()


@pytest.fixture
def log(resident, tmp_path, monkeypatch):
    """Start a logger in the background; the function that is returned waits for its end and opens the trace."""
    bin_folder, running = resident.target.folder / "bin", []

    def start(*words):
        path = tmp_path / "run.kev"
        process = subprocess.Popen([bin_folder / "tracelogger", *words, "-f", path], stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert resident.waits_until(lambda: resident.target.logs and resident.target.logs[0].logger.is_ready)

        def opened(ends_itself=False):
            if not ends_itself:
                process.terminate()
            assert process.wait(30) == 0, process.communicate()
            return open_trace(path)

        return opened

    yield start
    for process in running:
        process.kill()
        process.communicate()


def listed(path):
    """Return the events of a trace as (class, event and its arguments), as `satview traceprinter` prints them."""
    text = satview("traceprinter", "-f", str(path)).stdout.decode()
    rows = re.findall(r"^t:0x[0-9a-f]+ CPU:\d\d (\S+) *:(.*)$", text, re.MULTILINE)
    return [(name, " ".join(said.split())) for name, said in rows if name != "CONTROL"]


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_6_6, Release.QNX_8])
def test_examples_compile_for_other_releases(tmp_path, release):
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    write_sdk(tmp_path, release)
    subprocess.run(["make", "-C", tmp_path, f"CFLAGS={' '.join(FLAGS)}"], check=True, capture_output=True)
    programs = {path.stem for path in (tmp_path / "programs").glob("*.c")}
    assert {path.name for path in (tmp_path / "programs").iterdir() if not path.suffix} == programs


@pytest.mark.thorough
@pytest.mark.parametrize("name", GUIDE)
def test_programs_of_the_guide_decide_what_is_logged(run_program, log, name):
    opened = log("-d1", "-n", "0")
    assert run_program(name) == ("", "", 0)
    assert run_program("periodic") == ("", "", 0)
    assert {kind for kind, _ in listed(opened().path)} == GUIDE[name]


@pytest.mark.thorough
def test_user_events_of_the_guide(run_program, log):
    opened = log("-d1", "-n", "0")
    assert run_program("user_events") == ("", "", 0)
    assert [said for kind, said in listed(opened().path) if kind == "USREVENT"] == [
        "EVENT:111 d0:0x00000001 d1:0x0000000b",
        "EVENT:222 d0:0x00000002 d1:0x00000016",
        "EVENT:333 d0:0x00000003 d1:0x00000021",
        "EVENT:444 d0:0x00000004 d1:0x0000002c",
        'EVENT:555 STR:"Hello world", d0:0x6c6c6548 d1:0x6f77206f d2:0x00646c72 d3:0x00000000',
    ]


@pytest.mark.thorough
def test_one_kernel_call_of_the_guide(run_program, log):
    opened = log("-d1", "-n", "0")
    number = catalogue(Release.QNX_7).kernel_call_number("TIMER_SETTIME")
    assert run_program("ker_calls", "-n", str(number)) == ("", "", 0)
    assert run_program("periodic") == ("", "", 0)
    calls = {said.split("/")[0] for kind, said in listed(opened().path) if kind.startswith("KER")}
    assert calls == {"TIMER_SETTIME"}


@pytest.mark.thorough
def test_handlers_of_the_guide_let_events_pass_in_turns(resident, run_program, log, monkeypatch):
    monkeypatch.setattr("satview.target.c_programs._HANDLER_S", 30)  # while one is late, events pass without handlers
    run_program("periodic")  # compiles it, as the program of the guide traces for one second only
    opened = log("-d1", "-n", "1")
    handlers = run_program("event_handlers", is_background=True)
    assert resident.waits_until(lambda: resident.target.kernel.emitter.is_tracing)
    for _ in range(6):  # each process that ends costs the process manager RING0 calls
        run_program("periodic", is_background=True)
    assert handlers.wait(120) == 0
    kinds = [kind for kind, _ in listed(opened(ends_itself=True).path)]
    assert set(kinds) == {"THREAD", "KER_CALL"}  # either may be first: handlers are called before tracing starts, too
    assert len(kinds) >= 6
    assert all(one != two for one, two in pairwise(kinds))


@pytest.mark.thorough
def test_a_program_that_comes_before_the_buffers_of_the_logger_waits(run_program, log):
    program = run_program("all_classes", is_background=True)
    opened = log("-d1", "-n", "1")
    assert program.wait(60) == 0
    run_program("periodic")
    assert {kind for kind, _ in listed(opened(ends_itself=True).path)} >= {"THREAD", "KER_CALL", "COMM"}


@pytest.mark.thorough
def test_messages_of_two_processes(run_program, log):
    opened = log("-w", "-c")
    server = run_program("messages", is_background=True)
    assert run_program("messages", "Ann") == ("hello, Ann\n", "", 0)
    assert server.wait(20) == 0
    events = listed(opened().path)
    assert len([said for _, said in events if said.startswith(("REPLY_MESSAGE", "REC_MESSAGE"))]) >= 20
    assert sum('STR:"hello, Ann"' in said for _, said in events) == 10
    assert any("PROCCREATE_NAME" in said for _, said in events)


@pytest.mark.thorough
def test_pulses_of_a_timer(run_program, log):
    opened = log("-c")
    assert run_program("periodic") == ("", "", 0)
    trace = opened()
    (pid,) = process_names(trace)["periodic"]
    assert pid > 1
    received = [said for kind, said in listed(trace.path) if kind == "USREVENT"]
    assert received == ["EVENT:8 d0:0x00000003 d1:0x0000002a"] * 20


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "is_inverted"), [((), True), (("inherit",), False)])
def test_priority_inversion_by_threads(run_program, log, words, is_inverted):
    opened = log("-w", "-c")
    assert run_program("inversion", *words) == ("", "", 0)
    done = satview("check", str(opened().path))
    assert (b"priority-inversion" in done.stdout) == is_inverted
    assert not is_inverted or b"inversion 4 (high) (priority 30) waits" in done.stdout


@pytest.mark.thorough
def test_a_thread_computes_as_long_as_the_real_one(run_program, log, tmp_path):
    (tmp_path / "spins.c").write_text(SPINS)
    opened = log("-c")
    assert run_program(tmp_path / "spins.c") == ("", "", 0)
    trace = opened()
    times = trace.events.time_cycles[trace.events.code >> 10 == WireClass.USER]
    lengths_ms = (times[1:] - times[:-1]) * 1000 / trace.clock.cycles_per_s
    assert len(lengths_ms) == 19
    assert 0.99 <= lengths_ms.min() < 1.2  # others may be longer: the machine of the tests may be busy


@pytest.mark.thorough
def test_an_exported_program_with_handlers_and_names(resident, run_program, sdk, log, tmp_path):
    """Rules become a program that looks up the pid of a name in /proc and judges events in handlers."""
    rules = 'ADDALLCLASSES\nADDEVENTHANDLER THREAD THRUNNING WHERE name == "messages"\n'
    built = build(parse_rules(rules, Release.QNX_7, {}), Release.QNX_7)
    (tmp_path / "rules.c").write_text(c_program(built).source)
    opened = log("-d1", "-n", "0")
    server = run_program("messages", is_background=True)  # it stays until a client has asked it
    assert is_up(resident, server), server.communicate()
    (server_pid,) = re.findall(r"^ *(\d+) +\S*messages *$", resident.answer("pidin", "-F", "%a %n")[1], re.MULTILINE)
    judge = run_program(tmp_path / "rules.c", is_background=True)
    assert resident.waits_until(lambda: resident.target.kernel.emitter.is_tracing or judge.poll() is not None)
    assert run_program("messages", "Ann") == ("hello, Ann\n", "", 0)
    assert server.wait(20) == 0
    assert judge.poll() is None  # it stays, as its handlers go with it
    running = [said for kind, said in listed(opened().path) if kind == "THREAD" and said.startswith("THRUNNING")]
    assert {re.search(r"pid:(\d+)", said)[1] for said in running[1:]} == {server_pid}


def is_up(resident, server):
    """Return whether the program `messages` runs on the target within a busy machine's patience, and has not ended."""
    resident.waits_until(lambda: "messages" in resident.processes() or server.poll() is not None)
    return server.poll() is None


@pytest.mark.thorough
def test_a_program_that_dies_or_is_slain_is_gone_on_both_sides(resident, run_program):
    assert resident.waits_until(lambda: "messages" not in resident.processes())
    for end in ("kill", "slay"):
        server = run_program("messages", is_background=True)
        assert is_up(resident, server), server.communicate()
        if end == "kill":
            server.kill()
        else:
            assert resident.answer("slay", "messages")[0] == 0
            assert server.wait(10) == 1
            assert "the target has ended this program" in server.stderr.read()
        assert resident.waits_until(lambda: "messages" not in resident.processes())


@pytest.mark.thorough
def test_a_program_that_stalls_holds_nobody_up(resident, run_program, log):
    server = run_program("messages", is_background=True)
    assert is_up(resident, server), server.communicate()
    server.send_signal(signal.SIGSTOP)
    assert run_program("periodic") == ("", "", 0)
    assert "clock follows real time" in resident.answer("pidin", "info")[1]


@pytest.mark.thorough
def test_event_handlers_that_stall_are_left_out(resident, run_program, log, tmp_path):
    (tmp_path / "stalls.c").write_text(STALLS)
    opened = log("-d1", "-n", "0")
    stalls = run_program(tmp_path / "stalls.c", is_background=True)
    assert resident.waits_until(lambda: any("event handlers took longer" in text for text in resident.said))
    assert run_program("periodic") == ("", "", 0)
    assert any(said.startswith("THRUNNING") for _, said in listed(opened().path))
    assert stalls.poll() is None


@pytest.mark.thorough
def test_handlers_of_full_buffers_are_refused_calls(run_program, tmp_path):
    (tmp_path / "calls.c").write_text(CALLS_WHEN_FULL)
    assert run_program(tmp_path / "calls.c") == ("EPERM\nEPERM\n", "", 0)


def test_a_program_signals_its_child_of_this_machine(run_program, tmp_path):
    """A recorder that gives its logger up ends it so; else the logger would keep the target for itself."""
    (tmp_path / "parent.c").write_text(PARENT)
    assert run_program(tmp_path / "parent.c") == ("ended by 15\n", "", 0)


def test_errors_have_the_numbers_of_this_machine(run_program, tmp_path):
    (tmp_path / "refused.c").write_text(REFUSED)
    said, error, code = run_program(tmp_path / "refused.c")
    assert (error, code) == ("", 0)
    assert said.splitlines() == ["EOPNOTSUPP", "ESRCH", "EBADF", "EPERM", "ETIMEDOUT", "EMSGSIZE"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [b"", b"1", b"1 NoSuchCall 3", b"1 MsgSend", b"1 MsgSend 1 xzz 5", b"1 Sleep -5", b"1 Sleep 1 2 3",
     b"1 TraceEvent 99999999999999999999999999", b"1 SchedSet 900 2", b"1 ThreadCreate 7 10 1", b"1 MutexUnlock 5",
     b"1 init x6e6f7065 1 1", b"1 MsgSend 1 x00 99999999", b"1 TimerCreate 4 1 999 0 0", b"\xff\xfe 1 2"],
)  # fmt: skip
def test_calls_that_are_none(resident, line):
    with shell.connect(resident.target.folder) as connection, connection.makefile("rwb", buffering=0) as stream:
        connection.settimeout(20)
        stream.write(b'{"do":"program","name":"usr/bin/odd"}\n')
        assert re.fullmatch(rb"0 \d+ 1\n", stream.readline())
        stream.write(line + b"\n")
        assert re.fullmatch(rb"[1-9]\d*\n", stream.readline())
        stream.write(b"1 cycles\n")
        assert int(stream.readline().split()[1]) > 0
    assert resident.waits_until(lambda: "odd" not in resident.processes())


@pytest.mark.thorough
def test_random_calls_end_nothing_but_their_program(resident):
    chance = random.Random(7)
    numbers = [0, 1, 2, 5, 255, 256, -1, 2**31, 2**40, 2**63 - 1, -(2**63), 0x40000000]
    for _ in range(usually(8, thorough=200, complete=2000)):
        with shell.connect(resident.target.folder) as connection, connection.makefile("rwb", buffering=0) as stream:
            connection.settimeout(0.2)
            stream.write(b'{"do":"program","name":"usr/bin/odd"}\n')
            for _ in range(20):
                words = [str(chance.choice(numbers)) for _ in range(chance.randrange(6))]
                words += [f"x{chance.randbytes(8).hex()}"] * chance.randrange(2)
                try:
                    stream.write(f"100 {chance.choice([*CALLS, 'exit', 'init'])} {' '.join(words)}\n".encode())
                    stream.readline()
                except OSError:  # it has ended, or waits for ever
                    break
    assert resident.waits_until(lambda: "odd" not in resident.processes())
    assert resident.answer("uname", "-r")[1] == "7.1.0\n"


SPINS = """\
#include <time.h>
#include "tracing.h"
static long long ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
int main(void)
{
    int number;
    for (number = 0; number < 20; ++number) {
        long long ran, passed; /* a processor that is shared may count its time in jumps: both clocks have to agree */
        DO(trace_logi(3, 0, 0));
        ran = ns_of(CLOCK_THREAD_CPUTIME_ID);
        passed = ns_of(CLOCK_MONOTONIC_RAW);
        while (ns_of(CLOCK_THREAD_CPUTIME_ID) - ran < 1000000 || ns_of(CLOCK_MONOTONIC_RAW) - passed < 1000000)
            continue;
    }
    return 0;
}
"""
STALLS = """\
#include <sys/neutrino.h>
#include <unistd.h>
#include "tracing.h"
static uint32_t words[20];
static event_data_t data = {.data_array = words};
static int never(event_data_t *event)
{
    for (;;)
        event->el_num = 0;
    return 1;
}
int main(void)
{
    DO(start_from_nothing());
    DO(ThreadCtl(_NTO_TCTL_IO, 0));
    DO(TraceEvent(_NTO_TRACE_ADDALLCLASSES));
    DO(TraceEvent(_NTO_TRACE_ADDEVENTHANDLER, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING, never, &data));
    DO(TraceEvent(_NTO_TRACE_START));
    pause();
    return 0;
}
"""
CALLS_WHEN_FULL = """\
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/neutrino.h>
#include <unistd.h>
#include "tracing.h"
static int pipes[2];
static const struct sigevent *full(int info)
{
    const int error = TraceEvent(_NTO_TRACE_INSERTSUSEREVENT, 1, info, 0) == -1 ? errno : 0;
    if (write(pipes[1], &error, sizeof(error)) != sizeof(error))
        perror("pipe");
    return NULL;
}
int main(void)
{
    int count, error;
    DO(pipe(pipes));
    DO(start_from_nothing());
    DO(ThreadCtl(_NTO_TCTL_IO, 0));
    DO(TraceEvent(_NTO_TRACE_ALLOCBUFFER, 4, NULL));
    DO(InterruptHookTrace(full, 0));
    DO(TraceEvent(_NTO_TRACE_ADDALLCLASSES));
    DO(TraceEvent(_NTO_TRACE_START));
    for (count = 0; count < 2; ++count) {
        DO(TraceEvent(_NTO_TRACE_INSERTSUSEREVENT, 1, 2, 3));
        DO(TraceEvent(_NTO_TRACE_FLUSHBUFFER));
        DO(read(pipes[0], &error, sizeof(error)));
        puts(error == 0 ? "fine" : strerrorname_np(error));
    }
    DO(TraceEvent(_NTO_TRACE_STOP));
    DO(TraceEvent(_NTO_TRACE_DEALLOCBUFFER));
    return 0;
}
"""
PARENT = """\
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tracing.h"
int main(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "60", (char *)NULL);
        _exit(127);
    }
    DO(kill(child, SIGTERM));
    DO(waitpid(child, &status, 0));
    printf("ended by %d\\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}
"""
COUNTS = """\
#include <stdint.h>
#include <stdio.h>
#define _NTO_TRACE_STOP 0
#define TraceEvent(mode) ((void)(mode))
typedef struct {
    unsigned el_num;
} event_data_t;
STOP_AFTER
static volatile uint32_t *looked_at(void) /* at one of its looks the other CPU has just counted the rest */
{
    static volatile uint32_t *const left = &slots_left;
    extern int looks;
    if (--looks == 0)
        *left = 0;
    return left;
}
int looks;
#define slots_left (*looked_at())
COUNT_SLOTS
#undef slots_left
int main(void)
{
    const event_data_t event = {6};
    int look;
    stop_after(1);
    for (look = 1; look < 8; ++look) {
        slots_left = 5;
        looks = look;
        count_slots(&event);
        if (slots_left > 5)
            printf("%u slots are left after look %d\\n", (unsigned)slots_left, look);
    }
    return 0;
}
"""
REFUSED = """\
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/neutrino.h>
#include <sys/trace.h>
static void say(int done)
{
    puts(done == -1 ? strerrorname_np(errno) : "fine");
}
int main(void)
{
    static char large[20000];
    const uint64_t ns = 1000000;
    struct _pulse pulse;
    const int chid = ChannelCreate(0);
    event_data_t data = {0};
    say(TraceEvent((int)_NTO_TRACE_ADDCLASS, 9999));
    say(ConnectAttach(0, 7777777, 1, 0, 0));
    say(MsgSend(77, "x", 1, NULL, 0));
    say(TraceEvent((int)_NTO_TRACE_ADDCLASSEVHANDLER, _NTO_TRACE_THREAD, say, &data));
    TimerTimeout(0, _NTO_TIMEOUT_RECEIVE, NULL, &ns, NULL);
    say(MsgReceivePulse(chid, &pulse, sizeof(pulse), NULL));
    say(MsgSend(chid, large, sizeof(large), NULL, 0));
    return 0;
}
"""


@pytest.fixture
def recorder(run_program, resident, tmp_path, monkeypatch):
    """A program that records one incident after another, of which the newest two files stay."""
    monkeypatch.setenv("PATH", f"{resident.target.folder / 'bin'}:{os.environ['PATH']}")
    rules = 'ADDALLCLASSES\nWHEN event == REC_MESSAGE THEN MARK "received"; KEEP 1 buffers; STOP\n'
    program = c_program(build(parse_rules(rules, Release.QNX_7, {}), Release.QNX_7))
    assert not program.faults
    (tmp_path / "recorder.c").write_text(program.source)
    return run_program(tmp_path / "recorder.c", str(tmp_path / "incident"), "2", is_background=True)


def is_there(resident, recorder, path):
    """Return whether a recorder has written a file within a busy machine's patience."""
    found = resident.waits_until(lambda: path.exists() or recorder.poll() is not None, 60)
    assert recorder.poll() is None, recorder.communicate(timeout=5)
    return found


@pytest.mark.thorough
def test_an_exported_program_records_one_incident_after_another(resident, recorder, tmp_path):
    """Of the files the newest two stay; each has its mark."""
    assert is_there(resident, recorder, tmp_path / "incident-0004.kev"), (resident.said, resident.answer("pidin")[1])
    os.killpg(recorder.pid, signal.SIGKILL)  # with its logger: else files go while they are read
    *_, complete, _ = sorted(tmp_path.glob("incident-*.kev"))
    assert not (tmp_path / "incident-0001.kev").exists()
    trace = open_trace(complete)
    assert any("trigger: received" in said for kind, said in listed(trace.path) if kind == "USREVENT")


def test_slots_that_two_cpus_count_at_once_do_not_run_below_zero(tmp_path):
    """Else a trace that a trigger has to end would go on for four thousand million slots."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    begin, end = ("\n".join(parts()[name].lines) for name in ("stop_after", "count_slots"))
    (tmp_path / "counts.c").write_text(COUNTS.replace("STOP_AFTER", begin).replace("COUNT_SLOTS", end))
    subprocess.run(["gcc", *FLAGS, tmp_path / "counts.c", "-o", tmp_path / "counts"], check=True)
    assert subprocess.run([tmp_path / "counts"], capture_output=True, text=True, check=False).stdout == ""


def stall(resident, program):
    """Keep a program from running until the kernel has not waited any longer for its handlers."""
    said = len(resident.said)
    for _ in range(10):
        assert resident.waits_until(lambda: resident.target.kernel.emitter.is_tracing)
        program.send_signal(signal.SIGSTOP)
        is_late = resident.waits_until(lambda: len(resident.said) > said, 3)
        program.send_signal(signal.SIGCONT)
        if is_late:  # else its trace was over meanwhile
            return
    raise AssertionError(resident.answer("pidin")[1])


@pytest.mark.thorough
def test_handlers_that_are_late_once_are_called_again(resident, recorder, tmp_path):
    """Else a recorder that its machine has once kept from running would wait for an incident for ever."""
    for _ in range(2):
        stall(resident, recorder)
        number = max([0, *(int(path.stem[-4:]) for path in tmp_path.glob("incident-*.kev"))])
        assert is_there(resident, recorder, tmp_path / f"incident-{number + 1:04}.kev"), resident.said
    assert all("recorder: its event handlers took longer than" in text for text in resident.said)
