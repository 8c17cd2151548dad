/*
 * The passes over slots, which take most of the time of loading.
 *
 * The kinds of successive slots and events follow no pattern, and a mispredicted branch costs as much as ten slots. So
 * the loops have few branches: they write each element unconditionally, and advance the output index by a condition.
 */

#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <unistd.h>
#endif

#include "core.h"

enum {
    BLOCK = 1 << 10, /* number of slots that fit into the first-level cache for a second pass */
    LONGEST_TAIL = 1 << 16, /* a chunk ends where an event begins, if an event begins that near to its end */
    MAX_PROBES = 256,
    IS_SUBJECT = 1, /* flags of a code: the payload names the thread that the event belongs to */
    IS_STATE = 2,
    IS_RARE = 4,
    IS_UNKNOWN = 8,
    IS_RUNNING = 16 /* the named thread runs from this event on */
};

/*
 * A chunk of slots, and the arrays that receive its events. Arrays in the file's columns begin at the row of the first
 * event of the chunk.
 *
 * counts: [0] slots processed, [1] events, [2] events without their end, [3] runs of tails, [4] all-zero slots,
 * [5] events with IS_SUBJECT, [6] IS_STATE, [7] IS_RARE, [8] IS_UNKNOWN, [9] maximum number of slots of an event.
 */
typedef struct {
    const uint32_t *slots; /* 4 words each */
    int64_t slot_count;
    int64_t is_last;          /* no chunk follows, so do not leave the last event to the next chunk */
    int64_t first_slot;       /* number of the first slot in the file */
    int64_t first_row;        /* number of the first event in the file */
    int64_t buffer_code;      /* CONTROL BUFFER */
    const uint8_t *traits;    /* flags of each code */
    int64_t capacity;         /* length of each of the following arrays */
    uint32_t *at;             /* first slot of each event, within the chunk */
    uint32_t *size;           /* number of adjacent slots of each event */
    uint32_t *stamp;
    uint8_t *trait;           /* flags of each event */
    uint16_t *code;
    uint8_t *cpu;
    uint32_t *slot_narrow;    /* first slot of each event in the file, narrow or wide, whichever is not null */
    uint64_t *slot_wide;
    uint16_t *size_narrow;    /* number of adjacent slots, truncated to 16 bits: counts[9] shows whether they fit */
    uint32_t *size_wide;
    uint32_t *opened;         /* events whose end does not follow directly */
    uint32_t *run_at;         /* runs of tails that do not follow their event: first slot, */
    uint32_t *run_size;       /* number of slots, */
    int64_t *run_before;      /* the event before, -1 = none, */
    uint8_t *run_closes;      /* and whether the run ends the event */
    uint32_t *zero;           /* all-zero slots */
    uint64_t *key;            /* pid and tid in the payload of events with IS_SUBJECT, in memory order */
    uint32_t *state_row;      /* rows of state events in the file */
    uint32_t *rare;
    uint32_t *unknown;
    int64_t *counts;
} satview_chunk;

/* Return the number of slots to process: up to the last event or run of tails, which the next chunk may continue. */
static int64_t usable(const uint32_t *slots, int64_t count, uint32_t buffer_code)
{
    int64_t low = count > LONGEST_TAIL ? count - LONGEST_TAIL : 0, event = -1, run = -1, cut, before;
    uint32_t code;
    for (int64_t i = count - 1; i >= low && event < 0; i--)
        if (slots[4 * i] < TAIL)
            event = i;
    if (event < 0)
        return count;
    for (int64_t i = count - 1; i >= 0 && run < 0; i--)
        if (slots[4 * i] >= TAIL && (i == 0 || !is_linked(slots + 4 * i)))
            run = i;
        else if (i < event)
            break; /* a run before the last event does not matter */
    cut = run > event ? run : event;
    for (before = cut - 1; before >= low && slots[4 * before] >= TAIL; before--)
        ;
    if (before < low)
        return cut ? cut : count;
    /* A BUFFER event takes the time of the event after it, so both stay in one chunk, as do successive zero slots. */
    code = slots[4 * before] & CODE_MASK;
    if (code == 0 || code == buffer_code) {
        int64_t keep_from = -1, i;
        for (i = before; i >= low; i--) {
            if (slots[4 * i] >= TAIL)
                continue;
            if (slots[4 * i] != 0 && (slots[4 * i] & CODE_MASK) != buffer_code)
                break;
            keep_from = i;
        }
        if (keep_from > 0 && (i >= low || low == 0)) /* at 0 nothing would be processed */
            cut = keep_from;
    }
    return cut ? cut : count;
}

