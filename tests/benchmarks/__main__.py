"""`python -m tests.benchmarks NAME [ARGS]`: each prints its figure, its floor from the same run, and their ratio."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> int:
    """Run the named benchmark, or list them all."""
    names = sorted(
        m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if not m.name.startswith(("_", "made_"))
    )
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        for name in names:
            doc = (importlib.import_module(f"tests.benchmarks.{name}").__doc__ or "").splitlines()[0]
            print(f"{name:12} {doc}")
        return 0 if len(sys.argv) < 2 else 2
    importlib.import_module(f"tests.benchmarks.{sys.argv[1]}").run(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
