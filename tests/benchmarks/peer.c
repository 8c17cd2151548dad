/*
 * What satview's reading and printing are compared with: a program that works as the vendor's library and printer do.
 * It reads 16 bytes at a time, calls a function per event through a table, and prints name by name with fprintf().
 *
 * usage: peer FILE BYTES-BEFORE-THE-SLOTS [print | unbuffered]; without `print` the functions only count, and with
 * `unbuffered` every 16 bytes are a read() of their own.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 32, MOST_WORDS = 512 };

typedef struct {
    uint32_t header, stamp, words;
    uint32_t word[MOST_WORDS];
} event;

typedef int (*callback)(const event *, FILE *);

static callback functions[CLASSES][1024];
static uint64_t counted;
static uint32_t high_word;

static int count_event(const event *found, FILE *out)
{
    (void)out;
    counted += found->words;
    return 0;
}

static int print_event(const event *found, FILE *out)
{
    static const char *const names[] = {"", "CONTROL", "KER_CALL", "INT", "PROCESS", "THREAD", "VTHREAD", "USER", "SYSTEM",
                                        "COMM"};
    uint32_t number = found->header >> 10 & 31;
    fprintf(out, "t:0x%08" PRIx64 " CPU:%02u ", (uint64_t)high_word << 32 | found->stamp, found->header >> 24 & 63);
    fprintf(out, "%-15s :%-18u", number < 10 ? names[number] : "", found->header & 1023);
    for (uint32_t i = 0; i < found->words; i++)
        fprintf(out, found->words > 2 ? "\n%26s:0x%08x" : " %s:0x%08x", "argument", found->word[i]);
    fprintf(out, "\n");
    return 0;
}

int main(int count, char **arguments)
{
    FILE *file = count > 2 ? fopen(arguments[1], "rb") : NULL;
    static event open[64], *current;
    uint32_t slot[4], last_stamp = 0;
    if (!file || fseek(file, atol(arguments[2]), SEEK_SET))
        return 2;
    for (int class = 0; class < CLASSES; class++)
        for (int number = 0; number < 1024; number++)
            functions[class][number] = count > 3 && !strcmp(arguments[3], "print") ? print_event : count_event;
    if (count > 3 && !strcmp(arguments[3], "unbuffered"))
        setvbuf(file, NULL, _IONBF, 0);
    while (fread(slot, sizeof slot, 1, file) == 1) {
        uint32_t kind = slot[0] >> 30;
        current = &open[slot[0] >> 24 & 63];
        if (kind < 2) {
            current->header = slot[0];
            current->stamp = slot[1];
            current->words = 0;
            if (slot[1] < last_stamp && last_stamp - slot[1] > 0x80000000u)
                high_word++;
            last_stamp = slot[1];
        }
        if (current->words + 2 <= MOST_WORDS) {
            memcpy(current->word + current->words, slot + 2, 8);
            current->words += 2;
        }
        if (kind == 0 || kind == 3)
            functions[current->header >> 10 & 31][current->header & 1023](current, stdout);
    }
    fprintf(stderr, "%" PRIu64 " words\n", counted);
    return 0;
}
