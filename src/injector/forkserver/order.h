/* order.h - what the injector and its forkserver say to each other. */
#pragma once

#include <stdint.h>

enum { ORDER_FDS = 2 }; /* a worker's channel, and the file that tells it */

struct order {
	uint32_t version;
};

struct raised { /* with its pidfd, if there is one; the first one says that the forkserver is there
		 */
	uint32_t code; /* enum err_code */
	int32_t sys;
};
