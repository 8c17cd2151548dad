/*
 * The passes that find related events. core.h has the rules.
 */

#include "core.h"

enum {
    IS_CALL = 1,     /* flags of a code: an event of a kernel call */
    IS_ENTRY = 2,    /* enters the call */
    IS_END = 4,      /* ends the call: its exit or interrupted form */
    IS_TURN = 8,     /* a thread starts to run, and may continue its kernel call */
    IS_RUNNING = 16, /* a thread runs from this event on */
    CALL_NUMBER = 0x7F
};

/*
 * Find the kernel call that the CPU of each event is in before the event, and the end of each call. linkage.calls
 * has the rules. Losses are ignored.
 *
 * thread16 or thread32: thread of each event. last_of: scratch, one per thread. stays: which calls never block. entry:
 * receives the entry of the call, NO_EVENT for none. begins, ends: receive pairs of known threads from the front, and
 * of unknown threads from the back. counts: receives [0] pairs of known threads, [1] pairs of unknown threads.
 *
 * Returns 0; REFUSED if the output is too small, or a thread is out of range.
 */
static int64_t satview_calls(const uint16_t *code, const uint8_t *cpu, const uint16_t *thread16,
                             const uint32_t *thread32, int64_t count, const uint8_t *traits, const uint8_t *stays,
                             uint32_t *last_of, int64_t threads, uint32_t *entry, uint32_t *begins, uint32_t *ends,
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
        uint8_t number = cpu[i], trait = traits[code[i] & CODE_MASK];
        uint32_t thread, before;
        entry[i] = open[number];
        if (!trait)
            continue;
        thread = thread16 ? thread16[i] : thread32[i];
        if (thread >= threads)
            return REFUSED;
        if (trait & IS_TURN)
            open[number] = newest[number] != NO_EVENT && traits[code[newest[number]] & CODE_MASK] & IS_ENTRY &&
                                   thread == (thread16 ? thread16[newest[number]] : thread32[newest[number]])
                               ? newest[number]
                               : NO_EVENT;
        if (trait & IS_RUNNING)
            is_clean[number] = 0;
        if (!(trait & IS_CALL))
            continue;
        /* The last call event of a known thread; else the last call event on the CPU, if its thread is unknown too. */
        before = thread ? last_of[thread] : is_clean[number] ? newest[number] : NO_EVENT;
        if (trait & IS_END && before != NO_EVENT && traits[code[before] & CODE_MASK] & IS_ENTRY &&
            ((code[before] ^ code[i]) & CALL_NUMBER) == 0) {
            uint32_t other = nobody_at[code[i] & CALL_NUMBER];
            if (known + unknown >= room)
                return REFUSED;
            if (!thread) {
                if (stays[code[i] & CALL_NUMBER]) {
                    unknown++;
                    begins[room - unknown] = before;
                    ends[room - unknown] = (uint32_t)i;
                }
            } else if (other == NO_EVENT || other < before) {
                begins[known] = before;
                ends[known++] = (uint32_t)i;
            }
        }
        newest[number] = (uint32_t)i;
        open[number] = trait & IS_ENTRY ? (uint32_t)i : NO_EVENT;
        is_clean[number] = !thread;
        if (thread)
            last_of[thread] = (uint32_t)i;
        else
            nobody_at[code[i] & CALL_NUMBER] = (uint32_t)i;
    }
    counts[0] = known;
    counts[1] = unknown;
    return 0;
}

PASS(calls,
     "u2:n u1:n u2|u4:n u1:32768 u1:128 u4:t u4:n u4:r u4:r i8:2",
     U2(0), U1(1), U2(2), U4(2), COUNT(0), U1(3), U1(4), U4(5), COUNT(5), U4(6), U4(7), U4(8), COUNT(7), I8(9))

/*
 * Write, for each given event, the last event before it on its CPU whose code is set in a table, NO_EVENT for none.
 * rows: ascending.
 *
 * Returns 0; REFUSED if the rows do not ascend or a row is out of range.
 */
