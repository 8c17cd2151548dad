/* The library of programs for satview's simulated target: each kernel call is a line to the target and its answer.

   Every thread of a program has a connection to the socket of the target, over which it says how long it has run since
   its last call, what it calls, and with which arguments. The target answers once its simulated thread runs again. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define SATVIEW_TARGET_LIBRARY

#include <devctl.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/dispatch.h>
#include <sys/neutrino.h>
#include <sys/procfs.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/trace.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 40000
#define VALUES_MAX 16
#define MESSAGE_MAX 16384
#define HANDLERS_MAX 64
#define THREADS_MAX 64
#define HANDLER_WORDS_MAX 256

/* What the target has answered: numbers, and bytes. */
struct answer {
    long long values[VALUES_MAX];
    int count;
    unsigned char data[MESSAGE_MAX];
    int size;
};

/* A connection, with what has come over it and is not read yet. */
struct line {
    int file;
    char coming[LINE_MAX_BYTES];
    size_t begin, end;
};

struct thread {
    pthread_t native;
    int tid;
    int is_used;
    void *(*run)(void *);
    void *argument, *result;
    long long ticket;
    sem_t is_known;
    struct line *line;
};

union handler {
    int (*event)(event_data_t *data);
    const struct sigevent *(*buffer)(int info);
};

int target_setname(pthread_t native, const char *name);

static struct {
    union handler call;
    event_data_t *data;
} handlers[HANDLERS_MAX];
static int handler_count;
static struct thread threads[THREADS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pid;
static int exit_code;
static __thread struct line *own_line;
static __thread int own_tid, is_in_handler;
static __thread long long ran_until_ns;

static void fail(const char *why)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
    _exit(1);
}

static long long ran_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Returns a connection to the target, whose folder nobody else may be able to change. */
static struct line *connected(void)
{
    const char *const named = getenv("SATVIEW_TARGET"), *const runtime = getenv("XDG_RUNTIME_DIR");
    struct sockaddr_un address;
    struct stat status;
    struct line *const line = calloc(1, sizeof(*line));
    char folder[sizeof(address.sun_path)];
    int length;
    if (named != NULL)
        length = snprintf(folder, sizeof(folder), "%s", named);
    else if (runtime != NULL && *runtime != '\0')
        length = snprintf(folder, sizeof(folder), "%s/satview/target", runtime);
    else
        length = snprintf(folder, sizeof(folder), "/tmp/satview-%u/target", (unsigned)getuid());
    if (line == NULL || length < 0 || (size_t)length + sizeof("/socket") > sizeof(folder))
        fail("the folder of the target has too long a name");
    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, folder, (size_t)length);
    memcpy(address.sun_path + length, "/socket", sizeof("/socket"));
    line->file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->file == -1 || lstat(folder, &status) == -1 || status.st_uid != getuid() || (status.st_mode & 077) != 0 ||
        connect(line->file, (const struct sockaddr *)&address, sizeof(address)) == -1)
        fail("no simulated target runs here; start it with `satview target`");
    return line;
}

static void put(const struct line *line, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t sent = send(line->file, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            fail("the target has ended this program");
        text += sent;
        length -= (size_t)sent;
    }
}

