/*
 * What the parts of the supervisor share.
 */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "fuzz.h"

struct slot { int pid, number, killed; long long since; };

/* Milliseconds of the guest's clock. */
long long now_ms(void);
/* What programs could still get. */
long free_kib(void);

/* start.c */
int start_worker(struct slot *slot, int index, uint64_t seed, int number, const char *spec);
void write_file(const char *path, const char *text);
void sweep(void);
void fresh_folder(void);
extern int board_fd, watched_pids[4];
extern uint8_t secret[16];
extern char without[512];
extern unsigned long memory_limit;

/* watched.c */
bool was_watched(int pid, int status);

#endif
