"""Finding the compiled library, and refusing one that does not fit."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from satview.core import library, links, loading, pictures, statistics
from tools import build_core

ROOT = Path(__file__).parents[2]
CODES, CPUS = np.zeros(10, np.uint16), np.zeros(10, np.uint8)
TABLE, ROWS = np.zeros(32768, np.bool_), np.arange(4, dtype=np.uint32)
LONGS, BYTES, PIXELS = np.arange(3), np.zeros(3, np.uint8), np.zeros(3, np.uint32)
TABLES = np.zeros(2, np.uint64), np.zeros(2, np.uint32)
needs_compiler = pytest.mark.skipif(build_core.compiler() is None, reason="no C compiler here")


def test_version_shows_which_code_runs(capsys):
    from satview.__main__ import main

    assert main(["--version", "--verbose"]) == 0
    assert f"core: {library.describe()}" in capsys.readouterr().out


def copied(folder: Path) -> Path:
    """Return a checkout of links to this one, save the files of the core: these are copies, without the library."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name != "satview":
            (folder / entry.name).symlink_to(entry)
    (folder / "satview").mkdir()
    for entry in (ROOT / "satview").iterdir():
        if entry.name != "core":
            (folder / "satview" / entry.name).symlink_to(entry)
    core = folder / "satview" / "core"
    shutil.copytree(library.FOLDER, core, ignore=shutil.ignore_patterns(library.LIBRARY.name, "__pycache__"))
    return core


