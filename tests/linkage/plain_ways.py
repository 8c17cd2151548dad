"""Latencies, ways from cause to effect, and what numbers mean, found event by event as plainly as they are defined.

Made of the tables of links of a trace, which `plain.py` has as well.
"""

from __future__ import annotations

from satview.events.states import READY, RUNNING
from satview.linkage import calls
from satview.linkage.chain import Relation, link_table
from satview.linkage.links import NO_EVENT, OPEN, LinkKind
from satview.linkage.waits import entries_of
from tests.linkage.plain import DEATH, EXACT, INFERRED, PULSES, SEND, values_of

LEGS = ("handler_entry_cycles", "handler_cycles", "delivery_cycles", "ready_cycles", "scheduling_cycles",
        "receipt_cycles")  # fmt: skip
RELATIONS = {
    LinkKind.MESSAGE: (Relation.RECEIVED_BY, Relation.SENT_BY),
    LinkKind.PULSE: (Relation.RECEIVED_BY, Relation.SENT_BY),
    LinkKind.REPLY: (Relation.ANSWERED_BY, Relation.ANSWERS), LinkKind.WAKE_UP: (Relation.WAKES, Relation.WOKEN_BY),
    LinkKind.DELIVERY: (Relation.DELIVERS, Relation.DELIVERED_BY),
    LinkKind.CREATION: (Relation.CREATES, Relation.CREATED_BY), LinkKind.HOLD: (Relation.GIVEN_UP_BY, Relation.GOT_BY),
}  # fmt: skip


