/*
 * The passes over events that decide how long pictures, links and exports take.
 */

#include "core.h"

#ifndef SATVIEW_SOURCE
#define SATVIEW_SOURCE "unknown"
#endif

/* Return a digest of the source that this library was built from. */
EXPORT const char *satview_source(void) { return SATVIEW_SOURCE; }

/* Where the marks of events go; tables name a lane by its position, -1 = none, and may be null. */
typedef struct {
    const int64_t *time; /* of count events, ascending */
    const uint16_t *code;
    const uint8_t *cpu;
    const uint16_t *narrow; /* thread, narrow or wide, whichever is not null */
    const uint32_t *wide;
    int64_t count;
    int64_t origin;       /* where cells begin */
    const uint8_t *marks; /* of CODE_MASK + 1 codes: it is one */
    int64_t int_class;    /* internal class of interrupts */
    int64_t class_shift;
    int64_t threads;             /* size of the tables by thread */
    const int32_t *by_thread[3]; /* lanes of threads, of processes, of damage */
    const int32_t *by_cpu[2];    /* 256: lanes of CPUs, of damage */
    const int32_t *by_interrupt; /* 256: lanes of interrupts */
    int64_t positions;
    const int64_t *cells; /* of no lane, then of every lane: first one, the one behind the last, log2 of their cycles */
    int64_t cell_count;
    uint8_t *seen; /* of every cell, and one more for events that are on no lane */
} satview_cells;

enum { MARK_BLOCK = 1 << 10 };

/* Return whether a table names lanes only. */
static int names_lanes(const int32_t *table, int64_t count, int64_t positions)
{
    for (int64_t i = 0; table && i < count; i++)
        if (table[i] < -1 || table[i] >= positions)
            return 0;
    return 1;
}

/* Return whether cells are where the rules of `satview_cells` have them, and all that the tables name is there. */
static int is_sound(const satview_cells *in)
{
    for (int64_t k = 0; k <= in->positions; k++) {
        const int64_t *lane = in->cells + 3 * k;
        if (lane[0] < 0 || lane[0] > lane[1] || lane[1] > in->cell_count + 1 || lane[2] < 0 || lane[2] > 63)
            return 0;
    }
    for (int k = 0; k < 3; k++)
        if (!names_lanes(in->by_thread[k], in->threads, in->positions))
            return 0;
    return names_lanes(in->by_cpu[0], CPU_NUMBERS, in->positions) &&
           names_lanes(in->by_cpu[1], CPU_NUMBERS, in->positions) &&
           names_lanes(in->by_interrupt, CPU_NUMBERS, in->positions);
}

/* Mark the cell of a lane, -1 = none, in which an event is; without a guess, for lanes follow each other at random. */
static inline void mark_cell(const satview_cells *in, int32_t position, int64_t row)
{
    const int64_t *lane = in->cells + 3 * (position + 1);
    int64_t cell = lane[0] + ((in->time[row] - in->origin) >> lane[2]);
    cell = cell >= lane[0] && cell < lane[1] ? cell : in->cell_count;
    in->seen[cell] = 1;
}

/* Tell which cells of which lanes hold a mark. Twin: event_cells (timeline/event_marks.py). -1: they are not sound. */
EXPORT int64_t satview_event_cells(const satview_cells *in)
{
    int64_t marked[MARK_BLOCK];
    if (!is_sound(in))
        return -1;
    for (int64_t first = 0; first < in->count; first += MARK_BLOCK) {
        int64_t end = first + MARK_BLOCK < in->count ? first + MARK_BLOCK : in->count, found = 0;
        for (int64_t i = first; i < end; i++) {
            marked[found] = i;
            found += in->marks[in->code[i] & CODE_MASK] != 0;
        }
        for (int k = 0; k < 3; k++)
            for (int64_t j = 0; in->by_thread[k] && j < found; j++) {
                int64_t thread = in->narrow ? in->narrow[marked[j]] : in->wide[marked[j]];
                mark_cell(in, thread < in->threads ? in->by_thread[k][thread] : -1, marked[j]);
            }
        for (int k = 0; k < 2; k++)
            for (int64_t j = 0; in->by_cpu[k] && j < found; j++)
                mark_cell(in, in->by_cpu[k][in->cpu[marked[j]]], marked[j]);
        for (int64_t j = 0; in->by_interrupt && j < found; j++) {
            int is_interrupt = (in->code[marked[j]] & CODE_MASK) >> in->class_shift == in->int_class;
            mark_cell(in, is_interrupt ? in->by_interrupt[in->cpu[marked[j]]] : -1, marked[j]);
        }
    }
    return 0;
}

enum { VALUES = 64, SEEN_RUNNING = 0x40, SEEN_EVENT = 0x80 };

/* Return the value with the largest share of a pixel, the smallest of several, and forget the shares. */
static uint8_t settled(int64_t *share, const uint8_t *kinds, int present, const uint8_t *busy)
{
    uint8_t best = kinds[0], flag = 0;
    for (int k = 0; k < present; k++) {
        uint8_t one = kinds[k];
        if (share[one] > share[best] || (share[one] == share[best] && one < best))
            best = one;
        flag |= busy[one] ? SEEN_RUNNING : 0;
    }
    for (int k = 0; k < present; k++)
        share[kinds[k]] = 0;
    return best | flag;
}

/*
 * Draw one lane: the value that covers most of each pixel. Twin: exact_raster (timeline/spans.py).
 *
 * start, value: intervals in time order, each ending where the next begins, the last at end. edge: where pixels begin,
 * strictly ascending, width + 1 of them. busy: of every value. out: zeros, width of them.
 */
