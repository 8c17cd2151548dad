/*
 * The pass over messages of protobuf. core.h has the rules.
 */

#include "core.h"

/* Fields of messages of protobuf: every field of every message in a row of its own, in the order of the data.
 *
 * data, size       the bytes
 * begin, end       where each message is; ends beyond the data are cut
 * capacity         rows of the columns that are written
 * message, number  which message, number of the field
 * value            a number, or where the bytes of a field of bytes begin
 * length           of a field of bytes, -1 of a number
 * is_bad           per message: it ends inside a field, or has a field of no known kind; what precedes is there
 *
 * Returns how many rows there are; beyond `capacity` none is written.
 */
static int read_varint(const uint8_t *data, int64_t *at, int64_t end, uint64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = data[(*at)++];
        if (shift < 64)
            found |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *value = found;
            return 1;
        }
    }
    return 0;
}

static int64_t satview_protobuf(const uint8_t *data, int64_t size, const int64_t *begin, const int64_t *end,
                                int64_t messages, int64_t capacity, int64_t *message, int64_t *number, int64_t *value,
                                int64_t *length, uint8_t *is_bad)
{
    int64_t rows = 0;
    for (int64_t m = 0; m < messages; m++) {
        int64_t at = begin[m], stop = end[m] < size ? end[m] : size;
        is_bad[m] = at < 0 || end[m] > size;
        if (at < 0)
            continue;
        while (at < stop) {
            uint64_t tag, found = 0;
            int64_t bytes = -1;
            int kind;
            if (!read_varint(data, &at, stop, &tag) || tag >> 3 == 0 || tag >> 32) {
                is_bad[m] = 1;
                break;
            }
            kind = (int)(tag & 7);
            if (kind == 0) {
                if (!read_varint(data, &at, stop, &found)) {
                    is_bad[m] = 1;
                    break;
                }
            } else if (kind == 1 || kind == 5) {
                int wide = kind == 1 ? 8 : 4;
                if (stop - at < wide) {
                    is_bad[m] = 1;
                    break;
                }
                for (int i = 0; i < wide; i++)
                    found |= (uint64_t)data[at + i] << 8 * i;
                at += wide;
            } else if (kind == 2) {
                if (!read_varint(data, &at, stop, &found) || found > (uint64_t)(stop - at)) {
                    is_bad[m] = 1;
                    break;
                }
                bytes = (int64_t)found;
                found = (uint64_t)at;
                at += bytes;
            } else {
                is_bad[m] = 1;
                break;
            }
            if (rows < capacity) {
                message[rows] = m;
                number[rows] = (int64_t)(tag >> 3);
                value[rows] = (int64_t)found;
                length[rows] = bytes;
            }
            rows++;
        }
    }
    return rows;
}

PASS(protobuf,
     "u1:s i8:m i8:m i8:c i8:c i8:c i8:c u1:m",
     U1(0), COUNT(0), I8(1), I8(2), COUNT(1), COUNT(3), I8(3), I8(4), I8(5), I8(6), U1(7))
