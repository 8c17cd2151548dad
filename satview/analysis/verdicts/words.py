"""Texts for the objects of waits: the same in verdicts and in answers to "why?"."""

from __future__ import annotations

from typing import Final

from satview.analysis.verdicts.evidence import Evidence
from satview.events.states import STATE_BY_NAME, STATE_BY_VALUE
from satview.linkage.blockers import JOIN, REPLY, RWLOCKS, SEND, Blockers
from satview.linkage.mutexes import MUTEX

# Names of synchronisation objects, by the state in which threads wait for them.
_OBJECTS: Final = {
    "CONDVAR": "condition variable", "SEM": "semaphore", "RWLOCK_READ": "read/write lock",
    "RWLOCK_WRITE": "read/write lock",
}  # fmt: skip
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value


def waited_for(evidence: Evidence, blocked_by: Blockers, wait: int) -> str:
    """Return a text for the object of a wait: a mutex, a reply, a process that shall receive, time to pass."""
    waiting = blocked_by.waits
    value, thread, target = int(waiting.value[wait]), int(waiting.thread[wait]), int(waiting.object[wait])
    if value == SEND:
        pid = int(blocked_by.pid[wait])
        return f"{evidence.process_of(pid) if pid > 0 else 'a server'} to receive its message"
    if value == REPLY:
        return "the reply"
    if value == JOIN:
        return "the end"
    if value == MUTEX:
        return mutex_text(evidence, thread, target) if waiting.has_object[wait] else "a mutex"
    if value == _RECEIVE:
        return f"a message or pulse on channel {target}" if waiting.has_object[wait] else "a message or pulse"
    name = STATE_BY_VALUE[value].name
    if name in _OBJECTS and waiting.has_object[wait]:
        return object_text(evidence, _OBJECTS[name], thread, target)
    return {"NANOSLEEP": "time to pass", "INTR": "an interrupt"}.get(name, f"what ends state {name}")


def of_whom(evidence: Evidence, blocked_by: Blockers, wait: int) -> str:
    """Return a text for the holder or server of a wait's object, to follow `waited_for`; empty if not known."""
    thread = int(blocked_by.thread[wait])
    if thread <= 0:
        return ""
    links = {JOIN: " of", **dict.fromkeys((MUTEX, *RWLOCKS), ", held by")}
    link = links.get(int(blocked_by.waits.value[wait]), " from")
    return f"{link} {evidence.name(thread)}"


def mutex_text(evidence: Evidence, thread: int, address: int) -> str:
    """Return the label of a mutex: its address and the process of a thread that uses it."""
    return object_text(evidence, "mutex", thread, address)


def object_text(evidence: Evidence, kind: str, thread: int, address: int) -> str:
    """Return the label of a synchronisation object: its kind, its address, and the process of a thread that uses it."""
    process = evidence.trace.process_name(int(evidence.trace.threads.process[thread]))
    return f"{kind} 0x{address & (1 << 64) - 1:x} (process {process})"
