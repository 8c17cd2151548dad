"""Makes `sample_traces/threads/`: a real run of `threads_program.py`, traced by `python -m satview.threadtrace`."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE / "threads"


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("tr.*"):
        old.unlink()
    variables = {**os.environ, "THR_TRACE_DIR": str(TARGET), "PYTHONPATH": str(HERE.parent)}
    for name in ("THR_TRACE_EVENTS", "THR_TRACE_BUF"):
        variables.pop(name, None)
    # The folder of the sample, so that the names in it hold no path of this machine.
    command = [sys.executable, "-m", "satview.threadtrace", "threads_program.py"]
    subprocess.run(command, check=True, cwd=HERE, env=variables)
    names = next(TARGET.glob("tr.*.names"))
    text = names.read_text(encoding="utf-8").replace(str(HERE) + os.sep, "")
    names.write_text(text, encoding="utf-8")
    sizes = [file.stat().st_size for file in TARGET.iterdir()]
    print(f"{TARGET.name}: {len(sizes)} files, {sum(sizes):,} bytes")


if __name__ == "__main__":
    main()
