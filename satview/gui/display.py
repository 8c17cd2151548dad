"""Checks whether a display server answers, because Qt aborts the process without one."""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 3.0
_X_PORT: Final = 6000
_DISPLAY: Final = re.compile(r"(?:unix|[a-z]+/unix)?(?P<host>[^:/]*):(?P<number>[0-9]{1,5})(?:\.[0-9]+)?")


def has_display() -> bool:
    """Return whether windows can be shown; a display can be missing only with X11 or Wayland."""
    if sys.platform in ("win32", "darwin", "cygwin"):
        return True
    platform = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if platform.startswith("wayland"):
        return _wayland_answers()
    if platform and platform != "xcb":
        return True
    if _x11_answers():
        return True
    if not platform and _wayland_answers():
        os.environ["QT_QPA_PLATFORM"] = "wayland"  # otherwise Qt tries X11 first, and aborts
        return True
    return False


def _wayland_answers() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "/"), name)  # an absolute name replaces the folder
    return _connects(socket.AF_UNIX, str(path))


def _x11_answers() -> bool:
    display = os.environ.get("DISPLAY")
    if not display:
        return False
    try:
        xcb = ctypes.CDLL("libxcb.so.1")  # the library that Qt uses; also checks authorization
    except OSError:
        return _x11_socket_answers(display)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    if not connection:
        return False
    is_faulty = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not is_faulty


def _x11_socket_answers(display: str) -> bool:
    parts = _DISPLAY.fullmatch(display)
    if parts is None:
        return Path(display).exists()
    number = int(parts["number"])
    if parts["host"]:
        return _connects(socket.AF_INET, (parts["host"], _X_PORT + number))
    return _connects(socket.AF_UNIX, f"/tmp/.X11-unix/X{number}") or _connects(  # noqa: S108  -- X11's fixed path
        socket.AF_UNIX, f"\0/tmp/.X11-unix/X{number}"
    )


def _connects(family: int, address: str | tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(address)
    except (OSError, ValueError):
        return False
    return True