EXPORT int64_t satview_raster(const int64_t *start, const uint8_t *value, int64_t count, int64_t end,
                              const int64_t *edge, int64_t width, const uint8_t *busy, uint8_t *out)
{
    int64_t share[VALUES] = {0};
    uint8_t kinds[VALUES];
    int present = 0;
    int64_t p = 0;
    if (width < 1)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = start[i], to = i + 1 < count ? start[i + 1] : end;
        uint8_t kind = value[i] & (VALUES - 1);
        if (from < edge[0])
            from = edge[0];
        if (to > edge[width])
            to = edge[width];
        if (to <= from)
            continue;
        while (from < to) {
            int64_t stop;
            if (from >= edge[p + 1]) { /* the pixel is done */
                if (present)
                    out[p] = settled(share, kinds, present, busy);
                present = 0;
                p++; /* p + 1 <= width: from is less than the last edge */
                if (to >= edge[p + 1] && from == edge[p]) { /* whole pixels */
                    uint8_t flagged = kind | (busy[kind] ? SEEN_RUNNING : 0);
                    while (p < width && to >= edge[p + 1] && from == edge[p]) {
                        out[p] = flagged;
                        from = edge[++p];
                    }
                    if (p == width || from >= to) {
                        if (p == width)
                            return 0;
                        break;
                    }
                }
                continue;
            }
            stop = to < edge[p + 1] ? to : edge[p + 1];
            if (!share[kind])
                kinds[present++] = kind;
            share[kind] += stop - from;
            from = stop;
        }
    }
    if (present)
        out[p] = settled(share, kinds, present, busy);
    return 0;
}

/*
 * Coarse copies of a block of cells of one lane. Twin: build_levels (timeline/levels.py).
 *
 * start, value: the intervals that reach into the block, each ending where the next begins, the last at end. origin:
 * where cell 0 of the block begins; cells are 2^shift cycles. kind_of: value to kind; value_of: kind to value,
 * ascending. busy: of every kind. cover: cells x kinds, scratch, left with the sums of the last level. seen: flag per
 * cell, scratch too. out: levels one after the other, cells, (cells + 1) / 2, ...; room: its size. Sums are halved once
 * more after the last level if more is not 0.
 */
EXPORT int64_t satview_levels(const int64_t *start, const uint8_t *value, int64_t count, int64_t end, int64_t origin,
                              int64_t shift, int64_t cells, const int64_t *kind_of, const uint8_t *value_of,
                              const uint8_t *busy, int64_t kinds, int64_t *cover, uint8_t *seen, int64_t levels,
                              int64_t more, uint8_t *out, int64_t room)
{
    int64_t limit, written = 0;
    if (shift < 0 || shift > 62 || cells < 1 || cells > (INT64_MAX >> shift) || kinds < 1 || kinds > VALUES)
        return -1;
    limit = cells << shift;
    for (int64_t i = 0; i < cells * kinds; i++)
        cover[i] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = start[i] - origin, to = (i + 1 < count ? start[i + 1] : end) - origin, kind, cell;
        if (from < 0)
            from = 0;
        if (to > limit)
            to = limit;
        if (to <= from)
            continue;
        kind = kind_of[value[i] & (VALUES - 1)];
        if (kind < 0 || kind >= kinds)
            return -1;
        for (cell = from >> shift; from < to; cell++) {
            int64_t stop = (cell + 1) << shift;
            if (stop > to)
                stop = to;
            cover[cell * kinds + kind] += stop - from;
            from = stop;
        }
    }
    for (int64_t level = 0; level < levels; level++) {
        if (written + cells > room)
            return -1;
        for (int64_t cell = 0; cell < cells; cell++) {
            const int64_t *mine = cover + cell * kinds;
            int64_t best = 0, most = 0;
            uint32_t runs = 0;
            for (int64_t kind = 0; kind < kinds; kind++) { /* without a guess: they follow each other at random */
                int64_t here = mine[kind];
                best = here > most ? kind : best;
                most = here > most ? here : most;
                runs |= (uint32_t)(here > 0) & (busy[kind] != 0);
            }
            out[written++] = (uint8_t)(value_of[best] | (seen[cell] ? SEEN_EVENT : 0) | (runs ? SEEN_RUNNING : 0));
        }
        if (level + 1 < levels || more) {
            int64_t half = (cells + 1) / 2;
            for (int64_t cell = 0; cell < half; cell++) {
                int has_second = 2 * cell + 1 < cells;
                for (int64_t kind = 0; kind < kinds; kind++)
                    cover[cell * kinds + kind] = cover[2 * cell * kinds + kind] +
                                                 (has_second ? cover[(2 * cell + 1) * kinds + kind] : 0);
                seen[cell] = seen[2 * cell] | (has_second ? seen[2 * cell + 1] : 0);
            }
            cells = half;
        }
    }
    return written;
}

enum {
    IS_CALL = 1,     /* traits of a code for links: an event of a kernel call */
    IS_ENTRY = 2,    /* one that enters it */
    IS_END = 4,      /* one that ends it: its exit or interrupted form */
    IS_TURN = 8,     /* a thread begins to run: what the CPU was in may go on, if it is that thread's */
    IS_RUNNING = 16, /* any event that tells that a thread runs from then on */
    CALL_NUMBER = 0x7F
};

static const uint32_t NO_EVENT = 0xFFFFFFFFu;

