#!/bin/sh
# Qt's wheel needs a few libraries of the system, and text needs a font. Installs them where we may (root, or sudo without a
# password, on Debian and its relatives); elsewhere prints the command to type. Does nothing if all is there.
# Usage: install_system_packages.sh PYTHON
set -eu
python=${1:-python3}

[ "$(uname)" = Linux ] || exit 0

missing=""
need_library() { # name of the library, package
  ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1" || missing="$missing $2"
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
  echo "satview needs Python 3.11 or newer as '$python'. On Debian: apt-get install python3 (or: make PYTHON=python3.12)" >&2
  exit 1
}
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
need_library libEGL.so.1 libegl1
need_library libGL.so.1 libgl1
need_library libxkbcommon.so.0 libxkbcommon0
need_library libxkbcommon-x11.so.0 libxkbcommon-x11-0
need_library libdbus-1.so.3 libdbus-1-3
need_library libfontconfig.so.1 libfontconfig1
need_library libglib-2.0.so.0 libglib2.0-0
need_library libxcb-cursor.so.0 libxcb-cursor0
need_library libxcb-icccm.so.4 libxcb-icccm4
need_library libxcb-image.so.0 libxcb-image0
need_library libxcb-keysyms.so.1 libxcb-keysyms1
need_library libxcb-randr.so.0 libxcb-randr0
need_library libxcb-render-util.so.0 libxcb-render-util0
need_library libxcb-shape.so.0 libxcb-shape0
need_library libxcb-xkb.so.1 libxcb-xkb1
find /usr/share/fonts /usr/local/share/fonts "$HOME/.fonts" "$HOME/.local/share/fonts" \
  \( -name '*.ttf' -o -name '*.otf' -o -name '*.ttc' \) 2>/dev/null | grep -q . || missing="$missing fonts-dejavu-core"

[ -n "$missing" ] || exit 0

command="apt-get install --yes --no-install-recommends$missing"
if ! command -v apt-get >/dev/null 2>&1; then
  echo "satview needs these libraries (names of the Debian packages):$missing" >&2
  echo "Install them with this system's package manager; going on without." >&2
elif [ "$(id -u)" = 0 ]; then
  echo "Installing$missing"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive $command >/dev/null
elif sudo -n true 2>/dev/null; then
  echo "Installing$missing"
  sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive $command >/dev/null
else
  echo "satview needs some packages of the system that only an administrator may install. Type:" >&2
  echo "  sudo $command" >&2
  case "$missing" in *python3-venv*) exit 1 ;; esac
  echo "Going on without; windows and tests may fail until then." >&2
fi
