"""One printed event and its lines: the code and the payload words it becomes, and how many of its lines are foreign."""

from __future__ import annotations

import pytest

from satview.events.spec import Release
from satview.formats.listing import events
from satview.formats.listing.events import EventParser, LineFit

RELEASES = {"6": Release.QNX_6, "6.6": Release.QNX_6_6, "7": Release.QNX_7, "8": Release.QNX_8}
NEW_CLASS_COLUMN = "78"  # releases that fill it to 16 characters


def parsed(parser: EventParser, release: str, event: str) -> str:
    """Return code and words in hexadecimal, behind + the foreign lines; `|` ends a line.

    What fits in part begins with `~` and has the arguments of the line with their notation at its end; what fits no
    row begins with `-` and its event.
    """
    class_name, _, rest = event.partition(":")
    column = f"{class_name:16}" if release[0] in NEW_CLASS_COLUMN else class_name
    text, *body = f"{column}:{rest}".split("|")
    found = parser.parse(text, body)
    words = " ".join(f"{word:x}" for word in found.words)
    names = f" ({', '.join(map(' '.join, found.names))})" if found.names else ""
    more = f" +{found.foreign}" if found.foreign else ""
    if found.fit is LineFit.RAW:
        return f"- {'/'.join(parser.names_of(found.code))} {words}{names}{more}"
    return f"{'~ ' if found.fit is LineFit.PART else ''}{found.code:x} {words}{names}{more}"


