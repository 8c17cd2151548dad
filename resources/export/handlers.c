/* Functions that exported C programs are made of. satview copies those that a program needs; every part begins with a
   line of its name and the parts that it needs, and stands after those.

   They say in C what satview/filters/scalar.py says in Python; tests hold the two together. All that handlers call
   can run inside a kernel: it allocates nothing, calls nothing of a library but fnmatch(). */

/// COUNT:
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/// number:
/* A number that may not be known: no comparison with something unknown holds. */
struct number {
    int64_t value;
    int is_known;
};

/// known: number
static struct number known(int64_t value)
{
    const struct number result = {value, 1};
    return result;
}

/// unknown: number
static struct number unknown(void)
{
    const struct number result = {0, 0};
    return result;
}

/// code_of:
/* Internal class (5 bits) and event (10 bits). */
static unsigned code_of(const event_data_t *event)
{
    return event->header & 0x7fff;
}

/// event_number: code_of
/* The event number: of a kernel call its own, whatever the half and the width. */
static unsigned event_number(const event_data_t *event)
{
    const unsigned code = code_of(event);
    return code >> 10 == 2 ? code & 0x7f : code & 0x3ff;
}

/// cpu_of:
static unsigned cpu_of(const event_data_t *event)
{
    return event->header >> 24 & 0x3f;
}

/// word_count:
/* Payload words as a trace has them: padded to whole slots. */
static unsigned word_count(const event_data_t *event)
{
    const unsigned count = event->el_num < 2 ? 2 : event->el_num;
    return count + count % 2;
}

/// word_at:
static uint32_t word_at(const event_data_t *event, unsigned index)
{
    return index < event->el_num ? event->data_array[index] : 0;
}

/// word: word_count word_at known unknown
static struct number word(const event_data_t *event, unsigned index)
{
    return index < word_count(event) ? known(word_at(event, index)) : unknown();
}

/// pid_of: known unknown
/* The process that the kernel names with the event. */
static struct number pid_of(const event_data_t *event)
{
    const int32_t pid = (int32_t)event->feature[_NTO_TRACE_FIPID];
    return (event->feature_mask & _NTO_TRACE_FMPID) && pid >= 0 ? known(pid) : unknown();
}

/// tid_of: known unknown
/* The thread that the kernel names with the event, from 1. */
static struct number tid_of(const event_data_t *event)
{
    const int32_t tid = (int32_t)event->feature[_NTO_TRACE_FITID];
    return (event->feature_mask & _NTO_TRACE_FMTID) && tid >= 0 ? known(tid) : unknown();
}

/// running:
/* The thread that runs on each CPU, as THRUNNING events tell; tid 0 = not known yet. Events of most classes name no
   thread, or, as replies do, another one than the one that caused them. */
static struct {
    int32_t pid, tid;
} running[64];

/// note_running: running cpu_of code_of
static void note_running(const event_data_t *event)
{
    if (code_of(event) == 0x1001) {
        running[cpu_of(event)].pid = (int32_t)event->feature[_NTO_TRACE_FIPID];
        running[cpu_of(event)].tid = (int32_t)event->feature[_NTO_TRACE_FITID];
    }
}

/// running_pid: running cpu_of known unknown
static struct number running_pid(const event_data_t *event)
{
    return running[cpu_of(event)].tid > 0 ? known(running[cpu_of(event)].pid) : unknown();
}

/// running_tid: running cpu_of known unknown
static struct number running_tid(const event_data_t *event)
{
    return running[cpu_of(event)].tid > 0 ? known(running[cpu_of(event)].tid) : unknown();
}

/// is_code: code_of COUNT
/* Whether class and event are in one of some ranges. */
static int is_code(const event_data_t *event, const uint16_t ranges[][2], unsigned count)
{
    const unsigned code = code_of(event);
    unsigned i;
    for (i = 0; i < count; ++i)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return 1;
    return 0;
}

