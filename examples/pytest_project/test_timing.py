"""What a control loop of 10 ms must keep to. Run it: `pytest examples/pytest_project`."""

from satview.testing.units import ms


def test_the_loop_is_in_time(kev):
    assert kev.latency("tick", "done").longest < 10 * ms


def test_the_loop_comes_every_10_ms(kev):
    periods = kev.thread("fast").periods
    assert periods.p50 < 10.1 * ms
    assert periods.shortest > 9.9 * ms


def test_the_loop_needs_no_mutex(kev):
    assert kev.thread("fast").never("MUTEX", "CONDVAR")


def test_the_loop_leaves_time_for_others(kev):
    assert kev.thread("fast").cpu_share < 0.25


def test_the_loop_is_not_slower_than_before(kev):
    """With `pytest --baseline baseline.json`; the file belongs under version control."""
    assert kev.latency("tick", "done").p99.no_worse_than_baseline(by=0.1)


def test_nothing_is_wrong(kev):
    assert kev.no_verdict("deadlock")
    assert kev.no_verdict("inversion")
    assert kev.no_losses()


def test_every_cycle_ends(kev):
    assert kev.latency("tick", "done").all_answered()
    assert kev.events("tick") >= 49
