/*
 * The passes of statistics: nesting of interrupts, time covered by ranges, counts of events. core.h has the rules.
 */

#include "core.h"

/*
 * Write the entries and exits of the interrupts of a CPU, with the nesting depth after each event. An exit is stray if
 * no entry precedes it in its part of the trace.
 *
 * rows: events of class INT on all CPUs, ascending; step: for each code 1 for entries, -1 for exits, 0 for others;
 * lost: end of each loss on the CPU, ascending, where a new part begins; out_*: one element per row.
 *
 * Returns the number of entries and exits; REFUSED if a row is out of range.
 */
static int64_t satview_nesting(const uint16_t *code, const uint8_t *cpu, const int64_t *time, int64_t events,
                               const int8_t *step, const uint32_t *rows, int64_t requests, int64_t number,
                               const int64_t *lost, int64_t losses, uint32_t *out_rows, int64_t *out_part,
                               int8_t *out_step, int64_t *out_depth, uint8_t *out_stray)
{
    int64_t rows_out = 0, part = 0, depth = 0;
    int is_first = 1;
    for (int64_t k = 0; k < requests; k++) {
        int8_t change;
        if (rows[k] >= events)
            return REFUSED;
        change = step[code[rows[k]] & CODE_MASK];
        if (cpu[rows[k]] != number || !change)
            continue;
        while (part < losses && lost[part] <= time[rows[k]]) {
            part++;
            depth = 0;
            is_first = 1;
        }
        if (change > 0)
            is_first = 0;
        depth = depth + change > 0 ? depth + change : 0;
        out_rows[rows_out] = rows[k];
        out_part[rows_out] = part;
        out_step[rows_out] = change;
        out_depth[rows_out] = depth;
        out_stray[rows_out++] = (uint8_t)is_first;
    }
    return rows_out;
}

PASS(nesting,
     "u2:n u1:n i8:n i1:32768 u4:r n i8:l u4:r i8:r i1:r i8:r u1:r",
     U2(0), U1(1), I8(2), COUNT(0), I1(3), U4(4), COUNT(4), NUMBER(5), I8(6), COUNT(6), U4(7), I8(8), I1(9), I8(10),
     U1(11))

/*
 * Write for each of 256 CPUs whether it has an interrupt that is never left: one is open at the end, or during `most`
 * successive events. CPUs without interrupt exits are not included.
 *
 * Returns 0; REFUSED if a row is out of range.
 */
static int64_t satview_left_open(const uint16_t *code, const uint8_t *cpu, int64_t events, const int8_t *step,
                                 const uint32_t *rows, int64_t requests, int64_t most, uint8_t *is_open)
{
    int64_t depth[CPU_NUMBERS] = {0}, inside[CPU_NUMBERS] = {0};
    uint8_t leaves[CPU_NUMBERS] = {0};
    memset(is_open, 0, CPU_NUMBERS);
    for (int64_t k = 0; k < requests; k++) {
        int8_t change;
        uint8_t number;
        if (rows[k] >= events)
            return REFUSED;
        change = step[code[rows[k]] & CODE_MASK];
        number = cpu[rows[k]];
        if (!change)
            continue;
        depth[number] = depth[number] + change > 0 ? depth[number] + change : 0;
        inside[number] = depth[number] ? inside[number] + 1 : 0;
        is_open[number] |= inside[number] >= most;
        leaves[number] |= change < 0;
    }
    for (int c = 0; c < CPU_NUMBERS; c++)
        is_open[c] = leaves[c] && (is_open[c] || depth[c] > 0);
    return 0;
}

PASS(left_open,
     "u2:n u1:n i1:32768 u4:r n u1:256",
     U2(0), U1(1), COUNT(0), I1(2), U4(3), COUNT(3), NUMBER(4), U1(5))

/*
 * Add S(end) - S(start) to the sum of each window, or subtract it if is_taken is not 0, where S(t) is the sum of
 * t - edge over all edges before t. edges: start or end times of intervals, ascending; begins: starts of the windows,
 * ascending. Times are taken relative to the first edge, as they may be near 2^63.
 */