/* Returns the next line without its end, valid until the next one; NULL at the end. */
static char *get(struct line *line)
{
    for (;;) {
        char *const end = memchr(line->coming + line->begin, '\n', line->end - line->begin);
        ssize_t got;
        if (end != NULL) {
            char *const text = line->coming + line->begin;
            *end = '\0';
            line->begin = (size_t)(end + 1 - line->coming);
            return text;
        }
        memmove(line->coming, line->coming + line->begin, line->end - line->begin);
        line->end -= line->begin;
        line->begin = 0;
        if (line->end == sizeof(line->coming))
            return NULL;
        got = recv(line->file, line->coming + line->end, sizeof(line->coming) - line->end, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        line->end += (size_t)got;
    }
}

static int digit(char letter)
{
    return letter >= 'a' ? letter - 'a' + 10 : letter - '0';
}

/* Takes an answer apart; returns an error number, 0 = none. */
static int parse(char *text, struct answer *answer)
{
    char *rest = NULL, *word = text == NULL ? NULL : strtok_r(text, " ", &rest);
    int error;
    if (word == NULL)
        fail("the target has ended this program");
    error = atoi(word);
    answer->count = answer->size = 0;
    while ((word = strtok_r(NULL, " ", &rest)) != NULL)
        if (*word == 'x') {
            for (++word; word[0] != '\0' && word[1] != '\0' && answer->size < MESSAGE_MAX; word += 2)
                answer->data[answer->size++] = (unsigned char)(digit(word[0]) << 4 | digit(word[1]));
        } else if (answer->count < VALUES_MAX) {
            answer->values[answer->count++] = strtoll(word, NULL, 10);
        }
    return error;
}

/* Waits for the answer that lets a new thread begin. */
static void begin_thread(void)
{
    struct answer answer;
    if (parse(get(own_line), &answer) != 0 || answer.count < 2)
        fail("the target does not start this program");
    pid = (int)answer.values[0];
    own_tid = (int)answer.values[1];
    ran_until_ns = ran_ns();
}

/* Makes a call; bytes are an argument behind the words unless they are NULL. Returns an error number, 0 = none. */
static int ask(struct answer *answer, const void *data, size_t size, const char *format, ...)
{
    static const char digits[] = "0123456789abcdef";
    char text[LINE_MAX_BYTES];
    va_list arguments;
    const int begin = is_in_handler ? snprintf(text, sizeof(text), "call ")
                                    : snprintf(text, sizeof(text), "%lld ", ran_ns() - ran_until_ns);
    size_t at, i;
    int error;
    if (size > MESSAGE_MAX)
        return EMSGSIZE;
    if (own_line == NULL)
        fail("this thread or process is none of the target; use pthread_create(), and exec after fork()");
    va_start(arguments, format);
    at = (size_t)(begin + vsnprintf(text + begin, sizeof(text) - (size_t)begin, format, arguments));
    va_end(arguments);
    if (data != NULL) {
        text[at++] = ' ';
        text[at++] = 'x';
        for (i = 0; i < size; ++i) {
            text[at++] = digits[((const unsigned char *)data)[i] >> 4];
            text[at++] = digits[((const unsigned char *)data)[i] & 15];
        }
    }
    text[at++] = '\n';
    put(own_line, text, at);
    error = parse(get(own_line), answer);
    ran_until_ns = ran_ns();
    return error;
}

/* Returns what a kernel call returns: its first value, or -1 with errno. */
static int result(int error, const struct answer *answer)
{
    if (error != 0) {
        errno = error;
        return -1;
    }
    return answer != NULL && answer->count > 0 ? (int)answer->values[0] : 0;
}

#define CALL(...) \
    do { \
        struct answer answer; \
        const int error = ask(&answer, NULL, 0, __VA_ARGS__); \
        return result(error, &answer); \
    } while (0)
#define ERROR_OF(...) \
    do { \
        struct answer answer; \
        return ask(&answer, NULL, 0, __VA_ARGS__); \
    } while (0)

/* A program begins and ends. */

static void tell_exit(int code, void *unused)
{
    char text[64];
    (void)unused;
    exit_code = code;
    if (own_line != NULL && !is_in_handler)
        put(own_line, text, (size_t)snprintf(text, sizeof(text), "%lld exit %d\n", ran_ns() - ran_until_ns, code));
}

/* A child of fork() has no thread on the target, and must not use that of its parent. */
static void leave_line(void)
{
    own_line = NULL;
}

__attribute__((constructor)) static void begin_program(void)
{
    char text[200], name[80];
    size_t i;
    snprintf(name, sizeof(name), "%s", program_invocation_short_name);
    for (i = 0; name[i] != '\0'; ++i)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", name[i]) == NULL)
            name[i] = '_';
    own_line = connected();
    put(own_line, text, (size_t)snprintf(text, sizeof(text), "{\"do\":\"program\",\"name\":\"usr/bin/%s\"}\n", name));
    begin_thread();
    on_exit(tell_exit, NULL);
    pthread_atfork(NULL, NULL, leave_line);
}

pid_t target_getpid(void)
{
    return pid;
}

int gettid(void)
{
    return own_tid;
}

/* Handlers run in a thread of their own, which is none of the target's. */

static void answer_event(char *text)
{
    static uint32_t spare[HANDLER_WORDS_MAX];
    unsigned long long head[5];
    char *at = text;
    event_data_t *data;
    uint32_t count = 0;
    char reply[40];
    int i, passes;
    for (i = 0; i < 5; ++i)
        head[i] = strtoull(at, &at, 10);
    if (head[0] >= (unsigned)handler_count)
        return;
    data = handlers[head[0]].data;
    data->header = (__traceentry)head[1];
    data->feature_mask = (uint32_t)head[2];
    data->feature[0] = (uint32_t)head[3];
    data->feature[1] = (uint32_t)head[4];
    while (*at == ' ' && count < HANDLER_WORDS_MAX) {
        const uint32_t word = (uint32_t)strtoull(at, &at, 10);
        (data->data_array != NULL ? data->data_array : spare)[count++] = word;
    }
    data->el_num = count;
    passes = handlers[head[0]].call.event(data);
    put(own_line, reply, (size_t)snprintf(reply, sizeof(reply), "answer %d\n", passes));
}

static void answer_buffer(char *text)
{
    char *at = text, reply[120];
    const unsigned long number = strtoul(at, &at, 10);
    const int info = (int)strtol(at, NULL, 10);
    const struct sigevent *event;
    if (number >= (unsigned)handler_count)
        return;
    event = handlers[number].call.buffer(info);
    put(own_line, reply, (size_t)(event == NULL
        ? snprintf(reply, sizeof(reply), "answer\n")
        : snprintf(reply, sizeof(reply), "answer %d %d %d %d %d\n", event->sigev_notify, event->sigev_coid,
                   event->sigev_priority, event->sigev_code, event->sigev_value.sival_int)));
}

static void *run_handlers(void *line)
{
    char *text;
    own_line = line;
    is_in_handler = 1;
    while ((text = get(own_line)) != NULL) {
        if (strncmp(text, "event ", 6) == 0)
            answer_event(text + 6);
        else if (strncmp(text, "buffer ", 7) == 0)
            answer_buffer(text + 7);
    }
    return NULL;
}

/* Returns the number under which the target calls a handler, -1 = there are too many. */
static int add_handler(union handler call, event_data_t *data)
{
    int number = -1;
    pthread_mutex_lock(&lock);
    if (handler_count == 0) {
        struct line *const line = connected();
        struct answer answer;
        pthread_t native;
        char text[80];
        put(line, text, (size_t)snprintf(text, sizeof(text), "{\"do\":\"handlers\",\"pid\":%d}\n", pid));
        if (parse(get(line), &answer) != 0 || pthread_create(&native, NULL, run_handlers, line) != 0)
            fail("the handlers cannot be started");
        pthread_detach(native);
    }
    if (handler_count < HANDLERS_MAX) {
        number = handler_count++;
        handlers[number].call = call;
        handlers[number].data = data;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

/* The trace interface. */

#define MODE(name) ((unsigned)(name) & 0x0fffffffu)

int TraceEvent(int mode, ...)
{
    struct answer answer;
    union handler handler;
    event_data_t *data;
    const void *bytes;
    unsigned first, second, words, i;
    unsigned numbers[8] = {0};
    void **place;
    int number, error;
    const unsigned count = (unsigned)mode >> 28;
    va_list arguments;
    va_start(arguments, mode);
    switch (MODE(mode)) {
    case MODE(_NTO_TRACE_ADDEVENTHANDLER):
    case MODE(_NTO_TRACE_ADDCLASSEVHANDLER):
        first = va_arg(arguments, unsigned);
        second = MODE(mode) == MODE(_NTO_TRACE_ADDEVENTHANDLER) ? va_arg(arguments, unsigned) : 0;
        handler.event = va_arg(arguments, int (*)(event_data_t *));
        data = va_arg(arguments, event_data_t *);
        number = data == NULL ? -1 : add_handler(handler, data);
        if (number == -1)
            error = data == NULL ? EFAULT : ENOMEM;
        else if (MODE(mode) == MODE(_NTO_TRACE_ADDEVENTHANDLER))
            error = ask(&answer, NULL, 0, "TraceEvent %u %u %u %d", (unsigned)mode, first, second, number);
        else
            error = ask(&answer, NULL, 0, "TraceEvent %u %u %d", (unsigned)mode, first, number);
        break;
    case MODE(_NTO_TRACE_ALLOCBUFFER):
        first = va_arg(arguments, unsigned);
        place = va_arg(arguments, void **);
        error = ask(&answer, NULL, 0, "TraceEvent %u %u", (unsigned)mode, first);
        if (error == 0 && place != NULL)
            *place = NULL; /* buffers are in the memory of the target, where no program of this machine can look */
        break;
    case MODE(_NTO_TRACE_INSERTUSRSTREVENT):
        first = va_arg(arguments, unsigned);
        bytes = va_arg(arguments, const char *);
        error = ask(&answer, bytes, strlen(bytes), "TraceEvent %u %u", (unsigned)mode, first);
        break;
    case MODE(_NTO_TRACE_INSERTCUSEREVENT):
    case MODE(_NTO_TRACE_INSERTCCLASSEVENT):
        first = va_arg(arguments, unsigned);
        second = MODE(mode) == MODE(_NTO_TRACE_INSERTCCLASSEVENT) ? va_arg(arguments, unsigned) : 0;
        bytes = va_arg(arguments, const void *);
        words = va_arg(arguments, unsigned);
        if (words > MESSAGE_MAX / sizeof(uint32_t))
            error = EINVAL;
        else if (MODE(mode) == MODE(_NTO_TRACE_INSERTCCLASSEVENT))
            error = ask(&answer, bytes, words * sizeof(uint32_t), "TraceEvent %u %u %u", (unsigned)mode, first, second);
        else
            error = ask(&answer, bytes, words * sizeof(uint32_t), "TraceEvent %u %u", (unsigned)mode, first);
        break;
    default:
        for (i = 0; i + 1 < count && i < 8; ++i)
            numbers[i] = va_arg(arguments, unsigned);
        switch (count) {
        case 0:
        case 1: error = ask(&answer, NULL, 0, "TraceEvent %u", (unsigned)mode); break;
        case 2: error = ask(&answer, NULL, 0, "TraceEvent %u %u", (unsigned)mode, numbers[0]); break;
        case 3: error = ask(&answer, NULL, 0, "TraceEvent %u %u %u", (unsigned)mode, numbers[0], numbers[1]); break;
        case 4:
            error = ask(&answer, NULL, 0, "TraceEvent %u %u %u %u", (unsigned)mode, numbers[0], numbers[1], numbers[2]);
            break;
        default:
            error = ask(&answer, NULL, 0, "TraceEvent %u %u %u %u %u", (unsigned)mode, numbers[0], numbers[1],
                        numbers[2], numbers[3]);
        }
    }
    va_end(arguments);
    return result(error, &answer);
}

int trace_vnlogf(int code, int most, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, most > 0 && (size_t)most < sizeof(text) ? (size_t)most : sizeof(text), format, arguments);
    return TraceEvent((int)_NTO_TRACE_INSERTUSRSTREVENT, (unsigned)code, text);
}

int trace_nlogf(int code, int most, const char *format, ...)
{
    va_list arguments;
    int done;
    va_start(arguments, format);
    done = trace_vnlogf(code, most, format, arguments);
    va_end(arguments);
    return done;
}

int trace_logf(int code, const char *format, ...)
{
    va_list arguments;
    int done;
    va_start(arguments, format);
    done = trace_vnlogf(code, 0, format, arguments);
    va_end(arguments);
    return done;
}

int trace_logi(int code, unsigned first, unsigned second)
{
    return TraceEvent((int)_NTO_TRACE_INSERTSUSEREVENT, (unsigned)code, first, second);
}

int trace_logb(int code, const void *data, size_t size)
{
    return TraceEvent((int)_NTO_TRACE_INSERTCUSEREVENT, (unsigned)code, data, (unsigned)(size / sizeof(uint32_t)));
}

int trace_logbc(unsigned internal_class, int code, const void *data, size_t size)
{
    return TraceEvent((int)_NTO_TRACE_INSERTCCLASSEVENT, internal_class, (unsigned)code, data,
                      (unsigned)(size / sizeof(uint32_t)));
}

/* Functions and addresses are events of the class SYSTEM; those of 64 bits came with 7.0. */
static int insert_addresses(unsigned event, const void *function, const void *caller)
{
    enum { SYSTEM_CLASS = 5 };
#ifdef _NTO_TRACE_SYS_FUNC_ENTER_64
    const uint64_t addresses[2] = {(uintptr_t)function, (uintptr_t)caller};
    event += _NTO_TRACE_SYS_FUNC_ENTER_64 - _NTO_TRACE_SYS_FUNC_ENTER;
#else
    const uint32_t addresses[2] = {(uint32_t)(uintptr_t)function, (uint32_t)(uintptr_t)caller};
#endif
    return trace_logbc(SYSTEM_CLASS, (int)event, addresses, sizeof(addresses));
}

int trace_func_enter(void *function, void *caller)
{
    return insert_addresses(_NTO_TRACE_SYS_FUNC_ENTER, function, caller);
}

int trace_func_exit(void *function, void *caller)
{
    return insert_addresses(_NTO_TRACE_SYS_FUNC_EXIT, function, caller);
}

int trace_here(void *address)
{
    return insert_addresses(_NTO_TRACE_SYS_ADDRESS, address, NULL);
}

int InterruptHookTrace(const struct sigevent *(*function)(int info), unsigned flags)
{
    union handler handler;
    int number;
    handler.buffer = function;
    number = add_handler(handler, NULL);
    if (number == -1) {
        errno = ENOMEM;
        return -1;
    }
    CALL("InterruptHookTrace %d %u", number, flags);
}

/* Kernel calls. */

int ThreadCtl(int command, void *data)
{
    if (command == _NTO_TCTL_RUNMASK)
        CALL("ThreadRunmask %lld", (long long)(intptr_t)data);
    if (command == _NTO_TCTL_NAME)
        return result(target_setname(pthread_self(), data), NULL);
    CALL("ThreadCtl %d", command);
}

int ChannelCreate(unsigned flags)
{
    CALL("ChannelCreate %u", flags);
}

int ChannelDestroy(int chid)
{
    CALL("ChannelDestroy %d", chid);
}

int ConnectAttach(uint32_t node, pid_t server, int chid, unsigned index, int flags)
{
    (void)node;
    (void)flags;
    CALL("ConnectAttach %d %d %d", server == pid ? 0 : (int)server, chid, (index & _NTO_SIDE_CHANNEL) != 0);
}

int ConnectDetach(int coid)
{
    CALL("ConnectDetach %d", coid);
}

static void copy(void *to, int room, const struct answer *answer)
{
    if (to != NULL && room > 0)
        memcpy(to, answer->data, (size_t)(answer->size < room ? answer->size : room));
}

int MsgSend(int coid, const void *message, int size, void *reply, int reply_size)
{
    struct answer answer;
    const int room = reply_size < MESSAGE_MAX ? reply_size : MESSAGE_MAX;
    char text[LINE_MAX_BYTES];
    int error, at, i;
    if (size < 0 || size > MESSAGE_MAX || reply_size < 0) {
        errno = size < 0 || reply_size < 0 ? EINVAL : EMSGSIZE;
        return -1;
    }
    at = 0;
    for (i = 0; i < size; ++i)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", ((const unsigned char *)message)[i]);
    text[at] = '\0';
    error = ask(&answer, NULL, 0, "MsgSend %d x%s %d", coid, text, room);
    if (error == 0)
        copy(reply, reply_size, &answer);
    return result(error, &answer);
}

static int receive(const char *call, int chid, void *message, int size, struct _msg_info *info)
{
    struct answer answer;
    const int error = ask(&answer, NULL, 0, "%s %d", call, chid);
    if (error != 0 || answer.count < 7)
        return result(error != 0 ? error : EINVAL, &answer);
    if (answer.values[0] == 0) {
        struct _pulse pulse;
        memset(&pulse, 0, sizeof(pulse));
        pulse.code = (int8_t)answer.values[4];
        pulse.value.sival_int = (int)answer.values[5];
        pulse.scoid = (int32_t)answer.values[3];
        memcpy(answer.data, &pulse, sizeof(pulse));
        answer.size = sizeof(pulse);
    }
    copy(message, size, &answer);
    if (info != NULL) {
        memset(info, 0, sizeof(*info));
        info->pid = (pid_t)answer.values[1];
        info->tid = (int32_t)answer.values[2];
        info->scoid = (int32_t)answer.values[3];
        info->chid = chid;
        info->priority = (int16_t)answer.values[6];
        info->msglen = answer.size < size ? answer.size : size;
        info->srcmsglen = answer.size;
    }
    return (int)answer.values[0];
}

int MsgReceive(int chid, void *message, int size, struct _msg_info *info)
{
    return receive("MsgReceive", chid, message, size, info);
}

int MsgReceivePulse(int chid, void *pulse, int size, struct _msg_info *info)
{
    return receive("MsgReceivePulse", chid, pulse, size, info);
}

int MsgReply(int rcvid, int status, const void *message, int size)
{
    struct answer answer;
    const int error = ask(&answer, size > 0 ? message : "", (size_t)(size > 0 ? size : 0), "MsgReply %d %d", rcvid, status);
    return result(error, &answer);
}

int MsgError(int rcvid, int error_number)
{
    CALL("MsgError %d %d", rcvid, error_number);
}

int MsgRead(int rcvid, void *message, int size, int offset)
{
    struct answer answer;
    const int error = ask(&answer, NULL, 0, "MsgRead %d %d %d", rcvid, size, offset);
    if (error != 0)
        return result(error, &answer);
    copy(message, size, &answer);
    return answer.size;
}

int MsgWrite(int rcvid, const void *message, int size, int offset)
{
    struct answer answer;
    char text[LINE_MAX_BYTES];
    int at = 0, i;
    if (size < 0 || size > MESSAGE_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    for (i = 0; i < size; ++i)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", ((const unsigned char *)message)[i]);
    text[at] = '\0';
    return result(ask(&answer, NULL, 0, "MsgWrite %d x%s %d", rcvid, text, offset), &answer);
}

int MsgSendPulse(int coid, int priority, int code, int value)
{
    CALL("MsgSendPulse %d %d %d %d", coid, priority, code, value);
}

int MsgDeliverEvent(int rcvid, const struct sigevent *event)
{
    CALL("MsgDeliverEvent %d %d %d %d %d %d", rcvid, event->sigev_notify, event->sigev_coid, event->sigev_priority,
         event->sigev_code, event->sigev_value.sival_int);
}

int TimerTimeout(int clock, int flags, const struct sigevent *event, const uint64_t *ns, uint64_t *left)
{
    (void)clock;
    (void)event;
    if (left != NULL)
        *left = 0;
    CALL("TimerTimeout %llu %d", ns == NULL ? 0ULL : (unsigned long long)*ns, flags);
}

int InterruptAttachEvent(int vector, const struct sigevent *event, unsigned flags)
{
    (void)flags;
    CALL("InterruptAttachEvent %d %d %d %d %d %d", vector, event->sigev_notify, event->sigev_coid,
         event->sigev_priority, event->sigev_code, event->sigev_value.sival_int);
}

int InterruptDetach(int id)
{
    CALL("InterruptDetach %d", id);
}

int InterruptWait(int flags, const uint64_t *timeout)
{
    (void)flags;
    (void)timeout;
    CALL("InterruptWait");
}

int InterruptUnmask(int vector, int id)
{
    CALL("InterruptUnmask %d %d", vector, id);
}

static uint64_t asked(const char *what)
{
    struct answer answer;
    return ask(&answer, NULL, 0, "%s", what) == 0 && answer.count > 0 ? (uint64_t)answer.values[0] : 0;
}

uint64_t ClockCycles(void)
{
    return asked("cycles");
}

uint64_t target_cycles_per_second(void)
{
    return asked("clock_rate");
}

/* Channels with names. */

name_attach_t *name_attach(void *dispatch, const char *name, unsigned flags)
{
    struct answer answer;
    name_attach_t *const attached = calloc(1, sizeof(*attached));
    int error;
    (void)flags;
    if (attached == NULL)
        return NULL;
    attached->dpp = dispatch;
    attached->chid = ChannelCreate(0);
    error = attached->chid == -1 ? errno : ask(&answer, name, strlen(name), "name_attach %d", attached->chid);
    if (error != 0) {
        free(attached);
        errno = error;
        return NULL;
    }
    return attached;
}

int name_detach(name_attach_t *attached, unsigned flags)
{
    const int done = ChannelDestroy(attached->chid);
    (void)flags;
    free(attached);
    return done;
}

int name_open(const char *name, int flags)
{
    struct answer answer;
    const int error = ask(&answer, name, strlen(name), "name_find");
    (void)flags;
    if (error != 0)
        return result(error, &answer);
    return ConnectAttach(0, (pid_t)answer.values[0], (int)answer.values[1], _NTO_SIDE_CHANNEL, 0);
}

int name_close(int coid)
{
    return ConnectDetach(coid);
}

/* Time. */

static int sleep_ns(unsigned long long ns)
{
    CALL("Sleep %llu", ns);
}

static unsigned long long ns_of(const struct timespec *time)
{
    return (unsigned long long)time->tv_sec * 1000000000ULL + (unsigned long long)time->tv_nsec;
}

unsigned target_sleep(unsigned seconds)
{
    return sleep_ns(seconds * 1000000000ULL) == 0 ? 0 : seconds;
}

unsigned delay(unsigned milliseconds)
{
    return sleep_ns(milliseconds * 1000000ULL) == 0 ? 0 : milliseconds;
}

int target_usleep(unsigned microseconds)
{
    return sleep_ns(microseconds * 1000ULL);
}

int target_nanosleep(const struct timespec *length, struct timespec *left)
{
    if (left != NULL)
        memset(left, 0, sizeof(*left));
    return sleep_ns(ns_of(length));
}

int target_clock_gettime(clockid_t clock, struct timespec *now)
{
    struct answer answer;
    int error;
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return clock_gettime(clock, now); /* processor time is that of this machine, which the simulated thread gets too */
    error = ask(&answer, NULL, 0, "ClockTime");
    if (error != 0)
        return result(error, &answer);
    if (clock == CLOCK_REALTIME)
        return clock_gettime(CLOCK_REALTIME, now); /* the target's clock follows that of this machine */
    now->tv_sec = (time_t)(answer.values[0] / 1000000000LL);
    now->tv_nsec = (long)(answer.values[0] % 1000000000LL);
    return 0;
}

int target_clock_nanosleep(clockid_t clock, int flags, const struct timespec *when, struct timespec *left)
{
    unsigned long long ns = ns_of(when);
    if ((flags & TIMER_ABSTIME) != 0) {
        struct timespec now;
        if (target_clock_gettime(clock, &now) != 0)
            return errno;
        ns = ns > ns_of(&now) ? ns - ns_of(&now) : 0;
    }
    if (left != NULL)
        memset(left, 0, sizeof(*left));
    return sleep_ns(ns) == 0 ? 0 : errno;
}

int target_timer_create(clockid_t clock, struct sigevent *event, int *timer)
{
    struct answer answer;
    const int error = ask(&answer, NULL, 0, "TimerCreate %d %d %d %d %d", event->sigev_notify, event->sigev_coid,
                          event->sigev_priority, event->sigev_code, event->sigev_value.sival_int);
    (void)clock;
    if (error != 0)
        return result(error, &answer);
    *timer = (int)answer.values[0];
    return 0;
}

int target_timer_settime(int timer, int flags, const struct itimerspec *next, struct itimerspec *before)
{
    if ((flags & TIMER_ABSTIME) != 0) {
        errno = ENOTSUP; /* a length of time is what simulated timers take */
        return -1;
    }
    if (before != NULL)
        memset(before, 0, sizeof(*before));
    CALL("TimerSettime %d %llu %llu", timer, ns_of(&next->it_value), ns_of(&next->it_interval));
}

int target_timer_delete(int timer)
{
    CALL("TimerDestroy %d", timer);
}

/* Signals. */

int target_pause(void)
{
    CALL("SignalSuspend");
}

int target_kill(int to, int number)
{
    siginfo_t state;
    if (to > 0 && waitid(P_PID, (id_t)to, &state, WEXITED | WNOHANG | WNOWAIT) == 0)
        return kill(to, number); /* a child of fork() is a process of this machine */
    CALL("SignalKill %d 0 %d", to, number);
}

/* Threads. */

static void *run_thread(void *of)
{
    struct thread *const thread = of;
    struct answer answer;
    char text[120];
    own_line = thread->line;
    put(own_line, text, (size_t)snprintf(text, sizeof(text), "{\"do\":\"thread\",\"pid\":%d,\"ticket\":%lld}\n", pid,
                                         thread->ticket));
    if (parse(get(own_line), &answer) != 0)
        fail("the target takes no more threads");
    sem_post(&thread->is_known);
    begin_thread();
    thread->result = thread->run(thread->argument);
    put(own_line, text, (size_t)snprintf(text, sizeof(text), "%lld thread_exit 0\n", ran_ns() - ran_until_ns));
    return thread->result;
}

int target_thread_create(pthread_t *native, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static long long tickets;
    struct thread *thread = NULL;
    struct sched_param parameters = {0};
    struct answer answer;
    int policy = 0, inherits = PTHREAD_INHERIT_SCHED, error, i;
    pthread_mutex_lock(&lock);
    for (i = 0; i < THREADS_MAX && thread == NULL; ++i)
        if (!threads[i].is_used)
            thread = &threads[i];
    if (thread != NULL) {
        memset(thread, 0, sizeof(*thread));
        thread->is_used = 1;
        thread->ticket = ++tickets;
    }
    pthread_mutex_unlock(&lock);
    if (thread == NULL)
        return EAGAIN;
    if (attributes != NULL)
        pthread_attr_getinheritsched(attributes, &inherits);
    if (inherits == PTHREAD_EXPLICIT_SCHED) {
        pthread_attr_getschedparam(attributes, &parameters);
        pthread_attr_getschedpolicy(attributes, &policy);
    }
    thread->run = run;
    thread->argument = argument;
    thread->line = connected();
    sem_init(&thread->is_known, 0, 0);
    error = pthread_create(&thread->native, NULL, run_thread, thread);
    if (error != 0)
        return error;
    while (sem_wait(&thread->is_known) == -1)
        continue;
    *native = thread->native;
    error = ask(&answer, NULL, 0, "ThreadCreate %lld %d %d", thread->ticket,
                inherits == PTHREAD_EXPLICIT_SCHED ? parameters.sched_priority : -1,
                policy == SCHED_FIFO ? 1 : policy == SCHED_RR ? 2 : 0);
    if (error == 0)
        thread->tid = (int)answer.values[0];
    return error;
}

static struct thread *known(pthread_t native)
{
    int i;
    for (i = 0; i < THREADS_MAX; ++i)
        if (threads[i].is_used && pthread_equal(threads[i].native, native))
            return &threads[i];
    return NULL;
}

int target_thread_join(pthread_t native, void **value)
{
    struct thread *const thread = known(native);
    struct answer answer;
    int error;
    if (thread == NULL)
        return ESRCH;
    error = ask(&answer, NULL, 0, "ThreadJoin %d", thread->tid);
    if (error == 0)
        error = pthread_join(native, value);
    close(thread->line->file);
    free(thread->line);
    thread->is_used = 0;
    return error;
}

int target_setname(pthread_t native, const char *name)
{
    struct answer answer;
    if (!pthread_equal(native, pthread_self()))
        return ENOTSUP; /* a thread names itself */
    return ask(&answer, name, strlen(name), "ThreadName");
}

int target_setschedparam(pthread_t native, int policy, const struct sched_param *parameters)
{
    if (!pthread_equal(native, pthread_self()))
        return ENOTSUP; /* a thread sets itself */
    ERROR_OF("SchedSet %d %d", parameters->sched_priority, policy == SCHED_FIFO ? 1 : policy == SCHED_RR ? 2 : 3);
}

int target_setschedprio(pthread_t native, int priority)
{
    const struct sched_param parameters = {.sched_priority = priority};
    return target_setschedparam(native, SCHED_RR, &parameters);
}

int target_getschedparam(pthread_t native, int *policy, struct sched_param *parameters)
{
    struct answer answer;
    int error;
    if (!pthread_equal(native, pthread_self()))
        return ENOTSUP;
    error = ask(&answer, NULL, 0, "SchedGet");
    if (error == 0) {
        *policy = answer.values[0] == 1 ? SCHED_FIFO : answer.values[0] == 2 ? SCHED_RR : SCHED_OTHER;
        parameters->sched_priority = (int)answer.values[1];
    }
    return error;
}

int target_yield(void)
{
    CALL("SchedYield");
}

/* Objects that threads share; the target knows them by their addresses. */

static int begin_object(const char *kind, const void *object, unsigned value)
{
    struct answer answer;
    char hex[40];
    size_t i;
    for (i = 0; kind[i] != '\0'; ++i)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)kind[i]);
    return ask(&answer, NULL, 0, "init x%s %llu %u", hex, (unsigned long long)(uintptr_t)object, value);
}

#define ON(call, object) ERROR_OF(call " %llu", (unsigned long long)(uintptr_t)(object))

int target_mutexattr_init(pthread_mutexattr_t *attributes)
{
    const int error = pthread_mutexattr_init(attributes);
    return error != 0 ? error : pthread_mutexattr_setprotocol(attributes, PTHREAD_PRIO_INHERIT);
}

int target_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    int protocol = PTHREAD_PRIO_INHERIT;
    if (attributes != NULL)
        pthread_mutexattr_getprotocol(attributes, &protocol);
    return begin_object("mutex", mutex, protocol == PTHREAD_PRIO_INHERIT);
}

