/*
 * The pass that decodes protobuf messages. core.h has the rules.
 */

#include "core.h"

/* Read a varint and advance `offset`; return 0 if it does not end before `end`. */
static int read_varint(const uint8_t *data, int64_t *offset, int64_t end, uint64_t *value)
{
    uint64_t number = 0;
    for (int shift = 0; shift < 70 && *offset < end; shift += 7) {
        uint8_t byte = data[(*offset)++];
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *value = number;
            return 1;
        }
    }
    return 0;
}

/*
 * Write the fields of protobuf messages, one row for each field, in the order of the data.
 *
 * begin, end: range of each message; ends beyond the data are cut. capacity: length of the columns that are written.
 * message, number: index of the message, and number of the field. value: a number, or the offset of a field of bytes.
 * length: length of a field of bytes, -1 for a number. is_bad: whether a message ends inside a field, or has a field of
 * unknown type; the fields before that are written.
 *
 * Returns the number of fields; rows beyond `capacity` are not written.
 */
static int64_t satview_protobuf(const uint8_t *data, int64_t size, const int64_t *begin, const int64_t *end,
                                int64_t messages, int64_t capacity, int64_t *message, int64_t *number, int64_t *value,
                                int64_t *length, uint8_t *is_bad)
{
    int64_t rows = 0;
    for (int64_t m = 0; m < messages; m++) {
        int64_t offset = begin[m], stop = end[m] < size ? end[m] : size;
        is_bad[m] = offset < 0 || end[m] > size;
        if (offset < 0)
            continue;
        while (offset < stop) {
            uint64_t tag, content = 0;
            int64_t bytes = -1;
            int kind;
            if (!read_varint(data, &offset, stop, &tag) || tag >> 3 == 0 || tag >> 32) {
                is_bad[m] = 1;
                break;
            }
            kind = (int)(tag & 7);
            if (kind == 0) {
                if (!read_varint(data, &offset, stop, &content)) {
                    is_bad[m] = 1;
                    break;
                }
            } else if (kind == 1 || kind == 5) {
                int wide = kind == 1 ? 8 : 4;
                if (stop - offset < wide) {
                    is_bad[m] = 1;
                    break;
                }
                for (int i = 0; i < wide; i++)
                    content |= (uint64_t)data[offset + i] << 8 * i;
                offset += wide;
            } else if (kind == 2) {
                if (!read_varint(data, &offset, stop, &content) || content > (uint64_t)(stop - offset)) {
                    is_bad[m] = 1;
                    break;
                }
                bytes = (int64_t)content;
                content = (uint64_t)offset;
                offset += bytes;
            } else {
                is_bad[m] = 1;
                break;
            }
            if (rows < capacity) {
                message[rows] = m;
                number[rows] = (int64_t)(tag >> 3);
                value[rows] = (int64_t)content;
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
