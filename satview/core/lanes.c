/*
 * The passes that make the lanes of threads, CPUs and processes from state events. core.h has the rules.
 */

#include "core.h"

/* Return the number of the lowest set bit of a word that is not 0, by a de Bruijn sequence. */
static int lowest_bit(uint64_t word)
{
    static const uint8_t number[64] = {
        0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
        62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
        63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
        46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
    };
    return number[((word & (~word + 1)) * UINT64_C(0x03F79D71B4CB0A89)) >> 58];
}

/*
 * Write the runs of all threads: row of the event that starts a run, ascending; end of the run, which is the thread's
 * next state or the start of another thread on the CPU; and whether the latter came first.
 *
 * Events are visited in the order of time, as they are in memory; visiting them by thread would miss the cache.
 *
 * index: rows of state events, grouped by thread, ascending within each; start: index at which the rows of each thread
 * begin, threads + 1; narrow or wide: thread of each event; bits: zeros, a bit for each event, rounded up to 64; open,
 * seen: for each thread -1 and 0.
 *
 * Returns the number of runs; -1 if a thread has another number of states in `index` than events.
 */
static int64_t satview_run_slices(const uint32_t *index, int64_t indexed, const int64_t *start, int64_t threads,
                                  const uint16_t *code, const uint8_t *value, int64_t running, const int64_t *time,
                                  const uint8_t *cpu, const uint16_t *narrow, const uint32_t *wide, int64_t events,
                                  int64_t end, uint64_t *bits, int64_t words, int64_t *open, int64_t *seen,
                                  uint32_t *rows, int64_t *ends, uint8_t *is_cut)
{
    int64_t on_cpu[CPU_NUMBERS], count = 0;
    if (start[0] < 0 || start[threads] > indexed)
        return REFUSED;
    for (int64_t k = start[0]; k < start[threads]; k++) {
        if (index[k] >= events || index[k] >> 6 >= words)
            return REFUSED;
        bits[index[k] >> 6] |= (uint64_t)1 << (index[k] & 63);
    }
    for (int number = 0; number < CPU_NUMBERS; number++)
        on_cpu[number] = -1;
    for (int64_t word = 0; word < words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            int64_t row = word * 64 + lowest_bit(left), thread = narrow ? narrow[row] : wide[row];
            int64_t number = cpu[row], now = time[row];
            if (thread >= threads)
                return -1;
            seen[thread]++;
            if (open[thread] >= 0 && now <= ends[open[thread]]) {
                ends[open[thread]] = now;
                is_cut[open[thread]] = 0;
            }
            open[thread] = -1;
            if (value[code[row] & CODE_MASK] != running)
                continue;
            if (on_cpu[number] >= 0 && now < ends[on_cpu[number]]) {
                ends[on_cpu[number]] = now;
                is_cut[on_cpu[number]] = 1;
            }
            rows[count] = (uint32_t)row;
            ends[count] = end;
            is_cut[count] = 0;
            on_cpu[number] = open[thread] = count++;
        }
    for (int64_t thread = 0; thread < threads; thread++)
        if (seen[thread] != start[thread + 1] - start[thread])
            return -1;
    return count;
}

PASS(run_slices,
     "u4:i i8:t+1 u2:n u1:32768 n i8:n u1:n u2|u4:n n u8:w i8:t i8:t u4:i i8:i u1:i",
     U4(0), COUNT(0), I8(1), COUNT(10), U2(2), U1(3), NUMBER(4), I8(5), U1(6), U2(7), U4(7), COUNT(2), NUMBER(8),
     U8(9), COUNT(9), I8(10), I8(11), U4(12), I8(13), U1(14))

/*
 * Write the complete state intervals of threads. Adjacent intervals of one state are merged, runs only on the same CPU.
 *
 * index, start: see run_slices; ends: the event that ends each state, `none` if events are missing, `open` if the trace
 * ends before, which becomes the number of events; wanted: by value; left_out: by thread. of_thread: receives the
 * number of intervals of each thread.
 *
 * Returns the number of intervals.
 */
