/* console.h - what the last words of a guest say about its end.
 *
 * They are the guest's own: whoever is root in it can write what he likes, and is told so as the
 * reason of his own sandbox's end. Nothing else depends on them.
 */
#pragma once

#include "base/bytes.h"
#include "wire/json.h"

enum { CONSOLE_BYTES_MAX = 64 * 1024 }; /* as QEMU keeps, see warden/vmm.c */

enum console_end {
	CONSOLE_NOTHING,   /* that is known: a crash without a word */
	CONSOLE_RESTART,   /* it was restarted, or shut down, by somebody in it */
	CONSOLE_PANIC,     /* of its kernel */
	CONSOLE_NO_MEMORY, /* the same, for want of memory */
};

enum console_end console_end_in(struct bytes text); /* the last that is said counts */

json_t *console_arguments(void);                    /* of QEMU's ringbuf-read */
enum console_end console_end_of(const json_t *ret); /* of its answer */