enum { LENGTH, EVENTS, OPENED, RUNS, ZEROS, SUBJECTS, STATES, RARE, UNKNOWN, LONGEST };

/* Return whether a slot begins or continues a combine event, so that more of its slots should follow. */
static inline uint32_t is_open(uint32_t header) { return (header ^ header << 1) >> 31; }

/* Record that the last event has no end, unless a run of tails after the event is what is open. */
static void note_open(const satview_chunk *in, int64_t events)
{
    int64_t runs = in->counts[RUNS];
    if (!runs || in->run_before[runs - 1] != events - 1)
        in->opened[in->counts[OPENED]++] = (uint32_t)(events - 1);
}

/* Handle the rare cases of slot i: the event before it has no end, it begins a run of tails, or it is all zeros. */
static void note_odd(const satview_chunk *in, int64_t i, int64_t events)
{
    int64_t *counts = in->counts, runs = counts[RUNS];
    const uint32_t *slot = in->slots + 4 * i;
    if (i && is_open(slot[-4]))
        note_open(in, events);
    if (slot[0] >= TAIL) {
        in->run_at[runs] = (uint32_t)i;
        in->run_before[runs] = events - 1;
        counts[RUNS]++;
    }
    if (slot[0] == 0)
        in->zero[counts[ZEROS]++] = (uint32_t)i;
}

/* Find the slots from i to end at which events begin; return the number of events so far. */
static int64_t find_events(const satview_chunk *in, int64_t i, int64_t end, int64_t events)
{
    const uint32_t *slot = in->slots + 4 * i;
    uint32_t *restrict first_slots = in->at, before = i ? slot[-4] : 0, stamp_before = i ? slot[-3] : 0;
#if defined(__GNUC__)
#pragma GCC unroll 4
#endif
    for (; i < end; i++, slot += 4) {
        uint32_t header = slot[0], stamp = slot[1], tail = header >> 31;
        uint32_t differs = ((header ^ before) & KEY_MASK) | (stamp ^ stamp_before);
        /* Normally a slot is a tail exactly if the event before it is open, and then has the same key. */
        if ((is_open(before) ^ tail) | (differs & -tail) || header == 0)
            note_odd(in, i, events);
        first_slots[events] = (uint32_t)i;
        events += header - 1 < TAIL - 1; /* neither a tail nor zeros */
        before = header;
        stamp_before = stamp;
    }
    return events;
}

/* Record an event with a rare or unknown code. */
static void note_trait(const satview_chunk *in, uint8_t trait, int64_t event)
{
    if (trait & IS_RARE)
        in->rare[in->counts[RARE]++] = (uint32_t)event;
    if (trait & IS_UNKNOWN)
        in->unknown[in->counts[UNKNOWN]++] = (uint32_t)event;
}

/* Write the columns of some events that come from their first slots. */
static void describe(const satview_chunk *in, int64_t from, int64_t events)
{
    const uint32_t *restrict slots = in->slots, *restrict first_slots = in->at;
    const uint8_t *restrict traits = in->traits;
    uint32_t *restrict stamp = in->stamp, *restrict state_row = in->state_row;
    uint16_t *restrict codes = in->code;
    uint8_t *restrict cpu = in->cpu, *restrict trait_of = in->trait;
    uint64_t *restrict key = in->key;
    int64_t subjects = in->counts[SUBJECTS], states = in->counts[STATES];
    uint32_t row = (uint32_t)in->first_row;
    for (int64_t e = from; e < events; e++) {
        const uint32_t *slot = slots + 4 * (int64_t)first_slots[e];
        uint32_t header = slot[0], code = header & CODE_MASK;
        uint8_t trait = traits[code];
        codes[e] = (uint16_t)code;
        cpu[e] = (uint8_t)(header >> CPU_SHIFT & CPU_MASK);
        stamp[e] = slot[1];
        trait_of[e] = trait;
        memcpy(key + subjects, slot + 2, sizeof *key);
        state_row[states] = row + (uint32_t)e;
        subjects += trait & IS_SUBJECT;
        states += trait & trait >> 1 & 1;
        if (trait & (IS_RARE | IS_UNKNOWN))
            note_trait(in, trait, e);
    }
    in->counts[SUBJECTS] = subjects;
    in->counts[STATES] = states;
}

