/*
 * Common definitions of the compiled core.
 *
 * The core is plain C11 without Python's headers. Python calls it through ctypes, which releases the GIL during a call.
 * tests/core/reference has the same functions in numpy, and tests compare both.
 *
 * Rules: all sizes are counts of elements; every index is checked before it is used; nothing is allocated; times are in
 * cycles. A function returns REFUSED if an argument is invalid.
 */

#ifndef SATVIEW_CORE_H
#define SATVIEW_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define REFUSED INT64_MIN /* an index or a number is out of range, or an output array is too small */

/* An argument of a call: a number or an array. */
typedef struct {
    void *data;    /* of an array */
    int64_t count; /* number of elements of an array, or the number itself */
    int64_t kind;  /* an `enum kind`, or -1 for a type that no function accepts */
} satview_argument;

enum kind { ABSENT, NUMBER_KIND, U1_KIND, U2_KIND, U4_KIND, U8_KIND, I1_KIND, I4_KIND, I8_KIND, F8_KIND, KINDS };

/*
 * A function that Python calls. `takes` declares its arguments, one item for each, and core.c checks them:
 *
 * n is a number. u1 to f8 is an array of elements of that type (u1 also: bool). u2|u4 is either type. i8? may be
 * absent. After the colon is the number of elements: a number, or a letter that stands for the same number in all
 * items. 4n is four times n, kb the product of k and b, n+1 one more than n, >n at least n, * any number. n:k is a
 * number that sets the letter k.
 */
typedef struct {
    const char *name, *takes;
    int64_t (*run)(const satview_argument *in);
} satview_pass;

/* PASS(name, declaration, arguments of satview_name). U1(i) and so on is argument i if it has that type, else null. */
#define PASS(NAME, TAKES, ...)                                                                                         \
    static int64_t run_##NAME(const satview_argument *in) { return satview_##NAME(__VA_ARGS__); }                      \
    const satview_pass satview_pass_##NAME = {#NAME, TAKES, run_##NAME};
#define ARRAY(TYPE, KIND, I) ((TYPE *)(in[I].kind == KIND ? in[I].data : NULL))
#define U1(I) ARRAY(uint8_t, U1_KIND, I)
#define U2(I) ARRAY(uint16_t, U2_KIND, I)
#define U4(I) ARRAY(uint32_t, U4_KIND, I)
#define U8(I) ARRAY(uint64_t, U8_KIND, I)
#define I1(I) ARRAY(int8_t, I1_KIND, I)
#define I4(I) ARRAY(int32_t, I4_KIND, I)
#define I8(I) ARRAY(int64_t, I8_KIND, I)
#define F8(I) ARRAY(double, F8_KIND, I)
#define COUNT(I) (in[I].count)
#define NUMBER(I) (in[I].count)

static const uint32_t NO_EVENT = 0xFFFFFFFFu;
enum { VALUES = 64, SEEN_RUNNING = 0x40, SEEN_EVENT = 0x80 }; /* number of lane values; flags of cells and pixels */
enum { CPU_NUMBERS = 256 }; /* number of values of a uint8 column of CPUs */

/* Header words of slots. */
enum {
    CODE_MASK = 0x7FFF, /* internal class and event */
    CPU_SHIFT = 24,
    CPU_MASK = 0x3F,
    CPUS = CPU_MASK + 1,
    KIND_SHIFT = 30, /* structure of a slot: simple, begin, continuation, end of a combine event */
    COMBINE_BEGIN = 1,
    COMBINE_CONTINUE = 2,
    COMBINE_END = 3
};

#define TAIL 0x80000000u     /* set in continuation and end */
#define KEY_MASK 0x3FFFFFFFu /* CPU, class and event: all bits except the structure */

/* Return whether a slot continues the event of the previous slot. */
static inline int is_linked(const uint32_t *slot)
{
    const uint32_t *before = slot - 4;
    uint32_t kind = before[0] >> KIND_SHIFT;
    return ((slot[0] ^ before[0]) & KEY_MASK) == 0 && slot[1] == before[1] &&
           (kind == COMBINE_BEGIN || kind == COMBINE_CONTINUE);
}

/* Return the index of the first of some ascending numbers that is not less than `least`; the search starts at guess. */
#define NEAR_POSITION(name, type)                                                                                      \
    static inline int64_t name(const type *number, int64_t count, int64_t guess, type least)                           \
    {                                                                                                                  \
        int64_t low, high, step = 1;                                                                                   \
        if (guess < count && number[guess] < least) { /* in (low, high] */                                             \
            low = guess;                                                                                               \
            high = guess + 1;                                                                                          \
            while (high < count && number[high] < least) {                                                             \
                low = high;                                                                                            \
                high = high + step < count ? high + step : count;                                                      \
                step *= 2;                                                                                             \
            }                                                                                                          \
        } else {                                                                                                       \
            high = guess;                                                                                              \
            low = guess - 1;                                                                                           \
            while (low >= 0 && number[low] >= least) {                                                                 \
                high = low;                                                                                            \
                low = low - step >= 0 ? low - step : -1;                                                               \
                step *= 2;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        while (high - low > 1) {                                                                                       \
            int64_t middle = low + (high - low) / 2;                                                                   \
            if (number[middle] < least)                                                                                \
                low = middle;                                                                                          \
            else                                                                                                       \
                high = middle;                                                                                         \
        }                                                                                                              \
        return high;                                                                                                   \
    }
NEAR_POSITION(near_key, int64_t)

#endif