EVENTS = """\
7   CONTROL:TIME   msb:0x00000005 lsb(offset):0x00000007             -> 401 5 7
7   CONTROL:TIME   msb:5, lsb(offset) : -1                           -> 401 5 ffffffff
7   CONTROL:TIME   msb:-1|   lsb(offset):7                           -> 401 ffffffff 7
7   CONTROL:TIME   msb:5 x:1 lsb(offset):7
    -> ~ 401 5 7 1 0 (msb dec, x dec, lsb(offset) dec)
7   CONTROL:TIME   msb:5                                             -> - CONTROL/TIME? 5 0 (msb dec)
7   CONTROL:BUFFER   sequence = 10, num_events = 1000                -> 402 a 3e8
7   CONTROL:BUFFER   sequence:-1 num_events:-2                       -> 402 ffffffff fffffffe
8   CONTROL:BUFFER_END   cookie1 = 10, cookie2 = e6e6e6e6            -> 404 10 e6e6e6e6
8   CONTROL:BUFFER_END   cookie1=0x100000002 cookie2=0x3             -> 404 2 3
7   CONTROL:BUFFER_END   sequence = 10, num_events = 1000
    -> - CONTROL/BUFFER_END a 3e8 (sequence dec, num_events dec)
7   USREVENT:EVENT:11, d0:0x00000001 d1:2                            -> 180b 1 2
7   USREVENT:EVENT:0 d0:1 d1:-2                                      -> 1800 1 fffffffe
7   USREVENT:EVENT:-1, d0:1                                          -> - USREVENT/EVENT ffffffff 1 (EVENT dec, d0 dec)
7   USREVENT:EVENT:3                                                 -> 1803 0 0
7   USREVENT:EVENT:3, d0:1, junk
    -> - USREVENT/EVENT 3 1 6b6e756a 0 0 (d0 dec, text string)
7   USREVENT:EVENT:3, d0:1|  d1:2|  d127:3                           -> 1803 1 2 3
7   USREVENT:EVENT:3, d0:1|d128:3                                    -> 1803 1 3
7   USREVENT:EVENT:3, STR:"abc"                                      -> 1803 636261 0 0 0
7   USREVENT:EVENT:3, STR:"abcdefghijklmnop"                         -> 1803 64636261 68676665 6c6b6a69 706f6e6d 0
7   USREVENT:EVENT:3, STR:"a"bc"                                     -> 1803 63622261 0 0 0
7   USREVENT:EVENT:3, STR:"ab|cd"                                    -> 1803 630a6261 64 0 0
7   USREVENT:EVENT:3, STR:"abc", d0:-1 d1:2 d2:0x3
    -> - USREVENT/EVENT 3 ffffffff 2 3 636261 (STR string, d0 dec, d1 dec, d2 hex)
7   USREVENT:EVENT:100 STR:"ab", d0:0x00006261 d1:0x00000000 d2:0x00000001 d3:0x00000000 -> 1864 6261 0 1 0
7   INT_CALL:KER_MSG_SENDV/11                                        -> 90b 0 0
7   INT_CALL:KER_MSG_SENDV/127                                       -> 97f 0 0
7   INT_CALL:MSG_SENDV/11                                            -> 90b 0 0
7   INT_ENTR:0x0000001c (28)      inkernel=5                         -> c01 1c 5
7   INT_ENTR:0x0000001c (28)      IP:0x00001234                      -> c01 1c 1234
7   INT_ENTR:0x0000001c (28)      IP:0x0000000000001234              -> c05 1c 0 1234 0
7   INT_ENTR:28 (28)|IP:0x12345678                                   -> c01 1c 12345678
7   INT_ENTR:0x80000000 (-2147483648)      IP:0x00001000             -> c01 80000000 1000
7   INT_ENTR:28                                                      -> ~ c01 1c 0 (interrupt_number dec)
6   INT_EXIT:0x0000001c (28)      inkernel=5                         -> c02 1c 5
7   INT_EXIT:0x0000001c (28)      inkernel=5                         -> c02 1c 5
7   INT_EXIT:0x0000001c (28)      inkernel=0x0000000000000005        -> c02 1c 5
6   INT_EXIT:0x00000004 (4) inkernel:0x00000001                      -> c02 4 1
8   INT_EXIT:0x0000001c (28)      inkernel=5                         -> c02 1c 5
7   INT_HANDLER_ENTR:28 (28) PID:7 IP:0x00001234 AREA:0x00000020     -> c03 7 1c 1234 20
7   INT_HANDLER_ENTR:28 (28) PID:7 IP:0x1234 AREA:0x0000000000000020 -> c06 7 1c 1234 0 20 0
7   INT_HANDLER_ENTR:28 (28) PID:7 IP:0x100001234 AREA:0x20          -> c06 7 1c 1234 1 20 0
8   INT_HANDLER_ENTR:28 (28) PID:7 IP:0x00001234 AREA:0x00000020     -> c03 7 1c 1234 20
7   INT_HANDLER_ENTR:28 (28) PID:7 IP:0x00001234
    -> ~ c03 7 1c 1234 0 (interrupt_number dec, pid dec, ip hex)
7   INT_HANDLER_EXIT:28 (28) SIGEVENT:0x1 0x2 0x3 -1 0x5             -> c04 1c 1 2 3 ffffffff 5
7   INT_HANDLER_EXIT:-1 (28) SIGEVENT:PULSE 0x4:10 2:0x55            -> c04 ffffffff 4 4 55 a0002 0
7   INT_HANDLER_EXIT:28 (28) SIGEVENT:                               -> c04 1c 0 0 0 0 0
6   INT_HANDLER_EXIT:28 (28) SIGEVENT:NONE                           -> c04 1c 0 0 0 0 0
7   INT_HANDLER_EXIT:28 (28) SIGEVENT:NOTHING 1
    -> ~ c04 1c 48544f4e 20474e49 31 (interrupt_number dec, SIGEVENT string)
7   INT_HANDLER_EXIT:28 (28)                                         -> c04 1c 0 (interrupt_number dec)
8   INTERRUPT:INT_DELIVER       intr_id:0x1c(28)                     -> c07 1c 0
8   INTERRUPT:INT_DELIVER       intr_id:-1                           -> c07 ffffffff 0
8   INTERRUPT:INT_DELIVER       intr:0x1c                            -> - INTERRUPT/INT_DELIVER 0 1c (intr hex)
7   KER_EXIT:MSG_SENDV/11 ret_val:-1 errno:5                         -> 88b ffffffff 5
6   KER_EXIT:MSG_SENDV/11 ret_val:-1, errno:0x5                      -> 88b ffffffff 5
7   KER_EXIT:MSG_SENDV/11|   ret_val:0xffffffffffffffff|   errno:5   -> 88b ffffffff 5
7   KER_EXIT:MSG_SENDV ret_val:0xffffffff errno:-5                   -> 88b ffffffff fffffffb
7   KER_CALL:MSG_SENDV/11 ret_val:-1 errno:5
    -> - KER_CALL/MSG_SENDV 0 0 ffffffff 5 (ret_val dec, errno dec)
7   SYSTEM:PROFILE_64   ip:0x0000000000001234 tid:2 pid:3            -> 1614 1234 0 2 3
6   SYSTEM:PROFILE_64   ip=0x100001234, tid=2, pid=3                 -> 1614 1234 1 2 3
7   SYSTEM:PROFILE_64   ip = 0x00003d516c6925, tid = 0x000001, pid = 0x0b7017 -> 1614 516c6925 3d 1 b7017
7   SYSTEM:PROFILE_64   ip:0x1234, tid:2                             -> ~ 1614 1234 0 2 0 (ip hex, tid dec)
7   SYSTEM:TIMER   pid:1 tid:2 timer_id:0x00000003 flags:0x00000004  -> 1412 1 2 3 4
7   SYSTEM:TIMER   pid:1 tid:2 timer_id:0x00000003 flags:0x00000004 CREATE ARM -> 1412 1 2 3 4
7   SYSTEM:TIMER   pid:1 tid:2 timer_id:3 flags:4 CREATE             -> 1412 1 2 3 4
7   SYSTEM:TIMER   pid:1 tid:8 timer_id:-1 flags:0x00000101 WAKEUP ACTIVE -> 1412 1 8 ffffffff 101
7   SYSTEM:POWER   word 0:0x0000000a word 1:0x00000001               -> 140f a 1
7   QVM:GUEST_ENTER   guest_ip:0x00000000deadbeef                    -> 2800 deadbeef 0
7   SYSTEM:TIMER   pid:1 tid:2 timer_id:0x00000003 flags:0x00000004 12
    -> ~ 1412 1 2 3 4 3231 0 (pid dec, tid dec, timer_id hex, flags hex, text string)
7   SYSTEM:IPI   ipicmd:0x00000001 interrupted_ip:0x00000002 tid:3 pid:4 -> 1410 1 2 3 4
7   SYSTEM:FUNC_ENTER   thisfn:0x00000001 call_site:0x00000002       -> 140a 1 2
7   SYSTEM:FUNC_ENTER   thisfn:0x0000000000000001 call_site:0x0000000000000002 -> 160a 1 0 2 0
6   SYSTEM:FUNC_ENTER thisfn:0x1 call_site:0x2                       -> 140a 1 2
7   SYSTEM:PATHMGR   pid:1 tid:2|   path:/dev/x                      -> 1402 1 2 7665642f 782f
7   SYSTEM:PATHMGR_OPEN   pid:1 tid:2|   pathname:/dev/x             -> 1402 1 2 7665642f 782f
7   SYSTEM:APS_NAME|   partition id:1|   partition name:System       -> 1403 1 74737953 6d65
7   SYSTEM:APS_NAME|   partition_id:1|   partition_name:System       -> 1403 1 74737953 6d65
7   SYSTEM:MMAP|   pid:1|   addr:0x0000000000000001|   len:2|   flags:3 -> 1406 1 1 0 2 0 3
7   PROCESS:PROCCREATE   ppid:1 pid:2                                -> 1040 1 2
6   PROCESS:PROCCREATE ppid:1 pid:2                                  -> 1040 1 2
7   PROCESS:PROCCREATE_NAME|   ppid:1|   pid:2|   name:a|b           -> 10c0 1 2 61 +1
7   PROCESS:PROCCREATE_NAME|   ppid:1|   pid:2|   name:              -> 10c0 1 2 0
7   PROCESS:PROCCREATE_NAME   ppid:1 pid:2                           -> 10c0 1 2
7   THREAD:THREADY   pid:1 tid:2                                     -> 1002 1 2
7   THREAD:THREADY|   pid:1|   tid:2                                 -> 1002 1 2 0 0
7   THREAD:THREADY|   pid:1|   tid:2|   priority:3
    -> ~ 1002 1 2 3 0 0 0 (pid dec, tid dec, priority dec)
7   THREAD:THREADY|  pid:1|  tid:2|  priority:3|  policy:4|  partition_id:5|  sched_flags:0x00000006 -> 1002 1 2 3 4 5 6
7   THREAD:THREADY|   pid:1|   tid:2|| |xyz|   junk:10| #
    -> ~ 1002 1 2 0 0 0 0 a 0 (pid dec, tid dec, junk dec) +2
7   THREAD:THREADY   pid:1 tid:2|pid:1 exited                        -> 1002 1 2 +1
7   THREAD:THREADY   pid:1 tid:2|pid:1 exited|                       -> 1002 1 2 +1
7   THREAD:THREADY   pid:1 tid:2|word 3:5                            -> 1002 1 2 +1
6   THREAD:THREADY pid:1 tid:2                                       -> 1002 1 2
6   THREAD:THCREATE|pid:1|tid:2|policy:3                             -> 1018 1 2 3
7   VTHREAD:THREADY   pid:1 tid:2                                    -> 101c 1 2
6   VTHREAD:THRUNNING     pid:1 tid:2                                -> 101b 1 2
7   VTHREAD:VTHREADY   pid:1 tid:2                                   -> 101c 1 2
7   VTHREAD:THCREATE   pid:1 tid:2                                   -> 1032 1 2
7   COMM:SND_PULSE_EXE   scoid:0x00010001 pid:1                      -> 1c04 10001 1
7   COMM:SND_PULSE_EXE   scoid = 65537,pid=0x1                       -> 1c04 10001 1
7   COMM:SND_PULSE_EXE   scoid:65537 pid:-2147483648                 -> 1c04 10001 80000000
7   COMM:SND_PULSE_EXE   scoid:65537 pid:-2147483649
    -> ~ 1c04 10001 0 7fffffff ffffffff (scoid dec, pid dec64)
6   COMM:MSG_ERROR tid:1 pid:2                                       -> 1c0b 1 2
7   KER_CALL:MSG_SENDV/11   coid:0x00000001 msg:"abcd" (0x64636261)  -> 80b 1 64636261
7   KER_CALL:MSG_READV/16|rcvid:0x00000005                           -> a10 5 0 0 0
8   KER_CALL:SYNC_MUTEX_UNLOCK/81|sync_p:0x0000000012345678          -> a51 12345678 0 0 0
6   KER_CALL:MSG_SENDV/11|coid:0x00000001|sparts:1|rparts:2|msg[0]:"a" (0x61 0x0 0x5) -> 80b 1 1 2 61 0 5
6   KER_CALL:MSG_SENDV/120|coid:0x00000001|sparts:1|rparts:2|msg:"a" (0x61 0x0) -> 878 1 1 2 61 0
6   KER_CALL:MSG_SENDV/11|coid:0x00000001|sparts:1                   -> ~ 80b 1 1 0 0 0 0 (coid hex, sparts dec)
6   KER_CALL:MSG_SENDV/11|coid:1|sparts:0x1|rparts:2
    -> ~ 80b 1 1 2 0 0 0 (coid dec, sparts hex, rparts dec)
8   KER_CALL:MSG_SENDV/11|coid:0x00000001                            -> ~ 80b 1 0 0 0 0 0 (coid hex)
7   KER_EXIT:MSG_SENDV/11   status:0x00000001                        -> a8b 1 0
7   KER_EXIT:MSG_RECEIVEV/14   rcvid:1|rmsg:"" (0x00000000 1 2)
    -> ~ 88e 1 0 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 (rcvid dec, rmsg msg)
6   KER_CALL:MSG_SENDV/11|coid:0x00000001|sparts:1|rparts:2|msg:"a" (0x61 0x0)|x:1 -> 80b 1 1 2 61 0 +1
7   KER_CALL:TRACE_EVENT/1   mode:0x00000001 class[header]:0x00000002 -> 801 1 2
7   KER_CALL:TIMER_SETTIME/72   id:0x00000001 itime->nsec(sec):2     -> 848 1 2
7   KER_CALL:TIMER_SETTIME/72   clock_id:0x00000001 itime->nsec_sec:2 -> 848 1 2
7   SYSTEM:APS_BANKRUPTCY|   pid:1|   tid:2|   partition_id:3        -> 1405 1 2 3
7   SYSTEM:APS_BANKRUPTCY|  suspect pid:1|  suspect tid:2|  partition id:3|x:1 -> 1405 1 2 3 +1
8   THREAD:THMQ_SEND|   pid:1|   tid:2|   priority:3|   policy:4|   partition:5
    -> ~ 1007 1 2 3 4 5 0 (pid dec, tid dec, priority dec, policy dec, partition dec)
7   KER_CALL:RING0   func_p:00000010 arg_p:00000020                  -> 802 10 20
6   KER_CALL:RING0/02 func_p:ff836f16 arg_p:12345678                 -> 802 ff836f16 12345678
7   KER_CALL:RING0/02   func_p:0xffff80000004f800                    -> a02 4f800 ffff8000
6   KER_EXIT:SYNC_CONDVAR_SIG/83 ret_val:0 empty:0x00000000          -> 8d3 0 0
7   KER_CALL:MSG_INFO   rcvid:00000010 info_p:00000020               -> 813 a 14
7   KER_CALL:                                                        -> - KER_CALL/EVENT 0 0
7   KER_CALL:EVENT 5   a:1                                           -> - KER_CALL/EVENT 5 1 0 (a dec)
7   SYSTEM:EVENT 29   word 0:0x00000001 word 1:2                     -> 141d 1 2
7   SYSTEM:EVENT 0   word 0:-1                                       -> 1400 ffffffff
7   SYSTEM:EVENT 5   pid:1 tid:2                                     -> ~ 1405 1 2 0 0 (pid dec, tid dec)
7   SYSTEM:EVENT 1023   word 0:0x00000001 word 1:2                   -> 17ff 1 2
7   SYSTEM:EVENT 1023   a:1                                          -> - SYSTEM/EVENT 1023 1 0 (a dec)
7   SYSTEM:EVENT 1024   a:1                                          -> - SYSTEM/EVENT 1024 1 0 (a dec)
7   CLASS 9:EVENT 1023   word 0:0x00000001 word 1:2
    -> - CLASS 9/EVENT 1023 1 2 (word 0 hex, word 1 dec)
7   CLASS 9:EVENT 1024   word 0:0x00000001 word 1:2
    -> - CLASS 9/EVENT 1024 1 2 (word 0 hex, word 1 dec)
7   THREAD:state 1   pid:1 tid:2                                     -> 1001 1 2
7   THREAD:state 23   pid:1 tid:2                                    -> 1017 1 2
7   VTHREAD:state 28   pid:1 tid:2                                   -> 101c 1 2
7   VTHREAD:state 1   pid:1 tid:2                                    -> - VTHREAD/state 1 1 2 (pid dec, tid dec)
7   INT_CALL:KER_MSG_SENDV/11 zzz:5                                  -> - INT_CALL/MSG_SENDV 0 0 5 0 (zzz dec)
7   INT_CALL:KER_NEW/11 zzz:5                                        -> - INT_CALL/KER_NEW/11 0 0 5 0 (zzz dec)
7   INT_CALL:KER_MSG_SENDV/128 zzz:5                                 -> - INT_CALL/KER_MSG_SENDV/128 0 0 5 0 (zzz dec)
7   USREVENT:EVENT:0 zzz:5                                           -> - USREVENT/EVENT 0 5 0 (zzz dec)
7   USREVENT:EVENT:1023 zzz:5                                        -> - USREVENT/EVENT 1023 5 0 (zzz dec)
7   USREVENT:EVENT:1024 zzz:5                                        -> - USREVENT/EVENT 400 5 (EVENT dec, zzz dec)
7   USREVENT:EVENT 4, zzz:5                                          -> - USREVENT/EVENT 4 5 0 (zzz dec)
7   USREVENT:EVENT 4, zzz:18446744073709551615                       -> - USREVENT/EVENT 4 ffffffff ffffffff (zzz dec64)
7   USREVENT:EVENT 4, zzz:18446744073709551616
    -> - USREVENT/EVENT 4 34343831 34343736 37333730 35353930 36313631 0 (zzz string)
7   USREVENT:EVENT 4, zzz:-9223372036854775808                       -> - USREVENT/EVENT 4 0 80000000 (zzz dec64)
7   USREVENT:EVENT 4, zzz:-9223372036854775809
    -> - USREVENT/EVENT 4 3232392d 32373333 38363330 37373435 39303835 0 (zzz string)
7   USREVENT:EVENT 4, zzz:"a" (0x1 4294967295)                       -> - USREVENT/EVENT 4 1 ffffffff (zzz msg)
7   USREVENT:EVENT 4, zzz:"a" (1, 4294967296)
    -> - USREVENT/EVENT 4 34202c31 39343932 39323736 36 (zzz string)
7   USREVENT:EVENT 4, zzz:"a" (0x1,-2147483648)                      -> - USREVENT/EVENT 4 1 80000000 (zzz msg)
7   USREVENT:EVENT 4, zzz:"a" (0x1 -2147483649)
    -> - USREVENT/EVENT 4 20317830 3431322d 33383437 393436 (zzz string)
7   USREVENT:EVENT 4, zzz:-2147483648 y:2147483648 x:4294967296
    -> - USREVENT/EVENT 4 80000000 80000000 0 1 (zzz dec, y dec, x dec64)
7   USREVENT:EVENT 4, zzz:1 zzz:2 , junk, more
    -> - USREVENT/EVENT 4 1 2 6b6e756a 726f6d20 65 0 (zzz dec, zzz dec, text string)
7   COMM:SND_SMOKE zzz:"a b", y:/x/y
    -> - COMM/SND_SMOKE 622061 792f782f 0 0 (zzz string, y string)
7   COMM:SND_SMOKE y : z,x=" "|   u:7
    -> - COMM/SND_SMOKE 7 20007a 0 0 (y string, x string, u dec)
7   FRESH_A:NAME/3 a:1                                               -> - FRESH_A/NAME/03 1 0 (a dec)
7   FRESH_B:NAME a:1                                                 -> - FRESH_B/NAME 1 0 (a dec)
7   FRESH_B:a:1                                                      -> - FRESH_B/EVENT 1 0 (a dec)
7   FRESH_C:                                                         -> - FRESH_C/EVENT 0 0
7   nothing at all
    -> - OTHER/EVENT 68746f6e 20676e69 61207461 20206c6c 3a 0 (text string)
7   SYSTEM:IPI_64   ipicmd:1                                         -> ~ 1610 1 0 0 0 0 0 (ipicmd dec)
7   CONTROL:OTHER   msb:5                                            -> - CONTROL/OTHER 5 0 (msb dec)
7   CONTROL:BUFFER   num_events:5 x:1                                -> - CONTROL/BUFFER? 5 1 (num_events dec, x dec)
7   COMM:SND_PULSE_EXE   scoid:"text" pid:1                          -> ~ 1c04 0 1 74786574 0 (scoid string, pid dec)
7   COMM:SND_PULSE_EXE   pid:1 scoid:2                               -> 1c04 2 1 (pid dec, scoid dec)
7   COMM:SND_PULSE_EXE   pid:1 scoid:2 pid:3                         -> ~ 1c04 2 1 3 0 (pid dec, scoid dec, pid dec)
7   PROCESS:PROCCREATE_NAME|   ppid:1|   name:x y|   zzz:q           -> ~ 10c0 1 0 792078 0 (ppid dec, name string) +1
7   PROCESS:PROCCREATE_NAME|   ppid:1|   pid:2|   name:7             -> 10c0 1 2 37
7   KER_CALL:MSG_SENDV/11|coid:1|sparts:1|rparts:2|msg:"a" (1 2 3 4)
    -> ~ 80b 1 1 2 0 0 0 1 2 3 4 (coid dec, sparts dec, rparts dec, msg msg)
7   KER_CALL:MSG_SENDV/11|coid:1|sparts:1|rparts:2|msg:"a" (1 2 3 4 5)
    -> ~ 80b 1 1 2 0 0 0 1 2 3 4 5 0 (coid dec, sparts dec, rparts dec, msg msg)
"""


