/*
 * The pass that computes the times of events, by rules 1 to 4 of section 5.3 of the format; and cheapest paths.
 */

#include "core.h"

static const int64_t ROLLOVER = (int64_t)1 << 32;
static const int64_t SLACK = (int64_t)1 << 30;
static const int64_t UNSET = -((int64_t)1 << 62);

/* Kinds of entries in the log of the clock. */
enum { LOG_SEED = 0, LOG_TIME = 1, LOG_CROSSING = 2, LOG_WIDTH = 4 };

/* State of the clock, per CPU. */
typedef struct {
    int64_t *reference;   /* latest time assigned, UNSET = none */
    int64_t start[CPUS];  /* number of rollovers at the last TIME event */
    int64_t limit[CPUS];  /* time of the next rollover, until an event passes it; lowest value without a reference */
    int64_t beyond[CPUS]; /* first event after the rollover, -1 = none */
    int64_t *log;
    int64_t entries;
} satview_clock_state;

static void note(satview_clock_state *clock, int64_t kind, int64_t row, int64_t amount, int64_t extra)
{
    int64_t *entry = clock->log + LOG_WIDTH * clock->entries++;
    entry[0] = kind;
    entry[1] = row;
    entry[2] = amount;
    entry[3] = extra;
}

static void set_reference(satview_clock_state *clock, int cpu, int64_t time)
{
    clock->reference[cpu] = time;
    clock->start[cpu] = time >> 32;
    clock->limit[cpu] = time == UNSET ? INT64_MIN : (clock->start[cpu] + 1) * ROLLOVER;
    clock->beyond[cpu] = -1;
}

static void note_crossing(satview_clock_state *clock, int cpu)
{
    if (clock->beyond[cpu] >= 0)
        note(clock, LOG_CROSSING, clock->beyond[cpu], (clock->reference[cpu] >> 32) - clock->start[cpu], cpu);
}

/* Return the time of a stamp: up to a quarter of a rollover before the reference, or up to three quarters after it. */
static inline int64_t unwrapped(int64_t reference, uint32_t stamp)
{
    int64_t middle = reference + SLACK; /* the time is at most half a rollover from it */
    return middle + (int32_t)(stamp - (uint32_t)middle);
}

/* Write the times of normal events from i on; return the first that passes a rollover or has no reference, or end. */
static int64_t place(const satview_clock_state *clock, const uint32_t *stamp, const uint8_t *cpu, int64_t i,
                     int64_t end, int64_t *out)
{
    int64_t *reference = clock->reference;
    for (; i < end; i++) {
        uint8_t number = cpu[i] & CPU_MASK;
        int64_t before = reference[number], time = unwrapped(before, stamp[i]);
        if (time >= clock->limit[number])
            break;
        reference[number] = time > before ? time : before;
        out[i] = time;
    }
    return i;
}

/*
 * Write the times of the events of a chunk.
 *
 * time_row, time_value: CONTROL TIME events, ascending; a negative value is unusable. shared: BUFFER events that take
 * the time of the event after them and do not change the clock, ascending. reference: latest time per CPU; last: last
 * time on any CPU; both are updated for the next chunk.
 *
 * log: entries for the review of the clock, LOG_WIDTH numbers each, in file order for each CPU:
 *   LOG_SEED, row, 0, 0: the first event of a CPU, without a TIME event before it;
 *   LOG_TIME, row, reference before, 1 if the CPU had events before: a usable TIME event;
 *   LOG_CROSSING, row, rollovers, CPU: the first event after a rollover without a TIME event in between.
 * Returns the number of log entries; REFUSED if the log is too small.
 */
