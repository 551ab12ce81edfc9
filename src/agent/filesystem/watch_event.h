/* watch_event.h - FilesystemEvent as JSON, and the wish that every watch begins with. */
#pragma once

#include "agent/filesystem/dir_watch.h"
#include "agent/filesystem/fs_call.h"

enum { WATCH_EVENT_MAX = 64 * USER_PATH_MAX }; /* in bytes: every path in it escaped */

/* How a list with a hole in it is told apart from a whole one. */
#define WATCH_LOST "events were lost: they came faster than they were taken"

struct watch_wish {
	struct dir_watch_wish dir; /* its path is the one below */
	bool include_entry;
	char path[USER_PATH_MAX];
};

/* The members path, recursive, includeEntry and allowNetworkMounts. False: *ret_fault. */
bool watch_wish_read(const struct agent *a, const struct http1_head *h, const json_t *message,
		     struct watch_wish *ret, struct rpc_fault *ret_fault);

/* Why a watch could not be opened. */
void watch_fault(const struct watch_wish *wish, const struct err *err, struct rpc_fault *ret);

/* Appends {"name":"x","type":"EVENT_TYPE_CREATE"}, and if asked for and there is one "entry". */
struct watch_event {
	enum dir_event type;
	const char *name;
	bool include_entry;
};
int watch_event_put(const struct agent *a, const struct dir_watch *w, const struct watch_event *e,
		    struct buf *out, struct err *err) NODISCARD;