@pytest.mark.parametrize("line", EVENTS.replace("\n  ", " ").splitlines())
def test_what_a_printed_event_becomes(line):
    release, text = line.split(None, 1)
    event, expected = (part.strip() for part in text.split(" ->"))
    assert parsed(EventParser(RELEASES[release], "little"), release, event) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ('USREVENT:EVENT:3, STR:"abc"', "1803 61626300 0 0 0"),
        ("USREVENT:EVENT:3, d0:1 d1:2", "1803 1 2"),
        ("INT_ENTR:28 (28)      IP:0x0000000100001234", "c05 1c 0 1 1234"),
        ("INT_HANDLER_EXIT:28 (28) SIGEVENT:PULSE 0x4:10 2:0x55", "c04 1c 4 4 55 2000a 0"),
        ("SYSTEM:FUNC_ENTER   thisfn:0x0000000000000001 call_site:0x0000000000000002", "160a 0 1 0 2"),
        ("SYSTEM:APS_NAME|   partition_id:1|   partition_name:System", "1403 1 53797374 656d0000"),
    ],
)
def test_halves_and_texts_of_a_big_endian_target(event, expected):
    assert parsed(EventParser(Release.QNX_7, "big"), "7", event) == expected


def test_which_notations_a_listing_shows():
    """In that of the printer: proven, by one event of a kind. In another: what all events of a kind have in common."""
    parser = EventParser(Release.QNX_7, "little")
    for event in (
        "COMM:SND_PULSE_EXE      scoid:0x00010001 pid:1", "COMM:SND_PULSE_EXE      scoid:0x00010002 pid:-7",
        "COMM:REC_PULSE      scoid:65537 pid:0x00000001", "COMM:REC_PULSE      scoid:65538 pid:0x1b",
        "COMM:SND_PULSE      scoid:65537 pid:0x1", "COMM:SND_PULSE      scoid:0x00000001 pid:0x00000001",
        "COMM:SIGNAL     si_signo:0x1 si_code:0x010", "COMM:SIGNAL     si_signo:0x1 si_code:5",
        "THREAD:THREADY  pid:1 tid:2", "PROCESS:PROCCREATE_NAME|  ppid:1|  pid:2|  name:x",
        "COMM:REC_MESSAGE  rcvid:bad pid:1",
    ):  # fmt: skip
        parsed(parser, "7", event)
    shown = {" ".join(key): template for key, template in parser.proven.items()}
    assert shown == {
        "COMM SND_PULSE_EXE scoid": "0x%08x", "COMM SND_PULSE_EXE pid": "%d", "THREAD THREADY pid": "%d",
        "THREAD THREADY tid": "%d", "PROCESS PROCCREATE_NAME ppid": "%d",
        "PROCESS PROCCREATE_NAME pid": "%d",
    }  # fmt: skip
    assert {" ".join(key): template for key, template in parser.notations.items()} == {
        "COMM REC_PULSE scoid": "%d", "COMM REC_PULSE pid": "0x%x", "COMM SND_PULSE scoid": "0x%x",
        "COMM SND_PULSE pid": "0x%x", "COMM SIGNAL si_signo": "0x%x", "COMM SIGNAL si_code": "0x%03x",
    }  # fmt: skip


