/*
 * The passes over chunks of slots of a stream: groups of adjacent slots of one event, and events in the order of their
 * last slots. core.h has the rules.
 */

#include "core.h"

/*
 * Groups of a chunk.
 *
 * counts: numbers of [0] groups, [1] events, [2] others, [3] begun, [4] all-zero slots; [5] the first all-zero slot.
 */
typedef struct {
    const uint32_t *slots; /* 4 words each */
    int64_t slot_count;
    int64_t most_slots;    /* maximum number of slots of a complete event */
    int64_t *at;           /* first slot of each group, followed by the number of slots */
    uint8_t *is_whole;     /* whether each group is a complete event */
    int64_t *event;        /* for each group the last event that begins in or before it, -1 for none */
    uint32_t *code;        /* code of each event, as the next two */
    uint8_t *cpu;
    uint32_t *stamp;
    int64_t *first;        /* first slot of each event */
    int64_t *other;        /* groups that are an event without its end, or a tail without its event */
    int64_t *begun;        /* groups that begin a combine event */
    int64_t *counts;
} satview_groups;

/* Form groups; return their number. All arrays have room for one element per slot, `at` for one more. */
static int64_t satview_stream_groups(const satview_groups *in)
{
    const uint32_t *slots = in->slots;
    int64_t groups = 0, events = 0, others = 0, begun = 0, zeros = 0, zero = -1;
    for (int64_t i = 0; i < in->slot_count;) {
        const uint32_t *slot = slots + 4 * i;
        uint32_t kind = slot[0] >> KIND_SHIFT, end = kind;
        int64_t begin = i;
        int is_begin = kind < COMBINE_CONTINUE && slot[0] != 0;
        for (i++; i < in->slot_count && slots[4 * i] >= TAIL && is_linked(slots + 4 * i); i++)
            end = slots[4 * i] >> KIND_SHIFT;
        if (is_begin) {
            in->code[events] = slot[0] & CODE_MASK;
            in->cpu[events] = slot[0] >> CPU_SHIFT & CPU_MASK;
            in->stamp[events] = slot[1];
            in->first[events++] = begin;
        }
        in->at[groups] = begin;
        in->event[groups] = events - 1;
        in->is_whole[groups] = is_begin && (kind == 0 || end == COMBINE_END) && i - begin <= in->most_slots;
        if (kind == COMBINE_BEGIN)
            in->begun[begun++] = groups;
        if (slot[0] == 0) {
            zero = zeros++ ? zero : begin;
        } else if (!in->is_whole[groups])
            in->other[others++] = groups;
        groups++;
    }
    in->at[groups] = in->slot_count;
    in->counts[0] = groups;
    in->counts[1] = events;
    in->counts[2] = others;
    in->counts[3] = begun;
    in->counts[4] = zeros;
    in->counts[5] = zero;
    return groups;
}

PASS(stream_groups,
     "u4:4n n i8:n+1 u1:n+1 i8:n+1 u4:n+1 u1:n+1 u4:n+1 i8:n+1 i8:n+1 i8:n+1 i8:6",
     &(satview_groups){.slots = U4(0), .slot_count = COUNT(0) / 4, .most_slots = NUMBER(1), .at = I8(2),
                      .is_whole = U1(3), .event = I8(4), .code = U4(5), .cpu = U1(6), .stamp = U4(7),
                      .first = I8(8), .other = I8(9), .begun = I8(10), .counts = I8(11)})

/*
 * Write the groups in `group` whose key (CPU, class, event; stamp) is among the ascending `keys`; return their number.
 */
static int64_t satview_with_keys(const uint32_t *slots, int64_t slot_count, const int64_t *first_slots, int64_t groups,
                                 const int64_t *group, int64_t count,
                                 const uint64_t *keys, int64_t key_count, int64_t *out)
{
    int64_t matches = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t *slot;
        uint64_t key;
        int64_t low = 0, high = key_count;
        if (group[i] < 0 || group[i] >= groups || first_slots[group[i]] < 0 || first_slots[group[i]] >= slot_count)
            return REFUSED;
        slot = slots + 4 * first_slots[group[i]];
        key = (uint64_t)slot[1] << 32 | (slot[0] & KEY_MASK);
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (keys[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < key_count && keys[low] == key)
            out[matches++] = group[i];
    }
    return matches;
}

