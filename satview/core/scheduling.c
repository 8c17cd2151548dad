/*
 * One pass over the events of a trace that sums up the states of threads, the runs on CPUs, and the time in interrupts.
 * Losses must affect all CPUs at the same time. core.h has the rules.
 */

#include "core.h"

enum { NOBODY = -1, NOT_BEGUN = -2 };

/* Flags of a code. */
enum { IS_STATE = 1, IS_RUN = 2, IS_ENTRY = 4, IS_EXIT = 8 };

/* Intervals of one thread and lane value. */
struct state_sum {
    int64_t count, total, longest, longest_start;
};

/* Runs of one thread. */
struct run_sum {
    int64_t cpu, interrupted;       /* cycles without interrupts, and of interrupts */
    int64_t runs, switches;         /* number of runs; switches: the same, but 0 for row 0 of the thread table */
    int64_t longest, longest_start; /* longest_start: -1 without runs */
    int64_t migrations, preemptions;
};

/* Runs on one CPU. */
struct cpu_sum {
    int64_t busy, idle, handled;    /* cycles; handled: in interrupts */
    int64_t runs, switches;         /* number of runs, and of changes to another thread */
    int64_t longest, longest_start; /* longest run of a thread that is not idle */
    int64_t events;                 /* number of events by which threads start to run */
    int64_t first_start;            /* start of the first run, -1 without runs */
};

/* Present state of a thread. */
struct thread {
    int64_t now, since;  /* lane value, and its start */
    int64_t before;      /* code of the last event, -1 = none */
    int64_t events;      /* number of events so far */
    int64_t first, last; /* times of the first and the last event */
    int64_t is_created;  /* whether its first event is its creation by the initial dump, before the dump of its state */
    int64_t on;          /* CPU on which the last event started a run, or NOBODY */
    int64_t last_cpu;    /* CPU of the last run */
    int64_t longest_cpu; /* CPU of the longest run */
};
_Static_assert(sizeof(struct thread) == 10 * sizeof(int64_t), "the table `now` has ten numbers a thread");

/* Arguments of satview_scheduling: events, rules, and sums. */
struct scheduling {
    const uint16_t *code, *narrow; /* narrow or wide: thread of each event */
    const uint32_t *wide;
    const uint8_t *cpu;
    const int64_t *time;
    int64_t events;
    const uint8_t *kind;           /* flags by code */
    const uint8_t *value;          /* lane values by code, for normal threads, then for idle threads */
    const uint8_t *is_idle;        /* by thread */
    int64_t destroyed, created;    /* codes */
    int64_t running, ready, dead;  /* lane values, as the next two */
    int64_t absent, unknown;
    int64_t dump_end, start, end;  /* end of the initial dump; start and end of the trace */
    int64_t values;                /* upper bound of lane values, exclusive */
    int64_t threads, cpus;
    const int64_t *cut;            /* start of each loss of events, ascending */
    int64_t cuts;
    const int64_t *lost, *found;   /* start and end of each loss, adjacent losses merged */
    int64_t losses;
    const int64_t *gone, *back;    /* the losses that are longer than a cycle; shorter ones hide no state */
    int64_t gaps;
    struct thread *now;            /* by thread; scratch except for `events` */
    struct state_sum *states;      /* by thread and value */
    struct run_sum *runs;          /* by thread */
    struct cpu_sum *of_cpu;        /* by CPU */
    int64_t *busy;                 /* cycles by CPU and thread, -1 if the thread never ran on the CPU */
    int64_t *known;                /* number of runs of non-idle threads, and of those that overlap the previous run */
};

/* An interval in which a CPU runs one thread, or NOBODY. */
struct stay {
    int64_t thread, start;
    int64_t handled; /* cycles of interrupts before the interval */
};

/* Present state of a CPU. */
struct cpu {
    struct stay run;  /* the present run */
    struct stay next; /* the interval since the last change; a later change in the same cycle replaces it */
    int64_t thread;   /* thread whose run no event has stopped yet, or NOBODY */
    int64_t last;     /* thread of the previous run, 0 = none */
    int64_t last_end; /* end of the previous run */
    int64_t worked;   /* non-idle thread that started last, 0 = none */
    int64_t began;    /* its start */
    int64_t depth, entered, handled; /* interrupts: nesting depth, start of the outermost, cycles of earlier ones */
    int64_t clear;                   /* up to this time, the CPU may be in an interrupt whose entry is not recorded */
    int is_entered;                  /* whether an interrupt was entered since the last loss */
};

/* Sums and differences of cycles without undefined overflow, as a damaged file may have any values. */
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t handled_until(const struct cpu *on, int64_t now)
{
    return plus(on->handled, on->depth ? minus(now, on->entered) : 0);
}

