"""Thread traces written as text: one record a line, `time lwp tid interface which arguments`, times in microseconds."""

from satview.events.unixware import interfaces

PID = 4321
START_S = 1000


def record(time_us, lwp, tid, interface, which=0, *arguments, pid=PID):
    """Return a line of a thread_trace file."""
    category, number = interfaces()[interface]
    values = [START_S, time_us * 1000, lwp, pid, tid, category, number, which, *arguments]
    return ":".join(str(value) for value in [*values, *[0] * (13 - len(values))]) + "\n"


def write_set(directory, text, pid=PID):
    """Write the files of a set; `text` has lines such as `20 lwp1 t2 mutex_lock 1 0x10`; a `#` begins a remark."""
    files = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            time_us, lwp, tid = int(words[0]), int(words[1].removeprefix("lwp")), int(words[2].removeprefix("t"))
            which = int(words[4]) if len(words) > 4 else 0
            files.setdefault(lwp, []).append(record(time_us, lwp, tid, words[3], which, *words[5:], pid=pid))
    for lwp, lines in files.items():
        name = f"tr.{pid & 0xFFFFFFF:07x}.{lwp & 0xFFF:03x}"
        (directory / name).write_text("".join(lines), encoding="ascii")
    return directory
