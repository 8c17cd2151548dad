"""Which function carries out which kernel call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satview.capture.sim import (
    calls,
    channels,
    interrupts,
    manager,
    messages,
    policies,
    prompt,
    pulses,
    signals,
    sync,
    thread_control,
    timers,
)

if TYPE_CHECKING:
    from satview.capture.sim.machine import Handler

PROMPT_CALLS = (
    calls.ClockAdjust, calls.ClockPeriod, calls.ConnectClientInfo, calls.ConnectFlags, calls.ConnectServerInfo,
    calls.InterruptMask, calls.MsgCurrent, calls.MsgInfo, calls.MsgKeyData, calls.MsgVerifyEvent, calls.MsgWrite,
    calls.SchedGet, calls.SchedInfo, calls.SignalProcmask, calls.SyncCreate, calls.SyncDestroy, calls.SyncMutexRevive,
    calls.ThreadCancel, calls.ThreadCtl, calls.ThreadDetach, calls.TimerAlarm, calls.TimerInfo,
)
HANDLERS: dict[type, Any] = {
    **dict.fromkeys(PROMPT_CALLS, prompt.prompt_call),
    calls.MsgSend: messages.msg_send,
    calls.MsgSendnc: messages.msg_send,
    calls.MsgReceive: messages.msg_receive,
    calls.MsgReceivePulse: messages.msg_receive,
    calls.MsgReply: messages.msg_reply,
    calls.MsgError: messages.msg_error,
    calls.MsgRead: messages.msg_read,
    calls.MsgSendPulse: pulses.msg_send_pulse,
    calls.MsgSendPulsePtr: pulses.msg_send_pulse,
    calls.MsgDeliverEvent: pulses.msg_deliver_event,
    calls.ChannelCreate: channels.channel_create,
    calls.ChannelDestroy: channels.channel_destroy,
    calls.ConnectAttach: channels.connect_attach,
    calls.ConnectDetach: channels.connect_detach,
    calls.MutexLock: sync.mutex_lock,
    calls.MutexUnlock: sync.mutex_unlock,
    calls.CondWait: sync.cond_wait,
    calls.CondSignal: sync.cond_signal,
    calls.SemWait: sync.sem_wait,
    calls.SemPost: sync.sem_post,
    calls.BarrierWait: sync.barrier_wait,
    calls.RwLockAcquire: sync.rwlock_acquire,
    calls.RwLockRelease: sync.rwlock_release,
    calls.Sleep: timers.sleep,
    calls.TimerTimeout: timers.timer_timeout,
    calls.TimerCreate: timers.timer_create,
    calls.TimerSettime: timers.timer_settime,
    calls.TimerDestroy: timers.timer_destroy,
    calls.ClockTime: timers.clock_time,
    calls.InterruptAttach: interrupts.interrupt_attach,
    calls.InterruptAttachEvent: interrupts.interrupt_attach_event,
    calls.InterruptDetach: interrupts.interrupt_detach,
    calls.InterruptWait: interrupts.interrupt_wait,
    calls.InterruptUnmask: interrupts.interrupt_unmask,
    calls.ThreadCreate: thread_control.thread_create,
    calls.ThreadJoin: thread_control.thread_join,
    calls.ThreadName: thread_control.thread_name,
    calls.ThreadRunmask: thread_control.thread_runmask,
    calls.SchedYield: policies.sched_yield,
    calls.SchedSet: policies.sched_set,
    calls.SchedJoinPartition: policies.join_partition,
    calls.Ring0: manager.ring0,
    calls.Spawn: manager.ask_manager,
    calls.WaitPid: manager.ask_manager,
    calls.Mmap: manager.ask_manager,
    calls.Munmap: manager.ask_manager,
    calls.SignalKill: signals.signal_kill,
    calls.SignalKillSigval: signals.signal_kill,
    calls.SignalAction: signals.signal_action,
    calls.SignalWaitinfo: signals.signal_waitinfo,
    calls.SignalSuspend: signals.signal_suspend,
    signals.HandlerEnd: signals.handler_end,
}


def handlers() -> dict[type, Handler]:
    """Return a copy of the table, to which a kernel adds its own calls."""
    return dict(HANDLERS)