/// variant_of: code_of word_count word_at is_code
/* What the words of a payload say about their own layout: an exit that failed, a call that counts its arguments. */
static unsigned variant_of(const event_data_t *event)
{
    const unsigned code = code_of(event), count = word_count(event);
    const uint32_t first = word_at(event, 0), second = word_at(event, 1);
    if (code == COUNTED_CALL) {
        const unsigned arguments = first >> 28;
        const int is_whole = count == arguments || count == arguments + arguments % 2;
        return arguments > 2 && arguments <= COUNTED_MOST && is_whole ? arguments : BY_COUNT;
    }
    if (code >> 10 != 2 || (code >> 7 & 3) != 1 || first != 0xffffffffu)
        return BY_COUNT;
    if (count == 2 && (!is_code(event, exits_64, COUNT(exits_64)) || second <= LAST_ERRNO))
        return FAILED;
    if (is_code(event, values_64, COUNT(values_64)) && second == 0xffffffffu)
        return count == 4 && word_at(event, 2) - 1 < LAST_ERRNO ? FAILED_64 : FAILED_UNKNOWN;
    return count == 2 ? DOUBTFUL : BY_COUNT;
}

/// has_failed: variant_of
static int has_failed(const event_data_t *event)
{
    const unsigned variant = variant_of(event);
    return variant == FAILED || variant == FAILED_64 || variant == FAILED_UNKNOWN;
}

/// shows_failure: variant_of
/* Whether the event says if a kernel call failed. */
static int shows_failure(const event_data_t *event)
{
    const unsigned code = code_of(event);
    return code >> 10 == 2 && (code >> 7 & 3) == 1 && variant_of(event) != DOUBTFUL;
}

/// error_of: variant_of known unknown
/* The error of a failed kernel call; not known of all other events. */
static struct number error_of(const event_data_t *event)
{
    const unsigned variant = variant_of(event);
    if (variant != FAILED && variant != FAILED_64)
        return unknown();
    return known((int32_t)word_at(event, variant == FAILED ? 1 : 2));
}

/// position: COUNT
/* Where an argument is in the payload of some events of a variant that have so many words. */
struct position {
    uint16_t first_code, last_code, variant, least_words, most_words;
    uint16_t word;
    uint8_t words; /* 1 or 2; 0 = text up to a NUL or the end */
    uint8_t is_signed;
};

/// find_position: position variant_of
static const struct position *find_position(const event_data_t *event, const struct position positions[],
                                            unsigned count)
{
    const unsigned code = code_of(event), words = word_count(event), variant = variant_of(event);
    unsigned i;
    for (i = 0; i < count; ++i)
        if (code >= positions[i].first_code && code <= positions[i].last_code && variant == positions[i].variant &&
            words >= positions[i].least_words && words <= positions[i].most_words)
            return &positions[i];
    return NULL;
}

/// is_little_endian:
/* Numbers of 64 bits are two words in the order of the target. */
static int is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

/// argument: find_position is_little_endian known unknown
static struct number argument(const event_data_t *event, const struct position positions[], unsigned count)
{
    const struct position *const position = find_position(event, positions, count);
    uint64_t first, second;
    if (position == NULL || position->words == 0)
        return unknown();
    first = word_at(event, position->word);
    if (position->words == 1)
        return known(position->is_signed ? (int32_t)first : (int64_t)first);
    second = word_at(event, position->word + 1u);
    return known((int64_t)(is_little_endian() ? first | second << 32 : second | first << 32));
}

/// sum: known unknown
static struct number sum(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known((int64_t)((uint64_t)a.value + (uint64_t)b.value));
}

/// difference: known unknown
static struct number difference(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known((int64_t)((uint64_t)a.value - (uint64_t)b.value));
}

/// product: known unknown
static struct number product(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known((int64_t)((uint64_t)a.value * (uint64_t)b.value));
}

