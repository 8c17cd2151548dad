/*
 * The passes that print events as lines; a form is the layout of a line. core.h has the rules.
 */

#include "core.h"

enum { COUNT_OF_ENTRY = 0, VARIANT_OF_ENTRY = 1, FORM_OF_ENTRY = 2, NEXT_OF_ENTRY = 3, ENTRY = 4 };

/*
 * Write the form of each event; stop at the first event without a form, and return its index.
 *
 * first_entry: first entry of each code, -1 = none. entries: number of payload words, variant, form, next entry.
 */
static int64_t satview_forms(const uint32_t *header, int64_t events, const int64_t *start, const int64_t *row,
                             int64_t count, const int32_t *variant, const int32_t *first_entry, const int32_t *entries,
                             int64_t entry_count, int64_t from, int32_t *form)
{
    if (from < 0)
        return REFUSED;
    for (int64_t i = from; i < count; i++) {
        int64_t words;
        int32_t number;
        if (row[i] < 0 || row[i] >= events)
            return REFUSED;
        words = start[row[i] + 1] - start[row[i]];
        number = first_entry[header[row[i]] & CODE_MASK];
        while (number >= 0 && number < entry_count) {
            const int32_t *entry = entries + (int64_t)ENTRY * number;
            if (entry[COUNT_OF_ENTRY] == words && entry[VARIANT_OF_ENTRY] == variant[i])
                break;
            number = entry[NEXT_OF_ENTRY];
        }
        if (number < 0 || number >= entry_count)
            return i;
        form[i] = entries[(int64_t)ENTRY * number + FORM_OF_ENTRY];
    }
    return count;
}

PASS(forms,
     "u4:e i8:e+1 i8:n i4:n i4:32768 i4:4x n i4:n",
     U4(0), COUNT(0), I8(1), I8(2), COUNT(2), I4(3), I4(4), I4(5), COUNT(5) / ENTRY, NUMBER(6), I4(7))

/* Kinds of fields of a form, and their flags. */
enum { LITERAL, WORD, WIDE, MESSAGE, HEAD, HEAD_TEXT, TEXT };
enum { BLOCK = 32 }; /* number of bytes copied at once */
enum { SIGNED = 1, SWAPPED = 2, HEXADECIMAL = 4, ZEROS = 8, LINE_FEEDS = 16, FOR_CSV = 32, FOR_JSON = 64 };

typedef struct {
    int32_t kind;
    int32_t at;    /* LITERAL: offset in `literals`; else index of the payload word, head column or text */
    int32_t count; /* LITERAL: number of bytes; MESSAGE: number of payload words */
    int32_t flags;
    int32_t width; /* minimum number of digits */
    uint32_t mask; /* WORD: mask of the printed bits */
} satview_field;

/* Lines to print. */
typedef struct {
    const int64_t *start;        /* (events + 1,), index in `words` of the payload of each event */
    int64_t events;
    const uint32_t *words;
    int64_t word_count;
    int64_t is_big;              /* whether the target is big-endian */
    int64_t count;               /* number of lines */
    const int64_t *row;          /* event of each line */
    const int32_t *form;         /* form of each line, -1 = not printed */
    const satview_field *fields;
    int64_t field_count;
    const int64_t *first;        /* (forms + 1,), index of the first field of each form */
    int64_t forms;
    const int64_t *bound;        /* maximum number of bytes of a line of each form, without its texts */
    const uint8_t *has_text;     /* whether each form has texts */
    const uint8_t *literals;     /* all literals, followed by BLOCK more bytes */
    int64_t heads;               /* number of head columns, which hold numbers or indices of texts */
    const int64_t *head;         /* (heads, count) */
    int64_t head_unsigned;       /* bit k: head column k is unsigned */
    const uint8_t *text;         /* texts of lines: text k of line i has the index text_base[i] + k */
    const int64_t *text_end;     /* (texts + 1,), 0, followed by the end of each text */
    const int64_t *text_base;
    int64_t texts;
    const uint8_t *head_text;
    const int64_t *head_text_end;
    int64_t head_texts;
    const uint8_t *separator;    /* before each line */
    int64_t separator_bytes;
    uint8_t *out;
    int64_t room;
    int64_t *end;                /* end of each line in `out` */
    int64_t *used;               /* number of bytes in `out` that are written */
} satview_lines;

/* Write eight hexadecimal digits: each half byte is moved to its own byte, and 10 to 15 are mapped to letters. */
static uint8_t *put_word(uint8_t *out, uint32_t word)
{
    static const uint64_t EVERY = 0x0101010101010101u;
    uint64_t value = word;
    value = (value | value << 16) & 0x0000FFFF0000FFFFu;
    value = (value | value << 8) & 0x00FF00FF00FF00FFu;
    value = (value | value << 4) & 0x0F0F0F0F0F0F0F0Fu;
    value += EVERY * '0' + ((value + EVERY * 6) >> 4 & EVERY) * ('a' - '9' - 1);
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
    return out + 8;
}