/* Add the present run of a CPU, which ends at the start of the next interval, to the sums. */
static void end_run(const struct scheduling *of, int64_t number, struct cpu *on)
{
    int64_t thread = on->run.thread, pair = number * of->threads + thread, length, net, interrupted;
    struct cpu_sum *cpu = of->of_cpu + number;
    struct run_sum *sum;
    if (thread < 0)
        return;
    sum = of->runs + thread;
    length = minus(on->next.start, on->run.start);
    interrupted = minus(on->next.handled, on->run.handled);
    net = minus(length, interrupted);
    sum->cpu = plus(sum->cpu, net);
    sum->interrupted = plus(sum->interrupted, interrupted);
    if (thread)
        on->last_end = on->next.start;
    /* Of equally long runs, the first run on the lowest CPU is taken. */
    if (length > sum->longest || (length == sum->longest && number < of->now[thread].longest_cpu)) {
        sum->longest = length;
        sum->longest_start = on->run.start;
        of->now[thread].longest_cpu = number;
    }
    if (of->is_idle[thread]) {
        cpu->idle = plus(cpu->idle, net);
        return;
    }
    cpu->busy = plus(cpu->busy, net);
    if (length > cpu->longest) {
        cpu->longest = length;
        cpu->longest_start = on->run.start;
    }
    of->busy[pair] = plus(of->busy[pair] < 0 ? 0 : of->busy[pair], net);
}

/* Return whether events are missing between two times. */
static int is_lossy(const struct scheduling *of, int64_t since, int64_t until)
{
    int64_t before = of->losses ? near_key(of->lost, of->losses, of->losses / 2, until) : 0;
    return before && of->found[before - 1] > since;
}

/* Count a new run, and a migration if its thread last ran on another CPU. */
static void begin_run(const struct scheduling *of, int64_t number, struct cpu *on)
{
    int64_t thread = on->run.thread;
    struct thread *state;
    int is_rest;
    if (thread < 0)
        return;
    state = of->now + thread;
    if (of->of_cpu[number].first_start < 0)
        of->of_cpu[number].first_start = on->run.start;
    /* After a loss, it may be the rest of the previous run, as changes of priority log RUNNING too. */
    is_rest = thread && on->last == thread && is_lossy(of, on->last_end, on->run.start);
    of->runs[thread].runs += !is_rest;
    if (!thread)
        return;
    of->runs[thread].switches += !is_rest;
    of->of_cpu[number].runs += !is_rest;
    of->of_cpu[number].switches += on->last && on->last != thread;
    on->last = thread;
    if (of->is_idle[thread])
        return;
    of->runs[thread].migrations += !is_rest && state->last_cpu >= 0 && state->last_cpu != number;
    state->last_cpu = number;
}

/* End the present run of a CPU and start the next, if its thread has changed. */
static void settle(const struct scheduling *of, int64_t number, struct cpu *on)
{
    if (on->next.thread == on->run.thread)
        return;
    end_run(of, number, on);
    on->run = on->next;
    begin_run(of, number, on);
}

/* Record that a CPU runs another thread, or NOBODY, from a time on. */
static void change(const struct scheduling *of, int64_t number, struct cpu *cpus, int64_t thread, int64_t now)
{
    struct cpu *on = cpus + number;
    if (number >= of->cpus)
        return;
    if (now > on->next.start)
        settle(of, number, on);
    on->next.thread = thread;
    on->next.start = now;
    on->next.handled = handled_until(on, now);
}

/* Record on which CPU, if any, a thread runs after one of its events. */
static void place(const struct scheduling *of, struct cpu *cpus, int64_t thread, int64_t number, int64_t now,
                  int is_run)
{
    struct thread *state = of->now + thread;
    int64_t was = state->on;
    if (was >= 0 && cpus[was].thread == thread) {
        change(of, was, cpus, NOBODY, now);
        cpus[was].thread = NOBODY;
    }
    state->on = is_run ? number : NOBODY;
    if (!is_run)
        return;
    if (was != number && thread && !of->is_idle[thread]) {
        int64_t other = cpus[number].worked;
        of->known[0]++;
        of->known[1] += other && other != thread && of->now[other].on == number &&
                        !is_lossy(of, cpus[number].began, now);
        cpus[number].worked = thread;
        cpus[number].began = now;
    }
    if (number < of->cpus)
        of->of_cpu[number].events++;
    change(of, number, cpus, thread, now);
    cpus[number].thread = thread;
}

/*
 * Start the runs that the initial dump shows at the start of the trace. If several run events of a CPU are in its first
 * cycle, the last of them counts. Returns 0; -1 if a thread does not exist.
 */
