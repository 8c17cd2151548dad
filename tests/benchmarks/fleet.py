"""A fleet: many traces of 200,000 events as one data set, and queries over it. Args: [traces, 1000] [jobs, 2].

The limit is 5 minutes on 2 processors for export and queries together. Making the traces is not counted. The floor is
what `cat` of the same files takes: nothing reads them faster.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from satview.fleet.export import export_folder
from satview.fleet.query import metrics, query_dataset, trend
from tests.benchmarks.made_traces import make_file

LIMIT_S = 300
SLOTS = int(200_000 / 0.845)
QUERIES = (
    "select count(*) from event",
    "select trace, count(*) from event group by trace",
    "select state, count(*), sum(length_ns) from state group by state",
    "select name, count(*), quantile_cont(length_ns, 0.99) from call group by name order by 2 desc limit 20",
    "select kind, count(distinct trace) from verdict group by kind",
)


def run(args: list[str]) -> None:
    """Print one line per figure; end with 1 if all of it takes longer than the limit."""
    count, jobs = int(args[0]) if args else 1000, int(args[1]) if len(args) > 1 else 2
    with tempfile.TemporaryDirectory() as temporary:
        folder, out = Path(temporary) / "traces", Path(temporary) / "fleet"
        folder.mkdir()
        begin = time.perf_counter()
        for number in range(count):
            make_file(folder / f"{number:04d}.kev", SLOTS, seed=number * 7 + 1)
        print(f"{count} traces made in {time.perf_counter() - begin:.1f} s")
        begin = time.perf_counter()
        subprocess.run(["cat", *map(str, sorted(folder.iterdir()))], stdout=subprocess.DEVNULL, check=True)
        print(f"floor: cat of them            {time.perf_counter() - begin:7.1f} s")
        total = _export(folder, out, jobs) + _queries(out)
        begin = time.perf_counter()
        unchanged = export_folder(folder, out, jobs=jobs).unchanged
        print(f"export again, {unchanged} unchanged{time.perf_counter() - begin:7.1f} s")
        print(f"export and queries            {total:7.1f} s of {LIMIT_S}")
    sys.exit(1 if total > LIMIT_S else 0)


def _export(folder: Path, out: Path, jobs: int) -> float:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = export_folder(folder, out, jobs=jobs)
    wall_s, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    events = sum(each.events for each in found.done)
    print(f"export, {jobs} processes           {wall_s:7.1f} s, {cpu_s:.1f} s of processors, {events:,} events")
    print(f"{len(found.dataset.tables)} tables, {size / 1e6:,.0f} MB, {size / events:.1f} bytes an event")
    return wall_s


def _queries(out: Path) -> float:
    total = 0.0
    for query in QUERIES:
        begin = time.perf_counter()
        rows = len(query_dataset(out, query))
        total += time.perf_counter() - begin
        print(f"{time.perf_counter() - begin:7.2f} s  {rows:5} rows  {query}")
    for name in metrics():
        begin = time.perf_counter()
        found = trend(out, name)
        total += time.perf_counter() - begin
        far = int((found["outlier"] != "").sum())
        print(f"{time.perf_counter() - begin:7.2f} s  {len(found):5} traces, {far} outliers  {name}")
    return total