int target_mutex_lock(pthread_mutex_t *mutex)
{
    ON("MutexLock", mutex);
}

int target_mutex_unlock(pthread_mutex_t *mutex)
{
    ON("MutexUnlock", mutex);
}

int target_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int target_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    (void)attributes;
    return begin_object("condvar", condition, 0);
}

int target_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    ERROR_OF("CondWait %llu %llu", (unsigned long long)(uintptr_t)condition, (unsigned long long)(uintptr_t)mutex);
}

int target_cond_signal(pthread_cond_t *condition)
{
    ERROR_OF("CondSignal %llu 0", (unsigned long long)(uintptr_t)condition);
}

int target_cond_broadcast(pthread_cond_t *condition)
{
    ERROR_OF("CondSignal %llu 1", (unsigned long long)(uintptr_t)condition);
}

int target_cond_destroy(pthread_cond_t *condition)
{
    (void)condition;
    return 0;
}

int target_barrier_init(void *barrier, const void *attributes, unsigned count)
{
    (void)attributes;
    return begin_object("barrier", barrier, count);
}

int target_barrier_wait(void *barrier)
{
    ON("BarrierWait", barrier);
}

int target_rwlock_init(void *rwlock, const void *attributes)
{
    (void)attributes;
    return begin_object("rwlock", rwlock, 0);
}