static int take_dump(const struct scheduling *of, struct cpu *cpus)
{
    int64_t first_time[CPU_NUMBERS];
    for (int number = 0; number < CPU_NUMBERS; number++)
        first_time[number] = INT64_MAX;
    for (int64_t i = 0; i < of->events && of->time[i] <= of->dump_end; i++) {
        int64_t own = of->cpu[i], now = of->time[i], thread = of->narrow ? of->narrow[i] : of->wide[i];
        int kind = of->kind[of->code[i] & CODE_MASK];
        if (!(kind & IS_STATE))
            continue;
        if (thread >= of->threads)
            return -1;
        for (int64_t number = 0; number < of->cpus; number++)
            if (first_time[number] == now && cpus[number].next.thread == thread)
                cpus[number].next.thread = NOBODY;
        if (!(kind & IS_RUN))
            continue;
        first_time[own] = first_time[own] < now ? first_time[own] : now;
        if (first_time[own] == now)
            cpus[own].next.thread = thread;
    }
    for (int64_t number = 0; number < of->cpus; number++)
        if (cpus[number].next.thread >= 0)
            settle(of, number, cpus + number);
    return 0;
}

static void step_interrupt(struct cpu *on, int kind, int64_t now)
{
    if (kind & IS_ENTRY) {
        on->is_entered = 1;
        if (!on->depth++)
            on->entered = now;
    } else if (!on->is_entered) {
        on->clear = now;
    } else if (on->depth && !--on->depth) {
        on->handled = plus(on->handled, minus(now, on->entered));
    }
}

/* Add the present state of a thread, which ends at `end`, to the sums. */
static void end_state(const struct scheduling *of, int64_t thread, int64_t end)
{
    const struct thread *state = of->now + thread;
    struct state_sum *sum = of->states + thread * of->values + state->now;
    int64_t length;
    if (end <= state->since)
        return;
    length = minus(end, state->since);
    sum->count++;
    sum->total = plus(sum->total, length);
    if (length > sum->longest) {
        sum->longest = length;
        sum->longest_start = state->since;
    }
}

/* If events are missing before a thread's next event at `end`, set its state to unknown from the loss on. */
static void doubt(const struct scheduling *of, int64_t thread, int64_t end)
{
    struct thread *state = of->now + thread;
    /* The state of the first event holds for at least one cycle. */
    int64_t heard = plus(state->last, state->last == state->first), from, since;
    int64_t gap = near_key(of->back, of->gaps, of->gaps / 2, plus(heard, 1));
    if (gap == of->gaps || state->now == of->unknown)
        return;
    since = plus(of->gone[gap] > state->first ? of->gone[gap] : state->first, 1);
    from = since > state->last ? since : state->last;
    if (from >= end)
        return;
    end_state(of, thread, from);
    state->now = of->unknown;
    state->since = from;
}

/* Change the state of a thread at one of its events. Returns 0; -1 if the lane value is out of range. */
static int change_state(const struct scheduling *of, int64_t thread, int64_t code, int64_t now)
{
    struct thread *state = of->now + thread;
    int64_t value = of->value[(of->is_idle[thread] ? CODE_MASK + 1 : 0) + (code & CODE_MASK)];
    int64_t number = state->events++;
    if (value == of->dead && state->before == of->destroyed)
        value = of->absent; /* DEAD directly after the destruction means that the thread no longer exists */
    if (value >= of->values)
        return -1;
    if (number == 0) {
        state->first = now;
        state->is_created = code == of->created && now <= of->dump_end;
        if (now <= of->dump_end)
            state->now = value; /* the dump shows the state since the start */
        else if (code == of->created)
            state->now = of->absent;
    } else {
        if (number == 1 && state->is_created)
            state->now = value; /* the dump logs the creation of a thread before its state */
        if (of->gaps)
            doubt(of, thread, now);
    }
    state->before = code;
    state->last = now;
    if (value == state->now)
        return 0;
    end_state(of, thread, now);
    of->runs[thread].preemptions += value == of->ready && state->now == of->running;
    state->now = value;
    state->since = now;
    return 0;
}

/* Position of the pass in the lists of losses. */
struct missing {
    int64_t cuts, losses;
    int64_t until; /* end of the last loss; interrupt events before it, between merged losses, are ignored */
};

/* End runs and interrupts of all CPUs at the losses before a time. */
static void cut(const struct scheduling *of, struct cpu *cpus, struct missing *so_far, int64_t until)
{
    for (; so_far->losses < of->losses && of->lost[so_far->losses] < until; so_far->losses++) {
        int64_t lost = of->lost[so_far->losses];
        so_far->until = of->found[so_far->losses];
        for (struct cpu *on = cpus; on < cpus + CPU_NUMBERS; on++) {
            if (on->clear != lost) /* otherwise nothing is known before the loss either */
                on->handled = handled_until(on, plus(lost, 1));
            on->depth = 0;
            on->clear = so_far->until;
            on->is_entered = 0;
        }
    }
    for (; so_far->cuts < of->cuts && of->cut[so_far->cuts] < until; so_far->cuts++)
        for (int64_t number = 0; number < CPU_NUMBERS; number++)
            if (cpus[number].thread != NOBODY) {
                change(of, number, cpus, NOBODY, plus(of->cut[so_far->cuts], 1));
                cpus[number].thread = NOBODY;
            }
}

