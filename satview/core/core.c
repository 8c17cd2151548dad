/*
 * Entry points of the library: the table of functions, and the call, which checks arguments against the declaration.
 */

#include "core.h"

#ifndef SATVIEW_SOURCE
#define SATVIEW_SOURCE "unknown"
#endif

#define ALL_PASSES(X)                                                                                                  \
    X(clock) X(cheapest_path) X(run_slices) X(whole_spans) X(cpu_states) X(cpu_timeline) X(thread_states)              \
    X(process_states) X(group) X(numbers) X(rows_by_thread) X(owners) X(word_sum) X(take_halves) X(stable_order)       \
    X(disordered) X(merged) X(went) X(moved) X(far_rows) X(event_cells) X(raster) X(levels) X(calls) X(last_before)    \
    X(last_of) X(last_of_number) X(next_of_number) X(states) X(state_positions) X(rows_with) X(values_of)              \
    X(times_of) X(first_in_table) X(previous_same) X(numbered) X(positions) X(values_in_ranges) X(key_positions)           \
    X(nested) X(calls_of) X(share_index) X(shares) X(stack_tops) X(draw_stack) X(hatch) X(protobuf) X(forms)           \
    X(print) X(scheduling) X(nesting) X(left_open) X(covered) X(window_sums) X(ranges) X(event_counts)                 \
    X(stream_groups) X(with_keys) X(deliver) X(text_kinds) X(same_rows) X(joined)

#define DECLARED(NAME) extern const satview_pass satview_pass_##NAME;
#define LISTED(NAME) &satview_pass_##NAME,

ALL_PASSES(DECLARED)
static const satview_pass *const PASSES[] = {ALL_PASSES(LISTED)};
static const int64_t PASS_COUNT = sizeof PASSES / sizeof *PASSES;

/* Offsets from REFUSED that say why a call is refused; twice the index of the argument is added. */
enum { OTHER_COUNT = 1, OTHER_KIND = 2, OTHER_LENGTH = 3 };

/* Return the digest of the sources that this library was built from. */
EXPORT const char *satview_source(void) { return SATVIEW_SOURCE; }

/* Return the name, and the declaration of the arguments, of function `i`; null if there is no such function. */
EXPORT const char *satview_name(int64_t i) { return i >= 0 && i < PASS_COUNT ? PASSES[i]->name : NULL; }
EXPORT const char *satview_takes(int64_t i) { return i >= 0 && i < PASS_COUNT ? PASSES[i]->takes : NULL; }

static int is_letter(char c) { return c >= 'a' && c <= 'z'; }

static int64_t read_number(const char **text)
{
    int64_t number = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++)
        number = 10 * number + (**text - '0');
    return number;
}

/* Return whether an argument has one of the types of an item; advance `item` beyond the types. */
static int is_of_kind(const satview_argument *in, const char **item)
{
    static const char *const NAMES[KINDS] = {"", "n", "u1", "u2", "u4", "u8", "i1", "i4", "i8", "f8"};
    int fits = 0, may_be_absent = 0;
    for (const char *name = *item;; name = *item + 1) {
        int64_t size = name[0] == 'n' ? 1 : 2;
        fits |= in->kind > ABSENT && in->kind < KINDS && !strncmp(NAMES[in->kind], name, (size_t)size) &&
                NAMES[in->kind][size] == '\0';
        *item = name + size;
        if (**item == '?') {
            may_be_absent = 1;
            (*item)++;
        }
        if (**item != '|')
            break;
    }
    return fits || (may_be_absent && in->kind == ABSENT);
}

/* Return whether an array has the length of an item; a letter without a value gets its value from the array. */
static int is_of_length(const satview_argument *in, const char **item, int64_t *sizes)
{
    int64_t factor, more = 0, least, *unknown = NULL;
    int at_least = 0;
    if (**item != ':')
        return 1;
    (*item)++;
    if (**item == '*') {
        (*item)++;
        return 1;
    }
    if (**item == '>') {
        at_least = 1;
        (*item)++;
    }
    factor = **item >= '0' && **item <= '9' ? read_number(item) : 1;
    for (; is_letter(**item); (*item)++) {
        int64_t *size = sizes + (**item - 'a');
        if (*size < 0 && !unknown)
            unknown = size;
        else
            factor *= *size;
    }
    if (**item == '+') {
        (*item)++;
        more = read_number(item);
    }
    if (in->kind == ABSENT)
        return 1;
    if (unknown) { /* the length does not determine the letter if the factor is 0 */
        *unknown = factor > 0 && in->count >= more ? (in->count - more) / factor : 0;
        factor *= *unknown;
    }
    least = factor + more;
    return at_least ? in->count >= least : in->count == least;
}

/*
 * Call function `i` with `count` arguments.
 *
 * Returns the result of the function, or REFUSED plus a small number if the arguments do not match its declaration.
 */
EXPORT int64_t satview_call(int64_t i, const satview_argument *in, int64_t count)
{
    int64_t sizes[26], k = 0;
    const char *item;
    if (i < 0 || i >= PASS_COUNT)
        return REFUSED;
    for (int letter = 0; letter < 26; letter++)
        sizes[letter] = -1;
    for (item = PASSES[i]->takes; *item; k++) {
        if (k >= count)
            return REFUSED + OTHER_COUNT;
        if (!is_of_kind(in + k, &item))
            return REFUSED + 2 * k + OTHER_KIND;
        if (in[k].kind == NUMBER_KIND && *item == ':') {
            sizes[item[1] - 'a'] = in[k].count;
            item += 2;
        } else if (!is_of_length(in + k, &item, sizes))
            return REFUSED + 2 * k + OTHER_LENGTH;
        item += *item == ' ';
    }
    return k == count ? PASSES[i]->run(in) : REFUSED + OTHER_COUNT;
}
