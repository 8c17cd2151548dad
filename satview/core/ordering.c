/*
 * The passes that sort events by time. core.h has the rules.
 */

#include "core.h"

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS, ORDER_BLOCK = 1 << 10 };

/*
 * Compute the indices that sort numbers stably, by radix sort. order, spare: one element per number.
 * Returns which of both has the result: 0 = order, 1 = spare.
 */
static int64_t satview_stable_order(const int64_t *number, int64_t count, int64_t *order, int64_t *spare)
{
    int64_t least = count ? number[0] : 0, most = least, positions[RADIX], done = 0;
    int is_sorted = 1;
    for (int64_t i = 0; i < count; i++) {
        order[i] = i;
        least = number[i] < least ? number[i] : least;
        most = number[i] > most ? number[i] : most;
        is_sorted &= i == 0 || number[i - 1] <= number[i];
    }
    if (is_sorted)
        return 0;
    for (int shift = 0; shift < 64 && ((uint64_t)most - (uint64_t)least) >> shift; shift += RADIX_BITS, done++) {
        int64_t *from = done & 1 ? spare : order, *to = done & 1 ? order : spare, sum = 0;
        memset(positions, 0, sizeof positions);
        for (int64_t i = 0; i < count; i++)
            positions[((uint64_t)number[i] - (uint64_t)least) >> shift & (RADIX - 1)]++;
        for (int k = 0; k < RADIX; k++) {
            int64_t size = positions[k];
            positions[k] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < count; i++)
            to[positions[((uint64_t)number[from[i]] - (uint64_t)least) >> shift & (RADIX - 1)]++] = from[i];
    }
    return done & 1;
}

PASS(stable_order, "i8:n i8:n i8:n", I8(0), COUNT(0), I8(1), I8(2))

/*
 * Write the rows that a stable sort by time may move, ascending.
 * least: scratch, one per block of events. Returns the number of rows.
 */
static int64_t satview_disordered(const int64_t *time, int64_t count, int64_t *least, int64_t room, int64_t *out)
{
    int64_t after[ORDER_BLOCK + 1], latest = INT64_MIN, rows = 0, blocks = (count + ORDER_BLOCK - 1) / ORDER_BLOCK;
    if (blocks > room)
        return REFUSED;
    for (int64_t block = blocks - 1, earliest = INT64_MAX; block >= 0; block--) {
        int64_t end = (block + 1) * ORDER_BLOCK < count ? (block + 1) * ORDER_BLOCK : count;
        least[block] = earliest; /* of all later blocks */
        for (int64_t i = block * ORDER_BLOCK; i < end; i++)
            earliest = time[i] < earliest ? time[i] : earliest;
    }
    for (int64_t block = 0; block < blocks; block++) {
        int64_t begin = block * ORDER_BLOCK, size = begin + ORDER_BLOCK < count ? ORDER_BLOCK : count - begin;
        after[size] = least[block];
        for (int64_t i = size - 1; i >= 0; i--)
            after[i] = time[begin + i] < after[i + 1] ? time[begin + i] : after[i + 1];
        for (int64_t i = 0; i < size; i++) {
            int64_t now = time[begin + i];
            out[rows] = begin + i;
            rows += (now < latest) | (now > after[i + 1]);
            latest = now > latest ? now : latest;
        }
    }
    return rows;
}

PASS(disordered, "i8:n i8:b i8:n", I8(0), COUNT(0), I8(1), COUNT(1), I8(2))

/* The next row of a CPU; rows are ordered by time, then by row. */
struct next {
    int64_t time, row, cpu;
};

static int64_t comes_before(const struct next *one, const struct next *other)
{
    return (one->time < other->time) | ((one->time == other->time) & (one->row < other->row));
}

/* Swap two rows if `other` comes before `winner`, without a branch, as the outcome is unpredictable. */
static void play(struct next *winner, struct next *other)
{
    int64_t mask = -comes_before(other, winner), time = (winner->time ^ other->time) & mask;
    int64_t row = (winner->row ^ other->row) & mask, cpu = (winner->cpu ^ other->cpu) & mask;
    winner->time ^= time, other->time ^= time;
    winner->row ^= row, other->row ^= row;
    winner->cpu ^= cpu, other->cpu ^= cpu;
}

