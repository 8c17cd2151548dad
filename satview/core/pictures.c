/*
 * The passes that draw lanes: cells, pixels and shares of values. core.h has the rules.
 */

#include "core.h"

/* Arguments of satview_event_cells. Tables give the index of a lane, -1 = none, and may be null. */
typedef struct {
    const int64_t *time; /* of `count` events, ascending */
    const uint16_t *code;
    const uint8_t *cpu;
    const uint16_t *narrow; /* thread, narrow or wide, whichever is not null */
    const uint32_t *wide;
    int64_t count;
    int64_t origin;       /* start of the first cell */
    const uint8_t *marks; /* CODE_MASK + 1: whether events with a code are drawn as marks */
    int64_t int_class;    /* internal class of interrupts */
    int64_t class_shift;
    int64_t threads;             /* size of the tables by thread */
    const int32_t *by_thread[3]; /* lanes of threads, of processes, of damage */
    const int32_t *by_cpu[2];    /* 256: lanes of CPUs, of damage */
    const int32_t *by_interrupt; /* 256: lanes of interrupts */
    int64_t positions;
    const int64_t *cells; /* for no lane, then for each lane: first cell, cell after the last, log2 of its cycles */
    int64_t cell_count;
    uint8_t *seen; /* of each cell, and one more for events that are on no lane */
} satview_cells;

enum { MARK_BLOCK = 1 << 10, DAMAGED_THREADS = 2, DAMAGED_CPUS = 1 };

/* Return whether all indices in a table are valid. */
static int names_lanes(const int32_t *table, int64_t count, int64_t positions)
{
    for (int64_t i = 0; table && i < count; i++)
        if (table[i] < -1 || table[i] >= positions)
            return 0;
    return 1;
}

/* Return whether the ranges of cells and all tables are valid. */
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

/* Mark the cell of a lane, -1 = none, that contains an event. There are no branches, as they would be unpredictable. */
static inline void mark_cell(const satview_cells *in, int32_t position, int64_t row)
{
    const int64_t *lane = in->cells + 3 * (position + 1);
    int64_t cell = lane[0] + ((in->time[row] - in->origin) >> lane[2]);
    cell = cell >= lane[0] && cell < lane[1] ? cell : in->cell_count;
    in->seen[cell] = 1;
}

/*
 * Mark the cells that contain an event drawn as a mark. Interrupts are drawn only on lanes of interrupts and of damage.
 */
static int64_t satview_event_cells(const satview_cells *in)
{
    int64_t marked[MARK_BLOCK], others[MARK_BLOCK]; /* others: marks that are not interrupts */
    if (!is_sound(in))
        return REFUSED;
    for (int64_t begin = 0; begin < in->count; begin += MARK_BLOCK) {
        int64_t end = begin + MARK_BLOCK < in->count ? begin + MARK_BLOCK : in->count, marks = 0, no_interrupts = 0;
        for (int64_t i = begin; i < end; i++) {
            int is_mark = in->marks[in->code[i] & CODE_MASK] != 0;
            marked[marks] = others[no_interrupts] = i;
            marks += is_mark;
            no_interrupts += is_mark && (in->code[i] & CODE_MASK) >> in->class_shift != in->int_class;
        }
        for (int k = 0; k < 3; k++) {
            const int64_t *rows = k == DAMAGED_THREADS ? marked : others;
            int64_t count = k == DAMAGED_THREADS ? marks : no_interrupts;
            for (int64_t j = 0; in->by_thread[k] && j < count; j++) {
                int64_t thread = in->narrow ? in->narrow[rows[j]] : in->wide[rows[j]];
                mark_cell(in, thread < in->threads ? in->by_thread[k][thread] : -1, rows[j]);
            }
        }
        for (int k = 0; k < 2; k++) {
            const int64_t *rows = k == DAMAGED_CPUS ? marked : others;
            int64_t count = k == DAMAGED_CPUS ? marks : no_interrupts;
            for (int64_t j = 0; in->by_cpu[k] && j < count; j++)
                mark_cell(in, in->by_cpu[k][in->cpu[rows[j]]], rows[j]);
        }
        for (int64_t j = 0; in->by_interrupt && j < marks; j++) {
            int is_interrupt = (in->code[marked[j]] & CODE_MASK) >> in->class_shift == in->int_class;
            mark_cell(in, is_interrupt ? in->by_interrupt[in->cpu[marked[j]]] : -1, marked[j]);
        }
    }
    return 0;
}

