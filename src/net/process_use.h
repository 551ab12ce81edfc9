/* process_use.h - what this process itself takes: processor time, memory, since when. */
#pragma once

#include <stdint.h>

struct process_use {         /* all zero: not open, and its memory is told as 0 */
	int statm;           /* held open: a confined process could not open it */
	uint64_t started_ns; /* since 1970 */
};

void process_use_open(struct process_use *p); /* before the process is confined */
void process_use_close(struct process_use *p);
uint64_t process_use_cpu_us(void);
uint64_t process_use_memory(const struct process_use *p); /* bytes that are resident */