PASS(with_keys,
     "u4:4n i8:g+1 i8:k u8:y i8:k",
     U4(0), COUNT(0) / 4, I8(1), COUNT(1), I8(2), COUNT(2), U8(3), COUNT(3), I8(4))

/* Arguments of satview_deliver: complete events of a chunk, and events from earlier chunks that end in it. */
typedef struct {
    const uint32_t *slots;
    int64_t slot_count;
    int64_t groups;
    const int64_t *at;         /* as in satview_groups */
    const uint8_t *is_whole;
    const int64_t *event;
    int64_t events;            /* number of events that begin in the chunk */
    const int64_t *time_of;    /* time of each of them, and thread */
    const uint32_t *thread_of;
    int64_t done;              /* number of events that are completed by tails */
    const int64_t *done_last;  /* last slot of each of them, ascending */
    const uint32_t *done_header;
    const uint32_t *done_stamp;
    const int64_t *done_time;
    const uint32_t *done_thread;
    const int64_t *done_start; /* done + 1, index in `done_words` */
    const uint32_t *done_words;
    int64_t done_word_count;
    int64_t room;              /* length of the following columns */
    uint32_t *header;
    uint32_t *stamp;
    int64_t *time;
    uint32_t *thread;
    int64_t *start;            /* room + 1, index in `words` */
    uint32_t *words;
    int64_t word_room;
    int64_t *last;
} satview_delivery;

/* Merge events in the order of their last slots; return their number. */
static int64_t satview_deliver(const satview_delivery *in)
{
    int64_t row = 0, word = 0, done = 0;
    for (int64_t g = 0; g <= in->groups; g++) {
        int64_t end = g < in->groups ? in->at[g + 1] : INT64_MAX;
        if (g < in->groups && !in->is_whole[g])
            continue;
        for (; done < in->done && in->done_last[done] < end; done++) {
            int64_t size = in->done_start[done + 1] - in->done_start[done];
            if (row >= in->room || size < 0 || in->done_start[done] < 0 ||
                in->done_start[done + 1] > in->done_word_count || word + size > in->word_room)
                return REFUSED;
            in->header[row] = in->done_header[done];
            in->stamp[row] = in->done_stamp[done];
            in->time[row] = in->done_time[done];
            in->thread[row] = in->done_thread[done];
            in->last[row] = in->done_last[done];
            memcpy(in->words + word, in->done_words + in->done_start[done], (size_t)size * sizeof *in->words);
            in->start[row++] = word;
            word += size;
        }
        if (g == in->groups)
            break;
        if (row >= in->room || in->at[g] < 0 || end <= in->at[g] || end > in->slot_count || in->event[g] < 0 ||
            in->event[g] >= in->events || word + 2 * (end - in->at[g]) > in->word_room)
            return REFUSED;
        in->header[row] = in->slots[4 * in->at[g]];
        in->stamp[row] = in->slots[4 * in->at[g] + 1];
        in->time[row] = in->time_of[in->event[g]];
        in->thread[row] = in->thread_of[in->event[g]];
        in->last[row] = end - 1;
        in->start[row++] = word;
        for (int64_t i = in->at[g]; i < end; i++, word += 2)
            memcpy(in->words + word, in->slots + 4 * i + 2, 2 * sizeof *in->words);
    }
    in->start[row] = word;
    return row == in->room ? row : REFUSED;
}

PASS(deliver,
     "u4:4n i8:g+1 u1:g i8:g i8:e u4:e i8:d u4:d u4:d i8:d u4:d i8:d+1 u4:* u4:o u4:o i8:o u4:o i8:o+1 u4:* i8:o",
     &(satview_delivery){.slots = U4(0), .slot_count = COUNT(0) / 4, .at = I8(1), .groups = COUNT(2),
                      .is_whole = U1(2), .event = I8(3), .events = COUNT(4), .time_of = I8(4),
                      .thread_of = U4(5), .done = COUNT(6), .done_last = I8(6), .done_header = U4(7),
                      .done_stamp = U4(8), .done_time = I8(9), .done_thread = U4(10), .done_start = I8(11),
                      .done_words = U4(12), .done_word_count = COUNT(12), .header = U4(13),
                      .room = COUNT(13), .stamp = U4(14), .time = I8(15), .thread = U4(16),
                      .start = I8(17), .words = U4(18), .word_room = COUNT(18), .last = I8(19)})
