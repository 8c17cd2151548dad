from __future__ import annotations

import ast
import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import satview
from satview.base import new_file
from satview.base.errors import WriteError
from satview.base.new_file import NewFile, begin_growing, find_target, new_text_file, write_file
from satview.base.process import Ended

POSIX = pytest.mark.skipif(os.name == "nt", reason="devices, signals and locks of POSIX systems")


def test_new_file_has_its_bytes_and_its_neighbours_are_untouched(tmp_path):
    (tmp_path / "other").write_bytes(b"other")
    write_file(tmp_path / "a", b"1234")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"1234", "other": b"other"}


def test_old_file_shows_until_the_new_one_is_complete(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with NewFile(target) as file:
        file.stream.write(b"new")
        file.stream.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert file.stream.closed


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_any_exception_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with pytest.raises(error), NewFile(target) as file:  # noqa: PT012
        file.stream.write(b"new")
        raise error
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_error_of_the_system_names_the_file(tmp_path):
    with pytest.raises(WriteError, match=r"a: No space left on device"), NewFile(tmp_path / "a"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keeps_part", [True, False])
@pytest.mark.parametrize("older", [True, False])
def test_part_of_a_capture_is_kept_where_no_older_file_is(tmp_path, keeps_part, older):
    target = tmp_path / "a"
    if older:
        target.write_bytes(b"old")
    with pytest.raises(WriteError), NewFile(target, keeps_part=keeps_part) as file:  # noqa: PT012
        file.stream.write(b"half")
        raise OSError(errno.EIO, "broken")
    assert file.has_name == (keeps_part and not older)
    expected = {"a": b"old"} if older else {"a": b"half"} if keeps_part else {}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected


def test_growing_file_has_its_name_at_once_and_an_open_older_one_lives_on(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with target.open("rb") as older:
        with NewFile(target, is_buffered=False) as file:
            file.stream.write(b"header")
            file.publish()
            assert target.read_bytes() == b"header"
            file.stream.write(b" rest")
            assert target.read_bytes() == b"header rest"
        assert older.read() == b"old"
    descriptor = begin_growing(target)
    os.write(descriptor, b"records")
    os.close(descriptor)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"records")]


@POSIX
def test_permissions_of_the_old_file_stay(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(0o640)
    write_file(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@POSIX
def test_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@POSIX
def test_what_is_read_is_refused_under_every_name(tmp_path):
    trace = tmp_path / "t.kev"
    trace.write_bytes(b"trace")
    (tmp_path / "symbolic").symlink_to("t.kev")
    (tmp_path / "hard").hardlink_to(trace)
    for name in ("t.kev", "symbolic", "hard", "../" + tmp_path.name + "/t.kev"):
        with pytest.raises(WriteError, match="is being read"):
            find_target(tmp_path / name, [trace])
    with pytest.raises(WriteError, match="is being read"):
        find_target(trace, [tmp_path])  # a folder of thread traces
    with trace.open("rb") as file, pytest.raises(WriteError, match="is being read"):
        find_target(trace, [file.fileno()])
    find_target(tmp_path / "new", [trace, tmp_path])


@POSIX
def test_folder_that_is_missing_is_not_cut_off_with_the_dots_behind_it(tmp_path):
    """The system finds nothing in gone/.., while realpath() takes it for the folder that both are in."""
    trace = tmp_path / "t.kev"
    trace.write_bytes(b"trace")
    (tmp_path / "link").symlink_to("gone/../t.kev")
    (tmp_path / "dead").symlink_to("gone")
    for name in ("gone/../t.kev", "gone/../new", "gone/..", "link", "dead/../t.kev", "gone/a/../../t.kev"):
        with pytest.raises(WriteError, match=r"there is no folder '.*gone|there is no folder '.*dead"):
            write_file(tmp_path / name, b"new")
    with pytest.raises(WriteError, match="Not a directory"):
        write_file(tmp_path / "t.kev" / ".." / "t.kev", b"new")
    assert trace.read_bytes() == b"trace"
    assert {path.name for path in tmp_path.iterdir()} == {"t.kev", "link", "dead"}
    (tmp_path / "gone").mkdir()
    write_file(tmp_path / "link", b"new")
    assert trace.read_bytes() == b"new"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs names of open files")
def test_name_of_an_open_file_below_proc(tmp_path):
    trace = tmp_path / "t.kev"
    trace.write_bytes(b"trace")
    with trace.open("rb") as file:
        for name in (f"/proc/self/fd/{file.fileno()}", f"/proc/thread-self/fd/{file.fileno()}"):
            for streams in (False, True):
                with pytest.raises(WriteError, match="is being read"):
                    find_target(name, [trace], streams=streams)
        trace.unlink()
        with pytest.raises(WriteError, match="no name in a folder"):
            find_target(f"/proc/self/fd/{file.fileno()}")
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_devices_folders_and_pipes_are_refused_unless_named_for_a_stream(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", "/dev/full", tmp_path / "pipe"):
        with pytest.raises(WriteError, match="device or a pipe"):
            write_file(path, b"x")
        find_target(path, streams=True)
    for path in (tmp_path, "", "/"):
        with pytest.raises(WriteError, match="folder"):
            write_file(path, b"x", streams=True)
    with pytest.raises(WriteError, match="No space left"):
        write_file("/dev/full", b"x", streams=True)
    with pytest.raises(WriteError, match="there is no folder"):
        write_file(tmp_path / "gone" / "a", b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@POSIX
def test_pipe_gets_the_bytes(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, "text", streams=True)
    reader.join(10)
    assert got == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_long_names_find_a_temporary(tmp_path):
    name = "\N{GREEK SMALL LETTER ALPHA}" * 120
    write_file(tmp_path / name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_text_has_line_feeds_and_utf_8(tmp_path):
    with new_text_file(tmp_path / "a", errors="surrogateescape") as file:
        file.write("\N{MICRO SIGN}\n\udc80")
    assert (tmp_path / "a").read_bytes() == b"\xc2\xb5\n\x80"


_KILLED = """
    import os, sys
    from satview.base import new_file
    left = int(sys.argv[2])
    def counted(real, kills_after):
        def call(*args, **named):
            global left
            left -= 1
            if left == 0 and not kills_after: os.kill(os.getpid(), 9)
            result = real(*args, **named)
            if left == 0: os.kill(os.getpid(), 9)
            return result
        return call
    for name in ("open", "fsync", "replace", "fdopen", "close"):
        setattr(os, name, counted(getattr(os, name), sys.argv[3] == "after"))
    with new_file.NewFile(sys.argv[1], is_buffered=False) as file:
        write = counted(file.stream.write, sys.argv[3] == "after")
        for _ in range(4): write(b"new!" * 1000)
"""


@pytest.mark.thorough
@POSIX
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_step_there_is_the_old_file_or_the_new_one(tmp_path, moment):
    target, new = tmp_path / "a", b"new!" * 4000
    seen = set()
    for step in range(1, 20):
        target.write_bytes(b"old")
        code = [sys.executable, "-c", textwrap.dedent(_KILLED), str(target), str(step), moment]
        done = subprocess.run(code, check=False, timeout=60).returncode
        seen.add(target.read_bytes())
        if done == 0:
            break
        assert done == -signal.SIGKILL
        others = [path.name for path in tmp_path.iterdir() if path != target]
        assert len(others) <= 1
        assert all(name.startswith(".a.") and name.endswith(".satview-tmp") for name in others)
    assert done == 0
    assert step > 6
    assert seen == {b"old", new}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]  # the last, complete write removed what was left


@POSIX
def test_temporary_of_a_living_writer_stays(tmp_path):
    with NewFile(tmp_path / "a") as file:
        file.stream.write(b"first")
        write_file(tmp_path / "a", b"second")
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]


@POSIX
def test_full_disk_keeps_the_old_file(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    code = """
        import resource, signal, sys
        from satview.base.errors import WriteError
        from satview.base.new_file import write_file
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try: write_file(sys.argv[1], b"x" * 100_000)
        except WriteError as error: print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), target], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "a: File too large\n"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_folder_that_vanishes_while_a_file_is_written(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    file = NewFile(folder / "a")
    file.stream.write(b"x")
    folder.rename(tmp_path / "away")
    with pytest.raises(WriteError, match="a: No such file or directory"):
        file.commit()
    assert not file.has_name


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_folder_that_takes_no_files():
    with pytest.raises(WriteError):
        write_file("/proc/self/a", b"x")
    with pytest.raises(WriteError):
        begin_growing("/proc/self/a")


_WRITING_NAMES = {"write_text", "write_bytes", "tofile", "savefig", "savez", "mkstemp", "NamedTemporaryFile"}
_STREAMS_OF_QT = {"QSaveFile", "QFile", "QSettings", "QImageWriter", "QTemporaryFile"}


def _writes(call: ast.Call) -> bool:
    """Return whether a call may write a file by itself."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [
        arg.value
        for arg in [*call.args, *(word.value for word in call.keywords)]
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    if name == "open":
        return any(text and set(text) <= set("rwxab+tU") and set(text) & set("wxa+") for text in texts) or (
            isinstance(call.func, ast.Attribute)
            and ast.unparse(call.func) == "os.open"
            and "O_RDONLY" not in ast.unparse(call)
        )
    if name in ("replace", "rename"):
        return ast.unparse(call.func).startswith("os.") or (len(call.args) == 1 and not call.keywords)
    if name == "save":
        return bool(call.args) and "buffer" not in ast.unparse(call.args[0])
    return name in _WRITING_NAMES | _STREAMS_OF_QT


@pytest.mark.thorough
def test_no_writer_outside_base():
    root = Path(satview.__file__).parent
    allowed = {
        "threadtrace/log.py: os.open(self.path, _APPEND, 438)",  # appends to what `begin_growing` began
        "tables/query_child.py: open(os.devnull, 'wb')",
        # Never written to: whoever locks it has the folder.
        "target/simulated.py: os.open(self.folder / 'lock', os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 384)",
    }
    found = set()
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        if not name.startswith("base/"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
            found |= {f"{name}: {ast.unparse(call)}" for call in calls if _writes(call)}
    assert found == allowed


def test_checker_sees_writers():
    for text in (
        'open(p, "w")',
        'p.open("ab")',
        "p.write_text(t)",
        "os.open(p, os.O_WRONLY)",
        "os.replace(a, b)",
        "a.replace(b)",
        "picture.save(name)",
        "QSaveFile(p)",
        'open(p, mode="x")',
    ):
        assert _writes(ast.parse(text).body[0].value), text
    for text in ('open(p, "rb")', "os.open(p, os.O_RDONLY)", 'text.replace("a", "b")', "painter.save()", "s.open(p)"):
        assert not _writes(ast.parse(text).body[0].value), text


@POSIX
def test_permissions_of_new_files_and_of_those_being_written(tmp_path):
    mask = os.umask(0o027)
    try:
        write_file(tmp_path / "new", b"x")
        secret = tmp_path / "secret"
        secret.write_bytes(b"old")
        secret.chmod(0o604)
        with NewFile(secret) as file:
            (part,) = tmp_path.glob(".secret.*")
            assert stat.S_IMODE(part.stat().st_mode) == 0o604
            file.stream.write(b"new")
        os.close(begin_growing(tmp_path / "growing"))
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "growing").stat().st_mode) == 0o640
    assert stat.S_IMODE(secret.stat().st_mode) == 0o604


@POSIX
def test_leftovers_of_this_file_alone_go(tmp_path):
    names = [".a.0123abcd.satview-tmp", ".a.0123abc.satview-tmp", ".a.0123abcg.satview-tmp", ".b.0123abcd.satview-tmp",
             ".a.0123abcd.satview-tmp2", "x.a.0123abcd.satview-tmp", ".axb.0123abcd.satview-tmp"]  # fmt: skip
    for name in names:
        (tmp_path / name).write_bytes(b"part")
    (tmp_path / ".a.89abcdef.satview-tmp").symlink_to(tmp_path / names[1])
    (tmp_path / ".a.99abcdef.satview-tmp").mkdir()
    write_file(tmp_path / "a", b"x")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a", *names[1:], ".a.89abcdef.satview-tmp", ".a.99abcdef.satview-tmp"}
    write_file(tmp_path / "a.b", b"x")  # a dot of a name is a dot
    assert ".axb.0123abcd.satview-tmp" in {path.name for path in tmp_path.iterdir()}


@POSIX
def test_leftover_that_is_read_stays(tmp_path):
    """Somebody saves what a killed capture has left, under the name that it should have had."""
    left = tmp_path / ".a.0123abcd.satview-tmp"
    left.write_bytes(b"part")
    write_file(tmp_path / "a", b"saved", reading=iter([left]))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {left.name: b"part", "a": b"saved"}
    write_file(tmp_path / "a", b"saved")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_publishing_twice_and_discarding_later_leave_the_file(tmp_path):
    with pytest.raises(RuntimeError), NewFile(tmp_path / "a") as file:  # noqa: PT012
        assert not file.has_name
        file.stream.write(b"one")
        file.publish()
        assert file.has_name
        assert (tmp_path / "a").read_bytes() == b"one"
        file.publish()
        file.stream.write(b" two")
        raise RuntimeError
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one two")]
    assert file.stream.closed


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_file_system_that_cannot_sync_is_no_failure_but_a_disk_that_does_not_is(tmp_path, monkeypatch, error):
    def fails(_descriptor: int) -> None:
        raise OSError(error, os.strerror(error))

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fails)
    if error == errno.EIO:
        with pytest.raises(WriteError, match="a: Input/output error"):
            write_file(tmp_path / "a", b"new")
    else:
        write_file(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == (b"old" if error == errno.EIO else b"new")


@POSIX
def test_what_is_synchronised(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_file(tmp_path / "a", b"x")
    assert synced == [False, True]  # the file, then the name
    with NewFile(tmp_path / "b", is_durable=False) as file:
        file.stream.write(b"x")
    assert synced == [False, True, True]


@POSIX
def test_bytes_of_an_unbuffered_file_are_there_at_once(tmp_path):
    with NewFile(tmp_path / "a", is_buffered=False) as file:
        file.stream.write(b"12345")
        (part,) = tmp_path.glob(".a.*")
        assert part.read_bytes() == b"12345"
    with NewFile(tmp_path / "b") as file:
        file.stream.write(b"12345")
        (part,) = tmp_path.glob(".b.*")
        assert part.read_bytes() == b""  # one call to the system for many small writes


def test_an_empty_part_of_a_capture_is_not_kept(tmp_path):
    with pytest.raises(WriteError), NewFile(tmp_path / "a", keeps_part=True):
        raise OSError(errno.EIO, "broken")
    with pytest.raises(KeyboardInterrupt), NewFile(tmp_path / "a", keeps_part=True) as file:  # noqa: PT012
        file.stream.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_pipe_that_nobody_reads_any_more_is_told_as_such(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), NewFile(f"/dev/fd/{writing}", streams=True) as file:
        file.stream.write(b"x")
    assert file.is_stream
    assert not file.has_name
    os.close(writing)


def test_growing_file_takes_records_at_its_end(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    descriptor = begin_growing(tmp_path / "a")
    other = os.open(tmp_path / "a", os.O_WRONLY | os.O_APPEND)
    for number, each in enumerate((descriptor, other, descriptor)):
        os.write(each, b"%d" % number)
    os.close(descriptor)
    os.close(other)
    assert (tmp_path / "a").read_bytes() == b"012"
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="folder"):
        begin_growing(tmp_path / "folder")


@pytest.mark.parametrize("length", [180, 181, 255])
def test_temporaries_of_long_names_are_names(tmp_path, length):
    name = "n" * length
    with NewFile(tmp_path / name):
        (part,) = tmp_path.iterdir()
        assert len(part.name) <= 255
        assert part.name.startswith("." + "n" * (180 if length == 180 else 100))
        assert ("~" in part.name) == (length > 180)


def test_newlines_and_errors_of_text_are_those_asked_for(tmp_path):
    with new_text_file(tmp_path / "a", newline="\r\n") as file:
        file.write("1\n2\n")
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n"
    with pytest.raises(UnicodeEncodeError), new_text_file(tmp_path / "a") as file:
        file.write("\udc80")
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n"
    with pytest.raises(WriteError, match="is being read"), new_text_file(tmp_path / "a", reading=[tmp_path / "a"]):
        pytest.fail("it was begun")
    with pytest.raises(WriteError, match="is being read"):
        write_file(tmp_path / "a", "x", reading=[tmp_path / "a"])


@POSIX
def test_a_new_file_may_be_read_and_written_by_all_whom_the_mask_lets(tmp_path):
    mask = os.umask(0)
    try:
        write_file(tmp_path / "a", b"x")
        os.close(begin_growing(tmp_path / "b"))
    finally:
        os.umask(mask)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o666, 0o666]


@POSIX
def test_text_goes_to_devices_only_where_they_are_named_for_a_stream():
    with pytest.raises(WriteError, match="device or a pipe"), new_text_file("/dev/null"):
        pytest.fail("it was begun")
    with pytest.raises(WriteError, match="device or a pipe"):
        NewFile("/dev/null")
    with new_text_file("/dev/null", streams=True) as file:
        file.write("x")


@POSIX
def test_what_was_printed_before_comes_before_what_is_written_to_standard_output():
    code = "from satview.base.new_file import write_file as write; print(1); write('-', 'two', streams=True); print(3)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"1\ntwo3\n"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open descriptors")
def test_no_descriptor_is_left_open(tmp_path):
    (tmp_path / ".a.0123abcd.satview-tmp").write_bytes(b"part")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    write_file(tmp_path / "a", b"x")
    with pytest.raises(RuntimeError), NewFile(tmp_path / "a"):
        raise RuntimeError
    with pytest.raises(WriteError):
        NewFile(tmp_path / "gone" / "a")
    with pytest.raises(WriteError):
        begin_growing(tmp_path / "gone" / "a")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("error", [OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt()])
def test_a_growing_file_that_cannot_take_its_name_leaves_the_old_one(tmp_path, monkeypatch, error):
    (tmp_path / "a").write_bytes(b"old")
    before = sorted(os.listdir("/dev/fd")) if Path("/dev/fd").exists() else []  # noqa: PTH208

    def fails(_part: Path, _target: Path) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(WriteError if isinstance(error, OSError) else KeyboardInterrupt):
            begin_growing(tmp_path / "a")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]
    assert before == (sorted(os.listdir("/dev/fd")) if before else [])  # noqa: PTH208


@POSIX
def test_what_others_may_not_read_they_may_never_read(tmp_path, monkeypatch):
    secret, modes, real = tmp_path / "secret", [], os.open
    secret.write_bytes(b"old")
    secret.chmod(0o640)

    def spied(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        modes.extend([mode] if flags & os.O_CREAT else [])
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", spied)
    write_file(secret, b"new")
    assert modes == [0o600]  # until it has the permissions of the old one
    assert stat.S_IMODE(secret.stat().st_mode) == 0o640


@POSIX
def test_where_files_cannot_be_locked_leftovers_stay(tmp_path, monkeypatch):
    """Whose they are is not known there; writing works."""

    def fails(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", fails)
    (tmp_path / ".a.0123abcd.satview-tmp").write_bytes(b"part")
    write_file(tmp_path / "a", b"x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"x", ".a.0123abcd.satview-tmp": b"part"}  # fmt: skip


@POSIX
def test_on_windows_a_file_is_closed_before_it_takes_its_name(tmp_path, monkeypatch):
    """No locks, no folders brought to the disk; what is left and not open goes, as only that can be removed there."""
    monkeypatch.setattr("satview.base.new_file._IS_WINDOWS", True)
    (tmp_path / ".a.0123abcd.satview-tmp").write_bytes(b"part")
    synced, closed, replace = [], [], os.replace
    file = NewFile(tmp_path / "a")
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    monkeypatch.setattr(os, "replace", lambda *paths: closed.append(file.stream.closed) or replace(*paths))
    file.stream.write(b"x")
    file.commit()
    assert (synced, closed) == ([False], [True])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"x"}


@POSIX
def test_a_name_that_another_writer_has_is_not_taken(tmp_path, monkeypatch):
    """Nor one that leads elsewhere."""
    (tmp_path / ".a.00000003.satview-tmp").symlink_to("victim")
    numbers = iter([3, 1, 1, 1, 2])
    monkeypatch.setattr(os, "urandom", lambda _count: bytes((0, 0, 0, next(numbers))))
    with NewFile(tmp_path / "a"), NewFile(tmp_path / "a"):
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == [f".a.0000000{number}.satview-tmp" for number in (1, 2, 3)]


@POSIX
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_growing_file_that_cannot_take_its_name_leaves_nothing(tmp_path, monkeypatch, is_gone):
    """The temporary file may be gone by then, as somebody cleans the folder."""

    def fails(part: Path, _target: Path) -> None:
        if is_gone:
            part.unlink()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(WriteError, match="a: Input/output error"):
        begin_growing(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # streams are closed by the collector
@pytest.mark.parametrize(
    "write",
    [
        lambda target: new_file.write_file(target, "new"),
        lambda target: os.close(new_file.begin_growing(target)),
        lambda target: _fill(target.with_name("folder")),
    ],
)
def test_a_signal_at_any_instruction_leaves_no_temporary_once_the_process_ends(tmp_path, write):
    """Raise `Ended` before one instruction of the writing module after another, until a run reaches its end."""

    def ended_at_each():
        for instruction in range(10_000):
            folder = tmp_path / str(instruction)
            folder.mkdir()
            try:
                with _raised_before(instruction):
                    write(folder / "out.txt")
            except Ended:
                new_file.remove_unnamed()
                assert {path.name for path in folder.iterdir()} <= {"out.txt", "folder"}
            else:
                return instruction
        return -1

    # In a thread of its own: where no signal can come, as at the end of a handler, Python forgets to leave the handler.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(ended_at_each).result() > 100
    assert not new_file._unnamed


def _fill(folder):
    with new_file.new_folder(folder) as part:
        (part / "a").write_text("a")


@contextlib.contextmanager
def _raised_before(instruction):
    left = instruction

    def trace(frame, event, _argument):
        nonlocal left
        if frame.f_code.co_filename != new_file.__file__ or frame.f_code is new_file._remove.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Ended(signal.SIGHUP)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