def test_hexadecimal_numbers_of_6x_have_no_zeros():
    """Which is proven by the first event, and no notation of a printer with wide columns."""
    parser = EventParser(Release.QNX_6, "little")
    for release, address in (("6", "0x1"), ("6", "0x12345678"), ("7", "0x1")):
        event = f"SYSTEM:MUNMAP|  pid:1|  vaddr:{address}|  len:0x2"
        assert parsed(parser, release, event) == f"1407 1 {int(address, 16):x} 0 2 0"
        assert parser.proven["SYSTEM", "MUNMAP", "vaddr"] == "0x%x"
        assert bool(parser.notations) == (release == "7")


def test_a_parser_remembers_what_it_compiled():
    """Patterns of narrow and wide columns, of exact and lenient numbers, apart."""
    parser = EventParser(Release.QNX_7, "little")
    events = ("COMM:SND_PULSE_EXE  scoid:0x00010001 pid:1", "COMM:SND_PULSE_EXE  scoid:65537 pid:0x1")
    for release in ("7", "6", "7"):
        for event in events:
            assert parsed(parser, release, event) == "1c04 10001 1"
    patterns = {key: id(value) for key, value in parser._patterns.items()}
    assert len(patterns) == 4
    for event in events:
        parsed(parser, "7", event)
    assert {key: id(value) for key, value in parser._patterns.items()} == patterns


