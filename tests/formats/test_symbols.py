"""Addresses become functions, files and lines; what cannot be known stays a number."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from satview.base.errors import UsageError
from satview.events import wire
from satview.formats.axis import Member, trace_on_axis
from satview.formats.elf import Binary
from satview.formats.outside_names import Place, add_symbols, symbols_of
from tests.helpers.elf import AARCH64, ARM, write_elf
from tests.helpers.extent import usually
from tests.helpers.kev import TraceBuilder

FUNCTIONS = {"plan": (0x8049000, 0x100), "search": (0x8049100, 0), "store": (0x8049380, 0x20)}
SOURCE = """int check(int a) { return a + 1; }
int search(int a)
{
    return check(a) + check(a + 2);
}
int main(void) { return search(3); }
"""


def trace_of(tmp_path: Path, *names: str):
    builder = TraceBuilder().time_event(0)
    for at, name in enumerate(names):
        builder.process_name(5 + at, 7 + at, name)
    return builder.state("RUNNING", 50, 7, 1).open(tmp_path)


@pytest.mark.parametrize(("bits", "order"), [(64, "<"), (32, "<"), (32, ">")])
def test_functions_of_a_program(bits, order, tmp_path):
    write_elf(tmp_path / "build" / "planner", FUNCTIONS, bits=bits, order=order)
    symbols = add_symbols(trace_of(tmp_path, "usr/bin/planner"), tmp_path / "build")
    places = [
        symbols.text(1, address) for address in (0x8049000, 0x8049010, 0x8049100, 0x804937F, 0x8049390, 0x80493A0)
    ]
    # What has no size goes on up to the next function; behind the end of the last one nothing is known.
    assert places == ["plan", "plan+0x10", "search", "search+0x27f", "store+0x10", ""]
    assert (symbols.function_count, symbols.notes) == (3, ())
    assert [symbols.text(1, address) for address in (0, -5, 1 << 64)] == ["", "", ""]


def test_the_lowest_bit_of_an_address_is_the_instruction_set_on_arm_only(tmp_path):
    for machine, start in ((ARM, 0x8049000), (0, 0x8049001)):
        path = write_elf(tmp_path / "x" / "planner", {"plan": (0x8049001, 16)}, bits=32, machine=machine)
        assert Binary(path).place(start)[:2] == ("plan", 0)


def test_the_program_whose_folders_are_most_like_the_name_is_taken(tmp_path):
    write_elf(tmp_path / "x" / "usr" / "bin" / "planner.sym", {"right": (0x8049000, 16)})
    write_elf(tmp_path / "x" / "test" / "planner", {"wrong": (0x8049000, 16)})
    symbols = add_symbols(trace_of(tmp_path, "usr/bin/planner"), tmp_path / "x")
    assert symbols.text(1, 0x8049000) == "right"


def test_of_two_that_are_alike_none_is_taken(tmp_path):
    for folder in ("a", "b"):
        write_elf(tmp_path / "x" / folder / "planner", FUNCTIONS)
    write_elf(tmp_path / "x" / "reader", FUNCTIONS)
    symbols = add_symbols(trace_of(tmp_path, "usr/bin/planner", "usr/bin/reader"), tmp_path / "x")
    assert (symbols.text(1, 0x8049000), symbols.text(2, 0x8049000)) == ("", "plan")
    assert "both have that name; neither is used" in symbols.notes[0]


def test_the_kernel_names_addresses_of_every_process(tmp_path):
    write_elf(tmp_path / "x" / "procnto-smp-instr", {"intr_entry": (0xF0001000, 64)})
    builder = TraceBuilder().time_event(0).process_name(5, 1, "boot/procnto-smp-instr").process_name(6, 7, "planner")
    trace = builder.state("RUNNING", 50, 7, 1).open(tmp_path)
    symbols = add_symbols(trace, tmp_path / "x")
    assert symbols.text(trace.processes.row(7), 0xF0001004) == "intr_entry+0x4"


def test_programs_of_files_on_an_axis_are_those_of_each_file(tmp_path):
    """`planner` is in both files, the kernel in the second one only; of an unknown process nothing is known."""
    write_elf(tmp_path / "x" / "planner", FUNCTIONS)
    write_elf(tmp_path / "x" / "procnto-smp-instr", {"intr_entry": (0xF0001000, 64)})
    host = trace_of(tmp_path, "usr/bin/planner")
    builder = TraceBuilder().time_event(0).process_name(5, 1, "boot/procnto-smp-instr").process_name(6, 7, "planner")
    guest = builder.state("RUNNING", 50, 7, 1).open(tmp_path)
    both = trace_on_axis(tmp_path / "x.sataxis", [Member("host", host), Member("guest", guest)])
    symbols = add_symbols(both, tmp_path / "x")
    rows = [both.processes.names.index(name) for name in ("", "host:planner", "guest:planner")]
    assert [symbols.text(row, 0x8049000) for row in rows] == ["", "plan", "plan"]
    assert [symbols.text(row, 0xF0001004) for row in rows] == ["", "", "intr_entry+0x4"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="none has the name of a process"):
        add_symbols(both, tmp_path / "empty")


def test_a_program_that_may_lie_anywhere(tmp_path):
    """A library is at 0x78000000 as MAPNAME says; a program of which no event says where it is stays numbers."""
    write_elf(tmp_path / "x" / "libplan.so", {"helper": (0x1100, 64)}, base=0x1000, is_movable=True)
    write_elf(tmp_path / "x" / "planner", FUNCTIONS, is_movable=True)
    builder = TraceBuilder().time_event(0).process_name(5, 7, "usr/bin/planner")
    name = b"/usr/lib/libplan.so\0"
    words = [7, 0x78000000, 0x3000, *(int.from_bytes(name[at : at + 4], "little") for at in range(0, len(name), 4))]
    trace = builder.event(wire.code(wire.WireClass.SYSTEM, 8), 20, words).state("RUNNING", 50, 7, 1).open(tmp_path)
    symbols = add_symbols(trace, tmp_path / "x")
    assert symbols.place(1, 0x78000110) == Place("helper", 0x10)
    assert symbols.text(1, 0x8049000) == ""
    assert "no event MAPNAME or MMAP says where" in symbols.notes[0]


@pytest.mark.thorough
def test_lines_come_from_what_the_compiler_wrote(tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no C compiler; on Debian: apt-get install gcc libc6-dev")
    (tmp_path / "plan.c").write_text(SOURCE)
    command = [gcc, "-g", "-O0", "-no-pie", "-o", str(tmp_path / "planner"), str(tmp_path / "plan.c")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this compiler makes no programs for fixed addresses")
    binary = Binary(tmp_path / "planner")
    starts = {name: Place(*binary.place(address)) for name, address in _addresses(tmp_path / "planner").items()}
    assert [starts[name].source for name in ("check", "search", "main")] == ["plan.c:1", "plan.c:3", "plan.c:6"]


def _addresses(path: Path) -> dict[str, int]:
    listed = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in listed]
    return {word[2]: int(word[0], 16) for word in words if len(word) == 3 and word[1] == "T"}


def test_what_cannot_be_used_is_a_sentence(tmp_path):
    trace = trace_of(tmp_path, "usr/bin/planner")
    with pytest.raises(UsageError, match="there is no such folder"):
        add_symbols(trace, tmp_path / "nothing")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "planner").write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match="no program of this trace is in it: none has the name of a process"):
        add_symbols(trace, tmp_path / "x")
    (tmp_path / "x" / "planner").write_bytes(b"\x7fELF\2\1\1")
    with pytest.raises(UsageError, match="this is not a complete ELF file"):
        add_symbols(trace, tmp_path / "x")
    assert symbols_of(trace) is None


@pytest.mark.parametrize(("machine", "is_used"), [("x86_64", False), ("armle-v7", True), ("QEMU_virt", True)])
def test_a_program_for_another_processor_is_not_used(machine, is_used, tmp_path):
    builder = TraceBuilder().time_event(0).process_name(5, 7, "usr/bin/planner").state("RUNNING", 50, 7, 1)
    trace = builder.open(tmp_path, (("ARCHITECTURE", machine),))
    write_elf(tmp_path / "x" / "planner", FUNCTIONS, machine=AARCH64)
    if is_used:
        assert add_symbols(trace, tmp_path / "x").text(1, 0x8049000) == "plan"
    else:
        with pytest.raises(UsageError, match=r"x/planner: it is for AARCH64, and the trace is from x86_64"):
            add_symbols(trace, tmp_path / "x")


def test_a_stripped_program_says_so_and_gives_way_to_the_one_with_symbols(tmp_path):
    trace, folder = trace_of(tmp_path, "usr/bin/planner"), tmp_path / "x"
    write_elf(folder / "planner", {})
    with pytest.raises(UsageError, match=r"x/planner: it names no functions, as it is stripped; its addresses stay"):
        add_symbols(trace, folder)
    write_elf(folder / "planner.sym", FUNCTIONS)
    symbols = add_symbols(trace, folder)
    assert (symbols.text(1, 0x8049000), symbols.notes) == ("plan", ())
    write_elf(folder / "planner", {"exported": (0x8049000, 16)})
    assert add_symbols(trace, folder).text(1, 0x8049000) == "plan", "the one with more functions"


def test_a_pipe_in_the_folder_is_not_opened(tmp_path):
    write_elf(tmp_path / "x" / "planner", FUNCTIONS)
    os.mkfifo(tmp_path / "x" / "pipe")
    assert add_symbols(trace_of(tmp_path, "usr/bin/planner"), tmp_path / "x").text(1, 0x8049000) == "plan"


@pytest.mark.thorough
def test_damaged_programs_end_in_a_sentence(tmp_path):
    """Every byte of headers and tables may be anything: never a traceback, a hang or much memory."""
    whole = write_elf(tmp_path / "planner", FUNCTIONS).read_bytes()
    chance, named = random.Random(3), 0
    for number in range(usually(150, thorough=600, complete=5000)):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(4, len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        path = tmp_path / f"{number}"
        path.write_bytes(data[: chance.randrange(4, len(data) + 1)] if chance.random() < 0.2 else data)
        try:
            named += Binary(path).place(0x8049010) is not None
        except UsageError as error:
            assert "this is not a complete ELF file" in str(error)
    assert named > 20