static int64_t satview_window_sums(const int64_t *edges, int64_t count, const int64_t *begins, int64_t windows,
                                   int64_t window, int64_t is_taken, int64_t *sums)
{
    for (int side = 0; side < 2; side++) {
        int64_t before = 0;
        uint64_t total = 0, origin = count ? (uint64_t)edges[0] : 0;
        for (int64_t k = 0; k < windows; k++) {
            uint64_t moment = (uint64_t)begins[k] + (side ? 0 : (uint64_t)window), sum;
            while (before < count && edges[before] < (int64_t)moment)
                total += (uint64_t)edges[before++] - origin;
            sum = (uint64_t)before * (moment - origin) - total;
            sums[k] = (int64_t)((uint64_t)sums[k] + (side != (int)is_taken ? 0 - sum : sum));
        }
    }
    return 0;
}

PASS(window_sums, "i8:n i8:w n n i8:w", I8(0), COUNT(0), I8(1), COUNT(1), NUMBER(2), NUMBER(3) != 0, I8(4))

/* Write the integers of all ranges, one range after the other; return REFUSED if `out` has another size. */
static int64_t satview_ranges(const int64_t *starts, const int64_t *size, int64_t count, int64_t *out, int64_t room)
{
    int64_t written = 0;
    for (int64_t k = 0; k < count; k++) {
        if (size[k] < 0 || size[k] > room - written)
            return REFUSED;
        for (int64_t i = 0; i < size[k]; i++)
            out[written++] = starts[k] + i;
    }
    return written == room ? written : REFUSED;
}

PASS(ranges, "i8:n i8:n i8:*", I8(0), I8(1), COUNT(0), I8(2), COUNT(2))

/* Return how many cycles the ranges cover before a time; *position: position of the last look-up, where to start. */
static uint64_t covered_before(const int64_t *start, const int64_t *end, const uint64_t *total, int64_t ranges,
                               int64_t moment, int64_t *position)
{
    uint64_t beyond;
    *position = moment == INT64_MAX ? ranges : near_key(start, ranges, *position, moment + 1);
    if (!*position)
        return 0;
    beyond = end[*position - 1] > moment ? (uint64_t)end[*position - 1] - (uint64_t)moment : 0;
    return total[*position] - beyond;
}

/*
 * Write the number of cycles of each interval that are covered by ranges.
 *
 * start, end: the ranges, ascending and disjoint; total: scratch, ranges + 1; begins, ends: the intervals, in any
 * order, faster if successive intervals are near each other.
 */
static int64_t satview_covered(const int64_t *start, const int64_t *end, int64_t ranges, uint64_t *total,
                               const int64_t *begins, const int64_t *ends, int64_t count, int64_t *out)
{
    int64_t begin_position = 0, end_position = 0;
    total[0] = 0;
    for (int64_t k = 0; k < ranges; k++)
        total[k + 1] = total[k] + ((uint64_t)end[k] - (uint64_t)start[k]);
    for (int64_t i = 0; i < count; i++)
        out[i] = (int64_t)(covered_before(start, end, total, ranges, ends[i], &end_position) -
                           covered_before(start, end, total, ranges, begins[i], &begin_position));
    return 0;
}

PASS(covered, "i8:g i8:g u8:g+1 i8:n i8:n i8:n", I8(0), I8(1), COUNT(0), U8(2), I8(3), I8(4), COUNT(3), I8(5))

/*
 * Update count, first row and last row by code, and counts by thread and role, with a block of events.
 *
 * narrow or wide: thread of each event; from: row of the first event; role: role of each code, below `roles`; counts,
 * first_row, last_row: by code; by_thread: by thread and role.
 *
 * Returns 0; REFUSED if a thread or role is out of range.
 */
static int64_t satview_event_counts(const uint16_t *code, const uint16_t *narrow, const uint32_t *wide, int64_t count,
                                    int64_t from, const uint8_t *role, int64_t roles, int64_t threads,
                                    int64_t *counts, int64_t *first_row, int64_t *last_row, int64_t *by_thread)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t number = code[i] & CODE_MASK, thread = narrow ? narrow[i] : wide[i];
        if (thread >= threads || role[number] >= roles)
            return REFUSED;
        if (!counts[number]++)
            first_row[number] = from + i;
        last_row[number] = from + i;
        by_thread[thread * roles + role[number]]++;
    }
    return 0;
}

PASS(event_counts,
     "u2:n u2|u4:n n u1:32768 n:o n:t i8:32768 i8:32768 i8:32768 i8:to",
     U2(0), U2(1), U4(1), COUNT(0), NUMBER(2), U1(3), NUMBER(4), NUMBER(5), I8(6), I8(7), I8(8), I8(9))