/// quotient: known unknown
/* Rounded down, as in rules; by 0 there is no result. */
static struct number quotient(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known || b.value == 0)
        return unknown();
    if (b.value == -1)
        return known((int64_t)(0 - (uint64_t)a.value));
    return known(a.value / b.value - (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)));
}

/// rest: known unknown
/* With the sign of b, as in rules. */
static struct number rest(struct number a, struct number b)
{
    int64_t result;
    if (!a.is_known || !b.is_known || b.value == 0)
        return unknown();
    result = b.value == -1 ? 0 : a.value % b.value;
    return known(result != 0 && (result < 0) != (b.value < 0) ? result + b.value : result);
}

/// common_bits: known unknown
static struct number common_bits(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known(a.value & b.value);
}

/// all_bits: known unknown
static struct number all_bits(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known(a.value | b.value);
}

/// other_bits: known unknown
static struct number other_bits(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known(a.value ^ b.value);
}

/// shifted_left: known unknown
static struct number shifted_left(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known || b.value < 0 || b.value > 63)
        return unknown();
    return known((int64_t)((uint64_t)a.value << b.value));
}

/// shifted_right: known unknown
static struct number shifted_right(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known || b.value < 0 || b.value > 63)
        return unknown();
    return known(a.value >> b.value);
}

/// bit_of: known unknown
static struct number bit_of(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known || b.value < 0 || b.value > 63)
        return unknown();
    return known(a.value >> b.value & 1);
}

/// smaller: known unknown
static struct number smaller(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known(a.value < b.value ? a.value : b.value);
}

/// larger: known unknown
static struct number larger(struct number a, struct number b)
{
    if (!a.is_known || !b.is_known)
        return unknown();
    return known(a.value > b.value ? a.value : b.value);
}

/// negative: known unknown
static struct number negative(struct number a)
{
    return a.is_known ? known((int64_t)(0 - (uint64_t)a.value)) : unknown();
}

/// absolute: known
static struct number absolute(struct number a)
{
    return a.is_known && a.value < 0 ? known((int64_t)(0 - (uint64_t)a.value)) : a;
}

/// signed_word: known unknown
/* The low 32 bits as a signed number. */
static struct number signed_word(struct number a)
{
    return a.is_known ? known((int32_t)(uint32_t)a.value) : unknown();
}

/// is_known: number
static int is_known(struct number a)
{
    return a.is_known;
}

/// is_equal: number
static int is_equal(struct number a, struct number b)
{
    return a.is_known && b.is_known && a.value == b.value;
}

/// is_other: number
static int is_other(struct number a, struct number b)
{
    return a.is_known && b.is_known && a.value != b.value;
}

/// is_less: number
static int is_less(struct number a, struct number b)
{
    return a.is_known && b.is_known && a.value < b.value;
}

/// is_at_most: number
static int is_at_most(struct number a, struct number b)
{
    return a.is_known && b.is_known && a.value <= b.value;
}

/// is_among: number COUNT
static int is_among(struct number a, const int64_t numbers[], unsigned count)
{
    unsigned i;
    for (i = 0; a.is_known && i < count; ++i)
        if (a.value == numbers[i])
            return 1;
    return 0;
}

/// text:
/* UTF-8; bytes NULL = not known. */
struct text {
    const unsigned char *bytes, *end;
};

/// event_text: text find_position
/* A text in the payload: up to a NUL or the end. */
static struct text event_text(const event_data_t *event, const struct position positions[], unsigned count)
{
    struct text text = {NULL, NULL};
    const struct position *const position = find_position(event, positions, count);
    const unsigned char *const all = (const unsigned char *)event->data_array, *const end = all + 4 * event->el_num;
    if (position == NULL || position->words != 0)
        return text;
    text.bytes = text.end = position->word < event->el_num ? all + 4 * position->word : end;
    while (text.end < end && *text.end != 0)
        ++text.end;
    return text;
}

/// as_text: text
static struct text as_text(const char *bytes, size_t length)
{
    const struct text text = {(const unsigned char *)bytes, (const unsigned char *)bytes + length};
    return text;
}

