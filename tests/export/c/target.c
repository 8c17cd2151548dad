/* A target for exported programs: carries out the program that its first argument counts, on standard input and output.

   Input: how many processes, then per process pid and name; how many events, then per event class, number in the class,
   header, time in nanoseconds as two words, feature mask, pid, tid, how many words, the words. All numbers are 32 bits in the host's order; a name is its
   length and its bytes. Output: a line per call of TraceEvent(), an empty line, and a character per event: 1 = it
   passes; before it an m for each mark and an s for each STOP of its handlers. Events are handed to the handlers as the kernel does it: the class's first, then the event's. */
#include <dirent.h>
#include <devctl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/neutrino.h>
#include <sys/procfs.h>
#include <sys/syspage.h>
#include <sys/trace.h>
#include "fcntl.h"
#include "unistd.h"

#define MODE_ADDEVENTHANDLER 7
#define MODE_ADDCLASSEVHANDLER 36
#define MODE_START 10
#define MODE_STOP 11
#define MODE_INSERTUSRSTREVENT 32
#define WHOLE_CLASS 0xffffffffu

typedef int handler_t(event_data_t *event);

extern int (*const programs[])(void);

static struct {
    uint32_t class_number, event;
    handler_t *handler;
    event_data_t *data;
} handlers[128];
static unsigned handler_count;

static struct process {
    uint32_t pid;
    char name[1025];
} processes[1000];
static uint32_t process_count, next_process;
static int is_privileged, is_tracing;
static uint64_t time_ns;
struct qtime_entry target_qtime = {1000000000};

static uint32_t number(void)
{
    uint32_t value;
    if (fread(&value, 4, 1, stdin) != 1)
        exit(3);
    return value;
}

static void attach(uint32_t class_number, uint32_t event, handler_t *handler, event_data_t *data)
{
    unsigned i;
    if (!is_privileged || handler_count == 128 || data->data_array == NULL)
        exit(4);
    for (i = 0; i < handler_count; ++i)
        if (handlers[i].class_number == class_number && handlers[i].event == event)
            break;
    handlers[i].class_number = class_number;
    handlers[i].event = event;
    handlers[i].handler = handler;
    handlers[i].data = data;
    handler_count += i == handler_count;
}

int TraceEvent(int mode, ...)
{
    const unsigned kind = (unsigned)mode & 0x0fffffff, count = (unsigned)mode >> 28;
    uint32_t words[2] = {0, WHOLE_CLASS};
    unsigned i;
    va_list list;
    if (is_tracing) {
        putchar(kind == MODE_STOP ? 's' : kind == MODE_INSERTUSRSTREVENT ? 'm' : '?');
        return 0;
    }
    va_start(list, mode);
    printf("%u", kind);
    if (kind == MODE_ADDEVENTHANDLER || kind == MODE_ADDCLASSEVHANDLER) {
        handler_t *handler;
        for (i = 0; i + 3 < count; ++i)
            words[i] = va_arg(list, uint32_t);
        handler = va_arg(list, handler_t *);
        attach(words[0], words[1], handler, va_arg(list, event_data_t *));
        printf(" %u %u", words[0], words[1]);
    } else
        for (i = 1; i < count; ++i)
            printf(" %u", va_arg(list, uint32_t));
    printf("\n");
    va_end(list);
    return 0;
}

void InterruptLock(intrspin_t *lock)
{
    if (lock->is_locked++)
        exit(5);
}

void InterruptUnlock(intrspin_t *lock)
{
    if (--lock->is_locked)
        exit(6);
}

uint64_t ClockCycles(void)
{
    return time_ns;
}

int ThreadCtl(int command, void *data)
{
    is_privileged = command == _NTO_TCTL_IO && data == NULL;
    return 0;
}

static int ask(uint32_t class_number, uint32_t event, const event_data_t *given, const uint32_t *words)
{
    unsigned i;
    for (i = 0; i < handler_count; ++i)
        if (handlers[i].class_number == class_number && handlers[i].event == event) {
            event_data_t *const data = handlers[i].data;
            uint32_t *const array = data->data_array;
            void *const area = data->area;
            memcpy(array, words, 4 * given->el_num);
            *data = *given;
            data->data_array = array;
            data->area = area;
            return handlers[i].handler(data);
        }
    return 1;
}

int target_pause(void)
{
    uint32_t left;
    printf("\n");
    is_tracing = 1;
    for (left = number(); left > 0; --left) {
        const uint32_t class_number = number(), event_number = number();
        uint32_t words[512], i;
        event_data_t event;
        memset(&event, 0, sizeof(event));
        event.header = number();
        time_ns = number();
        time_ns |= (uint64_t)number() << 32;
        event.feature_mask = number();
        event.feature[0] = number();
        event.feature[1] = number();
        event.el_num = number();
        for (i = 0; i < event.el_num; ++i)
            words[i] = number();
        putchar(ask(class_number, WHOLE_CLASS, &event, words) && ask(class_number, event_number, &event, words) ? '1' : '0');
    }
    return -1;
}

struct folder {
    struct dirent entry;
};

DIR *opendir(const char *name)
{
    static DIR folder;
    next_process = 0;
    return strcmp(name, "/proc") == 0 ? &folder : NULL;
}

struct dirent *readdir(DIR *folder)
{
    if (next_process == process_count + 2)
        return NULL;
    if (next_process < 2)
        strcpy(folder->entry.d_name, next_process == 0 ? "boot" : "self");
    else
        snprintf(folder->entry.d_name, sizeof(folder->entry.d_name), "%u", processes[next_process - 2].pid);
    ++next_process;
    return &folder->entry;
}

int closedir(DIR *folder)
{
    return folder == NULL ? -1 : 0;
}

int target_open(const char *name, int flags)
{
    unsigned pid, i;
    char rest;
    if (flags != O_RDONLY || sscanf(name, "/proc/%u/a%c", &pid, &rest) != 2 || rest != 's')
        return -1;
    for (i = 0; i < process_count; ++i)
        if (processes[i].pid == pid)
            return (int)i;
    return -1;
}

int devctl(int file, int command, void *data, size_t size, int *info)
{
    const size_t at = offsetof(procfs_debuginfo, path), length = strlen(processes[file].name) + 1;
    if (command != DCMD_PROC_MAPDEBUG_BASE || info != NULL || size < at + length)
        return 22;
    memcpy((char *)data + at, processes[file].name, length);
    return 0;
}

int target_close(int file)
{
    return file < 0 ? -1 : 0;
}

int main(int count, char **arguments)
{
    uint32_t i;
    process_count = number();
    for (i = 0; i < process_count; ++i) {
        uint32_t length;
        processes[i].pid = number();
        length = number();
        if (length > 1024 || fread(processes[i].name, 1, length, stdin) != length)
            return 3;
    }
    return count == 2 ? programs[atoi(arguments[1])]() : 2;
}
