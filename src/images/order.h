/* order.h - between the daemon, its forkserver and a job: fixed messages. */
#pragma once

#include <stdint.h>

#include "images/protocol.h"
#include "wire/image_ref.h"

enum { ORDER_ID_MAX = 15, ORDER_FDS_MAX = 4 };

enum order_verb {
	ORDER_JOB,   /* with descriptors: the channel, then what `parts` says -> a pidfd */
	ORDER_CLEAN, /* pid, id: what is left of a job ends, its files go */
};

enum { /* in this order */
       ORDER_AUTH = 1 << 0,
       ORDER_DISK = 1 << 1,
       ORDER_ARCHIVE = 1 << 2,
};

struct order {
	uint32_t verb;
	uint32_t parts;
	uint32_t disk_mib;
	int32_t pid; /* as the forkserver counts */
	char id[ORDER_ID_MAX + 1];
	char host[IMAGE_HOST_MAX + 1]; /* that is spoken to */
	struct image_ref ref;
};

struct order_answer {
	uint32_t code; /* enum err_code */
	int32_t sys;
	int32_t pid;
};

/* From a job, over its channel; the last has `last`, and a descriptor when it went well. */
struct job_note {
	uint32_t code; /* enum err_code */
	uint32_t last;
	char digest[IMAGES_DIGEST_SIZE];
	char text[IMAGES_TEXT_SIZE];
};
