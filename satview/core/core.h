/*
 * What the files of the compiled core share.
 *
 * Each function is the twin of numpy code that runs where this library cannot be built; the comment above it names the
 * twin, and tests/core holds the two together. Plain C11 without a header of Python's: every Python calls it through
 * ctypes, which lets other threads run meanwhile.
 *
 * Rules: all sizes are counts of elements; every index is compared with its size before the element is read; nothing is
 * allocated; times are cycles.
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

enum { CPU_NUMBERS = 256 }; /* that a column of CPUs can hold, whatever the target has */

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
#define KEY_MASK 0x3FFFFFFFu /* CPU, class and event: all but the structure */

/* Return whether a slot goes on with the event of the slot before it. */
static inline int is_linked(const uint32_t *slot)
{
    const uint32_t *before = slot - 4;
    uint32_t kind = before[0] >> KIND_SHIFT;
    return ((slot[0] ^ before[0]) & KEY_MASK) == 0 && slot[1] == before[1] &&
           (kind == COMBINE_BEGIN || kind == COMBINE_CONTINUE);
}

/* Return where among ascending numbers the first one is that is not less than `mine`, looking from `at` on. */
#define NEAR_POSITION(name, type)                                                                                      \
    static inline int64_t name(const type *number, int64_t count, int64_t at, type mine)                               \
    {                                                                                                                  \
        int64_t low, high, step = 1;                                                                                   \
        if (at < count && number[at] < mine) { /* in (low, high] */                                                    \
            low = at;                                                                                                  \
            high = at + 1;                                                                                             \
            while (high < count && number[high] < mine) {                                                              \
                low = high;                                                                                            \
                high = high + step < count ? high + step : count;                                                      \
                step *= 2;                                                                                             \
            }                                                                                                          \
        } else {                                                                                                       \
            high = at;                                                                                                 \
            low = at - 1;                                                                                              \
            while (low >= 0 && number[low] >= mine) {                                                                  \
                high = low;                                                                                            \
                low = low - step >= 0 ? low - step : -1;                                                               \
                step *= 2;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        while (high - low > 1) {                                                                                       \
            int64_t middle = low + (high - low) / 2;                                                                   \
            if (number[middle] < mine)                                                                                 \
                low = middle;                                                                                          \
            else                                                                                                       \
                high = middle;                                                                                         \
        }                                                                                                              \
        return high;                                                                                                   \
    }
NEAR_POSITION(near_key, int64_t)

#endif