/*
 * Sort rows stably by time, by merging the rows of all CPUs with a tournament tree of losers.
 * rows: ascending; spare: scratch, one per row.
 * Returns 0; 1 if the times of one CPU go backwards; REFUSED if a row is out of range.
 */
static int64_t satview_merged(const int64_t *time, const uint8_t *cpu, int64_t events, const int64_t *rows,
                              int64_t count, int64_t *spare, int64_t *out)
{
    int64_t starts[CPU_NUMBERS + 1] = {0}, fill[CPU_NUMBERS], latest[CPU_NUMBERS], size = 0, leaves = 1;
    const int64_t *next[CPU_NUMBERS], *end[CPU_NUMBERS];
    struct next won[2 * CPU_NUMBERS], loser[CPU_NUMBERS], winner;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= events)
            return REFUSED;
        starts[cpu[rows[i]] + 1]++;
    }
    for (int number = 0; number < CPU_NUMBERS; number++) {
        starts[number + 1] += starts[number];
        fill[number] = starts[number];
        latest[number] = INT64_MIN;
    }
    for (int64_t i = 0; i < count; i++) {
        int number = cpu[rows[i]];
        if (time[rows[i]] < latest[number])
            return 1;
        latest[number] = time[rows[i]];
        spare[fill[number]++] = rows[i];
    }
    for (int number = 0; number < CPU_NUMBERS; number++)
        if (starts[number] < starts[number + 1]) {
            next[size] = spare + starts[number];
            end[size++] = spare + starts[number + 1];
        }
    while (leaves < size)
        leaves *= 2;
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        struct next entry = {INT64_MAX, INT64_MAX, leaf}; /* after all rows */
        if (leaf < size)
            entry.row = *next[leaf]++, entry.time = time[entry.row];
        won[leaves + leaf] = entry;
    }
    for (int64_t pair = leaves - 1; pair > 0; pair--) {
        won[pair] = won[2 * pair];
        loser[pair] = won[2 * pair + 1];
        play(&won[pair], &loser[pair]);
    }
    winner = won[1];
    for (int64_t i = 0; i < count;) {
        int64_t leaf = winner.cpu, beaten = (leaves + leaf) / 2;
        struct next second = {INT64_MAX, INT64_MAX, 0};
        for (int64_t pair = beaten; pair > 0; pair /= 2)
            if (comes_before(&loser[pair], &second))
                second = loser[pair];
        do { /* usually, several successive rows are of one CPU */
            out[i++] = winner.row;
            winner.time = winner.row = INT64_MAX;
            if (next[leaf] < end[leaf])
                winner.row = *next[leaf]++, winner.time = time[winner.row];
        } while (i < count && comes_before(&winner, &second));
        for (int64_t pair = beaten; pair > 0; pair /= 2)
            play(&winner, &loser[pair]);
    }
    return 0;
}

PASS(merged, "i8:n u1:n i8:r i8:r i8:r", I8(0), U1(1), COUNT(0), I8(2), COUNT(2), I8(3), I8(4))

/*
 * Write the new row of each row in a range that is reordered. rows: the row that moves to each position from first_row
 * on, a permutation of the range. narrow or wide: receives the new row of each event.
 *
 * Returns the maximum distance that a row moves; REFUSED if a row is outside the range.
 */
static int64_t satview_went(const int64_t *rows, int64_t count, int64_t first_row, uint32_t *narrow, uint64_t *wide,
                            int64_t events)
{
    int64_t reach = 0;
    if (first_row < 0 || count > events - first_row)
        return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        int64_t far = rows[i] - first_row - i;
        if (rows[i] < first_row || rows[i] - first_row >= count)
            return REFUSED;
        if (narrow)
            narrow[rows[i]] = (uint32_t)(first_row + i);
        else
            wide[rows[i]] = (uint64_t)(first_row + i);
        far = far < 0 ? -far : far;
        reach = far > reach ? far : reach;
    }
    return reach;
}

PASS(went, "i8:r n u4|u8:n", I8(0), COUNT(0), NUMBER(1), U4(2), U8(2), COUNT(2))

