"""A second `satview FILE` opens the file in the instance that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket

from satview.gui.running_instance import SWITCH, InstanceServer, hand_over, instance_name
from satview.session.trace_link import TraceLink
from tests.helpers.scene import scene


@pytest.fixture
def shared(monkeypatch):
    """Instances of this test find each other, and no others."""
    monkeypatch.setenv(SWITCH, "test")
    with tempfile.TemporaryDirectory(prefix="satview-") as folder:  # names of sockets end at 107 bytes
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
def server(shared, application):
    server = InstanceServer(application.open_for_others, application)
    assert server.is_listening
    yield server
    server.close()


def run_satview(qtbot, *arguments):
    """Return how another process ends while the event loop of this one goes on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "satview", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=20_000)
    return process.returncode, process.communicate()[0]


def test_nobody_is_asked_where_nobody_sits(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert instance_name() is None
    monkeypatch.setenv("QT_QPA_PLATFORM", "")
    assert instance_name() is not None
    monkeypatch.setenv(SWITCH, "off")
    assert instance_name() is None


def test_without_an_instance_nothing_is_handed_over(shared, tmp_path):
    assert not hand_over([TraceLink(scene(tmp_path))], is_followed=False)


@pytest.mark.thorough
def test_the_file_opens_there_in_a_window_of_its_own(server, application, empty_window, qtbot, tmp_path):
    assert run_satview(qtbot, str(scene(tmp_path)), "--range", "4us..9us", "--select", "12") == (0, b"")
    assert len(application.windows) == 2
    window = application.windows[1]
    qtbot.waitUntil(lambda: window.workspace is not None and window.session.opened.selection.event == 11)
    clock, shown = window.session.opened.trace.clock, window.session.opened.viewport.window
    assert (clock.ns(shown.start), clock.ns(shown.end)) == (4_000, 9_000)


def test_a_second_instance_leaves_the_first_its_place_and_a_dead_one_does_not(server, application, qtbot, tmp_path):
    second = InstanceServer(application.open_for_others, application)
    assert not second.is_listening
    server.close()
    (tmp_path / "satview").mkdir(exist_ok=True)
    name = instance_name()
    assert name is not None
    Path(name).touch()  # what a killed one leaves: a name without anybody behind it
    third = InstanceServer(application.open_for_others, application)
    assert third.is_listening
    third.close()


def answer_to(request, qtbot):
    """Send a request to the running instance; return what it answers before it hangs up."""
    socket = QLocalSocket()
    socket.connectToServer(instance_name())
    assert socket.waitForConnected(1000)
    socket.write(request)
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState, timeout=5000)
    return bytes(socket.readAll().data())


@pytest.mark.parametrize(
    "request_",
    [b"\n", b"{\n", b"[]\n", b'{"open": []}\n', b'{"open": [{"path": "relative.kev"}]}\n', b'{"open": 7}\n',
     json.dumps({"open": [{"path": "/x", "event": "1"}]}).encode() + b"\n", b"\xff\n", b"x" * (2 << 20)],
)  # fmt: skip
def test_nonsense_opens_nothing(server, application, qtbot, request_):
    answer = answer_to(request_, qtbot)
    assert b"ok" not in answer
    assert answer.count(b"\n") == (0 if len(request_) > 1 << 20 else 1), "one sentence"
    assert application.windows == []


@pytest.mark.parametrize(("name", "says"), [("/a\0b", "there is a NUL in it"), ("/a\ud800", "there is half of a char")])
@pytest.mark.parametrize("field", ["path", "session", "beside"])
def test_a_name_that_no_file_can_have_is_answered_in_a_sentence(server, application, qtbot, name, says, field):
    row = {"path": "/x", "range_text": "", "event": None, "selected": "", "session": "", "beside": "", field: name}
    answer = answer_to(json.dumps({"open": [row], "follow": False}).encode() + b"\n", qtbot).decode()
    assert answer.startswith("request: '/a\\")
    assert says in answer
    assert answer.count("\n") == 1
    assert application.windows == []