PASS(event_cells,
     "i8:n u2:n u1:n u2|u4:n n u1:32768 n n i4?:t i4?:t i4?:t i4?:256 i4?:256 i4?:256 i8:* u1:*",
     &(satview_cells){.time = I8(0), .code = U2(1), .cpu = U1(2), .narrow = U2(3), .wide = U4(3), .count = COUNT(0),
                      .origin = NUMBER(4), .marks = U1(5), .int_class = NUMBER(6), .class_shift = NUMBER(7),
                      .threads = COUNT(8) | COUNT(9) | COUNT(10), .by_thread = {I4(8), I4(9), I4(10)},
                      .by_cpu = {I4(11), I4(12)}, .by_interrupt = I4(13), .positions = COUNT(14) / 3 - 1,
                      .cells = I8(14), .cell_count = COUNT(15) - 1, .seen = U1(15)})

/* Return the value with the largest share of a pixel, the lowest of equal ones, with its flag; clear the shares. */
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
 * Draw one lane: write for each pixel the value that covers most of it.
 *
 * start, value: intervals in time order; each ends at the start of the next, the last at `end`. edge: width + 1 starts
 * of pixels, strictly ascending. busy: whether each value means running. out: `width` zeros.
 */
static int64_t satview_raster(const int64_t *start, const uint8_t *value, int64_t count, int64_t end,
                              const int64_t *edge, int64_t width, const uint8_t *busy, uint8_t *out)
{
    int64_t share[VALUES] = {0};
    uint8_t kinds[VALUES];
    int present = 0;
    int64_t p = 0;
    if (width < 1)
        return REFUSED;
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

PASS(raster, "i8:w+1 u1:>64 i8:n u1:n n u1:w", I8(2), U1(3), COUNT(2), NUMBER(4), I8(0), COUNT(5), U1(1), U1(5))

/*
 * Write a block of cells of one lane at several resolutions.
 *
 * start, value: the intervals that overlap the block; each ends at the start of the next, the last at `end`. origin:
 * start of cell 0; cells are 2^shift cycles. kind_of: kind of each value; value_of: value of each kind, ascending.
 * busy: whether each kind means running. cover: scratch of cells * kinds, receives the sums of the last level. seen:
 * whether each cell has an event, also scratch. out: the levels, one after the other, of cells, (cells + 1) / 2, ...
 * elements; room: its size. If `more` is not 0, the sums are combined once more after the last level.
 */
static int64_t satview_levels(const int64_t *start, const uint8_t *value, int64_t count, int64_t end, int64_t origin,
                              int64_t shift, int64_t cells, const int64_t *kind_of, const uint8_t *value_of,
                              const uint8_t *busy, int64_t kinds, int64_t *cover, uint8_t *seen, int64_t levels,
                              int64_t more, uint8_t *out, int64_t room)
{
    int64_t limit, written = 0;
    if (shift < 0 || shift > 62 || cells < 1 || cells > (INT64_MAX >> shift) || kinds < 1 || kinds > VALUES)
        return REFUSED;
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
            return REFUSED;
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
            return REFUSED;
        for (int64_t cell = 0; cell < cells; cell++) {
            const int64_t *times = cover + cell * kinds;
            int64_t best = 0, most = 0;
            uint32_t runs = 0;
            for (int64_t kind = 0; kind < kinds; kind++) { /* no branches, as they would be unpredictable */
                int64_t cycles = times[kind];
                best = cycles > most ? kind : best;
                most = cycles > most ? cycles : most;
                runs |= (uint32_t)(cycles > 0) & (busy[kind] != 0);
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
    return written == room ? written : REFUSED;
}

PASS(levels,
     "i8:n u1:n n n n i8:64 u1:k u1:k u1:c i8:kc n n u1:*",
     I8(0), U1(1), COUNT(0), NUMBER(2), NUMBER(3), NUMBER(4), COUNT(8), I8(5), U1(6), U1(7), COUNT(6), I8(9), U1(8),
     NUMBER(10), NUMBER(11), U1(12), COUNT(12))

/*
 * Write the weighted cycles of each kind of value in a lane before every `every`-th interval, `kinds` numbers each.
 *
 * weight: weight of a cycle of each value. out: kinds * ceil(count / every).
 *
 * Returns the count of numbers written; REFUSED if `out` has another size or a kind does not exist.
 */
static int64_t satview_share_index(const int64_t *start, const uint8_t *value, int64_t count, int64_t every,
                                   const int64_t *kind_of, const int64_t *weight, int64_t kinds, int64_t *out,
                                   int64_t room)
{
    int64_t sums[VALUES] = {0}, written = 0;
    if (every < 1 || kinds < 1 || kinds > VALUES)
        return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        uint8_t now = value[i] & (VALUES - 1);
        if (i % every == 0) {
            if (written + kinds > room)
                return REFUSED;
            for (int64_t kind = 0; kind < kinds; kind++)
                out[written++] = sums[kind];
        }
        if (kind_of[now] < 0 || kind_of[now] >= kinds)
            return REFUSED;
        if (i + 1 < count)
            sums[kind_of[now]] += (start[i + 1] - start[i]) * weight[now];
    }
    return written == room ? written : REFUSED;
}

PASS(share_index,
     "i8:n u1:n n i8:64 i8:64 n i8:*",
     I8(0), U1(1), COUNT(0), NUMBER(2), I8(3), I8(4), NUMBER(5), I8(6), COUNT(6))

/*
 * Write the weighted cycles of each kind of value in each bin, `kinds` numbers each.
 *
 * start: start of each interval; if NULL, interval i + 1 starts at time[rows[i]]. index: marks * kinds numbers, the
 * result of satview_share_index. begins: start of every `every`-th interval, a small array that stays in the cache.
 * edges: bins + 1, ascending. A lane has no value before its first interval and from `end` on.
 *
 * Returns 0; REFUSED if the index does not match the lane.
 */
static int64_t satview_shares(const int64_t *start, const int64_t *time, int64_t events, const uint32_t *rows,
                              int64_t row_count, const uint8_t *value, int64_t count, int64_t end, int64_t every,
                              const int64_t *kind_of, const int64_t *weight, int64_t kinds, const int64_t *index,
                              const int64_t *begins, int64_t marks, const int64_t *edges, int64_t bins, int64_t *out)
{
    int64_t before[VALUES] = {0}, now[VALUES], whole[VALUES] = {0}; /* whole: sums up to the start of interval i */
    int64_t mark = 0, i = 0, begin = 0; /* begin: start of interval i */
    int is_begun = 0;
    if (every < 1 || kinds < 1 || kinds > VALUES || marks * every < count || (marks - 1) * every >= count ||
        (!start && row_count + 1 != count))
        return REFUSED;
    for (int kind = 0; kind < VALUES; kind++)
        if (kind_of[kind] < 0 || kind_of[kind] >= kinds)
            return REFUSED;
    for (int64_t b = 0; b <= bins; b++) {
        int64_t edge = edges[b] < end ? edges[b] : end;
        for (int64_t kind = 0; kind < kinds; kind++)
            now[kind] = 0;
        if (count && edge > begins[0]) {
            /* Continue with the sums of the last edge if it is near, otherwise start from the mark before this edge. */
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
                int64_t next;
                if (!start && rows[i] >= events)
                    return REFUSED;
                next = start ? start[i + 1] : time[rows[i]];
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

PASS(shares,
     "i8?:n i8?:e u4?:x u1:n n n i8:64 i8:64 n:k i8:m i8:km i8:b+1 i8:bk",
     I8(0), I8(1), COUNT(1), U4(2), COUNT(2), U1(3), COUNT(3), NUMBER(4), NUMBER(5), I8(6), I8(7), NUMBER(8),
     I8(10), I8(9), COUNT(9), I8(11), COUNT(11) - 1, I8(12))

/*
 * Write the upper edge of each kind in each bin of a stacked bar chart, 0 = bottom, 1 = top.
 *
 * cycles: bins * kinds, from satview_shares. order: `count` kinds, from bottom to top. length: cycles of each bin.
 * out: count * bins.
 *
 * Returns 0; REFUSED if a kind does not exist.
 */
static int64_t satview_stack_tops(const int64_t *cycles, int64_t kinds, int64_t bins, const int64_t *order,
                                  int64_t count, const int64_t *length, double *out)
{
    enum { BLOCK = 256 };
    for (int64_t k = 0; k < count; k++)
        if (order[k] < 0 || order[k] >= kinds)
            return REFUSED;
    for (int64_t begin = 0; begin < bins; begin += BLOCK) {
        int64_t size = bins - begin < BLOCK ? bins - begin : BLOCK, sum[BLOCK] = {0};
        for (int64_t k = 0; k < count; k++) {
            const int64_t *cycles_of_kind = cycles + begin * kinds + order[k];
            for (int64_t b = 0; b < size; b++) {
                sum[b] += cycles_of_kind[b * kinds];
                out[k * bins + begin + b] = (double)sum[b] / (double)length[begin + b];
            }
        }
    }
    return 0;
}

PASS(stack_tops, "i8:b n:k i8:bk i8:o f8:ob", I8(2), NUMBER(1), COUNT(0), I8(3), COUNT(3), I8(0), F8(4))

/*
 * Draw one lane as a stacked bar chart.
 *
 * tops: kinds * bins, upper edge of each kind, 0 = bottom, 1 = top. is_busy: kinds that stay visible even if they are
 * less than a pixel high. columns: bins + 1, ascending. The bar has the rows from `top` to before `bottom`; rows
 * outside the picture are not drawn.
 *
 * Returns 0; REFUSED if a column is outside the picture or there are too many kinds.
 */
static int64_t satview_draw_stack(const double *tops, int64_t kinds, int64_t bins, const uint8_t *is_busy,
                                  const int64_t *columns, const uint32_t *colours, uint32_t background, int64_t top,
                                  int64_t bottom, uint32_t *pixels, int64_t width, int64_t height)
{
    enum { BLOCK = 256 }; /* number of bins whose levels fit into the cache */
    int32_t level[VALUES][BLOCK], until[BLOCK]; /* until: height up to which a bin has its present kind */
    uint8_t kind[BLOCK];
    int64_t first_row = top > 0 ? top : 0, end_row = bottom < height ? bottom : height, size = bottom - top;
    if (kinds < 1 || kinds > VALUES || size > INT32_MAX / 2)
        return REFUSED;
    for (int64_t b = 0; b < bins; b++)
        if (columns[b] < 0 || columns[b + 1] < columns[b] || columns[b + 1] > width)
            return REFUSED;
    for (int64_t begin = 0; begin < bins; begin += BLOCK) {
        int64_t count = bins - begin < BLOCK ? bins - begin : BLOCK, most = 0;
        const int64_t *column = columns + begin;
        int64_t raised[BLOCK];
        double largest[BLOCK] = {0}, ran[BLOCK] = {0};
        for (int64_t k = 0; k < kinds; k++) {
            const double *own_tops = tops + k * bins + begin, *below = k ? own_tops - bins : NULL;
            for (int64_t b = 0; b < count; b++) {
                double high = own_tops[b] < 2 ? own_tops[b] : 2;
                level[k][b] = high > 0 ? (int32_t)(high * (double)size + 0.5) : 0;
            }
            if (!is_busy[k])
                continue;
            most = k;
            for (int64_t b = 0; b < count; b++) {
                double share = own_tops[b] - (below ? below[b] : 0);
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
        /* Draw rows from the bottom up: copy the row below, then redraw the bins in which another kind begins. */
        memset(kind, 0, sizeof kind);
        memset(until, 0, sizeof until);
        for (int64_t row = end_row - 1; row >= first_row; row--) {
            uint32_t *line = pixels + row * width;
            int32_t height_of_row = (int32_t)(bottom - row);
            if (row < end_row - 1)
                memcpy(line + column[0], line + width + column[0], (size_t)(column[count] - column[0]) * sizeof *line);
            for (int64_t b = 0; b < count; b++) {
                int64_t k = kind[b];
                uint32_t colour;
                if (until[b] >= height_of_row)
                    continue;
                while (k < kinds && level[k][b] < height_of_row)
                    k++;
                kind[b] = (uint8_t)k;
                until[b] = k < kinds ? level[k][b] : INT32_MAX;
                colour = k < kinds ? colours[k] : background;
                for (int64_t x = column[b]; x < column[b + 1]; x++)
                    line[x] = colour;
            }
        }
    }
    return 0;
}

PASS(draw_stack,
     "u4:k u1:k i8:b+1 f8:bk n n n n:w n:h u4:wh",
     F8(3), COUNT(0), COUNT(2) - 1, U1(1), I8(2), U4(0), (uint32_t)NUMBER(4), NUMBER(5), NUMBER(6), U4(9),
     NUMBER(7), NUMBER(8))

/* Draw hatch patterns on the pixels whose alpha value is 255 minus the number of a pattern, and make all pixels opaque.
   A pattern is 8 rows of 8 pixels of `cell` device pixels; `top` is the offset of the picture's first row within it. */
static int64_t satview_hatch(uint32_t *pixels, int64_t width, int64_t height, const uint8_t *hatches, int64_t count,
                             int64_t top, int64_t cell)
{
    if (count < 1 || count > 255 || cell < 1 || top < 0)
        return REFUSED;
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

PASS(hatch, "n:w n:h u4:wh u1:8c n n", U4(2), NUMBER(0), NUMBER(1), U1(3), COUNT(3) / 8, NUMBER(4), NUMBER(5))
