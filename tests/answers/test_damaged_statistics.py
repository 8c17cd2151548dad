"""Client and server time, partitions and snapshots of files with flipped, overwritten and missing bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.answers.statistics import TABLES
from satview.base.errors import SatviewError
from tests.helpers.extent import usually

WORKLOADS = ("nested-servers", "partition-starvation", "client-server", "deadlock")
KEYS = ("client-server", "migration", "cpu-matrix", "partition")
DAMAGES = usually(4, complete=40, thorough=20)


@pytest.fixture(scope="module", params=WORKLOADS)
def whole(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "whole.kev"
    main(["tracelogger", "--workload", request.param, "-w", "-f", str(path)])
    return path.read_bytes()


def damaged(whole, seed):
    rng, data = random.Random(seed), bytearray(whole)
    for _ in range(rng.choice((1, 10, 200, 2_000))):
        position = rng.randrange(2_000, len(data))
        data[position] = rng.choice((rng.randrange(256), 0, 255, data[position] ^ 1 << rng.randrange(8)))
    if rng.random() < 0.3:
        position = rng.randrange(4_000, len(data))
        del data[position : position + 16 * rng.randrange(1, 400)]
    return data, rng


def test_damage_never_breaks_them_nor_bills_more_than_ran(whole, tmp_path):
    opened = 0
    for seed in range(DAMAGES):
        data, rng = damaged(whole, seed)
        (tmp_path / "damaged.kev").write_bytes(data)
        try:
            trace = satview.open_trace(tmp_path / "damaged.kev")
        except SatviewError:
            continue
        found = Statistics(trace)
        for key in KEYS:
            TABLES[key](found, None).records()
        bill = found.client_server
        assert bill.bill_cycles.sum() == bill.self_cycles.sum()
        assert min(bill.own_cycles.min(), bill.caused_cycles.min()) >= 0
        assert np.all(bill.imposed.cycles <= bill.self_cycles[bill.imposed.server])
        table = found.partitions
        assert np.all(table.run_cycles <= table.length_cycles)
        satview.snapshot(trace, rng.randrange(trace.window.start, trace.window.end), found.basis)
        opened += 1
    assert opened > DAMAGES // 2
