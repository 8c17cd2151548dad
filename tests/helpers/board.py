"""A board for captures over ssh: a real sshd on 127.0.0.1, behind which small scripts answer as a QNX target would.

Its tracelogger is satview's own simulated one, in real time; everything of the board is in one folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from satview.target.line import Profile

ROOT = Path(__file__).resolve().parents[2]
SSHD = "/usr/sbin/sshd"
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
LogLevel ERROR
ForceCommand exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
SetEnv PATH={folder}/bin:/usr/bin:/bin BOARD={folder}
"""
CLIENT = """\
Host *
IdentityFile {folder}/user_key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
LogLevel ERROR
"""
PROGRAMS = {
    "uname": "cat $BOARD/uname",
    "id": "cat $BOARD/user",
    "use": "cat $BOARD/usage",
    "df": "cat $BOARD/disk",
    "date": 'exec /bin/date -d "$(cat $BOARD/ahead) seconds" "$@"',
    "pidin": """\
[ "$1" = info ] && exec cat $BOARD/memory
cat $BOARD/processes
for file in $BOARD/running/*; do
  pid=${file##*/}
  kill -0 $pid 2>/dev/null && echo "$pid tracelogger"
done
exit 0""",
    "tracelogger": """\
echo "$@" > $BOARD/arguments
: > $BOARD/running/$$
exec env PYTHONPATH={root} {python} -m satview tracelogger "$@" $(cat $BOARD/options)""",
}
OPTIONS = "--workload client-server --pace 1 --duration 600 --release"


class Board:
    """The board, its sshd running.

    Attributes:
        folder: Where it is.
        profile: How a capture reaches it.
        memory: Its folder for files in memory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory = folder / "shmem"
        for name in ("bin", "running", "shmem"):
            (folder / name).mkdir(parents=True)
        for name, script in PROGRAMS.items():
            self.add_program(name, script)
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        self.runs("7.1.0", "7.x")
        self.says(user="0", ahead="0", memory="CPU:X86_64 Release:7.1.0 FreeMem:201MB/255MB",
                  processes="     pid name\n       1 procnto-smp-instr\n       2 slogger2")  # fmt: skip
        self.says(usage="", disk="")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (folder / "sshd_config").write_text(SERVER.format(folder=folder, port=self.port))
        self.client = folder / "ssh_config"
        self.client.write_text(CLIENT.format(folder=folder))
        key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # sshd of root insists on it
        self.sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL)
        self._wait_for_port()
        self.profile = Profile(
            f"ssh://127.0.0.1:{self.port}", ssh_options=("-F", str(self.client)), name="board",
            memory_folder=str(self.memory),
        )  # fmt: skip

    def _wait_for_port(self) -> None:
        for _ in range(200):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.02)
        raise AssertionError("sshd does not listen")

    def add_program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text("#!/bin/sh\n" + script.replace("{root}", str(ROOT)).replace("{python}", sys.executable) + "\n")
        path.chmod(0o755)

    def says(self, **answers: str) -> None:
        """Set what its programs answer."""
        for name, text in answers.items():
            (self.folder / name).write_text(text + "\n")

    def runs(self, sys_release: str, family: str, more: str = "") -> None:
        """Set its release, and options of its simulated tracelogger."""
        self.says(uname=f"QNX board {sys_release} 2021/05/07-14:19:56EDT x86pc x86_64",
                  options=f"{OPTIONS} {family} {more}")  # fmt: skip

    def loggers(self) -> list[int]:
        """Return the pids of loggers that run."""
        return [int(file.name) for file in (self.folder / "running").iterdir() if is_alive(int(file.name))]

    def is_clean_within(self, seconds: float) -> bool:
        """Return whether no logger runs and no file is in memory, at the latest after so long."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            if not self.loggers() and not list(self.memory.iterdir()) and not self.sessions():
                return True
            time.sleep(0.05)
        return False

    def sessions(self) -> list[int]:
        """Return the pids of connections that its sshd serves."""
        return children(self.sshd.pid)

    def cut(self) -> None:
        """Kill what serves the connections, as when the cable is drawn and the board notices at once."""
        for pid in self.servers():
            os.kill(pid, signal.SIGKILL)

    def servers(self) -> list[int]:
        """Return the pids of the processes of sshd that serve connections, one or two for each."""
        return [pid for top in self.sessions() for pid in (*children(top), top) if name_of(pid) == "sshd"]

    def lose(self) -> None:
        """Kill sshd and what serves connections: nobody reaches the board any more."""
        servers = self.servers()
        self.sshd.kill()
        self.sshd.wait()
        for pid in servers:
            os.kill(pid, signal.SIGKILL)

    def kill_shells(self) -> None:
        """Kill the shells of the connections, which then look after nothing."""
        for server in self.servers():
            for shell in descendants(server):
                if name_of(shell) in ("sh", "bash", "dash") and shell not in self.loggers():
                    os.kill(shell, signal.SIGKILL)

    def close(self) -> None:
        self.cut()
        self.sshd.kill()
        self.sshd.wait()
        for pid in self.loggers():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    return [process for child in children(pid) for process in (*descendants(child), child)]


def children(pid: int) -> list[int]:
    """Return the pids of processes whose parent is another one, the dead that nobody waited for left out."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and is_alive(int(entry.name)) and parent(int(entry.name)) == pid
    ]


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