/// next_character:
/* One character of UTF-8; what is none counts as U+FFFD, as many bytes at a time as could have begun one. */
static uint32_t next_character(const unsigned char **at, const unsigned char *end)
{
    const unsigned char first = *(*at)++;
    const unsigned more = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    uint32_t character = first & (more == 0 ? 0x7fu : 0x3fu >> more);
    unsigned i;
    if (more == 0)
        return first < 0x80 ? first : 0xfffd;
    for (i = 0; i < more; ++i, least = 0x80, most = 0xbf) {
        if (*at == end || **at < least || **at > most)
            return 0xfffd;
        character = character << 6 | (*(*at)++ & 0x3f);
    }
    return character;
}

/// has_text: text
static int has_text(struct text a)
{
    return a.bytes != NULL;
}

/// same_text: text next_character as_text
static int same_text(struct text a, struct text b)
{
    if (a.bytes == NULL)
        return 0;
    while (a.bytes < a.end && b.bytes < b.end)
        if (next_character(&a.bytes, a.end) != next_character(&b.bytes, b.end))
            return 0;
    return a.bytes == a.end && b.bytes == b.end;
}

/// plain: text next_character
/* Copies a text for functions that see bytes: each character beyond ASCII becomes DEL, which no pattern here names.
   Where case is ignored, the Kelvin sign and the long s are k and s. */
static void plain(char *room, struct text text, int ignores_case)
{
    while (text.bytes < text.end) {
        const uint32_t character = next_character(&text.bytes, text.end);
        if (ignores_case && (character == 0x212a || character == 0x17f))
            *room++ = character == 0x212a ? 'k' : 's';
        else
            *room++ = character < 0x7f ? (char)character : 0x7f;
    }
    *room = '\0';
}

/// DATA_WORDS:
/* Room for the payload words of one event; the kernel fills in as many as there are. */
#define DATA_WORDS 512

/// ROOM: DATA_WORDS
/* Where a handler may write a text: after the data of its event, so that a handler that interrupts it has its own. */
#define ROOM(event) ((char *)((event)->data_array + DATA_WORDS))

/// name_room:
/* Where the path of a process is written while they are looked up. */
static char name_room[2048];

/// fits_glob: plain
static int fits_glob(struct text text, const char *pattern, char *room)
{
    if (text.bytes == NULL)
        return 0;
    plain(room, text, 0);
    return fnmatch(pattern, room, FNM_NOESCAPE) == 0;
}

/// fits_regex: plain name_room
/* Not for handlers: the functions of regular expressions allocate memory. */
static int fits_regex(struct text text, const char *pattern, int ignores_case)
{
    regex_t compiled;
    int result;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB | (ignores_case ? REG_ICASE : 0)) != 0) {
        fprintf(stderr, "regcomp() refuses %s\n", pattern);
        exit(1);
    }
    plain(name_room, text, ignores_case);
    result = regexec(&compiled, name_room, 0, NULL, 0) == 0;
    regfree(&compiled);
    return result;
}

/// named:
/* Processes whose name is needed, by pid. They are looked up when this program starts: the name of a process that
   starts later is not known, so no condition on its name holds. Run this program again after starting one. */
struct named {
    unsigned count;
    int32_t pids[4096];
};

/// remember: named COUNT
static void remember(struct named *named, int32_t pid)
{
    if (named->count < COUNT(named->pids)) {
        named->pids[named->count++] = pid;
        return;
    }
    fprintf(stderr, "process %ld: no room to remember its name\n", (long)pid);
    ++failures;
}

/// is_named: named number
static int is_named(struct number pid, const struct named *named)
{
    unsigned i;
    for (i = 0; pid.is_known && i < named->count; ++i)
        if (named->pids[i] == pid.value)
            return 1;
    return 0;
}

/// spans: number
/* Of each thread: when the first event of a pair was, and the time from there to the second one. Handlers of several
   CPUs share them. Of more threads, the one that was silent for longest is forgotten. */