static int64_t satview_last_before(const uint16_t *code, const uint8_t *cpu, int64_t count, const uint8_t *table,
                                   const uint32_t *rows, int64_t requests, uint32_t *out)
{
    uint32_t newest[CPU_NUMBERS];
    int64_t i = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        newest[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (rows[k] >= count || rows[k] < i)
            return REFUSED;
        for (; i < rows[k]; i++) { /* no branch, as codes are unpredictable */
            uint32_t before = newest[cpu[i]];
            newest[cpu[i]] = table[code[i] & CODE_MASK] ? (uint32_t)i : before;
        }
        out[k] = newest[cpu[i]];
    }
    return 0;
}

PASS(last_before, "u2:n u1:n u1:32768 u4:r u4:r", U2(0), U1(1), COUNT(0), U1(2), U4(3), COUNT(3), U4(4))

/*
 * Write, for each given event, the last candidate before it on its CPU, NO_EVENT for none.
 * candidates, rows: ascending.
 *
 * Returns 0; REFUSED if a row is out of range.
 */
static int64_t satview_last_of(const uint8_t *cpu, int64_t count, const uint32_t *candidates, int64_t candidate_count,
                               const uint32_t *rows, int64_t requests, uint32_t *out)
{
    uint32_t newest[CPU_NUMBERS];
    int64_t i = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        newest[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (rows[k] >= count)
            return REFUSED;
        for (; i < candidate_count && candidates[i] < rows[k]; i++) {
            if (candidates[i] >= count)
                return REFUSED;
            newest[cpu[candidates[i]]] = candidates[i];
        }
        out[k] = newest[cpu[rows[k]]];
    }
    return 0;
}

PASS(last_of, "u1:n u4:c u4:r u4:r", U1(0), COUNT(0), U4(1), COUNT(1), U4(2), COUNT(2), U4(3))

/*
 * Write, for each given event, the last candidate before it with the same number, such as a thread; NO_EVENT for none.
 * candidates, rows: ascending. newest: scratch, one per number.
 *
 * Returns 0; REFUSED if a number is out of range.
 */
static int64_t satview_last_of_number(const uint32_t *candidates, const int64_t *number, int64_t candidate_count,
                                      const uint32_t *rows, const int64_t *requested, int64_t requests,
                                      uint32_t *newest, int64_t numbers, uint32_t *out)
{
    int64_t i = 0;
    for (int64_t n = 0; n < numbers; n++)
        newest[n] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        if (requested[k] < 0 || requested[k] >= numbers)
            return REFUSED;
        for (; i < candidate_count && candidates[i] < rows[k]; i++) {
            if (number[i] < 0 || number[i] >= numbers)
                return REFUSED;
            newest[number[i]] = candidates[i];
        }
        out[k] = newest[requested[k]];
    }
    return 0;
}

PASS(last_of_number,
     "u4:c i8:c u4:r i8:r u4:m u4:r",
     U4(0), I8(1), COUNT(0), U4(2), I8(3), COUNT(2), U4(4), COUNT(4), U4(5))

/*
 * Write, for each given event, the first candidate at or after it with the same number; see satview_last_of_number.
 *
 * Returns 0; REFUSED if a number is out of range.
 */
static int64_t satview_next_of_number(const uint32_t *candidates, const int64_t *number, int64_t candidate_count,
                                      const uint32_t *rows, const int64_t *requested, int64_t requests, uint32_t *next,
                                      int64_t numbers, uint32_t *out)
{
    int64_t i = candidate_count - 1;
    for (int64_t n = 0; n < numbers; n++)
        next[n] = NO_EVENT;
    for (int64_t k = requests - 1; k >= 0; k--) {
        if (requested[k] < 0 || requested[k] >= numbers)
            return REFUSED;
        for (; i >= 0 && candidates[i] >= rows[k]; i--) {
            if (number[i] < 0 || number[i] >= numbers)
                return REFUSED;
            next[number[i]] = candidates[i];
        }
        out[k] = next[requested[k]];
    }
    return 0;
}

