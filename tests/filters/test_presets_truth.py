"""Presets and "what would have been captured" against what the simulated kernel knows and does."""

from collections import defaultdict

import numpy as np
import pytest

import satview
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events.spec import Release
from satview.filters import passes
from satview.store.time_ranges import idle_threads


@pytest.fixture(scope="module", params=[Release.QNX_6, Release.QNX_8], ids=str)
def captured(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("truth") / "busy.kev"
    options = LoggerOptions(iterations=0, is_wide=True)
    capture = Capture("automotive", seed=7, release=request.param, duration_ns=400_000_000, options=options)
    truth = run(capture, path).truth
    return satview.open_trace(path), truth


def names(trace, selected):
    return {(int(trace.threads.pid[row]), int(trace.threads.tid[row])) for row in np.flatnonzero(selected)}


def inside(trace, time):
    return trace.window.start <= time < trace.window.end


@pytest.mark.thorough
def test_who_used_the_cpu_and_most_of_it(captured):
    trace, truth = captured
    idle, ran = names(trace, idle_threads(trace)), defaultdict(int)
    for each in truth.runs:
        start, end = max(each.start, trace.window.start), min(each.end, trace.window.end)
        if end > start and each.thread not in idle:
            ran[each.thread] += end - start
    assert names(trace, passes.used_cpu(trace)) == set(ran)
    top = passes.top_by_cpu(trace, 3, satview.Statistics(trace).threads.cpu_cycles)
    assert names(trace, top) == set(sorted(ran, key=ran.__getitem__)[-3:])


@pytest.mark.thorough
def test_who_did_ipc(captured):
    trace, truth = captured
    found = names(trace, passes.did_ipc(trace))
    senders = {each.client for each in truth.messages if inside(trace, each.sent)}
    receivers = {each.server for each in truth.messages if inside(trace, each.received)}
    assert len(senders) > 10
    assert senders | receivers <= found


def test_the_family_of_every_sender(captured):
    trace, truth = captured
    sends_to = defaultdict(set)
    for each in truth.messages:
        if inside(trace, each.sent) and each.server is not None and inside(trace, each.received):
            sends_to[each.client].add(each.server)
    graph = passes.message_graph(trace)
    for client in list(sends_to):
        family, open_ = {client}, [client]
        while open_:
            fresh = sends_to[open_.pop()] - family
            family |= fresh
            open_ += fresh
        selected = np.zeros(len(trace.threads), np.bool_)
        selected[trace.threads.row(*client)] = True
        assert names(trace, passes.message_family(trace, selected, graph)) == family, client
