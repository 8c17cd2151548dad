/* Kernel calls of a program for satview's simulated target, with the names and arguments of QNX Neutrino.
   What is not declared here the library does not have; docs/target.md lists what there is. */
#ifndef SATVIEW_TARGET_NEUTRINO_H
#define SATVIEW_TARGET_NEUTRINO_H
#pragma GCC system_header
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include "release.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ND_LOCAL_NODE 0
#define _NTO_SIDE_CHANNEL 0x40000000
#define _NTO_TCTL_RUNMASK 4
#define _NTO_TCTL_NAME 11
#define _NTO_CHF_FIXED_PRIORITY 0x1
#define _PULSE_CODE_MINAVAIL 0
#define _PULSE_CODE_MAXAVAIL 127
#define _NTO_TIMEOUT_SEND (1u << 0)
#define _NTO_TIMEOUT_RECEIVE (1u << 1)
#define _NTO_TIMEOUT_REPLY (1u << 2)
#define _NTO_TIMEOUT_NANOSLEEP (1u << 3)
#define _NTO_TIMEOUT_MUTEX (1u << 4)
#define _NTO_TIMEOUT_CONDVAR (1u << 5)
#define _NTO_TIMEOUT_JOIN (1u << 6)
#define _NTO_TIMEOUT_INTR (1u << 7)
#define _NTO_TIMEOUT_SEM (1u << 8)
#define _NTO_TRACE_FULL_BUFFER(info) ((info) >> 13) /* index of the buffer that a hook hears of */

struct _pulse {
    uint16_t type;
    uint16_t subtype;
    int8_t code;
    uint8_t zero[3];
    union sigval value;
    int32_t scoid;
};

struct _msg_info {
    uint32_t nd, srcnd;
    pid_t pid;
    int32_t tid, chid, scoid, coid;
    int32_t msglen, srcmsglen, dstmsglen;
    int16_t priority, flags;
};

int ThreadCtl(int command, void *data);
int ChannelCreate(unsigned flags);
int ChannelDestroy(int chid);
int ConnectAttach(uint32_t node, pid_t pid, int chid, unsigned index, int flags);
int ConnectDetach(int coid);
int MsgSend(int coid, const void *message, int size, void *reply, int reply_size);
int MsgReceive(int chid, void *message, int size, struct _msg_info *info);
int MsgReceivePulse(int chid, void *pulse, int size, struct _msg_info *info);
int MsgReply(int rcvid, int status, const void *message, int size);
int MsgError(int rcvid, int error);
int MsgRead(int rcvid, void *message, int size, int offset);
int MsgWrite(int rcvid, const void *message, int size, int offset);
int MsgSendPulse(int coid, int priority, int code, int value);
int MsgDeliverEvent(int rcvid, const struct sigevent *event);
int TimerTimeout(int clock, int flags, const struct sigevent *event, const uint64_t *ns, uint64_t *left);
int InterruptHookTrace(const struct sigevent *(*handler)(int info), unsigned flags);
int InterruptAttachEvent(int vector, const struct sigevent *event, unsigned flags);
int InterruptDetach(int id);
int InterruptWait(int flags, const uint64_t *timeout);
int InterruptUnmask(int vector, int id);
uint64_t ClockCycles(void);
uint64_t target_cycles_per_second(void); /* on a target: SYSPAGE_ENTRY(qtime)->cycles_per_sec */
int gettid(void);

#ifdef __cplusplus
}
#endif
#endif