PASS(next_of_number,
     "u4:c i8:c u4:r i8:r u4:m u4:r",
     U4(0), I8(1), COUNT(0), U4(2), I8(3), COUNT(2), U4(4), COUNT(4), U4(5))

/*
 * Write the state of each state event, and the event that ends the state, which is the thread's next state event.
 *
 * thread16 or thread32: thread of each event. index: state events grouped by thread, those of thread t from start[t]
 * on. nothing: value in value_of_code for events that are not states. fill: scratch, one per thread. value: receives
 * states, parallel to index. ends: receives an event for each event, NO_EVENT for events that are not states, LASTS for
 * the last state of a thread.
 *
 * Returns 0; -1 if the index does not match the events.
 */
static int64_t satview_states(const uint16_t *code, const uint16_t *thread16, const uint32_t *thread32, int64_t count,
                              const uint32_t *index, int64_t indexed, const int64_t *start, int64_t threads,
                              const uint8_t *value_of_code, uint8_t nothing, int64_t *fill, uint8_t *value,
                              uint32_t *ends)
{
    static const uint32_t LASTS = 0xFFFFFFFEu;
    if (start[0] != 0 || start[threads] != indexed)
        return REFUSED;
    for (int64_t t = 0; t < threads; t++) {
        if (start[t] > start[t + 1])
            return -1;
        fill[t] = start[t];
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t thread = thread16 ? thread16[i] : thread32[i];
        int64_t place;
        ends[i] = NO_EVENT;
        if (thread >= threads)
            return -1;
        place = fill[thread];
        if (place >= start[thread + 1] || index[place] != i)
            continue;
        value[place] = value_of_code[code[i] & CODE_MASK];
        if (place > start[thread] && value[place - 1] != nothing)
            ends[index[place - 1]] = (uint32_t)i;
        fill[thread] = place + 1;
    }
    for (int64_t t = 0; t < threads; t++) {
        if (fill[t] != start[t + 1])
            return -1;
        if (fill[t] > start[t] && value[fill[t] - 1] != nothing)
            ends[index[fill[t] - 1]] = LASTS;
    }
    return 0;
}

PASS(states,
     "u2:n u2|u4:n u4:i i8:t+1 u1:32768 n i8:t u1:i u4:n",
     U2(0), U2(1), U4(1), COUNT(0), U4(2), COUNT(2), I8(3), COUNT(6), U1(4), (uint8_t)NUMBER(5), I8(6), U1(7),
     U4(8))

NEAR_POSITION(near_position, uint32_t)

/*
 * Write, for each given event, the position in `index` of a thread's first state event at or after it, or of the next
 * thread's first if there is none. The search starts at the thread's last position. fill: scratch, one per thread.
 *
 * Returns 0; REFUSED if a thread is out of range.
 */
static int64_t satview_state_positions(const uint32_t *index, int64_t indexed, const int64_t *start, int64_t threads,
                                       const uint32_t *rows, const int64_t *thread, int64_t requests, int64_t *fill,
                                       int64_t *out)
{
    for (int64_t t = 0; t < threads; t++) {
        if (start[t] < 0 || start[t + 1] < start[t] || start[t + 1] > indexed)
            return REFUSED;
        fill[t] = 0;
    }
    for (int64_t k = 0; k < requests; k++) {
        int64_t begin, own;
        if (thread[k] < 0 || thread[k] >= threads)
            return REFUSED;
        begin = start[thread[k]];
        own = start[thread[k] + 1] - begin;
        fill[thread[k]] = near_position(index + begin, own, fill[thread[k]], rows[k]);
        out[k] = begin + fill[thread[k]];
    }
    return 0;
}

PASS(state_positions,
     "u4:i i8:t+1 u4:r i8:r i8:t i8:r",
     U4(0), COUNT(0), I8(1), COUNT(4), U4(2), I8(3), COUNT(2), I8(4), I8(5))

