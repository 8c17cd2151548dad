/* A server whose channel has a name, and clients of it: `messages` serves, `messages NAME` sends ten times. */
#include <stdlib.h>
#include <sys/dispatch.h>
#include <sys/neutrino.h>
#include <unistd.h>
#include "tracing.h"

static int serve(void)
{
    char message[64], reply[80];
    name_attach_t *const channel = name_attach(NULL, "greeter", 0);
    int served;
    if (channel == NULL) {
        perror("greeter");
        return 1;
    }
    for (served = 0; served < 10; ++served) {
        const int rcvid = MsgReceive(channel->chid, message, sizeof(message), NULL);
        DO(rcvid);
        delay(2);
        snprintf(reply, sizeof(reply), "hello, %.60s", message);
        DO(MsgReply(rcvid, EOK, reply, (int)strlen(reply) + 1));
    }
    return name_detach(channel, 0);
}

int main(int count, char **arguments)
{
    char reply[80];
    int coid, sent;
    if (count < 2)
        return serve();
    while ((coid = name_open("greeter", 0)) == -1)
        delay(10);
    for (sent = 0; sent < 10; ++sent) {
        DO(MsgSend(coid, arguments[1], (int)strlen(arguments[1]) + 1, reply, sizeof(reply)));
        DO(trace_logf(7, "%s", reply));
    }
    printf("%s\n", reply);
    return name_close(coid);
}