/*
 * Find the kernel call that the CPU of every event is in before it, and the entries and ends of calls that belong
 * together. Where several events are possible the rules are those of the twins: linkage.actors.open_calls and
 * linkage.calls. Losses are not looked at.
 *
 * thread: one of thread16 and thread32 is given. last_of: room for every thread. stays: which calls never block.
 * entry: the call, NO_EVENT for none. first, last: pairs of known threads from the front, of threads that nobody knows
 * from the back. counts: [0] pairs of known threads, [1] of unknown ones.
 *
 * Returns 0; -1 if there is not room enough, or a thread is not in the table.
 */
EXPORT int64_t satview_calls(const uint16_t *code, const uint8_t *cpu, const uint16_t *thread16,
                             const uint32_t *thread32, int64_t count, const uint8_t *traits, const uint8_t *stays,
                             uint32_t *last_of, int64_t threads, uint32_t *entry, uint32_t *first, uint32_t *last,
                             int64_t room, int64_t *counts)
{
    uint32_t open[CPU_NUMBERS], newest[CPU_NUMBERS], nobody_at[CALL_NUMBER + 1];
    uint8_t is_clean[CPU_NUMBERS];
    int64_t known = 0, unknown = 0;
    for (int c = 0; c < CPU_NUMBERS; c++) {
        open[c] = newest[c] = NO_EVENT;
        is_clean[c] = 0;
    }
    for (int i = 0; i <= CALL_NUMBER; i++)
        nobody_at[i] = NO_EVENT;
    for (int64_t i = 0; i < threads; i++)
        last_of[i] = NO_EVENT;
    for (int64_t i = 0; i < count; i++) {
        uint8_t here = cpu[i], trait = traits[code[i] & CODE_MASK];
        uint32_t thread, before;
        entry[i] = open[here];
        if (!trait)
            continue;
        thread = thread16 ? thread16[i] : thread32[i];
        if (thread >= threads)
            return -1;
        if (trait & IS_TURN)
            open[here] = newest[here] != NO_EVENT && traits[code[newest[here]] & CODE_MASK] & IS_ENTRY &&
                                 thread == (thread16 ? thread16[newest[here]] : thread32[newest[here]])
                             ? newest[here]
                             : NO_EVENT;
        if (trait & IS_RUNNING)
            is_clean[here] = 0;
        if (!(trait & IS_CALL))
            continue;
        /* Of a known thread its last event of any call; else the last one on the CPU, if that is of nobody too. */
        before = thread ? last_of[thread] : is_clean[here] ? newest[here] : NO_EVENT;
        if (trait & IS_END && before != NO_EVENT && traits[code[before] & CODE_MASK] & IS_ENTRY &&
            ((code[before] ^ code[i]) & CALL_NUMBER) == 0) {
            uint32_t other = nobody_at[code[i] & CALL_NUMBER];
            if (known + unknown >= room)
                return -1;
            if (!thread) {
                if (stays[code[i] & CALL_NUMBER]) {
                    unknown++;
                    first[room - unknown] = before;
                    last[room - unknown] = (uint32_t)i;
                }
            } else if (other == NO_EVENT || other < before) {
                first[known] = before;
                last[known++] = (uint32_t)i;
            }
        }
        newest[here] = (uint32_t)i;
        open[here] = trait & IS_ENTRY ? (uint32_t)i : NO_EVENT;
        is_clean[here] = !thread;
        if (thread)
            last_of[thread] = (uint32_t)i;
        else
            nobody_at[code[i] & CALL_NUMBER] = (uint32_t)i;
    }
    counts[0] = known;
    counts[1] = unknown;
    return 0;
}

/*
 * Write for each of some events the last one before it on its CPU whose code is in a table, NO_EVENT for none.
 * Twin: linkage.rows.last_before. rows: ascending.
 *
 * Returns 0; -1 if the rows do not ascend or there is no such event.
 */
EXPORT int64_t satview_last_before(const uint16_t *code, const uint8_t *cpu, int64_t count, const uint8_t *table,
                                   const uint32_t *rows, int64_t requests, uint32_t *out)
{
    uint32_t newest[CPU_NUMBERS];
    int64_t i = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        newest[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (rows[k] >= count || rows[k] < i)
            return -1;
        for (; i < rows[k]; i++) { /* no branch: which codes come is hard to guess */
            uint32_t before = newest[cpu[i]];
            newest[cpu[i]] = table[code[i] & CODE_MASK] ? (uint32_t)i : before;
        }
        out[k] = newest[cpu[i]];
    }
    return 0;
}

/*
 * Write for each of some events the last one before it on its CPU that is one of the candidates, NO_EVENT for none.
 * Twin: linkage.rows.last_before. candidates, rows: ascending.
 *
 * Returns 0; -1 if there is no such event.
 */
EXPORT int64_t satview_last_of(const uint8_t *cpu, int64_t count, const uint32_t *candidates, int64_t candidate_count,
                               const uint32_t *rows, int64_t requests, uint32_t *out)
{
    uint32_t newest[CPU_NUMBERS];
    int64_t i = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        newest[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (rows[k] >= count)
            return -1;
        for (; i < candidate_count && candidates[i] < rows[k]; i++) {
            if (candidates[i] >= count)
                return -1;
            newest[cpu[candidates[i]]] = candidates[i];
        }
        out[k] = newest[cpu[rows[k]]];
    }
    return 0;
}

/*
 * Write for each of some events the last one before it among the candidates that has the same number, such as a thread,
 * NO_EVENT for none. Twin: linkage.rows.last_of_number. candidates, rows: ascending. newest: room for every number.
 *
 * Returns 0; -1 if a number is too large.
 */