int target_rwlock_rdlock(void *rwlock)
{
    ERROR_OF("RwLockAcquire %llu 0", (unsigned long long)(uintptr_t)rwlock);
}

int target_rwlock_wrlock(void *rwlock)
{
    ERROR_OF("RwLockAcquire %llu 1", (unsigned long long)(uintptr_t)rwlock);
}

int target_rwlock_unlock(void *rwlock)
{
    ON("RwLockRelease", rwlock);
}

int target_sem_init(sem_t *semaphore, int shared, unsigned count)
{
    (void)shared;
    errno = begin_object("semaphore", semaphore, count);
    return errno == 0 ? 0 : -1;
}

int target_sem_wait(sem_t *semaphore)
{
    CALL("SemWait %llu", (unsigned long long)(uintptr_t)semaphore);
}

int target_sem_post(sem_t *semaphore)
{
    CALL("SemPost %llu", (unsigned long long)(uintptr_t)semaphore);
}

int target_sem_destroy(sem_t *semaphore)
{
    (void)semaphore;
    return 0;
}

/* /proc of the target. */

static struct {
    long long pids[VALUES_MAX];
    int count, next;
    struct dirent entry;
} proc;

DIR *target_opendir(const char *name)
{
    proc.count = proc.next = 0;
    return strcmp(name, "/proc") == 0 ? (DIR *)&proc : opendir(name);
}