/* Write the digits of a number before `end`, where 24 bytes are free; return a pointer to the first digit. */
static const uint8_t *digits_before(uint8_t *end, uint64_t value, int is_hexadecimal)
{
    static const char PAIRS[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    if (is_hexadecimal) {
        put_word(end - 8, (uint32_t)value);
        put_word(end - 16, (uint32_t)(value >> 32));
        end -= 16;
        for (int i = 0; i < 15 && *end == '0'; i++)
            end++;
        return end;
    }
    while (value >= 100) {
        memcpy(end -= 2, PAIRS + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(end -= 2, PAIRS + 2 * value, 2);
    else
        *--end = (uint8_t)('0' + value);
    return end;
}

static uint8_t *put_number(uint8_t *out, uint64_t value, int is_negative, const satview_field *field)
{
    uint8_t digits[24];
    const uint8_t *end = digits + sizeof digits, *digit = digits_before(digits + sizeof digits, value,
                                                                     field->flags & HEXADECIMAL);
    int64_t missing = field->width - (end - digit) - is_negative;
    if (!(field->flags & ZEROS))
        for (; missing > 0; missing--)
            *out++ = ' ';
    if (is_negative)
        *out++ = '-';
    for (; missing > 0; missing--)
        *out++ = '0';
    while (digit < end)
        *out++ = *digit++;
    return out;
}

static uint8_t *put_signed(uint8_t *out, int64_t value, const satview_field *field)
{
    return value < 0 ? put_number(out, 0 - (uint64_t)value, 1, field) : put_number(out, (uint64_t)value, 0, field);
}

/* Copy a text in blocks; both `out` and `text` must have BLOCK accessible bytes after the text. */
static uint8_t *put_literal(uint8_t *out, const uint8_t *text, int32_t count)
{
    for (int32_t done = 0; done < count; done += BLOCK)
        memcpy(out + done, text + done, BLOCK);
    return out + count;
}

static uint8_t *put_character(uint8_t *out, uint8_t byte, int32_t flags)
{
    if (flags & FOR_CSV && byte == '"')
        *out++ = '"';
    else if (flags & FOR_JSON && (byte == '"' || byte == '\\'))
        *out++ = '\\';
    else if (flags & (FOR_CSV | FOR_JSON) && byte == '\n') {
        *out++ = '\\';
        byte = 'n';
    }
    *out++ = byte;
    return out;
}

/*
 * Write the characters of message words. A word with a character that is neither printable nor a line feed is left out,
 * and the text ends with the first word that gives fewer than four characters.
 */
static uint8_t *put_message(uint8_t *out, const uint32_t *words, const satview_field *field, int is_big)
{
    int length = 4;
    if (field->flags & FOR_JSON)
        *out++ = '"';
    for (int32_t i = 0; i < field->count && length == 4; i++) {
        uint8_t bytes[4];
        for (int k = 0; k < 4; k++)
            bytes[k] = (uint8_t)(words[i] >> (8 * (is_big ? 3 - k : k)));
        for (length = 0; length < 4 && bytes[length]; length++)
            if ((bytes[length] < 0x20 || bytes[length] > 0x7E) && !(bytes[length] == '\n' && field->flags & LINE_FEEDS))
                break;
        if (length < 4 && bytes[length])
            length = 0;
        for (int k = 0; k < length; k++)
            out = put_character(out, bytes[k], field->flags);
    }
    if (field->flags & FOR_JSON)
        *out++ = '"';
    return out;
}

static uint64_t wide(const uint32_t *words, int is_big)
{
    return is_big ? (uint64_t)words[0] << 32 | words[1] : (uint64_t)words[1] << 32 | words[0];
}

/* Print one field of line i, whose payload is `words`; return null if the field is outside the payload or the texts. */
static uint8_t *put_field(uint8_t *out, const satview_lines *in, int64_t i, const satview_field *field,
                          const uint32_t *words, int64_t size)
{
    int64_t value, position;
    uint32_t word;
    switch (field->kind) {
    case LITERAL:
        return put_literal(out, in->literals + field->at, field->count);
    case WORD:
        if (field->at >= size)
            return NULL;
        word = words[field->at];
        if (field->flags & SWAPPED)
            word = word >> 24 | (word >> 8 & 0xFF00) | (word << 8 & 0xFF0000) | word << 24;
        word &= field->mask;
        if (field->width == 8 && (field->flags & (SIGNED | HEXADECIMAL | ZEROS)) == (HEXADECIMAL | ZEROS))
            return put_word(out, word);
        return field->flags & SIGNED ? put_signed(out, (int32_t)word, field) : put_number(out, word, 0, field);
    case WIDE:
        if (field->at + 1 >= size)
            return NULL;
        value = (int64_t)wide(words + field->at, in->is_big != 0);
        return field->flags & SIGNED ? put_signed(out, value, field) : put_number(out, (uint64_t)value, 0, field);
    case MESSAGE:
        if ((int64_t)field->at + field->count > size)
            return NULL;
        return put_message(out, words + field->at, field, in->is_big != 0);
    case HEAD:
        value = in->head[field->at * in->count + i];
        return in->head_unsigned >> field->at & 1 ? put_number(out, (uint64_t)value, 0, field)
                                                  : put_signed(out, value, field);
    case HEAD_TEXT:
        position = in->head[field->at * in->count + i];
        if (position < 0 || position >= in->head_texts)
            return NULL;
        size = in->head_text_end[position + 1] - in->head_text_end[position];
        memcpy(out, in->head_text + in->head_text_end[position], (size_t)size);
        return out + size;
    default:
        position = in->text_base[i] + field->at;
        if (position < 0 || position >= in->texts)
            return NULL;
        size = in->text_end[position + 1] - in->text_end[position];
        memcpy(out, in->text + in->text_end[position], (size_t)size);
        return out + size;
    }
}

/* Return the number of bytes of the texts of a line, -1 if a text does not exist. */
static int64_t text_bytes(const satview_lines *in, int64_t i)
{
    int64_t bytes = 0;
    for (int64_t k = in->first[in->form[i]]; k < in->first[in->form[i] + 1]; k++) {
        const satview_field *field = in->fields + k;
        int64_t position;
        if (field->kind == TEXT) {
            position = in->text_base[i] + field->at;
            if (position < 0 || position >= in->texts)
                return -1;
            bytes += in->text_end[position + 1] - in->text_end[position];
        } else if (field->kind == HEAD_TEXT) {
            position = in->head[field->at * in->count + i];
            if (position < 0 || position >= in->head_texts)
                return -1;
            bytes += in->head_text_end[position + 1] - in->head_text_end[position];
        }
    }
    return bytes;
}

/*
 * Print the lines from index `from` on; return the number of lines done, less than `count` if `out` is full.
 */
static int64_t satview_print(const satview_lines *in, int64_t from)
{
    int64_t used = *in->used;
    if (from < 0 || used < 0 || used > in->room)
        return REFUSED;
    for (int64_t i = from; i < in->count; i++) {
        int32_t form = in->form[i];
        if (form >= 0) {
            int64_t begin, size, bytes;
            uint8_t *out = in->out + used;
            if (form >= in->forms || in->first[form + 1] > in->field_count || in->row[i] < 0 ||
                in->row[i] >= in->events)
                return REFUSED;
            begin = in->start[in->row[i]];
            size = in->start[in->row[i] + 1] - begin;
            bytes = in->has_text[form] ? text_bytes(in, i) : 0;
            if (bytes < 0 || begin < 0 || size < 0 || begin + size > in->word_count)
                return REFUSED;
            if (in->room - used < in->bound[form] + bytes + in->separator_bytes + BLOCK)
                return i;
            memcpy(out, in->separator, (size_t)in->separator_bytes);
            out += in->separator_bytes;
            for (int64_t k = in->first[form]; k < in->first[form + 1]; k++)
                if (!(out = put_field(out, in, i, in->fields + k, in->words + begin, size)))
                    return REFUSED;
            used = out - in->out;
        }
        in->end[i] = *in->used = used;
    }
    return in->count;
}

PASS(print,
     "i8:e+1 u4:w n i8:n i4:n i4:6p i8:f+1 i8:f u1:f u1:* n:h i8:hn n u1:* i8:x+1 i8:n u1:* i8:y+1 u1:* u1:* i8:n "
     "i8:1 n",
     &(satview_lines){.start = I8(0), .events = COUNT(0) - 1, .words = U4(1), .word_count = COUNT(1),
                      .is_big = NUMBER(2), .count = COUNT(3), .row = I8(3), .form = I4(4),
                      .fields = (const satview_field *)(const void *)I4(5), .field_count = COUNT(5) / 6,
                      .first = I8(6), .forms = COUNT(7), .bound = I8(7), .has_text = U1(8), .literals = U1(9),
                      .heads = NUMBER(10), .head = I8(11), .head_unsigned = NUMBER(12), .text = U1(13),
                      .text_end = I8(14), .texts = COUNT(14) - 1, .text_base = I8(15), .head_text = U1(16),
                      .head_text_end = I8(17), .head_texts = COUNT(17) - 1, .separator = U1(18),
                      .separator_bytes = COUNT(18), .out = U1(19), .room = COUNT(19), .end = I8(20),
                      .used = I8(21)}, NUMBER(22))