EXPORT int64_t satview_last_of_number(const uint32_t *candidates, const int64_t *number, int64_t candidate_count,
                                      const uint32_t *rows, const int64_t *requested, int64_t requests,
                                      uint32_t *newest, int64_t numbers, uint32_t *out)
{
    int64_t i = 0;
    for (int64_t n = 0; n < numbers; n++)
        newest[n] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (requested[k] < 0 || requested[k] >= numbers)
            return -1;
        for (; i < candidate_count && candidates[i] < rows[k]; i++) {
            if (number[i] < 0 || number[i] >= numbers)
                return -1;
            newest[number[i]] = candidates[i];
        }
        out[k] = newest[requested[k]];
    }
    return 0;
}

/*
 * The same of the first one at or after each event. Twin: linkage.rows.next_of_number.
 *
 * Returns 0; -1 if a number is too large.
 */
EXPORT int64_t satview_next_of_number(const uint32_t *candidates, const int64_t *number, int64_t candidate_count,
                                      const uint32_t *rows, const int64_t *requested, int64_t requests, uint32_t *next,
                                      int64_t numbers, uint32_t *out)
{
    int64_t i = candidate_count - 1;
    for (int64_t n = 0; n < numbers; n++)
        next[n] = NO_EVENT;
    for (int64_t k = requests - 1; k >= 0; k--) {
        if (requested[k] < 0 || requested[k] >= numbers)
            return -1;
        for (; i >= 0 && candidates[i] >= rows[k]; i--) {
            if (number[i] < 0 || number[i] >= numbers)
                return -1;
            next[number[i]] = candidates[i];
        }
        out[k] = next[requested[k]];
    }
    return 0;
}

/*
 * Write the events of groups of codes, group after group, ascending in each. Twin: linkage.rows.rows_where.
 *
 * group: of every code. Of group g the rows go to fill[g] and so on, below end[g]; fill moves by step[g]: 0 for a group
 * that nobody requests, all of whose rows go to one position.
 *
 * Returns 0; -1 if there is not room enough.
 */
EXPORT int64_t satview_grouped_rows(const uint16_t *code, int64_t count, const uint16_t *group, int64_t groups,
                                    int64_t *fill, const int64_t *end, const int64_t *step, uint32_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t mine = group[code[i] & CODE_MASK];
        if (mine >= groups || fill[mine] >= end[mine])
            return -1;
        out[fill[mine]] = (uint32_t)i;
        fill[mine] += step[mine];
    }
    return 0;
}

/*
 * Write of every state event of a thread its state, and what ends it: the thread's next. Twin: linkage.states.
 *
 * thread: one of thread16 and thread32 is given. index: the state events by thread, those of thread t from start[t] on.
 * nothing: what value_of_code has for events that are no states. fill: room for every thread. value: like index.
 * ends: of every event, NO_EVENT for none, LASTS for the last state of a thread.
 *
 * Returns 0; -1 if the index is not that of these events.
 */
EXPORT int64_t satview_states(const uint16_t *code, const uint16_t *thread16, const uint32_t *thread32, int64_t count,
                              const uint32_t *index, const int64_t *start, int64_t threads,
                              const uint8_t *value_of_code, uint8_t nothing, int64_t *fill, uint8_t *value,
                              uint32_t *ends)
{
    static const uint32_t LASTS = 0xFFFFFFFEu;
    for (int64_t t = 0; t < threads; t++) {
        if (start[t] > start[t + 1])
            return -1;
        fill[t] = start[t];
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t thread = thread16 ? thread16[i] : thread32[i];
        int64_t at;
        ends[i] = NO_EVENT;
        if (thread >= threads)
            return -1;
        at = fill[thread];
        if (at >= start[thread + 1] || index[at] != i)
            continue;
        value[at] = value_of_code[code[i] & CODE_MASK];
        if (at > start[thread] && value[at - 1] != nothing)
            ends[index[at - 1]] = (uint32_t)i;
        fill[thread] = at + 1;
    }
    for (int64_t t = 0; t < threads; t++) {
        if (fill[t] != start[t + 1])
            return -1;
        if (fill[t] > start[t] && value[fill[t] - 1] != nothing)
            ends[index[fill[t] - 1]] = LASTS;
    }
    return 0;
}

/*
 * Write for each of some events where in the index of states the first one of a thread at or after it is, where the
 * next thread's begin if there is none. Twin: linkage.states.state_positions. rows: ascending. fill: room for every
 * thread.
 *
 * Returns 0; -1 if there is no such thread.
 */
EXPORT int64_t satview_state_positions(const uint32_t *index, const int64_t *start, int64_t threads,
                                       const uint32_t *rows, const int64_t *thread, int64_t requests, int64_t *fill,
                                       int64_t *out)
{
    for (int64_t t = 0; t < threads; t++)
        fill[t] = start[t];
    for (int64_t k = 0; k < requests; k++) {
        int64_t at;
        if (thread[k] < 0 || thread[k] >= threads)
            return -1;
        at = fill[thread[k]];
        while (at < start[thread[k] + 1] && index[at] < rows[k])
            at++;
        out[k] = fill[thread[k]] = at;
    }
    return 0;
}

/*
 * Write numbers, all different, in ascending order. Twin: numpy.sort. bits: one for each number that may come, all 0,
 * and up to 63 more; they are 0 again afterwards.
 *
 * Returns how many there are; -1 if one is too large, or comes twice.
 */
