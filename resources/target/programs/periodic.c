/* A timer sends a pulse every 10 ms; each one that is received is an event of this program. */
#include <sys/neutrino.h>
#include <time.h>
#include "tracing.h"

int main(void)
{
    const struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    struct sigevent event;
    struct _pulse pulse;
    timer_t timer;
    const int chid = ChannelCreate(0);
    const int coid = ConnectAttach(0, 0, chid, _NTO_SIDE_CHANNEL, 0);
    int received;
    DO(coid);
    SIGEV_PULSE_INIT(&event, coid, 15, 3, 42);
    DO(timer_create(CLOCK_MONOTONIC, &event, &timer));
    DO(timer_settime(timer, 0, &every, NULL));
    for (received = 0; received < 20; ++received) {
        DO(MsgReceivePulse(chid, &pulse, sizeof(pulse), NULL));
        DO(trace_logi(8, (unsigned)pulse.code, (unsigned)pulse.value.sival_int));
    }
    return timer_delete(timer);
}