/* Reorder block by block. `kept` has copies of the `reach` elements before the block, and of the block itself. */
#define MOVED(NAME, TYPE)                                                                                              \
    static int64_t NAME(TYPE *column, const int64_t *rows, int64_t first_row, int64_t count, int64_t part_begin,       \
                        int64_t end, TYPE *kept, int64_t reach, int64_t block)                                         \
    {                                                                                                                  \
        for (int64_t begin = part_begin; begin < end; begin += block) {                                                \
            int64_t size = end - begin < block ? end - begin : block;                                                  \
            TYPE *moved = column + begin;                                                                              \
            memcpy(kept + reach, moved, (size_t)size * sizeof *kept);                                                  \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                int64_t from = rows[i + begin - part_begin] - first_row - begin;                                       \
                if (from < -reach || from < -begin || from >= count - begin)                                           \
                    return REFUSED;                                                                                    \
                moved[i] = from < size ? kept[reach + from] : moved[from];                                             \
            }                                                                                                          \
            memmove(kept, kept + size, (size_t)reach * sizeof *kept);                                                  \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

MOVED(moved_bytes, uint8_t)
MOVED(moved_pairs, uint16_t)
MOVED(moved_words, uint32_t)
MOVED(moved_longs, uint64_t)

/*
 * Reorder the next part of a column in place.
 *
 * column: elements of `width` bytes; the first is row first_row. rows: the row that moves to each position of the part.
 * begin: index of the part in the column. reach: maximum distance that a row moves. kept: room for reach + block
 * elements, which starts with the original elements before the part, as left by the call for the previous part.
 * Returns 0; REFUSED if a row is out of range or moves too far.
 */
static int64_t satview_moved(uint8_t *column, int64_t bytes, int64_t width, const int64_t *rows, int64_t part,
                             int64_t first_row, int64_t begin, int64_t reach, int64_t block, uint8_t *kept,
                             int64_t kept_bytes)
{
    int64_t count = width > 0 ? bytes / width : 0, end = begin + part;
    if (begin < 0 || end > count || reach < 0 || block < 1 || (reach + block) * width > kept_bytes)
        return REFUSED;
    switch (width) {
    case 1:
        return moved_bytes(column, rows, first_row, count, begin, end, kept, reach, block);
    case 2:
        return moved_pairs((uint16_t *)column, rows, first_row, count, begin, end, (uint16_t *)kept, reach, block);
    case 4:
        return moved_words((uint32_t *)column, rows, first_row, count, begin, end, (uint32_t *)kept, reach, block);
    case 8:
        return moved_longs((uint64_t *)column, rows, first_row, count, begin, end, (uint64_t *)kept, reach, block);
    }
    return REFUSED;
}

PASS(moved,
     "u1:* n i8:r n n n n u1:k",
     U1(0), COUNT(0), NUMBER(1), I8(2), COUNT(2), NUMBER(3), NUMBER(4), NUMBER(5), NUMBER(6), U1(7), COUNT(7))

static int64_t distance(int64_t time, int64_t other)
{
    return (int64_t)((uint64_t)time - (uint64_t)other); /* as numpy: times of damaged files may be anything */
}

static int64_t size_of(int64_t number)
{
    return number < 0 ? (int64_t)(0 - (uint64_t)number) : number;
}

/*
 * Write the given rows whose time is far before or far after the times of both neighbouring events.
 * Returns the number of rows written; REFUSED if a row has no event before or after it.
 */
static int64_t satview_far_rows(const int64_t *time, int64_t events, const int64_t *rows, int64_t count, int64_t near,
                                int64_t *out)
{
    int64_t far = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows[i], before, after;
        if (row < 1 || row >= events - 1)
            return REFUSED;
        before = distance(time[row], time[row - 1]);
        after = distance(time[row], time[row + 1]);
        out[far] = row;
        far += (int)(size_of(before) > near) & (int)(size_of(after) > near) & (int)((before > 0) == (after > 0));
    }
    return far;
}

PASS(far_rows, "i8:n i8:r n i8:r", I8(0), COUNT(0), I8(1), COUNT(1), NUMBER(2), I8(3))