EXPORT int64_t satview_sorted(const uint32_t *number, int64_t count, uint64_t *bits, int64_t words, uint32_t *out)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (number[i] >> 6 >= words)
            return -1;
        bits[number[i] >> 6] |= (uint64_t)1 << (number[i] & 63);
    }
    for (int64_t word = 0; word < words; word++) {
        uint64_t left = bits[word];
        bits[word] = 0;
        for (; left; left &= left - 1) {
            uint32_t low = 0;
            uint64_t lowest = left & (~left + 1);
            for (int step = 32; step; step /= 2) /* no builtin: any compiler will do */
                if (lowest >> (low + step) != 0)
                    low += step;
            if (found >= count)
                return -1;
            out[found++] = (uint32_t)(word * 64) + low;
        }
    }
    return found == count ? found : -1;
}

/* Write for every value the position of the next one, itself included, that is in a table of 256, count for none. */
EXPORT int64_t satview_next_where(const uint8_t *value, int64_t count, const uint8_t *table, uint32_t *out)
{
    uint32_t next = (uint32_t)count;
    for (int64_t i = count - 1; i >= 0; i--) {
        next = table[value[i]] ? (uint32_t)i : next;
        out[i] = next;
    }
    return 0;
}

/*
 * Write for every number the position of the last equal one before it, -1 for none. Twin: linkage.rows.previous_same.
 *
 * positions: 2^bits, more than count, all NO_EVENT.
 *
 * Returns 0; -1 if there is not room enough.
 */
EXPORT int64_t satview_previous_same(const int64_t *number, int64_t count, uint32_t *positions, int64_t bits,
                                     int64_t *out)
{
    uint64_t mask;
    if (bits < 1 || bits > 40 || count >= (int64_t)1 << bits)
        return -1;
    mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = ((uint64_t)number[i] * 0x9E3779B97F4A7C15u) >> (64 - bits);
        while (positions[at] != NO_EVENT && number[positions[at]] != number[i])
            at = (at + 1) & mask;
        out[i] = positions[at] == NO_EVENT ? -1 : (int64_t)positions[at];
        positions[at] = (uint32_t)i;
    }
    return 0;
}

/*
 * Write for every number which of the different ones it is, by first appearance. Twin: linkage.rows.numbered.
 *
 * positions: as for satview_previous_same. first: room for the positions of the different ones.
 *
 * Returns how many different ones there are; -1 if there is not room enough.
 */
EXPORT int64_t satview_numbered(const int64_t *number, int64_t count, uint32_t *positions, int64_t bits,
                                uint32_t *first, int64_t *out)
{
    uint64_t mask;
    int64_t kinds = 0;
    if (bits < 1 || bits > 40 || count >= (int64_t)1 << bits)
        return -1;
    mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = ((uint64_t)number[i] * 0x9E3779B97F4A7C15u) >> (64 - bits);
        while (positions[at] != NO_EVENT && number[first[positions[at]]] != number[i])
            at = (at + 1) & mask;
        if (positions[at] == NO_EVENT) {
            first[kinds] = (uint32_t)i;
            positions[at] = (uint32_t)kinds++;
        }
        out[i] = positions[at];
    }
    return kinds;
}

NEAR_POSITION(near_position, uint32_t)

/*
 * Write where among ascending numbers the first one is that is not less than each requested one. Twin:
 * numpy.searchsorted,
 * which begins from the start where the requested ones do not ascend; this one searches near the last position.
 */
EXPORT int64_t satview_positions(const uint32_t *number, int64_t count, const uint32_t *requested, int64_t requests,
                                 int64_t *out)
{
    int64_t at = 0;
    for (int64_t k = 0; k < requests; k++)
        out[k] = at = near_position(number, count, at, requested[k]);
    return 0;
}

/* The same of 64-bit numbers. */
EXPORT int64_t satview_key_positions(const int64_t *number, int64_t count, const int64_t *requested, int64_t requests,
                                     int64_t *out)
{
    int64_t at = 0;
    for (int64_t k = 0; k < requests; k++)
        out[k] = at = near_key(number, count, at, requested[k]);
    return 0;
}

/*
 * Write entries and exits that belong together, as brackets do: the exit of an entry is the next one of its CPU at the
 * same depth, and one without an entry counts for nothing. Twin: linkage.interrupts._paired.
 *
 * step: of every code 1 for entries, -1 for exits, 0 for others. rows: ascending. below: room for every row. first,
 * last: pairs.
 *
 * Returns how many pairs there are; -1 if there is no such event.
 */
EXPORT int64_t satview_nested(const uint16_t *code, const uint8_t *cpu, int64_t count, const int8_t *step,
                              const uint32_t *rows, int64_t requests, uint32_t *below, uint32_t *first, uint32_t *last)
{
    uint32_t top[CPU_NUMBERS];
    int64_t found = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        top[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        int8_t mine;
        uint32_t *here;
        if (rows[k] >= count)
            return -1;
        mine = step[code[rows[k]] & CODE_MASK];
        here = &top[cpu[rows[k]]];
        if (mine > 0) {
            below[k] = *here;
            *here = (uint32_t)k;
        } else if (mine < 0 && *here != NO_EVENT) {
            first[found] = rows[*here];
            last[found++] = rows[k];
            *here = below[*here];
        }
    }
    return found;
}

/*
 * Write which slots hold the first words of some events, and where among them those of each event begin. Twin:
 * formats.kev.read_ahead._slots_of.
 *
 * slot: one of slot32 and slot64 is given. rows: ascending. most: slots of one event at most. position: of every event,
 * NO_EVENT for those not requested. at: room for that many slots of every requested event.
 *
 * Returns how many slots there are; -1 if there is no such event.
 */