def refused(folder: Path) -> str:
    """Return the one sentence that the command says instead of reading a trace."""
    sample = ROOT / "sample_traces" / "vendor-one_class.kev"
    done = subprocess.run(
        [sys.executable, "-m", "satview", "info", str(sample)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert "build_core.py" in done.stderr
    return done.stderr


@pytest.mark.thorough
@needs_compiler
def test_without_a_library_that_fits_there_is_one_sentence(tmp_path):
    core = copied(tmp_path)
    target = core / library.LIBRARY.name
    assert f"{target}: the compiled core is missing" in refused(tmp_path)
    target.write_bytes(b"no library")
    assert f"{target}: the compiled core cannot be loaded" in refused(tmp_path)
    shutil.copy(library.LIBRARY, target)
    source = core / "core.h"
    source.write_text(source.read_text() + "\n/* changed */\n")
    assert f"{target}: the compiled core is older than its sources" in refused(tmp_path)


def tool(*arguments, **environment):
    """Run the tool as a build does, without packages: as in the environment of a build that has no ziglang."""
    return subprocess.run(
        [sys.executable, "-S", ROOT / "tools" / "build_core.py", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_compiler_the_build_fails_with_one_sentence(tmp_path):
    done = tool("-o", tmp_path / "x.so", PATH=str(tmp_path), CC="")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "satview cannot be built without a C compiler: install" in done.stderr
    assert tool("--has-compiler", PATH=str(tmp_path), CC="").returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_without_headers_is_none(tmp_path):
    """Debian's gcc without libc6-dev."""
    cc = tmp_path / "cc"
    cc.write_text("#!/bin/sh\nexit 1\n")
    cc.chmod(0o755)
    assert tool("--has-compiler", PATH=str(tmp_path), CC="").returncode == 1
    done = tool("-o", tmp_path / "x.so", PATH=str(tmp_path), CC="no-such-compiler")
    assert "cannot be built without a C compiler" in done.stderr


@needs_compiler
@pytest.mark.thorough
def test_compilers_have_nothing_to_say(tmp_path):
    """Here a warning is an error; for users it is not, as every compiler has others."""
    build_core.build(tmp_path / "x.so", flags=("-Werror",))
    own = next((tag for tag, target in build_core.PLATFORMS.items() if target == build_core.own_target()), None)
    if own and build_core.compiler(own):  # clang, as on Macs
        build_core.build(tmp_path / "y.so", tag=own, flags=("-Werror",))


@pytest.mark.thorough
@needs_compiler
def test_sanitizers_find_nothing(tmp_path):
    """The passes on rubbish and damaged files, in a library with address and undefined-behaviour sanitizers."""
    build_core.build(copied(tmp_path) / library.LIBRARY.name, flags=build_core.SANITIZED)
    names = subprocess.run(
        [*build_core.compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(names).is_file():
        pytest.skip("the compiler has no sanitizer library")
    program = (
        "from pathlib import Path\n"
        "from satview.core import library\n"
        f"assert library.LIBRARY.is_relative_to({str(tmp_path)!r})\n"
        "import random\n"
        "from satview.base.errors import SatviewError\n"
        "from satview.formats.kev.reader import open_kev\n"
        "from satview.linkage.chain import reading_ahead\n"
        "from satview.linkage.links import LinkKind\n"
        "from satview.linkage.chain import link_table\n"
        "from satview.linkage.transactions import transactions\n"
        "from satview.timeline.lane_tree import Timeline\n"
        "from tests.core.test_same_lines import assert_same\n"
        "from tests.core.test_same_statistics import any_schedule, assert_same as same_statistics\n"
        "from tests.fuzz import traces\n"
        f"path = Path({str(tmp_path / 't.kev')!r})\n"
        "for number in range(150):\n"
        "    path.write_bytes(traces.kev(random.Random(number)))\n"
        "    try:\n"
        "        trace = open_kev(path)\n"
        "        with reading_ahead(trace):\n"
        "            for kind in LinkKind:\n"
        "                link_table(trace, kind)\n"
        "            transactions(trace)\n"
        "        timeline = Timeline(trace)\n"
        "        timeline.build(range(min(30, len(timeline.infos))))\n"
        "        assert_same(path.read_bytes(), number)\n"
        "        same_statistics(path)\n"
        "    except SatviewError:\n"
        "        pass\n"
        "for number in range(50):\n"
        "    same_statistics(any_schedule(number).write(path))\n"
        "import numpy as np\n"
        "from satview.base.column_arrays import word_sum\n"
        "for count in range(40):\n"
        "    word_sum(np.ones(count, np.uint8)[count % 3 :])\n"
        "from tests.core.test_same_texts import test_payloads_that_are_texts_and_equal_ones as same_texts\n"
        "for number in range(20):\n"
        "    same_texts(number)\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LD_PRELOAD": names, "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "done"


def test_functions_take_what_their_sources_say():
    """Each argument is handed on as the type that the contract names, and all functions are in the table."""
    text = "".join(path.read_text() for path in sorted(library.FOLDER.glob("*.c")))
    rows = re.findall(r'^PASS\((\w+),\s+((?:"[^"]*"\s*)+),(.*?)\)$', text, re.DOTALL | re.MULTILINE)
    assert len(rows) == len(library.PASSES) == text.count("PASS(") > 40
    for name, literals, arguments in rows:
        takes = "".join(re.findall(r'"([^"]*)"', literals)).split()
        assert library.PASSES[name][1] == tuple(takes)
        used = {(macro, int(position)) for macro, position in re.findall(r"\b(\w+)\((\d+)\)", arguments)}
        numbers = {position for macro, position in used if macro == "NUMBER"}
        assert numbers == {position for position, item in enumerate(takes) if item[0] == "n"}, name
        arrays = {(macro.lower(), position) for macro, position in used if macro not in ("NUMBER", "COUNT")}
        expected = {(kind.rstrip("?"), position) for position, item in enumerate(takes) if item[0] != "n"
                    for kind in item.split(":")[0].split("|")}  # fmt: skip
        assert arrays == expected, name


def test_sums_are_named_as_their_structures_are():
    text = (library.FOLDER / "scheduling.c").read_text()

    def members(name):
        body = re.sub(r"/\*.*?\*/", "", re.search(rf"struct {name} {{(.*?)}};", text, re.DOTALL)[1], flags=re.DOTALL)
        return re.findall(r"(\w+)(?=[,;])", body)

    names = {"state_sum": statistics.STATE_SUMS, "run_sum": statistics.RUN_SUMS, "cpu_sum": statistics.CPU_SUMS}
    assert {name: tuple(members(name)) for name in names} == names
    assert members("thread").index("events") == statistics._EVENTS_WORD


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((CODES, CPUS), "2 arguments where 5 are taken"),
        ((ROWS, ROWS, ROWS, ROWS, ROWS, ROWS), "argument 0 is an array of uint32, not u2:n"),
        ((CODES, CPUS, TABLE, ROWS, ROWS, ROWS), "6 arguments where 5 are taken"),
        ((CODES, 5, TABLE, ROWS, ROWS), "argument 1 is a number, not u1:n"),
        ((CODES, None, TABLE, ROWS, ROWS), "argument 1 is none, not u1:n"),
        ((CODES, CPUS[:5], TABLE, ROWS, ROWS), "argument 1 is 5 elements, not u1:n"),
        ((CODES, CPUS, TABLE[1:], ROWS, ROWS), "argument 2 is 32767 elements, not u1:32768"),
        ((CODES, CPUS, TABLE, ROWS.repeat(2)[::2], ROWS), "argument 3 is parts of an array of uint32, not u4:r"),
        ((CODES, CPUS, TABLE, ROWS + 10, ROWS), "out of range"),
    ],
)
def test_a_call_that_breaks_a_contract_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=f"last_before: .*{reason}"):
        library.call("last_before", *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("share_index", (LONGS, BYTES, 1, LONGS, LONGS, 1, LONGS), "argument 3 is 3 elements, not i8:64"),
        ("covered", (*LONGS[None].repeat(2, 0), LONGS.view(np.uint64), LONGS, LONGS, LONGS), r"not u8:g\+1"),
        ("hatch", (2, 2, PIXELS, BYTES, 0, 1), "argument 2 is 3 elements, not u4:wh"),
        ("hatch", (3, 1, PIXELS, BYTES, 0, 1), "argument 3 is 3 elements, not u1:8c"),
        ("numbers", (LONGS.view(np.uint64), 0, *TABLES, 1, 5, *TABLES[:1], 1, LONGS[:1], PIXELS[:2]),
         "argument 9 is 2 elements, not u4:>n"),
        ("numbers", (LONGS.view(np.uint64), 0, *TABLES, 3, 5, *TABLES[:1], 1, LONGS[:1], PIXELS), "out of range"),
        ("shares", (LONGS, None, PIXELS, BYTES, 9, 1, LONGS, LONGS, 1, LONGS, LONGS, LONGS, LONGS), "not i8:64"),
    ],
)  # fmt: skip
def test_lengths_depend_on_each_other(name, arguments, reason):
    with pytest.raises(ValueError, match=reason):
        library.call(name, *arguments)


def test_another_byte_order_is_refused():
    with pytest.raises(ValueError, match="argument 0 is an array of >u4, not u4:n"):
        library.call("positions", PIXELS.astype(">u4"), PIXELS, LONGS)


def test_the_reference_has_what_satview_calls():
    """Nothing of the core is compared with itself."""
    from satview.core import statistics
    from tests.core.reference.replacing import numpy_passes, replacements

    modules = (pictures, links, loading, links, pictures, statistics, loading, loading)
    public = {
        value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public == {value for value in replacements() if inspect.isfunction(value)}
    with numpy_passes():
        for module in modules:
            assert not public & {value for value in vars(module).values() if inspect.isfunction(value)}