static int64_t satview_whole_spans(const uint32_t *index, int64_t indexed, const int64_t *start, int64_t threads,
                                   const uint32_t *ends, const uint16_t *code, const uint8_t *cpu, int64_t events,
                                   const uint8_t *value, const uint8_t *wanted, const uint8_t *left_out,
                                   int64_t running, int64_t none, int64_t open, int64_t *of_thread,
                                   uint8_t *out_value, uint32_t *out_row, uint32_t *out_end, int64_t room)
{
    int64_t count = 0;
    for (int64_t thread = 0; thread < threads; thread++) {
        if (start[thread] < 0 || start[thread + 1] > indexed)
            return REFUSED;
        int64_t first_span = count, last_cpu = -1;
        for (int64_t k = left_out[thread] ? start[thread + 1] : start[thread]; k < start[thread + 1]; k++) {
            int64_t row = index[k];
            if (row >= events)
                return REFUSED;
            int64_t now = value[code[row] & CODE_MASK], end = ends[k] == open ? events : ends[k];
            if (ends[k] == none || !wanted[now])
                continue;
            int goes_on = count > first_span && out_value[count - 1] == now && out_end[count - 1] == row &&
                          (now != running || last_cpu == cpu[row]);
            last_cpu = cpu[row];
            if (goes_on) {
                out_end[count - 1] = (uint32_t)end;
                continue;
            }
            if (count >= room)
                return REFUSED;
            out_value[count] = (uint8_t)now;
            out_row[count] = (uint32_t)row;
            out_end[count] = (uint32_t)end;
            count++;
        }
        of_thread[thread] = count - first_span;
    }
    return count;
}

PASS(whole_spans, "u4:i i8:t+1 u4:i u2:n u1:n u1:32768 u1:256 u1:t n n n i8:t u1:r u4:r u4:r",
     U4(0), COUNT(0), I8(1), COUNT(7), U4(2), U2(3), U1(4), COUNT(3), U1(5), U1(6), U1(7), NUMBER(8), NUMBER(9),
     NUMBER(10), I8(11), U1(12), U4(13), U4(14), COUNT(12))

/*
 * Write the intervals of a CPU's lane: its runs, and the gaps between them.
 *
 * rows, ends: runs of all CPUs, ascending; cpu, time, narrow or wide: CPU, time and thread of each event; value: lane
 * value of each thread; gap: lane value of gaps; end: end of the trace. The output has room for two intervals per run.
 *
 * Returns the number of intervals; REFUSED if a run has an event or thread that does not exist.
 */
static int64_t satview_cpu_states(const uint32_t *rows, const int64_t *ends, int64_t count, const uint8_t *cpu,
                                  const int64_t *time, const uint16_t *narrow, const uint32_t *wide, int64_t events,
                                  int64_t number, const uint8_t *value, int64_t threads, int64_t gap, int64_t end,
                                  int64_t *out_time, uint8_t *out_value, uint32_t *out_event, uint16_t *out_narrow,
                                  uint32_t *out_wide, int64_t room)
{
    int64_t intervals = 0, free_from = INT64_MAX;
    for (int64_t i = 0; i <= count; i++) {
        int64_t begin = end;
        if (i < count) {
            if (rows[i] >= events)
                return REFUSED;
            if (cpu[rows[i]] != number)
                continue;
            begin = time[rows[i]];
        }
        if (free_from < begin) {
            /* Of intervals that begin in the same cycle, only the last is kept. */
            intervals -= intervals && out_time[intervals - 1] == free_from;
            if (intervals >= room)
                return REFUSED;
            out_time[intervals] = free_from;
            out_value[intervals] = (uint8_t)gap;
            out_event[intervals] = UINT32_MAX;
            if (out_narrow)
                out_narrow[intervals] = 0;
            else
                out_wide[intervals] = 0;
            intervals++;
        }
        if (i < count) {
            int64_t thread = narrow ? narrow[rows[i]] : wide[rows[i]];
            if (thread >= threads)
                return REFUSED;
            intervals -= intervals && out_time[intervals - 1] == begin;
            if (intervals >= room)
                return REFUSED;
            out_time[intervals] = begin;
            out_value[intervals] = value[thread];
            out_event[intervals] = rows[i];
            if (out_narrow)
                out_narrow[intervals] = (uint16_t)thread;
            else
                out_wide[intervals] = (uint32_t)thread;
            intervals++;
            free_from = ends[i];
        }
    }
    return intervals;
}