EXPORT int64_t satview_slots_of(const uint32_t *slot32, const uint64_t *slot64, const uint16_t *slot_count,
                                int64_t count, const uint32_t *rows, int64_t requests, int64_t most, uint32_t *position,
                                int64_t *at)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        position[i] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        int64_t size, first;
        if (rows[k] >= count)
            return -1;
        size = slot_count[rows[k]] < most ? slot_count[rows[k]] : most;
        first = (int64_t)(slot32 ? slot32[rows[k]] : slot64[rows[k]]);
        position[rows[k]] = (uint32_t)found;
        for (int64_t step = 0; step < size; step++)
            at[found++] = first + step;
    }
    return found;
}

/*
 * Write the words of each requested event that were read ahead, 0 where it has none. Twin: formats.kev.read_ahead.
 *
 * position: of every event where its words begin, NO_EVENT for those not read. slot_count: of every event.
 *
 * Returns 0; -1 if one was not read.
 */
EXPORT int64_t satview_words_ahead(const uint32_t *position, const uint16_t *slot_count, int64_t count,
                                   const uint64_t *halves, int64_t half_count, const uint32_t *requested,
                                   int64_t requests, int64_t step, uint64_t *out)
{
    for (int64_t k = 0; k < requests; k++) {
        if (requested[k] >= count || position[requested[k]] == NO_EVENT)
            return -1;
        out[k] = 0;
        if (step == 0 || slot_count[requested[k]] > step) {
            int64_t at = position[requested[k]] + step;
            if (at >= half_count)
                return -1;
            out[k] = halves[at];
        }
    }
    return 0;
}

/*
 * Write for each of some events by which threads leave the CPU the entry of the kernel call that each is in then,
 * NO_EVENT where the CPU is in none, or in that of another thread. Twin: linkage.waits.calls_of.
 *
 * entry: as satview_calls wrote it. thread: one of thread16 and thread32 is given. own: the threads.
 *
 * Returns 0; -1 if there is no such event.
 */
EXPORT int64_t satview_calls_of(const uint32_t *entry, const uint16_t *thread16, const uint32_t *thread32,
                                int64_t count, const uint32_t *rows, const int64_t *own, int64_t requests,
                                uint32_t *out)
{
    for (int64_t k = 0; k < requests; k++) {
        uint32_t mine;
        if (rows[k] >= count)
            return -1;
        mine = entry[rows[k]];
        if (mine != NO_EVENT) {
            if (mine >= count)
                return -1;
            if (own[k] == 0 || (int64_t)(thread16 ? thread16[mine] : thread32[mine]) != own[k])
                mine = NO_EVENT;
        }
        out[k] = mine;
    }
    return 0;
}

/*
 * Write of one lane how long it has each kind of value up to every `every`-th interval, kinds side by side.
 * Twin: none needed, timeline.shares adds up without it where this library is missing.
 *
 * weight: what a cycle of each value counts for its kind. out: (count / every + 1) * kinds.
 *
 * Returns how many numbers it wrote; -1 if there is not room enough or a kind does not exist.
 */
EXPORT int64_t satview_share_index(const int64_t *start, const uint8_t *value, int64_t count, int64_t every,
                                   const int64_t *kind_of, const int64_t *weight, int64_t kinds, int64_t *out,
                                   int64_t room)
{
    int64_t sums[VALUES] = {0}, written = 0;
    if (every < 1 || kinds < 1 || kinds > VALUES)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        uint8_t mine = value[i] & (VALUES - 1);
        if (i % every == 0) {
            if (written + kinds > room)
                return -1;
            for (int64_t kind = 0; kind < kinds; kind++)
                out[written++] = sums[kind];
        }
        if (kind_of[mine] < 0 || kind_of[mine] >= kinds)
            return -1;
        if (i + 1 < count)
            sums[kind_of[mine]] += (start[i + 1] - start[i]) * weight[mine];
    }
    return written;
}

/*
 * Write how long a lane has each kind of value in each bin, kinds side by side. Twin: timeline.shares._by_sums.
 *
 * start: when intervals begin; NULL where the one behind interval i begins at time[rows[i]].
 * index: as satview_share_index wrote it, `marks` times `kinds` numbers; begins: start of every `every`-th interval, of
 * which the search stays in the processor's cache. edges: bins + 1, ascending. A lane has no value before its first
 * interval and from `end` on.
 *
 * Returns 0; -1 if the index is not that of the lane.
 */