def test_more_than_the_tables_hold(monkeypatch):
    """Of layouts: one text, behind two words that name no thread. Of events: one of the last class."""
    full, made = [True], []
    real = events.learn_list
    monkeypatch.setattr(
        events, "learn_list", lambda *given: made.append(given[2]) or (None if full.pop() else real(*given))
    )
    parser = EventParser(Release.QNX_7, "little")
    full[:] = [False, True]
    found = parser.parse("COMM            :SND_PULSE_EXE      scoid:1  z:2", ["  y:3"])
    assert (found.code, found.fit, found.names) == (
        0x1C04,
        LineFit.PART,
        (("scoid", "dec"), ("z", "dec"), ("y", "dec")),
    )
    assert b"".join(word.to_bytes(4, "little") for word in found.words) == b"\0" * 8 + b"scoid:1 z:2 y:3\0"
    assert [(part.name, part.word, part.words, part.text_index) for part in made[1]] == [("text", 2, 0, 0)]
    full[:] = [False, True]
    odd = parser.parse("COMM            :SND_PULSE_EXE      scoid:1  z:12")
    assert (len(odd.words), odd.words[:2]) == (6, [0, 0]), "an even number of words"
    monkeypatch.setattr(parser._names, "learn", lambda *_: None)
    full[:] = [False, False]
    assert parsed(parser, "7", "CONTROL:TIME msb:0x1") == "~ 401 1 0 (msb hex)", "no code of its own"
    full[:] = [False, False]
    assert (
        parsed(parser, "7", "FRESH_D:NAME a:1")
        == "- CLASS 31/EVENT 0 1 53455246 3a445f48 454d414e 0 0 (event string, a dec)"
    )
    assert parsed(parser, "7", "no class")[:19] == "- CLASS 31/EVENT 0 "
