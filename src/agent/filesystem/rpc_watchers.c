/* rpc_watchers.c - filesystem.Filesystem: CreateWatcher, GetWatcherEvents, RemoveWatcher. */
#include "agent/filesystem/fs_call.h"
#include "agent/filesystem/watchers.h"
#include "agent/route.h"

static int fail(struct fs_call *c, const struct err *err)
{
	(void)rpc_fault_from(&c->fault, err);
	return FS_FAILED;
}

static int create_start(struct fs_call *c, const json_t *message)
{
	const struct http1_head *h = http_request_head(c->unary.rq);
	char id[WATCHER_ID_MAX];
	struct watch_wish wish;
	struct err err;

	if (!watch_wish_read(c->agent, h, message, &wish, &c->fault))
		return FS_FAILED;
	if (watchers_add(c->agent, &wish, id, &err) < 0) {
		watch_fault(&wish, &err, &c->fault);
		return FS_FAILED;
	}
	if (buf_printf(&c->answer, &err, "{\"watcherId\":\"%s\"}", id) < 0)
		return fail(c, &err);
	return FS_DONE;
}

static int events_start(struct fs_call *c, const json_t *message)
{
	struct bytes id = { 0 };
	struct err err;

	if (json_may_string(message, "watcherId", &id, &err) < 0 ||
	    buf_add(&c->answer, BYTES_LIT("{\"events\":["), &err) < 0)
		return fail(c, &err);
	if (watchers_fetch(&c->agent->watchers, id, &c->answer, &err) < 0) {
		(void)fail(c, &err);
		if (err.code == ERR_UNAVAILABLE)
			c->fault.code = CONNECT_DATA_LOSS;
		return FS_FAILED;
	}
	return buf_add(&c->answer, BYTES_LIT("]}"), &err) < 0 ? fail(c, &err) : FS_DONE;
}

static int remove_start(struct fs_call *c, const json_t *message)
{
	struct bytes id = { 0 };
	struct err err;

	if (json_may_string(message, "watcherId", &id, &err) < 0 ||
	    watchers_remove(&c->agent->watchers, id, &err) < 0 ||
	    buf_add(&c->answer, BYTES_LIT("{}"), &err) < 0)
		return fail(c, &err);
	return FS_DONE;
}

static const struct fs_method create_method = { .start = create_start };
static const struct fs_method events_method = { .start = events_start };
static const struct fs_method remove_method = { .start = remove_start };

const struct route watchers_routes[] = {
	{ "/filesystem.Filesystem/CreateWatcher", "POST", GUARD_CLIENT, .fs = &create_method },
	{ "/filesystem.Filesystem/GetWatcherEvents", "POST", GUARD_CLIENT, .fs = &events_method },
	{ "/filesystem.Filesystem/RemoveWatcher", "POST", GUARD_CLIENT, .fs = &remove_method },
	{ 0 },
};