PASS(cpu_states,
     "u4:s i8:s u1:n i8:n u2|u4:n n u1:t n n i8:o u1:o u4:o u2|u4:o",
     U4(0), I8(1), COUNT(0), U1(2), I8(3), U2(4), U4(4), COUNT(2), NUMBER(5), U1(6), COUNT(6), NUMBER(7), NUMBER(8),
     I8(9), U1(10), U4(11), U2(12), U4(12), COUNT(9))

/*
 * Write start and lane value of the states of a thread; `dead` directly after `destroyed` becomes `absent`.
 * Returns 0; REFUSED if a row is out of range.
 */
static int64_t satview_thread_states(const uint32_t *rows, int64_t count, const uint16_t *code, const int64_t *time,
                                     int64_t events, const uint8_t *value, int64_t destroyed, int64_t dead,
                                     int64_t absent, int64_t *out_time, uint8_t *out_value)
{
    int64_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] >= events)
            return REFUSED;
        out_time[i] = time[rows[i]];
        out_value[i] = value[code[rows[i]] & CODE_MASK];
        if (out_value[i] == dead && last == destroyed)
            out_value[i] = (uint8_t)absent;
        last = code[rows[i]];
    }
    return 0;
}

PASS(thread_states,
     "u4:r u2:n i8:n u1:32768 n n n i8:r u1:r",
     U4(0), COUNT(0), U2(1), I8(2), COUNT(1), U1(3), NUMBER(4), NUMBER(5), NUMBER(6), I8(7), U1(8))

/* Next interval of a lane, in the heap that merges several lanes by time. */
struct head {
    int64_t time, lane;
};

static int is_earlier(struct head head, struct head other)
{
    return head.time < other.time || (head.time == other.time && head.lane < other.lane);
}