/* Write the sizes of events and of runs of tails. */
static void measure(const satview_chunk *in, int64_t length)
{
    int64_t events = in->counts[EVENTS], runs = in->counts[RUNS], zeros = in->counts[ZEROS], z = 0;
    for (int64_t i = 0; i + 1 < events; i++)
        in->size[i] = in->at[i + 1] - in->at[i];
    if (events)
        in->size[events - 1] = (uint32_t)(length - in->at[events - 1]);
    for (int64_t i = 0, k = 0; k < zeros && events; k++) {
        while (i + 1 < events && in->at[i + 1] < in->zero[k])
            i++;
        in->size[i] -= in->at[i] < in->zero[k];
    }
    for (int64_t r = 0; r < runs; r++) {
        int64_t begin = in->run_at[r], event = in->run_before[r];
        int64_t end = event + 1 < events ? in->at[event + 1] : length;
        if (r + 1 < runs && in->run_at[r + 1] < end)
            end = in->run_at[r + 1];
        while (z < zeros && in->zero[z] < begin)
            z++;
        if (z < zeros && in->zero[z] < end)
            end = in->zero[z];
        in->run_size[r] = (uint32_t)(end - begin);
        in->run_closes[r] = in->slots[4 * (end - 1)] >> KIND_SHIFT == COMBINE_END;
        if (event >= 0)
            in->size[event] -= in->run_size[r];
    }
}

/* Write the columns of positions and sizes in the file. */
static void write_columns(const satview_chunk *in)
{
    int64_t events = in->counts[EVENTS];
    uint32_t longest = 0, base = (uint32_t)in->first_slot;
    for (int64_t i = 0; i < events; i++)
        longest = in->size[i] > longest ? in->size[i] : longest;
    if (in->slot_narrow)
        for (int64_t i = 0; i < events; i++)
            in->slot_narrow[i] = base + in->at[i];
    else
        for (int64_t i = 0; i < events; i++)
            in->slot_wide[i] = (uint64_t)in->first_slot + in->at[i];
    if (in->size_narrow)
        for (int64_t i = 0; i < events; i++)
            in->size_narrow[i] = (uint16_t)in->size[i];
    else
        memcpy(in->size_wide, in->size, (size_t)events * sizeof *in->size);
    in->counts[LONGEST] = longest;
}

/* Group the slots of a chunk into events; return 0. */
static int64_t satview_group(const satview_chunk *in)
{
    int64_t length = in->slot_count;
    if (length > in->capacity || length < 0)
        return REFUSED;
    if (!in->is_last && length)
        length = usable(in->slots, length, (uint32_t)in->buffer_code);
    for (int k = 0; k <= LONGEST; k++)
        in->counts[k] = 0;
    in->counts[LENGTH] = length;
    for (int64_t i = 0, events = 0, before; i < length; i += BLOCK) {
        int64_t end = i + BLOCK < length ? i + BLOCK : length;
        before = events;
        events = find_events(in, i, end, events);
        describe(in, before, events);
        in->counts[EVENTS] = events;
    }
    if (length && is_open(in->slots[4 * length - 4]))
        note_open(in, in->counts[EVENTS]);
    measure(in, length);
    write_columns(in);
    return 0;
}

PASS(group,
     "u4:4n n n n n u1:32768 u2:>n u1:>n u4|u8:>n u2|u4:>n u4:c u4:c u4:c u1:c u4:c u4:c u4:c i8:c u1:c u4:c u8:c "
     "u4:c u4:c u4:c i8:10",
     &(satview_chunk){.slots = U4(0), .slot_count = COUNT(0) / 4, .is_last = NUMBER(1), .first_slot = NUMBER(2),
                      .first_row = NUMBER(3), .buffer_code = NUMBER(4), .traits = U1(5), .code = U2(6), .cpu = U1(7),
                      .slot_narrow = U4(8), .slot_wide = U8(8), .size_narrow = U2(9), .size_wide = U4(9),
                      .at = U4(10), .capacity = COUNT(10), .size = U4(11), .stamp = U4(12), .trait = U1(13),
                      .opened = U4(14), .run_at = U4(15), .run_size = U4(16), .run_before = I8(17),
                      .run_closes = U1(18), .zero = U4(19), .key = U8(20), .state_row = U4(21), .rare = U4(22),
                      .unknown = U4(23), .counts = I8(24)})

/*
 * Look up the numbers of threads in a hash table; new threads get the next numbers.
 *
 * requested: keys of threads, looked up from index `from` on. keys, rows: hash table of 2^bits positions, row 0 = free.
 * known: key of each number. used: [0] count of numbers in use, including 0; a new number stops the pass at `limit`.
 *
 * Returns the number of keys done: less than `count` if a new number would exceed the limit; -1 minus the number of
 * keys done if a key is too far from its position in the table.
 */
