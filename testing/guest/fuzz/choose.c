/*
 * Randomness, words for a written program, and the table of calls.
 */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "abi.h"

const int call_count = sizeof calls / sizeof calls[0];
_Static_assert(sizeof calls / sizeof calls[0] <= CALLS, "more calls than counts");

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t word = a + (b + 1) * 0x9e3779b97f4a7c15ULL;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
    return word ^ word >> 31;
}

uint64_t any(struct step *step)
{
    step->random += 0x9e3779b97f4a7c15ULL;
    return mix(step->random, 0);
}

unsigned below(struct step *step, unsigned limit)
{
    return (unsigned)((any(step) >> 33) % limit);
}

void say(struct step *step, const char *format, ...)
{
    if (!step->text || step->room < 2)
        return;
    va_list words;
    va_start(words, format);
    int length = vsnprintf(step->text, step->room, format, words);
    va_end(words);
    size_t used = length < 0 ? 0 : (size_t)length < step->room ? (size_t)length : step->room - 1;
    step->text += used;
    step->room -= used;
}

int call_index(int number)
{
    for (int row = 0; row < call_count; row++)
        if (calls[row].number == number)
            return row;
    return -1;
}

int call_named(const char *name)
{
    for (int row = 0; row < call_count; row++)
        if (strcmp(calls[row].name, name) == 0)
            return row;
    return -1;
}
