/* jobs.h - the jobs that run now: whose they are, how long they may, and what is left of them. */
#pragma once

#include "images/forkserver.h"
#include "net/control_socket.h"

enum { JOBS_MAX = 32, JOBS_NOTES_MAX = 20000, JOBS_NOTES_BATCH = 32 }; /* of one job; in a turn */

struct jobs;

struct jobs_entry {
	struct jobs *of;               /* NULL: free */
	struct control_client *client; /* NULL: nobody waits any more */
	uint64_t tag;
	char id[ORDER_ID_MAX + 1];
	int32_t pid;
	uint32_t notes; /* so far */
	int pidfd, channel;
	bool channel_open;
	bool has_end; /* how it ended is known: told when nothing is left of it */
	struct images_reply end;
	int end_fd; /* that goes with it; -1: none */
	struct watch notes_come, dead;
	struct timer late;
};

struct jobs {
	struct loop *loop;
	struct forkserver *forkserver;
	size_t max;
	uint64_t most_ms;
	struct jobs_entry all[JOBS_MAX];
};

void jobs_open(struct jobs *j, struct loop *l, struct forkserver *f,
	       const struct config_value *set);
void jobs_close(struct jobs *j); /* they are killed */

/* `o` but for its id; `fds` without the channel. The client is told how it goes on, and how it
 * ends. ERR_EXHAUSTED: too many run. */
int jobs_start(struct jobs *j, struct control_client *c, uint64_t tag, struct order *o,
	       const int *fds, size_t n, struct err *err) NODISCARD;
void jobs_cancel(struct jobs *j, const struct control_client *c, uint64_t tag);
void jobs_forget(struct jobs *j, const struct control_client *c); /* it is gone */