static int64_t satview_numbers(const uint64_t *requested, int64_t from, int64_t count, uint64_t *keys, uint32_t *rows,
                               int64_t positions, int64_t bits, uint64_t multiplier, uint64_t *known, int64_t room,
                               int64_t limit, int64_t *used, uint32_t *out)
{
    uint64_t mask, last = 0;
    uint32_t last_row = 0;
    if (bits < 1 || bits > 40 || positions != (int64_t)1 << bits || from < 0 || limit > (int64_t)UINT32_MAX ||
        limit > room || limit >= positions || used[0] < 0)
        return REFUSED;
    mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = from; i < count; i++) {
        uint64_t key = requested[i], position;
        int probes = 0;
        if (key == last && last_row) {
            out[i] = last_row;
            continue;
        }
        position = key * multiplier >> (64 - bits);
        while (rows[position] && keys[position] != key) {
            if (++probes > MAX_PROBES)
                return -1 - i;
            position = (position + 1) & mask;
        }
        if (!rows[position]) {
            if (used[0] >= limit)
                return i;
            known[used[0]] = keys[position] = key;
            rows[position] = (uint32_t)used[0]++;
        }
        out[i] = last_row = rows[position];
        last = key;
    }
    return count;
}

PASS(numbers,
     "u8:n n u8:k u4:k n n u8:m n i8:1 u4:>n",
     U8(0), NUMBER(1), COUNT(0), U8(2), U4(3), COUNT(2), NUMBER(4), (uint64_t)NUMBER(5), U8(6), COUNT(6), NUMBER(7),
     I8(8), U4(9))

/*
 * Group ascending rows by thread.
 *
 * narrow or wide: thread of each event. start: threads + 1, receives the index in `out` at which each thread begins;
 * fill: scratch, one per thread. out: receives the grouped rows, ascending within each thread.
 *
 * Returns 0; REFUSED if a row or a thread is out of range.
 */
static int64_t satview_rows_by_thread(const uint32_t *row, int64_t count, const uint16_t *narrow, const uint32_t *wide,
                                      int64_t events, int64_t threads, int64_t *start, int64_t *fill, uint32_t *out)
{
    for (int64_t t = 0; t <= threads; t++)
        start[t] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t thread;
        if (row[i] >= events)
            return REFUSED;
        thread = narrow ? narrow[row[i]] : wide[row[i]];
        if (thread >= threads)
            return REFUSED;
        start[thread + 1]++;
    }
    for (int64_t t = 0; t < threads; t++) {
        fill[t] = start[t];
        start[t + 1] += start[t];
    }
    for (int64_t i = 0; i < count; i++)
        out[fill[narrow ? narrow[row[i]] : wide[row[i]]]++] = row[i];
    return 0;
}

PASS(rows_by_thread,
     "u4:r u2|u4:n i8:t+1 i8:t u4:r",
     U4(0), COUNT(0), U2(1), U4(1), COUNT(1), COUNT(3), I8(2), I8(3), U4(4))

/* Write the threads of events `from` to `count`; `s` is the index of the next subject, at most `last`; return it. */
static inline int64_t own(const uint8_t *cpu, const uint8_t *trait, int64_t from, int64_t count,
                          const uint32_t *thread, int64_t s, int64_t last, uint32_t *now, uint16_t *narrow,
                          uint32_t *wide)
{
    for (int64_t i = from; i < count; i++) {
        uint8_t number = cpu[i] & CPU_MASK;
        uint32_t is_subject = trait[i] & IS_SUBJECT;
        uint32_t subject = thread[s], current = now[number], owner = is_subject ? subject : current;
        now[number] = trait[i] & IS_RUNNING ? owner : current;
        s += is_subject & (uint32_t)(s < last);
        if (narrow)
            narrow[i] = (uint16_t)owner;
        else
            wide[i] = owner;
    }
    return s;
}

/*
 * Write the thread that each event belongs to.
 *
 * trait: flags of each event, from satview_group. thread: threads of the events with IS_SUBJECT. jump_row, jump_cpu:
 * events after which the running thread is unknown, ascending, and the CPU for which that holds, -1 = all CPUs. now:
 * thread that runs on each CPU, updated for the next chunk. narrow or wide receives the threads, whichever is not null.
 */