/* Write the rows of the events whose code is set in a table; return their number, REFUSED if `out` is too small. */
static int64_t satview_rows_with(const uint16_t *code, int64_t count, const uint8_t *table, uint32_t *out,
                                 int64_t room)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < count; i++) {
        if (rows >= room)
            return REFUSED;
        out[rows] = (uint32_t)i;
        rows += table[code[i] & CODE_MASK] != 0;
    }
    return rows;
}

PASS(rows_with, "u2:n u1:32768 u4:*", U2(0), COUNT(0), U1(1), U4(2), COUNT(2))

/* Write the value of a table for the code of each given event; return REFUSED if a row is out of range. */
static int64_t satview_values_of(const uint16_t *code, int64_t count, const uint32_t *rows, int64_t requests,
                                 const uint8_t *table, uint8_t *out)
{
    for (int64_t k = 0; k < requests; k++) {
        if (rows[k] >= count)
            return REFUSED;
        out[k] = table[code[rows[k]] & CODE_MASK];
    }
    return 0;
}

PASS(values_of, "u2:n u4:r u1:32768 u1:r", U2(0), COUNT(0), U4(1), COUNT(1), U1(2), U1(3))

/* Write the times of given events, `end` for the row after the last event; return REFUSED if a row is out of range. */
static int64_t satview_times_of(const int64_t *time, int64_t count, const uint32_t *narrow, const int64_t *wide,
                                int64_t requests, int64_t end, int64_t *out)
{
    for (int64_t k = 0; k < requests; k++) {
        int64_t row = narrow ? (int64_t)narrow[k] : wide[k];
        if (row < 0 || row > count)
            return REFUSED;
        out[k] = row < count ? time[row] : end;
    }
    return 0;
}

PASS(times_of, "i8:n u4|i8:r n i8:r", I8(0), COUNT(0), U4(1), I8(1), COUNT(1), NUMBER(2), I8(3))

/*
 * Write for each of some positions among the states of a thread the event of the first state from there on that is in a
 * table of 256; -1 if the thread has no such state. Fast where the positions of each thread ascend.
 *
 * index, value: the states by thread, those of thread t from start[t] on. asked, answered: room for every thread.
 *
 * Returns 0; REFUSED if a position is not among the states of its thread, nor right behind them.
 */
static int64_t satview_first_in_table(const uint32_t *index, const uint8_t *value, int64_t indexed,
                                      const int64_t *start, int64_t threads, const int64_t *positions,
                                      const int64_t *thread, int64_t requests, const uint8_t *table, int64_t *asked,
                                      int64_t *answered, int64_t *out)
{
    for (int64_t t = 0; t < threads; t++) {
        if (start[t] < 0 || start[t + 1] < start[t] || start[t + 1] > indexed)
            return REFUSED;
        asked[t] = -1;
    }
    for (int64_t k = 0; k < requests; k++) {
        int64_t t = thread[k], place = positions[k];
        if (t < 0 || t >= threads || place < start[t] || place > start[t + 1])
            return REFUSED;
        if (asked[t] >= 0 && asked[t] <= place && place <= answered[t])
            place = answered[t];
        while (place < start[t + 1] && !table[value[place]])
            place = place + 1 == asked[t] ? answered[t] : place + 1;
        asked[t] = positions[k];
        answered[t] = place;
        out[k] = place < start[t + 1] ? (int64_t)index[place] : -1;
    }
    return 0;
}

PASS(first_in_table,
     "u4:i u1:i i8:t+1 i8:r i8:r u1:256 i8:t i8:t i8:r",
     U4(0), U1(1), COUNT(0), I8(2), COUNT(6), I8(3), I8(4), COUNT(3), U1(5), I8(6), I8(7), I8(8))

/*
 * Write, for each number, the position of the last equal number before it, -1 for none.
 *
 * positions: hash table of 2^bits elements, more than count, all NO_EVENT.
 *
 * Returns 0; REFUSED if the table is too small.
 */