static void begin(const struct scheduling *of, struct cpu *cpus)
{
    const struct stay none = {NOT_BEGUN, of->start, 0}, nobody = {NOBODY, of->start, 0};
    for (int64_t thread = 0; thread < of->threads; thread++) {
        const struct thread fresh = {of->unknown, of->start, -1, 0, 0, 0, 0, NOBODY, -1, CPU_NUMBERS};
        of->now[thread] = fresh;
    }
    memset(cpus, 0, CPU_NUMBERS * sizeof *cpus);
    for (int number = 0; number < CPU_NUMBERS; number++) {
        cpus[number].run = none;
        cpus[number].next = nobody;
        cpus[number].thread = NOBODY;
        cpus[number].clear = of->start;
    }
}

static void finish(const struct scheduling *of, struct cpu *cpus)
{
    for (int64_t number = 0; number < of->cpus; number++) {
        change(of, number, cpus, NOBODY, of->end);
        settle(of, number, cpus + number);
        of->of_cpu[number].handled = handled_until(cpus + number, of->end);
    }
    for (int64_t thread = 0; thread < of->threads; thread++) {
        if (of->gaps && of->now[thread].events)
            doubt(of, thread, of->end);
        end_state(of, thread, of->end);
    }
}

/*
 * Sum up states, runs and interrupts.
 *
 * The results equal those of analysis.times.state_times for the result of state_spans, of analysis.times.cpu_times for
 * the runs of Basis, and of verdicts.whole_states.runs_and_overlaps.
 *
 * Before the call, all sums are 0, and `busy` and all start times are -1.
 *
 * Returns 0; -1 if a thread or a lane value is out of range.
 */
static int64_t satview_scheduling(const struct scheduling *of)
{
    struct cpu cpus[CPU_NUMBERS];
    struct missing so_far = {0, 0, INT64_MIN};
    if (of->cpus < 0 || of->cpus > CPU_NUMBERS || of->absent < 0 || of->absent >= of->values || of->unknown < 0 ||
        of->unknown >= of->values)
        return -1;
    begin(of, cpus);
    if (take_dump(of, cpus))
        return -1;
    for (int64_t i = 0; i < of->events; i++) {
        int64_t code = of->code[i] & CODE_MASK, thread;
        int kind = of->kind[code];
        if (!kind)
            continue;
        if (of->cuts)
            cut(of, cpus, &so_far, of->time[i]);
        if (kind & (IS_ENTRY | IS_EXIT)) {
            if (of->time[i] >= so_far.until)
                step_interrupt(cpus + of->cpu[i], kind, of->time[i]);
            continue;
        }
        thread = of->narrow ? of->narrow[i] : of->wide[i];
        if (thread >= of->threads)
            return -1;
        place(of, cpus, thread, of->cpu[i], of->time[i], kind & IS_RUN);
        if (change_state(of, thread, code, of->time[i]))
            return -1;
    }
    cut(of, cpus, &so_far, of->end);
    finish(of, cpus);
    return 0;
}

PASS(scheduling,
     "u2:n u2|u4:n u1:n i8:n u1:32768 u1:65536 u1:t n n n n n n n n n n n:v n:p i8:c i8:l i8:l i8:g i8:g i8:10t "
     "i8:4tv i8:8t i8:9p i8:pt i8:2",
     &(struct scheduling){.code = U2(0), .narrow = U2(1), .wide = U4(1), .cpu = U1(2), .time = I8(3),
                      .events = COUNT(0), .kind = U1(4), .value = U1(5), .is_idle = U1(6),
                      .threads = COUNT(6), .destroyed = NUMBER(7), .created = NUMBER(8),
                      .running = NUMBER(9), .ready = NUMBER(10), .dead = NUMBER(11), .absent = NUMBER(12),
                      .unknown = NUMBER(13), .dump_end = NUMBER(14), .start = NUMBER(15),
                      .end = NUMBER(16), .values = NUMBER(17), .cpus = NUMBER(18), .cut = I8(19),
                      .cuts = COUNT(19), .lost = I8(20), .found = I8(21), .losses = COUNT(20),
                      .gone = I8(22), .back = I8(23), .gaps = COUNT(22), .now = (void *)I8(24),
                      .states = (void *)I8(25), .runs = (void *)I8(26), .of_cpu = (void *)I8(27),
                      .busy = I8(28), .known = I8(29)})
