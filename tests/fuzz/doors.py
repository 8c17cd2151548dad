"""Targets of what other programs and other days left: sessions, axis files, the cache, the server, the instance."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
from PySide6.QtCore import QObject
from PySide6.QtNetwork import QLocalSocket

from satview.base.column_arrays import _HEAD, MAGIC, read_arrays
from satview.base.errors import TraceFormatError, UsageError
from satview.base.shared_file import DamagedFileError, parsed_json
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from satview.formats.registry import open_trace
from satview.gui.running_instance import SWITCH, InstanceServer, instance_name
from satview.session.loading import loading_tasks
from satview.session.loading.loaded_trace import LoadedTrace
from satview.session.loading.loading_tasks import TraceCache
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.trace_link import TraceLink
from satview.session.trace_state import (
    filter_state,
    lanes_state,
    restore_filter,
    restore_lanes,
    restore_selection,
    restore_view,
    selection_state,
    view_state,
)
from satview.session.workspace_file import WorkspaceState, from_json, to_json
from satview.store.axis import SUFFIX
from satview.timeline.lane_tree import Timeline
from tests.fuzz.mutation import Decisions
from tests.fuzz.texts import the_scene
from tests.fuzz.windows import application, json_file
from tests.helpers.scene import scene

_BAD_VALUES: Final = (
    *(0, -1, 1, 1 << 31, 1 << 63, -(1 << 63), 10**30, 1.5, None, True, [], {}, [[0, 1 << 40]], [-1]),
    *("", "x", "\0", "\ud800", "*(", "a\nb", "x" * 3000),
)


def changed(rng: random.Random, content: Any) -> Any:
    """Return JSON with up to four values replaced, left out or doubled, wherever they are."""
    content = json.loads(json.dumps(content))
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        part, key = content, None
        while isinstance(part, (dict, list)) and part and (key is None or rng.random() < 0.8):
            whole, key = part, rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
            part = whole[key]
        if key is None:
            return _bad(rng)
        match rng.randrange(4):
            case 0:
                del whole[key]
            case 1 if isinstance(whole, list):
                whole.append(json.loads(json.dumps(whole[key])))
            case _:
                whole[key] = _bad(rng)
    return content


def _bad(rng: random.Random) -> Any:
    return json.loads(json.dumps(rng.choice(_BAD_VALUES)))


# ---- sessions ------------------------------------------------------------------------------------------------------


def _opened() -> OpenTrace:
    application()
    trace = the_scene(Release.QNX_7)
    return OpenTrace(trace, Timeline(trace), Settings(None))


@cache
def _session() -> dict[str, Any]:
    opened = _opened()
    try:
        opened.viewport.set_width(800)
        opened.viewport.zoom(0.5, opened.trace.window.start)
        opened.filters.only_codes([int(opened.trace.events.code[5])], "x")
        opened.filters.only_threads([1, 2], "y")
        opened.filters.add_pass("pid == 2", "", opened.filters.state.effect)
        opened.lanes.fold_all()
        opened.selection.select(5, 3, None)
        state = WorkspaceState(None, view_state(opened, 30), selection_state(opened), lanes_state(opened.lanes),
                               filter_state(opened.trace, opened.filters.state))  # fmt: skip
        return parsed_json(json.dumps(to_json(state)).encode())  # lists, which `changed` changes, and no tuples
    finally:
        opened.shut_down()


def session_file(rng: random.Random) -> bytes:
    """Return a file of a session, mostly with other values, sometimes no JSON."""
    return json_file(rng, [changed(rng, _session())]) if rng.random() < 0.3 else json.dumps(
        changed(rng, _session())).encode()  # fmt: skip


def run_session(data: bytes, _folder: Path) -> None:
    """Put a session into a trace: it is refused, or what shows is within the trace and can be stored and read again."""
    try:
        state = from_json(parsed_json(data))
    except DamagedFileError as error:
        assert str(error)
        return
    opened = _opened()
    try:
        for is_same in (True, False):
            try:
                if state.view is not None:
                    restore_view(opened, state.view, is_same, is_first=True)
                if state.filter is not None:
                    restore_filter(opened, state.filter, is_same, is_first=True)
                if state.lanes is not None:
                    restore_lanes(opened, state.lanes, is_same, is_first=True)
            except UsageError as error:  # a pattern that somebody wrote into the file
                assert str(error)
            if state.selection is not None and is_same:
                restore_selection(opened, state.selection)
        application().processEvents()
        window, limits = opened.viewport.window, opened.viewport.limits
        assert window.length > 0
        assert window.start < limits.end
        assert window.end > limits.start
        event = opened.selection.event
        assert event is None or 0 <= event < len(opened.trace.events)
        again = WorkspaceState(None, view_state(opened, 0), selection_state(opened), lanes_state(opened.lanes),
                               filter_state(opened.trace, opened.filters.state))  # fmt: skip
        from_json(parsed_json(json.dumps(to_json(again)).encode()))
    finally:
        opened.shut_down()


# ---- axis files ----------------------------------------------------------------------------------------------------

_NAMES = (
    "a.kev", "b.kev", "./a.kev", "../axis/a.kev", "none.kev", "", ".", "..", "/etc/passwd", "/dev/null", "x.sataxis",
    "-",
)  # fmt: skip


def axis_file(rng: random.Random) -> bytes:
    """Return an axis file: two traces beside it, often other names, offsets and values."""
    names = _NAMES[:2] if rng.random() < 0.7 else _NAMES
    offsets = (0, 0, 10**9, -(10**9), 1, 10**19, -(10**25))
    files: list[dict[str, Any]] = [
        {
            "name": rng.choice(("host", "guest", "", "x" * 50)),
            "path": rng.choice(names),
            "offset_ps": rng.choice(offsets),
        }
        for _ in range(rng.choice((2, 2, 2, 1, 3, 20)))
    ]
    if rng.random() < 0.6 and len(files) == 2:
        files[0] |= {"name": "host", "path": "a.kev", "offset_ps": 0}
        files[1] |= {"name": "guest", "path": "b.kev"}
    content = {"satview_axis": 1, "files": files}
    return json_file(rng, [content]) if rng.random() < 0.3 else json.dumps(changed(rng, content)).encode()


def run_axis(data: bytes, folder: Path) -> None:
    """Open an axis: it is refused, or holds the events of its files, in order."""
    for name in ("a", "b"):
        if not (folder / f"{name}.kev").exists():
            scene(folder).rename(folder / f"{name}.kev")
    path = folder / f"x{SUFFIX}"
    path.write_bytes(data)
    try:
        trace = open_trace(path)
    except TraceFormatError as error:
        assert error.what
        return
    each = len(open_kev(folder / "a.kev").events)
    assert len(trace.events) == 2 * each
    assert np.all(np.diff(trace.events.time_cycles) >= 0)
    for row in range(0, len(trace.events), 9):
        trace.payloads.decode(row)
    assert len(trace.threads) > 2


# ---- the cache -----------------------------------------------------------------------------------------------------


@cache
def _cached() -> tuple[Path, bytes, int]:
    """Return the folder of a trace with its cache, what the cache's file holds, and how many events there are."""
    folder = Path(tempfile.mkdtemp(prefix="satview-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    loading_tasks.CACHED_BYTES = 1  # small files too
    loaded = LoadedTrace.of(open_kev(scene(folder)))
    traces = TraceCache(folder / "cache", 1 << 30)
    key = traces.key(loaded.trace.path)
    assert key is not None
    loaded = LoadedTrace.of(loaded.trace, key=key)
    assert traces.store(loaded, range(len(loaded.timeline.infos)))
    (file,) = (folder / "cache").iterdir()
    return file, file.read_bytes(), len(loaded.trace.events)


def cache_seed(rng: random.Random) -> bytes:
    """Return what `run_cache` makes a file of; the file itself fits no other version of the code."""
    return rng.randbytes(8)


def _cache_file(rng: random.Random) -> bytes:
    """Return a file of the cache: bytes changed, or its table of contents, with the right checksum."""
    _, sound, _ = _cached()
    if rng.random() < 0.3:
        data = bytearray(sound)
        for _ in range(rng.choice((1, 2, 30))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
    start = len(MAGIC) + _HEAD.size
    length, _ = _HEAD.unpack(sound[len(MAGIC) : start])
    contents = json.dumps(changed(rng, json.loads(sound[start : start + length]))).encode()
    padded = contents + b" " * ((length - len(contents)) % 64)  # the arrays stay where they are, or move by blocks
    return MAGIC + _HEAD.pack(len(padded), hashlib.sha256(padded).digest()) + padded + sound[start + length :]


def run_cache(data: bytes, _folder: Path) -> None:
    """Look for a trace in the cache: it is not there, or what is there is that trace."""
    file, _, count = _cached()
    file.write_bytes(_cache_file(random.Random(data)))
    try:
        read_arrays(file)
    except DamagedFileError as error:
        assert str(error)
    path = file.parents[1] / "scene.kev"
    loaded = TraceCache(file.parent, 1 << 30).find(path)
    if loaded is None:
        return
    trace = loaded.trace
    assert len(trace.events) == count
    for row in range(0, count, 5):
        trace.payloads.decode(row)
    for lane in range(len(loaded.timeline.infos)):
        loaded.timeline.lane(lane)


# ---- the server ----------------------------------------------------------------------------------------------------

_TEXTS: Final = (
    *("", "a.kev", "a.kev", "a.kev", "a.kev", "../a.kev", "/etc/passwd", "a.kev/", "\0", "a\0.kev", "\ud800"),
    *("t-1", "t-2", "t-999", "p-1", "c-0", "e-0", "e-5", "e--1", "e-99999999999999999999", "v-1", "m-1", "m-0", "x-1"),
    *("t-", "1us", "#5", "#-1", "1e400s", "nan", "-5ms", "350.1 us", "x" * 5000, "\x1b[2J", "a\nb", "app", "2:1"),
)
_TOOLS: Final = {"traces": (), "look": ("trace", "handle"), "verdicts": ("trace", "timing"), "tables": (),
                 "why": ("trace", "thread", "at"), "late": ("trace", "activity", "timing"),
                 "none": ("x",)}  # fmt: skip
_VALUES: Final = (*_TEXTS, 5, -1, None, [], {}, 1.5, True)


def run_server(data: bytes, folder: Path) -> None:
    """Call tools of the server by a client: every call is answered by text, whatever its arguments are."""
    import anyio
    import mcp

    from satview.look import make_server

    if not (folder / "a.kev").exists():
        scene(folder).rename(folder / "a.kev")
        (folder / "b.kev").symlink_to("/etc/passwd")
    decisions = Decisions(data)

    async def calls() -> None:
        async with mcp.Client(make_server([folder])) as client:
            for _ in range(8):
                tool = decisions.one(list(_TOOLS))
                values = _TEXTS if decisions.number(4) else _VALUES
                arguments = {name: decisions.one(values) for name in _TOOLS[tool] if decisions.number(8)}
                if decisions.number(3) and "trace" in arguments:
                    arguments["trace"] = "a.kev"
                try:
                    json.dumps(arguments, ensure_ascii=False).encode()
                except UnicodeEncodeError:  # no client can send it
                    continue
                answer = await client.call_tool(tool, arguments)
                text = "".join(part.text for part in answer.content)
                assert "Traceback" not in text, text
                assert "root:" not in text, "a file outside of the folder was read"
                assert text or not answer.is_error, (tool, arguments)

    anyio.run(calls)


# ---- the instance that runs ----------------------------------------------------------------------------------------


def instance_request(rng: random.Random) -> bytes:
    """Return what somebody says to the instance that runs."""
    row = {"path": "/tmp/a.kev", "range_text": "1us..2us", "event": 5, "selected": "", "session": "", "beside": ""}
    content = {"open": [row] * rng.choice((1, 1, 2, 101)), "follow": False}
    data = json_file(rng, [content]) if rng.random() < 0.4 else json.dumps(changed(rng, content)).encode()
    return data + rng.choice((b"\n", b"\n", b"\n", b"", b"\n{}\n", b"x" * (1 << 20)))


def run_instance(data: bytes, folder: Path) -> None:
    """Say something through the socket: it is refused, or opens files by their whole names; the next one is heard."""
    app, heard, owner = application(), [], QObject()
    with (
        tempfile.TemporaryDirectory(prefix="satview-") as runtime,  # names of sockets end at 107 bytes
        mock.patch.dict(os.environ, {SWITCH: "fuzz", "XDG_RUNTIME_DIR": runtime}),
    ):
        server = InstanceServer(lambda links, follow: heard.append((links, follow)), owner)
        assert server.is_listening
        try:
            _say(app, data)
            for links, is_followed in heard:
                assert isinstance(is_followed, bool)
                assert links
                for link in links:
                    assert isinstance(link, TraceLink)
                    assert link.path.is_absolute()
            before = len(heard)
            assert _say(app, b'{"open": [{"path": "/tmp/a.kev"}], "follow": true}\n') == b"ok\n"
            assert heard[before:] == [([TraceLink(Path("/tmp/a.kev"))], True)]
        finally:
            server.close()
            app.processEvents()
            del owner


def _say(app: Any, data: bytes) -> bytes:
    """Say something and wait for the answer, or until nothing is said any more; return it."""
    socket, answer = QLocalSocket(), b""
    name = instance_name()
    assert name is not None
    socket.connectToServer(name)
    assert socket.waitForConnected(1000)
    socket.write(data)
    if not data.endswith(b"\n"):
        socket.flush()
        app.processEvents()
        socket.abort()
        return b""
    for _ in range(1000):
        socket.waitForBytesWritten(1)
        app.processEvents()
        answer += bytes(socket.readAll().data())
        if answer.endswith(b"\n") or socket.state() == QLocalSocket.LocalSocketState.UnconnectedState:
            break
    socket.abort()
    app.processEvents()
    return answer
