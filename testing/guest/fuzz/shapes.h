/*
 * The kinds of structures that calls take, and who fills which.
 */
#ifndef SHAPES_H
#define SHAPES_H

#include "fuzz.h"

enum shape {
    SHAPE_OUT, SHAPE_BYTES, SHAPE_VECTOR, SHAPE_MESSAGE, SHAPE_MESSAGES, SHAPE_ADDRESS, SHAPE_LENGTH, SHAPE_ACTION,
    SHAPE_SIGNALS, SHAPE_SIGNALS_ARG, SHAPE_TIMESPEC, SHAPE_TIMEVAL, SHAPE_TWO_TIMESPEC, SHAPE_TWO_TIMEVAL,
    SHAPE_ITIMERSPEC, SHAPE_ITIMERVAL, SHAPE_EPOLL, SHAPE_POLL, SHAPE_SELECT, SHAPE_EVENT, SHAPE_INFO, SHAPE_STACK,
    SHAPE_LIMIT, SHAPE_CAP_HEAD, SHAPE_CAP_DATA, SHAPE_SCHED, SHAPE_FUTEX, SHAPE_ROBUST, SHAPE_QUEUE, SHAPE_CLONE,
    SHAPE_HOW, SHAPE_WORDS, SHAPE_OFFSET, SHAPE_CPUS, SHAPE_RSEQ, SHAPE_ZEROS, SHAPE_RANGE, SHAPE_STACK_TOP, SHAPES,
};

/* Fills one in scratch memory and returns it, or NULL when it is an address of its own. */
void *fill(struct step *step, enum shape shape, size_t *size);
/* messages.c: those that have others in them. */
void *fill_vector(struct step *step, size_t *size);
void *fill_message(struct step *step, size_t *size);
void *fill_messages(struct step *step, size_t *size);
void *fill_address(struct step *step, size_t *size);
void *fill_words(struct step *step, size_t *size);
void *fill_clone(struct step *step, size_t *size);

#endif