EXPORT int64_t satview_shares(const int64_t *start, const int64_t *time, const uint32_t *rows, const uint8_t *value,
                              int64_t count, int64_t end, int64_t every, const int64_t *kind_of, const int64_t *weight,
                              int64_t kinds, const int64_t *index, const int64_t *begins, int64_t marks,
                              const int64_t *edges, int64_t bins, int64_t *out)
{
    int64_t before[VALUES] = {0}, now[VALUES], whole[VALUES] = {0}; /* whole: up to the start of interval i */
    int64_t mark = 0, i = 0, begin = 0; /* begin: of interval i */
    int is_begun = 0;
    if (every < 1 || kinds < 1 || kinds > VALUES || marks * every < count || (marks - 1) * every >= count)
        return -1;
    for (int kind = 0; kind < VALUES; kind++)
        if (kind_of[kind] < 0 || kind_of[kind] >= kinds)
            return -1;
    for (int64_t b = 0; b <= bins; b++) {
        int64_t edge = edges[b] < end ? edges[b] : end;
        for (int64_t kind = 0; kind < kinds; kind++)
            now[kind] = 0;
        if (count && edge > begins[0]) {
            /* Where the last edge is near, its sums are gone on with; else those of the mark before this edge are taken. */
            mark = i / every;
            if (!is_begun || (mark + 2 < marks && begins[mark + 2] < edge)) {
                int64_t high, step = 1;
                while (mark + step < marks && begins[mark + step] < edge) {
                    mark += step;
                    step *= 2;
                }
                high = mark + step < marks ? mark + step : marks;
                while (high - mark > 1) {
                    int64_t middle = mark + (high - mark) / 2;
                    if (begins[middle] < edge)
                        mark = middle;
                    else
                        high = middle;
                }
                for (int64_t kind = 0; kind < kinds; kind++)
                    whole[kind] = index[mark * kinds + kind];
                i = mark * every;
                begin = begins[mark];
                is_begun = 1;
            }
            while (i + 1 < count) {
                int64_t next = start ? start[i + 1] : time[rows[i]];
                if (next >= edge)
                    break;
                whole[kind_of[value[i] & (VALUES - 1)]] += (next - begin) * weight[value[i] & (VALUES - 1)];
                begin = next;
                i++;
            }
            for (int64_t kind = 0; kind < kinds; kind++)
                now[kind] = whole[kind];
            now[kind_of[value[i] & (VALUES - 1)]] += (edge - begin) * weight[value[i] & (VALUES - 1)];
        }
        for (int64_t kind = 0; kind < kinds; kind++) {
            if (b)
                out[(b - 1) * kinds + kind] = now[kind] - before[kind];
            before[kind] = now[kind];
        }
    }
    return 0;
}

/*
 * Write where each kind ends in each bin of a stack, 0 = bottom, 1 = top. Twin: gui.swimlane.share_layer.tops_of.
 *
 * cycles: bins * kinds, as satview_shares writes them. order: `count` of the kinds, from bottom to top. length: cycles
 * of each bin. out: count * bins.
 *
 * Returns 0; -1 if there is no such kind.
 */
EXPORT int64_t satview_stack_tops(const int64_t *cycles, int64_t kinds, int64_t bins, const int64_t *order,
                                  int64_t count, const int64_t *length, double *out)
{
    enum { BLOCK = 256 };
    for (int64_t k = 0; k < count; k++)
        if (order[k] < 0 || order[k] >= kinds)
            return -1;
    for (int64_t begin = 0; begin < bins; begin += BLOCK) {
        int64_t size = bins - begin < BLOCK ? bins - begin : BLOCK, sum[BLOCK] = {0};
        for (int64_t k = 0; k < count; k++) {
            const int64_t *mine = cycles + begin * kinds + order[k];
            for (int64_t b = 0; b < size; b++) {
                sum[b] += mine[b * kinds];
                out[k * bins + begin + b] = (double)sum[b] / (double)length[begin + b];
            }
        }
    }
    return 0;
}

/*
 * Draw one lane as a stack of shares into rows of a picture. Twin: gui.swimlane.stack_pixels._draw_by_rows.
 *
 * tops: kinds * bins, where each kind ends, 0 = bottom, 1 = top. is_busy: of these something must be seen even where it
 * is less than a pixel high. columns: bins + 1, ascending. The bar has the rows from top on and above bottom, of which
 * those of the picture are drawn.
 *
 * Returns 0; -1 if a column is not in the picture or there are too many kinds.
 */
EXPORT int64_t satview_draw_stack(const double *tops, int64_t kinds, int64_t bins, const uint8_t *is_busy,
                                  const int64_t *columns, const uint32_t *colours, uint32_t background, int64_t top,
                                  int64_t bottom, uint32_t *pixels, int64_t width, int64_t height)
{
    enum { BLOCK = 256 }; /* bins whose levels are in the cache; rows of them are written one after the other */
    int32_t level[VALUES][BLOCK], until[BLOCK]; /* until: the row up to which a bin has the kind that it has */
    uint8_t kind[BLOCK];
    int64_t first = top > 0 ? top : 0, last = bottom < height ? bottom : height, size = bottom - top;
    if (kinds < 1 || kinds > VALUES || size > INT32_MAX / 2)
        return -1;
    for (int64_t b = 0; b < bins; b++)
        if (columns[b] < 0 || columns[b + 1] < columns[b] || columns[b + 1] > width)
            return -1;
    for (int64_t begin = 0; begin < bins; begin += BLOCK) {
        int64_t count = bins - begin < BLOCK ? bins - begin : BLOCK, most = 0;
        const int64_t *column = columns + begin;
        int64_t raised[BLOCK];
        double largest[BLOCK] = {0}, ran[BLOCK] = {0};
        for (int64_t k = 0; k < kinds; k++) {
            const double *mine = tops + k * bins + begin, *below = k ? mine - bins : NULL;
            for (int64_t b = 0; b < count; b++) {
                double high = mine[b] < 2 ? mine[b] : 2;
                level[k][b] = high > 0 ? (int32_t)(high * (double)size + 0.5) : 0;
            }
            if (!is_busy[k])
                continue;
            most = k;
            for (int64_t b = 0; b < count; b++) {
                double share = mine[b] - (below ? below[b] : 0);
                if (ran[b] == 0 || share > largest[b]) {
                    largest[b] = share;
                    raised[b] = k;
                }
                ran[b] += share;
            }
        }
        for (int64_t b = 0; b < count; b++)
            if (ran[b] > 0 && level[most][b] < 1)
                for (int64_t k = raised[b]; k < kinds; k++)
                    if (level[k][b] < 1)
                        level[k][b] = 1;
        /* From the lowest row up: each is the one below it but for bins where another kind begins. */
        memset(kind, 0, sizeof kind);
        memset(until, 0, sizeof until);
        for (int64_t row = last - 1; row >= first; row--) {
            uint32_t *line = pixels + row * width;
            int32_t here = (int32_t)(bottom - row);
            if (row < last - 1)
                memcpy(line + column[0], line + width + column[0], (size_t)(column[count] - column[0]) * sizeof *line);
            for (int64_t b = 0; b < count; b++) {
                int64_t k = kind[b];
                uint32_t mine;
                if (until[b] >= here)
                    continue;
                while (k < kinds && level[k][b] < here)
                    k++;
                kind[b] = (uint8_t)k;
                until[b] = k < kinds ? level[k][b] : INT32_MAX;
                mine = k < kinds ? colours[k] : background;
                for (int64_t x = column[b]; x < column[b + 1]; x++)
                    line[x] = mine;
            }
        }
    }
    return 0;
}