#define SPANS 256
struct span {
    uint64_t begin, seen;
    int64_t length_ns;
    int32_t pid, tid;
    int is_used, has_begin, has_length;
};
static intrspin_t span_lock;

/// find_span: spans
static struct span *find_span(struct span *spans, struct number pid, struct number tid, int creates)
{
    const int32_t own_pid = (int32_t)pid.value, own_tid = tid.is_known ? (int32_t)tid.value : -1;
    struct span *found = NULL, *oldest = spans;
    unsigned i;
    if (!pid.is_known)
        return NULL;
    for (i = 0; i < SPANS && found == NULL; ++i) {
        if (spans[i].is_used && spans[i].pid == own_pid && spans[i].tid == own_tid)
            found = &spans[i];
        if (!spans[i].is_used || (oldest->is_used && spans[i].seen < oldest->seen))
            oldest = &spans[i];
    }
    if (found == NULL && creates) {
        const struct span begun = {0, 0, 0, own_pid, own_tid, 1, 0, 0};
        found = oldest;
        *found = begun;
    }
    return found;
}

/// note_span: find_span
/* Takes note of an event that may begin or end a span of its thread. */
static void note_span(struct span *spans, struct number pid, struct number tid, int begins, int ends)
{
    const uint64_t now = ClockCycles(), per_s = SYSPAGE_ENTRY(qtime)->cycles_per_sec;
    struct span *span;
    if (!begins && !ends)
        return;
    InterruptLock(&span_lock);
    span = find_span(spans, pid, tid, begins);
    if (span != NULL) {
        span->has_length = ends && span->has_begin;
        if (span->has_length) {
            const uint64_t cycles = now - span->begin;
            span->length_ns = (int64_t)(cycles / per_s * 1000000000u + cycles % per_s * 1000000000u / per_s);
        }
        span->has_begin = begins;
        span->begin = span->seen = now;
    }
    InterruptUnlock(&span_lock);
}

/// latency: find_span known unknown
static struct number latency(struct span *spans, struct number pid, struct number tid)
{
    struct number result = unknown();
    struct span *span;
    InterruptLock(&span_lock);
    span = find_span(spans, pid, tid, 0);
    if (span != NULL && span->has_length)
        result = known(span->length_ns);
    InterruptUnlock(&span_lock);
    return result;
}

/// use_span: find_span
/* A span counts once. */
static void use_span(struct span *spans, struct number pid, struct number tid)
{
    struct span *span;
    InterruptLock(&span_lock);
    span = find_span(spans, pid, tid, 0);
    if (span != NULL)
        span->has_length = 0;
    InterruptUnlock(&span_lock);
}

/// mark:
/* Inserts the user event of a mark; the event that caused it follows, since handlers come before their event. */
static void mark(const char *text)
{
    static unsigned mark_count;
    char room[240] = "#0000000 trigger: ";
    unsigned number = mark_count++ % 10000000u, i;
    for (i = 7; i > 0; --i, number /= 10)
        room[i] = (char)('0' + number % 10);
    for (i = 18; *text != '\0' && i + 1 < sizeof(room); ++i)
        room[i] = *text++;
    room[i] = '\0';
    TraceEvent(_NTO_TRACE_INSERTUSRSTREVENT, 1023, room);
}

/// stop_after:
/* Ends the trace, after so many slots as the buffers that are kept have; tracelogger -r then saves its ring. */
static volatile uint32_t slots_left;
static volatile int is_stopping;
static void stop_after(unsigned buffers)
{
    if (is_stopping)
        return;
    is_stopping = 1;
    if (buffers == 0)
        TraceEvent(_NTO_TRACE_STOP);
    else
        slots_left = 1024 * buffers;
}