/* Restore the heap order after its top has changed. */
static void settle(struct head *heap, int64_t size)
{
    struct head top = heap[0];
    int64_t hole = 0;
    for (int64_t child = 1; child < size; child = 2 * hole + 1) {
        child += child + 1 < size && is_earlier(heap[child + 1], heap[child]);
        if (!is_earlier(heap[child], top))
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = top;
}

/*
 * Write the lane of a process: at each time the highest kind of the values of its threads.
 *
 * time, value, event: intervals of the threads, lane after lane, in time order within each; lane_starts: index at which
 * each lane begins, lanes + 1; next, room: scratch for one and for two numbers per lane; kind: kind of each value, from
 * 0 (absent) to 4; shown: lane value of each kind.
 *
 * Returns the number of intervals; REFUSED if a lane is outside the columns.
 */
static int64_t satview_process_states(const int64_t *time, const uint8_t *value, const uint32_t *event, int64_t count,
                                      const int64_t *lane_starts, int64_t lanes, int64_t *next, int64_t *room,
                                      const uint8_t *kind, const uint8_t *shown, int64_t *out_time, uint8_t *out_value,
                                      uint32_t *out_event)
{
    struct head *heap = (struct head *)room;
    int64_t threads[5] = {0}, intervals = 0, size = 0;
    int last = -1;
    if (lanes < 0 || lane_starts[0] < 0 || lane_starts[lanes] > count)
        return REFUSED;
    for (int k = 0; k < 256; k++)
        if (kind[k] > 4)
            return REFUSED;
    for (int64_t lane = 0; lane < lanes; lane++)
        if (lane_starts[lane + 1] < lane_starts[lane])
            return REFUSED;
    for (int64_t lane = 0; lane < lanes; lane++) {
        struct head entry = {0, lane};
        int64_t place = size;
        next[lane] = lane_starts[lane];
        if (next[lane] == lane_starts[lane + 1])
            continue;
        entry.time = time[next[lane]];
        size++; /* insert the entry into the heap */
        for (; place && is_earlier(entry, heap[(place - 1) / 2]); place = (place - 1) / 2)
            heap[place] = heap[(place - 1) / 2];
        heap[place] = entry;
    }
    while (size) {
        int64_t lane = heap[0].lane, i = next[lane]++, now = heap[0].time;
        int most = 4;
        if (i > lane_starts[lane])
            threads[kind[value[i - 1]]]--;
        threads[kind[value[i]]]++;
        if (next[lane] < lane_starts[lane + 1])
            heap[0].time = time[next[lane]];
        else
            heap[0] = heap[--size];
        settle(heap, size);
        if (size && heap[0].time == now)
            continue; /* of intervals that begin in the same cycle, only the last counts */
        while (most > 0 && threads[most] <= 0)
            most--;
        if (shown[most] == last)
            continue;
        last = shown[most];
        out_time[intervals] = now;
        out_value[intervals] = shown[most];
        out_event[intervals++] = event[i];
    }
    return intervals;
}

PASS(process_states,
     "i8:n u1:n u4:n i8:l+1 i8:l i8:2l u1:256 u1:5 i8:n u1:n u4:n",
     I8(0), U1(1), U4(2), COUNT(0), I8(3), COUNT(4), I8(4), I8(5), U1(6), U1(7), I8(8), U1(9), U4(10))

#define DEEPEST 64 /* maximum nesting depth of interrupts that is tracked */

/*
 * Write who runs on a CPU and which interrupt it handles, with an edge wherever either may change.
 *
 * lane, runner: start and runner of each interval; known, is_known: times at which a gap in the CPU's events begins or
 * ends, and whether events are complete from then on; entered, depth, number: times at which interrupts are entered or
 * left, nesting depth from then on, and the number of an entered interrupt, -1 if it is left. All times ascend. Before
 * its first interval the CPU has the runner of that interval, events are complete, and no interrupt is handled.
 *
 * Returns the number of edges; REFUSED if the output is too small.
 */
static int64_t satview_cpu_timeline(const int64_t *lane, const int32_t *runner, int64_t intervals,
                                    const int64_t *known, const uint8_t *is_known, int64_t changes,
                                    const int64_t *entered, const int64_t *depth, const int64_t *number, int64_t steps,
                                    int64_t *edges, int32_t *who, int64_t *interrupt, int64_t room)
{
    int64_t i = 0, h = 0, k = 0, n = 0, last[DEEPEST + 1] = {-1}, current = -1;
    for (int64_t level = 1; steps && number[0] >= 0 && level <= DEEPEST; level++)
        last[level] = number[0]; /* for levels that have no entry in the trace */
    while (i < intervals || h < changes || k < steps) {
        int64_t time = INT64_MAX;
        if (i < intervals)
            time = lane[i];
        if (h < changes && known[h] < time)
            time = known[h];
        if (k < steps && entered[k] < time)
            time = entered[k];
        while (i < intervals && lane[i] <= time)
            i++;
        while (h < changes && known[h] <= time)
            h++;
        for (; k < steps && entered[k] <= time; k++) {
            int64_t level = depth[k] < 0 ? 0 : depth[k] < DEEPEST ? depth[k] : DEEPEST;
            if (level && number[k] >= 0)
                last[level] = number[k];
            current = last[level];
        }
        if (n >= room)
            return REFUSED;
        edges[n] = time;
        who[n] = intervals ? runner[i ? i - 1 : 0] : 0;
        interrupt[n++] = !h || is_known[h - 1] ? current : -1;
    }
    return n;
}

PASS(cpu_timeline,
     "i8:a i4:a i8:h u1:h i8:k i8:k i8:k i8:r i4:r i8:r",
     I8(0), I4(1), COUNT(0), I8(2), U1(3), COUNT(2), I8(4), I8(5), I8(6), COUNT(4), I8(7), I4(8), I8(9), COUNT(7))
