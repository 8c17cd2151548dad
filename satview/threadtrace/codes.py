"""Numbers in thread_trace(4) records, and in the `.time` files, a format of satview's own.

The numbers repeat a part of `resources/events/unixware.toml`, because a traced program must not load the modules that
read that file; a test compares the two.
"""

from __future__ import annotations

from typing import Final

CATEGORIES: Final = {
    "thread": 1, "mutex": 2, "cond": 3, "sema": 4, "rwlock": 5, "rmutex": 6, "barrier": 7, "barrier_spin": 8, "spin": 9,
    "time": 10,
}  # fmt: skip
THREAD, MUTEX, COND, SEMA, RMUTEX, BARRIER, TIME = 1, 2, 3, 4, 6, 7, 10
SINGLE, FIRST, SECOND = 0, 1, 2  # `which`

THR_CREATE, THR_EXIT, THR_JOIN, THR_SELF = 1, 2, 3, 4
MUTEX_INIT, MUTEX_LOCK, MUTEX_TRYLOCK, MUTEX_UNLOCK = 1, 2, 3, 4  # of rmutex too
COND_INIT, COND_SIGNAL, COND_BROADCAST, COND_WAIT, COND_TIMEDWAIT = 1, 2, 3, 4, 5
SEMA_INIT, SEMA_WAIT, SEMA_TRYWAIT, SEMA_POST = 1, 2, 3, 4
BARRIER_INIT, BARRIER_WAIT = 1, 2
CPU_TIME, SLEEP, READ, WRITE, CONNECT, ACCEPT, POLL, WAIT_PROCESS, SYNC = 1, 2, 3, 4, 5, 6, 7, 8, 9  # of time

# Error numbers of System V Release 4.
OK, EPERM, ESRCH, EINTR, EAGAIN, EBUSY, EINVAL, EDEADLK, ETIME = 0, 1, 3, 4, 11, 16, 22, 45, 62
