/*
 * The passes over payloads of equal length that find texts and equal payloads. core.h has the rules.
 */

#include "core.h"

enum { IS_NUMBERS, IS_ASCII, MAY_BE_UTF8 };
enum { MAX_PROBES = 64 }; /* maximum number of probes, so that no payloads make the search slow */

/* Return the kind of a payload. A text is not empty, printable up to its first zero, and followed only by zeros. */
static uint8_t text_kind(const uint8_t *data, int64_t size)
{
    int64_t i = 0;
    uint8_t bits = 0;
    for (; i < size && data[i]; i++) {
        if ((data[i] < ' ' && data[i] != '\t' && data[i] != '\n') || data[i] == 0x7F)
            return IS_NUMBERS;
        bits |= data[i];
    }
    if (i == 0)
        return IS_NUMBERS;
    for (; i < size; i++) {
        if (data[i])
            return IS_NUMBERS;
    }
    return bits & 0x80 ? MAY_BE_UTF8 : IS_ASCII;
}

/* Write the kind of each payload of `size` bytes. */
static int64_t satview_text_kinds(int64_t size, const uint8_t *data, int64_t count, uint8_t *kind)
{
    for (int64_t i = 0; i < count; i++)
        kind[i] = text_kind(data + size * i, size);
    return count;
}

PASS(text_kinds, "n:k u1:kn u1:n", NUMBER(0), U1(1), COUNT(2), U1(2))

static uint64_t hash_of(const uint8_t *data, int64_t size)
{
    uint64_t hash = (uint64_t)size, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    for (; size > 0; data++, size--)
        hash = (hash ^ *data) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/*
 * Number the distinct payloads of `size` bytes by first appearance.
 *
 * number: receives the number of each payload. first_row: receives the first payload with each number. table: zeros, a
 * power of two of them, more than payloads. If very many different payloads share a position in the table, equal
 * payloads may get different numbers.
 *
 * Returns the count of numbers.
 */
static int64_t satview_same_rows(int64_t size, const uint8_t *data, int64_t count, uint32_t *number,
                                 uint32_t *first_row, uint32_t *table, int64_t places)
{
    uint32_t numbers = 0;
    if (places <= count || (places & (places - 1)) || count >= NO_EVENT)
        return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *row = data + size * i;
        uint64_t place = hash_of(row, size);
        uint32_t same = numbers;
        for (int probe = 0; probe < MAX_PROBES; probe++, place++) {
            uint32_t *entry = table + (place & (uint64_t)(places - 1));
            if (!*entry) {
                *entry = numbers + 1;
                break;
            }
            if (*entry > numbers)
                return REFUSED; /* the table was not empty */
            if (!memcmp(data + size * first_row[*entry - 1], row, (size_t)size)) {
                same = *entry - 1;
                break;
            }
        }
        if (same == numbers)
            first_row[numbers++] = (uint32_t)i;
        number[i] = same;
    }
    return numbers;
}

PASS(same_rows, "n:k u1:kn u4:n u4:n u4:>n", NUMBER(0), U1(1), COUNT(2), U4(2), U4(3), U4(4), COUNT(4))

/*
 * Concatenate the payloads, each cut at its first zero byte and terminated by a zero byte.
 *
 * Returns the number of bytes written.
 */
static int64_t satview_joined(int64_t size, int64_t count, const uint8_t *data, uint8_t *out, int64_t room)
{
    int64_t used = 0;
    if (size < 0 || count < 0 || room / (size + 1) < count)
        return REFUSED;
    for (int64_t i = 0; i < count; i++, data += size) {
        const uint8_t *end = memchr(data, 0, (size_t)size);
        int64_t length = end ? end - data : size;
        memcpy(out + used, data, (size_t)length);
        used += length;
        out[used++] = 0;
    }
    return used;
}

PASS(joined, "n:k n:n u1:kn u1:*", NUMBER(0), NUMBER(1), U1(2), U1(3), COUNT(3))