static int64_t satview_owners(const uint8_t *cpu, const uint8_t *trait, int64_t count, const uint32_t *thread,
                              int64_t subjects, const int64_t *jump_row, const int64_t *jump_cpu, int64_t jumps,
                              uint32_t *now, uint16_t *narrow, uint32_t *wide)
{
    static const uint32_t nobody = 0;
    const uint32_t *of = subjects ? thread : &nobody;
    int64_t i = 0, s = 0, last = subjects ? subjects - 1 : 0;
    for (int64_t j = 0; j <= jumps; j++) {
        int is_jump = j < jumps && jump_row[j] < count;
        int64_t end = is_jump ? jump_row[j] : count;
        if (end > i) {
            s = narrow ? own(cpu, trait, i, end, of, s, last, now, narrow, NULL)
                       : own(cpu, trait, i, end, of, s, last, now, NULL, wide);
            i = end;
        }
        if (is_jump && jump_cpu[j] >= 0)
            now[jump_cpu[j] & CPU_MASK] = 0;
        else if (is_jump)
            memset(now, 0, CPUS * sizeof *now);
    }
    return 0;
}

PASS(owners,
     "u1:n u1:n u4:s i8:j i8:j u4:64 u2|u4:n",
     U1(0), U1(1), COUNT(0), U4(2), COUNT(2), I8(3), I8(4), COUNT(3), U4(5), U2(6), U4(6))

/*
 * Write a checksum of words that any flipped bit and any exchange of two words changes: the sum of each word multiplied
 * by an odd number that depends on its position, modulo 2^64.
 *
 * words: `count` words of 8 bytes. first_word: position of the first word, for sums of parts.
 */
static int64_t satview_word_sum(const void *words, int64_t count, uint64_t first_word, uint64_t *out)
{
    const unsigned char *bytes = words;
    uint64_t sum[4] = {0, 0, 0, 0}, factor = 2 * first_word + 1, word;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4, factor += 8)
        for (int k = 0; k < 4; k++) {
            memcpy(&word, bytes + 8 * (i + k), sizeof word); /* columns of bytes begin anywhere */
            sum[k] += word * (factor + 2 * (uint64_t)k);
        }
    for (; i < count; i++, factor += 2) {
        memcpy(&word, bytes + 8 * i, sizeof word);
        sum[0] += word * factor;
    }
    out[0] = sum[0] + sum[1] + sum[2] + sum[3];
    return 0;
}

PASS(word_sum, "u8:n n u8:1", U8(0), COUNT(0), (uint64_t)NUMBER(1), U8(2))
/*
 * Read words 0 and 1, or 2 and 3, of some slots of a file; slots near each other are read by one call.
 *
 * slot_numbers: ascending, below `slots`; slot 0 is at `offset`. half: 0 or 1. gap: maximum distance of two slots that
 * one call reads. scratch: room for `scratch_slots` slots. out: receives two words of each slot in file order.
 *
 * Returns the number of slots read: fewer than `count` if the file was truncated or cannot be read, 0 on Windows.
 */
static int64_t satview_take_halves(int64_t file, int64_t offset, const int64_t *slot_numbers, int64_t count,
                                   int64_t slots, int64_t half, int64_t gap, uint64_t *scratch, int64_t scratch_slots,
                                   uint64_t *out)
{
    int64_t i = 0;
#if !defined(_WIN32)
    while (i < count) {
        int64_t begin = slot_numbers[i], last = begin, end = i + 1, needed, done = 0;
        if (begin < 0 || begin >= slots || scratch_slots < 1)
            return i;
        while (end < count && slot_numbers[end] >= last && slot_numbers[end] - last <= gap &&
               slot_numbers[end] - begin < scratch_slots && slot_numbers[end] < slots)
            last = slot_numbers[end++];
        needed = (last - begin + 1) * 16;
        while (done < needed) {
            ssize_t more = pread((int)file, (char *)scratch + done, (size_t)(needed - done),
                                 (off_t)(offset + begin * 16 + done));
            if (more <= 0)
                return i;
            done += more;
        }
        for (; i < end; i++)
            out[i] = scratch[2 * (slot_numbers[i] - begin) + (half & 1)];
    }
#else
    (void)file, (void)offset, (void)slot_numbers, (void)count, (void)slots, (void)half, (void)gap, (void)scratch;
    (void)scratch_slots, (void)out;
#endif
    return i;
}

PASS(take_halves,
     "n n i8:n n n n u8:* u8:n",
     NUMBER(0), NUMBER(1), I8(2), COUNT(2), NUMBER(3), NUMBER(4), NUMBER(5), U8(6), COUNT(6) / 2, U8(7))
