"""What `--install-desktop` writes, and that `--uninstall-desktop` takes all of it away."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from satview import viewer_command
from satview.__main__ import main
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


def entry(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_install_and_uninstall(data, capsys):
    other = data / "applications" / "other.desktop"
    other.parent.mkdir(parents=True)
    other.write_text("other")
    assert main(["--install-desktop"]) == 0
    out = capsys.readouterr().out
    icon = "icons/hicolor/scalable/apps/satview.svg"
    for name in ("applications/satview.desktop", icon, "mime/packages/satview.xml"):
        assert (data / name).is_file()
        assert f"written: {data / name}" in out
    assert main(["--install-desktop"]) == 0, "again is fine"
    assert main(["--uninstall-desktop"]) == 0
    assert not (data / "applications" / "satview.desktop").exists()
    assert not (data / "mime" / "packages" / "satview.xml").exists()
    assert other.read_text() == "other"
    capsys.readouterr()
    assert main(["--uninstall-desktop"]) == 0
    assert "was not installed" in capsys.readouterr().out


def test_the_entry_is_right(data):
    viewer_command.install_entry()
    file = data / "applications" / "satview.desktop"
    read = entry(file.read_text())
    assert read["MimeType"] == "application/x-qnx-kev;"
    assert read["Exec"].endswith(" %F")
    if (validate := shutil.which("desktop-file-validate")) is not None:
        done = subprocess.run([validate, str(file)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def unquoted(value):
    """Return the words of Exec= as the Desktop Entry specification reads them."""
    once = value.replace("\\\\", "\\")  # strings of the file
    words = re.findall(r'"((?:\\.|[^"\\])*)"|(\S+)', once)
    return [(re.sub(r"\\(.)", r"\1", quoted) or plain).replace("%%", "%") for quoted, plain in words]


@pytest.mark.parametrize(
    "path", ["/opt/satview/bin/satview", "/home/a b/satview", '/home/"q"/s', "/home/$x`y/s", "/home/100%/s", "/o/a\\b"]
)
def test_odd_paths_are_quoted(path):
    words = unquoted(entry(viewer_command.desktop_entry([path]))["Exec"])
    assert words == [path, "%F"]


def test_the_magic_is_how_files_begin(tmp_path):
    path = TraceBuilder(cpus=1).time_event(0).write(tmp_path / "a.kev")
    assert open_trace(path).format == "kev"
    tree = ET.fromstring(viewer_command.mime_package())
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    match = tree.find(f"{space}mime-type/{space}magic/{space}match")
    assert path.read_bytes().startswith(match.get("value").encode())


def test_a_relative_data_folder_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    assert viewer_command.install_entry()[0].startswith(f"written: {tmp_path}/.local/share/")


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_other_systems_refuse_with_a_sentence(data, monkeypatch, capsys, system):
    monkeypatch.setattr(sys, "platform", system)
    assert main(["--install-desktop"]) == 2
    assert "no XDG desktop" in capsys.readouterr().err
    assert not data.exists()


def test_what_cannot_be_written_is_a_sentence(data, capsys):
    data.write_text("a file where a folder should be")
    assert main(["--install-desktop"]) == 2
    assert str(data) in capsys.readouterr().err


def test_it_opens_nothing(data, capsys):
    assert main(["a.kev", "--install-desktop"]) == 2
    assert main(["--install-desktop", "--uninstall-desktop"]) == 2
    assert not data.exists()