/* Hatches a picture: pixels whose highest byte is 255 less the number of a hatch get ink where it has a bit, and become
   opaque. A hatch is 8 rows of 8 pixels of `cell` device pixels; `top` is how far the picture is below where they begin.
   Twin: gui.swimlane.hatching. */
EXPORT int64_t satview_hatch(uint32_t *pixels, int64_t width, int64_t height, const uint8_t *hatches, int64_t count,
                             int64_t top, int64_t cell)
{
    if (count < 1 || count > 255 || cell < 1 || top < 0)
        return -1;
    for (int64_t y = 0; y < height; y++) {
        uint32_t *line = pixels + y * width;
        int64_t row = (y + top) / cell & 7, bit = 0, step = 0;
        for (int64_t x = 0; x < width; x++) {
            uint32_t pixel = line[x], hatch = 255 - (pixel >> 24);
            if (hatch) {
                pixel |= 0xFF000000u;
                if (hatch < (uint32_t)count && hatches[hatch * 8 + row] >> bit & 1) {
                    uint32_t r = pixel >> 16 & 255, g = pixel >> 8 & 255, b = pixel & 255;
                    if (r * 299 + g * 587 + b * 114 > 110000)
                        r = r * 9 / 16, g = g * 9 / 16, b = b * 9 / 16;
                    else
                        r += (255 - r) * 7 / 16, g += (255 - g) * 7 / 16, b += (255 - b) * 7 / 16;
                    pixel = 0xFF000000u | r << 16 | g << 8 | b;
                }
                line[x] = pixel;
            }
            if (++step == cell) {
                step = 0;
                bit = (bit + 1) & 7;
            }
        }
    }
    return 0;
}

/* Fields of messages of protobuf: every field of every message in a row of its own, in the order of the data.
 *
 * data, size       the bytes
 * begin, end       where each message is; ends beyond the data are cut
 * capacity         rows of the columns that are written
 * message, number  which message, number of the field
 * value            a number, or where the bytes of a field of bytes begin
 * length           of a field of bytes, -1 of a number
 * is_bad           per message: it ends inside a field, or has a field of no known kind; what precedes is there
 *
 * Returns how many rows there are; beyond `capacity` none is written. Twin: formats.linux.wire_format.
 */
static int read_varint(const uint8_t *data, int64_t *at, int64_t end, uint64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = data[(*at)++];
        if (shift < 64)
            found |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *value = found;
            return 1;
        }
    }
    return 0;
}

EXPORT int64_t satview_protobuf(const uint8_t *data, int64_t size, const int64_t *begin, const int64_t *end,
                                int64_t messages, int64_t capacity, int64_t *message, int64_t *number, int64_t *value,
                                int64_t *length, uint8_t *is_bad)
{
    int64_t rows = 0;
    for (int64_t m = 0; m < messages; m++) {
        int64_t at = begin[m], stop = end[m] < size ? end[m] : size;
        is_bad[m] = at < 0 || end[m] > size;
        if (at < 0)
            continue;
        while (at < stop) {
            uint64_t tag, found = 0;
            int64_t bytes = -1;
            int kind;
            if (!read_varint(data, &at, stop, &tag) || tag >> 3 == 0 || tag >> 32) {
                is_bad[m] = 1;
                break;
            }
            kind = (int)(tag & 7);
            if (kind == 0) {
                if (!read_varint(data, &at, stop, &found)) {
                    is_bad[m] = 1;
                    break;
                }
            } else if (kind == 1 || kind == 5) {
                int wide = kind == 1 ? 8 : 4;
                if (stop - at < wide) {
                    is_bad[m] = 1;
                    break;
                }
                for (int i = 0; i < wide; i++)
                    found |= (uint64_t)data[at + i] << 8 * i;
                at += wide;
            } else if (kind == 2) {
                if (!read_varint(data, &at, stop, &found) || found > (uint64_t)(stop - at)) {
                    is_bad[m] = 1;
                    break;
                }
                bytes = (int64_t)found;
                found = (uint64_t)at;
                at += bytes;
            } else {
                is_bad[m] = 1;
                break;
            }
            if (rows < capacity) {
                message[rows] = m;
                number[rows] = (int64_t)(tag >> 3);
                value[rows] = (int64_t)found;
                length[rows] = bytes;
            }
            rows++;
        }
    }
    return rows;
}