class Ways:
    """Walks along the links of a trace (`Plain`)."""

    def __init__(self, plain):
        self.plain = plain
        self.begun, self.ended = {}, {}
        for kind in RELATIONS:
            begun, ended = self.begun.setdefault(kind, {}), self.ended.setdefault(kind, {})
            for link in link_table(plain.trace, kind):
                begun.setdefault(link.from_row, []).append((link.to_row, int(link.certainty)))
                ended[link.to_row] = link.from_row, int(link.certainty)
        self.connections = self._connections()

    # --- Latencies --------------------------------------------------------------------------------------------------
    def latencies(self):
        """Return a dictionary for each pulse, and each end of InterruptWait() with a known cause."""
        plain, rows = self.plain, []
        for pulse in range(plain.count):
            if plain.code[pulse] not in PULSES or plain.code[pulse] == DEATH:
                continue
            cause, sure = self._first(LinkKind.DELIVERY, pulse, is_end=True)
            ready, woken = self._first(LinkKind.WAKE_UP, pulse)
            received, taken = self._first(LinkKind.PULSE, pulse)
            thread = plain.thread[received] if received >= 0 else plain.thread[ready] if ready >= 0 else 0
            rows.append({"cause_row": cause, "pulse_row": pulse, "ready_row": ready, "received_row": received,
                         "thread": thread or -1, "certainty": min(sure, woken, taken)})  # fmt: skip
        for wait in plain.waits:
            cause, sure = self._first(LinkKind.WAKE_UP, wait["end_row"], is_end=True)
            if wait["value"] in values_of("INTR") and cause >= 0:
                rows.append({"cause_row": cause, "pulse_row": -1, "ready_row": wait["end_row"], "received_row": -1,
                             "thread": wait["thread"], "certainty": sure})  # fmt: skip
        for row in rows:
            self._add_running(row)
            self._add_handler(row)
            self._add_legs(row)

        def order(row):
            return row["cause_row"] if row["cause_row"] >= 0 else row["pulse_row"], row["ready_row"], row["pulse_row"]

        return sorted(rows, key=order)

    def _first(self, kind, row, *, is_end=False):
        """Return the other end of the first link of an event, and its certainty; -1 and exact for none."""
        return self.ended[kind].get(row, (-1, EXACT)) if is_end else min(self.begun[kind].get(row, [(-1, EXACT)]))

    def _add_running(self, row):
        plain, ready, row["running_row"] = self.plain, row["ready_row"], -1
        if ready >= 0:
            later = [each for each in plain.trace.states.of(plain.thread[ready]).tolist()
                     if each >= ready and plain.value[each] == RUNNING]  # fmt: skip
            row["running_row"] = later[0] if later and plain.whole(ready, later[0]) else -1

    def _add_handler(self, row):
        plain, cause = self.plain, row["cause_row"]
        row.update(number=-1, handler_row=-1, handler_exit_row=-1)
        if cause < 0 or plain.code[cause] >> 10 != 3:
            return
        row["number"] = plain.words[cause][0]
        effect = row["pulse_row"] if row["pulse_row"] >= 0 else row["ready_row"]
        over = min(plain.partner[cause], effect)
        answered = plain.pid[max(row["thread"], 0)]
        pid = plain.words[row["pulse_row"]][1] if row["pulse_row"] >= 0 else answered
        fits = []
        for enter, leave in zip(*(rows.tolist() for rows in calls.handlers(plain.trace)), strict=True):
            returned = plain.words[leave]
            if cause <= enter < over and plain.cpu[enter] == plain.cpu[cause] and (
                plain.argument(enter, "interrupt_number") == row["number"] and (len(returned) < 2 or any(returned[1:]))
            ):  # fmt: skip
                fits.append((plain.argument(enter, "pid"), enter, leave))
        if len(fits) > 1:
            fits = [handler for handler in fits if handler[0] == pid]
        if len(fits) == 1:
            row["handler_row"], row["handler_exit_row"] = fits[0][1:]
            row["certainty"] = min(row["certainty"], INFERRED)

    def _add_legs(self, row):
        time, last, row["total_cycles"] = self.plain.time, row["cause_row"], -1
        moments = ("handler_row", "handler_exit_row", "pulse_row", "ready_row", "running_row", "received_row")
        for name, leg in zip(moments, LEGS, strict=True):
            moment, row[leg] = row[name], -1
            if last >= 0 and moment >= last:
                row[leg] = time[moment] - time[last]
                row["total_cycles"] = max(row["total_cycles"], 0) + row[leg]
            last = moment if moment >= 0 else last

    # --- From cause to effect ---------------------------------------------------------------------------------------
    def causes(self, row):
        """Return (relation, row, certainty) of what an event follows from."""
        plain, found = self.plain, []
        for kind, (_, relation) in RELATIONS.items():
            cause, how = self._first(kind, row, is_end=True)
            if cause >= 0:
                found.append((relation, cause, how))
        states = [each for each in plain.trace.states.of(plain.thread[row]).tolist() if each < row]
        if plain.value[row] == RUNNING and states and plain.value[states[-1]] == READY:
            found.append((Relation.WAS_READY, states[-1], EXACT))
        is_delivered = Relation.DELIVERED_BY in {relation for relation, *_ in found}
        if plain.code[row] >> 10 == 7 and not is_delivered and plain.open_call[row] != NO_EVENT:
            found.append((Relation.WITHIN, plain.open_call[row], EXACT))
        return found

    def effects(self, row, ends):
        """Return the same of what follows from an event; `ends` are those of all states."""
        plain, found = self.plain, []
        if plain.code[row] >> 10 == 2:
            inside = [each for each in range(row, plain.count) if plain.code[each] >> 10 == 7][:64]
            found += [(Relation.SENDS, each, EXACT) for each in inside
                      if plain.cpu[each] == plain.cpu[row] and plain.open_call[each] == row]  # fmt: skip
        for kind, (relation, _) in RELATIONS.items():
            for last, how in sorted(self.begun[kind].get(row, []))[:16]:
                if last != OPEN and last not in {effect for _, effect, _ in found}:
                    found.append((relation, last, how))
        if plain.value[row] != RUNNING and ends[row] not in (NO_EVENT, OPEN):
            found.append((Relation.RUNS if plain.value[row] == READY else Relation.ENDS, ends[row], EXACT))
        return found

    def way(self, row, most, ends):
        """Return the (from, to) of the way to an event and on from it."""
        before, after, at = [], [], row
        while len(before) < most and (steps := self.causes(at)):
            before.insert(0, (steps[0][1], at))
            at = steps[0][1]
        at = row
        while len(after) < most and (steps := self.effects(at, ends)):
            after += [(at, effect) for relation, effect, _ in steps if relation is steps[0][0]]
            at = steps[0][1]
        return before + after

    # --- Numbers ----------------------------------------------------------------------------------------------------
    def server_of(self, process, coid, event):
        """Return (pid, channel, row, certainty) of where a connection of a process leads to at an event."""
        known = [each for each in self.connections if each[:2] == (process, coid & 0xFFFFFFFF)]
        if not known:
            return None
        before = [each for each in known if each[2] <= event]
        _, _, row, pid, chid = before[-1] if before else known[0]
        is_sure = self.plain.whole(row, event) if before else self.plain.open_call[row] == event
        return pid, chid, row, EXACT if is_sure else INFERRED

    def _connections(self):
        """Return (process, coid, row, pid, channel), in time order, without those that show the same as before."""
        plain, shown = self.plain, []
        for entry in entries_of(plain.trace, "CONNECT_ATTACH").tolist():
            leave, thread = plain.partner[entry], plain.thread[entry]
            if leave == NO_EVENT or plain.code[leave] & 0x180 != 0x80 or plain.has_failed(leave) or not thread:
                continue
            pid, coid, chid = (plain.argument(row, name) for row, name in
                               ((entry, "pid"), (leave, "coid"), (entry, "chid")))  # fmt: skip
            if (plain.argument(entry, "nd") or 0) == 0 and pid is not None and coid is not None:
                server = pid or plain.pid[thread]
                shown.append((plain.process[thread], coid & 0xFFFFFFFF, leave, server, -1 if chid is None else chid))
        for row in range(plain.count):
            call = plain.open_call[row]
            if plain.code[row] != SEND or call == NO_EVENT or not plain.thread[row] or (
                plain.thread[call] != plain.thread[row] or not 0 < plain.words[row][1] < 1 << 31
            ):  # fmt: skip
                continue
            coid = plain.argument(call, "coid")
            if coid is not None:
                process = plain.process[plain.thread[row]]
                shown.append((process, coid & 0xFFFFFFFF, row, plain.words[row][1], self._channel(row)))
        found, last = [], {}
        for each in sorted(shown, key=lambda each: each[2]):
            pid, chid = last.get(each[:2], (None, None))
            last[each[:2]] = each[3:]
            if pid != each[3] or (chid != each[4] and each[4] >= 0):
                found.append(each)
        return found

    def _channel(self, sent):
        """Return the channel on which a message was received, as the receiver's last call shows it."""
        plain = self.plain
        receipt = plain.receipt.get(sent)
        if receipt is None or not plain.thread[receipt]:
            return -1
        calls = [
            row for row in range(receipt) if plain.code[row] >> 10 == 2 and plain.thread[row] == plain.thread[receipt]
        ]
        entry = calls[-1] if calls else NO_EVENT
        if entry != NO_EVENT and plain.code[entry] & 0x180:
            entry = plain.partner[entry]
        if entry == NO_EVENT or not plain.whole(entry, receipt):
            return -1
        chid = plain.argument(entry, "chid")
        return -1 if chid is None else chid

    def client_of(self, process, rcvid, event):
        """Return the send of the message that a server knows by a number at an event, -1 for none."""
        plain = self.plain
        receipts = [row for row in sorted(plain.message) if row <= event and plain.words[row][0] == rcvid
                    and plain.process[plain.thread[row]] == process]  # fmt: skip
        if not receipts or not plain.whole(receipts[-1], event):
            return -1
        reply, _ = self._first(LinkKind.REPLY, receipts[-1])
        return -1 if 0 <= reply <= event else plain.message[receipts[-1]]

    def creation_of(self, process, chid, event):
        """Return the call by which a process got a channel before an event, -1 for none."""
        plain = self.plain
        return max((entry for entry in entries_of(plain.trace, "CHANNEL_CREATE").tolist()
                    if entry < event and plain.process[plain.thread[entry]] == process
                    and plain.partner[entry] != NO_EVENT and plain.code[plain.partner[entry]] & 0x180 == 0x80
                    and not plain.has_failed(plain.partner[entry])
                    and plain.argument(plain.partner[entry], "chid") == chid), default=-1)  # fmt: skip
