"""A small pipeline of threads, for the sample in `threads/`: a producer, two workers that share a lock, and rounds.

Run it traced: `THR_TRACE_DIR=traces python -m satview.threadtrace sample_traces/threads_program.py`.
"""

import queue
import threading
import time

ITEMS = 12
jobs: "queue.Queue[int | None]" = queue.Queue(2)
results_lock = threading.Lock()
results: list[int] = []
slots = threading.Semaphore(1)
start = threading.Barrier(3)
finished = threading.Event()


def produce() -> None:
    start.wait()
    for number in range(ITEMS):
        time.sleep(0.001)
        jobs.put(number)
    for _ in range(2):
        jobs.put(None)


def work() -> None:
    start.wait()
    while (number := jobs.get()) is not None:
        with slots:
            time.sleep(0.002)
        with results_lock:
            results.append(number * number)
            time.sleep(0.003)


def watch() -> None:
    finished.wait()


threads = [threading.Thread(target=produce, name="producer"), threading.Thread(target=watch, name="watcher")]
threads += [threading.Thread(target=work, name=f"worker {number}") for number in (1, 2)]
for thread in threads:
    thread.start()
for thread in (threads[0], *threads[2:]):
    thread.join()
finished.set()
threads[1].join()
assert sorted(results) == [number * number for number in range(ITEMS)]