static int64_t satview_previous_same(const int64_t *number, int64_t count, uint32_t *positions, int64_t room,
                                     int64_t bits, int64_t *out)
{
    uint64_t mask;
    if (bits < 1 || bits > 40 || room != (int64_t)1 << bits || count >= room)
        return REFUSED;
    mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t place = ((uint64_t)number[i] * 0x9E3779B97F4A7C15u) >> (64 - bits);
        while (positions[place] != NO_EVENT && number[positions[place]] != number[i])
            place = (place + 1) & mask;
        out[i] = positions[place] == NO_EVENT ? -1 : (int64_t)positions[place];
        positions[place] = (uint32_t)i;
    }
    return 0;
}

PASS(previous_same, "i8:n u4:p n i8:n", I8(0), COUNT(0), U4(1), COUNT(1), NUMBER(2), I8(3))

/*
 * Write, for each number, its index among the distinct numbers in the order of first appearance.
 *
 * positions: see satview_previous_same. first_rows: scratch, one per distinct number.
 *
 * Returns the count of distinct numbers; REFUSED if the table is too small.
 */
static int64_t satview_numbered(const int64_t *number, int64_t count, uint32_t *positions, int64_t room, int64_t bits,
                                uint32_t *first_rows, int64_t *out)
{
    uint64_t mask;
    int64_t kinds = 0;
    if (bits < 1 || bits > 40 || room != (int64_t)1 << bits || count >= room)
        return REFUSED;
    mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t place = ((uint64_t)number[i] * 0x9E3779B97F4A7C15u) >> (64 - bits);
        while (positions[place] != NO_EVENT && number[first_rows[positions[place]]] != number[i])
            place = (place + 1) & mask;
        if (positions[place] == NO_EVENT) {
            first_rows[kinds] = (uint32_t)i;
            positions[place] = (uint32_t)kinds++;
        }
        out[i] = positions[place];
    }
    return kinds;
}

PASS(numbered, "i8:n u4:p n u4:n i8:n", I8(0), COUNT(0), U4(1), COUNT(1), NUMBER(2), U4(3), I8(4))

/*
 * Write, for each requested number, the index of the first of some ascending numbers that is not less.
 * Each search starts at the last position, so it is fast if successive requested numbers are near each other.
 */
static int64_t satview_positions(const uint32_t *number, int64_t count, const uint32_t *requested, int64_t requests,
                                 int64_t *out)
{
    int64_t position = 0;
    for (int64_t k = 0; k < requests; k++)
        out[k] = position = near_position(number, count, position, requested[k]);
    return 0;
}

PASS(positions, "u4:n u4:r i8:r", U4(0), COUNT(0), U4(1), COUNT(1), I8(2))

/* As satview_positions, for 64-bit numbers. */
static int64_t satview_key_positions(const int64_t *number, int64_t count, const int64_t *requested, int64_t requests,
                                     int64_t *out)
{
    int64_t position = 0;
    for (int64_t k = 0; k < requests; k++)
        out[k] = position = near_key(number, count, position, requested[k]);
    return 0;
}

PASS(key_positions, "i8:n i8:r i8:r", I8(0), COUNT(0), I8(1), COUNT(1), I8(2))

/*
 * Look up numbers, each of which has a range of values, and write the value at `position` of each range; the last
 * element of `values` if the range is too short. number: ascending; start: index in `values` of each range.
 *
 * Returns 0; 1 if a number does not exist; REFUSED if a range is outside the values.
 */
static int64_t satview_values_in_ranges(const uint32_t *number, int64_t count, const uint32_t *start,
                                        const uint64_t *values, int64_t size, const uint32_t *requested,
                                        int64_t requests, int64_t position, uint64_t *out)
{
    int64_t place = 0;
    for (int64_t k = 0; k < requests; k++) {
        int64_t value;
        place = near_position(number, count, place, requested[k]);
        if (place == count || number[place] != requested[k])
            return 1;
        value = position < 0 || position >= (int64_t)start[place + 1] - start[place] ? size - 1
                                                                                     : start[place] + position;
        if (value < 0 || value >= size)
            return REFUSED;
        out[k] = values[value];
    }
    return 0;
}