static int64_t satview_clock(const uint32_t *stamp, const uint8_t *cpu, int64_t count, const int64_t *time_row,
                             const int64_t *time_value, int64_t times, const int64_t *shared, int64_t shareds,
                             int64_t *reference, int64_t *last, int64_t *out, int64_t *log, int64_t log_room)
{
    satview_clock_state clock = {.reference = reference, .log = log};
    int64_t k = 0, b = 0, i = 0, latest = *last;
    for (int c = 0; c < CPUS; c++)
        set_reference(&clock, c, reference[c]);
    while (i < count) {
        int64_t end = count, before = i, value = -1, had;
        int number;
        while (k < times && time_row[k] < i)
            k++;
        while (b < shareds && shared[b] < i)
            b++;
        if (k < times && time_row[k] < end)
            end = time_row[k];
        if (b < shareds && shared[b] < end)
            end = shared[b];
        i = place(&clock, stamp, cpu, i, end, out);
        if (i > before)
            latest = out[i - 1];
        if (i == count)
            break;
        if (b < shareds && shared[b] == i) {
            i++;
            continue;
        }
        if (clock.entries + 3 > log_room)
            return REFUSED;
        number = cpu[i] & CPU_MASK;
        had = reference[number];
        if (k < times && time_row[k] == i)
            value = time_value[k];
        if (value >= 0) {
            /* Without a reference, the CPU has no event before this TIME; the latest time of another CPU is logged. */
            note_crossing(&clock, number);
            note(&clock, LOG_TIME, i, had == UNSET ? latest : had, had != UNSET);
            set_reference(&clock, number, value);
        } else if (had == UNSET) {
            note(&clock, LOG_SEED, i, 0, 0);
            set_reference(&clock, number, latest);
        }
        out[i] = latest = unwrapped(reference[number], stamp[i]);
        if (value < 0 && latest > reference[number]) {
            /* Only for other events: the stamp of a TIME is read after its counter and does not move the reference. */
            reference[number] = latest;
            if (latest >= clock.limit[number]) {
                clock.beyond[number] = i;
                clock.limit[number] = INT64_MAX;
            }
        }
        i++;
    }
    for (int c = 0; c < CPUS; c++) {
        if (clock.entries + 1 > log_room)
            return REFUSED;
        note_crossing(&clock, c);
    }
    /* Successive BUFFER events all take the time of the event after them; a chunk never ends with a BUFFER event. */
    for (b = shareds; b-- > 0;)
        if (shared[b] + 1 < count)
            out[shared[b]] = out[shared[b] + 1];
    if (count)
        *last = out[count - 1];
    return clock.entries;
}

PASS(clock,
     "u4:n u1:n i8:t i8:t i8:s i8:64 i8:1 i8:n i8:*",
     U4(0), U1(1), COUNT(0), I8(2), I8(3), COUNT(2), I8(4), COUNT(4), I8(5), I8(6), I8(7), I8(8),
     COUNT(8) / LOG_WIDTH)

/*
 * Find the cheapest path through n steps of k choices; return n.
 *
 * cost: cost of each choice (n, k); step: cost of going from each choice to each choice of the next step (n - 1, k, k).
 * ahead, behind: receive the minimum cost of a path up to each choice, and from each choice on, both with the choice.
 * best: receives the choice in each step, the first of equally cheap choices.
 */
static int64_t satview_cheapest_path(int64_t k, const double *cost, int64_t n, const double *step, int64_t steps,
                                     double *ahead, double *behind, int64_t *best)
{
    if (k < 1 || n < 1 || steps != (n - 1) * k * k)
        return REFUSED;
    memcpy(ahead, cost, (size_t)(n * k) * sizeof *cost);
    memcpy(behind, cost, (size_t)(n * k) * sizeof *cost);
    for (int64_t i = 1; i < n; i++)
        for (int64_t to = 0; to < k; to++) {
            double least = ahead[(i - 1) * k] + step[(i - 1) * k * k + to];
            for (int64_t from = 1; from < k; from++) {
                double sum = ahead[(i - 1) * k + from] + step[((i - 1) * k + from) * k + to];
                least = sum < least ? sum : least;
            }
            ahead[i * k + to] += least;
        }
    for (int64_t i = n - 2; i >= 0; i--)
        for (int64_t from = 0; from < k; from++) {
            double least = behind[(i + 1) * k] + step[(i * k + from) * k];
            for (int64_t to = 1; to < k; to++) {
                double sum = behind[(i + 1) * k + to] + step[(i * k + from) * k + to];
                least = sum < least ? sum : least;
            }
            behind[i * k + from] += least;
        }
    for (int64_t i = n - 1; i >= 0; i--) {
        double least = 0;
        best[i] = 0;
        for (int64_t from = 0; from < k; from++) {
            double sum = ahead[i * k + from] + (i < n - 1 ? step[(i * k + from) * k + best[i + 1]] : 0);
            if (!from || sum < least) {
                least = sum;
                best[i] = from;
            }
        }
    }
    return n;
}

PASS(cheapest_path,
     "n:k f8:kn f8:* f8:kn f8:kn i8:n",
     NUMBER(0), F8(1), COUNT(5), F8(2), COUNT(2), F8(3), F8(4), I8(5))
