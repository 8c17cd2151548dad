"""Waits, wake-ups, mutexes, pulses and transactions found event by event, as plainly as they are defined.

Each is made of what lies below it (open calls, partners, messages, waits), which has tests of its own.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import READY, RUNNING, STATE_BY_NAME
from satview.linkage import calls
from satview.linkage.calls import partners
from satview.linkage.links import NO_EVENT, OPEN, Certainty
from satview.linkage.messages import messages
from satview.linkage.waits import entries_of, waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.time_ranges import losses

SEND, RECEIPT, REPLY, ERROR, RECEIVED_PULSE, SIGNAL, DEATH = (wire.code(7, n) for n in (0, 2, 10, 11, 3, 9, 6))
PULSES = tuple(wire.code(7, n) for n in (1, 4, 5, 6, 7, 8))
TIMER = wire.code(5, 18)
INTERRUPTS = tuple(wire.code(3, n) for n in (1, 5, 7))
EXACT, INFERRED, GUESS = (int(each) for each in (Certainty.EXACT, Certainty.INFERRED, Certainty.GUESS))
OBJECTS = {
    "MUTEX": {"SYNC_MUTEX_UNLOCK": "sync_p", "SYNC_CONDVAR_WAIT": "mutex_p"},
    "CONDVAR": {"SYNC_CONDVAR_SIGNAL": "sync_p"}, "SEM": {"SYNC_SEM_POST": "sync_p"},
    "BARRIER": {"SYNC_BARRIER_WAIT": "sync_p"}, "RWLOCK_READ": {"SYNC_RWLOCK": "sync_p"},
    "RWLOCK_WRITE": {"SYNC_RWLOCK": "sync_p"},
}  # fmt: skip
FROM_OUTSIDE = {
    "THREAD_CANCEL": None, "CHANNEL_DESTROY": None, "CONNECT_DETACH": None, "SYNC_DESTROY": None,
    "THREAD_DETACH": ("JOIN",), "INTERRUPT_UNMASK": ("INTR",), "MSG_DELIVER_EVENT": ("INTR",),
}  # fmt: skip
WITHOUT_COMM = {
    "MSG_SENDV": ("RECEIVE",), "MSG_SENDVNC": ("RECEIVE",), "MSG_SEND_PULSE": ("RECEIVE",),
    "MSG_SEND_PULSEPTR": ("RECEIVE",), "MSG_DELIVER_EVENT": ("RECEIVE", "INTR"), "MSG_REPLYV": ("REPLY",),
    "MSG_ERROR": ("REPLY",), "SIGNAL_KILL": ("SIGSUSPEND", "SIGWAITINFO"),
    "SIGNAL_KILL_SIGVAL": ("SIGSUSPEND", "SIGWAITINFO"),
}  # fmt: skip


LENGTHS = {
    "queued_cycles": ("send_row", "receive_row"), "service_cycles": ("receive_row", "reply_row"),
    "reply_cycles": ("reply_row", "done_row"), "round_trip_cycles": ("send_row", "done_row"),
}  # fmt: skip


class Plain:
    """Walks over the events of a trace."""

    def __init__(self, trace):
        events = trace.events
        self.trace, self.count = trace, len(events)
        self.code, self.cpu, self.thread, self.time = (
            column.tolist() for column in (events.code, events.cpu, events.thread, events.time_cycles)
        )
        self.words = [trace.payloads.words(row).tolist() for row in range(self.count)]
        self.pid, self.tid = trace.threads.pid.tolist(), trace.threads.tid.tolist()
        self.process = trace.threads.process.tolist()
        every = np.arange(self.count, dtype=np.uint32)
        self.open_call = calls.open_calls(trace, every).tolist()
        self.last_switch = calls.last_switch(trace, every).tolist()
        self.partner = partners(trace).tolist()
        table = messages(trace)
        self.receipt = dict(zip(table.from_row.tolist(), table.to_row.tolist(), strict=True))
        self.message = {last: first for first, last in self.receipt.items()}
        self.lost = losses(trace)[:, :2].tolist()
        self.value = [int(trace.catalogue.state_value_of_code[code]) for code in self.code]
        self.names = {number: name for name, number in call_numbers(trace.release).items()}
        names = ("thread", "value", "row", "end_row", "end_value", "first_row", "call_row", "object", "has_object")
        found = waits(trace)
        self.waits = [dict(zip(names, values, strict=True))
                      for values in zip(*(getattr(found, name).tolist() for name in names), strict=True)]  # fmt: skip

    def whole(self, first, last):
        return not any(start < self.time[last] and end > self.time[first] for start, end in self.lost)

    def before(self, codes, row, cpu=None):
        """Return the last event of some codes before one, on its CPU."""
        cpu = self.cpu[row] if cpu is None else cpu
        return next((r for r in range(row - 1, -1, -1) if self.code[r] in codes and self.cpu[r] == cpu), None)

    def thread_of(self, pid, tid):
        """Return the row of a thread, 0 for none."""
        pid -= (pid >> 31) << 32
        return next((row for row in range(len(self.pid)) if (self.pid[row], self.tid[row]) == (pid, tid)), 0)

    def is_quiet(self, first, last):
        """Return whether the CPU of an event logs nothing but interrupts since another, which is on it."""
        return self.cpu[first] == self.cpu[last] and all(
            self.cpu[row] != self.cpu[last] or self.code[row] >> 10 in (1, 3) for row in range(first + 1, last)
        )

    def argument(self, row, name):
        if row in (NO_EVENT, None):
            return None
        value, known = argument(self.trace, np.array([row], np.uint32), name)
        return int(value[0]) if known[0] else None

    def usual(self, rows, group, since):
        """Return {row: (interrupt or None, whether it is the only one)}, as `actors.last_of_usual` has them."""
        last, only, counts = {}, {}, {}
        for row in rows:
            found = self.before(INTERRUPTS, row)
            last[row] = found if found is not None and found >= since[row] else None
            earlier = None if last[row] is None else self.before(INTERRUPTS, last[row])
            only[row] = last[row] is not None and (earlier is None or earlier < since[row])
            if last[row] is not None:
                counts.setdefault(group[row], Counter())[self.words[last[row]][0]] += 1
        for row in rows:
            if last[row] is None:
                continue
            numbers = counts[group[row]]
            best = min(number for number in numbers if numbers[number] == max(numbers.values()))
            cause = next((r for r in range(row - 1, -1, -1) if self.cpu[r] == self.cpu[row]
                          and self.code[r] in INTERRUPTS and self.words[r][0] == best), None)  # fmt: skip
            last[row] = cause if cause is not None and cause >= since[row] else None
        return {row: (last[row], only[row]) for row in rows}

    # --- Pulses -----------------------------------------------------------------------------------------------------
    def pulses(self):
        """Return {(send, receipt): certainty}."""
        sends = [row for row in range(self.count) if self.code[row] in PULSES]
        receipts = [row for row in range(self.count) if self.code[row] == RECEIVED_PULSE]
        key = {row: (self.words[row][1], self.words[row][0]) for row in sends}
        for row in receipts:
            pid = self.pid[self.thread[row]] if self.thread[row] else self.words[row][1]
            key[row] = None if self.words[row][:2] == [0xFFFFFFFF, 0xFFFFFFFF] else (pid, self.words[row][0])
        by_receipt = {}
        for thread in range(len(self.pid)):
            rows = self.trace.states.of(thread).tolist()
            for begin, end in pairwise(rows):
                sent = self.before(PULSES, end)
                receipt = next((r for r in receipts if r >= end and self.thread[r] == thread), None)
                if self.value[begin] == STATE_BY_NAME["RECEIVE"].value and self.whole(begin, end) and (
                    sent is not None and sent > begin and receipt is not None and key[sent] == key[receipt]
                ):  # fmt: skip
                    by_receipt[receipt] = max(by_receipt.get(receipt, (-1, -1)), (end, sent))
        direct = {}
        for receipt in sorted(by_receipt):
            direct.setdefault(by_receipt[receipt][1], receipt)
        found = dict.fromkeys(direct.items(), EXACT)
        for own in set(key.values()) - {None}:
            rows = [row for row in sorted(key) if key[row] == own]
            queue, batch, known, before = [], [], False, None
            for row in rows:
                if before is not None and not self.same_part(before, row):
                    queue, batch, known = [], [], False
                before = row
                if row in direct:
                    queue, batch, known = [], [], True  # it was handed over: the queue is empty
                elif any(receipt == row and self.whole(sent, row) for sent, receipt in direct.items()):
                    continue
                elif row in sends:
                    batch = batch if queue else []
                    queue.append(row)
                    batch.append(row)
                    for pair in found:
                        if pair[0] in batch and len(queue) > 1 and pair[0] not in direct:
                            found[pair] = GUESS
                elif queue:
                    sent = queue.pop(0)
                    is_single = len(batch) == 1
                    found[sent, row] = EXACT if is_single and known else GUESS
        return {pair: how for pair, how in found.items() if self.whole(*pair)}

    def same_part(self, first, last):
        return not any(self.time[first] < end <= self.time[last] for _, end in self.lost)

    # --- Where pulses and signals come from -------------------------------------------------------------------------
    def deliveries(self):
        """Return {event: (cause, certainty)}."""
        found, free = {}, []
        for row in range(self.count):
            if self.code[row] == DEATH or self.code[row] not in (*PULSES, SIGNAL):
                continue
            timer = self.before((TIMER,), row)
            if self.open_call[row] != NO_EVENT:
                found[row] = self.open_call[row], EXACT
            elif timer is not None and self.is_quiet(timer, row):
                found[row] = timer, EXACT
            elif self.code[row] != SIGNAL:
                free.append(row)
        group = {row: tuple(self.words[row][:2]) for row in free}
        since = {row: 0 if self.last_switch[row] == NO_EVENT else self.last_switch[row] for row in free}
        for row, (cause, _) in self.usual(free, group, since).items():
            if cause is not None:
                found[row] = cause, INFERRED
        return {row: (cause, how) for row, (cause, how) in found.items() if self.whole(cause, row)}

    # --- What ends waits --------------------------------------------------------------------------------------------
    def wake_ups(self, pulse_links):
        """Return {event that ends a wait: (cause, certainty)}."""
        ends = [wait for wait in self.waits if wait["end_value"] in (READY, RUNNING)]
        found = {}
        for wait in ends:
            cause = next(filter(None, (rule(wait, pulse_links) for rule in (
                self._reply, self._receipt, self._object, self._timeout, self._timer, self._death, self._signal,
                self._call_from_outside))), None)  # fmt: skip
            if cause is not None:
                found[wait["end_row"]] = cause
        open_ends = [wait for wait in ends if wait["end_row"] not in found and self._call(wait) is None]
        for states in (["INTR"], ["NANOSLEEP", "SEND", "REPLY", "MUTEX", "CONDVAR", "SEM", "JOIN"]):
            if states != ["INTR"] and TIMER in self.code:
                break
            mine = {wait["end_row"]: wait for wait in open_ends if wait["value"] in values_of(*states)}
            group = {row: wait["thread"] if states == ["INTR"] else 0 for row, wait in mine.items()}
            since = {row: wait["row"] for row, wait in mine.items()}
            for row, (cause, is_only) in self.usual(sorted(mine), group, since).items():
                if cause is not None:
                    found[row] = cause, EXACT if is_only and states == ["INTR"] else INFERRED
        return {row: (cause, how) for row, (cause, how) in found.items() if self.whole(cause, row)}

    def _call(self, wait):
        """Return the call of another thread within which a wait ends."""
        call = self.open_call[wait["end_row"]]
        return None if call == NO_EVENT or self.thread[call] == wait["thread"] else call

    def _call_name(self, wait):
        call = self._call(wait)
        return "" if call is None else self.names.get(self.code[call] & 0x7F, "")

    def _reply(self, wait, _pulses):
        if wait["value"] in values_of("SEND", "REPLY"):
            for row in range(wait["end_row"] - 1, wait["first_row"], -1):
                if self.code[row] in (REPLY, ERROR) and (
                    self.thread_of(self.words[row][1], self.words[row][0]) == wait["thread"]
                ):  # fmt: skip
                    return row, EXACT
        return None

    def _receipt(self, wait, pulse_links):
        if wait["value"] not in values_of("RECEIVE"):
            return None
        receipt = next((row for row in range(wait["end_row"], self.count) if self.thread[row] == wait["thread"]
                        and self.code[row] in (RECEIPT, RECEIVED_PULSE)), None)  # fmt: skip
        last = self.before((SEND, *PULSES), wait["end_row"])
        if last is None or last < wait["row"] or receipt is None:
            return None
        if self.message.get(receipt) == last:
            return last, EXACT
        how = pulse_links.get((last, receipt))
        return None if how is None else (last, EXACT if how == EXACT else INFERRED)

    def _object(self, wait, _pulses):
        state, call, name = STATE_NAMES[wait["value"]], self._call(wait), self._call_name(wait)
        if name not in OBJECTS.get(state, ()):
            return None
        given, by = self.argument(call, OBJECTS[state][name]), self.thread[call]
        is_here = self.process[by] == self.process[wait["thread"]]
        if given is None or not wait["has_object"] or not is_here:
            return call, INFERRED
        return (call, EXACT) if given == wait["object"] else None

    def _last_expiry(self, wait, is_timeout):
        for row in range(wait["end_row"] - 1, wait["first_row"], -1):
            if self.code[row] == TIMER and (self.words[row][2] == 0xFFFFFFFF) == is_timeout and (
                self.thread_of(*self.words[row][:2]) == wait["thread"]
            ):  # fmt: skip
                return row
        return None

    def _timeout(self, wait, _pulses):
        row = self._last_expiry(wait, is_timeout=True)
        return None if row is None else (row, EXACT)

    def _timer(self, wait, _pulses):
        row = self._last_expiry(wait, is_timeout=False) if wait["value"] in values_of("INTR") else None
        return None if row is None or not self.is_quiet(row, wait["end_row"]) else (row, INFERRED)

    def _death(self, wait, _pulses):
        row = self.before((wire.THREAD_DESTROY,), wait["end_row"])
        if row is None or row < wait["row"] or wait["value"] not in values_of("JOIN", "SEND", "REPLY"):
            return None
        dead = self.thread[row]
        if wait["value"] in values_of("JOIN"):
            fits = not wait["has_object"] or wait["object"] == self.tid[dead]
            return (row, EXACT) if fits and self.pid[dead] == self.pid[wait["thread"]] else None
        sent = next((r for r in range(wait["end_row"] - 1, -1, -1)
                     if self.code[r] == SEND and self.thread[r] == wait["thread"]), None)  # fmt: skip
        if sent is None:
            return None
        if sent in self.receipt:
            return (row, EXACT) if self.thread[self.receipt[sent]] == dead else None
        return (row, INFERRED) if self.words[sent][1] == self.pid[dead] else None

    def _signal(self, wait, _pulses):
        row, switch = self.before((SIGNAL,), wait["end_row"]), self.last_switch[wait["end_row"]]
        if row is None or row < wait["row"] or (switch != NO_EVENT and switch > row):
            return None
        # Of the two the interrupt that came after the signal is what such a wait ends by, on whatever CPU.
        is_interrupt = any(code in INTERRUPTS for code in self.code[row + 1 : wait["end_row"]])
        if is_interrupt and wait["value"] in values_of("INTR"):
            return None
        return row, INFERRED

    def _call_from_outside(self, wait, _pulses):
        name, state = self._call_name(wait), STATE_NAMES[wait["value"]]
        tables = [FROM_OUTSIDE] if any(code >> 10 == 7 for code in self.code) else [FROM_OUTSIDE, WITHOUT_COMM]
        for table in tables:
            if name in table and (table[name] is None or state in table[name]):
                return self._call(wait), INFERRED
        return None

    # --- Mutexes ----------------------------------------------------------------------------------------------------
    def mutex_calls(self):
        """Return gets and gives as [(row, thread, (process, address) or None)], and the mutex of each wait."""
        gets, gives = [], []
        pausing = {wait["call_row"] for wait in self.waits}
        for name, tables, word in (("SYNC_MUTEX_LOCK", (gets,), "sync_p"), ("SYNC_MUTEX_UNLOCK", (gives,), "sync_p"),
                                  ("SYNC_CONDVAR_WAIT", (gets, gives), "mutex_p")):  # fmt: skip
            for row in entries_of(self.trace, name).tolist():
                exit_row = self.partner[row]
                if name == "SYNC_CONDVAR_WAIT":
                    fits = row in pausing
                elif exit_row == NO_EVENT:
                    fits = name == "SYNC_MUTEX_UNLOCK"
                else:
                    fits = self.code[exit_row] & 0x180 == 0x80 and not self.has_failed(exit_row)
                if fits:
                    for table in tables:
                        table.append((row, self.thread[row], self._mutex(self.thread[row], self.argument(row, word))))
        of_wait = [self._mutex(wait["thread"], wait["object"]) if wait["value"] in values_of("MUTEX")
                   and wait["has_object"] else None for wait in self.waits]  # fmt: skip
        return sorted(gets, key=lambda call: call[0]), sorted(gives, key=lambda call: call[0]), of_wait

    def has_failed(self, exit_row):
        return self.words[exit_row][0] >= 1 << 31 or self.words[exit_row][0] == 0xFFFFFFFF

    def _mutex(self, thread, address):
        return (self.process[thread], address) if thread and address else None

    def holds(self):
        """Return {(get, give): certainty}."""
        gets, gives, of_wait = self.mutex_calls()
        found = {}
        for give, thread, mutex in gives:
            mine = [(row, 1, "get") for row, *other in gets if tuple(other) == (thread, mutex) and row < give]
            mine += [(row, 0, "give") for row, *other in gives if tuple(other) == (thread, mutex) and row < give]
            if mutex is None or not mine or max(mine)[2] != "get":
                continue
            get = max(mine)[0]
            if any(get < row < give for row, who, other in gives if who == thread and other is None) or (
                not self.whole(get, give)
            ):  # fmt: skip
                continue
            since = self.partner[get]
            is_held = since != NO_EVENT and all(
                any(own == mutex and wait["row"] <= row and (wait["end_row"] == OPEN or wait["end_row"] > row)
                    for own, wait in zip(of_wait, self.waits, strict=True))
                for row in range(since - 1, give))  # fmt: skip
            is_sure = is_held and not any(get <= row < give for row, who, _ in gives if not who)
            found[get, give] = EXACT if is_sure else INFERRED
        return found

    # --- Whom waits are for -----------------------------------------------------------------------------------------
    def blockers(self):
        """Return (thread, pid, certainty) of each wait."""
        _, gives, of_wait = self.mutex_calls()
        woken = {link.to_row: link.from_row for link in wake_ups(self.trace)}
        locks = set(entries_of(self.trace, "SYNC_RWLOCK", "SYNC_MUTEX_UNLOCK").tolist())
        found = []
        for wait, mutex in zip(self.waits, of_wait, strict=True):
            pid, state, own = -1, STATE_NAMES[wait["value"]], wait["thread"]
            thread, how = 0, 0
            if state in ("SEND", "REPLY"):
                thread, pid = self._server(wait, state)
                how = EXACT if pid > 0 else 0
            elif state == "JOIN" and wait["has_object"]:
                thread, how = self.thread_of(self.pid[own], wait["object"]), EXACT
            elif state == "MUTEX" and wait["has_object"]:
                thread, how = self._holder(wait, mutex, gives)
            is_let_in = state in ("MUTEX", "RWLOCK_READ", "RWLOCK_WRITE") and woken.get(wait["end_row"]) in locks
            if is_let_in and wait["has_object"] and thread <= 0:
                thread, how = self._who_let_in(wait, woken[wait["end_row"]]), INFERRED
            if thread > 0:
                found.append((thread, self.pid[thread], how))
            else:
                found.append((-1, pid, how if pid > 0 else 0))
        return found

    def _server(self, wait, state):
        sent = next((row for row in range(wait["row"] - 1, -1, -1)
                     if self.code[row] == SEND and self.thread[row] == wait["thread"]), None)  # fmt: skip
        if sent is None or wait["call_row"] == NO_EVENT or sent < wait["call_row"] or not self.whole(sent, wait["row"]):
            return 0, -1
        pid = self.words[sent][1]
        server = self.thread[self.receipt[sent]] if state == "REPLY" and sent in self.receipt else 0
        return server, pid if 0 < pid < 1 << 31 else -1

    def _holder(self, wait, mutex, gives):
        own = wait["thread"]
        word = self.argument(wait["call_row"], "owner") if wait["first_row"] == wait["row"] else None
        if word is not None:
            high, low = (word & 0x7FFFFFFF) >> 16, word & 0xFFFF
            pid = self.pid[own]
            within = {self.thread_of(pid, tid) for tid, part, mask in ((high, low, 0xFFFF), (low, high, 0x7FFF))
                      if tid > 0 and part == pid & mask} - {0}  # fmt: skip
            if len(within) == 1:
                return within.pop(), EXACT
            fits = [row for row in range(len(self.pid)) if self.pid[row] > 1 and 0 < self.tid[row] < 1 << 15
                    for code in (self.tid[row] << 16 | self.pid[row] & 0xFFFF,
                                 (self.pid[row] & 0x7FFF) << 16 | self.tid[row])
                    if code == word & 0x7FFFFFFF]  # fmt: skip
            if len(fits) == 1 and fits[0] != own:
                return fits[0], INFERRED
        give = next((call for call in gives if call[2] == mutex and mutex and call[0] >= wait["row"]), None)
        if give is None or give[0] > wait["end_row"] or give[1] == own or any(
            wait["row"] <= row < give[0] and (who == 0 or (other is None and self.process[who] == self.process[own]))
            for row, who, other in gives
        ):  # fmt: skip
            return 0, 0
        return give[1], INFERRED

    def _who_let_in(self, wait, cause):
        who = self.thread[cause]
        kinds = values_of("MUTEX"), values_of("RWLOCK_READ", "RWLOCK_WRITE")
        same = next(kind for kind in kinds if wait["value"] in kind)
        ends = [other for other in self.waits if other["thread"] == who and other["end_row"] < cause
                and other["value"] in same and other["has_object"]]  # fmt: skip
        last = max(ends, key=lambda other: other["end_row"], default=None)
        return 0 if last is not None and last["end_row"] > wait["row"] else who

    # --- Transactions -----------------------------------------------------------------------------------------------
    def transactions(self):
        """Return a dictionary of moments for each message that is sent."""
        sends = [row for row in range(self.count) if self.code[row] == SEND]
        found = []
        for sent in sends:
            client, received = self.thread[sent], self.receipt.get(sent, -1)
            later = [row for row in self.trace.states.of(client).tolist() if row > sent]
            waiting = values_of("SEND", "REPLY")
            blocked = later[0] if later and self.value[later[0]] in waiting else -1
            free = next((row for row in later if self.value[row] not in waiting), -1)
            runs = next((row for row in later if self.value[row] == RUNNING), -1)
            if blocked < 0 or not self.whole(sent, blocked):
                blocked = free = runs = -1
            free, runs = (row if row >= 0 and self.whole(sent, row) else -1 for row in (free, runs))
            reply = next((row for row in range(sent + 1, self.count) if client and (
                (self.code[row] == SEND and self.thread[row] == client) or (self.code[row] in (REPLY, ERROR)
                 and self.thread_of(self.words[row][1], self.words[row][0]) == client))), -1)  # fmt: skip
            if reply < 0 or self.code[reply] == SEND or not self.whole(sent, reply):
                reply = -1
            over = reply if reply >= 0 else free
            server = self.thread[received] if received >= 0 else 0
            pid = self.words[sent][1]
            found.append({"client": client or -1, "server": server or -1, "send_row": sent, "receive_row": received,
                          "reply_row": reply, "blocked_row": blocked, "over_row": over, "done_row": runs,
                          "server_pid": pid - (pid >> 31 << 32)})  # fmt: skip
        for row in found:
            row["parent"] = self._parent(row, found)
            for name, (first, last) in LENGTHS.items():
                is_known = row[first] >= 0 and row[last] >= row[first]
                row[name] = self.time[row[last]] - self.time[row[first]] if is_known else -1
        return found

    def _parent(self, row, found):
        if row["client"] < 0:
            return -1
        served = [(other["receive_row"], number) for number, other in enumerate(found)
                  if other["server"] == row["client"] and other["receive_row"] < row["send_row"]]  # fmt: skip
        for received, number in sorted(served, reverse=True):
            if not self.whole(received, row["send_row"]):
                return -1
            if not 0 <= found[number]["over_row"] <= row["send_row"]:
                return number
        return -1


STATE_NAMES = {state.value: name for name, state in STATE_BY_NAME.items()}


def values_of(*names):
    """Return the lane values of some states."""
    return {STATE_BY_NAME[name].value for name in names}