PASS(values_in_ranges,
     "u4:n u4:n+1 u8:v u4:r n u8:r",
     U4(0), COUNT(0), U4(1), U8(2), COUNT(2), U4(3), COUNT(3), NUMBER(4), U8(5))

/*
 * Write matching entries and exits of interrupts and handlers. An interrupt ends with the next exit on its CPU at the
 * same depth, a handler with the next handler exit within the same interrupt. Outside of known interrupts, an interrupt
 * exit without an entry ends the search for the exits of open handlers; it is ignored otherwise.
 *
 * step: for each code 1 for interrupt entries, 2 for handler entries, -1 and -2 for their exits, 0 for others. rows:
 * ascending. below, newest: scratch, one per row. entries, exits: receive the pairs.
 *
 * Returns the number of pairs; REFUSED if a row is out of range.
 */
static int64_t satview_nested(const uint16_t *code, const uint8_t *cpu, int64_t count, const int8_t *step,
                              const uint32_t *rows, int64_t requests, uint32_t *below, uint32_t *newest,
                              uint32_t *entries, uint32_t *exits)
{
    uint32_t interrupt_of[CPU_NUMBERS]; /* innermost interrupt of each CPU; `below` has the one that it interrupts */
    uint32_t outside[CPU_NUMBERS];      /* the newest open handler outside of interrupts; `newest` has those inside */
    int64_t pairs = 0;
    for (int c = 0; c < CPU_NUMBERS; c++)
        interrupt_of[c] = outside[c] = NO_EVENT;
    for (int64_t k = 0; k < requests; k++) {
        int8_t way;
        uint32_t *interrupt, *handler, *open;
        if (rows[k] >= count)
            return REFUSED;
        way = step[code[rows[k]] & CODE_MASK];
        interrupt = &interrupt_of[cpu[rows[k]]];
        handler = *interrupt == NO_EVENT ? &outside[cpu[rows[k]]] : &newest[*interrupt];
        open = way == 1 || way == -1 ? interrupt : handler;
        if (way > 0) {
            below[k] = *open;
            newest[k] = NO_EVENT;
            *open = (uint32_t)k;
        } else if (way < 0 && *open != NO_EVENT) {
            entries[pairs] = rows[*open];
            exits[pairs++] = rows[k];
            *open = below[*open];
        } else if (way == -1) {
            *handler = NO_EVENT;
        }
    }
    return pairs;
}

PASS(nested,
     "u2:n u1:n i1:32768 u4:r u4:r u4:r u4:r u4:r",
     U2(0), U1(1), COUNT(0), I1(2), U4(3), COUNT(3), U4(4), U4(5), U4(6), U4(7))

/*
 * Write, for each given event at which a thread leaves the CPU, the entry of the kernel call that the thread is in,
 * NO_EVENT if the CPU is in no call, or in the call of another thread.
 *
 * entry: from satview_calls. thread16 or thread32: thread of each event. own: thread for each given event.
 *
 * Returns 0; REFUSED if a row is out of range.
 */
static int64_t satview_calls_of(const uint32_t *entry, const uint16_t *thread16, const uint32_t *thread32,
                                int64_t count, const uint32_t *rows, const int64_t *own, int64_t requests,
                                uint32_t *out)
{
    for (int64_t k = 0; k < requests; k++) {
        uint32_t call;
        if (rows[k] >= count)
            return REFUSED;
        call = entry[rows[k]];
        if (call != NO_EVENT) {
            if (call >= count)
                return REFUSED;
            if (own[k] == 0 || (int64_t)(thread16 ? thread16[call] : thread32[call]) != own[k])
                call = NO_EVENT;
        }
        out[k] = call;
    }
    return 0;
}

PASS(calls_of, "u4:n u2|u4:n u4:r i8:r u4:r", U4(0), U2(1), U4(1), COUNT(0), U4(2), I8(3), COUNT(2), U4(4))
