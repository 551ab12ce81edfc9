/* watch_event.c - see watch_event.h. */
#include "agent/filesystem/watch_event.h"

#include "agent/filesystem/entry.h"

bool watch_wish_read(const struct agent *a, const struct http1_head *h, const json_t *message,
		     struct watch_wish *ret, struct rpc_fault *ret_fault)
{
	struct account who;
	struct err err;

	if (!rpc_user(a, h, &who, ret_fault) ||
	    !fs_path(a, &who, message, "path", ret->path, ret_fault))
		return false;
	ret->dir = (struct dir_watch_wish){ .path = ret->path };
	ret->include_entry = false;
	if (json_may_bool(message, "recursive", &ret->dir.recursive, &err) < 0 ||
	    json_may_bool(message, "includeEntry", &ret->include_entry, &err) < 0 ||
	    json_may_bool(message, "allowNetworkMounts", &ret->dir.network, &err) < 0) {
		(void)rpc_fault_from(ret_fault, &err);
		return false;
	}
	return true;
}

void watch_fault(const struct watch_wish *wish, const struct err *err, struct rpc_fault *ret)
{
	rpc_fault_set(ret, connect_code_of(err->code), "%s: %s", err->msg, wish->path);
}

/* The file may be gone again; then there is nothing to say about it. */
static int put_entry(const struct agent *a, const struct dir_watch *w, const char *name,
		     struct buf *out, struct err *err)
{
	AUTO(account_names_done) struct account_names names = { 0 };
	const char *root = strcmp(w->root, "/") == 0 ? "" : w->root;
	char path[USER_PATH_MAX];
	size_t before = out->len;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", root, name) >= sizeof(path))
		return 0;
	path_tidy(path);
	fs_names(a, &names);
	if (buf_add(out, BYTES_LIT(",\"entry\":"), err) < 0)
		return -1;
	if (entry_put(out, path, &names, err) == 0)
		return 0;
	out->len = before;
	return err->code == ERR_EXHAUSTED ? -1 : 0;
}

static bool has_entry(enum dir_event type)
{
	return type == DIR_CREATE || type == DIR_WRITE || type == DIR_CHMOD;
}

int watch_event_put(const struct agent *a, const struct dir_watch *w, const struct watch_event *e,
		    struct buf *out, struct err *err)
{
	static const char *const types[] = {
		[DIR_CREATE] = "CREATE", [DIR_WRITE] = "WRITE", [DIR_REMOVE] = "REMOVE",
		[DIR_RENAME] = "RENAME", [DIR_CHMOD] = "CHMOD",
	};
	AUTO(json_decrefp) json_t *text = json_text(bytes_str(e->name));

	if (buf_add(out, BYTES_LIT("{\"name\":"), err) < 0 || json_encode(text, out, err) < 0 ||
	    buf_printf(out, err, ",\"type\":\"EVENT_TYPE_%s\"", types[e->type]) < 0)
		return -1;
	if (e->include_entry && has_entry(e->type) && put_entry(a, w, e->name, out, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("}"), err);
}
