/* run_out.h - standard output and standard error of code in a sandbox.
 *
 * A file or a pipe is given what the code said, byte for byte. A terminal is not given what it
 * could take for a command: that comes out as '?'.
 *
 * Writing waits for who reads, so that nothing is kept, and ends when one of the signals that the
 * program waits for has come: then ERR_UNAVAILABLE.
 */
#pragma once

#include "base/bytes.h"

struct run_out {
	int fd;
	int signals; /* readable: one has come; -1: none is waited for */
	bool terminal;
	bool in_line; /* what was written last was no newline */
};

struct run_out run_out_open(int fd, int signals);

int run_out_bytes(struct run_out *o, struct bytes text, struct err *err) NODISCARD;  /* UTF-8 */
int run_out_json(struct run_out *o, struct bytes string, struct err *err) NODISCARD; /* escaped */
/* A newline, unless one was the last that was written. */
int run_out_line(struct run_out *o, struct err *err) NODISCARD;

/* What a terminal obeys becomes '?': controls but tab, newline and return, and U+0080 to U+009F.
 * Only whole characters. */
void run_out_clean(uint8_t *text, size_t len);