/// count_slots: stop_after
static void count_slots(const event_data_t *event)
{
    const uint32_t slots = event->el_num < 3 ? 1 : (event->el_num + 1) / 2;
    const uint32_t left = slots_left; /* looked at once: other CPUs count, too */
    if (left == 0)
        return;
    slots_left = slots < left ? left - slots : 0;
    if (slots >= left)
        TraceEvent(_NTO_TRACE_STOP);
}

/// record_every: stop_after
/* Returns the name of the file of an incident. */
static const char *incident_file(const char *base, unsigned long number)
{
    static char name[1024];
    snprintf(name, sizeof(name), "%s-%04lu.kev", base, number);
    return name;
}

static long long file_bytes(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (long long)status.st_size : -1;
}

/* Starts tracing once the logger has its buffers; returns 0 if that does not happen within 10 s. */
static void set_filter(void);
static int start_tracing(void)
{
    const struct timespec second = {1, 0};
    int tries;
    for (tries = 0; tries < 10; ++tries) {
        nanosleep(&second, NULL); /* the logger needs a moment for its buffers */
        set_filter(); /* the logger before has taken back all classes at its end */
        if (TraceEvent(_NTO_TRACE_START) != -1)
            return 1;
    }
    return 0;
}

/* Runs a logger for each incident; the newest files stay that are within both limits, of which 0 is none. */
static int record_every(const char *ring, const char *base, unsigned long most_files, long long most_bytes)
{
    unsigned long number = 1, oldest, file;
    while (file_bytes(incident_file(base, number)) >= 0)
        ++number; /* those of earlier runs are neither counted nor removed */
    for (oldest = number;; ++number) {
        char name[1024], *words[] = {"tracelogger", "-d1", "-r", "-k", NULL, "-f", NULL, NULL};
        const struct timespec moment = {0, 100000000};
        int status = 0;
        pid_t logger, ended;
        snprintf(name, sizeof(name), "%s", incident_file(base, number));
        words[4] = (char *)ring;
        words[6] = name;
        is_stopping = 1; /* handlers are called while nothing is traced, too */
        slots_left = 0;
        logger = fork();
        if (logger == 0) {
            execvp(words[0], words);
            _exit(127);
        }
        if (logger == -1 || !start_tracing()) {
            fprintf(stderr, "no logger for %s: %s\n", name, strerror(errno));
            if (logger != -1)
                kill(logger, SIGTERM);
            return 1;
        }
        is_stopping = 0;
        while ((ended = waitpid(logger, &status, WNOHANG)) == 0)
            nanosleep(&moment, NULL);
        if (ended == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "tracelogger has ended without %s\n", name);
            return 1;
        }
        for (;; ++oldest) {
            long long bytes = 0;
            for (file = oldest; file <= number; ++file)
                bytes += file_bytes(incident_file(base, file));
            if (oldest == number || ((most_files == 0 || number - oldest < most_files)
                                     && (most_bytes == 0 || bytes <= most_bytes)))
                break;
            remove(incident_file(base, oldest));
        }
    }
}

/// find_processes: remember
/* Reads the path of a process from its address space in /proc. */
static void find_process(long pid)
{
    union {
        procfs_debuginfo info;
        char room[sizeof(procfs_debuginfo) + 1024];
    } map;
    char file[40];
    int fd;
    snprintf(file, sizeof(file), "/proc/%ld/as", pid);
    fd = open(file, O_RDONLY);
    if (fd == -1)
        return; /* it has ended meanwhile */
    memset(&map, 0, sizeof(map));
    if (devctl(fd, DCMD_PROC_MAPDEBUG_BASE, &map, sizeof(map) - 1, NULL) == EOK)
        note_process((int32_t)pid, map.info.path);
    close(fd);
}

static void find_processes(void)
{
    DIR *const folder = opendir("/proc");
    struct dirent *entry;
    if (folder == NULL) {
        fprintf(stderr, "/proc: %s\n", strerror(errno));
        ++failures;
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        char *end;
        const long pid = strtol(entry->d_name, &end, 10);
        if (pid > 0 && *end == '\0')
            find_process(pid);
    }
    closedir(folder);
}