struct dirent *target_readdir(DIR *folder)
{
    if (folder != (DIR *)&proc)
        return readdir(folder);
    if (proc.next == proc.count) {
        struct answer answer;
        const long long last = proc.count > 0 ? proc.pids[proc.count - 1] : 0;
        if (ask(&answer, NULL, 0, "processes %lld", last) != 0 || answer.count == 0)
            return NULL;
        memcpy(proc.pids, answer.values, sizeof(proc.pids));
        proc.count = answer.count;
        proc.next = 0;
    }
    snprintf(proc.entry.d_name, sizeof(proc.entry.d_name), "%lld", proc.pids[proc.next++]);
    return &proc.entry;
}

int target_closedir(DIR *folder)
{
    return folder == (DIR *)&proc ? 0 : closedir(folder);
}

/* A file that stands for the address space of a process is /dev/null here, with the pid of the process as its place. */
static pid_t pid_of_file[64];

int target_open(const char *name, int flags, ...)
{
    int of, file;
    char rest;
    mode_t mode = 0;
    va_list arguments;
    va_start(arguments, flags);
    if ((flags & O_CREAT) != 0)
        mode = (mode_t)va_arg(arguments, int);
    va_end(arguments);
    if (sscanf(name, "/proc/%d/a%c", &of, &rest) != 2 || rest != 's')
        return open(name, flags, mode);
    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && file < (int)(sizeof(pid_of_file) / sizeof(pid_of_file[0]))) {
        pid_of_file[file] = of;
    } else if (file >= 0) {
        close(file);
        errno = EMFILE;
        return -1;
    }
    return file;
}

int devctl(int file, int command, void *data, size_t size, int *info)
{
    struct answer answer;
    const size_t at = offsetof(procfs_debuginfo, path);
    int error;
    if (command != DCMD_PROC_MAPDEBUG_BASE || file < 0 || (size_t)file >= sizeof(pid_of_file) / sizeof(pid_of_file[0]))
        return ENOTTY;
    error = ask(&answer, NULL, 0, "path %d", (int)pid_of_file[file]);
    if (error != 0)
        return error;
    if (size < at + (size_t)answer.size + 1)
        return EINVAL;
    memcpy((char *)data + at, answer.data, (size_t)answer.size);
    ((char *)data)[at + (size_t)answer.size] = '\0';
    if (info != NULL)
        *info = 0;
    return EOK;
}
